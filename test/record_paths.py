"""Records the classes and functions of PyTorch that can be reached by several paths: test/data/torch_paths.txt has a line of paths for each.

    build/venv/bin/python test/record_paths.py

Modules whose names begin with an underscore are left out. So are the parts of PyTorch that compile, distribute, quantize or profile, and those for
devices that Gradus does not know.
"""
import collections
import importlib
import pkgutil
import types
import warnings
from pathlib import Path

FILE = Path(__file__).parent / "data" / "torch_paths.txt"
LEFT_OUT = ("ao", "backends", "contrib", "csrc", "distributed", "export", "fft", "func", "fx", "jit", "masked", "mtia", "nested", "onnx", "package", "profiler",
            "quantization", "testing", "nn.intrinsic", "nn.qat", "nn.quantizable", "nn.quantized", "utils.benchmark", "utils.bottleneck",
            "utils.cpp_extension", "utils.data.datapipes", "utils.hipify", "utils.model_dump", "utils.serialization", "utils.tensorboard", "utils.viz", "xpu")


def is_recorded(name):
    below = name.partition(".")[2]
    return not any(part.startswith("_") for part in name.split(".")) and not any(below == out or below.startswith(out + ".") for out in LEFT_OUT)


def modules():
    torch = importlib.import_module("torch")
    yield torch
    for info in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None):
        if is_recorded(info.name):
            try:
                yield importlib.import_module(info.name)
            except Exception:  # a module that cannot be imported on this machine
                continue


def is_offered(module, name, value):
    """True if `value` is a public class or function of `module`: its __module__ is `module`, or __all__ of `module` contains `name`. Other names that
    `module` imports do not count, except in a package without __all__."""
    home = str(getattr(value, "__module__", ""))
    if isinstance(value, types.ModuleType) or not callable(value) or name.startswith("_") or not home.startswith("torch"):
        return False
    return home == module.__name__ or name in getattr(module, "__all__", vars(module) if hasattr(module, "__path__") else ())


def main():
    warnings.simplefilter("ignore")
    paths, kept = collections.defaultdict(set), []
    for module in modules():
        for name, value in list(vars(module).items()):
            if is_offered(module, name, value):
                kept.append(value)  # keeps the object alive, so that its id is not reused
                paths[id(value)].add(f"{module.__name__}.{name}".partition(".")[2])
    lines = sorted(" ".join(sorted(group)) for group in paths.values() if len(group) > 1)
    FILE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
