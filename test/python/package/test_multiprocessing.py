"""Tests tensors that processes share: fork and spawn, both sharing strategies, queues, pools and killed processes. File descriptors and names of
shared memory must be released."""
import gc
import os
import signal
import subprocess
import sys
import time

import gradus
import gradus.multiprocessing as mp
import pytest
from gradus import nn

pytestmark = pytest.mark.alone  # no other test runs meanwhile, because these tests list all shared-memory names of the machine
METHODS, STRATEGIES = ("fork", "spawn"), ("file_descriptor", "file_system")


@pytest.fixture(autouse=True)
def nothing_is_left():
    gc.collect()
    before = descriptors(), names()
    yield
    mp.set_sharing_strategy("file_descriptor")
    gc.collect()
    until = time.monotonic() + 5
    while (descriptors() > before[0] or names() - before[1]) and time.monotonic() < until:
        time.sleep(0.05)  # threads of multiprocessing are still ending
        gc.collect()
    assert names() == before[1]


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def names():
    return {name for name in os.listdir("/dev/shm") if name.startswith("gradus_")}


def answer(tasks, answers):
    """Runs in a child process. Writes to each tensor that it receives, and sends the tensor back with its properties."""
    for item in iter(tasks.get, None):
        with gradus.no_grad():
            item[0] = 5
        answers.put((item, list(item.shape), item.stride(), item.is_shared(), item.requires_grad, type(item).__name__))
        del item


class Child:
    def __init__(self, method):
        context = mp.get_context(method)
        self.tasks, self.answers = context.SimpleQueue(), context.SimpleQueue()
        self.process = context.Process(target=answer, args=(self.tasks, self.answers))
        self.process.start()

    def __enter__(self):
        return self

    def ask(self, item):
        self.tasks.put(item)
        return self.answers.get()

    def __exit__(self, *_):
        self.tasks.put(None)
        self.process.join()
        self.tasks.close()
        self.answers.close()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("method", METHODS)
def test_parent_and_child_share_the_memory_of_a_sent_tensor(method, strategy):
    mp.set_sharing_strategy(strategy)
    with Child(method) as child:
        x = gradus.zeros(3)
        back, size, stride, shared, requires_grad, kind = child.ask(x)
        assert x.tolist() == back.tolist() == [5, 0, 0] and x.is_shared() and shared and not requires_grad and kind == "Tensor"
        back[1] = 7
        assert x[1] == 7
        base = gradus.arange(24.).reshape(4, 6)
        view = base.t()[1:4:2]
        back, size, stride, *_ = child.ask(view)
        assert back.stride() == view.stride() == stride and back.storage_offset() == view.storage_offset() and back.tolist() == view.tolist()
        assert base[0, 1] == 5 and base.is_shared()
        parameter = nn.Parameter(gradus.ones(2))
        back, *_, requires_grad, kind = child.ask(parameter)
        assert kind == type(back).__name__ == "Parameter" and requires_grad and back.requires_grad and parameter[0] == 5
        leaf = gradus.ones(2, requires_grad=True)
        assert child.ask(leaf)[0].requires_grad and leaf[0] == 5
        for other in (gradus.ones(2, dtype=gradus.complex64), gradus.ones(3, dtype=gradus.bool), gradus.ones(2, dtype=gradus.bfloat16), x.flip(0)):
            assert child.ask(other)[0].dtype is other.dtype and other[0] == (5 if other.dtype is not gradus.bool else 1)
        with pytest.raises(RuntimeError, match="^Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support"):
            child.tasks.put(leaf * 2)
        del back, view, base, x, parameter, leaf, other


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sending_tensors_leaks_no_descriptors_and_names(strategy):
    mp.set_sharing_strategy(strategy)
    with Child("fork") as child:
        for _ in range(3):
            child.ask(gradus.zeros(3))
        before = descriptors()
        for _ in range(60):
            child.ask(gradus.zeros(1000))
        assert descriptors() <= before + 2 and len(names()) <= 2
        same = gradus.zeros(3)
        for _ in range(30):
            child.ask(same)
        assert descriptors() <= before + 4
        del same


def test_a_tensor_with_an_exported_buffer_is_sent_as_a_copy():
    with Child("fork") as child:
        x = gradus.zeros(3)
        array = memoryview(x)
        back = child.ask(x)[0]
        assert back.tolist() == [5, 0, 0] and x.tolist() == [0, 0, 0] and not x.is_shared() and len(array) == 3
        with pytest.raises(RuntimeError, match="something other than its tensors"):
            x.share_memory_()


def test_views_sent_together_share_one_storage():
    context = mp.get_context("fork")
    queue = context.SimpleQueue()
    x = gradus.zeros(4)
    queue.put({"x": x, "views": (x[1:], x[:2]), "storage": x.untyped_storage(), "empty": gradus.zeros(0, 3), "meta": gradus.ones(2, device="meta")})
    got = queue.get()
    got["views"][0][0] = 3
    assert x.tolist() == got["x"].tolist() == [0, 3, 0, 0] and got["views"][1].tolist() == [0, 3]
    assert got["x"].untyped_storage() is got["views"][1].untyped_storage() is got["storage"]
    assert got["empty"].shape == (0, 3) and got["meta"].device.type == "meta"
    queue.close()


def add(index, shared, step):
    shared[index] += step
    if step < 0:
        raise ValueError(f"negative step of {index}")


def leave(index, how):
    if how == "exit":
        sys.exit(3)
    os.kill(os.getpid(), how)


def make(n):
    return gradus.full((3,), float(n))


