"""Compares save and load with PyTorch: each library reads the other's files. Also checks that damaged and malicious files raise errors and run no
code."""
import io
import os
import pathlib
import pickle
import random
import stat
import subprocess
import sys
import zipfile
from collections import Counter, OrderedDict

import pytest

import gradus
from gradus import serialization
from oracle import torch

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"]


def contents(library):
    """Returns an object that contains a value of each kind that a checkpoint may contain."""
    x = library.arange(6.0).reshape(2, 3)
    return {
        "x": x, "view": x.t()[1:], "expanded": library.ones(2, 1).expand(2, 3), "parameter": library.nn.Parameter(x),
        "frozen": library.nn.Parameter(x * 1, requires_grad=False), "leaf": library.ones(2, requires_grad=True),
        "scalar": library.tensor(5), "empty": library.empty(0, 3), "meta": library.ones(2, 3, device="meta"),
        "dtype": library.bfloat16, "size": x.shape, "device": library.device("cpu"), "indexed": library.device("cuda", 1),
        "layout": library.strided, "storage": library.ones(2).untyped_storage(),
        "numbers": [1, -1, 2**40, 2**70, 1.5, float("inf"), True, None, 1 + 2j], "text": "äß\n", "bytes": b"a\xff", "bytearray": bytearray(b"x"),
        "tuple": (1, (2, (3, ()))), "set": {1, "a"}, "ordered": OrderedDict(b=1, a=[x]), "counter": Counter("aab"), 3: {"deep": [{}]},
    }


def as_python_objects(value):
    """Returns a value of either library as Python objects, with all properties that must survive saving."""
    name = type(value).__name__
    if name in ("Tensor", "Parameter"):
        values = None if value.device.type == "meta" else value.detach().tolist()
        return name, str(value.dtype).split(".")[-1], tuple(value.shape), value.stride(), value.storage_offset(), value.requires_grad, values
    if name == "TypedStorage":  # PyTorch loads a storage as this class
        name, value = "UntypedStorage", value._untyped_storage
    if name == "UntypedStorage":
        return name, bytes(value if isinstance(value, gradus.UntypedStorage) else value.tolist())
    if name in ("dtype", "device", "layout"):
        return name, str(value).split(".")[-1]
    if name == "Size":
        return name, tuple(value)
    if isinstance(value, dict):
        return name, [(key, as_python_objects(item)) for key, item in value.items()]
    return (name, [as_python_objects(item) for item in value]) if isinstance(value, (list, tuple)) else (name, value)


