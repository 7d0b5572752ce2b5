"""Tests the functions and classes that take the place of parts of PyTorch that Gradus does not have: jit, compile, onnx, hub, futures, profiler,
settings of the process and of backends."""
import subprocess
import sys
import threading
import warnings

import gradus
import pytest
from both import submodule
from nn_programs import attempt, same

from oracle import torch


@same
def test_deterministic_algorithm_settings(t):
    try:
        for args, kwargs in (((True,), {}), ((True,), {"warn_only": True}), ((False,), {}), ((1,), {})):
            yield attempt(t.use_deterministic_algorithms, *args, **kwargs), t.are_deterministic_algorithms_enabled(), t.is_deterministic_algorithms_warn_only_enabled()
            yield t.get_deterministic_debug_mode()
        for mode in ("warn", "error", "default", 0, 1, 2, "x", 5, 1.0):
            yield attempt(t.set_deterministic_debug_mode, mode), t.get_deterministic_debug_mode(), t.are_deterministic_algorithms_enabled()
    finally:
        t.use_deterministic_algorithms(False)


@same
def test_matmul_precision_and_warn_always_settings(t):
    try:
        for precision in ("high", "medium", "highest", "wrong", 3):
            yield attempt(t.set_float32_matmul_precision, precision), t.get_float32_matmul_precision()
        for value in (True, False, 3):
            yield attempt(t.set_warn_always, value), t.is_warn_always_enabled()
    finally:
        t.set_float32_matmul_precision("highest")
        t.set_warn_always(False)
    yield attempt(t.set_flush_denormal, 3), [t.typename(x) for x in (t.ones(1), 3, int, "a", t.ones(1, dtype=t.int64))], t.compiled_with_cxx11_abi()
    yield t.get_device_module("cpu") is t.cpu


@same
def test_backend_settings(t):
    backends = t.backends
    for name in ("cudnn", "mkldnn", "opt_einsum"):
        yield submodule(t, f"backends.{name}").enabled in (True, False)
    for name in ("flash", "math", "mem_efficient", "cudnn"):
        setter, getter = getattr(backends.cuda, f"enable_{name}_sdp"), getattr(backends.cuda, f"{name}_sdp_enabled")
        setter(False)
        yield getter()
        setter(True)
        yield getter()
    with backends.mkldnn.flags(enabled=False):
        yield t.ones(2) @ t.ones(2)
    yield backends.mha.get_fastpath_enabled(), backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT"), backends.cudnn.is_available()


