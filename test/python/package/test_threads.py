"""Eight threads run random operators on tensors, graphs and modules that they share. There must be no unexpected exception, no wrong number and no
race."""
import random
import threading

import pytest

import gradus as torch

pytestmark = pytest.mark.threads
THREADS, ROUNDS = 8, 150


def in_threads(work):
    """Runs work(thread number) in all threads at the same time. Raises the first exception of any thread."""
    failures, start = [], threading.Barrier(THREADS)

    def body(number):
        try:
            start.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=body, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_operators_on_shared_tensors():
    torch.manual_seed(0)
    small, large = torch.rand(8, 8), torch.rand(300, 300)
    expected = {"small": (small @ small).sum().item(), "large": (large @ large.t()).sum().item(), "rows": large.sum(1)[3].item()}

    def work(number):
        choose = random.Random(number)
        for _ in range(ROUNDS):
            pick = choose.randrange(6)
            if pick == 0:
                assert (small @ small).sum().item() == expected["small"]
            elif pick == 1:
                assert (large @ large.t()).sum().item() == expected["large"]
            elif pick == 2:
                assert large.sum(1)[3].item() == expected["rows"]
            elif pick == 3:
                assert torch.cat([small, small[1:]]).shape == (15, 8)
            elif pick == 4:
                with pytest.raises(RuntimeError):
                    small @ large
            else:
                assert torch.exp(large).numpy().shape == (300, 300)

    in_threads(work)


def test_backward_through_a_shared_graph():
    weight = torch.ones(16, 16, requires_grad=True)
    hooks = []
    weight.register_hook(lambda grad: hooks.append(1))
    shared = (weight * 2).sum()

    def work(number):
        for _ in range(20):
            shared.backward(retain_graph=True)
            local = torch.rand(4, requires_grad=True)
            (local * local).sum().backward()
            assert torch.allclose(local.grad, 2 * local.detach())

    in_threads(work)
    assert len(hooks) == THREADS * 20
    assert weight.grad.eq(2.0 * THREADS * 20).all()


def test_training_separate_modules_in_threads():
    def work(number):
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        inputs = torch.rand(16, 8)
        for _ in range(30):
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()

    in_threads(work)


def test_grad_returns_one_object_to_all_threads():
    base = torch.rand(4, 4, requires_grad=True)
    base.sum().backward()
    seen = [set() for _ in range(THREADS)]

    def work(number):
        for _ in range(ROUNDS):
            seen[number].add(id(base.grad))

    kept = base.grad
    in_threads(work)
    assert set.union(*seen) == {id(kept)}
