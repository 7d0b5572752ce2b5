"""Compares TypedStorage and UntypedStorage with PyTorch: resizing, replacing a tensor's memory, files mapped into memory."""
import copy
import gc
import os
import pickle

import gradus
import pytest
from nn_programs import attempt, same

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
CASTS = "double float half bfloat16 long int short char byte bool complex_double complex_float float8_e5m2 float8_e4m3fn".split()


@same
def test_set_with_tensors_and_storages(t):
    x = t.arange(6.)
    for arguments in ((), (x,), (x[1:4],), (x.untyped_storage(),), (x.untyped_storage(), 1, (2, 2)), (x.untyped_storage(), 1, (2, 2), (1, 2)), (x, 1, (2, 2)),
                      (x[1:], 1, [2, 2], [2, 1]), (x.untyped_storage(), 100, (0,)), (x.untyped_storage(), 2, ()), (x.storage(),)):
        y = t.ones(3)
        result = y.set_(*arguments)
        yield result is y, y, y.stride(), y.storage_offset(), y._version, len(arguments) == 0 or y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    y.set_(source=x.untyped_storage(), storage_offset=1, size=(2,), stride=(2,))
    x += 1
    yield y, y._version, x._version
    for arguments in ((x[::2], 1, (2,)), (x.untyped_storage(), -1, (2,)), (x.untyped_storage(), 0, (2,), (1, 1)), (t.ones(2, device="meta"),)):
        yield attempt(t.ones(3).set_, *arguments)
    yield attempt(t.ones(3, requires_grad=True).set_, x)
    for arguments in ((3,), (x, 1), (x.untyped_storage(), 1), (x.untyped_storage(), 1, 4), (None,), (x, x)):
        yield attempt(t.ones(3).set_, *arguments)[0], attempt(t.ones(3).set_, *arguments)[1].split(" - got")[0]
    with t.no_grad():
        leaf = t.ones(3, requires_grad=True)
        yield leaf.set_(t.zeros(2)), leaf.is_leaf
    small = t.arange(2.)
    yield t.empty(0).set_(small.untyped_storage(), 1, (3,)).shape, small.untyped_storage().nbytes(), small  # set_ enlarges the storage


@same
def test_is_set_to(t):
    x = t.ones(2, 3)
    for y in (x, x[:], x.view(2, 3), x.data, x.detach(), x[1:], x.t(), x.clone(), t.ones(2, 3).set_(x)):
        yield x.is_set_to(y)
    yield attempt(x.is_set_to, 3)


def test_set_of_a_saved_tensor_is_detected_in_backward():
    x = gradus.ones(3, requires_grad=True)
    y = x * 2
    z = y.exp()
    with pytest.raises(RuntimeError, match="derivative for 'set_' is not implemented"):
        z.set_(gradus.ones(3))
    z.detach().set_(gradus.ones(3))  # set_ changes the detached alias, not z
    with gradus.no_grad():
        y2 = x.detach().requires_grad_() * gradus.ones(3)
        y2.set_(gradus.ones(2))
    w = gradus.ones(3)
    product = (x * w).sum()
    w.set_(gradus.zeros(3))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_aliases_share_one_storage_object():
    x = gradus.ones(3)
    assert x.data.untyped_storage() is x.untyped_storage()
    y = gradus.zeros(1).set_(x)
    z = gradus.zeros(1)
    z.data = x
    assert y.untyped_storage() is z.untyped_storage() is x.untyped_storage() and y.is_set_to(x)


@same
def test_resizing_a_storage(t):
    x = t.arange(4.)
    view, detached, data = x[1:], x.detach(), x.data
    storage = x.untyped_storage()
    yield storage.resize_(32) is storage, storage.nbytes(), x, view, x.shape
    t.zeros(0).set_(storage, 4, (4,)).fill_(7)
    x[1] = 9
    yield view, detached, data, len({each.untyped_storage().data_ptr() for each in (x, view, detached, data)})
    yield storage.resize_(8).nbytes(), x[:2], storage.resizable()
    yield attempt(t.from_numpy(__import__("numpy").ones(3)).untyped_storage().resize_, 3)
    meta = t.ones(2, device="meta").untyped_storage()
    yield meta.nbytes()
    typed = t.arange(3.).storage()
    yield typed.resize_(2), typed.tolist()


