"""Tests the functions that make tensors from Python objects: torch.tensor, as_tensor, asarray, frombuffer, Tensor(...) and others. The results are
compared with PyTorch's if PyTorch accepts the object."""
import array
import fractions
import gc
import random
import sys
import warnings

import numpy as np
import pytest

import gradus
from leaks import lost
from oracle import torch

NAMES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
         "complex64", "complex128"]


def agrees(ours, theirs):
    return (str(ours.dtype) == str(theirs.dtype) and tuple(ours.shape) == tuple(theirs.shape)
            and ours.requires_grad == theirs.requires_grad
            and np.array_equal(np.array(ours.detach().tolist()), np.array(theirs.detach().tolist()), equal_nan=True))


# ---- Nested sequences -----------------------------------------------------------------------------------------------------------------------


def random_data(rng, shape, kinds):
    if not shape:
        return rng.choice(kinds)(rng)
    items = [random_data(rng, shape[1:], kinds) for _ in range(shape[0])]
    return tuple(items) if rng.random() < 0.3 else items


KINDS = [lambda rng: rng.random() < 0.5, lambda rng: rng.randint(-5, 100), lambda rng: rng.uniform(-3, 3),
         lambda rng: complex(rng.uniform(-1, 1), rng.uniform(-1, 1))]


def test_nested_sequences():
    rng = random.Random(1)
    for _ in range(2000):
        shape = [rng.randint(1, 3) for _ in range(rng.randrange(5))]
        data = random_data(rng, shape, rng.sample(KINDS, rng.randint(1, 4)))
        assert agrees(gradus.tensor(data), torch.tensor(data)), data


@pytest.mark.parametrize("name", NAMES)
def test_tensor_with_a_given_dtype(name):
    kinds = [lambda rng: rng.random() < 0.5, lambda rng: rng.randint(0, 100), lambda rng: rng.uniform(0, 3)]
    if name.startswith("complex"):
        kinds.append(KINDS[3])
    if name == "uint64":
        del kinds[2]  # PyTorch accepts no floats for this dtype
    rng = random.Random(2)
    for _ in range(100):
        data = random_data(rng, [rng.randint(1, 3) for _ in range(rng.randrange(4))], kinds)
        assert agrees(gradus.tensor(data, dtype=getattr(gradus, name)), torch.tensor(data, dtype=getattr(torch, name))), data


@pytest.mark.parametrize("data", [
    [], [[]], [[], []], [[[]]], (), range(3), [range(2), range(2)], array.array("f", [1, 2]), bytearray(b"ab"), memoryview(b"ab"), 3, 2.5, True,
    1j, -2**63, [True, 2], [1, 2.5], [1.5, 2j], float("nan"), [float("inf"), 1e300],
])
def test_tensor_of_selected_data_agrees_with_pytorch(data):
    assert agrees(gradus.tensor(data), torch.tensor(data))


