"""Tests reading and writing by indices. Random indices are compared with NumPy and PyTorch; other tests are about gradients, the meaning of each form
of index, and errors."""
import random

import numpy as np
import pytest

import gradus
import nn_programs
from index_cases import for_gradus, for_torch, in_two_steps, random_index, random_shape
from leaks import lost
from oracle import torch

CASES = 3000
FORWARD = (None, 1, 2, 3)  # steps of slices for comparisons with PyTorch, which has no negative steps


def numbers(shape, dtype=np.float64):
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def same(result, expected):
    result = result.detach().numpy() if isinstance(result, gradus.Tensor) else result
    return result.shape == tuple(expected.shape) and result.dtype == expected.dtype and np.array_equal(result, expected)


def cases(seed, **options):
    rng = random.Random(seed)
    for _ in range(CASES):
        shape = random_shape(rng)
        yield rng, shape, random_index(rng, shape, **options)


# ---- Compared with NumPy: slices with steps of both signs ---------------------------------------------------------------------------


def test_reading_agrees_with_numpy():
    for _, shape, parts in cases(1):
        array = numbers(shape)
        views, names = in_two_steps(array, parts)
        result = gradus.tensor(array)[for_gradus(parts)]
        assert same(result, array[views][names]), (shape, parts)


def test_views_share_memory():
    for _, shape, parts in cases(2, names=False):
        x = gradus.tensor(numbers(shape))
        view = x[for_gradus(parts)]
        assert view is not x
        view.fill_(-1.0)
        expected = numbers(shape)
        expected[in_two_steps(expected, parts)[0]] = -1
        assert same(x, expected), (shape, parts)


def value_for(rng, shape):
    """Returns a value that broadcasts to `shape`: a number, or an array of the last dimensions of `shape`, some of them replaced by 1."""
    if rng.random() < 0.3:
        return rng.choice([2.5, 3, True, np.float32(1.5)])
    shape = tuple(1 if rng.random() < 0.2 else n for n in shape[rng.randint(0, len(shape)):])
    return -1 - numbers(shape, rng.choice([np.float64, np.float32, np.int64]))


def test_writing_agrees_with_numpy():
    for rng, shape, parts in cases(3):
        expected = numbers(shape)
        views, names = in_two_steps(expected, parts)
        value = value_for(rng, expected[views][names].shape)
        x = gradus.tensor(expected)
        if names:
            expected[views][names] = value
        else:
            expected[views] = value
        x[for_gradus(parts)] = gradus.tensor(value, dtype=x.dtype) if isinstance(value, np.ndarray) and rng.random() < 0.7 else value
        assert same(x, expected), (shape, parts, value)


# ---- Compared with PyTorch: values and gradients ---------------------------------------------------------------------------------------


def test_reading_agrees_with_pytorch():
    for _, shape, parts in cases(4, steps=FORWARD):
        array = numbers(shape)
        assert same(gradus.tensor(array)[for_gradus(parts)], torch.from_numpy(array)[for_torch(parts)].numpy()), (shape, parts)


def test_gradients_of_reading():
    for rng, shape, parts in cases(5, steps=FORWARD):
        if rng.random() < 0.7:
            continue
        array = numbers(shape)
        x, y = gradus.tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)
        taken = y[for_torch(parts)]
        weight = 1 + numbers(tuple(taken.shape))
        (x[for_gradus(parts)] * gradus.tensor(weight)).sum().backward()
        (taken * torch.tensor(weight)).sum().backward()
        assert same(x.grad, y.grad.numpy()), (shape, parts)


def test_gradients_of_writing():
    for rng, shape, parts in cases(6, steps=FORWARD):
        if rng.random() < 0.7:
            continue
        array, size = numbers(shape), tuple(torch.zeros(shape)[for_torch(parts)].shape)
        value = -1 - numbers(tuple(1 if rng.random() < 0.2 else n for n in size[rng.randint(0, len(size)):]))
        results = []
        for library, index in ((gradus, for_gradus(parts)), (torch, for_torch(parts))):
            x, v = library.tensor(array, requires_grad=True), library.tensor(value, requires_grad=True)
            y = x * 2
            y[index] = v
            (y * library.tensor(1 + array)).sum().backward()
            results.append((y, x.grad, v.grad))
        names = [part for part in parts if hasattr(part, "array")]
        # If an index tensor contains an index twice, two values are written to one element. The order of the writes is undefined, so results with
        # index tensors are not compared.
        if not names:
            for ours, theirs in zip(*results):
                assert same(ours, theirs.detach().numpy()), (shape, parts, value)


