"""Tests DLPack in both directions, with NumPy and PyTorch, by versioned and unversioned capsules and by the C exchange API."""
import ctypes
import gc
import sys
import threading

import numpy as np
import pytest

import gradus
from leaks import lost
from oracle import torch

NAMES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32", "float64",
         "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"]
NUMPY = [name for name in NAMES if not name.startswith(("bfloat", "float8"))]


def sample(name):
    return gradus.tensor([[1, 0, 2], [3, 4, 0]]).to(getattr(gradus, name))


def views_of(x):
    yield from (x, x.t(), x[1], x[1, 2], x[:, ::2], x[:0], x[..., None])


def values(x):
    return x.float().tolist() if "float8" in str(x.dtype) else x.tolist()


# ---- Export and import --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_exchange_with_pytorch(name):
    for x in views_of(sample(name)):
        theirs = torch.from_dlpack(x)
        assert str(theirs.dtype) == str(x.dtype) and values(theirs) == values(x)
        ours = gradus.from_dlpack(theirs)
        assert ours.dtype == x.dtype and values(ours) == values(x) and ours.shape == x.shape
        if x.numel():
            assert ours.data_ptr() == theirs.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("name", NUMPY)
def test_exchange_with_numpy(name):
    for x in [*views_of(sample(name)), sample(name)[:, ::-1]]:
        array = np.from_dlpack(x)
        assert array.dtype == name and array.tolist() == x.tolist()
        ours = gradus.from_dlpack(array)
        assert ours.dtype == x.dtype and ours.tolist() == x.tolist()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 3), (2, 0)])
def test_round_trip_through_capsules(name, max_version):
    for x in [*views_of(sample(name)), sample(name)[::-1, ::-1]]:
        y = gradus.from_dlpack(x.__dlpack__(max_version=max_version))
        assert y.dtype == x.dtype and values(y) == values(x)
        assert not x.numel() or y.data_ptr() == x.data_ptr()


