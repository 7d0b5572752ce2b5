"""The tensor functions and methods that support masked tensors.

While a function of this file runs, __torch_function__ is disabled for masked tensors. Operators therefore compute with the data of a masked tensor
and ignore its mask. The parameter `func` is the library function that the user called.
"""
import gradus
from gradus import _C
from gradus._C import Tensor
from gradus._overridable import HAND_WRITTEN, by_name

from . import _gradient, _reductions
from ._gradient import Call
from ._names import ADDING, BINARY, CONVERSIONS, JOINING, RAW, REARRANGING, UNARY
from ._tensor import MaskedTensor, check_dtype

__all__ = ["call"]


def call(func, args, kwargs):
    """Returns func(*args, **kwargs), where `func` is a library function and some of the arguments are masked tensors. Raises TypeError if `func`
    does not support masked tensors."""
    func, args = by_name(func, args)
    name = func.__name__
    if name in ("__get__", "__set__"):
        return _property(func, name, *args)
    if "input" in kwargs and not args:
        args, kwargs = (kwargs["input"],), {k: v for k, v in kwargs.items() if k != "input"}
    if kwargs.get("out") is not None:
        raise ValueError(f"{name}(): out= is not supported for MaskedTensor")
    function = _FUNCTIONS.get(name)
    if function is None and name in HAND_WRITTEN:
        return func(*args, **kwargs)
    if function is None:
        raise TypeError(f"{name}(): not implemented for MaskedTensor")
    return function(func, *args, **kwargs)


def _property(func, name, t, *value):
    attribute = func.__self__.__name__
    if name == "__set__":
        if attribute == "grad":
            t._grad_mask.mask = value[0]._mask if isinstance(value[0], MaskedTensor) else None
        return func(t, *value)
    if attribute == "grad":
        return _gradient.grad_of(t)
    if attribute == "data":
        return _converted(Tensor.detach, t)
    if attribute in ("T", "mT", "H", "mH"):
        return _rearranged(func, t)
    return func(t)


def _extreme(func, t, *args, **kwargs):
    """Returns the elementwise maximum or minimum of two tensors, where `func` is max or min. Raises TypeError if only one tensor is given,
    because reductions of a masked tensor are named amax and amin."""
    if not _tensors(*args, *kwargs.values()):
        raise TypeError(f"{func.__name__}(): not implemented for MaskedTensor: see a{func.__name__}")
    return _elementwise(func, t, *args, **kwargs)


def _raw(func, *args, **kwargs):
    """Returns func(*args, **kwargs) for a function that is listed in RAW (_names.py). The result of such a function does not depend on the mask."""
    return func(*args, **kwargs)


def _mapped(convert, value):
    """Returns the argument `value`, with every tensor t in it replaced by convert(t)."""
    if isinstance(value, Tensor):
        return convert(value)
    return type(value)(_mapped(convert, item) for item in value) if type(value) in (tuple, list) else value


def _tensors(*values):
    found = []
    for value in values:
        _mapped(found.append, value)
    return found


# ---- Elementwise ------------------------------------------------------------------------------------------------------------------


def _same_mask(masked):
    """Returns the common mask of several masked tensors. ValueError: their masks differ."""
    mask = masked[0]._mask
    for other in masked[1:]:
        if other._mask is not mask and not gradus.equal(mask, other._mask):
            raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    return mask


def _elementwise(func, *args, **kwargs):
    """Returns the result of an elementwise function as a masked tensor with the mask of the arguments. All masked tensors must have equal masks;
    other tensors broadcast."""
    tensors = _tensors(*args, *kwargs.values())
    mask = _same_mask([t for t in tensors if isinstance(t, MaskedTensor)])
    shape = gradus.broadcast_shapes(*(t.shape for t in tensors))
    this = Call()

    def data(t):
        return this.enter(t, this.same, shape)

    if func.__name__.endswith("_"):
        if not isinstance(args[0], MaskedTensor):
            raise TypeError(f"{func.__name__}(): a Tensor cannot be changed by a MaskedTensor")
        result = func(args[0], *(_mapped(data, value) for value in args[1:]), **{name: _mapped(data, value) for name, value in kwargs.items()})
        return this.leave(result, args[0]._mask)
    result = func(*(_mapped(data, value) for value in args), **{name: _mapped(data, value) for name, value in kwargs.items()})
    return this.leave(result, mask if mask.shape == result.shape else mask.expand(result.shape))