# ---- The meaning of each form of index -----------------------------------------------------------------------------------------------------


@pytest.fixture
def x():
    return gradus.tensor(numbers((3, 4), np.float32))


@pytest.mark.parametrize("dtype", ("bool", "uint8", "int16", "bfloat16", "float32", "float64", "complex64", "complex128"))
@pytest.mark.parametrize("columns", range(1, 18))
def test_columns_of_many_narrow_rows(columns, dtype):
    """The index is the same for all rows. Rows are fewer or more than the elements that a kernel copies at a time."""
    order = random.Random(columns).sample(range(columns), columns)
    index = gradus.tensor(order)
    for rows in (2, 33, 200):
        x = (gradus.arange(rows * columns).reshape(rows, columns) % 251).to(getattr(gradus, dtype))
        wanted = [[row[column] for column in order] for row in x.tolist()]
        everywhere = index.expand(rows, columns)
        for result in (x[:, index], x.index_select(1, index), x.gather(1, everywhere), x.take_along_dim(index[None], 1), x.t()[index].t()):
            assert result.tolist() == wanted
        assert gradus.zeros_like(x).scatter(1, everywhere, x).index_select(1, index).equal(x)


def test_integers_and_slices_are_views(x):
    for index in (1, -1, np.int64(1), slice(1, None), (slice(1, None), 0), (..., 2), None, slice(None, None, -1), (), ..., gradus.tensor(1)):
        assert x[index].untyped_storage() is x.untyped_storage()


def test_indexing_with_lists_tensors_and_masks_copies(x):
    for index in ([0], gradus.tensor([0]), [True, False, True], True, (0, [1, 2])):
        assert x[index].untyped_storage() is not x.untyped_storage()


def test_indexing_with_bools(x):
    assert x[True].shape == (1, 3, 4)
    assert x[False].shape == (0, 3, 4)
    assert x[True, False].shape == (0, 3, 4)
    assert x[np.bool_(True)].shape == (1, 3, 4)
    assert x[gradus.tensor(False)].shape == (0, 3, 4)
    assert gradus.tensor(3)[True].tolist() == [3]


def test_indexing_with_lists(x):
    assert x[[]].shape == (0, 4)
    assert x[[0, 2]].tolist() == x[range(0, 3, 2)].tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert x[[[0, 1], [1, 2]]].shape == (2, 2, 4)
    assert x[[True, False, True]].tolist() == x[[0, 2]].tolist()
    assert x[[gradus.tensor(1), gradus.tensor(2)]].tolist() == x[[1, 2]].tolist()


def test_uint8_tensors_are_masks(x):
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
        assert x[gradus.tensor([1, 0, 1], dtype=gradus.uint8)].shape == (2, 4)


def test_indexing_with_subclasses_of_tuple(x):
    class Pair(tuple):
        pass

    assert x[Pair((1, 2))].item() == 6
    assert x[gradus.Size([1, 2])].item() == 6


def test_position_of_the_dimensions_of_index_tensors():
    x = gradus.zeros(2, 3, 4, 5)
    assert x[0, :, [1, 2]].shape == (3, 2, 5)  # as in PyTorch, the integer makes a view before the list is applied
    assert x[[0, 1], :, [1, 2]].shape == (2, 3, 5)
    assert x[:, [0, 1], None, [1, 2]].shape == torch.zeros(2, 3, 4, 5)[:, [0, 1], None, [1, 2]].shape


def test_slices_with_tensors_as_bounds(x):
    assert x[gradus.tensor(1):gradus.tensor(3)].shape == (2, 4)


def test_masked_assignment_of_a_number_and_a_tensor(x):
    x[x > 5] = 0
    assert x.tolist() == [[0, 1, 2, 3], [4, 5, 0, 0], [0, 0, 0, 0]]
    x[x > 3] = gradus.tensor([7.0, 8.0])
    assert x[1].tolist() == [7, 8, 0, 0]


