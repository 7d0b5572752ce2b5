"""The functions of torch.distributed for a single process. A program with a group of one process runs as with PyTorch; larger groups raise
NotImplementedError.

    >>> import gradus.distributed as dist
    >>> dist.is_available(), dist.is_initialized()
    (True, False)
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> dist.get_rank(), dist.get_world_size()
    (0, 1)
    >>> dist.destroy_process_group()
"""
from gradus import _stand_ins

from . import distributed_c10d as distributed_c10d
from .distributed_c10d import *
from .distributed_c10d import GroupMember as GroupMember
from .distributed_c10d import group as group

__getattr__ = _stand_ins.of_module(__name__)