def saved(library, obj, **options):
    file = io.BytesIO()
    library.save(obj, file, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("writer", ["gradus", "torch"])
@pytest.mark.parametrize("reader", ["gradus", "torch"])
def test_objects_are_exchanged_with_pytorch(writer, reader):
    libraries = {"gradus": gradus, "torch": torch}
    loaded = libraries[reader].load(saved(libraries[writer], contents(libraries[writer])))
    assert as_python_objects(loaded) == as_python_objects(contents(torch))
    assert loaded["x"].untyped_storage().data_ptr() == loaded["view"].untyped_storage().data_ptr() == \
        loaded["parameter"].untyped_storage().data_ptr() == loaded["ordered"]["a"][0].untyped_storage().data_ptr()
    loaded["x"][0, 1] = 50
    assert loaded["view"][0, 0].item() == 50


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_every_dtype(dtype):
    values = [0.0, 1.0, 2.0] if dtype != "bool" else [False, True, True]
    ours, theirs = gradus.tensor(values).to(getattr(gradus, dtype)), torch.tensor(values).to(getattr(torch, dtype))
    back = gradus.load(saved(torch, theirs))
    assert back.dtype is ours.dtype and bytes(back.untyped_storage()) == bytes(ours.untyped_storage())
    assert torch.load(saved(gradus, ours)).view(torch.uint8).tolist() == theirs.view(torch.uint8).tolist()


@pytest.mark.parametrize("mmap", [False, True])
def test_saving_to_and_loading_from_paths(tmp_path, mmap):
    for path in (str(tmp_path / "a.pt"), tmp_path / "noext", pathlib.Path(tmp_path / ".hidden")):
        gradus.save(contents(gradus), path)
        loaded = gradus.load(path, mmap=mmap), contents(gradus), torch.load(path, mmap=mmap and str(path)[-1] == "t")
        assert as_python_objects(loaded[0]) == as_python_objects(loaded[1]) == as_python_objects(loaded[2])


def test_writing_to_a_memory_mapped_tensor_does_not_change_the_file(tmp_path):
    path = tmp_path / "a.pt"
    gradus.save(gradus.zeros(1000), path)
    before = path.read_bytes()
    x = gradus.load(path, mmap=True)
    x.add_(1)
    assert x.sum().item() == 1000 and path.read_bytes() == before


def test_storages_are_aligned_and_the_archive_is_valid():
    file = saved(gradus, contents(gradus))
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            header = file.getvalue()[info.header_offset:]
            begin = info.header_offset + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
            assert begin % 64 == 0


def test_module_and_optimizer_states_are_exchanged_with_pytorch():
    def trained(library):
        library.manual_seed(0)
        model = library.nn.Sequential(library.nn.Linear(3, 4), library.nn.Tanh(), library.nn.Linear(4, 2))
        optimizer = library.optim.AdamW(model.parameters())
        model(library.ones(1, 3)).sum().backward()
        optimizer.step()
        return model, optimizer

    (ours, our_optimizer), (theirs, their_optimizer) = trained(gradus), trained(torch)
    state = gradus.load(saved(torch, [theirs.state_dict(), their_optimizer.state_dict()]))
    assert state[0]._metadata == theirs.state_dict()._metadata
    ours.load_state_dict(state[0])
    our_optimizer.load_state_dict(state[1])
    theirs_state = torch.load(saved(gradus, [ours.state_dict(), our_optimizer.state_dict()]))
    theirs.load_state_dict(theirs_state[0])
    their_optimizer.load_state_dict(theirs_state[1])
    assert [p.tolist() for p in ours.parameters()] == [p.tolist() for p in theirs.parameters()]


def test_negative_strides_are_saved_as_a_copy():
    x = gradus.arange(5)[::-1]
    assert torch.load(saved(gradus, x)).tolist() == [4, 3, 2, 1, 0] == gradus.load(saved(gradus, x)).tolist()


def test_loading_conjugated_and_negated_tensors_of_pytorch():
    z = torch.tensor([1 + 2j, 3 - 4j])
    assert gradus.load(saved(torch, [z, z.conj()]))[1].tolist() == [1 - 2j, 3 + 4j]
    assert gradus.load(saved(torch, z.conj().imag)).tolist() == [-2.0, 4.0]


def test_saving_views_of_different_dtypes_is_refused():
    x = gradus.zeros(4)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        gradus.save([x, x.view(gradus.int32)], io.BytesIO())


def test_saving_subclasses_and_attributes():
    class Marked(gradus.Tensor):
        pass

    x = gradus.ones(2).as_subclass(Marked)
    x.note = "kept"
    file = saved(gradus, x) if _global(Marked) else None
    with pytest.raises(pickle.UnpicklingError, match="Marked"):
        gradus.load(file)
    file.seek(0)
    with serialization.safe_globals([Marked]):
        y = gradus.load(file)
    assert type(y) is Marked and y.note == "kept" and y.tolist() == [1.0, 1.0]
    p = gradus.nn.Parameter(gradus.ones(1))
    p.note = [1]
    assert gradus.load(saved(gradus, p)).note == [1] == torch.load(saved(gradus, p)).note


def _global(kind):
    """Decorator that makes a class available in this module under its own name, where pickle looks for the class."""
    kind.__qualname__ = kind.__name__
    setattr(sys.modules[__name__], kind.__name__, kind)
    return kind


def test_map_location():
    cuda = saved(torch, torch.ones(2)).getvalue().replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
    data = _replaced(saved(torch, torch.ones(2)).getvalue(), lambda text: text.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0"))
    assert cuda != data
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        gradus.load(io.BytesIO(data))
    seen = []
    for where in ("cpu", gradus.device("cpu"), {"cuda:0": "cpu"}, lambda storage, name: seen.append(name) or storage):
        assert gradus.load(io.BytesIO(data), map_location=where).tolist() == [1.0, 1.0]
    assert seen == ["cuda:0"]
    assert gradus.load(io.BytesIO(data), map_location="meta").device.type == "meta"
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        gradus.load(io.BytesIO(data), map_location="nowhere")


def test_loading_files_of_the_other_byte_order():
    def swapped(records):
        for name in records:
            if name.endswith("byteorder"):
                records[name] = b"big"
            elif "/data/" in name:
                records[name] = b"".join(records[name][i:i + 4][::-1] for i in range(0, len(records[name]), 4))
        return records

    for x in (torch.arange(5), torch.tensor([1 + 2j])):
        width = 8 if x.dtype == torch.int64 else 4
        records = _records(saved(torch, x).getvalue())
        for name in records:
            if name.endswith("byteorder"):
                records[name] = b"big"
            elif "/data/" in name:
                records[name] = b"".join(records[name][i:i + width][::-1] for i in range(0, len(records[name]), width))
        assert gradus.load(_archive(records)).tolist() == x.tolist()


# The tests below check that gradus.load refuses invalid files.


def _records(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _archive(records, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in records.items():
            archive.writestr(name, content)
    file.seek(0)
    return file


def _replaced(data, change):
    records = _records(data)
    return _archive({name: change(content) if name.endswith("data.pkl") else content for name, content in records.items()}).getvalue()


def load_pickle(text, storages=(b"\0" * 16,)):
    """Loads an archive that has the pickle `text` and, for each storage, the bytes in `storages`."""
    return gradus.load(_archive({"a/data.pkl": text, "a/version": b"3\n", **{f"a/data/{i}": content for i, content in enumerate(storages)}}))


class Call:
    """An object that is pickled as a call of a function. Unpickling would run that call."""

    def __init__(self, function, *args):
        self.function = function
        self.args = args

    def __reduce__(self):
        return self.function, self.args


@pytest.mark.parametrize(("obj", "name"), [
    (Call(os.system, "touch /tmp/gradus-was-here"), "posix.system"), (Call(eval, "1"), "eval"), (Call(getattr, 1, "real"), "getattr"),
    (torch.nn.Linear(1, 1), "torch.nn.modules.linear.Linear"), (object(), "object"), (pathlib.PurePosixPath("a"), "pathlib"),
    (random.Random(), "random.Random"),
], ids=["system", "eval", "getattr", "module", "object", "path", "random"])
@pytest.mark.parametrize("weights_only", [None, True])
def test_globals_that_are_not_allowed_are_refused(obj, name, weights_only):
    with pytest.raises(pickle.UnpicklingError, match=name) as found:
        gradus.load(saved(torch, obj), weights_only=weights_only)
    assert "add_safe_globals" in str(found.value)


class Options:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value


def test_add_safe_globals_allows_a_class():
    file = saved(gradus, {"options": Options([1])})
    with pytest.raises(pickle.UnpicklingError, match="Options"):
        gradus.load(file)
    serialization.add_safe_globals([Options])
    try:
        file.seek(0)
        assert gradus.load(file) == {"options": Options([1])}
    finally:
        serialization.clear_safe_globals()
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Options"):
        gradus.load(file)
    with serialization.safe_globals([(Options, "other.Name")]), pytest.raises(pickle.UnpicklingError):
        file.seek(0)
        gradus.load(file)
    with pytest.raises(ValueError, match="tuple of length 2"):
        serialization.add_safe_globals([(Options,)])


def pickled(*instructions):
    return b"\x80\x02" + b"".join(instructions) + b"."


def text(value):
    return b"X" + len(value).to_bytes(4, "little") + value.encode()


STORAGE = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + b"K\x04tQ"


def tensor(offset=b"K\x00", size=b"K\x04\x85", stride=b"K\x01\x85", storage=STORAGE):
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + offset + size + stride + b"\x89}tR"


HUGE = b"\x8a\x08" + (2**62).to_bytes(8, "little")


def test_the_unchanged_pickle_of_a_tensor_loads():
    assert load_pickle(pickled(tensor())).tolist() == [0.0] * 4


@pytest.mark.parametrize("instructions", [
    tensor(size=b"K\x05\x85"), tensor(offset=b"K\x01"), tensor(stride=b"K\x02\x85"), tensor(size=HUGE + b"\x85"), tensor(offset=HUGE),
    tensor(size=HUGE + HUGE + b"\x86", stride=HUGE + HUGE + b"\x86"), tensor(size=b"J\xff\xff\xff\xff\x85"),
    tensor(stride=b"J\xff\xff\xff\xff\x85"), tensor(size=b"K\x00" + HUGE + b"\x86"),
    tensor(size=b"N"), tensor(size=text("a") + b"\x85"), tensor(storage=b"N"), tensor(storage=b"K\x01Q"), tensor(storage=text("a") + b"\x85Q"),
    tensor(storage=STORAGE.replace(b"K\x04", b"K\x05")), tensor(storage=STORAGE.replace(b"K\x04", HUGE)),
    tensor(storage=STORAGE.replace(text("0"), text("7"))), tensor(storage=STORAGE.replace(text("0"), text("../../data.pkl"))),
    tensor(storage=STORAGE.replace(b"FloatStorage", b"float32")), tensor().replace(b"\x89}", b"K\x07}"),
    tensor().replace(b"\x89}", b"\x89}" + text("a") + b"K\x01s"), b"ctorch\nTensor\n)R", b"ctorch\nTensor\n)\x81", b"ctorch\nfloat32\n)R",
    b"cbuiltins\nset\n" + b"(" * 1 + b"]K\x01atR" + b"K\x01a", b"cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R", b"ccollections\nOrderedDict\nK\x05\x85R",
    b"ccollections\nOrderedDict\n)R}" + text("items") + b"K\x01sb", b"ctorch._utils\n_rebuild_tensor_v2\n}" + text("__defaults__") + b"Nsb",
    b"ctorch._utils\n_rebuild_tensor_v2\nN}" + text("__defaults__") + b"Ns\x86b", b"ctorch\nTensor\nN}" + text("add") + b"Ns\x86b",
    b"]K\x01s", b"K\x01K\x02a", b"}K\x01K\x02K\x03ds", b"h\x05", b"R", b"b", b"a", b"t", b"0", b"\x93", b"\x81", b"Q", b"cposix\n", b"\xff",
    b"X\xff\xff\xff\xff", b"\x8a\x05", b"}]K\x01s", b"}}K\x01s", b"(", b"", b"ioperator\nadd\n", b"V1\n", b"P1\n", b"\x82\x01", b"I1\n",
    b")" * 5 + b"\x85" * 100000 + b"q\x00}h\x00K\x01s", b"K\x01" + b"q\x00h\x00\x86" * 64 + b"q\x01}h\x01K\x01s",
], ids=lambda value: value[:40].hex())
def test_malicious_pickles_are_refused(instructions):
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        load_pickle(pickled(instructions))


def test_a_pickle_cannot_change_the_allowed_globals():
    """Loading a file cannot change attributes of the functions and classes that its pickle is allowed to use."""
    before = gradus._serialization.rebuild.rebuild_tensor_v2.__defaults__, set(vars(gradus.nn.Parameter))
    for kind in (b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch.nn.parameter\nParameter\n"):
        for state in (b"}" + text("x") + b"Ns", b"N}" + text("__defaults__") + b")s\x86"):
            with pytest.raises(pickle.UnpicklingError):
                load_pickle(pickled(kind, state, b"b"))
    assert (gradus._serialization.rebuild.rebuild_tensor_v2.__defaults__, set(vars(gradus.nn.Parameter))) == before


def test_a_pickled_tensor_without_elements_may_have_huge_sizes():
    x = load_pickle(pickled(tensor(size=HUGE + b"K\x00\x86", stride=b"K\x01K\x01\x86")))
    assert tuple(x.shape) == (2**62, 0) and x.numel() == 0


def test_a_deeply_nested_pickle_does_not_crash():
    deep = load_pickle(pickled(b")" + b"\x85" * 200000))
    assert type(deep) is tuple and len(deep) == 1


def test_damaged_files_are_loaded_or_refused():
    """A file that is truncated or randomly changed is loaded, possibly with other values, or raises RuntimeError, UnpicklingError or EOFError.
    Loading raises no other error, e.g. no MemoryError."""
    data = saved(torch, {"x": torch.arange(6.0), "y": [torch.ones(3), {"z": 1}]}).getvalue()
    generator = random.Random(0)
    for _ in range(600):
        damaged = bytearray(data[:generator.randrange(len(data))] if generator.random() < 0.3 else data)
        for _ in range(generator.choice([0, 1, 1, 2, 8])):
            if damaged:
                damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        try:
            gradus.load(io.BytesIO(bytes(damaged)))
        except (RuntimeError, pickle.UnpicklingError, EOFError):
            pass
    text_of = _records(data)["archive/data.pkl"]
    for _ in range(1500):
        damaged = bytearray(text_of)
        for _ in range(generator.choice([1, 1, 2, 4])):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        try:
            gradus.load(io.BytesIO(_replaced(data, lambda _: bytes(damaged))))
        except (RuntimeError, pickle.UnpicklingError):
            pass


def test_invalid_archives_are_refused(tmp_path):
    records = _records(saved(torch, torch.ones(1000)).getvalue())
    for file, message in [
        (_archive(records, zipfile.ZIP_DEFLATED), "compressed"),
        (_archive({"archive/version": b"3\n"}), "failed locating file data.pkl"),
        (_archive({**records, "other/data.pkl": b""}), "failed locating file data.pkl"),
        (_archive({name: content for name, content in records.items() if "/data/" not in name}), "failed locating file data/0"),
        (_archive({**records, "archive/data/0": b"1234"}), "storage 0 has 4 bytes"),
        (_archive({**records, "archive/constants.pkl": b""}), "TorchScript"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            gradus.load(file)
    flipped = bytearray(saved(torch, torch.ones(1000)).getvalue())
    flipped[flipped.index(b"\0\0\x80?" * 100) + 200] ^= 1
    with pytest.raises(RuntimeError, match="damaged"):
        gradus.load(io.BytesIO(bytes(flipped)))


def test_archives_with_overlapping_records_are_refused():
    """A small ZIP archive is refused if many entries of its directory point to the same large record."""
    records = {"a/data.pkl": b"", **{f"a/data/{i}": b"\0" * 4096 for i in range(20)}}
    tensors = b"".join(tensor(storage=STORAGE.replace(text("0"), text(str(i))).replace(b"K\x04", b"M\x00\x04")) + b"0" * 0 for i in range(20))
    records["a/data.pkl"] = pickled(b"(" + tensors + b"t")
    file = bytearray(_archive(records).getvalue())
    assert len(gradus.load(io.BytesIO(bytes(file)))) == 20
    with zipfile.ZipFile(io.BytesIO(bytes(file))) as archive:
        first = archive.getinfo("a/data/0")
        entries = [(archive.getinfo(f"a/data/{i}"), f"a/data/{i}".encode()) for i in range(20)]
        end = entries[0][0].header_offset + 30 + len("a/data/0") + 4096
        directory = file[archive.start_dir:]
    small = file[:end] + directory
    at = 0
    for info in archive.infolist():
        at = small.index(b"PK\x01\x02", end + at if at == 0 else at)
        if "/data/" in info.filename:
            small[at + 42:at + 46] = first.header_offset.to_bytes(4, "little")
        at += 46
    small[-6:-2] = end.to_bytes(4, "little")
    with pytest.raises(RuntimeError):
        gradus.load(io.BytesIO(bytes(small)))


def test_files_that_are_no_archive_are_refused(tmp_path):
    with pytest.raises(EOFError):
        gradus.load(io.BytesIO())
    with pytest.raises(pickle.UnpicklingError, match="no zip archive"):
        gradus.load(io.BytesIO(b"hello world, this is text"))
    with pytest.raises(FileNotFoundError):
        gradus.load(tmp_path / "absent")


def test_invalid_arguments_of_save_and_load_are_refused(tmp_path):
    file = saved(gradus, 1)
    for call, kind in [
        (lambda: gradus.load(3), AttributeError), (lambda: gradus.load(file, mmap=True), ValueError),
        (lambda: gradus.load(file, pickle_module=pickle, weights_only=True), RuntimeError), (lambda: gradus.load(file, weights_only=False, nonsense=1), TypeError),
        (lambda: gradus.save(1, 3), AttributeError), (lambda: gradus.save(1, tmp_path / "no" / "folder"), RuntimeError),
        (lambda: gradus.save(lambda: 1, file), (AttributeError, pickle.PicklingError)),
    ]:
        with pytest.raises(kind):
            call()


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.pt"
    gradus.save(1, path)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        gradus.save([gradus.ones(3), lambda: 1], path)
    assert gradus.load(path) == 1 and os.listdir(tmp_path) == ["a.pt"]


def test_a_killed_save_leaves_the_old_file(tmp_path):
    """If the process ends at some point of a save, the old file stays complete."""
    path = tmp_path / "a.pt"
    gradus.save(1, path)
    program = """
import os, sys, zipfile
import gradus
writes = [0]
write = zipfile._ZipWriteFile.write
def counted(self, data):
    writes[0] += 1
    if writes[0] == int(sys.argv[2]):
        os._exit(9)
    return write(self, data)
zipfile._ZipWriteFile.write = counted
gradus.save([gradus.ones(100), gradus.zeros(100)], sys.argv[1])
"""
    for count in range(1, 8):
        path_of_package = os.path.dirname(os.path.dirname(gradus.__file__))
        result = subprocess.run([sys.executable, "-c", program, str(path), str(count)], env={**os.environ, "PYTHONPATH": path_of_package})
        assert result.returncode == (9 if count < 8 else 0) and gradus.load(path) == 1


def test_save_keeps_permissions_and_follows_links(tmp_path):
    path = tmp_path / "a.pt"
    gradus.save(1, path)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    link = tmp_path / "link.pt"
    link.symlink_to(path)
    gradus.save(2, link)
    assert link.is_symlink() and gradus.load(path) == 2 and stat.S_IMODE(path.stat().st_mode) == 0o640
    gradus.save(3, os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
