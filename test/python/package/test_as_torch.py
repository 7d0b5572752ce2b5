"""Tests programs written for PyTorch that `python -m gradus.as_torch` runs, and the modules that stand in for absent parts of PyTorch."""
import os
import signal
import subprocess
import sys

import pytest

import gradus
from oracle import needs_torch, torch

PACKAGE = os.path.dirname(os.path.dirname(gradus.__file__))


def run(*arguments, cwd=None, code_of_python=(), **environment):
    result = subprocess.run([sys.executable, *code_of_python, "-m", "gradus.as_torch", *map(str, arguments)], capture_output=True, text=True,
                            cwd=cwd, env={**os.environ, "PYTHONPATH": PACKAGE, **environment})
    return result.returncode, result.stdout, result.stderr


@pytest.fixture
def program(tmp_path):
    def write(text, name="program.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_training_program_runs(program):
    path = program("""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.arange(16) % 2), batch_size=4, shuffle=True)
optimizer = optim.AdamW(model.parameters(), lr=0.01)
scheduler = StepLR(optimizer, 1, 0.5)
for epoch in range(3):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    print(f"{total:.3f}")
""")
    needs_torch()
    code, out, err = run(path)
    assert code == 0, err
    theirs = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert out == theirs.stdout and len(out.split()) == 3


def test_torch_and_gradus_name_the_same_objects():
    code, out, err = run("-c", """
import torch, torch.nn.functional, torch.optim.lr_scheduler, torch.utils.data.dataloader
import gradus
assert torch is gradus and torch.nn.functional is gradus.nn.functional and torch.optim.lr_scheduler is gradus.optim.lr_scheduler
assert gradus.optim.__spec__.name == "gradus.optim" and gradus.optim.__name__ == "gradus.optim"
from torch.utils.data import DataLoader
assert DataLoader is gradus.utils.data.DataLoader
import importlib
assert importlib.import_module("torch.nn") is gradus.nn
""", code_of_python=["-W", "error"])
    assert (code, out, err) == (0, "", "")


def test_importing_a_missing_module_names_it():
    code, out, err = run("-c", """
import torch
for name in ("torch.foo", "torch.utils.mobile_optimizer", "torch.nn.functional.bar"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(error, "|", error.name)
try:
    torch.foo
except AttributeError as error:
    print(error)
import torchvision
""")
    assert out.splitlines() == [
        "No module named 'torch.foo': Gradus has no 'gradus.foo' | torch.foo",
        "No module named 'torch.utils.mobile_optimizer': Gradus has no 'gradus.utils.mobile_optimizer': nothing is compiled for mobile "
        "devices | torch.utils.mobile_optimizer",
        "No module named 'torch.nn.functional.bar': Gradus has no 'gradus.nn.functional.bar' | torch.nn.functional.bar",
        "module 'gradus' has no attribute 'foo'"]
    assert code == 1 and err.endswith("ModuleNotFoundError: No module named 'torchvision'\n")


def test_argv_main_module_and_sys_path(program, tmp_path):
    program("value = 5", "neighbour.py")
    path = program("""
import sys, neighbour
import __main__
print(sys.argv[1:], __name__, __main__.neighbour.value, sys.path[0])
class Here: pass
import pickle
assert type(pickle.loads(pickle.dumps(Here()))) is Here
assert __file__ == __main__.__file__ and __spec__ is None and __doc__ is None
""")
    assert run(path, "a", "-b")[1] == f"['a', '-b'] __main__ 5 {tmp_path}\n"
    assert run("-m", "program", "--c", cwd=tmp_path)[1].startswith("['--c'] __main__ 5")


@pytest.mark.parametrize(("text", "code"), [("raise SystemExit(7)", 7), ("import sys; sys.exit('no')", 1), ("pass", 0), ("1/0", 1),
                                            ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM)])
def test_exit_codes_are_those_of_python(program, text, code):
    assert run(program(text))[0] == run("-c", text)[0] == code


def test_a_traceback_shows_only_frames_of_the_program(program):
    path = program("def f():\n    raise ValueError('here')\n\nf()\n")
    code, out, err = run(path)
    expected = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert (code, out, err) == (expected.returncode, expected.stdout, expected.stderr)
    broken = program("def f(:\n", "broken.py")
    assert run(broken)[2] == subprocess.run([sys.executable, str(broken)], capture_output=True, text=True).stderr


