"""Defines the classes FloatTensor, LongTensor and so on, one for each dtype. Calling such a class creates a tensor of the dtype, and isinstance is
true for tensors of the dtype."""
import importlib

import gradus
from gradus._C import Tensor, _legacy_tensor

_DTYPES = {"BoolTensor": "bool", "ByteTensor": "uint8", "CharTensor": "int8", "ShortTensor": "int16", "IntTensor": "int32", "LongTensor": "int64",
           "HalfTensor": "float16", "BFloat16Tensor": "bfloat16", "FloatTensor": "float32", "DoubleTensor": "float64"}

__all__ = [*_DTYPES, "set_default_tensor_type"]


class _TensorType(type):
    """The metaclass of FloatTensor, LongTensor and so on. Calling such a class returns a Tensor of its dtype. isinstance is true for a CPU tensor of
    that dtype."""

    def __call__(cls, *args, **kwargs):
        return _legacy_tensor(cls.dtype, args, kwargs)

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.device.type == "cpu"


for _name, _dtype in _DTYPES.items():
    globals()[_name] = _TensorType(_name, (), {"__module__": "torch", "dtype": getattr(gradus, _dtype)})


def set_default_tensor_type(t, /):
    """Sets the default floating-point dtype to the dtype of the class `t`, such as torch.DoubleTensor. `t` may also be the name of such a class.

    TypeError: `t` is an unknown name, or the class of an integer dtype, or a class of CUDA tensors.
    """
    if isinstance(t, str):
        module, _, name = t.rpartition(".")
        module = "gradus" + module[len("torch"):] if module.split(".")[0] == "torch" else module
        try:
            t = getattr(importlib.import_module(module or name), name)
        except AttributeError:
            raise TypeError(f"invalid type object: only floating-point types are supported as the default type: {t}") from None
    if getattr(t, "__module__", None) == "torch.cuda":
        raise TypeError(f"type torch.cuda.{t.__name__} not available. Torch not compiled with CUDA enabled.")
    if not isinstance(t, _TensorType):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    if not t.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    gradus.set_default_dtype(t.dtype)
