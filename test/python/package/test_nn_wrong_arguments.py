"""Gives invalid values to every argument of every constructor and function of nn. The class and the text of the error must be PyTorch's.

The text may continue after PyTorch's and may name the function and the position of the argument differently. Where PyTorch fails by accident, the
error may be a TypeError that names the argument."""
import inspect
import re
import warnings

import pytest

import gradus
from oracle import torch

WRONG = {"'a'": lambda m: "a", "None": lambda m: None, "1.5": lambda m: 1.5, "-1": lambda m: -1, "[1]": lambda m: [1], "object": lambda m: Odd(), "True": lambda m: True,
         "a tensor": lambda m: m.ones(2)}

# Values for the required arguments of constructors.
GIVEN = {"normalized_shape": 2, "num_groups": 1, "num_channels": 2, "num_features": 2, "in_features": 2, "out_features": 2, "in1_features": 2, "in2_features": 2, "n_classes": 4, "num_classes": 4, "cutoffs": [2], "size": 3, "padding": 1,
         "d_model": 4, "nhead": 2, "embed_dim": 4, "num_heads": 2, "num_embeddings": 3, "embedding_dim": 2, "threshold": 0.5, "value": 1.0, "upscale_factor": 2,
         "downscale_factor": 2, "groups": 1, "dim": 0, "unflattened_size": (1, 2), "num_layers": 1, "output_size": 2, "kernel_size": 1, "in_channels": 2, "out_channels": 2,
         "input_size": 2, "hidden_size": 2, "mode": "GRU", "bias": True, "num_chunks": 1,
         "norm_type": 2.0}
MADE = {"module": lambda m: m.nn.Linear(2, 2), "encoder_layer": lambda m: m.nn.TransformerEncoderLayer(4, 2), "decoder_layer": lambda m: m.nn.TransformerDecoderLayer(4, 2)}

# Small values for arguments whose defaults would make large modules.
SMALL = {"dim_feedforward": 4, "num_encoder_layers": 1, "num_decoder_layers": 1, "d_model": 4, "nhead": 2}


def matrix(m):
    return m.tensor([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]])


def vector(m):
    return matrix(m)[0]


def classes(m):
    return m.tensor([0, 1])


def image(m):
    return m.arange(16.0).reshape(1, 4, 2, 2)


