"""Implements MaskedTensor, a tensor in which some elements are masked, i.e. ignored.

The class is a subclass of Tensor and not a layout of the C library. Its elements are the data, including the masked ones, so that kernels and
autograd see an ordinary tensor. The bool tensor `_mask` is True for unmasked elements. __torch_function__ passes every call with a masked tensor to
gradus.masked._functions, where the masked tensor is treated as the tensor of its data. gradus.masked._gradient determines the masks of gradients.
"""
import warnings

import gradus
from gradus._C import DisableTorchFunctionSubclass, Tensor

from ._text import text_of

__all__ = ["MaskedTensor", "as_masked_tensor", "check_dtype", "is_masked_tensor", "masked", "masked_tensor"]

_DTYPES = frozenset({gradus.float16, gradus.float32, gradus.float64, gradus.bool, gradus.int8, gradus.int16, gradus.int32, gradus.int64})


class MaskedTensor(Tensor):
    """A copy of `data` in which elements are masked where `mask` is False. `mask` is a bool tensor with the sizes of `data`. If `requires_grad` is
    true, the copy records gradients. TypeError: a wrong class or dtype. ValueError: the sizes differ.

    >>> mt = gradus.masked.MaskedTensor(gradus.tensor([3, 4]), gradus.tensor([True, False]))
    >>> mt.get_data(), mt.get_mask(), mt.to_tensor(0)
    (tensor([3, 4]), tensor([ True, False]), tensor([3, 0]))
    """

    def __new__(cls, data, mask, requires_grad=False):
        _check(data, mask)
        if requires_grad and not data.is_floating_point():
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        return masked(data.detach().clone(), mask.detach().clone()).requires_grad_(requires_grad)

    def __init__(self, data, mask, requires_grad=False):
        """Does nothing, because __new__ has created the tensor."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with DisableTorchFunctionSubclass():
            return _functions.call(func, args, kwargs or {})

    # ---- Data and mask -----------------------------------------------------------------------------------------------------------

    def get_data(self):
        """Returns a view of all elements, including the masked ones. The gradient of the view is ignored at masked elements."""
        with DisableTorchFunctionSubclass():
            return _gradient.data_of(self)

    def get_mask(self):
        """Returns the mask, a bool tensor that is True for unmasked elements."""
        return self._mask

    def to_tensor(self, value):
        """Returns a tensor with the data, in which masked elements are replaced by `value`."""
        return self.get_data().masked_fill(~self._mask, value)

    def is_sparse_coo(self):
        """Returns False, because sparse masked tensors are not supported."""
        return False

    def is_sparse_csr(self):
        """Returns False, because sparse masked tensors are not supported."""
        return False

    def to_dense(self, dtype=None):
        """Returns this tensor, converted to `dtype` if that is given. Masked tensors are never sparse."""
        return self if dtype is None else self.to(dtype)

    def to_sparse(self, *args, **kwargs):
        """Raises NotImplementedError, because sparse masked tensors are not supported."""
        raise NotImplementedError("to_sparse(): masked tensors of sparse layouts are not supported")

    to_sparse_coo = to_sparse_csr = to_sparse

    @classmethod
    def unary(cls, fn, data, mask):
        """Returns a masked tensor of fn(data) with the mask `mask`."""
        return MaskedTensor(fn(data), mask)

    # ---- Methods that do not call __torch_function__ ------------------------------------------------------------------------------

    def item(self):
        """Returns the only element as a number. ValueError: the element is masked."""
        if self.numel() == 1 and not self._mask.item():
            raise ValueError("item(): the element is masked")
        return Tensor.item(self)

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __bool__(self):
        return bool(self.item()) if self.numel() == 1 else Tensor.__bool__(self)

    def __pos__(self):
        return self.positive()

    def __reversed__(self):
        return self.flip(0)

    def type(self, dtype=None, non_blocking=False):
        """Returns the name of this tensor's type or, if `dtype` is given, this tensor converted to `dtype`."""
        return Tensor.type(self) if dtype is None else self.to(dtype, non_blocking=non_blocking)

    def tolist(self):
        """Raises RuntimeError, because masked elements have no value. Use to_tensor(value).tolist()."""
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got MaskedTensor")

    def numpy(self, *, force=False):
        """Raises RuntimeError, because masked elements have no value. Use to_tensor(value).numpy()."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def register_hook(self, hook):
        """Registers a hook that receives the gradient as a masked tensor. Returns the hook's handle."""
        mask = self._mask
        return Tensor.register_hook(self, lambda grad: hook(_gradient.as_masked(grad, mask)))

    def __repr__(self, *, tensor_contents=None):
        return text_of(self.detach().get_data(), self._mask)

    def __format__(self, spec):
        return format(repr(self), spec) if not spec else object.__format__(self, spec)

    # ---- Copies -------------------------------------------------------------------------------------------------------------------

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.")
        result = memo[id(self)] = MaskedTensor(self.detach().get_data(), self._mask, self.requires_grad)
        if self.grad is not None:
            result.grad = self.grad.__deepcopy__(memo)
        return result

    def __reduce_ex__(self, protocol):
        return MaskedTensor, (self.detach().get_data(), self._mask, self.requires_grad)


def masked(data, mask):
    """Changes the class of the tensor `data` to MaskedTensor, in place, and returns `data`. The caller must hold the only reference to `data`."""
    data.__class__ = MaskedTensor
    data._mask, data._grad_mask = mask, _gradient.GradMask()
    return data


def check_dtype(dtype):
    """Raises TypeError if a masked tensor cannot have this dtype."""
    if dtype not in _DTYPES:
        raise TypeError(f"{dtype} is not supported in MaskedTensor.")


def _check(data, mask):
    for name, value in (("data", data), ("mask", mask)):
        if not isinstance(value, Tensor) or isinstance(value, MaskedTensor):
            raise TypeError(f"{name} must be a Tensor")
    if data.layout is not gradus.strided:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype is not gradus.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    check_dtype(data.dtype)


def masked_tensor(data, mask, requires_grad=False):
    """Returns a new masked tensor, a leaf, with copies of `data` and `mask`. The mask is a bool tensor with the sizes of the data and is True for
    unmasked elements.

    TypeError: `data` or `mask` is not a Tensor, is of a subclass, or has a dtype that is not supported (bfloat16, complex, unsigned). ValueError: the
    sizes differ.

    >>> gradus.masked.masked_tensor(gradus.tensor([[1.0, 2.0], [3.0, 4.0]]), gradus.tensor([[True, False], [True, True]])).mean(1)
    MaskedTensor(
      [  1.0000,   3.5000]
    )
    """
    if isinstance(data, Tensor) and data.requires_grad:
        warnings.warn("It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can use data.detach().clone()", UserWarning,
                      stacklevel=2)
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask):
    """Returns a masked tensor with a copy of `data` and the bool tensor `mask`, which is True for unmasked elements. It has the autograd history of
    `data`, so the gradient of `data` becomes a masked tensor.

    >>> x = gradus.tensor([1.0, 2.0], requires_grad=True)
    >>> (gradus.masked.as_masked_tensor(x, gradus.tensor([True, False])) * 3).sum().backward()
    >>> x.grad
    MaskedTensor(
      [  3.0000,       --]
    )
    """
    _check(data, mask)
    with DisableTorchFunctionSubclass():
        return _gradient.construct(data, mask.clone())


def is_masked_tensor(obj, /):
    """True if obj is a MaskedTensor.

    >>> gradus.masked.is_masked_tensor(gradus.ones(2))
    False
    """
    return isinstance(obj, MaskedTensor)


from . import _functions, _gradient  # noqa: E402  (they need the class)