@pytest.mark.parametrize("method", METHODS)
def test_start_processes_and_pool(method):
    x = gradus.zeros(2).share_memory_()
    mp.start_processes(add, (x, 2.0), nprocs=2, start_method=method)
    assert x.tolist() == [2, 2]
    with pytest.raises(mp.ProcessRaisedException, match="(?s)-- Process 0 terminated with the following error:\n.*\nValueError: negative step of 0") as caught:
        mp.start_processes(add, (x, -1.0), nprocs=1, start_method=method)
    assert caught.value.error_index == 0 and x[0] == 1
    with mp.get_context(method).Pool(2) as pool:
        assert [each.tolist() for each in pool.map(make, range(3))] == [[0] * 3, [1] * 3, [2] * 3]


def test_failing_processes_raise_exceptions_in_the_parent():
    with pytest.raises(mp.ProcessExitedException, match="^process 0 terminated with exit code 3$") as caught:
        mp.start_processes(leave, ("exit",), nprocs=1, start_method="fork")
    assert caught.value.exit_code == 3
    with pytest.raises(mp.ProcessExitedException, match="^process 0 terminated with signal SIGKILL$") as caught:
        mp.start_processes(leave, (signal.SIGKILL,), nprocs=1, start_method="fork")
    assert caught.value.signal_name == "SIGKILL"
    x = gradus.zeros(2).share_memory_()
    started = mp.start_processes(add, (x, 1.0), nprocs=2, join=False, start_method="fork")
    while not started.join():
        pass
    assert len(started.pids()) == 2 and x.tolist() == [1, 1]
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        mp.spawn(make, (), nprocs=1, start_method="fork")


def hogwild(index, model):
    for parameter in model.parameters():
        with gradus.no_grad():
            parameter += 1


def test_share_memory_of_a_module():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    before = [each.clone() for each in model.parameters()]
    assert model.share_memory() is model and all(each.is_shared() for each in (*model.parameters(), *model.buffers()))
    mp.start_processes(hogwild, (model,), nprocs=1, start_method="fork")
    assert all(gradus.equal(after, first + 1) for after, first in zip(model.parameters(), before))
    model(gradus.ones(4, 3)).sum().backward()
    assert model[0].weight.grad is not None


def wait(queue, ready):
    ready.set()
    time.sleep(60)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_tensor_stays_valid_after_its_receiver_is_killed(strategy):
    mp.set_sharing_strategy(strategy)
    context = mp.get_context("fork")
    queue, ready = context.SimpleQueue(), context.Event()
    process = context.Process(target=wait, args=(queue, ready))
    process.start()
    ready.wait()
    x = gradus.ones(3)
    queue.put(x)
    process.kill()
    process.join()
    assert x.tolist() == [1, 1, 1] and queue.get().tolist() == [1, 1, 1]  # the process has ended, but its message is still in the pipe
    queue.close()


def test_names_left_by_killed_processes_are_removed_by_the_main_process(tmp_path):
    program = """
import os, signal, gradus as torch, gradus.multiprocessing as mp
mp.set_sharing_strategy("file_system")
def child(queue):
    queue.put(torch.ones(3).share_memory_())
    os.kill(os.getpid(), signal.SIGKILL)
context = mp.get_context("fork")
queue = context.SimpleQueue()
process = context.Process(target=child, args=(queue,))
process.start()
process.join()
kept = torch.zeros(2).share_memory_()
print(len([name for name in os.listdir("/dev/shm") if name.startswith(mp._prefix()[1:])]), queue.get().tolist(), mp._prefix()[1:])
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    count, *_, prefix = result.stdout.split()
    assert count == "2" and not [name for name in names() if name.startswith(prefix)] and result.stderr == ""


def test_sharing_strategies():
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"} and mp.get_sharing_strategy() == "file_descriptor"
    with pytest.raises(AssertionError, match="invalid sharing strategy 'foo', expected one of"):
        mp.set_sharing_strategy("foo")
    mp.set_sharing_strategy("file_system")
    x = gradus.ones(2).share_memory_()
    assert x.untyped_storage().filename.startswith("/gradus_") and os.path.exists("/dev/shm" + x.untyped_storage().filename)
    assert x.share_memory_() is x
    del x


def test_tensors_over_files_are_sent(tmp_path):
    context = mp.get_context("fork")
    queue = context.SimpleQueue()
    shared = gradus.from_file(tmp_path / "a", shared=True, size=3)
    queue.put(shared)
    queue.get()[0] = 5
    assert gradus.from_file(tmp_path / "a", size=3).tolist() == [5, 0, 0]
    private = gradus.from_file(tmp_path / "a", size=3)
    queue.put(private)
    queue.get()[1] = 6
    assert private.tolist() == [5, 6, 0] and shared.tolist() == [5, 0, 0]
    queue.close()


def test_invalid_sharing_is_refused():
    with pytest.raises(RuntimeError, match="only available on CPU"):
        gradus.ones(2, device="meta").share_memory_()
    with pytest.raises(OSError):
        gradus._C._open_shared(10**6, 4)
    with pytest.raises(FileNotFoundError):
        gradus._C._open_shared("/gradus_absent", 4)
    x = gradus.ones(2).share_memory_()
    place = gradus._C._shared_place(x.untyped_storage())[0]
    with pytest.raises(RuntimeError, match="smaller than the required mapping size"):
        gradus._C._open_shared(place, 100)
    with pytest.raises(RuntimeError, match="not resizable"):
        x.untyped_storage().resize_(100)
    assert gradus.zeros(0).share_memory_().is_shared()
