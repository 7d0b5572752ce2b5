"""Calls a function with the same tensors in PyTorch and in Gradus, and compares results, gradients and errors."""
import warnings

import numpy

import gradus
from oracle import torch


def of(module, value):
    """Returns a leaf tensor of the library `module` with the elements, dtype and strides of the PyTorch tensor `value`. Returns `value` itself
    if it is no tensor."""
    if not isinstance(value, torch.Tensor):
        return value
    t = value.detach().clone()
    if module is gradus:
        dtype = getattr(gradus, str(value.dtype).split(".")[1])
        dense = gradus.tensor(t.contiguous().to(torch.float64 if t.is_floating_point() else t.dtype).numpy()).to(dtype)
        t = gradus.empty_strided(tuple(value.shape), value.stride(), dtype=dtype).copy_(dense)
    return t.requires_grad_(value.requires_grad)


def outcome(module, function, arguments, keywords):
    """Returns ("raises", class, text) or ("gives", facts, arrays). `facts` lists strides, sizes and dtypes, which must be equal for both libraries.
    `arrays` lists the elements of each tensor, which must be close."""
    given, named = [of(module, value) for value in arguments], {name: of(module, value) for name, value in keywords.items()}
    module.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = function(module)(*given, **named)
        except Exception as error:
            return "raises", type(error).__name__, str(error)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        leaves = [t for t in [*given, *named.values()] if isinstance(t, module.Tensor) and t.requires_grad]
        gradients = []
        if results[0].requires_grad:
            weights = of(module, torch.linspace(0.5, 1.5, results[0].numel()).reshape(tuple(results[0].shape)))
            gradients = module.autograd.grad(results[0], leaves, weights.to(results[0].dtype), allow_unused=True)
    tensors = [t for t in [*results, *gradients, *[t for t in given if isinstance(t, module.Tensor)]] if t is not None]
    facts = [[t.stride() if t.numel() else () for t in results], [(tuple(t.shape), str(t.dtype).split(".")[1]) for t in tensors]]
    return "gives", facts, [numpy.array(t.detach().double().tolist()) for t in tensors]


def agree(function, *arguments, tolerance=1e-5, **keywords):
    """Asserts that function(module) gives the same results with PyTorch and with Gradus: sizes, dtypes, strides, elements and gradients of the
    results, and the elements that it writes to its arguments. If one library raises an error, the other must raise an error of the same class."""
    ours, theirs = outcome(gradus, function, arguments, keywords), outcome(torch, function, arguments, keywords)
    what = [tuple(value.shape) if isinstance(value, torch.Tensor) else value for value in arguments], keywords
    assert ours[:2] == theirs[:2], (what, ours[:3], theirs[:3])
    if ours[0] == "gives":
        for a, b in zip(ours[2], theirs[2]):
            numpy.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=str(what))
