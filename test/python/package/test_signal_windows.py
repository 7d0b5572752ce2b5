"""Compares window functions with PyTorch: values, dtypes, errors."""
import gradus
import pytest
from oracle import torch

OLD = ["hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"]
NEW = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall"]
LENGTHS = (0, 1, 2, 5, 100, 257)


def both(name, *args, **options):
    """Returns [result in Gradus, result in PyTorch], in which an error is replaced by its class and text."""
    results = []
    for module in (gradus, torch):
        owner = module if name in OLD else module.signal.windows
        words = {key: getattr(module, value) if isinstance(value, str) else value for key, value in options.items()}
        try:
            results.append(getattr(owner, name)(*args, **words))
        except Exception as error:
            results.append((type(error).__name__, str(error)))
    return results


def close(ours, theirs, tolerance):
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1] and ours.shape == tuple(theirs.shape) and ours.stride() == theirs.stride()
    assert ours.tolist() == pytest.approx(theirs.tolist(), abs=tolerance)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-14), ("float32", 2e-6), ("float16", 4e-3), ("bfloat16", 4e-2)])
@pytest.mark.parametrize("name", OLD)
def test_window_functions_of_torch(name, dtype, tolerance):
    for length in LENGTHS:
        for periodic in (True, False):
            close(*both(name, length, periodic, dtype=dtype), tolerance)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-13), ("float32", 5e-6)])
@pytest.mark.parametrize("name", NEW)
def test_window_functions_of_torch_signal(name, dtype, tolerance):
    words = {"general_cosine": {"a": [0.4, 0.3, 0.2, 0.1]}}.get(name, {})
    for length in LENGTHS:
        for sym in (True, False):
            close(*both(name, length, sym=sym, dtype=dtype, **words), tolerance)


@pytest.mark.parametrize("name, args, options", [
    ("hamming_window", (7, True, 0.3, 0.2), {}), ("kaiser_window", (7, False, 3.0), {}), ("kaiser", (7,), {"beta": 3.0}), ("gaussian", (7,), {"std": 2.5}),
    ("exponential", (7,), {"tau": 3.0}), ("exponential", (7,), {"tau": 3.0, "center": 1.0, "sym": False}), ("general_hamming", (7,), {"alpha": 0.3}),
    ("general_cosine", (7,), {"a": (0.5,)})])
def test_parameters_of_windows(name, args, options):
    close(*both(name, *args, **options), 1e-6)


@pytest.mark.parametrize("name", OLD)
@pytest.mark.parametrize("args, options", [((-1,), {}), ((3,), {"dtype": "int64"}), ((3,), {"dtype": "bool"}), ((0,), {"dtype": "uint8"}), ((3,), {"dtype": "complex64"})])
def test_errors_of_window_functions_of_torch(name, args, options):
    ours, theirs = both(name, *args, **options)
    assert ours == theirs


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("args, options", [((-1,), {}), ((3,), {"dtype": "int64"}), ((3,), {"dtype": "float16"})])
def test_errors_of_window_functions_of_torch_signal(name, args, options):
    ours, theirs = both(name, *args, **options, **({"a": [1.0]} if name == "general_cosine" else {}))
    assert ours == theirs


@pytest.mark.parametrize("name, options", [
    ("kaiser", {"beta": -1.5}), ("gaussian", {"std": -0.5}), ("exponential", {"tau": -0.5}), ("exponential", {"center": 1.0}), ("general_cosine", {"a": []}), ("general_cosine", {"a": 3})])
def test_invalid_parameters_of_windows_are_refused(name, options):
    ours, theirs = both(name, 4, **options)
    assert ours == theirs


@pytest.mark.parametrize("name", OLD + NEW)
def test_windows_take_factory_arguments(name):
    """A window is a leaf, which may require a gradient. It has the default dtype, and the device that is given."""
    owner, words = (gradus, {}) if name in OLD else (gradus.signal.windows, {"a": [0.5, 0.5]} if name == "general_cosine" else {})
    function = getattr(owner, name)
    window = function(5, requires_grad=True, **words)
    assert window.requires_grad and window.is_leaf and window.dtype == gradus.float32
    assert function(5, device="meta", **words).is_meta
    before = gradus.get_default_dtype()
    gradus.set_default_dtype(gradus.float64)
    try:
        assert function(5, **words).dtype == gradus.float64
    finally:
        gradus.set_default_dtype(before)
