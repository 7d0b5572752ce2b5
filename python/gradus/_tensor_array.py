"""Methods of Tensor that the Python array API standard has, and PyTorch has not."""
import importlib

from gradus._C import Tensor

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def __array_namespace__(self, *, api_version=None):
    """Returns the functions of the Python array API standard, for tensors: ``gradus.array_api``. ValueError: another version of the standard than one up to 2025.12.

    >>> import gradus
    >>> gradus.ones(2).__array_namespace__().__name__
    'gradus.array_api'
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f"api_version is one of {', '.join(_VERSIONS)}, not {api_version!r}")
    return importlib.import_module("gradus.array_api")


def to_device(self, device, /, *, stream=None):
    """Returns the tensor on a device: ``to(device)``. ValueError: a stream, since no device here has any.

    >>> import gradus
    >>> gradus.ones(2).to_device("cpu")
    tensor([1., 1.])
    """
    if stream is not None:
        raise ValueError(f"stream must be None: devices have none here, not {stream!r}")
    return self.to(device)


for _method in (__array_namespace__, to_device):
    setattr(Tensor, _method.__name__, _method)
