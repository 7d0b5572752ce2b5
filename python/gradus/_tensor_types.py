"""FloatTensor, LongTensor and their like: a class for each dtype, which makes tensors of it and has them as instances."""
import importlib

import gradus
from gradus._C import Tensor, _legacy_tensor

_DTYPES = {"BoolTensor": "bool", "ByteTensor": "uint8", "CharTensor": "int8", "ShortTensor": "int16", "IntTensor": "int32", "LongTensor": "int64",
           "HalfTensor": "float16", "BFloat16Tensor": "bfloat16", "FloatTensor": "float32", "DoubleTensor": "float64"}

__all__ = [*_DTYPES, "set_default_tensor_type"]


class _TensorType(type):
    """The metaclass of classes that are called as Tensor is and have no instances of their own."""

    def __call__(cls, *args, **kwargs):
        return _legacy_tensor(cls.dtype, args, kwargs)

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.device.type == "cpu"


for _name, _dtype in _DTYPES.items():
    globals()[_name] = _TensorType(_name, (), {"__module__": "torch", "dtype": getattr(gradus, _dtype)})


def set_default_tensor_type(t, /):
    """Sets the dtype of new tensors of floating-point numbers by a class, such as torch.DoubleTensor, or by its name.

    Raises TypeError for types of integers, of absent devices, and what is no type.
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