@pytest.mark.parametrize("data", [
    np.float64(1), np.float32(1), np.int32(3), np.bool_(True), np.complex64(1j), [np.float64(1)], [np.float32(1), 2.5], [np.int32(1), np.int8(2)],
    [np.bool_(True), np.bool_(False)], [np.int32(1), 2.5], [np.array([1, 2]), np.array([3, 4])],
])
def test_numpy_in_sequences(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert agrees(gradus.tensor(data), torch.tensor(data))


def test_tensors_in_sequences():
    one, two = gradus.tensor(1.5, dtype=gradus.float64), gradus.tensor([2])
    assert gradus.tensor([one, 2]).tolist() == [1.5, 2] and gradus.tensor([one, 2]).dtype == gradus.float64
    assert gradus.tensor([two, two]).tolist() == [2, 2]
    assert gradus.tensor([gradus.tensor([1, 2]), [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert gradus.tensor([gradus.ones(2, requires_grad=True), [3, 4]]).requires_grad is False


def test_tensor_uses_the_default_dtype():
    gradus.set_default_dtype(gradus.float64)
    try:
        assert gradus.tensor([1.5, 2]).dtype == gradus.float64
        assert gradus.tensor([1j]).dtype == gradus.complex128
        assert gradus.tensor([]).dtype == gradus.float64
    finally:
        gradus.set_default_dtype(gradus.float32)


def test_integers_at_and_beyond_the_limits_of_dtypes():
    assert gradus.tensor([2**64 - 1], dtype=gradus.uint64).tolist() == [2**64 - 1]
    assert gradus.tensor([-1], dtype=gradus.uint8).tolist() == [255]
    assert gradus.tensor([2**70], dtype=gradus.float64).tolist() == [2.0**70]


class Number:
    """An object whose conversion to a float calls `change`, which changes the list that contains the object."""

    def __init__(self, change):
        self.change = change

    def __float__(self):
        self.change()
        return 1.0


def nested(depth):
    data = 1
    for _ in range(depth):
        data = [data]
    return data


def ring():
    data = []
    data.append(data)
    return data


class Unwilling:
    def __len__(self):
        return 3

    def __getitem__(self, index):
        raise KeyError("unwilling")


def growing():
    data = [0.5]
    data[0] = Number(lambda: data.append(1))
    return data


def shrinking():
    data = [0.5, 0.5]
    data[0] = Number(data.clear)
    return data


@pytest.mark.parametrize("data, error, text", [
    ([[1, 2, 3], [1, 2]], ValueError, "expected sequence of length 3 at dim 1 (got 2)"),
    ([[1], []], ValueError, "expected sequence of length 1 at dim 1 (got 0)"),
    ([[], [1]], ValueError, "expected sequence of length 0 at dim 1 (got 1)"),
    ([[[1, 2]], [[1]]], ValueError, "expected sequence of length 2 at dim 2 (got 1)"),
    ([np.ones(2), np.ones(3)], ValueError, "expected sequence of length 2 at dim 1 (got 3)"),
    ([np.ones(2), np.ones((2, 1))], ValueError, "expected a sequence of 1 dimensions at dim 1 (got 2)"),
    ([1, [2]], TypeError, "expected a number, not list"),
    ([[1], 2], TypeError, "not a sequence"),
    ("abc", TypeError, "new(): invalid data type 'str'"),
    (b"abc", TypeError, "new(): invalid data type 'bytes'"),
    (["a"], ValueError, "too many dimensions 'str'"),
    ([1, "a"], TypeError, "new(): invalid data type 'str'"),
    (None, RuntimeError, "Could not infer dtype of NoneType"),
    ([1, None], RuntimeError, "Could not infer dtype of NoneType"),
    ({}, RuntimeError, "Could not infer dtype of dict"),
    ([fractions.Fraction(1, 2)], RuntimeError, "Could not infer dtype of Fraction"),
    (2**70, ValueError, "Overflow when unpacking long long"),
    ([2**63], ValueError, "Overflow when unpacking long long"),
    (nested(65), ValueError, "too many dimensions 'list'"),
    (ring(), ValueError, "too many dimensions"),
    (Unwilling(), KeyError, "unwilling"),
    ([Unwilling()], KeyError, "unwilling"),
    (np.array(["a"]), TypeError, "can't convert np.ndarray of type numpy.str_. The only supported types are: float64, float32, float16,"),
    (np.array([None]), TypeError, "can't convert np.ndarray of type numpy.object_."),
    (np.zeros(2, "M8[s]"), TypeError, "can't convert np.ndarray of type numpy.datetime64."),
    (np.zeros(2, "i4,i4"), TypeError, "can't convert np.ndarray of type numpy.void."),
    (np.zeros(2, ">i4"), ValueError, "given numpy array has byte order different from the native byte order."),
    (np.zeros(2, "i1,i4")["f1"], ValueError, "given numpy array strides not a multiple of the element byte size."),
])
def test_tensor_refuses_ragged_and_invalid_data(data, error, text):
    with pytest.raises(error) as caught:
        gradus.tensor(data)
    assert text in str(caught.value)


@pytest.mark.parametrize("data, dtype, error, text", [
    ([300], "uint8", RuntimeError, "value cannot be converted to type uint8 without overflow"),
    ([-256], "uint8", RuntimeError, "value cannot be converted to type uint8 without overflow"),
    ([128], "int8", RuntimeError, "value cannot be converted to type int8 without overflow"),
    ([-129], "int8", RuntimeError, "value cannot be converted to type int8 without overflow"),
    ([float("nan")], "int64", RuntimeError, "value cannot be converted to type int64 without overflow"),
    ([1e30], "int32", RuntimeError, "value cannot be converted to type int32 without overflow"),
    ([1j], "float32", TypeError, "must be real number, not complex"),
    ([1j], "int32", TypeError, "expected a number, not complex"),
    ([2**64], "uint64", OverflowError, ""),
    ([1, "a"], "float32", TypeError, "must be real number, not str"),
    ([1, "a"], "bool", TypeError, "expected a number, not str"),
    ([1, {}], "complex64", TypeError, "must be real number, not dict"),
    ([1, [2]], "float32", TypeError, "expected a number, not list"),
    (growing(), "float32", ValueError, "expected sequence of length 1 at dim 0 (got 2)"),
    (shrinking(), "float32", ValueError, "expected sequence of length 2 at dim 0 (got 0)"),
])
def test_tensor_refuses_values_that_overflow_the_dtype(data, dtype, error, text):
    with pytest.raises(error) as caught:
        gradus.tensor(data, dtype=getattr(gradus, dtype))
    assert text in str(caught.value)


# ---- Arguments of torch.tensor ------------------------------------------------------------------------------------------------------------------


def test_arguments_of_tensor():
    assert gradus.tensor(data=[1]).tolist() == [1]
    assert gradus.tensor([1.0], requires_grad=True).is_leaf
    assert gradus.tensor([1], dtype=float).dtype == gradus.float64
    assert gradus.tensor([1], device="meta").device.type == "meta"
    assert gradus.tensor([1], dtype=None, device=None, pin_memory=False).dtype == gradus.int64


@pytest.mark.parametrize("call, error, text", [
    (lambda: gradus.tensor(), TypeError, 'tensor() missing 1 required positional arguments: "data"'),
    (lambda: gradus.tensor(1, 2), TypeError, "tensor() takes 1 positional argument but 2 were given"),
    (lambda: gradus.tensor([1], foo=1), TypeError, "tensor() got an unexpected keyword argument 'foo'"),
    (lambda: gradus.tensor([1], data=1), TypeError, "tensor() got multiple values for argument 'data'"),
    (lambda: gradus.tensor([1], dtype="x"), TypeError, "tensor(): argument 'dtype' must be torch.dtype, not str"),
    (lambda: gradus.tensor([1], device=1.5), TypeError, "tensor(): argument 'device' must be torch.device, not float"),
    (lambda: gradus.tensor([1.0], requires_grad=1), TypeError, "tensor(): argument 'requires_grad' must be bool, not int"),
    (lambda: gradus.tensor([1], requires_grad=True), RuntimeError, "floating point and complex dtype can require gradients"),
    (lambda: gradus.tensor([1], device="foo"), RuntimeError, "foo"),
])
def test_tensor_refuses_wrong_arguments(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_tensor_of_a_tensor_warns():
    x = gradus.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="To copy construct from a tensor, it is recommended to use sourceTensor.detach"):
        y = gradus.tensor(x, dtype=gradus.float64)
    assert y.dtype == gradus.float64 and not y.requires_grad and y.is_leaf


def test_tensor_copies_arrays():
    a = np.arange(6.0).reshape(2, 3)
    for source in (a, a.T, a[::-1, ::2], np.broadcast_to(a, (2, 2, 3))):
        x = gradus.tensor(source)
        assert x.tolist() == source.tolist() and x.dtype == gradus.float64
        x.zero_()
    assert a.sum() == 15


# ---- as_tensor and asarray -----------------------------------------------------------------------------------------------------------------------


def test_as_tensor():
    x, a = gradus.ones(2, requires_grad=True), np.ones(2, np.float32)
    assert gradus.as_tensor(x) is x
    assert gradus.as_tensor(x, dtype=gradus.float64).grad_fn is not None
    gradus.as_tensor(a)[0] = 5
    assert a[0] == 5
    assert gradus.as_tensor(a, gradus.float64).dtype == gradus.float64
    assert gradus.as_tensor([1, 2]).tolist() == [1, 2]
    assert gradus.as_tensor(np.float32(2)).dtype == gradus.float32


def test_asarray():
    x, a = gradus.ones(2, requires_grad=True), np.ones(2, np.float32)
    assert gradus.asarray(x) is x
    assert gradus.asarray(x, copy=True).grad_fn is not None
    assert gradus.asarray(x, requires_grad=False).requires_grad is False
    gradus.asarray(a)[0] = 5
    gradus.asarray(a, copy=True)[0] = 6
    assert a[0] == 5
    assert gradus.asarray(bytearray(b"abcd"), dtype=gradus.uint8).tolist() == [97, 98, 99, 100]
    assert gradus.asarray(torch.ones(2)).tolist() == [1, 1]
    assert gradus.asarray(3).tolist() == 3
    assert gradus.asarray([1.5], requires_grad=True).is_leaf


@pytest.mark.parametrize("call, text", [
    (lambda: gradus.asarray([1], copy=False), "can't alias arbitrary sequence into a tensor."),
    (lambda: gradus.asarray(np.ones(2), copy=False, dtype=gradus.int32), "can't alias tensor with dtype 'Double' into dtype 'Int'."),
    (lambda: gradus.asarray(gradus.ones(2), copy=False, device="meta"), "can't alias tensor from device 'cpu' to 'meta'."),
    (lambda: gradus.asarray(bytearray(b"abcde"), dtype=gradus.int32),
     "buffer length (5 bytes) after offset (0 bytes) must be a multiple of element size (4)"),
])
def test_asarray_with_copy_false_refuses_what_it_cannot_alias(call, text):
    with pytest.raises(ValueError) as caught:
        call()
    assert text in str(caught.value)


class Interface:
    """An object that has NumPy's array interface and is no array."""

    def __init__(self, **changes):
        self.memory = np.arange(6, dtype=np.int32)
        self.__array_interface__ = {**self.memory.__array_interface__, **changes}


def test_asarray_uses_the_array_interface():
    owner = Interface()
    x = gradus.asarray(owner)
    x[0] = 9
    assert owner.memory[0] == 9
    references = sys.getrefcount(owner)
    del x
    gc.collect()
    assert sys.getrefcount(owner) < references
    assert gradus.asarray(Interface(shape=(2, 3))).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert gradus.tensor(Interface(shape=(3,), strides=(8,))).tolist() == [0, 2, 4]


@pytest.mark.parametrize("changes, error", [
    ({"shape": None}, TypeError), ({"shape": (1,) * 65}, ValueError), ({"shape": ("a",)}, TypeError), ({"shape": (-1,)}, RuntimeError),
    ({"typestr": 3}, ValueError), ({"typestr": "<"}, ValueError), ({"typestr": "<i3"}, TypeError), ({"typestr": ">i4"}, ValueError),
    ({"typestr": "<i-4"}, TypeError), ({"data": None}, ValueError), ({"data": ("a", False)}, TypeError), ({"data": (1, False)}, ValueError),
    ({"strides": (1,)}, ValueError), ({"strides": (4, 4)}, ValueError), ({"strides": ("a",)}, TypeError),
    ({"shape": (2**62, 2**62)}, (RuntimeError, ValueError)), ({"shape": (2**40, 1), "strides": (2**40, 4)}, (RuntimeError, ValueError)),
])
def test_asarray_refuses_an_invalid_array_interface(changes, error):
    with pytest.raises(error):
        gradus.asarray(Interface(**changes))


def test_asarray_refuses_an_array_interface_that_is_no_dict():
    class Odd:
        __array_interface__ = 3

    class Struct:
        __array_struct__ = 3

    for kind in (Odd, Struct):
        with pytest.raises(ValueError):
            gradus.asarray(kind())


# ---- frombuffer ----------------------------------------------------------------------------------------------------------------------------------


def test_frombuffer():
    memory = bytearray(b"abcdefgh")
    x = gradus.frombuffer(memory, dtype=gradus.uint8, count=2, offset=1)
    x[0] = 0
    assert x.tolist() == [0, 99] and memory[1] == 0
    with pytest.raises(BufferError):
        memory.append(1)  # refused, because the tensor still uses the array's buffer
    del x
    gc.collect()
    memory.append(1)
    assert gradus.frombuffer(array.array("d", [1.5]), dtype=gradus.float64, requires_grad=True).requires_grad
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        gradus.frombuffer(b"ab", dtype=gradus.uint8)


@pytest.mark.parametrize("buffer, options, text", [
    ([1], {}, "object does not implement Python buffer protocol."),
    (bytearray(), {}, "both buffer length (0) and count (-1) must not be 0"),
    (bytearray(4), {"count": 0}, "both buffer length (4) and count (0) must not be 0"),
    (bytearray(4), {"offset": 4}, "offset (4 bytes) must be non-negative and no greater than buffer length (4 bytes) minus 1"),
    (bytearray(4), {"offset": -1}, "offset (-1 bytes) must be non-negative"),
    (bytearray(5), {"dtype": "int32"}, "buffer length (5 bytes) after offset (0 bytes) must be a multiple of element size (4)"),
    (bytearray(4), {"count": 9}, "requested buffer length (9 * 1 bytes) after offset (0 bytes) must not be greater than actual buffer length (4 bytes)"),
    (bytearray(8), {"count": 2**62, "dtype": "int64"}, "must not be greater than actual buffer length"),
    (bytearray(9), {"offset": 1, "count": 1, "dtype": "int64"}, "not aligned"),
])
def test_frombuffer_refuses_invalid_buffers_and_ranges(buffer, options, text):
    dtype = getattr(gradus, options.pop("dtype", "uint8"))
    with pytest.raises(ValueError) as caught:
        gradus.frombuffer(buffer, dtype=dtype, **options)
    assert text in str(caught.value)


def test_frombuffer_requires_a_dtype():
    with pytest.raises(TypeError, match="missing 1 required positional arguments"):
        gradus.frombuffer(bytearray(4))
    with pytest.raises(TypeError, match="argument 'count' must be int, not str"):
        gradus.frombuffer(bytearray(4), dtype=gradus.uint8, count="a")


# ---- Tensor(...) and the other legacy constructors -----------------------------------------------------------------------------------------------


def test_tensor_constructor():
    x = gradus.tensor([[1.0, 2.0]])
    assert gradus.Tensor().shape == (0,)
    assert gradus.Tensor(2, 3).shape == gradus.Tensor(gradus.Size([2, 3])).shape == gradus.Tensor(size=(2, 3)).shape == (2, 3)
    assert gradus.Tensor([1, 2]).dtype == gradus.float32 and gradus.Tensor((2, 3)).tolist() == [2, 3]
    assert gradus.Tensor(x) is not x and gradus.Tensor(x).data_ptr() == x.data_ptr()
    assert gradus.Tensor(np.ones(2)).dtype == gradus.float32
    assert gradus.Tensor(x.untyped_storage()).tolist() == [1, 2]
    assert gradus.Tensor(2, device="cpu").shape == (2,)


@pytest.mark.parametrize("call, error, text", [
    (lambda: gradus.Tensor(2.5), TypeError, "new(): data must be a sequence (got float)"),
    (lambda: gradus.Tensor(None), TypeError, "new(): data must be a sequence (got NoneType)"),
    (lambda: gradus.Tensor("a"), TypeError, "new(): invalid data type 'str'"),
    (lambda: gradus.Tensor(1, "a"), TypeError, "argument 'size'"),
    (lambda: gradus.Tensor(-1), RuntimeError, "-1"),
    (lambda: gradus.Tensor(2, dtype=gradus.int64), TypeError, "unexpected keyword argument 'dtype'"),
    (lambda: gradus.Tensor(*range(70)), ValueError, "70"),
    (lambda: gradus.LongTensor(gradus.ones(2)), TypeError, "expected a torch.LongTensor"),
])
def test_tensor_constructor_refuses_wrong_arguments(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_legacy_tensor_classes_of_dtypes():
    assert gradus.LongTensor([1.5]).tolist() == [1]
    assert gradus.LongTensor(2).dtype == gradus.int64 and gradus.BoolTensor(3).shape == (3,)
    assert gradus.DoubleTensor([1]).dtype == gradus.float64
    assert isinstance(gradus.ones(2), gradus.FloatTensor) and not isinstance(gradus.ones(2), gradus.LongTensor)
    assert not isinstance(3, gradus.FloatTensor)
    assert str(gradus.FloatTensor) == "<class 'torch.FloatTensor'>"


# ---- Leaks ---------------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [
    [1.0, 2.0], [[1, 2], [3, 4]], [np.float32(1), 2], np.ones(3), [np.ones(2), np.ones(2)], Interface(), [[1, 2], [3]], [1, "a"], ["a"], nested(65),
    np.array(["a"]), np.zeros(2, ">i4"), Unwilling(), bytearray(b"abc"),
])
def test_conversions_leak_no_references(data):
    def make():
        for function in (gradus.tensor, gradus.as_tensor, gradus.asarray):
            try:
                function(data)
            except (ValueError, TypeError, RuntimeError, KeyError):
                pass

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert lost(make, data, data[0] if isinstance(data, list) else data) == 0