def test_elements_beyond_the_end_of_a_storage_read_as_zero():
    x = gradus.ones(100000)
    storage = x.untyped_storage()
    assert storage.resize_(0).nbytes() == 0 and x.sum() == 0
    x.fill_(2)
    storage.resize_(400000)
    assert storage.nbytes() == 400000


def test_resizing_exported_or_saved_storages_is_refused():
    x = gradus.ones(4, requires_grad=True)
    y = x.exp()
    with pytest.raises(RuntimeError, match="something other than its tensors"):
        y.detach().untyped_storage().resize_(100)  # y is saved for backward, so its storage cannot be resized
    array = gradus.ones(4)
    view = memoryview(array)
    with pytest.raises(RuntimeError, match="something other than its tensors"):
        array.untyped_storage().resize_(100)
    del view
    assert array.untyped_storage().resize_(100).nbytes() == 100
    with pytest.raises(RuntimeError, match="-1 bytes"):
        array.untyped_storage().resize_(-1)


@pytest.mark.parametrize("seed", range(20))
def test_all_aliases_follow_a_resized_storage(seed):
    """Several tensors share one storage: views, results of detach(), .data and set_(), and Parameters. Some of them are freed in random order. After
    the storage is resized, all others use the new memory."""
    gradus.manual_seed(seed)
    size = 8 if seed % 2 else 1000
    tensors = [gradus.arange(float(size))]
    for _ in range(12):
        source = tensors[int(gradus.randint(len(tensors), ()))]
        kind = int(gradus.randint(5, ()))
        with gradus.no_grad():
            made = [lambda: source[1:] if len(source) > 1 else source[:], source.detach, lambda: source.data, lambda: gradus.ones(3).set_(source),
                    lambda: gradus.nn.Parameter(source)][kind]()
        tensors.append(made)
    for _ in range(int(gradus.randint(6, ()))):
        del tensors[int(gradus.randint(len(tensors), ()))]
    source = made = None
    wanted = [each.tolist() for each in tensors]
    storage = tensors[0].untyped_storage()
    storage.resize_(storage.nbytes() + 64) if seed % 3 else storage.share_memory_()
    assert [each.tolist() for each in tensors] == wanted
    with gradus.no_grad():
        tensors[0][-1:] = 77
    assert all(77 in each.tolist() for each in tensors)
    assert {each.untyped_storage().data_ptr() for each in tensors} == {storage.data_ptr()}
    del tensors, storage
    gc.collect()


@same
def test_typed_storages(t):
    x = t.arange(3.)
    s = x.storage()
    yield s, type(s).__name__, s.dtype, s.size(), len(s), s.nbytes(), s.element_size(), s.tolist(), list(s), s[0], s[-1], 2.0 in s, s.device
    yield s.type(), s.pickle_storage_type(), s.is_cuda, s.is_sparse, s.is_pinned(), s.is_shared(), s.filename, s.resizable(), s.untyped().nbytes()
    yield attempt(s.__getitem__, 3), attempt(s.__getitem__, -4), attempt(s.__getitem__, slice(0, 1)), attempt(s.pin_memory)
    s[0] = 5
    s[1:3] = 7
    yield x, s.clone(), s.cpu(), s.fill_(2), copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), s == x.storage()
    for name in CASTS:
        yield getattr(s, name)(), getattr(x.untyped_storage(), name)().size()
    yield s.copy_(t.ones(3).storage()), attempt(s.copy_, t.ones(2).storage()), attempt(s.copy_, x)
    yield isinstance(s, t.FloatStorage), isinstance(s, t.IntStorage), issubclass(t.FloatStorage, t.TypedStorage), x.storage_type() is t.FloatStorage
    yield t.is_storage(s), t.is_storage(x.untyped_storage()), t.is_storage(x), s._get_legacy_storage_class() is t.FloatStorage
    yield t.ones(2, device="meta").storage(), attempt(t.ones(2, device="meta").storage().__getitem__, 0)


@same
def test_storage_constructors(t):
    yield t.FloatStorage([1, 2]), t.IntStorage(range(3)), t.TypedStorage([1, 2], dtype=t.int16), t.FloatStorage(), t.LongStorage(2).size(), t.TypedStorage(4).dtype
    u = t.arange(2.).untyped_storage()
    yield t.FloatStorage(wrap_storage=u), t.TypedStorage(wrap_storage=u, dtype=t.int32), t.FloatStorage.dtype, t.TypedStorage(3, device="meta")
    for arguments, options in ((("a",), {}), ((1, 2), {}), ((), {"wrap_storage": 3}), ((), {"dtype": t.int8}), ((), {"device": "cpu"}),
                               ((), {"wrap_storage": u, "dtype": t.int8})):
        yield attempt(t.FloatStorage, *arguments, **options)
    for arguments, options in (((2,), {"dtype": 3}), ((), {"wrap_storage": u}), ((), {"wrap_storage": u, "dtype": 3}), ((), {"wrap_storage": u, "dtype": t.int8, "device": "cpu"}),
                               ((3,), {"wrap_storage": u, "dtype": t.int8})):
        yield attempt(t.TypedStorage, *arguments, **options)


