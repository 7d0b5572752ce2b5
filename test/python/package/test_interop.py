"""Tests conversions from and to NumPy arrays. Also tests the buffer protocol, storages, copies, pickling and subclasses."""
import copy
import ctypes
import gc
import os
import pickle
import random
import subprocess
import sys
import threading
import warnings
import weakref
import zlib

import numpy as np
import pytest

import gradus
from leaks import lost

SHARED = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "complex64",
          "complex128"]


def sample(name, shape=(3, 4)):
    return (np.arange(int(np.prod(shape))) % 5).reshape(shape).astype(name)


def views_of(array):
    """Yields views of the array with various strides: contiguous, transposed, negative, with gaps, broadcast and empty."""
    yield from (array, array.T, array[::-1], array[:, ::-2], array[1:, 2:], array[0], array[2, 3:4], array[..., None], array[0, 0], array[:0])
    yield np.broadcast_to(array[:, :1], (2, 3, 5))


# ---- NumPy ----------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHARED)
def test_round_trip_from_numpy_and_to_numpy(name):
    for array in views_of(sample(name)):
        array = np.asarray(array)  # because views_of() yields array[0, 0] as a NumPy scalar, and from_numpy takes arrays only
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the warning is about broadcast arrays, which are read-only
            x = gradus.from_numpy(array)
        assert str(x.dtype) == "torch." + name and x.shape == array.shape
        back = x.numpy()
        assert back.dtype == array.dtype and np.array_equal(back, array)
        if array.size:
            assert back.__array_interface__["data"][0] == array.__array_interface__["data"][0]
            assert [back.strides[i] for i in range(array.ndim) if array.shape[i] > 1] == \
                   [array.strides[i] for i in range(array.ndim) if array.shape[i] > 1]


def test_from_numpy_and_numpy_share_memory():
    a = np.zeros((2, 3))
    x = gradus.from_numpy(a[:, ::-1])
    x[0, 0] = 5
    assert a[0, 2] == 5
    b = x.numpy()
    b[1, 1] = 7
    assert a[1, 1] == 7 and x[1, 1].item() == 7


def test_arrays_and_buffers_keep_shared_memory_alive():
    x = gradus.from_numpy(np.full(1000, 3.0))
    y = gradus.ones(1000).numpy()
    view = memoryview(gradus.ones(1000))
    gc.collect()
    trash = [np.zeros(1000) for _ in range(10)], [gradus.zeros(1000) for _ in range(10)]
    assert x.sum().item() == 3000 and y.sum() == 1000 and sum(view) == 1000
    del trash


def test_an_array_is_released_with_the_last_view():
    a = np.zeros(10)
    references = sys.getrefcount(a)
    x = gradus.from_numpy(a)
    views = [x[1:], x.detach(), x.view(2, 5)]
    assert sys.getrefcount(a) > references
    del x
    assert sys.getrefcount(a) > references
    views.clear()
    gc.collect()
    assert sys.getrefcount(a) == references


def test_an_array_is_released_on_another_thread():
    a = np.zeros(10)
    references = sys.getrefcount(a)
    tensors = [gradus.from_numpy(a) for _ in range(100)]
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    assert sys.getrefcount(a) == references


def test_resizing_a_tensor_with_an_exported_array_is_refused():
    x = gradus.zeros(4)
    array = x.numpy()
    with pytest.warns(UserWarning, match="was resized"), pytest.raises(RuntimeError, match="resiz"):
        gradus.add(gradus.ones(1000), 1, out=x)
    array += 1
    assert x.tolist() == [1, 1, 1, 1]


def test_from_numpy_of_a_read_only_array_warns():
    a = np.zeros(3)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
        gradus.from_numpy(a)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            gradus.from_numpy(a)
        assert gradus.tensor(a).tolist() == [0, 0, 0]