def test_usage_message_and_errors_of_the_command_line():
    assert run()[0] == 2 and "usage" in run()[2]
    assert run("--help")[0] == 0 and "usage" in run("--help")[1]
    assert run("-x")[0] == 1 and run("-m")[0] == 1
    assert run("/absent.py")[0] == 2 and "can't open file" in run("/absent.py")[2]


def test_a_data_loader_works_without_numpy():
    code, out, err = run("-c", """
import sys
sys.modules["numpy"] = None
import torch, torch.utils.data
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(4)), batch_size=2, num_workers=1)
print([x.tolist() for x, in loader])
""")
    assert (code, out) == (0, "[[0, 1], [2, 3]]\n"), err


def test_install_is_an_error_after_pytorch_is_imported():
    needs_torch()
    result = subprocess.run([sys.executable, "-c", "import torch, gradus.as_torch; gradus.as_torch.install()"], capture_output=True, text=True,
                            env={**os.environ, "PYTHONPATH": PACKAGE})
    assert "RuntimeError: torch has been imported already" in result.stderr


# Calls about devices and other things that Gradus lacks, e.g. CUDA. The calls in ANSWERS must return what PyTorch returns on a machine without these
# devices. The calls in REFUSALS must raise PyTorch's class of exception.

ANSWERS = [
    "cuda.is_available()", "cuda.device_count()", "cuda.is_initialized()", "cuda.manual_seed(1)", "cuda.manual_seed_all(1)",
    "cuda.empty_cache()", "cuda.memory_allocated()", "cuda.max_memory_allocated()", "cuda.memory_reserved()", "cuda.get_rng_state_all()",
    "cuda.is_bf16_supported()", "cuda.get_arch_list()", "distributed.is_initialized()", "mps.is_available()", "mps.device_count()",
    "mps.manual_seed(1)", "xpu.is_available()", "xpu.device_count()", "xpu.empty_cache()", "xpu.manual_seed_all(1)",
    "backends.cudnn.is_available()", "backends.cudnn.version()", "backends.cudnn.enabled", "backends.cudnn.benchmark",
    "backends.cudnn.deterministic", "backends.cuda.is_built()", "backends.cuda.matmul.allow_tf32", "backends.mps.is_available()",
    "backends.mps.is_built()", "version.cuda", "version.hip", "version.debug", "accelerator.is_available()", "accelerator.device_count()",
    "accelerator.current_accelerator()", "compiler.is_compiling()", "jit.is_scripting()", "jit.is_tracing()",
    "amp.GradScaler('cpu', enabled=False).get_scale()", "amp.GradScaler('cpu', enabled=False).state_dict()",
]
REFUSALS = [
    "cuda.current_device()", "cuda.synchronize()", "cuda.get_device_name(0)", "cuda.get_device_properties(0)", "cuda.init()",
    "cuda.mem_get_info()", "cuda.current_stream()", "distributed.get_rank()", "distributed.get_world_size()", "distributed.barrier()",
    "mps.synchronize()", "mps.empty_cache()", "xpu.synchronize()", "xpu.set_device(0)", "accelerator.synchronize()", "compile(1)",
    "jit.script(1)", "amp.autocast(1)", "amp.autocast('x')",
]


@pytest.mark.parametrize("question", ANSWERS)
def test_device_queries_answer_as_pytorch_without_a_device(question):
    module = question.split(".")[0]
    assert eval(question, {module: getattr(gradus, module)}) == eval(question, {module: getattr(torch, module)})


@pytest.mark.parametrize("call", REFUSALS)
def test_calls_for_absent_devices_raise_the_exception_class_of_pytorch(call):
    name = call.split(".")[0].split("(")[0]
    with pytest.raises(Exception) as expected:
        eval(call, {name: getattr(torch, name)})
    with pytest.raises(type(expected.value)):
        eval(call, {name: getattr(gradus, name)})


def test_a_forked_process_sends_a_tensor_through_a_queue():
    code, out, err = run("-c", """
import torch
import torch.multiprocessing as mp

def double(queue, taken, x):
    queue.put(x.mul_(2))
    taken.wait()

context = mp.get_context("fork")
x, queue, taken = torch.ones(3), context.Queue(), context.Event()
process = context.Process(target=double, args=(queue, taken, x))
process.start()
print(queue.get().tolist(), x.tolist())
taken.set()
process.join()
""")
    assert (code, out) == (0, "[2.0, 2.0, 2.0] [1.0, 1.0, 1.0]\n"), err


