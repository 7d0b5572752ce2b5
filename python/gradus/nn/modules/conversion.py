"""The methods of Module that convert parameters and buffers to another dtype or device, such as to(), float() and cpu()."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import gradus
from gradus._C import Tensor

from ..parameter import Parameter

if TYPE_CHECKING:
    from typing_extensions import Self


def _requested(device=None, dtype=None, non_blocking=False, copy=False, *, memory_format=None):
    """Binds positional and keyword arguments of to() by the rules of a Python call. Returns device, dtype, non_blocking and memory_format."""
    return device, dtype, non_blocking, memory_format


def _parse_to(*args, **kwargs):
    """Returns the device, dtype, non_blocking and memory_format from the arguments of to(). Raises TypeError if the arguments match no form of
    to()."""
    if args and isinstance(args[0], Tensor) or "tensor" in kwargs:
        other = kwargs.pop("tensor") if "tensor" in kwargs else args[0]
        args = (other.device, other.dtype, *args[1:])
    elif args and isinstance(args[0], gradus.dtype):
        args = (None, *args)
    try:
        device, dtype, non_blocking, memory_format = _requested(*args, **kwargs)
    except TypeError:
        device = dtype = non_blocking = memory_format = "invalid"
    if not ((dtype is None or isinstance(dtype, gradus.dtype)) and isinstance(non_blocking, bool)
            and (device is None or isinstance(device, (str, int, gradus.device)))):
        got = ", ".join([type(arg).__name__ for arg in args] + [f"{name}={type(arg).__name__}" for name, arg in kwargs.items()])
        raise TypeError(f"to() received an invalid combination of arguments - got ({got}), but expected one of:\n"
                        " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
                        "torch.memory_format memory_format = None)\n"
                        " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
                        " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n")
    return None if device is None else gradus.device(device), dtype, non_blocking, memory_format


class Conversion:
    """A base class of Module with the methods that convert a module to another dtype or device.

    A conversion that does not change the device type keeps the parameter objects, so an optimizer that refers to them keeps working.
    """

    def _apply(self, fn, recurse=True) -> Self:
        """Replaces every parameter, gradient and buffer of the module, and with `recurse` also of its submodules, by fn(tensor). Returns self."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            grad = parameter.grad
            with gradus.no_grad():
                converted = fn(parameter)
                converted_grad = None if grad is None else fn(grad)
            if converted.device.type == parameter.device.type:
                parameter.data = converted
                if grad is not None:
                    grad.data = converted_grad
            else:
                self._parameters[name] = Parameter(converted, parameter.requires_grad)
                if grad is not None:
                    self._parameters[name].grad = converted_grad.requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs) -> Self:
        """Converts parameters and buffers: to(device, dtype, non_blocking), to(dtype), or to(tensor) for the device and dtype of a tensor.

        Only floating-point and complex tensors are converted to the dtype. Returns self. Raises TypeError for an integer or bool dtype.

        >>> nn.Linear(2, 2).to(gradus.float64).weight.dtype == gradus.float64
        True
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
        if dtype is not None and dtype.is_complex:
            warnings.warn("Complex modules are a new feature under active development whose design may change, and some modules might not work "
                          "as expected when using complex tensors as parameters or buffers.", stacklevel=2)

        def convert(tensor):
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            try:
                if memory_format is not None and tensor.dim() in (4, 5):
                    return tensor.to(device, wanted, non_blocking, memory_format=memory_format)
                return tensor.to(device, wanted, non_blocking)
            except NotImplementedError as error:
                if "Cannot copy out of meta tensor; no data!" not in str(error):
                    raise
                raise NotImplementedError(f"{error} Please use {gradus.__name__}.nn.Module.to_empty() instead of "
                                          f"{gradus.__name__}.nn.Module.to() when moving module from meta to a different device.") from None

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True) -> Self:
        """Moves parameters and buffers to `device` without copying their values, which are then uninitialized. Returns self."""
        return self._apply(lambda tensor: gradus.empty_like(tensor, device=device), recurse=recurse)

    def type(self, dst_type) -> Self:
        """Converts all parameters and buffers, including integer ones, to a dtype. Returns self."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def _to_floating(self, dtype):
        """Converts floating-point parameters and buffers to `dtype`. Returns self."""
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)

    def float(self) -> Self:
        """Converts floating-point parameters and buffers to float32. Returns self."""
        return self._to_floating(gradus.float32)

    def double(self) -> Self:
        """Converts floating-point parameters and buffers to float64. Returns self."""
        return self._to_floating(gradus.float64)

    def half(self) -> Self:
        """Converts floating-point parameters and buffers to float16. Returns self."""
        return self._to_floating(gradus.float16)

    def bfloat16(self) -> Self:
        """Converts floating-point parameters and buffers to bfloat16. Returns self."""
        return self._to_floating(gradus.bfloat16)

    def cpu(self) -> Self:
        """Moves parameters and buffers to the cpu. Returns self."""
        return self._apply(lambda tensor: tensor.cpu())

    def xpu(self, device=None) -> Self:
        """Moves parameters and buffers to an xpu device. Raises RuntimeError if there is no such device. Returns self."""
        return self.to("xpu" if device is None else device)

    def ipu(self, device=None) -> Self:
        """Moves parameters and buffers to an ipu device. Raises RuntimeError if there is no such device. Returns self."""
        return self.to("ipu" if device is None else device)

    def mtia(self, device=None) -> Self:
        """Moves parameters and buffers to an mtia device. Raises RuntimeError if there is no such device. Returns self."""
        return self.to("mtia" if device is None else device)

    def cuda(self, device=None) -> Self:
        """Moves parameters and buffers to a CUDA device. Raises RuntimeError if there is no such device. Returns self."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def share_memory(self) -> Self:
        """Moves parameters and buffers to memory that processes can share. Returns self."""
        return self._apply(lambda tensor: tensor.share_memory_())
