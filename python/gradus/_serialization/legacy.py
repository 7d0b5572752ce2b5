"""The format that PyTorch wrote before version 1.6, and still writes when it is asked to: pickles one after another, namely a magic number, a
version, facts about the machine, the object and the keys of its storages; then the storages, each behind its number of elements.
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
    """True if the first bytes of a file are those of a pickle."""
    return head[:1] == pickle.PROTO


def write_head(file, protocol):
    for fact in (_MAGIC, _VERSION, _FACTS):
        pickle.dump(fact, file, protocol)


def write_storages(file, protocol, storages):
    """Write the keys of storages, and then each of them; `storages` are pairs of a storage and its number of elements, by key."""
    pickle.dump(list(storages), file, protocol)
    for storage, count in storages.values():
        file.write(_COUNT.pack(count))
        if len(storage):
            file.write(memoryview(storage).cast("B"))


def _refuse(reference):
    raise pickle.UnpicklingError(f"a reference {reference!r} outside of the object")


def _read_plain(file, size):
    return ClosedUnpickler(file, _refuse, size).load()


def read_head(file, size):
    """Read up to the object. Returns whether its numbers lie in the other byte order. RuntimeError: another magic number or version."""
    if _read_plain(file, size) != _MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = _read_plain(file, size)
    if version != _VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    facts = _read_plain(file, size)
    little = facts.get("little_endian", True) if isinstance(facts, dict) else True
    return bool(little) is not _FACTS["little_endian"]


def copy_storages(file, size, find):
    """Read what follows the object. find(key, count): where the bytes of a storage with so many elements go."""
    keys = _read_plain(file, size)
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
