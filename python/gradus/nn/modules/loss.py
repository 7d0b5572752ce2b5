"""Loss functions as modules. Each module computes the corresponding function in gradus.nn.functional.

reduction: "mean", "sum" or "none". size_average and reduce are deprecated flags for the same choice.
"""
from __future__ import annotations

import math
import warnings

from .. import functional as F
from ..functional._reduction import legacy_reduction
from .distance import PairwiseDistance
from .linear import Linear
from .linear_cross_entropy_options import LinearCrossEntropyOptions
from .module import Module

__all__ = ["L1Loss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "GaussianNLLLoss", "KLDivLoss", "MSELoss", "BCELoss", "BCEWithLogitsLoss",
           "HingeEmbeddingLoss", "MultiLabelMarginLoss", "SmoothL1Loss", "HuberLoss", "SoftMarginLoss", "CrossEntropyLoss",
           "LinearCrossEntropyLoss", "MultiLabelSoftMarginLoss", "CosineEmbeddingLoss", "MarginRankingLoss", "MultiMarginLoss", "TripletMarginLoss",
           "TripletMarginWithDistanceLoss", "CTCLoss"]


class _Loss(Module):
    """Base of losses. It stores the attribute `reduction`."""

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__()
        self.reduction = legacy_reduction(size_average, reduce, reduction, stacklevel=4)


class _WeightedLoss(_Loss):
    """Base of losses with the buffer `weight`, which contains a weight for each class or element."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """Computes |input - target|, reduced by `reduction`."""

    def forward(self, input, target):
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """Computes (input - target)^2, reduced by `reduction`.

    >>> nn.MSELoss(reduction="sum")(gradus.tensor([1., 2.]), gradus.tensor([1., 4.])).item()
    4.0
    """

    def forward(self, input, target):
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """With d = |input - target|, computes d^2 / (2 beta) where d < beta and d - beta / 2 elsewhere, reduced by `reduction`."""

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean", beta=1.0):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input, target):
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """With d = |input - target|, computes d^2 / 2 where d <= delta and delta * (d - delta / 2) elsewhere, reduced by `reduction`.

    Raises TypeError if delta is not a number.
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input, target):
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """Computes target * (log(target) - input), reduced by `reduction`, where input holds log-probabilities. reduction may also be "batchmean".

    log_target: True if target holds log-probabilities too.
    """

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean", log_target: bool = False):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input, target):
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_WeightedLoss):
    """Computes the binary cross entropy of probabilities `input` and targets in [0, 1], reduced by `reduction`."""

    def forward(self, input, target):
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Computes the binary cross entropy of sigmoid(input), reduced by `reduction`. weight: factors of all terms. pos_weight: factors of the term
    target * log(sigmoid(input))."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction: str = "mean", pos_weight=None):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input, target):
        return F.binary_cross_entropy_with_logits(input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """Computes -weight[t] * input[t] for each class t in target, reduced by `reduction`. input: log-probabilities (C), (N, C) or (N, C, d1, ...).

    Targets equal to ignore_index are skipped.
    """

    def __init__(self, weight=None, size_average=None, ignore_index: int = -100, reduce=None, reduction: str = "mean"):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input, target):
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """NLLLoss under a deprecated name. The constructor warns."""

    def __init__(self, *args, **kwargs):
        warnings.warn("NLLLoss2d has been deprecated. Please use NLLLoss instead as a drop-in replacement and see "
                      "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.", FutureWarning, stacklevel=2)
        super().__init__(*args, **kwargs)


class CrossEntropyLoss(_WeightedLoss):
    """Computes NLLLoss of log_softmax(input), reduced by `reduction`. input: scores (C), (N, C) or (N, C, d1, ...).

    target: class indices, or class probabilities in the shape of input. label_smoothing: the fraction of each target that is spread evenly over all
    classes.

    >>> loss = nn.CrossEntropyLoss()
    >>> loss(gradus.zeros(3, 5), gradus.tensor([1, 0, 4])).item() == gradus.tensor(5.).log().item()
    True
    """

    def __init__(self, weight=None, size_average=None, ignore_index: int = -100, reduce=None, reduction: str = "mean", label_smoothing: float = 0.0):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input, target):
        return F.cross_entropy(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
                               label_smoothing=self.label_smoothing)


