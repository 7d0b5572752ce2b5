"""Loads randomly changed checkpoints. Loading succeeds or raises an error of a documented class, and takes no more memory than the file has bytes.

The changes are to arbitrary bytes, the fields of the archive's directory, the instructions of the pickle, and the assignment of storages to records.
GRADUS_MUTATIONS sets the number of files, e.g. 30000. A failure prints the seed of its file: GRADUS_MUTATION_SEED=n runs that file alone.
"""
import io
import os
import pickle
import pickletools
import random
import resource
import struct
import traceback
import zipfile
from collections import OrderedDict

import pytest

import gradus

# Errors that loading a damaged file may raise. OSError and MemoryError are not among them.
DOCUMENTED = (RuntimeError, pickle.UnpicklingError, EOFError)
NUMBERS = [0, 1, 2, 3, 7, 8, 46, 64, 100, 255, 0x7FFF, 0xFFFE, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF]
EDGES = [b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80"]


def contents():
    x = gradus.arange(12.0).reshape(3, 4)
    return {
        "x": x, "view": x.t()[1:], "half": gradus.ones(3, dtype=gradus.float16), "parameter": gradus.nn.Parameter(gradus.ones(2)),
        "unsigned": gradus.arange(3).to(gradus.uint16), "empty": gradus.empty(0, 3), "meta": gradus.ones(2, device="meta"), "flags": x > 3,
        "complex": gradus.ones(2, dtype=gradus.complex64), "storage": gradus.ones(2).untyped_storage(), "dtype": gradus.int8,
        "state": gradus.nn.Linear(2, 2).state_dict(), "size": x.shape, "numbers": [1, -1, 2**40, 2**70, 1.5, None, True, 1 + 2j], "text": "äß",
        "bytes": b"a\xff", "bytearray": bytearray(b"abc"), "set": {1, "a"}, "ordered": OrderedDict(a=[x]), "tuple": (1, (2, ())), 3: {"deep": [{}]},
    }


def saved(obj, **options):
    file = io.BytesIO()
    gradus.save(obj, file, **options)
    return file.getvalue()


def records_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(records, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in records.items():
            archive.writestr(name, content)
    return file.getvalue()


# Each function below changes a file. It takes the random generator and the original bytes, and returns the changed bytes.


def change_bytes(generator, data):
    data = bytearray(data)
    for _ in range(generator.choice([1, 1, 2, 8])):
        data[generator.randrange(len(data))] = generator.randrange(256)
    return bytes(data)


def cut(generator, data):
    return data[:generator.randrange(len(data))]


def splice(generator, data):
    begin, end, at = (generator.randrange(len(data)) for _ in range(3))
    part = data[min(begin, end):max(begin, end)][:generator.randrange(1, 3000)]
    return data[:at] + part + data[at + (len(part) if generator.random() < 0.5 else 0):]


def change_directory(generator, data):
    """Changes a field of the end record, of a directory entry, or of a local header of the zip file."""
    data = bytearray(data)
    for _ in range(generator.choice([1, 1, 2])):
        signature, fields = generator.choice([(b"PK\x05\x06", [(4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)]),
                                              (b"PK\x01\x02", [(6, 2), (8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (34, 2), (42, 4)]),
                                              (b"PK\x03\x04", [(6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)])])
        places = [at for at in range(len(data)) if data.startswith(signature, at)]
        if not places:
            break
        offset, width = generator.choice(fields)
        at = generator.choice(places) + offset
        number = generator.choice([*NUMBERS, len(data), len(data) - 1, generator.randrange(len(data))])
        data[at:at + width] = (number & (256**width - 1)).to_bytes(width, "little")
    return bytes(data)


def change_large_directory(generator, data):
    """Adds the ZIP64 records of files above 4 GiB, with changed fields."""
    start, = struct.unpack_from("<I", data, len(data) - 6)
    count, = struct.unpack_from("<H", data, len(data) - 12)
    number = generator.choice([0, 1, start, len(data), 2**31, 2**32, 2**62, 2**63, 2**64 - 1])
    fields = [44, 45, 45, 0, 0, count, count, len(data) - 22 - start, start]
    fields[generator.randrange(len(fields))] = number
    limits = [64, 16, 16, 32, 32, 64, 64, 64, 64]
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", *(field & (2**bits - 1) for field, bits in zip(fields, limits, strict=True)))
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, generator.choice([len(data) - 22, len(data) - 22, number]), 1)
    return data[:-22] + end64 + locator + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)


def change_pickle(generator, data):
    """Changes, removes, repeats or moves instructions of the pickle, or changes their arguments. The zip file stays valid."""
    records = records_of(data)
    name = next(name for name in records if name.endswith("data.pkl"))
    content = records[name]
    places = [at for _, _, at in pickletools.genops(content)] + [len(content)]
    pieces = [content[begin:end] for begin, end in zip(places, places[1:])]
    for _ in range(generator.choice([1, 1, 2, 4])):
        at = generator.randrange(len(pieces))
        kind = generator.randrange(7)
        if kind == 0:
            pieces[at] = generator.choice(pickletools.opcodes).code.encode("latin1") + pieces[at][1:]
        elif kind == 1:
            pieces[at] = b""
        elif kind == 2:
            pieces.insert(at, generator.choice(pieces) * generator.choice([1, 1, 1, 3, 1000]))
        elif kind == 3:
            other = generator.randrange(len(pieces))
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif kind == 4:
            pieces.insert(at, generator.choice(pickletools.opcodes).code.encode("latin1") + generator.choice(EDGES))
        elif kind == 5 and len(pieces[at]) > 1:
            place = generator.randrange(1, len(pieces[at]))
            pieces[at] = pieces[at][:place] + generator.choice(EDGES) + pieces[at][place + 1:]
        else:
            pieces[at] = pieces[at][:1] + bytes(generator.randrange(256) for _ in pieces[at][1:])
    records[name] = b"".join(pieces)
    return archive_of(records)


def change_records(generator, data):
    """Exchanges, lengthens, shortens, removes, compresses or adds records of the zip file."""
    records = records_of(data)
    names = list(records)
    kind, one, other = generator.randrange(6), generator.choice(names), generator.choice(names)
    if kind == 0:
        records[one], records[other] = records[other], records[one]
    elif kind == 1:
        records[one] += bytes(generator.randrange(1, 100))
    elif kind == 2:
        records[one] = records[one][:generator.randrange(len(records[one]) + 1)]
    elif kind == 3:
        del records[one]
    elif kind == 4:
        return archive_of(records, generator.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]))
    else:
        records[generator.choice(["x/data.pkl", "archive/byteorder", "archive/constants.pkl", "archive/data/../data.pkl", "data.pkl"])] = b"big"
    return archive_of(records)


