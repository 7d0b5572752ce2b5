"""Tests the file format of PyTorch before version 1.6 against PyTorch's reader and writer. Damaged files must raise errors."""
import io
import pickle
import random
import struct
from collections import OrderedDict

import pytest

import gradus
from nn_programs import needs_torch
from oracle import torch
from test_save import DTYPES, as_python_objects

STORED = [dtype for dtype in DTYPES if not dtype.startswith(("uint16", "uint32", "uint64", "float8"))]  # without the dtypes that PyTorch cannot read


def contents(t):
    x = t.arange(12.0).reshape(3, 4)
    net = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.BatchNorm1d(2))
    for number, parameter in enumerate(net.parameters()):
        t.nn.init.constant_(parameter, number)
    z = t.tensor([1 + 2j, 3 - 4j])
    return OrderedDict(x=x, view=x[1:, ::2], parameter=t.nn.Parameter(t.ones(2)), empty=t.zeros(0), scalar=t.tensor(5), meta=t.ones(2, device="meta"), z=z, conjugate=z.conj(),
                       negative=t.tensor([1 + 2j]).conj().imag, text="äß", numbers=(0.1, [1, None, True]), **net.state_dict(), **{name: t.ones(2, dtype=getattr(t, name)) for name in STORED})


def saved(t, obj, **options):
    file = io.BytesIO()
    t.save(obj, file, _use_new_zipfile_serialization=False, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("protocol", [2, 4])
def test_legacy_files_are_exchanged_with_pytorch(weights_only, protocol):
    needs_torch()
    wanted = as_python_objects(contents(torch))
    for library, reader in ((torch, gradus), (gradus, gradus), *([(gradus, torch)] if protocol == 2 else [])):
        loaded = reader.load(saved(library, contents(library), pickle_protocol=protocol), weights_only=weights_only)
        assert as_python_objects(loaded) == wanted and loaded["conjugate"].is_conj() and loaded["negative"].is_neg()
        loaded["x"][1, 0] = 99
        assert loaded["view"][0, 0] == 99


def test_modules_and_map_location_of_legacy_files():
    needs_torch()
    assert repr(gradus.load(saved(torch, torch.nn.Linear(3, 2)), weights_only=False)) == repr(gradus.nn.Linear(3, 2))
    assert torch.load(saved(gradus, gradus.nn.Linear(3, 2)), weights_only=False).in_features == 3
    file = saved(torch, torch.arange(3))
    for place, device in (("meta", "meta"), (lambda storage, location: storage, "cpu"), (lambda storage, location: storage.clone(), "cpu")):
        file.seek(0)
        loaded = gradus.load(file, map_location=place)
        assert loaded.device.type == device and (device == "meta" or loaded.tolist() == [0, 1, 2])


def test_several_objects_in_one_legacy_file(tmp_path):
    path = tmp_path / "a.pt"
    gradus.save([gradus.ones(2)], path, _use_new_zipfile_serialization=False)
    assert gradus.load(path)[0].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        gradus.load(path, mmap=True)
    with open(path, "ab") as file:
        gradus.save("second", file, _use_new_zipfile_serialization=False)
    with open(path, "rb") as file:
        assert gradus.load(file)[0].tolist() == [1, 1] and gradus.load(file) == "second"


def test_legacy_files_of_the_other_byte_order():
    whole = saved(gradus, gradus.tensor([1.0, -2.5])).getvalue()
    numbers = struct.pack("<2f", 1.0, -2.5)
    facts = pickle.dumps({"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}, 2)
    assert whole.endswith(numbers) and facts in whole
    other = whole.replace(facts, facts.replace(pickle.NEWTRUE, pickle.NEWFALSE))[:-len(numbers)] + struct.pack(">2f", 1.0, -2.5)
    assert gradus.load(io.BytesIO(other)).tolist() == [1.0, -2.5]


@pytest.mark.parametrize("content, kind, text", [
    (pickle.dumps({"a": 1}), RuntimeError, "Invalid magic number"),
    (pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1000, 2), RuntimeError, "Invalid protocol version: 1000"),
    (b"\x80", pickle.UnpicklingError, "damaged"),
])
def test_pickles_that_are_no_checkpoints_are_refused(content, kind, text):
    with pytest.raises(kind, match=text):
        gradus.load(io.BytesIO(content))


def test_damaged_legacy_files_are_loaded_or_refused():
    """Files truncated to any length, or with changed bytes, raise a documented error or are loaded. Loading never takes more memory than the file's
    size."""
    whole, choose = saved(gradus, contents(gradus)).getvalue(), random.Random(0)
    for length in [*range(0, len(whole), 23), len(whole) - 1]:
        with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError)):
            gradus.load(io.BytesIO(whole[:length]))
    for _ in range(400):
        content = bytearray(whole)
        for _ in range(choose.randrange(1, 4)):
            content[choose.randrange(len(content))] = choose.randrange(256)
        try:
            gradus.load(io.BytesIO(bytes(content)))
        except (pickle.UnpicklingError, RuntimeError, EOFError, NotImplementedError):
            pass


def test_sizes_beyond_the_file_are_refused():
    whole = saved(gradus, gradus.ones(2)).getvalue()
    count = pickle.BININT1 + b"\x02N\x74"  # pickle of the storage's number of elements (2) and of its view (None)
    assert whole.count(count) == 1
    with pytest.raises(RuntimeError, match="the file has not so many bytes"):
        gradus.load(io.BytesIO(whole.replace(count, pickle.BININT + struct.pack("<i", 2**30) + b"N\x74")))
    with pytest.raises(RuntimeError, match="has 2 elements, not 1"):
        gradus.load(io.BytesIO(whole.replace(count, pickle.BININT1 + b"\x01N\x74").replace(b"K\x02\x85", b"K\x01\x85")))