class LinearCrossEntropyLoss(_WeightedLoss):
    """Computes CrossEntropyLoss of the scores of a Linear layer, for input (N, in_features).

    The scores are (N, num_classes) or (N, num_classes, *out_features). Raises RuntimeError if `weight` does not have the shape (num_classes,), or if
    label_smoothing is not in [0, 1].

    >>> loss = nn.LinearCrossEntropyLoss(4, 5)
    >>> loss(gradus.randn(3, 4), gradus.tensor([1, 0, 4])).dim()
    0
    """

    def __init__(self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False, device=None, dtype=None,
                 reduction: str = "mean", weight=None, ignore_index: int | None = None, label_smoothing: float = 0.0,
                 options: LinearCrossEntropyOptions | None = None):
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if label_smoothing < 0 or label_smoothing > 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight=weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input, target):
        classes = (self.num_classes, *self.out_features)
        bias = None if self.linear.bias is None else self.linear.bias.reshape(classes)
        return F.linear_cross_entropy(input, self.linear.weight.reshape((*classes, self.linear.in_features)), target, linear_bias=bias,
                                      weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index,
                                      label_smoothing=self.label_smoothing, options=self.options)

    def extra_repr(self):
        return (f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
                f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
                f"label_smoothing={self.label_smoothing}, options={self.options}")


class PoissonNLLLoss(_Loss):
    """Computes exp(input) - target * input, reduced by `reduction`.

    log_input: if false, the loss is input - target * log(input + eps). full: adds Stirling's approximation of log(target!).
    """

    def __init__(self, log_input: bool = True, full: bool = False, size_average=None, eps=1e-8, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input, target):
        return F.poisson_nll_loss(log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """Computes (log(var) + (input - target)^2 / var) / 2, reduced by `reduction`. full: adds the constant log(2 pi) / 2."""

    def __init__(self, *, full: bool = False, eps=1e-6, reduction: str = "mean"):
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input, target, var):
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class _MarginLoss(_Loss):
    """Base of losses with the attribute `margin`."""

    def __init__(self, margin: float = 0.0, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class MarginRankingLoss(_MarginLoss):
    """Computes max(0, -target * (input1 - input2) + margin), reduced by `reduction`."""

    def forward(self, input1, input2, target):
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """Computes 1 - cos(input1, input2) where target is 1 and max(0, cos(input1, input2) - margin) where target is -1, reduced by `reduction`."""

    def forward(self, input1, input2, target):
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """Computes `input` where target is 1 and max(0, margin - input) where target is -1, reduced by `reduction`."""

    def __init__(self, margin: float = 1.0, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input, target):
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """Computes log(1 + exp(-target * input)), reduced by `reduction`."""

    def forward(self, input, target):
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Sums max(0, 1 - input[t] + input[i]) over all target classes t and all other classes i, and divides the sum by the number of classes.

    The losses of the samples are reduced by `reduction`.
    """

    def forward(self, input, target):
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Computes the binary cross entropy of sigmoid(input), averaged over the classes, reduced by `reduction`."""

    def forward(self, input, target):
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Sums max(0, margin - input[t] + input[i])^p over all classes i except the target class t, and divides the sum by the number of classes.

    The losses of the samples are reduced by `reduction`. Raises ValueError if p is neither 1 nor 2, or `weight` is not one-dimensional.
    """

    def __init__(self, p=1, margin: float = 1.0, weight=None, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input, target):
        return F.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """Computes max(0, margin + |anchor - positive| - |anchor - negative|) with p-norms, reduced by `reduction`.

    Raises ValueError if margin is not positive.
    """

    def __init__(self, margin: float = 1.0, p=2.0, eps=1e-6, swap: bool = False, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap,
                                     reduction=self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """Computes TripletMarginLoss with `distance_function`, a function of two tensors; PairwiseDistance when None."""

    def __init__(self, *, distance_function=None, margin: float = 1.0, swap: bool = False, reduction: str = "mean"):
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead")
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=self.distance_function, margin=self.margin,
                                                   swap=self.swap, reduction=self.reduction)


class CTCLoss(_Loss):
    """Computes the connectionist temporal classification loss (Graves et al., 2006).

    The loss is -log of the probability that the network's output, after merging repeated labels and removing blanks, is the target. log_probs:
    a result of log_softmax with the shape (steps, samples, classes). targets: a padded tensor (samples, labels), or a one-dimensional tensor with
    the labels of all samples, one sample after another.

    >>> log_probs = gradus.full((3, 1, 2), 0.5).log()
    >>> nn.CTCLoss(reduction="sum")(log_probs, gradus.tensor([[1]]), [3], [1]).exp()
    tensor(1.3333)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)
