"""Fourier transforms of the standard."""
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
    """Returns the frequencies of a transform of n samples at a distance d."""
    return gradus.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """Returns the frequencies of a transform of n real samples at a distance d."""
    return gradus.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x, /, *, axes=None):
    """Returns x with the zero frequency moved to the middle of axes."""
    return gradus.fft.fftshift(x, axes)


def ifftshift(x, /, *, axes=None):
    """fftshift undone."""
    return gradus.fft.ifftshift(x, axes)
