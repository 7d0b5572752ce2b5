"""Describes what the namespace supports, as the standard asks for it."""
import gradus
from gradus.array_api._types import KINDS


class _Info:
    """The namespace's capabilities, default and supported dtypes and devices."""

    def capabilities(self):
        """Returns which optional parts of the standard are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        """Returns the device on which arrays are created."""
        return gradus.get_default_device()

    def default_dtypes(self, *, device=None):
        """Returns the dtypes of arrays that are made of numbers of a kind."""
        real = gradus.get_default_dtype()
        return {"real floating": real, "complex floating": real.to_complex(), "integral": gradus.int64, "indexing": gradus.int64}

    def dtypes(self, *, device=None, kind=None):
        """Returns the dtypes of a kind, of several kinds or of all, by name."""
        kinds = tuple(KINDS) if kind is None else (kind,) if isinstance(kind, str) else kind
        return {str(dtype).split(".")[1]: dtype for one in kinds for dtype in KINDS[one]}

    def devices(self):
        """Returns the devices."""
        return gradus.device("cpu"), gradus.device("meta")


def __array_namespace_info__():
    """Returns the namespace's capabilities, default and supported dtypes and devices."""
    return _Info()