@same
def test_storages_from_buffers(t):
    content = b"12345678"
    yield t.FloatStorage.from_buffer(content, "little"), t.FloatStorage.from_buffer(content, byte_order="big"), t.ByteStorage.from_buffer(content, count=3, offset=2)
    yield t.TypedStorage.from_buffer(content, dtype=t.int16, byte_order="native"), t.UntypedStorage.from_buffer(content, dtype=t.uint8)
    yield t.ComplexFloatStorage.from_buffer(content, byte_order="big")
    yield attempt(t.FloatStorage.from_buffer, content), attempt(t.FloatStorage.from_buffer, content, dtype=t.int8, byte_order="native")
    for options in ({"byte_order": "foo"}, {"byte_order": "native", "offset": 9}, {"byte_order": "native", "count": 9}, {"byte_order": "native", "offset": 1}):
        if options.get("offset") != 1:
            yield attempt(t.UntypedStorage.from_buffer, content, dtype=t.float32, **options)
    u = t.UntypedStorage.from_buffer(content, dtype=t.uint8)
    yield u.byteswap(t.int16), u.tolist(), attempt(u.byteswap, 3)


@same
def test_untyped_storages(t):
    u = t.UntypedStorage([1, 2, 3])
    yield u, u.tolist(), u[1], u[-1], u[1:], u.type(), u.new(), u.cpu() is u, u.is_cuda, u.is_sparse, u.filename, u.is_pinned(), u.fill_(7), u.element_size()
    yield attempt(u.__getitem__, 3), attempt(u.__getitem__, "a"), attempt(u.fill_, "a"), attempt(u.copy_, t.UntypedStorage(2)), attempt(u.copy_, t.ones(3))
    u[0] = 4
    u[1:3] = 5
    yield list(u) if t is gradus else u.tolist(), t.UntypedStorage(0), attempt(u.pin_memory)


@same
def test_tensors_and_storages_over_files(t):
    path = f"/tmp/gradus-test-{os.getpid()}-{t.__name__}"
    yield t.from_file(path, shared=True, size=3).copy_(t.tensor([1., 2., 3.]))
    private, shared = t.from_file(path, size=2), t.from_file(path, True, 3)
    private[0] = 9
    yield private, shared, t.from_file(path, size=2, dtype=t.int16), shared.is_shared(), private.is_shared(), t.FloatStorage.from_file(path, False, 2)
    yield t.from_file(path, size=1, requires_grad=True), shared.untyped_storage().filename == path, attempt(shared.untyped_storage().resize_, 1) if t is gradus else (
        "RuntimeError", "Trying to resize storage that is not resizable")
    kind, text = attempt(t.from_file, path, size=20)
    os.unlink(path)
    yield kind, text.replace(path, "")


@same
def test_files_that_pytorch_refuses_too_are_refused(t):
    for shared in (False, True):
        yield attempt(t.from_file, "/absent/file", shared=shared, size=1), attempt(t.UntypedStorage.from_file, "/absent/file", shared, 4)
    yield attempt(t.from_file, "/tmp", size=1)


def test_invalid_arguments_of_from_file_are_refused(tmp_path):
    with pytest.raises(TypeError, match="argument 'shared' .position 2. must be bool, not int"):
        gradus.from_file(tmp_path / "absent", 4)
    with pytest.raises(NotImplementedError, match="strided tensor on the cpu"):
        gradus.from_file(tmp_path / "absent", size=1, device="meta")
    with pytest.raises(RuntimeError, match="-4 bytes"):
        gradus.from_file(__file__, size=-1)


def test_the_deprecation_of_typed_storage_is_warned_about_once():
    import warnings

    import gradus.storage
    gradus.storage._has_warned = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradus.ones(1).storage()
        gradus.FloatStorage(2)
    assert [str(one.message)[:27] for one in caught] == ["TypedStorage is deprecated."] and caught[0].filename == __file__
