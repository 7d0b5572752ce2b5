"""Runs a distributed training program in a single process, with DistributedDataParallel, a DistributedSampler, reductions and a checkpoint."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def setup():
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"}.items():
        os.environ.setdefault(name, value)
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return dist.get_rank(), dist.get_world_size()


def main():
    rank, world_size = setup()
    print(f"rank {rank} of {world_size}, {dist.get_backend()}")
    torch.manual_seed(42 + rank)
    data = TensorDataset(torch.randn(64, 10), torch.randint(0, 3, (64,)))
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, shuffle=True)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    model = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(model) if torch.cuda.is_available() else model, find_unused_parameters=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        total = torch.zeros(2)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += torch.tensor([loss.item() * len(y), len(y)])
        dist.all_reduce(total, op=dist.ReduceOp.SUM)
        dist.barrier()
        if rank == 0:
            print(f"epoch {epoch}: loss {(total[0] / total[1]).item():.4f}")
    gathered = [torch.zeros(1) for _ in range(world_size)]
    dist.all_gather(gathered, torch.tensor([1.0 + rank]))
    objects = [None] * world_size
    dist.all_gather_object(objects, {"rank": rank})
    print(gathered, objects)
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.module.state_dict(), os.path.join(folder, "model.pt"))
        state = torch.load(os.path.join(folder, "model.pt"), map_location="cpu")
        print([key for key in state], model.module.load_state_dict(state))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