def test_assigned_values_are_converted():
    x = gradus.zeros(3, dtype=gradus.int64)
    x[0] = gradus.tensor(1.7)
    x[[1]] = [2.7]
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match, got Long for the destination and Float"):
        x[[1]] = gradus.tensor([2.7])
    x[2] = True
    assert x.tolist() == [1, 2, 1]
    x[:] = [4, 5, 6]
    assert x.tolist() == [4, 5, 6]
    x[:2] = np.array([[8, 9]])
    assert x.tolist() == [8, 9, 6]


@nn_programs.same
def test_a_mask_takes_one_element_of_another_dtype(t):
    for dtype, value in ((t.float32, 2), (t.int64, 2.7), (t.complex64, 2.0), (t.float32, 2j)):
        for index in (t.tensor([True, False]), (..., t.tensor([False, True, True])), (0, t.tensor([True, False, True]))):
            x = t.zeros(2, 3, dtype=dtype)
            yield nn_programs.attempt(x.__setitem__, index, t.tensor([[value]])), x


@nn_programs.same
def test_index_put_fills_a_mask_with_one_value_of_another_dtype(t):
    for dtype, value in ((t.float32, 2), (t.int64, 2.7), (t.complex64, 2.0), (t.float32, 2j), (t.uint8, 300), (t.float32, 1e60)):
        for mask in (t.tensor([True, False]), t.tensor([[False, True, True], [True, False, False]]), t.tensor([False, False])):
            for given in (t.tensor(value), t.tensor([[[value]]]), t.tensor([value, value])):
                yield nn_programs.attempt(t.zeros(2, 3, dtype=dtype).index_put_, (mask,), given)
        x = t.zeros(2, 3, dtype=dtype)
        yield nn_programs.attempt(x.index_put_, (t.tensor([True, False]),), t.tensor(value, dtype=t.complex128), accumulate=True)
        yield nn_programs.attempt(x.index_put_, (t.tensor([0]),), t.tensor(value, dtype=t.complex128)), x
    x, value = t.zeros(3, requires_grad=True), t.tensor([5], dtype=t.float64, requires_grad=True)
    y = x.index_put((t.tensor([True, False, True]),), value)
    y.backward(t.tensor([1.0, 10.0, 100.0]))
    yield y, x.grad, value.grad


def test_in_place_operators_through_an_index(x):
    x[1] += 1
    x[:, 0] *= 2
    x[[0, 0], 1] += 1
    assert x[:, :2].tolist() == [[0, 2], [10, 6], [16, 9]]


def test_assigning_an_overlapping_view_is_refused(x):
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a single memory location"):
        x[1:] = x[:-1]
    x[1:] = x[:-1].clone()
    assert x.tolist() == [[0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7]]
    x[[0, 2]] = x[[2, 0]]
    assert x.tolist() == [[4, 5, 6, 7], [0, 1, 2, 3], [0, 1, 2, 3]]


def test_gradients_through_assigned_views():
    x = gradus.zeros(3, requires_grad=True)
    y = x * 1
    y[0] = 5
    y[1:][0] = x[2] * 3
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 4]


# ---- Errors -------------------------------------------------------------------------------------------------------------------------------------

KINDS = "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "


class Broken:
    def __index__(self):
        raise ZeroDivisionError("broken")


