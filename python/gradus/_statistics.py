"""Statistics and integrals of samples: quantiles, the mode, covariance, the trapezoidal rule. What is computed is computed by operators."""
import warnings
from typing import NamedTuple

from gradus import _C
from gradus._C import Tensor
from gradus.functional import _into, _into_all

__all__ = ["corrcoef", "cov", "cumulative_trapezoid", "mode", "nanquantile", "quantile", "trapezoid", "trapz"]


# ---- Quantiles -------------------------------------------------------------------------------------------------------------------------------

_INTERPOLATIONS = {"linear": None, "lower": _C.floor, "higher": _C.ceil, "midpoint": None, "nearest": _C.round}


def _fractions(input, q):
    """q as a tensor, checked with the input."""
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        q = _C.scalar_tensor(q, dtype=input.dtype, device=input.device)
    if input.numel() == 0:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q.dim() > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if input.dtype not in (_C.float32, _C.float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if input.dtype != q.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if not ((q >= 0) & (q <= 1)).all():
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q


def _ranks(lines, q, ignores_nan):
    """Where in sorted lines the quantiles lie. NaN comes last: a line that has one is read there, or is as long as without them."""
    if not ignores_nan:
        last = lines.size(-1) - 1
        return _C.where(lines.isnan().any(-1, keepdim=True), last, q * last)
    return (q * (lines.isnan().logical_not().sum(-1, keepdim=True) - 1)).clamp(min=0)


def _read(lines, ranks, interpolation):
    """The elements at ranks, of which some lie between two."""
    rounded = _INTERPOLATIONS[interpolation]
    if rounded is not None:
        return lines.gather(-1, rounded(ranks).to(_C.int64))
    place = ranks.to(_C.int64)
    weight = _C.full_like(ranks, 0.5) if interpolation == "midpoint" else ranks - place
    return lines.gather(-1, place).lerp(lines.gather(-1, ranks.ceil().to(_C.int64)), weight)


def _quantile(input, q, dim, keepdim, interpolation, out, ignores_nan):
    q = _fractions(input, q)
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(f"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}")
    whole = dim is None or input.dim() == 0
    lines = (input.reshape(-1) if whole else input.movedim(dim, -1)).sort().values
    result = _read(lines, _ranks(lines, q.reshape(-1), ignores_nan), interpolation)
    result = result.movedim(-1, 0) if q.dim() else result.squeeze(-1)
    if keepdim and whole:
        result = result.reshape(q.shape + (1,) * input.dim())
    elif keepdim:
        result = result.unsqueeze(q.dim() + dim % input.dim())
    return _into(out, result, "quantile() out tensor must be same dtype as the input tensor")


def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """The values below which fractions q of the elements lie, of all or along dim: one for a number, a first dimension of them for a vector.
    interpolation: what lies between two elements, 'linear', 'lower', 'higher', 'midpoint' or 'nearest'. NaN where there is one.

    >>> import gradus as torch
    >>> torch.quantile(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0.5, 0.75]))
    tensor([2., 3.])
    """
    return _quantile(input, q, dim, keepdim, interpolation, out, False)


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """quantile of the elements that are not NaN; NaN where none is left."""
    return _quantile(input, q, dim, keepdim, interpolation, out, True)


# ---- The mode ----------------------------------------------------------------------------------------------------------------------------------

class _Mode(NamedTuple):
    values: Tensor
    indices: Tensor


def mode(input, dim=-1, keepdim=False, *, out=None):
    """The most frequent element along dim, the smallest of such, and the place of one of them.

    >>> import gradus as torch
    >>> torch.mode(torch.tensor([3, 1, 3])).values
    tensor(3)
    """
    if input.dim() and not input.size(dim):
        raise IndexError(f"mode(): Expected reduction dim {dim % input.dim()} to have non-zero size.")
    values, order = (input if input.dim() else input.reshape(1)).sort(dim)
    places = _C.arange(values.size(dim)).reshape([-1 if d == dim % values.dim() else 1 for d in range(values.dim())])
    count = values.size(dim) - 1
    differs = values.narrow(dim, 1, count) != values.narrow(dim, 0, count)
    begins = _C.cat([_C.ones_like(values.narrow(dim, 0, 1), dtype=_C.bool), differs], dim)
    since = places - _C.where(begins, places, 0).cummax(dim).values
    last = since.argmax(dim, keepdim=True)  # of the first run of the greatest length
    keeps = keepdim and input.dim()
    found = [t if keeps else t.squeeze(dim) for t in (values.gather(dim, last), order.gather(dim, last))]
    return _Mode(*found) if out is None else _Mode(*_into_all(out, found, [f"expected scalar type '{{result}}' but got '{{out}}' for {name} output" for name in _Mode._fields]))


# ---- Covariance ------------------------------------------------------------------------------------------------------------------------------

def _weights(name, weights, observations, is_dtype, kind):
    if weights.dim() > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.dim()} dimensions")
    if not is_dtype:
        raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {name} with {weights.type().split('.')[1].removesuffix('Tensor')} dtype")
    if weights.numel() != observations:
        raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input but got {weights.numel()} != {observations}")
    if (weights < 0).any():
        raise RuntimeError(f"cov(): {name} cannot be negative")