def test_absent_backends_are_not_available():
    assert not any(getattr(gradus.backends, name).is_available() for name in ("mkl", "mkldnn", "openmp"))
    with pytest.raises(AssertionError):
        gradus.cuda.set_device(0)


@pytest.mark.filterwarnings("ignore:compile|jit")
def test_compile_and_script_return_the_function_itself():
    def f(x):
        return x

    assert gradus.compile(f) is f and gradus.compile(mode="max-autotune")(f) is f and gradus.jit.script(f) is f
    assert gradus.jit.trace(f, (1,)) is f and gradus.compiler.disable(f) is f and gradus.jit.ignore(f) is f


def test_mixed_precision_works_on_the_cpu_and_is_disabled_for_absent_devices():
    x = gradus.ones(2, 2)
    with gradus.autocast("cpu", dtype=gradus.bfloat16):
        assert gradus.is_autocast_enabled("cpu") and (x @ x).dtype is gradus.bfloat16
    with pytest.warns(UserWarning, match="CUDA is not available. Disabling autocast"):
        context = gradus.autocast("cuda", dtype=gradus.bfloat16)
    with gradus.autocast("cpu", enabled=False):
        assert not gradus.is_autocast_enabled("cpu") and not gradus.amp.GradScaler("cpu", enabled=False).is_enabled()
    assert gradus.autocast is gradus.amp.autocast and gradus.GradScaler is gradus.amp.GradScaler
    with context:
        assert not gradus.is_autocast_enabled()
        assert (x @ x).dtype is gradus.float32
    assert context(len)([1]) == 1


def test_cudnn_flags_are_restored_after_a_block():
    with gradus.backends.cudnn.flags(deterministic=True):
        assert gradus.backends.cudnn.deterministic
    assert not gradus.backends.cudnn.deterministic


def test_fork_rng_restores_the_random_state():
    gradus.manual_seed(0)
    first = gradus.rand(3).tolist()
    gradus.manual_seed(0)
    with gradus.random.fork_rng():
        gradus.rand(100)
    assert gradus.rand(3).tolist() == first
    with pytest.raises(AssertionError):
        with gradus.random.fork_rng(devices=[0]):
            pass


@pytest.mark.parametrize("input_needs_grad", [False, True])
def test_checkpoint_does_not_change_gradients(input_needs_grad):
    from gradus.utils.checkpoint import checkpoint, checkpoint_sequential

    gradus.manual_seed(0)
    model = gradus.nn.Sequential(gradus.nn.Linear(4, 4), gradus.nn.Dropout(0.5), gradus.nn.Tanh(), gradus.nn.Linear(4, 4))
    x = gradus.randn(3, 4, requires_grad=input_needs_grad)

    def gradients(run):
        gradus.manual_seed(1)
        model.zero_grad()
        x.grad = None
        y = run(x)
        after = gradus.rand(1)
        (y * y).sum().backward()
        return [t.tolist() for t in (y, after, *(p.grad for p in model.parameters()), *([x.grad] if input_needs_grad else []))]

    expected = gradients(model)
    assert gradients(lambda t: checkpoint(model, t, use_reentrant=False)) == expected
    assert gradients(lambda t: checkpoint_sequential(model, 2, t)) == expected


def test_checkpoint_with_autograd_grad_and_containers():
    from gradus.utils.checkpoint import checkpoint

    w, x = gradus.tensor([2.0], requires_grad=True), gradus.tensor([3.0], requires_grad=True)
    calls = []

    def function(t, factor, extra=0):
        calls.append(factor)
        return {"y": t * w * factor + extra, "n": gradus.tensor(3), "text": "a"}

    out = checkpoint(function, x, 5, extra=1)
    assert out["text"] == "a" and out["n"].item() == 3 and out["y"].item() == 31.0 and calls == [5]
    assert [g.item() for g in gradus.autograd.grad(out["y"], [w, x])] == [15.0, 10.0] and calls == [5, 5]
    with gradus.no_grad():
        assert not checkpoint(function, x, 5)["y"].requires_grad