def _unary(func, *args, **kwargs):
    if len(_tensors(*args, *kwargs.values())) > 1:
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    return _elementwise(func, *args, **kwargs)


def _copy(func, t, source, non_blocking=False):
    """Implements t.copy_(source): copies the data of `source` into `t` and leaves the mask of `t` unchanged. TypeError: `t` is not masked."""
    if not isinstance(t, MaskedTensor):
        raise TypeError("copy_(): a Tensor cannot be changed by a MaskedTensor")
    this = Call()
    return this.leave(func(t, this.enter(source, this.same, t.shape), non_blocking), t._mask)


def _dropout(func, t, *args, **kwargs):
    this = Call()
    data = this.enter(t, this.same)
    result = func(data, *args, **kwargs)
    return t if result is data else this.leave(result, t._mask)


def _where(func, *args, **kwargs):
    """Implements where. Each element of the result has the mask of the tensor from which it is taken. Numbers and tensors without a mask count as
    unmasked."""
    if len(args) + len(kwargs) != 3:
        raise ValueError(f"__torch_function__, torch.where: len(args) must be 3 but got {len(args) + len(kwargs)}")
    condition, t, other = *args, *(kwargs[name] for name in ("condition", "self", "input", "other") if name in kwargs)
    if isinstance(condition, MaskedTensor):  # called as self.where(condition, other), with self as first argument
        condition, t = t, condition
    if isinstance(condition, MaskedTensor):
        raise TypeError("where(): the condition must not be a MaskedTensor")
    shape = gradus.broadcast_shapes(condition.shape, *(x.shape for x in (t, other) if isinstance(x, Tensor)))
    this, masks, data = Call(), [], []
    for x, chosen in ((t, condition), (other, ~condition)):
        masks.append(x._mask if isinstance(x, MaskedTensor) else gradus.tensor(True, device=condition.device))
        data.append(this.enter(x, lambda grad, chosen=chosen: this.masks[0] & chosen, shape) if isinstance(x, Tensor) else x)
    return this.leave(gradus.where(condition, *data), gradus.where(condition, *masks).expand(shape))


def _converted(func, t, *args, **kwargs):
    """Returns the result of a conversion or copy of `t`, such as to, clone or ones_like (CONVERSIONS in _names.py), as a masked tensor with the mask
    of `t`. Returns `t` itself if the call changes nothing."""
    this = Call()
    data = this.enter(t, this.same)
    result = func(data, *args, **kwargs)
    if not isinstance(result, Tensor):
        return result
    check_dtype(result.dtype)
    if result is data or (result.data_ptr() == data.data_ptr() and func.__name__ not in ("detach", "alias")):
        return t
    return this.leave(result, t._mask.to(result.device))


# ---- Reductions -------------------------------------------------------------------------------------------------------------------


def _all(data, dim, *, keepdim, mask):
    return _C.all(gradus.where(mask, data.to(gradus.bool), True), _reductions._dims(dim, data.dim()), keepdim)


def _reduction(func, t, dim=None, keepdim=False, *more, **options):
    """Returns the result of a reduction over the unmasked elements, as a masked tensor. An element of the result is masked if it is computed from
    masked elements only."""
    name, mask, this = func.__name__, t._mask, Call()
    if more:
        raise TypeError(f"{name}() takes from 1 to 2 positional arguments but {2 + len(more)} were given")
    if isinstance(dim, bool):
        raise TypeError(f"{name}(): argument 'dim' must be tuple of ints, not bool")
    function = _all if name == "all" else getattr(_reductions, name)
    data = function(this.enter(t, lambda grad: mask), dim=dim, keepdim=bool(keepdim), mask=mask, **options)
    counts = mask.any(_reductions._dims(dim, t.dim()), bool(keepdim))
    return this.leave(data, counts.reshape(data.shape))


def _norm(func, t, p="fro", dim=None, keepdim=False, dtype=None):
    return _reduction(func, t, dim, keepdim, ord=2.0 if p == "fro" else float(p), dtype=dtype)


def _softmax(func, t, dim=None, dtype=None):
    """Returns the softmax of the unmasked elements along `dim` as a masked tensor with the mask of `t`."""
    if dim is None:
        raise TypeError("softmax(): a MaskedTensor needs a dim")
    mask, this = t._mask, Call()
    return this.leave(_reductions.softmax(this.enter(t, lambda grad: mask), dim, dtype=dtype, mask=mask), mask)


