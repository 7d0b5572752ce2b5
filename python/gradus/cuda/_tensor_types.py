"""Defines the classes torch.cuda.FloatTensor and so on, for programs that refer to them. No tensor is an instance of these classes, and calling them
raises TypeError."""
from gradus import _tensor_types

__all__ = [name for name in _tensor_types.__all__ if name.endswith("Tensor")]


class _AbsentType(type):
    def __call__(cls, *args, **kwargs):
        raise TypeError(f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled.")

    def __instancecheck__(cls, instance):
        return False


for _name in __all__:
    globals()[_name] = _AbsentType(_name, (), {"__module__": "torch.cuda", "dtype": getattr(_tensor_types, _name).dtype})