def in_a_process(program):
    result = subprocess.run([sys.executable, "-W", "always", "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


def test_compile_and_script_warn_once_that_nothing_is_compiled():
    out, err = in_a_process("""
import gradus as torch
def f(x): return x * 2
assert torch.compile(f) is f and torch.compile(f) is f and torch.compile(mode="max-autotune")(f) is f
assert torch.jit.script(f) is f and torch.jit.trace(f, (1,)) is f
print(torch.compile(torch.nn.Linear(2, 2))(torch.ones(1, 2)).shape)
""")
    assert out == "torch.Size([1, 2])\n" and err.count("there is no compiler") == 1 and err.count("there is no TorchScript") == 1


@pytest.mark.filterwarnings("ignore:jit|compile")
def test_jit_stand_ins():
    jit = gradus.jit

    class Net(jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.scale = jit.Attribute(2.0, float).value

        @jit.script_method
        def forward(self, x):
            return x * self.scale

        @jit.export
        def twice(self, x: jit.Final[int]):
            return x

    net = jit.script(Net())
    assert net(gradus.ones(1)).item() == 2 and jit.trace_module(net, {"forward": 1}) is net and jit.annotate(int, 3) == 3
    with pytest.raises(RuntimeError, match="Please call .eval"):
        jit.freeze(net)
    assert jit.freeze(net.eval()) is net and jit.optimize_for_inference(net) is net and jit.isinstance(3, int) and not jit.isinstance(3, (str, float))
    assert jit.wait(jit.fork(lambda x: x + 1, 2)) == 3
    with jit.optimized_execution(True), jit.strict_fusion():
        pass
    for call, text in ((lambda: jit.save(net, "a"), "jit.save"), (lambda: jit.load("a"), "jit.load"), (lambda: jit.CompilationUnit("def f(): pass"), "CompilationUnit")):
        with pytest.raises(NotImplementedError, match=text):
            call()


def test_onnx_export_is_refused():
    assert not gradus.onnx.is_in_onnx_export()
    with pytest.raises(NotImplementedError, match="onnx.export: models cannot be exported"):
        gradus.onnx.export(gradus.nn.Linear(2, 2), (gradus.ones(1, 2),), "net.onnx", input_names=["x"])


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "hubconf.py").write_text("""
dependencies = ["math"]
from helper import scale
def net(size=2, **kwargs):
    "A net of that size."
    return [size * scale, kwargs]
def _hidden():
    pass
""")
    (tmp_path / "helper.py").write_text("scale = 10\n")
    yield tmp_path
    sys.modules.pop("helper", None)


def test_hub_loads_from_local_folders(repository):
    for hub in (gradus.hub, submodule(torch, "hub")):
        load, kwargs = hub.load, {"source": "local"}
        assert load(str(repository), "net", 3, pretrained=True, **kwargs) == [30, {"pretrained": True}]
        for wrong in ({"model": "absent"}, {"model": 3}):
            with pytest.raises((RuntimeError, ValueError)):
                load(str(repository), **wrong, **kwargs)
        with pytest.raises(ValueError, match="Unknown source"):
            load(str(repository), "net", source="elsewhere")
    assert gradus.hub.list(str(repository)) == ["net"] and gradus.hub.help(str(repository), "net") == "A net of that size."


def test_hub_does_not_download(tmp_path):
    hub, before = gradus.hub, gradus.hub.get_dir()
    try:
        hub.set_dir(tmp_path / "cache")
        assert hub.get_dir() == str(tmp_path / "cache")
        with pytest.raises(NotImplementedError, match="nothing is downloaded, and 'pytorch/vision:main' is not in"):
            hub.load("pytorch/vision:main", "resnet18")
        with pytest.raises(NotImplementedError, match="get https://example.org/net.pth by other means"):
            hub.load_state_dict_from_url("https://example.org/net.pth")
        (tmp_path / "cache/checkpoints").mkdir(parents=True)
        gradus.save({"a": gradus.ones(2)}, tmp_path / "cache/checkpoints/net.pth")
        assert hub.load_state_dict_from_url("https://example.org/net.pth")["a"].tolist() == [1, 1]
    finally:
        hub.set_dir(before)


@same
def test_futures(t):
    futures = submodule(t, "futures")
    future = futures.Future()
    doubled, seen = future.then(lambda done: done.value() * 2), []
    future.add_done_callback(lambda done: seen.append(done.value()))
    yield future.done()
    timer = threading.Timer(0.01, future.set_result, [4])
    timer.start()
    yield future.wait(), doubled.wait(), timer.join(), seen, future.done(), attempt(future.set_result, 3)[0]
    failed = futures.Future()
    failed.set_exception(ValueError("no"))
    yield attempt(failed.wait), attempt(failed.set_exception, 3), futures.wait_all([future, doubled]), len(futures.collect_all([future]).wait())


@same
def test_profiler_schedule(t):
    profiler = submodule(t, "profiler")
    for kwargs in ({"wait": 1, "warmup": 1, "active": 2}, {"wait": 0, "warmup": 1, "active": 1, "repeat": 2}, {"wait": 2, "warmup": 1, "active": 1, "skip_first": 3, "repeat": 1}):
        plan = profiler.schedule(**kwargs)
        yield [plan(step).name for step in range(12)]
    yield attempt(profiler.schedule, wait=1, warmup=1, active=0)[0]


def test_profiler(tmp_path):
    profiler = gradus.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
        with profiler.record_function("forward"):
            gradus.nn.Linear(2, 3)(gradus.ones(4, 2)).sum().backward()
    table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=10)
    assert "forward" in table and "aten::linear" in table and "# of Calls" in table and "Self CPU time total" in table
    totals = {row.key: row.cpu_time_total for row in prof.key_averages()}
    assert totals["forward"] >= totals["aten::linear"] > 0
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert "aten::linear" in (tmp_path / "trace.json").read_text()
    saved = []
    with profiler.profile(schedule=profiler.schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=lambda p: saved.append(len(p.events()))) as prof:
        for _ in range(10):
            gradus.ones(2) + 1
            prof.step()
    assert saved == [6, 6]
    called = {}
    for steps in range(6):
        called[steps] = []
        with profiler.profile(schedule=profiler.schedule(wait=1, warmup=0, active=2), on_trace_ready=lambda p, at=called[steps]: at.append(p.step_num)) as prof:
            for _ in range(steps):
                prof.step()
    # As in PyTorch, on_trace_ready is called after each cycle of 3 steps. It is also called at the end of the block if a step is still recorded.
    assert called == {0: [], 1: [1], 2: [2], 3: [3], 4: [3, 4], 5: [3, 5]}
    with profiler.profile(on_trace_ready=profiler.tensorboard_trace_handler(str(tmp_path / "log"), "me")):
        gradus.ones(2)
    assert len(list((tmp_path / "log").glob("me.*.pt.trace.json"))) == 1
    from gradus.autograd import profiler as older

    with older.profile(use_cuda=False) as prof, older.record_function("block"), older.emit_nvtx():
        gradus.ones(2)
    assert "block" in prof.table() and "block" in str(prof.key_averages())
    with older.profile(enabled=False) as prof:
        gradus.ones(2)
    assert not prof.function_events


def test_importing_an_absent_module_explains_why_it_is_absent():
    for name in ("distributed.fsdp", "distributed.rpc", "package", "export", "quantization"):
        with pytest.raises(ModuleNotFoundError, match=f"No module named 'gradus.{name}'.*: "):
            submodule(gradus, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        submodule(gradus, "distributed.distributed_c10d")


@same
def test_functions_that_model_libraries_call_on_import(t):
    yield t._C._log_api_usage_once("library.models"), t.hub._get_torch_home()
    yield t._assert(t.ones(1) > 0, "no"), attempt(t._assert, t.zeros(1), "is zero")


def test_fx_wrap_returns_its_argument_and_tracing_is_refused():
    assert gradus.fx.wrap(len) is len and gradus.fx.wrap("len") == "len"
    with pytest.raises(RuntimeError, match="Unsupported type for global function!"):
        gradus.fx.wrap(1)
    with pytest.raises(NotImplementedError, match="fx.symbolic_trace: programs cannot be traced"):
        gradus.fx.symbolic_trace(gradus.nn.Linear(1, 1))
