"""A sampler for several processes that train together, each on its share of a data set."""
import math

import gradus
from gradus import distributed
from gradus.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """The share of one process: every ``num_replicas``-th index from ``rank`` on, the same number for each process.

    Args:
        dataset: a data set with a length.
        num_replicas, rank (int): how many processes there are, and which is this one; those of the default process group where they are not given.
        shuffle (bool): permute all indices first, by ``seed`` and the epoch.
        seed (int): the same in all processes.
        drop_last (bool): leave out the last indices where they do not go round, instead of repeating the first.

    Raises ValueError for a rank out of range, and where one is missing and there is no process group.

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
        """Another permutation for each epoch; call it before the pass begins, with the same number in all processes."""
        self.epoch = epoch