@pytest.mark.parametrize("call, error, text", [
    (lambda: gradus.from_numpy([1]), TypeError, "expected np.ndarray (got list)"),
    (lambda: gradus.from_numpy(np.float64(1)), TypeError, "expected np.ndarray (got numpy.float64)"),
    (lambda: gradus.from_numpy(np.array(["a"])), TypeError, "can't convert np.ndarray of type numpy.str_."),
    (lambda: gradus.from_numpy(np.zeros(2, np.longdouble)), TypeError, "can't convert np.ndarray of type numpy.longdouble."),
    (lambda: gradus.from_numpy(np.zeros(2, ">f8")), ValueError, "byte order different from the native byte order"),
    (lambda: gradus.from_numpy(np.zeros(2, "i1,i4")["f1"]), ValueError, "strides not a multiple of the element byte size"),
    (lambda: gradus.from_numpy(np.frombuffer(bytearray(9), np.uint8)[1:].view(np.float64)), ValueError, "not aligned"),
    (lambda: gradus.ones(2, requires_grad=True).numpy(), RuntimeError,
     "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."),
    (lambda: np.asarray(gradus.ones(2, requires_grad=True)), RuntimeError, "Can't call numpy() on Tensor that requires grad."),
    (lambda: gradus.ones(2, dtype=gradus.bfloat16).numpy(), TypeError, "Got unsupported ScalarType BFloat16"),
    (lambda: np.asarray(gradus.ones(2, dtype=gradus.bfloat16)), TypeError, "Got unsupported ScalarType BFloat16"),
    (lambda: gradus.ones(2, device="meta").numpy(), TypeError, "can't convert meta device type tensor to numpy. Use Tensor.cpu()"),
    (lambda: gradus.ones(2).numpy(True), TypeError, "numpy() takes 0 positional arguments but 1 was given"),
    (lambda: gradus.ones(2).numpy(force=1), TypeError, "numpy(): argument 'force' must be bool, not int"),
])
def test_invalid_conversions_from_and_to_numpy_are_refused(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_numpy_with_force_true():
    x = gradus.ones(2, requires_grad=True)
    array = (x * 2).numpy(force=True)
    assert array.tolist() == [2, 2]
    assert np.shares_memory(x.numpy(force=True), x.detach().numpy())


def test_array_protocol():
    x = gradus.tensor([1.5, 2.5])
    assert np.asarray(x).dtype == np.float32 and np.shares_memory(np.asarray(x), x.numpy())
    assert np.asarray(x, dtype="f8").dtype == np.float64
    assert x.__array__().tolist() == [1.5, 2.5] and x.__array__("f8").dtype == np.float64
    assert not np.shares_memory(x.__array__(copy=True), x.numpy())
    assert np.array(x, dtype=int).tolist() == [1, 2]
    with pytest.raises(ValueError):
        x.__array__(dtype="f8", copy=False)
    assert x.__array_priority__ == 1000


def test_numpy_ufuncs_return_tensors():
    x = gradus.tensor([0.0, 1.0])
    for result in (np.add(x, 1), np.sin(x), x + np.ones(2, np.float32), np.sqrt(gradus.tensor(4.0))):
        assert isinstance(result, gradus.Tensor)
    assert np.greater(x, 0.5).dtype == gradus.bool
    assert np.add(x, 1).tolist() == [1, 2]


def test_numpy_is_imported_only_if_needed():
    code = ("import sys, gradus\nx = gradus.tensor([[1, 2], [3, 4]])\nx[1:, 0] = 5\nx[[0, 1]], memoryview(x), x.tolist(), x.__dlpack__()\n"
            "assert 'numpy' not in sys.modules\n"
            "try:\n    gradus.from_numpy([1])\nexcept TypeError:\n    pass\nassert 'numpy' not in sys.modules\nx.numpy()\nassert 'numpy' in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


# ---- Buffers ---------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHARED)
def test_memoryview_of_tensors(name):
    for array in views_of(sample(name)):
        x = gradus.tensor(np.asarray(array))
        view = memoryview(x)
        assert view.shape == array.shape and not view.readonly and view.itemsize == array.dtype.itemsize
        assert np.array_equal(np.asarray(view), array) and np.asarray(view).dtype == array.dtype


def test_memoryview_of_strided_views():
    x = gradus.tensor(sample("int32"))
    assert memoryview(x[:, ::-1]).tolist() == x[:, ::-1].tolist()
    assert memoryview(x[:, 1]).strides == (16,)
    assert bytes(x[0]) == x[0].numpy().tobytes()
    with pytest.raises(BufferError, match="not contiguous"):
        zlib.crc32(x[:, 1])
    ctypes.c_int32.from_buffer(x).value = 9
    assert x[0, 0].item() == 9


@pytest.mark.parametrize("make, text", [
    (lambda: gradus.ones(2, requires_grad=True), "Can't export tensors that require gradient, use tensor.detach()"),
    (lambda: gradus.ones(2, dtype=gradus.bfloat16), "the buffer protocol has no format for bfloat16"),
    (lambda: gradus.ones(2, device="meta"), "a tensor on device meta has no buffer"),
])
def test_tensors_without_a_buffer_are_refused(make, text):
    with pytest.raises(BufferError) as caught:
        memoryview(make())
    assert text in str(caught.value)


# ---- Storages ---------------------------------------------------------------------------------------------------------------------------------


def test_untyped_storage():
    x = gradus.tensor([1.0, 2.0])
    storage = x.untyped_storage()
    assert len(storage) == storage.nbytes() == storage.size() == 8 and storage.element_size() == 1
    assert storage.data_ptr() == x.data_ptr() and storage.device.type == "cpu"
    assert storage.tolist() == list(x.numpy().tobytes()) and bytes(storage) == x.numpy().tobytes()
    assert storage[3] == 63 and storage[4:].tolist() == [0, 0, 0, 64]
    storage[3] = 64
    assert x[0].item() == 4
    assert repr(storage) == " 0\n 0\n 128\n 64\n 0\n 0\n 0\n 64\n[torch.storage.UntypedStorage(device=cpu) of size 8]"


def test_aliases_share_one_storage_object():
    x = gradus.ones(4)
    storage = x.untyped_storage()
    assert x[2:].untyped_storage() is storage and x.detach().untyped_storage() is storage
    assert gradus.ones(4).untyped_storage() is not storage
    assert storage._cdata == x[1:].untyped_storage()._cdata != gradus.ones(4).untyped_storage()._cdata
    reference = weakref.ref(storage)
    del storage
    assert reference() is None and x.untyped_storage().nbytes() == 16


def test_from_storage():
    storage = gradus.ones(4).untyped_storage()
    x = gradus._C._from_storage(storage, 1, (3,), (1,), gradus.float32)
    y = gradus._C._from_storage(storage, 0, (2, 2), (1, 2), gradus.int32)
    assert x.tolist() == [1, 1, 1] and y.tolist() == [[0x3F800000] * 2] * 2
    assert y.untyped_storage() is storage and y._base is None
    x.requires_grad_()
    reverse = gradus._C._from_storage(storage, 3, (4,), (-1,), gradus.float32)
    reverse[0] = 5
    assert x[2].item() == 5


@pytest.mark.parametrize("arguments, error, text", [
    ((0, (5,), (1,), "float32"), RuntimeError, "out of bounds for storage of size 16"),
    ((1, (4,), (1,), "float32"), RuntimeError, "out of bounds for storage of size 16"),
    ((-1, (1,), (1,), "float32"), RuntimeError, "invalid storage offset -1"),
    ((0, (2,), (-1,), "float32"), RuntimeError, "before the storage"),
    ((0, (1,), (1, 1), "float32"), RuntimeError, "mismatch in length of strides and shape"),
    ((0, (2**62, 2**62), (1, 1), "float32"), RuntimeError, ""),
    ((0, (-1,), (1,), "float32"), RuntimeError, "negative dimension"),
    ((0, (2,), (2**62,), "float32"), RuntimeError, "overflow"),
    (("a", (2,), (1,), "float32"), TypeError, "argument 'offset' (position 2) must be int, not str"),
    ((0, 2, (1,), "float32"), TypeError, "argument 'size' must be tuple of ints, not int"),
    ((0, ("a",), (1,), "float32"), TypeError, "found element of type str at pos 0"),
    ((0, (1,) * 65, (1,) * 65, "float32"), ValueError, "65 entries"),
    ((0, (1,), (1,), None), TypeError, ""),
])
def test_from_storage_refuses_geometries_out_of_bounds(arguments, error, text):
    storage = gradus.ones(4).untyped_storage()
    offset, size, stride, dtype = arguments
    with pytest.raises(error) as caught:
        gradus._C._from_storage(storage, offset, size, stride, getattr(gradus, dtype) if dtype else dtype)
    assert text in str(caught.value)


def test_from_storage_refuses_misaligned_memory():
    storage = gradus.frombuffer(bytearray(17), dtype=gradus.uint8, offset=1).untyped_storage()
    if storage.data_ptr() % 8:
        with pytest.raises(RuntimeError, match="not aligned"):
            gradus._C._from_storage(storage, 0, (2,), (1,), gradus.float64)


def test_creating_and_copying_untyped_storages():
    for storage in (gradus.UntypedStorage(8), gradus._C._new_storage(8)):
        memoryview(storage)[:] = b"abcdefgh"
        assert storage.clone().tolist() == list(b"abcdefgh")
    assert len(gradus.UntypedStorage()) == 0
    assert gradus.UntypedStorage(4, device="meta").device.type == "meta"
    other = gradus.UntypedStorage(8)
    assert other.copy_(storage) is other and other.tolist() == storage.tolist()
    with pytest.raises(TypeError, match="must be torch.Storage, not int"):
        other.copy_(3)
    with pytest.raises(RuntimeError):
        other.copy_(gradus.UntypedStorage(3))
    with pytest.raises(TypeError):
        gradus.UntypedStorage("a")
    with pytest.raises(RuntimeError):
        gradus.UntypedStorage(-1)
    with pytest.raises(BufferError):
        gradus.UntypedStorage(4, device="meta").tolist()
    with pytest.raises(IndexError):
        storage[8]


# ---- Copies and pickling ------------------------------------------------------------------------------------------------------------------------


def roundtrips():
    yield copy.deepcopy
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        yield lambda data, protocol=protocol: pickle.loads(pickle.dumps(data, protocol))


@pytest.mark.parametrize("roundtrip", list(roundtrips()))
def test_copies_keep_values_and_strides(roundtrip):
    for name in [*SHARED, "bfloat16"]:
        x = gradus.tensor(sample("int64"), dtype=getattr(gradus, name))
        for view in (x, x[1:, ::-1], x[0, 0], x[:0], x.t()):
            other = roundtrip(view)
            assert other is not view and other.dtype == view.dtype and other.tolist() == view.tolist()
            assert other.stride() == view.stride() and other.storage_offset() == view.storage_offset()
            assert other.untyped_storage() is not view.untyped_storage()


@pytest.mark.parametrize("roundtrip", list(roundtrips()))
def test_copies_keep_aliasing(roundtrip):
    x = gradus.zeros(4)
    a, b, c = roundtrip([x, x[1:], x])
    assert a is c and a.untyped_storage() is b.untyped_storage()
    b[0] = 5
    assert a.tolist() == [0, 5, 0, 0] and x.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("roundtrip", list(roundtrips()))
def test_copies_keep_requires_grad_and_attributes(roundtrip):
    x = gradus.ones(2, requires_grad=True)
    x.label = ["a label"]
    other = roundtrip(x)
    assert other.requires_grad and other.is_leaf and other.label == ["a label"] and other.label is not x.label


@pytest.mark.parametrize("roundtrip", list(roundtrips()))
def test_copies_of_meta_tensors(roundtrip):
    x = roundtrip(gradus.empty(2, 3, device="meta"))
    assert x.device.type == "meta" and x.shape == (2, 3)


class Labelled(gradus.Tensor):
    pass


@pytest.mark.parametrize("roundtrip", list(roundtrips()))
def test_copies_keep_subclasses(roundtrip):
    x = gradus.ones(2).as_subclass(Labelled)
    x.label = "one"
    other = roundtrip(x)
    assert type(other) is Labelled and other.label == "one" and other.tolist() == [1, 1]


def test_deepcopy_copies_the_gradient():
    x = gradus.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    other = copy.deepcopy(x)
    assert other.grad.tolist() == [3, 3] and other.grad is not x.grad


def test_deepcopy_of_a_tensor_with_history_is_refused():
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(gradus.ones(2, requires_grad=True) * 2)


def test_copy_copy_shares_memory():
    x = gradus.ones(2)
    other = copy.copy(x)
    other[0] = 3
    assert other is not x and x.tolist() == [3, 1]


# ---- Subclasses ---------------------------------------------------------------------------------------------------------------------------------


def test_as_subclass():
    x = gradus.ones(2, requires_grad=True)
    y = (x * 2).as_subclass(Labelled)
    assert type(y) is Labelled
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert type(Labelled([1.0, 2.0])) is Labelled and Labelled([1.0, 2.0]).tolist() == [1, 2]


def test_make_subclass():
    x = gradus.ones(2)
    y = gradus.Tensor._make_subclass(Labelled, x, True)
    assert type(y) is Labelled and y.requires_grad and y.is_leaf and y.data_ptr() == x.data_ptr()
    assert not gradus.Tensor._make_subclass(Labelled, x).requires_grad


@pytest.mark.parametrize("call", [
    lambda x: x.as_subclass(int), lambda x: x.as_subclass(3), lambda x: gradus.Tensor._make_subclass(int, x),
    lambda x: gradus.Tensor._make_subclass(Labelled, 3), lambda x: gradus.Tensor._make_subclass(Labelled),
    lambda x: gradus.Tensor._make_subclass(Labelled, x, 3),
])
def test_invalid_subclasses_are_refused(call):
    with pytest.raises(TypeError):
        call(gradus.ones(2))


# ---- Leaks -----------------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [
    lambda x: x.numpy(), lambda x: gradus.from_numpy(x.numpy()), lambda x: memoryview(x), lambda x: x.untyped_storage(), lambda x: copy.deepcopy(x),
    lambda x: pickle.loads(pickle.dumps(x)), lambda x: np.add(x, 1), lambda x: x.untyped_storage()[1:].tolist(), lambda x: x.as_subclass(Labelled),
    lambda x: gradus.frombuffer(memoryview(x), dtype=gradus.uint8), lambda x: copy.copy(x), lambda x: np.asarray(x.view(-1), dtype="f8"),
], ids=range(12))
def test_interop_leaks_no_references(call):
    x = gradus.ones(2, 3)
    assert lost(lambda: call(x), x) == 0


def test_threads_convert_shared_tensors():
    """Many threads convert the same objects at the same time. No conversion fails."""
    shared = gradus.zeros(64)
    failures = []

    def work(seed):
        rng = random.Random(seed)
        try:
            for _ in range(300):
                array = shared[rng.randrange(32):].numpy()
                assert gradus.from_numpy(array).untyped_storage().nbytes() > 0
                assert shared.untyped_storage() is shared[1:].untyped_storage()
                shared[rng.randrange(64)] = 0
                pickle.loads(pickle.dumps(shared))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
