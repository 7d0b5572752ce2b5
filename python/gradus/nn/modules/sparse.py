"""Lookup tables: Embedding returns rows of a table; EmbeddingBag returns the mean, sum or maximum of several rows (a bag)."""
from __future__ import annotations

import gradus

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """Base of Embedding and EmbeddingBag, with their options and weight.

    The weight is initially drawn from the standard normal distribution. Row padding_idx is initially 0.
    """

    def _set_options(self, num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, error):
        """Sets the options as attributes. A negative padding_idx counts from the end. Raises AssertionError(error) if padding_idx is out of range."""
        if padding_idx is not None:
            if padding_idx > 0 and padding_idx >= num_embeddings or padding_idx < -num_embeddings:
                raise AssertionError(error)
            padding_idx += num_embeddings if padding_idx < 0 else 0
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse

    def _set_weight(self, given, requires_grad, device, dtype):
        """Sets the weight to a Parameter of the matrix `given`, or of random numbers if `given` is None.

        Raises AssertionError if `given` does not have the shape (num_embeddings, embedding_dim).
        """
        sizes = (self.num_embeddings, self.embedding_dim)
        if given is not None and tuple(given.shape) != sizes:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(gradus.empty(sizes, device=device, dtype=dtype) if given is None else given, requires_grad=requires_grad)
        if given is None:
            self.reset_parameters()

    def reset_parameters(self):
        """Draws new random values from the standard normal distribution, and sets row padding_idx to 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with gradus.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _options_text(self):
        """Returns the text of the options that differ from their default values, for extra_repr."""
        text = "" if self.max_norm is None else f", max_norm={self.max_norm}"
        text += "" if self.norm_type == 2 else f", norm_type={self.norm_type}"
        return text if self.scale_grad_by_freq is False else f"{text}, scale_grad_by_freq={self.scale_grad_by_freq}"


class Embedding(_Table):
    """Returns rows of a trained weight (num_embeddings, embedding_dim): indices (...) give (..., embedding_dim).

    padding_idx: the index of a row that is initially 0 and receives no gradient. max_norm: before the lookup, rows whose norm of order norm_type is
    larger than max_norm are scaled in place to the norm max_norm. scale_grad_by_freq: the gradient of a row is divided by the number of times that
    the row was looked up. With sparse=True, calls raise NotImplementedError. Raises AssertionError if padding_idx is out of range.

    >>> table = nn.Embedding(10, 3, padding_idx=0)
    >>> tuple(table(gradus.tensor([[1, 2], [4, 0]])).shape)
    (2, 2, 3)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq: bool = False,
                 sparse: bool = False, _weight=None, _freeze=False, device=None, dtype=None):
        super().__init__()
        self._set_options(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                          "Padding_idx must be within num_embeddings")
        self._set_weight(_weight, not _freeze, device, dtype)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
        """Returns an Embedding whose weight shares memory with the matrix `embeddings`. freeze: if true, the weight is not trained.

        Raises AssertionError if `embeddings` is not two-dimensional.

        >>> nn.Embedding.from_pretrained(gradus.tensor([[1., 2.], [3., 4.]]))(gradus.tensor([1])).tolist()
        [[3.0, 4.0]]
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(rows, columns, _weight=embeddings, _freeze=freeze, padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type,
                   scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)

    def forward(self, input):
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)

    def extra_repr(self):
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}{self._options_text()}" + (", sparse=True" if self.sparse is not False else "")


class EmbeddingBag(_Table):
    """Looks up rows of a trained weight (num_embeddings, embedding_dim). Returns the mean, sum or maximum of the rows of each bag.

    A bag is a list of row indices. A call takes a matrix of row indices, in which each row is a bag. Or it takes a vector `input` of row indices and
    `offsets`, where bag b is input[offsets[b]:offsets[b + 1]]. The result has the shape (bags, embedding_dim). mode: "mean", "sum" or "max".
    include_last_offset: the last offset is the end of the last bag. padding_idx: an index that is skipped. max_norm: before the lookup, rows whose
    norm of order norm_type is larger than max_norm are scaled in place to the norm max_norm.

    >>> table = nn.EmbeddingBag(10, 3, mode="sum")
    >>> tuple(table(gradus.tensor([1, 2, 4, 5]), gradus.tensor([0, 3])).shape)
    (2, 3)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm=None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                 mode: str = "mean", sparse: bool = False, _weight=None, include_last_offset: bool = False, padding_idx=None, device=None, dtype=None):
        super().__init__()
        self._set_options(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                          "padding_idx must be within num_embeddings")
        self._set_weight(_weight, True, device, dtype)
        self.mode = mode
        self.include_last_offset = include_last_offset

    @classmethod
    def from_pretrained(cls, embeddings, freeze: bool = True, max_norm=None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                        mode: str = "mean", sparse: bool = False, include_last_offset: bool = False, padding_idx=None):
        """Returns an EmbeddingBag whose weight shares memory with the matrix `embeddings`. freeze: if true, the weight is not trained.

        Raises AssertionError if `embeddings` is not two-dimensional.
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        made = cls(rows, columns, _weight=embeddings, max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, mode=mode,
                   sparse=sparse, include_last_offset=include_last_offset, padding_idx=padding_idx)
        made.weight.requires_grad = not freeze
        return made

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
                               per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self):
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{self._options_text()}, mode={self.mode!r}{padding}"
