"""Adds the methods of Tensor that the Python array API standard defines and PyTorch lacks."""
import importlib

from gradus._C import Tensor

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def __array_namespace__(self, *, api_version=None):
    """Returns the module ``gradus.array_api``, which has the functions of the Python array API standard. ValueError: `api_version` is not a version
    of the standard from 2021.12 to 2025.12.

    >>> import gradus
    >>> gradus.ones(2).__array_namespace__().__name__
    'gradus.array_api'
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f"api_version is one of {', '.join(_VERSIONS)}, not {api_version!r}")
    return importlib.import_module("gradus.array_api")


def to_device(self, device, /, *, stream=None):
    """Returns ``self.to(device)``. ValueError: `stream` is given, because devices have no streams here.

    >>> import gradus
    >>> gradus.ones(2).to_device("cpu")
    tensor([1., 1.])
    """
    if stream is not None:
        raise ValueError(f"stream must be None: devices have none here, not {stream!r}")
    return self.to(device)


for _method in (__array_namespace__, to_device):
    setattr(Tensor, _method.__name__, _method)
