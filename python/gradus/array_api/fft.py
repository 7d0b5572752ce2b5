"""Fourier transforms of the Python array API standard."""
import gradus

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn"]


def _line(name):
    def function(x, /, *, n=None, axis=-1, norm="backward"):
        return getattr(gradus.fft, name)(x, n=n, dim=axis, norm=norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``gradus.fft.{name}`` along an axis."
    return function


def _several(name):
    def function(x, /, *, s=None, axes=None, norm="backward"):
        return getattr(gradus.fft, name)(x, s=s, dim=axes, norm=norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``gradus.fft.{name}`` along axes."
    return function


globals().update({name: _line(name) for name in ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft")})
globals().update({name: _several(name) for name in ("fftn", "ifftn", "irfftn", "rfftn")})


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """Returns the sample frequencies of fft() for n samples with spacing d, in cycles per unit of d: [0, 1, ..., -2, -1] / (n d)."""
    return gradus.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """Returns the sample frequencies of rfft() for n samples with spacing d, in cycles per unit of d: [0, 1, ..., n // 2] / (n d)."""
    return gradus.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x, /, *, axes=None):
    """Returns `x` with the zero frequency moved from index 0 to the middle of the given axes, by default all."""
    return gradus.fft.fftshift(x, axes)


def ifftshift(x, /, *, axes=None):
    """Undoes fftshift: returns `x` with the zero frequency moved from the middle of the given axes, by default all, to index 0."""
    return gradus.fft.ifftshift(x, axes)
