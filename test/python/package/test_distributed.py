"""Checks that distributed and DistributedDataParallel in one process behave as PyTorch with gloo in one process."""
import importlib

import gradus
import pytest
from nn_programs import attempt, same


@pytest.fixture(autouse=True)
def group():
    """Provides a process group of each framework during a test."""
    from oracle import needs_torch, torch

    needs_torch()

    made = []
    for framework in (gradus, torch):
        distributed = importlib.import_module(f"{framework.__name__}.distributed") if framework is gradus else torch.distributed
        distributed.init_process_group("gloo", rank=0, world_size=1, store=distributed.HashStore())
        made.append(distributed)
    yield
    for distributed in made:
        if distributed.is_initialized():
            distributed.destroy_process_group()


@same
def test_process_group_queries(t):
    dist = t.distributed
    yield dist.is_available(), dist.is_initialized(), dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.is_gloo_available()
    yield attempt(dist.init_process_group, "gloo", rank=0, world_size=1, store=dist.HashStore()), dist.group.WORLD is not None
    made = dist.new_group([0])
    yield dist.get_rank(made), dist.get_world_size(made), dist.get_process_group_ranks(made), dist.barrier(), dist.barrier(made)
    yield dist.is_backend_available("gloo"), dist.is_backend_available("nothing"), dist.get_node_local_rank(3), attempt(dist.get_node_local_rank)[0]
    yield attempt(dist.new_group, [1]), dist.is_torchelastic_launched()


@same
def test_collective_operations(t):
    dist = t.distributed
    for dtype in (t.float32, t.int64):
        x = t.arange(6).to(dtype)
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.PRODUCT):
            yield dist.all_reduce(x, op), dist.reduce(x, 0, op), x
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        yield work.is_completed(), dist.broadcast(x, 0), dist.broadcast(x, src=0), x
        out = [t.zeros_like(x)]
        yield dist.all_gather(out, x), out, dist.gather(x, out, 0), out, dist.scatter(x, out, 0), x
        flat = t.zeros_like(x)
        yield dist.all_gather_into_tensor(flat, x), flat, dist.all_to_all_single(flat, x + 1), flat
        yield dist.reduce_scatter(flat, [x]), flat, dist.reduce_scatter_tensor(flat, x * 2), flat
    objects = [None]
    yield dist.all_gather_object(objects, {"a": 1}), objects, dist.gather_object([2], objects), objects, dist.broadcast_object_list(objects, 0), objects
    yield dist.scatter_object_list(objects, [3], 0), objects


@same
def test_wrong_arguments_of_distributed_functions(t):
    dist = t.distributed
    yield attempt(dist.all_reduce, 3)[0], attempt(dist.all_gather, t.ones(2), t.ones(2))[0], attempt(dist.gather, t.ones(2)), attempt(dist.scatter, t.ones(2))
    yield attempt(dist.send, t.ones(2), 0)
    dist.destroy_process_group()
    yield dist.is_initialized(), attempt(dist.get_rank), attempt(dist.all_reduce, t.ones(2))[0], attempt(dist.barrier), attempt(dist.get_world_size)
    yield attempt(t.nn.parallel.DistributedDataParallel, t.nn.Linear(2, 2))
    yield attempt(dist.init_process_group, "gloo")[0], attempt(dist.init_process_group, store=dist.HashStore())
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())


def test_process_groups_of_several_processes_are_refused():
    dist = gradus.distributed
    dist.destroy_process_group()
    with pytest.raises(NotImplementedError, match="process groups of one process; a world of 2"):
        dist.init_process_group("nccl", rank=0, world_size=2, init_method="tcp://localhost:1")
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    with pytest.raises(NotImplementedError, match="recv: there is no other process"):
        dist.recv(gradus.ones(2))


def test_init_process_group_from_environment_variables(monkeypatch):
    """init_process_group reads the environment variables that torchrun sets, and raises ValueError if one is missing."""
    dist = gradus.distributed
    dist.destroy_process_group()
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}.items():
        with pytest.raises(ValueError, match="environment variable"):
            dist.init_process_group("nccl")
        monkeypatch.setenv(name, value)
    dist.init_process_group("nccl")
    assert dist.get_backend() == "nccl" and dist.get_world_size() == 1


@same
def test_distributed_data_parallel(t):
    nn = t.nn
    net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)), find_unused_parameters=False)
    optimizer = t.optim.SGD(net.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = net(t.randn(5, 3)).square().mean()
        loss.backward()
        optimizer.step()
        yield loss, [p.grad for p in net.parameters()]
    with net.no_sync():
        net(t.ones(1, 3)).sum().backward()
    yield [p.grad for p in net.parameters()], list(net.state_dict().items()), net, net.module[0]
    frozen = nn.Linear(2, 2).requires_grad_(False)
    yield attempt(nn.parallel.DistributedDataParallel, frozen), attempt(nn.parallel.DistributedDataParallel, nn.Linear(2, 2), device_ids=[0])[0]
    yield list(t.utils.data.DistributedSampler(range(5), shuffle=False))
