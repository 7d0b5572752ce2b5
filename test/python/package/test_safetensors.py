"""Tests safetensors files that are exchanged with the safetensors package, damaged, or randomly changed. The rules that the C tests check one by one
are not repeated."""
import json
import os
import random
import struct
import subprocess
import sys
import threading

import pytest

import gradus
from gradus.safetensors import SafetensorError, load, load_file, safe_open, save, save_file
from oracle import needs_torch, torch

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32", "float64",
          "complex64", "float8_e4m3fn", "float8_e5m2"]


def contents(library):
    """Returns {name: tensor}: one tensor of each dtype, and others of 0 to 3 dimensions. JSON must escape one of the names. One name is empty."""
    tensors = {dtype: library.arange(6).reshape(2, 3).to(getattr(library, dtype)) for dtype in DTYPES}
    return {**tensors, "scalar": library.tensor(3.5), "empty": library.zeros(0, 2), 'ä"\\\n\x01😀': library.ones(1, 1, 2), "": library.ones(1)}


@pytest.fixture
def package():
    """Provides the module safetensors.torch, which needs PyTorch."""
    needs_torch()
    return pytest.importorskip("safetensors.torch", reason="the package is not installed: build/venv/bin/pip install safetensors")


def values(tensors):
    return {name: (str(x.dtype).split(".")[-1], tuple(x.shape), x.contiguous().view(-1).tolist()) for name, x in tensors.items()}


def test_save_gives_the_bytes_of_the_safetensors_package(package):
    assert save(contents(gradus)) == package.save(contents(torch))
    assert save(contents(gradus), {"format": "pt"}) == package.save(contents(torch), {"format": "pt"})
    assert save({}) == package.save({})


def test_files_are_exchanged_with_the_safetensors_package(tmp_path, package):
    ours, theirs = tmp_path / "ours", str(tmp_path / "theirs")
    metadata = {"a": "1", "ß": '"\n'}
    save_file(contents(gradus), ours, metadata)
    package.save_file(contents(torch), theirs, metadata)
    expected = values(contents(torch))
    assert values(package.load_file(str(ours))) == values(load_file(theirs)) == values(load_file(ours)) == expected
    assert list(load_file(theirs)) == list(package.load_file(theirs))
    with safe_open(theirs, framework="pt") as file, package.safe_open(str(ours), framework="pt") as other:
        assert file.keys() == other.keys() and file.offset_keys() == other.offset_keys() and file.metadata() == other.metadata() == metadata
        for name in file.keys():
            part, theirs_part = file.get_slice(name), other.get_slice(name)
            assert part.get_shape() == theirs_part.get_shape() and part.get_dtype() == theirs_part.get_dtype()


def test_save_file_and_load_file_round_trip(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file(contents(gradus), path)
    assert values(load_file(path)) == values(load(path.read_bytes())) == values(contents(gradus))
    assert os.listdir(tmp_path) == ["model.safetensors"]
    with safe_open(path, "pt", device="meta") as file:
        assert file.metadata() is None and file.get_tensor("int8").device.type == "meta"
    assert load_file(path, device="meta")["int8"].shape == (2, 3)


def test_state_dict_of_a_module(tmp_path):
    model, other = gradus.nn.Linear(3, 2), gradus.nn.Linear(3, 2)
    save_file(model.state_dict(), tmp_path / "a")
    other.load_state_dict(load_file(tmp_path / "a"))
    assert gradus.equal(model.weight, other.weight) and not load_file(tmp_path / "a")["weight"].requires_grad


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda: save([1]), ValueError, "Expected a dict of"),
    (lambda: save({"a": 1}), ValueError, "Key `a` is invalid, expected torch.Tensor but received"),
    (lambda: save({1: gradus.ones(1)}), TypeError, "must be str, not int"),
    (lambda: save({"a": gradus.ones(1)}, {"a": 1}), TypeError, "must be str, not int"),
    (lambda: save({"a\0": gradus.ones(1)}), ValueError, "null character"),
    (lambda: save({"__metadata__": gradus.ones(1)}), SafetensorError, "__metadata__"),
    (lambda: save({"a": gradus.ones(2, 3).t()}), ValueError, "You are trying to save a non contiguous tensor: `a`"),
    (lambda: save({"a": gradus.ones(1, dtype=gradus.complex128)}), SafetensorError, "complex128"),
    (lambda: save({"a": gradus.ones(1, device="meta")}), SafetensorError, "meta"),
    (lambda: load(b""), SafetensorError, "has at least 8 bytes"),
    (lambda: load(b"\x02" + bytes(7) + b"[]"), SafetensorError, "expected '{'"),
    (lambda: load_file("/nonexistent"), FileNotFoundError, "No such file"),
    (lambda: load_file("/"), IsADirectoryError, "Is a directory"),
    (lambda: load_file("/dev/null"), SafetensorError, "no regular file"),
    (lambda: load_file("a\0b"), ValueError, "null"),
    (lambda: load_file(3), TypeError, "PathLike"),
    (lambda: save_file({}, "/nonexistent/a"), FileNotFoundError, "No such file"),
    (lambda: save_file({}, "/"), IsADirectoryError, "Is a directory"),
    (lambda: safe_open("/dev/null", framework="tf"), SafetensorError, "framework tf is invalid"),
])
def test_invalid_arguments_and_files_are_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_save_refuses_tensors_that_share_memory():
    x = gradus.ones(4)
    with pytest.raises(RuntimeError, match="share memory") as found:
        save({"a": x, "b": x[1:3], "c": gradus.ones(4), "d": x[3:]})
    assert "'b'" in str(found.value) and "'c'" not in str(found.value)
    assert values(load(save({"a": x[:2], "b": x[2:]}))) == values({"a": gradus.ones(2), "b": gradus.ones(2)})


