"""Writes docs/torch_names.txt, which lists PyTorch's public names, one line for each module. Needs PyTorch. Run this tool when Gradus begins to
follow a newer version of PyTorch.

The page "What is missing, by name" is made from that file, so that the documents can be built without PyTorch.
"""
import importlib
import inspect
import sys
import types
from pathlib import Path

MODULES = """torch torch.Tensor torch.amp torch.autograd torch.autograd.forward_ad torch.autograd.functional torch.autograd.graph torch.autograd.profiler
torch.backends torch.compiler torch.cpu torch.distributed torch.distributions torch.fft torch.func torch.hub torch.jit torch.library torch.linalg torch.masked
torch.multiprocessing torch.nested torch.nn torch.nn.attention torch.nn.functional torch.nn.init torch.nn.parallel torch.nn.utils
torch.nn.utils.parametrizations torch.nn.utils.parametrize torch.nn.utils.prune torch.nn.utils.rnn torch.nn.utils.stateless torch.onnx torch.optim
torch.optim.lr_scheduler torch.optim.swa_utils torch.overrides torch.package torch.profiler torch.quantization torch.quasirandom torch.random
torch.serialization torch.signal.windows torch.sparse torch.special torch.testing torch.utils.checkpoint torch.utils.data torch.utils.dlpack
torch.utils.tensorboard""".split()
FILE = Path(__file__).resolve().parent.parent / "docs" / "torch_names.txt"


def resolve(path):
    """Returns the module or class with the dotted name `path`, or None if the installed PyTorch cannot import it."""
    if path == "torch.Tensor":
        return importlib.import_module("torch").Tensor
    try:
        return importlib.import_module(path)
    except ImportError:
        return None


def is_public(owner, name):
    value = inspect.getattr_static(owner, name)
    return not name.startswith("_") and not isinstance(value, types.ModuleType)


# `torch` exports names of PyTorch's compiler and of other libraries, which PyTorch's documentation does not mention. Such a name begins with a prefix
# in INTERNAL or belongs to a type of torch._C that is not in PUBLIC_TYPES.
INTERNAL = ("cudnn_", "miopen_", "mkldnn_", "fbgemm_", "quantized_", "parse_", "unify_", "import_ir")
PUBLIC_TYPES = {"Generator", "Size", "Stream", "Event", "Tensor", "device", "dtype", "layout", "memory_format", "finfo", "iinfo", "qscheme"}


def is_internal(owner, name):
    import torch

    value = getattr(owner, name, None)
    compiled = owner is torch and getattr(torch._C, name, None) is value
    return name.startswith(INTERNAL) or compiled and isinstance(value, type) and name not in PUBLIC_TYPES or name in ("AVG", "SUM")


def public_names(owner):
    names = getattr(owner, "__all__", None)
    if names is None or isinstance(owner, type):
        names = [name for name in dir(owner) if is_public(owner, name)]
        if isinstance(owner, types.ModuleType):  # without __all__, only names that are defined inside PyTorch count
            names = [name for name in names if str(getattr(getattr(owner, name), "__module__", "torch")).startswith("torch")]
    return sorted({name for name in names if not is_internal(owner, name)})


def recorded_text():
    import torch

    lines = [f"# PyTorch {torch.__version__.split('+')[0]}: public names by module, from tools/record_torch_names.py"]
    for path in MODULES:
        owner = resolve(path)
        if owner is not None:
            lines.append(f"{path}: {' '.join(public_names(owner))}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = recorded_text()
    FILE.write_text(text)
    sys.stdout.write(f"{FILE}: {sum(len(line.split()) - 1 for line in text.splitlines()[1:])} names\n")