# ---- Views and joins --------------------------------------------------------------------------------------------------------------


def _rearranged(func, *args, **kwargs):
    """Returns the result of a function that moves elements, such as permute, with the mask moved in the same way. In backward, an element of an
    argument's gradient is unmasked if the element was moved to a position at which the gradient of the result is unmasked."""
    sources = [t for t in _tensors(*args, *kwargs.values()) if isinstance(t, MaskedTensor)]
    this = Call()

    def applied(values):
        """Calls func with each masked tensor in its arguments replaced by the next item of `values`. Returns (list of results, True if func returned
        a single tensor)."""
        order = iter(values)

        def convert(t):
            return next(order) if isinstance(t, MaskedTensor) else t

        results = func(*(_mapped(convert, value) for value in args), **{name: _mapped(convert, value) for name, value in kwargs.items()})
        return ([results], True) if isinstance(results, Tensor) else (list(results), False)

    def rule(number):
        def mask_of_gradient(grad):
            with gradus.enable_grad():
                marks = [gradus.zeros(t.shape, device=t.device, requires_grad=True) for t in sources]
                outputs, _ = applied(marks)
                found, = gradus.autograd.grad([outputs[i] for i in this.masks], marks[number], [mask.to(gradus.float32) for mask in this.masks.values()])
            return found != 0
        return mask_of_gradient

    results, is_one = applied([this.enter(t, rule(number)) for number, t in enumerate(sources)])
    if func.__name__ in ADDING:
        masks = [mask != 0 for mask in applied([t._mask.to(gradus.float32) for t in sources])[0]]
    else:
        masks = applied([t._mask for t in sources])[0]
    if masks and masks[0].dtype is not gradus.bool:  # `func` is view(dtype), which converts the mask too
        raise TypeError("mask must have dtype bool.")
    results = [this.leave(data, mask, number) for number, (data, mask) in enumerate(zip(results, masks))]
    return results[0] if is_one else tuple(results)


def _joined(func, *tensors, **kwargs):
    if not all(isinstance(t, MaskedTensor) for t in _tensors(*tensors)):
        raise TypeError("mask must have dtype bool.")
    return _rearranged(func, *tensors, **kwargs)


def _getitem(func, t, index):
    if not isinstance(t, MaskedTensor) or any(isinstance(i, MaskedTensor) for i in _tensors(index)):
        raise TypeError("__getitem__(): indices must not be MaskedTensors")
    return _rearranged(func, t, index)


def _reshape_like(func, t, other):
    return _rearranged(func, t, other.as_subclass(Tensor)) if isinstance(t, MaskedTensor) else func(t, other.as_subclass(Tensor))


def _grad(func, outputs, inputs, *args, **kwargs):
    """Implements autograd.grad, where gradients of masked tensors are masked tensors."""
    inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    kept = [(t._grad_mask, t._grad_mask.take()) for t in inputs if isinstance(t, MaskedTensor)]
    grads = func(outputs, inputs, *args, **kwargs)
    for grad, t in zip(grads, inputs):
        if isinstance(t, MaskedTensor) and grad is not None:
            mask = t._grad_mask.mask
            _gradient.mark(grad, t._mask if mask is None else mask)
    for grad_mask, before in kept:
        grad_mask.mask = before
    return grads


_FUNCTIONS = {
    **dict.fromkeys(UNARY, _unary), **dict.fromkeys([name + "_" for name in UNARY], _unary), **dict.fromkeys(BINARY, _elementwise),
    **dict.fromkeys([name + "_" for name in BINARY], _elementwise), **dict.fromkeys(REARRANGING, _rearranged), **dict.fromkeys(JOINING, _joined),
    **dict.fromkeys(CONVERSIONS, _converted), **dict.fromkeys(RAW, _raw),
    **dict.fromkeys("sum mean amin amax argmin argmax prod all var std".split(), _reduction), "norm": _norm, "softmax": _softmax, "where": _where, "copy_": _copy, "max": _extreme, "min": _extreme,
    "dropout": _dropout, "__getitem__": _getitem, "view_as": _reshape_like, "expand_as": _reshape_like, "grad": _grad,
}
