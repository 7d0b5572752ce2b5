"""FloatTensor, LongTensor and their like: a class for each dtype, which makes tensors of it and has them as instances."""
import gradus
from gradus._C import Tensor, _legacy_tensor

_DTYPES = {"BoolTensor": "bool", "ByteTensor": "uint8", "CharTensor": "int8", "ShortTensor": "int16", "IntTensor": "int32", "LongTensor": "int64",
           "HalfTensor": "float16", "BFloat16Tensor": "bfloat16", "FloatTensor": "float32", "DoubleTensor": "float64"}

__all__ = list(_DTYPES)


class _TensorType(type):
    """Of a class that is called as Tensor is, and that has no objects of its own."""

    def __call__(cls, *args, **kwargs):
        return _legacy_tensor(cls.dtype, args, kwargs)

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.device.type == "cpu"


for _name, _dtype in _DTYPES.items():
    globals()[_name] = _TensorType(_name, (), {"__module__": "torch", "dtype": getattr(gradus, _dtype)})