CHANGES = [change_bytes, cut, splice, change_directory, change_directory, change_large_directory, change_pickle, change_pickle, change_pickle,
           change_records]


def originals():
    return [saved(contents()), saved(contents(), pickle_protocol=4), saved([gradus.ones(3)])]


def mutated(seed, files):
    generator = random.Random(seed)
    data = generator.choice(files)
    for _ in range(generator.choice([1, 1, 1, 2])):
        try:
            data = generator.choice(CHANGES)(generator, data)
        except (zipfile.BadZipFile, ValueError, IndexError, struct.error, EOFError, OverflowError, StopIteration, NotImplementedError, OSError, zipfile.zlib.error):
            break  # after the previous change the file has no structure that this change can read
        if not data:
            break
    return data, generator.random() < 0.2


def load(data, mapped, path):
    if mapped and data:
        path.write_bytes(data)
        return gradus.load(path, mmap=True)
    return gradus.load(io.BytesIO(data))


@pytest.mark.filterwarnings("ignore")
def test_mutated_checkpoints_are_loaded_or_refused(tmp_path):
    files = originals()
    one = os.environ.get("GRADUS_MUTATION_SEED")
    seeds = [int(one)] if one else range(int(os.environ.get("GRADUS_MUTATIONS", "1500")))
    loaded, wrong = 0, []
    for data in files:
        gradus.load(io.BytesIO(data))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        try:
            load(*mutated(seed, files), tmp_path / "mutated.pt")
            loaded += 1
        except DOCUMENTED as exception:
            if type(exception) not in DOCUMENTED:
                wrong.append((seed, traceback.format_exc()))
        except BaseException:
            wrong.append((seed, traceback.format_exc()))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert not wrong, f"{len(wrong)} of {len(seeds)}, the first with GRADUS_MUTATION_SEED={wrong[0][0]}: {wrong[0][1]}"
    assert one or len(seeds) // 100 < loaded < len(seeds) // 2
    assert grown < 100 * 1024, f"{grown} KiB of memory for files of {max(map(len, files))} bytes"


