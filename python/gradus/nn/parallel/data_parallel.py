"""DataParallel. The only device is the cpu, so the module is called directly, as in PyTorch without GPUs."""
from __future__ import annotations

from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """A module that calls `module`. There are no GPUs to split the input over, so device_ids is empty and output_device has no effect.

    >>> net = nn.DataParallel(nn.Linear(3, 2))
    >>> list(net.state_dict()), net.device_ids
    (['module.weight', 'module.bias'], [])
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module, self.device_ids, self.dim = module, [], dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def replicate(self, module, device_ids):
        """Raises NotImplementedError, because there are no other devices to copy the module to."""
        return replicate(module, device_ids)

    def scatter(self, inputs, kwargs, device_ids):
        """Splits the batch along dimension `dim`. Returns two tuples, inputs and kwargs, with one element per device."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        """Returns the results of calling each module in `replicas` with its inputs and kwargs."""
        return parallel_apply(replicas, inputs, kwargs)

    def gather(self, outputs, output_device):
        """Returns the outputs of all devices concatenated along the batch dimension `dim`."""
        return gather(outputs, output_device, self.dim)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Raises RuntimeError, because the cpu is the only device; PyTorch without GPUs raises it too."""
    raise RuntimeError("device type could not be determined")
