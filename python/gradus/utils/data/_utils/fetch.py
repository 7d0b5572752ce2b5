"""Fetchers, which read the samples of a batch from a dataset and collate them."""


class MapFetcher:
    """Fetches samples of a dataset that is read by index (not an IterableDataset)."""

    def __init__(self, dataset, in_batches, collate_fn, drop_last):
        self._dataset = dataset
        self._in_batches = in_batches
        self._collate_fn = collate_fn

    def fetch(self, index):
        """Returns the batch for a list of indices. If in_batches is false, `index` is one index and a single sample is returned."""
        if not self._in_batches:
            return self._collate_fn(self._dataset[index])
        if getattr(self._dataset, "__getitems__", None):
            return self._collate_fn(self._dataset.__getitems__(index))
        return self._collate_fn([self._dataset[i] for i in index])


class StreamFetcher:
    """Fetches the next samples of an IterableDataset. Raises StopIteration at the end of the dataset."""

    def __init__(self, dataset, in_batches, collate_fn, drop_last):
        self._samples = iter(dataset)
        self._in_batches = in_batches
        self._collate_fn = collate_fn
        self._drop_last = drop_last
        self._ended = False

    def fetch(self, index):
        """Returns a batch of the next len(index) samples, or a single sample if in_batches is false."""
        if not self._in_batches:
            return self._collate_fn(next(self._samples))
        if self._ended:
            raise StopIteration
        batch = []
        for _ in index:
            try:
                batch.append(next(self._samples))
            except StopIteration:
                self._ended = True
                break
        if not batch or (self._drop_last and len(batch) < len(index)):
            raise StopIteration
        return self._collate_fn(batch)
