"""Compares len() of loaders and samplers with the number of items that they yield."""
import math

import pytest

import gradus as torch
from gradus.utils.data import DataLoader, IterableDataset, RandomSampler


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8, 9])
@pytest.mark.parametrize("drop_last", [False, True])
def test_length_of_a_data_loader(n, drop_last):
    for size in (1, 2, 3, 8):
        for data in (Stream(n), list(range(n))):
            loader = DataLoader(data, batch_size=size, drop_last=drop_last)
            assert len(loader) == len(list(loader)) == (n // size if drop_last else math.ceil(n / size))
    for data in (Stream(n), list(range(n))):
        loader = DataLoader(data, batch_size=None)
        assert len(loader) == len(list(loader)) == n


def test_len_of_a_loader_of_an_iterable_dataset_without_length_is_an_error():
    class Endless(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    with pytest.raises(TypeError, match="has no len"):
        len(DataLoader(Endless(), batch_size=2))


def test_an_iterable_dataset_longer_than_its_length_warns():
    class Wrong(Stream):
        def __len__(self):
            return 2

    loader = DataLoader(Wrong(5), batch_size=2)
    assert len(loader) == 1
    with pytest.warns(UserWarning, match="Length of IterableDataset"):
        list(loader)


@pytest.mark.parametrize("replacement", [False, True])
def test_length_of_a_random_sampler(replacement):
    torch.manual_seed(0)
    for n in (1, 5, 40):
        for samples in (None, 1, 5, 31, 32, 33, 100):
            drawn = list(RandomSampler(range(n), replacement=replacement, num_samples=samples))
            assert len(drawn) == (samples or n) and set(drawn) <= set(range(n))
            if not replacement:
                assert all(sorted(drawn[i:i + n]) == list(range(n)) for i in range(0, len(drawn) - n + 1, n))
