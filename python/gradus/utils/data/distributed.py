"""DistributedSampler, which divides a dataset among the processes of a distributed training."""
import math

import gradus
from gradus import distributed
from gradus.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """The indices of one process: every ``num_replicas``-th index, starting at ``rank``. All processes have the same number of indices.

    Args:
        dataset: a dataset with a length.
        num_replicas, rank (int): the number of processes, and the index of this process. When None, the default process group gives them.
        shuffle (bool): permutes all indices first. The permutation depends on ``seed`` and on the epoch.
        seed (int): the random seed, which must be the same in all processes.
        drop_last (bool): if num_replicas does not divide the length, drops the last indices instead of repeating the first ones.

    Raises ValueError if ``rank`` is out of range, or if ``rank`` or ``num_replicas`` is None without a process group.

    >>> list(DistributedSampler("abcde", num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
        rank = distributed.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        left_out = len(dataset) % num_replicas if drop_last else 0
        self.num_samples = math.ceil((len(dataset) - left_out) / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self):
        if self.shuffle:
            generator = gradus.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = gradus.randperm(len(self.dataset), generator=generator).tolist()
        else:
            indices = list(range(len(self.dataset)))
        missing = self.total_size - len(indices)
        if missing > 0 and indices:
            indices += (indices * math.ceil(missing / len(indices)))[:missing]
        return iter(indices[self.rank:self.total_size:self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Sets the epoch, which changes the permutation. Call it with the same number in all processes before each pass."""
        self.epoch = epoch
