"""Tests the legacy constructors: Variable(...), Tensor(...), FloatTensor(...) and x.new(...)."""
import numpy
import pytest
from both import caught, same

import gradus
from oracle import torch

FLAGS = {"leaf": lambda t: t.ones(3), "wants": lambda t: t.ones(3, requires_grad=True), "computed": lambda t: t.ones(3, requires_grad=True) * 2,
         "parameter": lambda t: t.nn.Parameter(t.ones(3)), "view": lambda t: t.ones(2, 3)[:, 1], "integer": lambda t: t.arange(3)}
MAKERS = {
    "Variable": lambda t, x: t.autograd.Variable(x),
    "Variable(requires_grad)": lambda t, x: t.autograd.Variable(x, requires_grad=True),
    "Tensor": lambda t, x: t.Tensor(x),
    "FloatTensor": lambda t, x: t.FloatTensor(x),
    "new": lambda t, x: x.new(x),
}


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("maker", MAKERS)
def test_constructors_given_a_tensor(flags, maker):
    def program(t):
        x = FLAGS[flags](t)
        try:
            y = MAKERS[maker](t, x)
        except (RuntimeError, TypeError) as error:
            return type(error).__name__
        return [y is x, type(y).__name__, y.requires_grad, y.is_leaf, y.data_ptr() == x.data_ptr(), list(y.shape), list(y.stride()), str(y.dtype)[-5:]]

    same(program)


def test_gradients_flow_through_aliases_made_by_constructors():
    def program(t):
        x = t.ones(3, requires_grad=True)
        (t.Tensor(x * 2) * x.new(x)).sum().backward()
        return x.grad

    assert same(program) == [4, 4, 4]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
@pytest.mark.parametrize("maker", [lambda t: t.Tensor, lambda t: t.FloatTensor, lambda t: t.DoubleTensor, lambda t: t.LongTensor, lambda t: t.ones(1).new,
                                   lambda t: t.tensor, lambda t: t.ones(1).new_tensor])
def test_constructors_given_an_array(maker, dtype):
    def program(t):
        array = numpy.ones((2, 3), dtype).T
        x = maker(t)(array)
        x[0, 0] = 7
        return [bool(array[0, 0] == 7), str(x.dtype).split(".")[1], list(x.shape)]

    same(program)


@pytest.mark.parametrize("call", [
    lambda t: t.Tensor(2, 3).shape, lambda t: t.Tensor([2, 3]), lambda t: t.Tensor((2, 3)), lambda t: t.Tensor(t.Size([2, 3])).shape,
    lambda t: t.Tensor(), lambda t: t.Tensor(data=[2]), lambda t: t.Tensor(range(3)), lambda t: t.Tensor(device="cpu"), lambda t: t.Tensor(t.arange(2)),
    lambda t: t.ones(2).new(2, 3).shape, lambda t: t.ones(2).new([1, 2]), lambda t: t.arange(2).new([1.5]), lambda t: t.ones(2).half().new(2).shape,
    lambda t: t.ones(2).new(), lambda t: t.ones(2).new(size=(2,)).shape, lambda t: t.ones(2).new([1.0], device="cpu"),
    lambda t: t.ones(2).new(t.ones(3).untyped_storage()), lambda t: t.autograd.Variable(), lambda t: t.autograd.Variable(t.ones(1), requires_grad=1),
    lambda t: isinstance(t.ones(1), t.autograd.Variable),
])
def test_argument_forms_of_constructors(call):
    same(call)


@pytest.mark.parametrize("call", [
    lambda t: t.Tensor(True), lambda t: t.Tensor("abc"), lambda t: t.Tensor(3.0), lambda t: t.Tensor(None), lambda t: t.Tensor({1: 2}), lambda t: t.Tensor(-1),
    lambda t: t.Tensor([[1, 2], [3]]), lambda t: t.Tensor([1.0], device="meta"), lambda t: t.Tensor(t.ones(1), device="cpu"),
    lambda t: t.autograd.Variable(3), lambda t: t.autograd.Variable([1, 2]),
])
def test_invalid_arguments_of_constructors_are_refused(call):
    assert caught(call, gradus) == caught(call, torch)


def test_constructors_given_a_read_only_array_and_volatile_warn():
    array = numpy.ones(3, "float32")
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        gradus.Tensor(array)
    with pytest.warns(UserWarning, match="volatile was removed"):
        gradus.autograd.Variable(gradus.ones(1), volatile=True)
