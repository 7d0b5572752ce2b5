"""Lists all functions of the extension. Also makes random arguments for calls of these functions. Most of the arguments are wrong."""
import random
from contextlib import contextmanager

import gradus as torch
from gradus import _C

# Names of functions that are not called, e.g. because they change the state of the process.
OUTSIDE = {"_set_function_class", "set_num_threads", "_memory_set_limit", "_memory_set_cache_limit", "set_num_interop_threads", "set_default_dtype", "load_library", "set_printoptions", "_push_on_torch_function_stack", "_pop_torch_function_stack",
           "set_grad_enabled", "_set_grad_enabled", "set_autocast_enabled", "set_autocast_dtype", "set_autocast_cache_enabled", "set_autocast_cpu_enabled", "set_autocast_cpu_dtype", "set_autocast_gpu_dtype",
           "autocast_increment_nesting", "autocast_decrement_nesting", "set_anomaly_enabled", "data_ptr", "_from_storage", "_batch_begin", "_batch_end", "_enter_dual_level", "_exit_dual_level", "set_default_device", "set_default_tensor_type"}


def functions():
    """Returns [(name, callable)] of the functions of the extension module, its submodule nn, and the methods and properties of Tensor."""
    found = [(name, value) for name, value in vars(_C).items() if callable(value) and not isinstance(value, type)]
    found += [(f"nn.{name}", value) for name, value in vars(_C.nn).items() if callable(value)]
    for name, value in vars(torch.Tensor).items():
        if callable(value):
            found.append((f"Tensor.{name}", value))
        elif hasattr(value, "__get__"):
            found.append((f"Tensor.{name} (property)", value.__get__))
    return [(name, value) for name, value in found if name.split(".")[-1] not in OUTSIDE]


BATCH = 3  # size of the dimension that vmap hides


@contextmanager
def levels():
    """Context manager that enters a level of forward-mode AD and a level of vmap. Within this context the class Arguments also makes dual tensors
    and tensors with a hidden vmap dimension."""
    _C._enter_dual_level()
    _C._batch_begin(BATCH, "different")
    try:
        yield
    finally:
        _C._batch_end()
        _C._exit_dual_level()


class Strange:
    """An object that claims to be an integer, a sequence and a number, and raises an exception whenever it is used as one."""

    def _refuse(self, *_):
        raise ZeroDivisionError("strange")

    __index__ = __int__ = __float__ = __complex__ = __len__ = __getitem__ = __iter__ = __bool__ = _refuse


class Arguments:
    """Makes random arguments, which depend only on a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        torch.manual_seed(seed)

    def size(self):
        return self.random.choice([0, 1, 2, 3, 4, 5])

    def tensor(self):
        sizes = [self.size() for _ in range(self.random.choice([0, 1, 1, 2, 2, 3, 4]))]
        dtype = self.random.choice([torch.float32, torch.float32, torch.float64, torch.int64, torch.int64, torch.bool, torch.uint8, torch.complex64,
                                    torch.complex32, torch.float16, torch.bfloat16, torch.int32])
        t = torch.randint(0, 4, sizes).to(dtype)
        if dtype.is_floating_point and self.random.random() < 0.3:
            t.requires_grad_()
        if t.dim() > 1 and self.random.random() < 0.3:
            t = t.transpose(0, 1)
        return self.transformed(t) if _C._batch_size() == BATCH else t

    def transformed(self, t):
        """Returns `t` with random transformations. Half of the floating-point and complex tensors become dual tensors. A first dimension
        of the size BATCH is hidden, as vmap does, if `t` has no hidden dimension yet."""
        if (t.dtype.is_floating_point or t.dtype.is_complex) and self.random.random() < 0.5:
            t = _C._make_dual(t, torch.ones_like(t))
        return _C._batch(t) if not _C._is_batched(t) and t.dim() > 0 and t.size(0) == BATCH else t

    def integer(self):
        return self.random.choice([0, 1, 2, 3, -1, -2, 5, 64, 2**31, 2**62, -2**62, -2**63, 2**63 - 1, 2**63, 10**30])

    def value(self):
        pick = self.random.random
        choices = [self.tensor, self.tensor, self.tensor, self.tensor, self.integer, self.integer, lambda: self.size(), lambda: self.size(),
                   lambda: self.random.choice([0.5, -1.5, float("nan"), float("inf"), 1e300]), lambda: pick() < 0.5, lambda: None, lambda: "mean",
                   lambda: self.random.choice(["", "none", "cpu", "cuda", "float32", "\udcff", "x" * 300]),
                   lambda: 1j, lambda: [self.size() for _ in range(3)], lambda: (), lambda: [self.tensor(), self.tensor()], lambda: [],
                   lambda: [self.integer(), None], lambda: torch.float32, lambda: torch.device("cpu"), lambda: torch.Generator(), lambda: slice(None, 2),
                   lambda: ..., Strange, lambda: object, lambda: {}, lambda: b"bytes", lambda: lambda *a: None]
        return self.random.choice(choices)()

    def call(self):
        """Returns random (positional, keyword) arguments."""
        positional = [self.value() for _ in range(self.random.choice([0, 1, 1, 2, 2, 3, 3, 4, 6]))]
        names = ["dim", "out", "dtype", "keepdim", "other", "input", "size", "alpha", "device", "requires_grad", "generator", "reduction", "nonsense"]
        keywords = {name: self.value() for name in self.random.sample(names, self.random.choice([0, 0, 0, 1, 2]))}
        if positional and self.random.random() < 0.7:
            positional[0] = self.tensor()
        return positional, keywords