def test_paths_that_are_not_valid_utf8(tmp_path):
    """A file under a path that is not valid UTF-8 can be written and read, and errors about the path have a text."""
    name = os.fsencode(tmp_path) + b"/\xff\xfe"
    with pytest.raises(FileNotFoundError):
        load_file(name)
    save_file({"a": gradus.ones(1)}, name)
    assert list(load_file(os.fsdecode(name))) == ["a"]


def test_using_a_closed_file_is_an_error(tmp_path):
    save_file({"a": gradus.ones(1)}, tmp_path / "a")
    with safe_open(tmp_path / "a", "pt") as file:
        with pytest.raises(SafetensorError, match="has no tensor 'b'"):
            file.get_tensor("b")
        with pytest.raises(SafetensorError):
            file.get_slice("b")
    for call in (file.keys, file.metadata, file.offset_keys, lambda: file.get_tensor("a"), lambda: file.get_slice("a")):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_closing_while_another_thread_reads(tmp_path):
    save_file({"a": gradus.ones(1 << 20)}, tmp_path / "a")
    for _ in range(20):
        file = safe_open(tmp_path / "a", "pt")
        results = []

        def read(file=file, results=results):
            try:
                results.append(file.get_tensor("a").sum().item())
            except ValueError:
                results.append("closed")

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        file.__exit__()
        for thread in threads:
            thread.join()
        assert set(results) <= {float(1 << 20), "closed"}


def mutated(data, generator):
    """Returns the file with some bytes changed, removed or moved, mostly in its header, or with other numbers in the header."""
    data = bytearray(data)
    length = struct.unpack("<Q", data[:8])[0]
    for _ in range(generator.choice([1, 1, 1, 2, 5])):
        at = generator.randrange(8 + length) if generator.random() < 0.9 else generator.randrange(len(data))
        kind = generator.randrange(6)
        if kind == 0:
            data[at:at + 1] = bytes([generator.randrange(256)])
        elif kind == 1:
            data[at:at + generator.randrange(1, 20)] = b""
        elif kind == 2:
            data[at:at] = data[(begin := generator.randrange(len(data))):begin + generator.randrange(1, 40)]
        elif kind == 3:
            data[at:at + 1] = generator.choice([b"[", b"]", b"{", b"}", b",", b'"', b"\\u00e9", b"-", b"18446744073709551615", b"0", b"null"])
        elif kind == 4:
            data = data[:at]
        else:
            header = bytes(data[8:8 + length])
            digits = [i for i, c in enumerate(header) if chr(c).isdigit()]
            if digits:
                data[8 + (place := generator.choice(digits)):9 + place] = str(generator.choice([0, 1, 7, 9, 10, 2**32, 2**63])).encode()
        if len(data) < 9:
            break
    if generator.random() < 0.7 and len(data) > 8:  # the length of the header is corrected, so that the file passes the first check
        end = data.rfind(b"}") + 1
        data[:8] = struct.pack("<Q", max(end - 8, 0))
    return bytes(data)