@pytest.mark.parametrize("index, error, text", [
    (5, IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    (-4, IndexError, "index -4 is out of bounds for dimension 0 with size 3"),
    ((0, 9), IndexError, "index 9 is out of bounds for dimension 1 with size 4"),
    ((..., ..., 1), IndexError, ""),
    ((0, ..., ..., None), IndexError, ""),
    ((..., 9), IndexError, "index 9 is out of bounds for dimension 1 with size 4"),
    ((None, 0, None, -5), IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
    ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
    ((slice(None),) * 3, IndexError, "too many indices for tensor of dimension 2"),
    (np.ones((3, 4, 1), dtype=bool), IndexError, "too many indices for tensor of dimension 2"),
    ((None,) * 200, IndexError, "too many indices for tensor of dimension 2"),
    ((None,) * 63, (IndexError, RuntimeError), ""),
    ((True,) * 70, (IndexError, RuntimeError), ""),
    ("a", IndexError, KINDS + "str)"),
    (b"a", IndexError, KINDS + "bytes)"),
    (1.5, IndexError, KINDS + "float)"),
    ({}, IndexError, KINDS + "dict)"),
    (object(), IndexError, KINDS + "object)"),
    ((0, "a"), IndexError, KINDS + "str)"),
    (slice(None, None, 0), ValueError, "slice step cannot be zero"),
    (slice("a", None), TypeError, "slice indices must be integers"),
    (slice(Broken(), None), ZeroDivisionError, "broken"),
    (Broken(), ZeroDivisionError, "broken"),
    (2**70, ValueError, "Overflow when unpacking long long"),
    ([5], IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    ([1.5], IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    (gradus.tensor(1.5), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    ([True, False], IndexError, "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [3, 4] at index 0"),
    (([0, 1], [0, 1, 2]), IndexError, "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]"),
    ([[0, 1], [2]], ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
])
def test_invalid_indices_are_refused(x, index, error, text):
    before = x.tolist()
    for access in (lambda: x[index], lambda: x.__setitem__(index, 0)):
        with pytest.raises(error) as caught:
            access()
        assert text in str(caught.value)
    assert x.tolist() == before


@pytest.mark.parametrize("shape, kept", [((0,), (0, 4)), ((0, 4), (0,)), ((3, 0), (0,)), ((0, 0), (0,))])
def test_a_mask_of_size_0_selects_nothing(x, shape, kept):
    """As in NumPy, a mask may have size 0 in a dimension where `x` is larger. In all other dimensions their sizes must be equal."""
    mask, before = gradus.ones(shape, dtype=gradus.bool), x.tolist()
    assert x[mask].shape == kept and x.numpy()[mask.numpy()].shape == kept
    x[mask] = 7
    assert x.tolist() == before
    assert gradus.func.vmap(lambda row: row[mask])(gradus.stack([x, x])).shape == (2, *kept)
    for access in (lambda: x[gradus.ones(0, 3, dtype=gradus.bool)], lambda: gradus.func.vmap(lambda row: row[gradus.ones(0, 3, dtype=gradus.bool)])(x[None])):
        with pytest.raises(IndexError, match="does not match the shape of the indexed tensor"):
            access()


def test_indexing_leaks_no_references(x):
    def call():
        for index in (0, (slice(1, None), 0), [0, 1], [True, False, True], np.array([1]), gradus.tensor(1), None, "a", 9, [9], (0, 0, 0), [0.5], [["a"]]):
            try:
                x[index] = x[index]
                x[index] = 1.5
                x[index] = "a"
            except (IndexError, TypeError, ValueError):
                pass

    assert lost(call, x) == 0


@pytest.mark.parametrize("index, value, error, text", [
    (0, "a", TypeError, "can't assign a str to a torch.FloatTensor"),
    (0, None, TypeError, "can't assign a NoneType to a torch.FloatTensor"),
    (0, {}, TypeError, "can't assign a dict to a torch.FloatTensor"),
    (0, gradus.zeros(5), RuntimeError, ""),
    (0, gradus.zeros(2, 4), RuntimeError, ""),
    ([0, 1], gradus.zeros(5), RuntimeError, "shape mismatch: value tensor of shape [5] cannot be broadcast to indexing result of shape [2, 4]"),
    (0, 1 + 2j, RuntimeError, "value cannot be converted to type float without overflow"),
    ([0], 1 + 2j, RuntimeError, "value cannot be converted to type float without overflow"),
    (0, ["a"], ValueError, "too many dimensions 'str'"),
])
def test_invalid_values_are_refused(x, index, value, error, text):
    before = x.tolist()
    with pytest.raises(error) as caught:
        x[index] = value
    assert text in str(caught.value)
    assert x.tolist() == before


def test_numbers_that_overflow_the_dtype_are_refused():
    x = gradus.zeros(3, dtype=gradus.uint8)
    for index in (0, [0]):
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
            x[index] = 300
    assert x.tolist() == [0, 0, 0]


def test_indexing_zero_dimensional_tensors():
    x = gradus.tensor(3)
    assert x[...].item() == x[()].item() == 3
    assert x[None].tolist() == [3]
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor. Use `tensor.item.."):
        x[0]
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 0"):
        x[:]
    x[...] = 4
    x[()] += 1
    assert x.item() == 5


def test_deleting_items_is_refused(x):
    with pytest.raises(TypeError, match="Tensor does not support deleting items"):
        del x[0]


def test_assigning_to_items_of_a_leaf_is_refused():
    x = gradus.ones(3, requires_grad=True)
    for index in (0, slice(None), [0], [True, False, True]):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            x[index] = 1
