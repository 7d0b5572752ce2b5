"""Lists the modules of PyTorch that Gradus does not have. Importing one of them raises ModuleNotFoundError with a text that says what is absent and
what to use instead.

importlib.util.find_spec returns None for such a module.
"""
import sys

_EXTENSIONS = "extensions in C++ need PyTorch's own headers; write a plug-in against gradus/gradus.h, and load it with gradus.ops.load_library"
_DEVICE = "there is no such device or library here"
_LAUNCH = "there is one process, which is started as any program"
# Maps the names of absent modules, without "torch.", to the reason why they are absent. The reason for a package also applies to all modules in it
# that have no entry of their own.
_REASONS = {
    "_dynamo": "nothing is compiled, and gradus.compile returns what it is given",
    "_export": "programs cannot be exported; save a state_dict with gradus.save",
    "_functorch": "the inside of PyTorch's function transforms; use gradus.func",
    "_inductor": "nothing is compiled, and gradus.compile returns what it is given",
    "_prims": "operators are not decomposed into primitives; schema/ has their formulas",
    "_refs": "operators have no references in Python; schema/ has their formulas",
    "_subclasses": "there are no fake tensors; use tensors of the meta device",
    "ao": "models are not quantized or pruned",
    "contrib": "PyTorch's contributed modules are not part of Gradus",
    "cpp_extension": _EXTENSIONS,
    "backends.kleidiai": _DEVICE,
    "backends.miopen": _DEVICE,
    "backends.xnnpack": _DEVICE,
    "cuda.comm": _DEVICE,
    "cuda.graphs": _DEVICE,
    "cuda.nccl": _DEVICE,
    "cuda.nvtx": _DEVICE,
    "cuda.profiler": _DEVICE,
    "cuda.sparse": _DEVICE,
    "cuda.streams": _DEVICE,
    "distributed.algorithms": "there is one process, and nothing to join or to compress",
    "distributed.checkpoint": "there is one process; save a state_dict with gradus.save",
    "distributed.device_mesh": "there is one process with one device",
    "distributed.elastic": _LAUNCH,
    "distributed.fsdp": "models are not sharded; there is one process",
    "distributed.launch": _LAUNCH,
    "distributed.launcher": _LAUNCH,
    "distributed.optim": "there is one process; use gradus.optim",
    "distributed.pipelining": "models are not split; there is one process",
    "distributed.rpc": "there is one process, which nothing can call",
    "distributed.run": _LAUNCH,
    "distributed.tensor": "tensors are not sharded; there is one process",
    "export": "programs cannot be exported; save a state_dict with gradus.save",
    "fx": "programs cannot be traced",
    "nn.attention.experimental": "there is no paged attention; use gradus.nn.attention.flex_attention",
    "nn.attention.varlen": "sequences of different lengths are not packed there; use a mask, or block masks of gradus.nn.attention.flex_attention",
    "nn.intrinsic": "models are not quantized",
    "nn.parallel.comm": "there is one device; gradus.nn.parallel has DataParallel",
    "nn.qat": "models are not quantized",
    "nn.quantizable": "models are not quantized",
    "nn.quantized": "models are not quantized",
    "package": "modules cannot be packaged; save a state_dict with gradus.save",
    "quantization": "models are not quantized",
    "testing._internal": "PyTorch's own test suite and its helpers are not part of Gradus; use gradus.testing",
    "utils.bottleneck": "there is no profiler; use perf or cProfile",
    "utils.cpp_extension": _EXTENSIONS,
    "utils.data.datapipes": "data pipes are not part of Gradus; use an IterableDataset or a Dataset",
    "utils.data.graph": "data pipes are not part of Gradus; use an IterableDataset or a Dataset",
    "utils.data.graph_settings": "data pipes are not part of Gradus; use an IterableDataset or a Dataset",
    "utils.flop_counter": "operations are not counted; use gradus.profiler",
    "utils.mkldnn": "there are no tensors of oneDNN",
    "utils.mobile_optimizer": "nothing is compiled for mobile devices",
}


def _reason(name):
    while name and name not in _REASONS:
        name = name.rpartition(".")[0]
    return _REASONS.get(name)


def refuse(name):
    """Raises ModuleNotFoundError if an import statement is importing the module `name` of torch or gradus; otherwise returns None."""
    if not _is_import():
        return None
    top, _, below = name.partition(".")
    text = f"No module named '{name}'"
    if top != "gradus":
        text += f": Gradus has no 'gradus.{below}'"
    reason = _reason(below)
    raise ModuleNotFoundError(f"{text}: {reason}" if reason else text, name=name)


def _is_import():
    """True if an import statement is searching for the module. False if a program only checks that the module exists, e.g. with
    importlib.util.find_spec."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_name in ("find_spec", "_find_spec"):
        if frame.f_globals.get("__name__") == "importlib.util":
            return False
        frame = frame.f_back
    return True


class Finder:
    """A finder for the end of sys.meta_path. Python asks this finder for modules that no other finder has found."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return refuse(name) if name.startswith("gradus.") and _reason(name[len("gradus."):]) else None