def test_names_of_capsules():
    x = gradus.ones(2)
    assert '"dltensor"' in repr(x.__dlpack__()) and '"dltensor_versioned"' in repr(x.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(gradus.to_dlpack(x))
    for capsule in (x.__dlpack__(), x.__dlpack__(max_version=(1, 0))):
        gradus.from_dlpack(capsule)
        assert '"used_dltensor' in repr(capsule)
        with pytest.raises(RuntimeError, match="can be consumed only once"):
            gradus.from_dlpack(capsule)
    assert torch.utils.dlpack.from_dlpack(gradus.to_dlpack(x)).tolist() == [1, 1]
    assert gradus.from_dlpack(torch.utils.dlpack.to_dlpack(torch.ones(2))).tolist() == [1, 1]


def test_dlpack_device():
    assert gradus.ones(2).__dlpack_device__() == (1, 0)
    assert gradus.from_dlpack(np.ones(2), device="cpu").tolist() == [1, 1]
    assert gradus.from_dlpack(np.ones(2), device="meta").device.type == "meta"


def test_copy_argument():
    x, a = gradus.ones(2), np.ones(2)
    assert gradus.from_dlpack(x, copy=True).data_ptr() != x.data_ptr() == gradus.from_dlpack(x, copy=False).data_ptr()
    assert gradus.from_dlpack(x.__dlpack__(copy=True)).data_ptr() != x.data_ptr()
    assert np.from_dlpack(x, copy=True).base is not None and not np.shares_memory(np.from_dlpack(x, copy=True), x.numpy())
    gradus.from_dlpack(a, copy=True)[0] = 5
    assert a[0] == 1
    gradus.from_dlpack(a)[0] = 5
    assert a[0] == 5


def test_read_only_arrays_are_copied():
    a = np.ones(2)
    a.flags.writeable = False
    gradus.from_dlpack(a)[0] = 5
    assert a[0] == 1
    with pytest.raises(BufferError, match="read-only"):
        gradus.from_dlpack(a, copy=False)


# ---- Lifetimes -----------------------------------------------------------------------------------------------------------------------------------


def test_an_imported_tensor_keeps_its_producer_alive():
    a = np.ones(3)
    references = sys.getrefcount(a)
    x = gradus.from_dlpack(a)
    view = x[1:]
    del x
    assert sys.getrefcount(a) > references
    del view
    gc.collect()
    assert sys.getrefcount(a) == references
    theirs = torch.from_dlpack(gradus.full((1000,), 2.0))
    gc.collect()
    assert theirs.sum().item() == 2000


def test_unused_capsules_release_their_tensor():
    x = gradus.ones(1000)
    assert lost(lambda: (x.__dlpack__(), x.__dlpack__(max_version=(1, 0), copy=True)), x) == 0


def test_imported_tensors_are_released_on_another_thread():
    a = np.ones(3)
    references = sys.getrefcount(a)
    tensors = [gradus.from_dlpack(a) for _ in range(50)]
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    assert sys.getrefcount(a) == references


# ---- The C exchange API --------------------------------------------------------------------------------------------------------------------------


class Managed(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64),
                ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("sizes", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Plain(ctypes.Structure):
    _fields_ = Managed._fields_[4:]


SET_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class Exchange(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("previous", ctypes.c_void_p),
                ("allocate", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Plain), ctypes.POINTER(ctypes.POINTER(Managed)), ctypes.c_void_p,
                                               SET_ERROR)),
                ("managed_of_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Managed)))),
                ("object_of_managed", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.py_object))),
                ("tensor_of_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Plain))),
                ("current_stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)))]


def exchange_of(kind):
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Exchange.from_address(pointer(kind.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


@pytest.fixture
def exchange():
    return exchange_of(gradus.Tensor)


def test_versioned_capsules_have_the_copied_flag():
    """A capsule of a copied tensor has the flag DLPACK_FLAG_BITMASK_IS_COPIED (2). PyTorch does not set this flag."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    x = gradus.ones(3)
    for copy, flags in ((True, 2), (False, 0), (None, 0)):
        capsule = x.__dlpack__(max_version=(1, 0), copy=copy)
        managed = Managed.from_address(pointer(capsule, b"dltensor_versioned"))
        assert managed.flags == flags and (managed.data != x.data_ptr()) == bool(copy)


def test_exchange_api_exports_a_tensor(exchange):
    assert list(exchange.version) == list(exchange_of(torch.Tensor).version) and not exchange.previous
    x, managed, result = gradus.tensor([[1.0, 2.0], [3.0, 4.0]]).t(), ctypes.POINTER(Managed)(), ctypes.py_object()
    assert exchange.managed_of_object(x, ctypes.byref(managed)) == 0
    m = managed.contents
    assert (m.ndim, m.code, m.bits, m.lanes, m.flags, list(m.version)) == (2, 2, 32, 1, 0, [1, 3])
    assert m.data == x.data_ptr() and m.sizes[:2] == [2, 2] and m.strides[:2] == [1, 2]
    assert exchange_of(torch.Tensor).object_of_managed(managed, ctypes.byref(result)) == 0
    assert result.value.tolist() == [[1, 3], [2, 4]] and isinstance(result.value, torch.Tensor)


def test_exchange_api_imports_a_tensor(exchange):
    theirs, managed, result = torch.ones(2, 3), ctypes.POINTER(Managed)(), ctypes.py_object()
    assert exchange_of(torch.Tensor).managed_of_object(theirs, ctypes.byref(managed)) == 0
    assert exchange.object_of_managed(managed, ctypes.byref(result)) == 0
    assert result.value.shape == (2, 3) and result.value.data_ptr() == theirs.data_ptr()


def test_exchange_api_fills_a_borrowed_tensor(exchange):
    x, plain, stream = gradus.ones(2, 3), Plain(), ctypes.c_void_p(1)
    assert exchange.tensor_of_object(x, ctypes.byref(plain)) == 0
    assert plain.data == x.data_ptr() and plain.sizes[:2] == [2, 3] and plain.strides[:2] == [3, 1]
    assert exchange.current_stream(1, 0, ctypes.byref(stream)) == 0 and stream.value is None


def test_exchange_api_allocates_tensors(exchange):
    plain, managed, result, errors = Plain(), ctypes.POINTER(Managed)(), ctypes.py_object(), []
    set_error = SET_ERROR(lambda context, kind, message: errors.append((kind, message)))
    plain.ndim, plain.code, plain.bits, plain.lanes, plain.device = 2, 2, 64, 1, (ctypes.c_int32 * 2)(1, 0)
    plain.sizes = (ctypes.c_int64 * 2)(2, 3)
    assert exchange.allocate(plain, ctypes.byref(managed), None, set_error) == 0
    assert exchange.object_of_managed(managed, ctypes.byref(result)) == 0
    assert result.value.shape == (2, 3) and result.value.dtype == gradus.float64
    plain.bits = 3
    assert exchange.allocate(plain, ctypes.byref(managed), None, set_error) == -1
    plain.bits, plain.sizes = 64, (ctypes.c_int64 * 2)(2**40, 2**40)
    assert exchange.allocate(plain, ctypes.byref(managed), None, set_error) == -1
    assert [kind for kind, _ in errors] == [b"BufferError", b"MemoryError"]


def test_exchange_api_refuses_wrong_objects(exchange):
    managed, plain = ctypes.POINTER(Managed)(), Plain()
    for call in (lambda x: exchange.managed_of_object(x, ctypes.byref(managed)), lambda x: exchange.tensor_of_object(x, ctypes.byref(plain))):
        with pytest.raises(TypeError):
            call(3)
        with pytest.raises(BufferError):
            call(gradus.ones(2, requires_grad=True))


# ---- Errors --------------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call, error, text", [
    (lambda: gradus.ones(2, requires_grad=True).__dlpack__(), BufferError, "Can't export tensors that require gradient, use tensor.detach()"),
    (lambda: gradus.ones(2, device="meta").__dlpack__(), BufferError, "Cannot pack tensors on meta"),
    (lambda: gradus.ones(2, device="meta").__dlpack_device__(), BufferError, "meta"),
    (lambda: gradus.ones(2).__dlpack__(stream=1), BufferError, "stream must be None"),
    (lambda: gradus.ones(2).__dlpack__(dl_device=(2, 0)), BufferError, "cannot export a tensor on cpu to DLPack device (2, 0)"),
    (lambda: gradus.ones(2).__dlpack__(dl_device=3), TypeError, "argument 'dl_device' must be a tuple of two ints, not int"),
    (lambda: gradus.ones(2).__dlpack__(max_version=("a", 1)), TypeError, ""),
    (lambda: gradus.ones(2).__dlpack__(copy=3), TypeError, "argument 'copy' must be bool, not int"),
    (lambda: gradus.ones(2).__dlpack__(None), TypeError, "takes 0 positional arguments"),
    (lambda: gradus.from_dlpack(1), RuntimeError, "from_dlpack received an invalid capsule."),
    (lambda: gradus.from_dlpack(np.ones(2), device="nowhere"), RuntimeError, "nowhere"),
    (lambda: gradus.from_dlpack(np.zeros(2, np.longdouble)), BufferError, ""),
    (lambda: gradus.to_dlpack(3), TypeError, "argument 'tensor' must be Tensor, not int"),
])
def test_refused_exports_and_imports(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


class Producer:
    """An object whose __dlpack__ returns a capsule with a DLManagedTensorVersioned structure, whose fields the test can change."""

    def __init__(self, **changes):
        self.numbers = (ctypes.c_float * 6)(*range(6))
        self.deleted = 0
        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.delete)
        m = self.managed = Managed()
        m.version, m.deleter = (ctypes.c_uint32 * 2)(1, 0), ctypes.cast(self.deleter, ctypes.c_void_p)
        m.data, m.device, m.ndim = ctypes.addressof(self.numbers), (ctypes.c_int32 * 2)(1, 0), 2
        m.code, m.bits, m.lanes = 2, 32, 1
        m.sizes, m.strides = (ctypes.c_int64 * 2)(2, 3), None
        for name, value in changes.items():
            setattr(m, name, value)

    def delete(self, pointer):
        assert pointer == ctypes.addressof(self.managed)
        self.deleted += 1

    def __dlpack__(self, **options):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.managed), b"dltensor_versioned", None)

    def __dlpack_device__(self):
        return tuple(self.managed.device)


def test_import_from_a_producer_of_capsules():
    producer = Producer()
    x = gradus.from_dlpack(producer)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and producer.deleted == 0
    del x
    assert producer.deleted == 1
    assert gradus.from_dlpack(Producer(byte_offset=8, ndim=1)).tolist() == [2, 3]
    assert gradus.from_dlpack(Producer(strides=(ctypes.c_int64 * 2)(-3, -1), byte_offset=20)).tolist() == [[5, 4, 3], [2, 1, 0]]
    assert gradus.from_dlpack(Producer(ndim=0, sizes=None)).item() == 0


@pytest.mark.parametrize("changes", [
    {"version": (ctypes.c_uint32 * 2)(2, 0)}, {"device": (ctypes.c_int32 * 2)(2, 0)}, {"ndim": -1}, {"ndim": 65}, {"code": 99}, {"lanes": 4},
    {"bits": 4}, {"byte_offset": 1}, {"sizes": (ctypes.c_int64 * 2)(2**62, 2**62)}, {"sizes": (ctypes.c_int64 * 2)(-1, 2)},
    {"strides": (ctypes.c_int64 * 2)(2**62, 2**62)},
])
def test_invalid_capsules_are_refused_and_deleted(changes):
    producer = Producer(**changes)
    with pytest.raises((BufferError, ValueError, RuntimeError)):
        gradus.from_dlpack(producer)
    assert producer.deleted == 1


class Old:
    """An object whose __dlpack__ takes no arguments, as before DLPack had versioned capsules."""

    def __dlpack__(self):
        return np.ones(2).__dlpack__()

    def __dlpack_device__(self):
        return 1, 0


class Failing:
    def __dlpack__(self, **options):
        raise ZeroDivisionError("failing")


def test_producers_without_versions_and_failing_producers():
    assert gradus.from_dlpack(Old()).tolist() == [1, 1]
    with pytest.raises(ZeroDivisionError, match="failing"):
        gradus.from_dlpack(Failing())


def test_dlpack_leaks_no_references():
    array, theirs, ours = np.ones(3), torch.ones(3), gradus.ones(3)

    def call():
        gradus.from_dlpack(array), gradus.from_dlpack(theirs), torch.from_dlpack(ours), np.from_dlpack(ours), gradus.from_dlpack(ours)
        for bad in (1, Failing(), np.zeros(2, np.longdouble)):
            try:
                gradus.from_dlpack(bad)
            except (RuntimeError, ZeroDivisionError, BufferError):
                pass

    assert lost(call, array, theirs, ours) == 0
