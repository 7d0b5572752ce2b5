"""DataParallel: without devices beside the cpu it calls the module, as PyTorch does there."""
from __future__ import annotations

from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """A module that calls another, `module`. There are no devices to share its input between, so device_ids is empty and the other arguments have no effect.

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
        """parallel.replicate."""
        return replicate(module, device_ids)

    def scatter(self, inputs, kwargs, device_ids):
        """parallel.scatter of both, along the dimension of the batch."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        """parallel.parallel_apply."""
        return parallel_apply(replicas, inputs, kwargs)

    def gather(self, outputs, output_device):
        """parallel.gather, along the dimension of the batch."""
        return gather(outputs, output_device, self.dim)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """RuntimeError: there are no devices beside the cpu, which PyTorch asks for as well."""
    raise RuntimeError("device type could not be determined")