def mutated_files():
    original = save({name: x for name, x in contents(gradus).items() if len(name) < 6}, {"format": "pt"})
    generator = random.Random(0)
    return (mutated(original, generator) for _ in range(int(os.environ.get("GRADUS_MUTATIONS", "2000"))))


def test_mutated_files_are_loaded_or_refused():
    """Every randomly changed file is either read or raises SafetensorError."""
    read = 0
    for data in mutated_files():
        try:
            load(data)
            read += 1
        except SafetensorError as exception:
            assert type(exception) is SafetensorError
    assert read > 0


def test_mutated_files_that_load_are_loaded_by_the_package_too(package):
    for data in mutated_files():
        try:
            ours = load(data)
        except SafetensorError:
            continue
        theirs = package.load(data)
        assert {name: (str(x.dtype), tuple(x.shape)) for name, x in ours.items()} == {name: (str(x.dtype), tuple(x.shape)) for name, x in theirs.items()}


def test_sizes_are_checked_before_memory_is_allocated():
    """The header claims 2^40 elements that the file does not have. The sizes are checked before memory is allocated."""
    header = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    with pytest.raises(SafetensorError, match="bytes follow the header"):
        load(struct.pack("<Q", len(header)) + header)


def test_the_safetensors_package_works_on_gradus(tmp_path):
    """The safetensors package works in a program that runs on Gradus in place of PyTorch."""
    pytest.importorskip("safetensors", reason="the package is not installed: build/venv/bin/pip install safetensors")
    pytest.importorskip("numpy", reason="the package needs NumPy")
    (tmp_path / "program.py").write_text("""
import sys, torch
from safetensors import safe_open
from safetensors.torch import load, load_file, save, save_file, save_model, load_model
assert torch.__file__ is None or "gradus" in torch.__file__
tensors = {"a": torch.arange(3), "b": torch.ones(2, 2, dtype=torch.bfloat16), "c": torch.zeros(0)}
save_file(tensors, sys.argv[1], metadata={"format": "pt"})
for loaded in (load_file(sys.argv[1]), load(save(tensors))):
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors) and loaded["b"].dtype is torch.bfloat16
with safe_open(sys.argv[1], framework="pt") as file:
    assert file.get_slice("b")[:, 1:].tolist() == [[1.0], [1.0]] and file.metadata() == {"format": "pt"}
model, other = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
save_model(model, sys.argv[1])
assert load_model(other, sys.argv[1]) == (set(), []) and torch.equal(other.weight, model.weight)
""")
    folder = os.path.dirname(os.path.dirname(gradus.__file__))
    subprocess.run([sys.executable, "-m", "gradus.as_torch", tmp_path / "program.py", tmp_path / "a"], check=True, env={**os.environ, "PYTHONPATH": folder})


# The safetensors package reads files with UntypedStorage.from_file, which is tested here.


def test_untyped_storage_from_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(bytes(range(8)))
    storage = gradus.UntypedStorage.from_file(path, nbytes=6)
    assert bytes(storage) == bytes(range(6)) and storage.untyped() is storage
    storage[0] = 9
    assert storage[0] == 9 and path.read_bytes() == bytes(range(8))
    shared = gradus.UntypedStorage.from_file(str(path), shared=True, nbytes=10)
    shared[9] = 7
    assert path.read_bytes() == bytes(range(8)) + b"\0\7"
    made = gradus.UntypedStorage.from_file(tmp_path / "b", True, 4)
    assert bytes(made) == bytes(4) == (tmp_path / "b").read_bytes()
    assert len(gradus.UntypedStorage.from_file(path)) == 0
    assert gradus.asarray(gradus.UntypedStorage.from_file(path), dtype=gradus.int16).shape == (0,)
    with pytest.raises(RuntimeError, match="size <10> is smaller than the required mapping size <11>"):
        gradus.UntypedStorage.from_file(path, nbytes=11)
    with pytest.raises(RuntimeError, match="in read-only mode: No such file or directory"):
        gradus.UntypedStorage.from_file(tmp_path / "absent", nbytes=1)
    with pytest.raises(TypeError):
        gradus.UntypedStorage.from_file()
