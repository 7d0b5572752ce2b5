"""Adaptive softmax, an efficient approximation of softmax over many classes with very different frequencies (Grave et al., 2017)."""
from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

from gradus import _C

from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Computes log-probabilities of the targets and the negative log likelihood loss by an adaptive softmax.

    The input is (N, in_features) with the target (N), or (in_features) with the target (). The result is a pair (output, loss). `output` is the
    log-probability of each target, and `loss` is -output.mean(). Classes must be sorted by decreasing frequency. Cluster i consists of the classes
    cutoffs[i] to cutoffs[i + 1] - 1; the last cluster ends with the last class. A linear layer, the head, computes one score for each class below
    cutoffs[0] and one score for each cluster. For each cluster i, a network with in_features // div_value^(i + 1) hidden features computes the scores
    of its classes. Raises ValueError unless cutoffs are increasing integers from 1 to n_classes - 1.

    >>> layer = nn.AdaptiveLogSoftmaxWithLoss(8, 10, cutoffs=[2, 5], div_value=2.0)
    >>> output, loss = layer(gradus.randn(3, 8), gradus.tensor([0, 4, 9]))
    >>> tuple(output.shape), loss.dim()
    ((3,), 0)
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if len(cutoffs) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1 or any(int(c) != c for c in cutoffs):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between 1 "
                             "and n_classes-1")
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        made = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(self._clusters()):
            features = int(in_features // div_value ** (i + 1))
            self.tail.append(Sequential(Linear(in_features, features, bias=False, **made), Linear(features, high - low, bias=False, **made)))

    def _clusters(self):
        """Returns for each cluster, i.e. each range of infrequent classes, the pair (first class, last class + 1)."""
        return list(zip(self.cutoffs, self.cutoffs[1:]))

    def reset_parameters(self):
        """Draws new random values for all weights."""
        self.head.reset_parameters()
        for narrow, scores in self.tail:
            narrow.reset_parameters()
            scores.reset_parameters()

    def forward(self, input_, target_):
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target_.dim() == 1 and input_.size(0) != target_.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, but found inputs with size {input_.size()}")
        single = target_.dim() == 0
        output = self._log_prob_of(input_.unsqueeze(0), target_.unsqueeze(0)).squeeze(0) if single else self._log_prob_of(input_, target_)
        return _ASMoutput(output, (-output).mean())

    def _log_prob_of(self, input, target):
        """Returns the log-probability of each target, (N). For a frequent class the head computes it. For another class it is the log-probability of
        the class's cluster, computed by the head, plus the log-probability of the class within the cluster."""
        if target.numel() > 0:
            least, largest = (bound.item() for bound in target.aminmax())
            if least < 0 or largest >= self.n_classes:
                raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range [{least}, {largest}] were found. ")
        place = target.clone()  # for each target, the column of its class or of its cluster in the head's scores
        tails = []
        for i, (low, high) in enumerate(self._clusters()):
            rows = _C._class_rows(target, low, high)
            if rows.numel() > 0:
                place.index_fill_(0, rows, self.shortlist_size + i)
                tails.append((rows, _C._log_softmax_at(self.tail[i](input.index_select(0, rows)), target[rows], low)))
        result = _C._log_softmax_at(self.head(input), place, 0)
        for rows, tail in tails:
            result = result.index_add(0, rows, tail)
        return result

    def log_prob(self, input):
        """Returns the log-probabilities of all classes: (N, n_classes) for input (N, in_features)."""
        return _C._adaptive_log_prob(self.head(input), [cluster(input) for cluster in self.tail], self.shortlist_size)

    def predict(self, input):
        """Returns the most probable class of each row of `input`, (N) for (N, in_features)."""
        return self.log_prob(input).argmax(dim=1)