def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariances of variables, the rows of a matrix or one vector, whose columns are observations. fweights: how often each observation occurs;
    aweights: how much it counts. The sum of weighted products is divided by the sum of weights less the correction.

    >>> import gradus as torch
    >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.dim() > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions")
    if input.dtype == _C.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input if input.dim() == 2 else input.reshape(1, -1)
    observations = rows.size(1)
    if fweights is not None:
        dtype = fweights.dtype
        _weights("fweights", fweights, observations, not (dtype.is_floating_point or dtype.is_complex or dtype == _C.bool), "integral")
    if aweights is not None:
        _weights("aweights", aweights, observations, aweights.dtype.is_floating_point, "floating point")
    weights = aweights if fweights is None else fweights if aweights is None else fweights * aweights
    total = _C.tensor(observations) if weights is None else weights.sum()
    if weights is not None and total == 0:
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    mean = (rows if weights is None else rows * weights).sum(1, keepdim=True) / total
    freedom = total - correction if aweights is None or correction == 0 else total - correction * (weights * aweights).sum() / total
    if freedom <= 0:
        warnings.warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
        freedom = _C.zeros_like(freedom)
    centered = rows - mean
    weighted = centered if weights is None else centered * weights
    return (centered @ weighted.t().conj() / freedom).squeeze()


def corrcoef(input):
    """The correlations of variables: cov, each divided by the standard deviations of both.

    >>> import gradus as torch
    >>> torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.dim() > 2:
        raise RuntimeError(f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions")
    c = cov(input)
    if c.dim() == 0:
        return c / c
    deviation = c.diag().sqrt()
    c = c / deviation.unsqueeze(-1) / deviation
    return _C.complex(c.real.clamp(-1, 1), c.imag.clamp(-1, 1)) if c.is_complex() else c.clamp(-1, 1)


# ---- The trapezoidal rule --------------------------------------------------------------------------------------------------------------------

def _distances(name, y, x, dx, dim):
    """What lies between neighbouring samples: a number, or a tensor that broadcasts to them."""
    if x is None:
        if y.dtype == _C.bool:
            raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
        return 1 if dx is None else dx
    if dx is not None:
        raise TypeError(f"{name}() takes x or dx, not both")
    if _C.bool in (x.dtype, y.dtype):
        raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")
    if x.dim() == 1:
        if x.size(0) != y.size(dim):
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = x.reshape([-1 if d == dim % y.dim() else 1 for d in range(y.dim())])
    elif x.dim() < y.dim():
        x = x.reshape((1,) * (y.dim() - x.dim()) + tuple(x.shape))
    return x.diff(dim=dim)


def _trapezoids(name, y, x, dx, dim):
    """The areas between neighbouring samples along dim."""
    dx = _distances(name, y, x, dx, dim)
    count = y.size(dim) - 1
    return (y.narrow(dim, 0, count) + y.narrow(dim, 1, count)) * dx / 2


def trapezoid(y, x=None, *, dx=None, dim=-1):
    """The integral along dim by the trapezoidal rule, of samples at x or at a distance of dx (1).

    >>> import gradus as torch
    >>> torch.trapezoid(torch.tensor([1.0, 2.0, 4.0]))
    tensor(4.5000)
    """
    if y.size(dim) == 0:
        return _C.zeros([size for d, size in enumerate(y.shape) if d != dim % y.dim()], dtype=y.dtype)
    return _trapezoids("trapezoid", y, x, dx, dim).sum(dim)


def trapz(y, x=None, *, dx=None, dim=-1):
    """The old name of trapezoid."""
    return trapezoid(y, x, dx=dx, dim=dim)


def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """The integrals from the first sample to each later one."""
    if y.size(dim) == 0:
        return _C.zeros_like(y)
    return _trapezoids("cumulative_trapezoid", y, x, dx, dim).cumsum(dim)


for _method in (corrcoef, cov, mode, nanquantile, quantile):
    setattr(Tensor, _method.__name__, _method)
