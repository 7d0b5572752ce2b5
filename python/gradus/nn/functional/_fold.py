"""Sliding windows of images as columns, and back."""
from collections.abc import Iterable

from gradus import _C

from ._arguments import require, require_ints

__all__ = ["fold", "unfold"]


def _ntuple(n):
    """Returns a function that gives what is iterable as a tuple, and another value n times."""
    return lambda value: tuple(value) if isinstance(value, Iterable) else (value,) * n


_pair = _ntuple(2)


def _require_pairs(**given):
    for name, values in given.items():
        if len(values) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")


def _checked_windows(name, kernel_size, dilation, padding, stride):
    """The four as pairs of integers that make sense by themselves."""
    kernel_size, dilation, padding, stride = (value if isinstance(value, _C.Tensor) else _pair(value) for value in (kernel_size, dilation, padding, stride))
    given = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    require_ints(name, **given)
    _require_pairs(**given)
    for text, names, pair, least in (("kernel size should be greater than zero", "kernel", kernel_size, 1), ("stride should be greater than zero", "stride", stride, 1),
                                     ("dilation should be greater than zero", "dilation", dilation, 1), ("padding should be non-negative", "pad", padding, 0)):
        if min(pair) < least:
            raise RuntimeError(f"{text}, but got {names}_height: {pair[0]} {names}_width: {pair[1]}")
    return kernel_size, dilation, padding, stride


def _windows(size, kernel_size, dilation, padding, stride):
    """How many windows there are down and across; and the place of every element of each among those of a padded image, (kernel, windows)."""
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, kernel_size, dilation, padding, stride)]
    if min(counts) < 1:
        return counts, None
    axes = [_C.arange(k).mul(d).unsqueeze(1) + _C.arange(count).mul(s) for k, d, count, s in zip(kernel_size, dilation, counts, stride)]
    width = size[1] + 2 * padding[1]
    places = axes[0][:, None, :, None] * width + axes[1][None, :, None, :]
    return counts, places.reshape(kernel_size[0] * kernel_size[1], counts[0] * counts[1])


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of (N, C, H, W), or (C, H, W), as columns: (N, C * the elements of a window, windows). What pads is zero.

    >>> F.unfold(gradus.arange(9.0).reshape(1, 1, 3, 3), 2).shape
    torch.Size([1, 4, 4])
    """
    require("unfold", "Tensor", input=input)
    kernel_size, dilation, padding, stride = _checked_windows("unfold", kernel_size, dilation, padding, stride)
    if input.dim() not in (3, 4) or 0 in input.shape[1:]:
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
                           f"but got: {list(input.shape)}")
    size = tuple(input.shape[-2:])
    counts, places = _windows(size, kernel_size, dilation, padding, stride)
    if places is None:
        raise RuntimeError(f"Given input with spatial size {size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, calculated shape of the "
                           f"array of sliding blocks as {tuple(counts)}, but its components must be at least one.")
    padded = _C.constant_pad_nd(input, (padding[1], padding[1], padding[0], padding[0]))
    columns = padded.flatten(-2).index_select(-1, places.flatten().to(input.device))
    return columns.reshape(*input.shape[:-3], input.size(-3) * places.size(0), places.size(1))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Images (N, C, H, W) of output_size whose windows are summed from columns (N, C * the elements of a window, windows): the adjoint of unfold.

    >>> F.fold(gradus.ones(1, 4, 4), (3, 3), 2).tolist()
    [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]
    """
    require("fold", "Tensor", input=input)
    output_size = _pair(output_size)
    require_ints("fold", output_size=output_size)
    _require_pairs(output_size=output_size)
    kernel_size, dilation, padding, stride = _checked_windows("fold", kernel_size, dilation, padding, stride)
    if input.dim() not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, "
                           f"but got: {list(input.shape)}")
    channels, rest = divmod(input.size(-2), kernel_size[0] * kernel_size[1])
    if rest:
        raise RuntimeError(f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={input.size(-2)} "
                           f"and kernel_size={kernel_size}.")
    counts, places = _windows(output_size, kernel_size, dilation, padding, stride)
    if places is None or input.size(-1) != places.size(1):
        raise RuntimeError(f"Given output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}, expected size of "
                           f"input's dimension 2 to match the calculated number of sliding blocks {counts[0]} * {counts[1]} = {counts[0] * counts[1]}, "
                           f"but got input.size(2)={input.size(-1)}.")
    height, width = (size + 2 * p for size, p in zip(output_size, padding))
    values = input.reshape(*input.shape[:-2], channels, places.numel())
    sums = values.new_zeros(*values.shape[:-1], height * width).index_add(-1, places.flatten().to(input.device), values)
    images = sums.unflatten(-1, (height, width))
    return images.narrow(-2, padding[0], output_size[0]).narrow(-1, padding[1], output_size[1])
