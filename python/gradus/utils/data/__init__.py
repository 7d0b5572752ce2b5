"""Datasets, samplers, and the DataLoader that makes batches of samples.

>>> import gradus
>>> from gradus.utils.data import DataLoader, TensorDataset
>>> data = TensorDataset(gradus.arange(6), gradus.arange(6) * 10)
>>> for x, y in DataLoader(data, batch_size=4):
...     print(x.tolist(), y.tolist())
[0, 1, 2, 3] [0, 10, 20, 30]
[4, 5] [40, 50]
"""
from gradus import _stand_ins
from gradus.utils.data._utils.collate import default_collate, default_convert
from gradus.utils.data._utils.worker import get_worker_info
from gradus.utils.data.dataloader import DataLoader, _DatasetKind
from gradus.utils.data.dataset import (
    ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset, random_split,
)
from gradus.utils.data.distributed import DistributedSampler
from gradus.utils.data.sampler import (
    BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler,
)

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
           "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
           "WeightedRandomSampler", "default_collate", "default_convert", "get_worker_info", "random_split"]

__getattr__ = _stand_ins.of_module(__name__)
