"""DistributedDataParallel for a process group of one process. Averaging gradients over one process leaves them unchanged."""
from __future__ import annotations

from contextlib import contextmanager

from gradus import distributed

from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A module that calls `module`. Gradients are averaged over the process group, which has only this process, so the average does not change them.

    Raises ValueError if there is no process group or device ids are given, RuntimeError if no parameter requires a gradient.

    >>> from gradus import distributed
    >>> distributed.init_process_group("gloo", rank=0, world_size=1, store=distributed.HashStore())
    >>> net = nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
    >>> list(net.state_dict())
    ['module.weight', 'module.bias']
    >>> distributed.destroy_process_group()
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True, process_group=None, bucket_cap_mb=None,
                 find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False, static_graph=False, delay_all_reduce_named_params=None,
                 param_to_hook_all_reduce=None, mixed_precision=None, device_mesh=None, skip_all_reduce_unused_params=False):
        super().__init__()
        distributed.get_world_size(process_group)  # raises ValueError if there is no process group
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient.")
        devices = {parameter.device for parameter in module.parameters()}
        if device_ids or output_device is not None:
            raise ValueError("DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, "
                             f"but got device_ids {device_ids}, output_device {output_device}, and module parameters {devices}.")
        self.module, self.dim, self.device_ids, self.output_device = module, dim, None, None
        self.process_group = distributed.group.WORLD if process_group is None else process_group
        self.broadcast_buffers, self.find_unused_parameters = broadcast_buffers, find_unused_parameters
        self.gradient_as_bucket_view, self.static_graph = gradient_as_bucket_view, static_graph
        self.device, self.device_type = next(iter(devices)), next(iter(devices)).type
        self.require_backward_grad_sync = True

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def _set_static_graph(self):
        """Sets the attribute static_graph, which nothing else reads."""
        self.static_graph = True

    @contextmanager
    def no_sync(self):
        """Context manager that disables the averaging of gradients. With one process, averaging changes nothing anyway."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextmanager
    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """Does nothing. In PyTorch this context manager lets processes have different numbers of batches."""
        yield

    def register_comm_hook(self, state, hook):
        """Raises NotImplementedError, because gradients are not sent to other processes."""
        raise NotImplementedError("register_comm_hook: gradients are not sent anywhere in a group of one process")