def pickle_of(*instructions):
    """Returns an archive with a pickle of the given instructions, and with a storage of two complex numbers."""
    return archive_of({"a/data.pkl": b"\x80\x02" + b"".join(instructions) + b".", "a/version": b"3\n", "a/data/0": bytes(16)})


def text(value):
    return b"X" + len(value).to_bytes(4, "little") + value.encode()


BOMB = 2000  # each pickle below asks for this many copies of an object with a million elements


@pytest.mark.parametrize("instructions", [
    [b"(", text("a" * 10**6), b"q\x00c_codecs\nencode\nq\x01", text("latin1"), b"q\x02", b"h\x01h\x00h\x02\x86R" * BOMB, b"t"],
    [b"((" + b"K\x01" * 10**6 + b"tq\x00cbuiltins\nset\nq\x01", b"h\x01h\x00\x85R" * BOMB, b"t"],
    [b"((" + b"K\x01" * 10**6 + b"tq\x00ctorch\nSize\nq\x01", b"h\x01h\x00\x85R" * BOMB, b"t"],
], ids=["bytes", "sets", "sizes"])
def test_a_pickle_that_copies_a_large_object_repeatedly_is_refused(instructions):
    with pytest.raises(pickle.UnpicklingError, match="copies more than it holds"):
        gradus.load(io.BytesIO(pickle_of(*instructions)))


def test_loading_a_huge_expanded_conjugated_tensor_takes_little_memory():
    """A file stores conjugation as a flag of the tensor. Resolving the flag of a large expanded tensor must not take more memory than its storage."""
    storage = b"(" + text("storage") + b"ctorch\nComplexFloatStorage\n" + text("0") + text("cpu") + b"K\x02tQ"
    huge = b"\x8a\x06" + (2**40).to_bytes(6, "little")
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x01" + huge + b"\x85K\x00\x85\x89}}" + text("conj") + b"\x88stR"
    x = gradus.load(io.BytesIO(pickle_of(tensor)))
    assert x.shape == (2**40,) and x[5].item() == 0


@pytest.mark.parametrize(("field", "at"), [("an entry's header", 42), ("the directory", None)])
@pytest.mark.parametrize("mapped", [False, True])
def test_offsets_outside_of_the_file_are_refused(tmp_path, field, at, mapped):
    """An offset out of range raises the error for a damaged file, not the error of a failed seek."""
    data = bytearray(saved([gradus.ones(3)]))
    place = data.rindex(b"PK\x05\x06") + 16 if at is None else data.rindex(b"PK\x01\x02") + at
    path = tmp_path / "a.pt"
    for number in (0xFFFFFFFE, 0x7FFFFFFF, len(data), len(data) + 1):
        data[place:place + 4] = number.to_bytes(4, "little")
        path.write_bytes(data)
        with pytest.raises(RuntimeError, match="PytorchStreamReader failed"):
            gradus.load(path, mmap=mapped)
        with pytest.raises(RuntimeError, match="PytorchStreamReader failed"):
            gradus.load(io.BytesIO(data))


def test_files_truncated_at_any_byte_are_refused(tmp_path):
    """Files from which bytes are cut off, at the beginning or at the end, are refused."""
    data, path = saved([gradus.ones(3)]), tmp_path / "a.pt"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        for call in (lambda: gradus.load(path), lambda: gradus.load(io.BytesIO(data[len(data) - length:]))):
            with pytest.raises(DOCUMENTED):
                call()
