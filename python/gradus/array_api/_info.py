"""Implements the inspection functions of the Python array API standard, which describe what the namespace supports."""
import gradus
from gradus.array_api._types import KINDS


class _Info:
    """Describes the namespace's capabilities, and its default and supported dtypes and devices."""

    def capabilities(self):
        """Returns a dict that says which optional features of the standard are supported, and how many dimensions an array can have."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        """Returns the device on which arrays are created."""
        return gradus.get_default_device()

    def default_dtypes(self, *, device=None):
        """Returns {kind: default dtype of arrays created from numbers of that kind}."""
        real = gradus.get_default_dtype()
        return {"real floating": real, "complex floating": real.to_complex(), "integral": gradus.int64, "indexing": gradus.int64}

    def dtypes(self, *, device=None, kind=None):
        """Returns {name: dtype} for all dtypes of a kind, of a tuple of kinds, or of all kinds if `kind` is None."""
        kinds = tuple(KINDS) if kind is None else (kind,) if isinstance(kind, str) else kind
        return {str(dtype).split(".")[1]: dtype for one in kinds for dtype in KINDS[one]}

    def devices(self):
        """Returns a tuple of the supported devices."""
        return gradus.device("cpu"), gradus.device("meta")


def __array_namespace_info__():
    """Returns an object that describes the namespace's capabilities, and its default and supported dtypes and devices."""
    return _Info()
