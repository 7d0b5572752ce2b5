"""Reads and writes the format that PyTorch wrote before version 1.6 and still writes on request. A file begins with five pickles: a magic
number, a version, the byte order and integer sizes of the machine, the saved object, and the list of the keys of the object's storages. Then the
storages follow. For each storage the file contains the number of its elements, then its bytes.
"""
import pickle
import struct
import sys

from gradus._serialization.unpickler import ClosedUnpickler

__all__ = ["begins_legacy", "copy_storages", "read_head", "write_head", "write_storages"]

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_FACTS = {"protocol_version": _VERSION, "little_endian": sys.byteorder == "little", "type_sizes": {"short": 2, "int": 4, "long": 4}}
_COUNT = struct.Struct("<q")
_PIECE = 1 << 20


def begins_legacy(head):
    """True if `head`, the first bytes of a file, begins a pickle, as in a legacy file. A zip file begins differently."""
    return head[:1] == pickle.PROTO


def write_head(file, protocol):
    """Writes the magic number, the version of the format, and the byte order and integer sizes of the machine."""
    for fact in (_MAGIC, _VERSION, _FACTS):
        pickle.dump(fact, file, protocol)


def write_storages(file, protocol, storages):
    """Writes the pickled list of the storages' keys, then each storage, preceded by its number of elements. `storages` is {key: (storage, number of
    elements)}."""
    pickle.dump(list(storages), file, protocol)
    for storage, count in storages.values():
        file.write(_COUNT.pack(count))
        if len(storage):
            file.write(memoryview(storage).cast("B"))


def _refuse(reference):
    raise pickle.UnpicklingError(f"a reference {reference!r} outside of the object")


def _read_pickle(file, size):
    return ClosedUnpickler(file, _refuse, size).load()


def read_head(file, size):
    """Reads what precedes the saved object in a file: magic number, version, and the byte order and integer sizes of the machine that wrote the file.
    Returns True if that byte order differs from this machine's. RuntimeError: the magic number or the version is wrong."""
    if _read_pickle(file, size) != _MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = _read_pickle(file, size)
    if version != _VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    facts = _read_pickle(file, size)
    little = facts.get("little_endian", True) if isinstance(facts, dict) else True
    return bool(little) is not _FACTS["little_endian"]


def copy_storages(file, size, find):
    """Reads the bytes of all storages from `file`, where they follow the pickled object, and returns the list of the storages' keys. find(key, count)
    must return the buffer for the bytes of the storage `key`, which has `count` elements."""
    keys = _read_pickle(file, size)
    if not isinstance(keys, list):
        raise pickle.UnpicklingError("a list of keys is missing")
    for key in keys:
        head = file.read(_COUNT.size)
        if len(head) < _COUNT.size:
            raise RuntimeError(f"storage {key!r} is missing: the file ends early")
        content, done = find(key, _COUNT.unpack(head)[0]), 0
        while done < len(content):
            piece = file.read(min(_PIECE, len(content) - done))
            if not piece:
                raise RuntimeError(f"storage {key!r} has {len(content)} bytes, of which the file holds {done}")
            content[done:done + len(piece)] = piece
            done += len(piece)
    return keys
