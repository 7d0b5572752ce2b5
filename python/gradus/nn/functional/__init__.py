"""The functions behind the modules of gradus.nn: PyTorch's signatures over the operators of gradus._C, without state.

A file per topic; _linear.py also has embedding and one_hot.
"""
from ._activation import (celu, celu_, elu, elu_, gelu, glu, gumbel_softmax, hardshrink, hardsigmoid, hardswish, hardtanh, hardtanh_,
                         leaky_relu, leaky_relu_, log_softmax, logsigmoid, mish, prelu, relu, relu6, relu_, rrelu, rrelu_, selu, selu_,
                         sigmoid, silu, softmax, softmin, softplus, softshrink, softsign, tanh, tanhshrink, threshold, threshold_)
from ._attention import scaled_dot_product_attention
from ._distance import cosine_similarity, normalize, pairwise_distance
from ._dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from ._fold import fold, unfold
from ._linear import bilinear, embedding, linear, one_hot
from ._loss import (binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, huber_loss, kl_div, l1_loss, mse_loss, nll_loss,
                   smooth_l1_loss)
from ._margin_loss import (cosine_embedding_loss, hinge_embedding_loss, margin_ranking_loss, multi_margin_loss, multilabel_margin_loss,
                          multilabel_soft_margin_loss, soft_margin_loss, triplet_margin_loss, triplet_margin_with_distance_loss)
from ._normalization import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from ._padding import pad
from ._pixel import channel_shuffle, pixel_shuffle, pixel_unshuffle
from ._likelihood_loss import gaussian_nll_loss, poisson_nll_loss

__all__ = ["alpha_dropout", "batch_norm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "celu_", "channel_shuffle",
           "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "elu_",
           "embedding", "feature_alpha_dropout", "fold", "gaussian_nll_loss", "gelu", "glu", "group_norm", "gumbel_softmax", "hardshrink",
           "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "hinge_embedding_loss", "huber_loss", "instance_norm", "kl_div", "l1_loss",
           "layer_norm", "leaky_relu", "leaky_relu_", "linear", "log_softmax", "logsigmoid", "margin_ranking_loss", "mish", "mse_loss",
           "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pad",
           "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6", "relu_", "rms_norm", "rrelu",
           "rrelu_", "scaled_dot_product_attention", "selu", "selu_", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin",
           "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_", "triplet_margin_loss",
           "triplet_margin_with_distance_loss", "unfold"]