# CALLS[name](m) returns the positional arguments for the function `name` of nn.functional. A function without an entry gets two matrices if it is in
# PAIRS, otherwise one.
CALLS = {
    "batch_norm": lambda m: [matrix(m), None, None, None, None, True], "bilinear": lambda m: [matrix(m), matrix(m), m.ones(2, 4, 4)], "channel_shuffle": lambda m: [image(m), 2],
    "cosine_embedding_loss": lambda m: [matrix(m), matrix(m), m.ones(2)], "cross_entropy": lambda m: [matrix(m), classes(m)], "nll_loss": lambda m: [matrix(m), classes(m)],
    "embedding": lambda m: [classes(m), matrix(m)], "fold": lambda m: [m.ones(1, 4, 4), (4, 4), (2, 2)], "unfold": lambda m: [m.ones(1, 2, 4, 4), (2, 2)],
    "embedding_bag": lambda m: [m.tensor([[0, 1]]), matrix(m)], "linear_cross_entropy": lambda m: [matrix(m), matrix(m), classes(m)],
    "local_response_norm": lambda m: [image(m), 2], "gaussian_nll_loss": lambda m: [matrix(m), matrix(m), matrix(m)], "group_norm": lambda m: [image(m), 2], "instance_norm": lambda m: [image(m)],
    "layer_norm": lambda m: [matrix(m), (4,)], "rms_norm": lambda m: [matrix(m), (4,)], "linear": lambda m: [matrix(m), matrix(m)],
    "margin_ranking_loss": lambda m: [vector(m), vector(m), vector(m)], "multi_margin_loss": lambda m: [matrix(m), classes(m)],
    "multilabel_margin_loss": lambda m: [matrix(m), m.tensor([[0, 1, -1, 2], [1, -1, 0, 0]])], "one_hot": lambda m: [classes(m)], "pad": lambda m: [matrix(m), (1, 1)],
    "pixel_shuffle": lambda m: [image(m), 2], "pixel_unshuffle": lambda m: [image(m), 2], "prelu": lambda m: [matrix(m), m.tensor([0.1])],
    "scaled_dot_product_attention": lambda m: [matrix(m)] * 3, "threshold": lambda m: [matrix(m), 0.1, 0.2], "threshold_": lambda m: [matrix(m), 0.1, 0.2],
    "triplet_margin_loss": lambda m: [matrix(m)] * 3, "triplet_margin_with_distance_loss": lambda m: [matrix(m)] * 3, "dropout1d": lambda m: [image(m)[0]],
    **{f"conv{n}d": lambda m, n=n: [m.ones(1, 2, *[4] * n), m.ones(2, 2, *[1] * n)] for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": lambda m, n=n: [m.ones(1, 2, *[4] * n), m.ones(2, 2, *[1] * n)] for n in (1, 2, 3)},
    **{f"{kind}{n}d{which}": lambda m, n=n: [m.ones(1, 2, *[4] * n), 2] for n in (1, 2, 3) for kind, which in [("max_pool", ""), ("max_pool", "_with_indices"), ("avg_pool", "")]},
    **{f"lp_pool{n}d": lambda m, n=n: [m.ones(1, 2, *[4] * n), 2.0, 2] for n in (1, 2, 3)},
    **{f"adaptive_{kind}": lambda m, n=n: [m.ones(1, 2, *[4] * n), 2] for n in (1, 2, 3) for kind in (f"avg_pool{n}d", f"max_pool{n}d", f"max_pool{n}d_with_indices")},
    **{f"fractional_max_pool{n}d{which}": lambda m, n=n: [m.ones(1, 2, *[4] * n), 2, 2] for n in (2, 3) for which in ("", "_with_indices")},
    **{f"max_unpool{n}d": lambda m, n=n: [m.ones(1, 1, *[1] * n), m.zeros(1, 1, *[1] * n, dtype=m.int64), 2] for n in (1, 2, 3)},
    **{name: lambda m: [image(m), 4] for name in ("interpolate", "upsample", "upsample_nearest", "upsample_bilinear")},
    "grid_sample": lambda m: [image(m), m.zeros(1, 2, 2, 2)], "affine_grid": lambda m: [m.ones(1, 2, 3), (1, 1, 2, 2)],
    "ctc_loss": lambda m: [m.ones(3, 1, 2), m.ones(1, 1, dtype=m.int64), m.tensor([3]), m.tensor([1])], "native_channel_shuffle": lambda m: [image(m), 2],
    "multi_head_attention_forward": lambda m: [m.ones(2, 1, 4)] * 3 + [4, 2, m.ones(12, 4), m.ones(12), None, None, False, 0.0, m.ones(4, 4), m.ones(4)],
    "dropout2d": lambda m: [image(m)], "dropout3d": lambda m: [image(m)[:, None]], "feature_alpha_dropout": lambda m: [image(m)],
}
# Functions that have several signatures -> the parameter names that the test uses.
SEVERAL = {"ctc_loss": ["log_probs", "targets", "input_lengths", "target_lengths", "blank", "reduction", "zero_infinity"], "conv_tbc": ["input", "weight", "bias", "pad"],
           **{f"conv{n}d": "input weight bias stride padding dilation groups".split() for n in (1, 2, 3)},
           **{f"conv_transpose{n}d": "input weight bias stride padding output_padding groups dilation".split() for n in (1, 2, 3)}}
PAIRS = {"binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_similarity", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "mse_loss",
         "multilabel_soft_margin_loss", "pairwise_distance", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss"}
MORE = {"softmax": {"dim": 1}, "log_softmax": {"dim": 1}, "softmin": {"dim": 1}}

# LISTED maps "NAME ARGUMENT" to the reason of a known difference from PyTorch. NAME is a class or function. Several entries share the reasons in the
# constants before LISTED.
BY_KIND = "PyTorch's function is made of other functions, which accept more or fail inside; here it is an operator, which checks the kind of each argument"
TRUTH = "PyTorch asks for the truth of a tensor, which has none; here it is refused by its kind, or not asked"
SPACING = "PyTorch's text lacks a space"
ELEMENT = "a list of sizes is checked as one argument, not element by element"
POOL = "windows are checked in one place, by rules that hold for images of any number of dimensions"
INSIDE = "PyTorch fails inside, of a step on the way"
LISTED = {
    "conv_tbc bias": "the count of PyTorch depends on what comes first",
    **{f"{name} relevant_args": "which is no sequence: in the words of Python" for name in ("handle_torch_function", "has_torch_function")},
    **{f"{name} {argument}": ELEMENT for name in ("unfold", "fold") for argument in ("kernel_size", "dilation", "padding", "stride")},
    **{f"fractional_max_pool{n}d{which} {argument}": ELEMENT for n in (2, 3) for which in ("", "_with_indices") for argument in ("kernel_size", "output_size")},
    **{f"fractional_max_pool{n}d{which} _random_samples": POOL for n in (2, 3) for which in ("", "_with_indices")},
    **{f"{name}{n}d weight": "the number of dimensions is named" for name in ("conv", "conv_transpose") for n in (1, 2, 3)}, **{f"conv_transpose{n}d output_padding": POOL for n in (1, 2, 3)},
    **{f"ctc_loss {name}": "the operator takes the words of reduction itself" for name in ("log_probs", "targets", "input_lengths", "target_lengths", "blank", "reduction", "zero_infinity")},
    **{f"{name} input": POOL for name in ("max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
                                          "lp_pool2d", "lp_pool3d", "max_unpool2d", "max_unpool3d", "grid_sample")},
    **{f"{name} output_size": POOL for name in (*(f"adaptive_max_pool{n}d{which}" for n in (1, 2, 3) for which in ("", "_with_indices")), *(f"adaptive_avg_pool{n}d" for n in (1, 2, 3)), "max_unpool2d")},
    **{f"max_pool1d {name}": POOL for name in ("kernel_size", "stride", "padding", "dilation")},
    **{f"lp_pool{n}d {name}": INSIDE for n in (1, 2, 3) for name in ("norm_type", "kernel_size")}, "grid_sample grid": POOL,
    **{f"max_unpool{n}d {name}": INSIDE for n in (1, 2, 3) for name in ("kernel_size", "stride", "padding")},
    **{f"{name} size": INSIDE for name in ("interpolate", "upsample", "upsample_bilinear", "upsample_nearest")},
    **{f"multi_head_attention_forward {name}": "both are checked in one place" for name in ("bias_k", "bias_v", "use_separate_proj_weight", "num_heads")},
    **{f"multi_head_attention_forward {name}": "refused as by linear" for name in ("in_proj_weight", "out_proj_weight")},
    "ModuleDict modules": SPACING, "ParameterDict parameters": SPACING, "layer_norm input": SPACING, "layer_norm normalized_shape": SPACING + ", and a list may be given as one number here",
    "rms_norm input": SPACING, "rms_norm normalized_shape": SPACING + ", and a list may be given as one number here",
    "interpolate mode": "a list cannot be looked up", "upsample mode": "a list cannot be looked up",
    **{f"{name} p": BY_KIND for name in ("dropout", "alpha_dropout", "feature_alpha_dropout")}, **{f"hardtanh {name}": BY_KIND for name in ("min_val", "max_val")},
    **{f"local_response_norm {name}": BY_KIND for name in ("size", "alpha", "beta", "k")}, **{f"multilabel_soft_margin_loss {name}": BY_KIND for name in ("target", "weight")},
    **{f"LinearCrossEntropyOptions {name}": "PyTorch fails inside" for name in ("chunking_method", "acc_policy", "acc_dtype")}, "embedding_bag include_last_offset": BY_KIND,
    "linear_cross_entropy reduction": BY_KIND, "linear_cross_entropy label_smoothing": "PyTorch takes negative ones", "linear_cross_entropy options": "they have no effect",
    "embedding_bag sparse": "there are no sparse gradients", "hardtanh_ min_val": "refused as by hardtanh", "bilinear weight": "its number of dimensions is checked first", "softmin input": BY_KIND,
    **{f"gumbel_softmax {name}": BY_KIND for name in ("logits", "tau", "hard")}, "embedding padding_idx": TRUTH, "smooth_l1_loss beta": TRUTH,
    "batch_norm input": "a vector is refused as such before its channels are counted", "instance_norm input": "as batch_norm", "unfold input": "as batch_norm",
    "binary_cross_entropy weight": "the words of broadcasting", "cross_entropy label_smoothing": "PyTorch takes negative ones", "embedding input": "PyTorch names the type of a tensor",
    "embedding sparse": "there are no sparse gradients", "fold output_size": "the number of blocks is not calculated again",
    **{f"gaussian_nll_loss {name}": BY_KIND for name in ("target", "var", "full", "eps", "reduction")}, **{f"normalize {name}": BY_KIND for name in ("p", "dim", "eps", "out")},
    "multilabel_soft_margin_loss reduction": BY_KIND, "poisson_nll_loss reduction": BY_KIND, "multi_margin_loss p": BY_KIND, "group_norm num_groups": BY_KIND,
    "group_norm bias": "PyTorch shows the shape of the absent weight", "layer_norm cudnn_enable": "an argument of torch.layer_norm", "pad pad": "a list may be given as one number here",
    "pad value": "the value may be an integer that no float holds", "scaled_dot_product_attention dropout_p": "refused as by dropout", "softshrink lambd": "infinity is not refused",
}


class Odd:
    """An object of a type that no function accepts."""


def raised(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **kwargs)
        except Exception as error:
            return type(error).__name__, normalized(str(error))
    return "", ""


def normalized(text):
    """Returns the text of an error without the function's name, the position of the argument, the library's names and a list of signatures."""
    text = text.partition(", but expected one of:")[0].partition("padding_mode must be one of {")[0]
    text = re.sub(r"0x[0-9a-f]+", "0x", text.replace("gradus Tensor", "torch Tensor").replace("gradus.", "torch.").replace("torch.Tensor", "Tensor"))
    argument = re.match(r"\w+\(\): argument '(\w+)'(?: \(position \d+\))? (.*)", text, re.S)
    if argument:
        return f"argument '{argument[1].replace('training', 'train')}' {argument[2]}"
    attribute = re.match(r"'(\w+)' object has no attribute '\w+'", text)
    return f"{attribute[1]} has no attribute" if attribute else text


def agree(ours, theirs):
    if theirs[0] == "AttributeError" and ours[0] == "TypeError" and ours[1].startswith("argument"):
        return True
    return ours[0] == theirs[0] and ours[1].startswith(theirs[1])


def names(function):
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


def make(m, name, argument, wrong):
    given = {argument: wrong(m)}
    for p in inspect.signature(getattr(torch.nn, name)).parameters.values():
        if p.name != argument and p.name in SMALL:
            given[p.name] = SMALL[p.name]
        elif p.name != argument and p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
            given[p.name] = MADE[p.name](m) if p.name in MADE else GIVEN[p.name]
    return raised(getattr(m.nn, name), **given)


def call(m, name, parameters, argument, wrong):
    positional = CALLS[name](m) if name in CALLS else [matrix(m)] * (2 if name in PAIRS else 1)
    given = dict(zip(parameters, positional)) | MORE.get(name, {}) | {argument: wrong(m)}
    m.manual_seed(0)
    return raised(getattr(m.nn.functional, name), *[given.pop(p) for p in parameters[:len(positional)]], **given)


def classes_of_nn():
    found = [name for name in dir(gradus.nn) if inspect.isclass(getattr(gradus.nn, name)) and name != "Module"]
    for name in found:
        for argument in names(getattr(torch.nn, name)):
            for text, wrong in WRONG.items():
                yield name, argument, text, make(gradus, name, argument, wrong), make(torch, name, argument, wrong)


def functions_of_nn():
    for name in [n for n in gradus.nn.functional.__all__ if callable(getattr(torch.nn.functional, n, None)) and not isinstance(getattr(gradus.nn.functional, n), type)]:
        parameters = SEVERAL.get(name) or names(getattr(gradus.nn.functional, name))
        for argument in parameters:
            for text, wrong in WRONG.items():
                yield name, argument, text, call(gradus, name, parameters, argument, wrong), call(torch, name, parameters, argument, wrong)


@pytest.mark.parametrize("part", [classes_of_nn, functions_of_nn])
def test_errors_of_invalid_arguments_are_those_of_pytorch(part):
    differing, seen = {}, 0
    for name, argument, text, ours, theirs in part():
        seen += 1
        if not agree(ours, theirs):
            differing.setdefault(f"{name} {argument}", (text, ours, theirs))
    assert seen > 2000
    assert {key: found for key, found in differing.items() if key not in LISTED} == {}
    listed = {key for key in LISTED if hasattr(gradus.nn if part is classes_of_nn else gradus.nn.functional, key.split()[0])}
    assert listed - set(differing) == set(), "these are PyTorch's now"


def test_errors_of_lists_name_the_position_of_the_element():
    x = gradus.ones(2, 2)
    for call in (lambda: gradus.nn.Linear("a", 2), lambda: x.view(2, "a"), lambda: gradus.zeros((2, "a")), lambda: x.sum((0, "a"))):
        with pytest.raises(TypeError, match=r'failed to unpack the object at pos 2 with error "type must be tuple of ints,but got str"'):
            call()
    with pytest.raises(TypeError, match="found element of type str at pos 0"):
        gradus.zeros(("a", 2))
    assert gradus.zeros((2, True)).shape == (2, 1)
