"""Reads and writes the zip file of a checkpoint. Its records are stored without compression, each beginning at a multiple of 64 bytes.

Files are not trusted. Every defect of a file raises RuntimeError.
"""
import contextlib
import io
import mmap
import os
import pickle
import struct
import zipfile
import zlib

from gradus._C import _open_replacement

__all__ = ["ArchiveReader", "ArchiveWriter", "replacing"]

ALIGNMENT = 64
# the fields of a record's header in a zip file: signature; version, flags, method, time, date; crc, sizes; lengths of name and extra field
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_PADDING = struct.Struct("<2sH")  # header of an extra field: its id and the number of bytes that follow
ZIP_MAGIC = b"PK\x03\x04"


def _as_bytes(buffer):
    """Returns a one-dimensional memoryview of the bytes of any buffer. An empty buffer, which memoryview.cast refuses, is replaced by b""."""
    view = memoryview(buffer)
    return view.cast("B") if view.nbytes else memoryview(b"")


class ArchiveWriter:
    """Writes records to a zip file in a file object. The names of all records begin with `folder`."""

    def __init__(self, file, folder):
        self._folder = folder
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)

    def write(self, name, content):
        """Writes ``content``, an object with the buffer protocol, as the record ``name``."""
        content = _as_bytes(content)
        info = zipfile.ZipInfo(f"{self._folder}/{name}")
        info.file_size = len(content)
        # For a large record, zipfile writes another extra field of 20 bytes before the content. The alignment must count these bytes.
        large = 20 if len(content) * 1.05 > zipfile.ZIP64_LIMIT else 0
        begin = self._zip.fp.tell() + _LOCAL_HEADER.size + len(info.filename.encode()) + large + _PADDING.size
        padding = -begin % ALIGNMENT
        info.extra = _PADDING.pack(b"FB", padding) + b"Z" * padding
        with self._zip.open(info, "w") as record:
            record.write(content)

    def close(self):
        self._zip.close()


@contextlib.contextmanager
def replacing(path):
    """Context manager that yields a file to write. On success the file atomically replaces ``path``; if an exception is raised ``path`` stays
    unchanged. RuntimeError: the folder does not exist."""
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    replacement = _open_replacement(path)
    try:
        with open(replacement.fileno(), "wb", closefd=False) as file:
            yield file
        replacement.commit()
    finally:
        replacement.abandon()


@contextlib.contextmanager
def _damage_is_an_error():
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, UnicodeDecodeError, OverflowError, ValueError,
            IndexError) as exception:
        raise RuntimeError(f"PytorchStreamReader failed reading zip archive: the file is damaged ({exception})") from exception


class _Bounded:
    """A file object for zipfile. If the directory of a damaged zip file points outside of the file, this object raises the error for a damaged file
    instead of OSError."""

    def __init__(self, file, size):
        self._file = file
        self._size = size
        self.read = file.read
        self.tell = file.tell

    def seek(self, offset, whence=io.SEEK_SET):
        position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._file.tell(), io.SEEK_END: self._size}[whence]
        if not 0 <= position <= self._size:
            raise ValueError(f"offset {position} is not in its {self._size} bytes")
        return self._file.seek(position)

    def seekable(self):
        return True


class ArchiveReader:
    """Reads the records of a checkpoint from a seekable file object. If ``mapped`` is true, the reader makes a private memory mapping of the file,
    and storages are views of that mapping."""

    def __init__(self, file, mapped=False):
        self._file = file
        start = file.tell()
        head = file.read(len(ZIP_MAGIC))
        self._size = file.seek(0, io.SEEK_END)
        file.seek(start)
        if not head:
            raise EOFError("Ran out of input: the file is empty")
        if not head.startswith(ZIP_MAGIC):
            raise pickle.UnpicklingError("Weights only load failed: the file is no zip archive, as a checkpoint of PyTorch or Gradus is")
        with _damage_is_an_error():
            self._zip = zipfile.ZipFile(_Bounded(file, self._size))
            self._records = {info.filename: info for info in self._zip.infolist()}
        if len(self._records) != len(self._zip.infolist()):
            raise RuntimeError("PytorchStreamReader failed reading zip archive: a record is there twice")
        for info in self._zip.infolist():
            if not 0 <= info.header_offset <= self._size - _LOCAL_HEADER.size - info.compress_size:
                raise RuntimeError(f"PytorchStreamReader failed reading zip archive: record {info.filename[:80]!r} is not in the file")
        folders = [name[:-len("/data.pkl")] for name in self._records if name.endswith("/data.pkl") and name.count("/") == 1]
        if len(folders) != 1:
            raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found")
        self._folder = folders[0]
        self._mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if mapped else None
        # The number of bytes that may still be read. This limit stops a hostile file whose overlapping records add up to more than the file.
        self._left = self._size

    @property
    def is_mapped(self):
        return self._mapping is not None

    def close(self):
        self._zip.close()

    def has(self, name):
        return f"{self._folder}/{name}" in self._records

    def size(self, name):
        """Returns the number of bytes of a record. RuntimeError: there is no such record, or it is compressed or encrypted, which PyTorch never
        does."""
        info = self._records.get(f"{self._folder}/{name}")
        if info is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it is compressed or encrypted, which no checkpoint is")
        return info.file_size

    def read(self, name):
        """Returns the content of a record as bytes."""
        content = bytearray(self.size(name))
        self.read_into(name, content)
        return bytes(content)

    def read_into(self, name, buffer):
        """Reads a record into a buffer of the record's size, and checks the record's checksum."""
        buffer = _as_bytes(buffer)
        self._left -= self.size(name)
        if self._left < 0:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: the records add up to more than the file")
        with _damage_is_an_error(), self._zip.open(self._records[f"{self._folder}/{name}"]) as record:
            done = 0
            while done < len(buffer):
                count = record.readinto(buffer[done:done + (1 << 20)])
                if count == 0:
                    raise EOFError(f"{name} ends early")
                done += count
            record.read(1)  # zipfile compares the checksum only when a read reaches the end of the record.

    def mapped(self, name):
        """Returns a memoryview of a record inside the memory mapping. The checksum is not checked."""
        size = self.size(name)
        info = self._records[f"{self._folder}/{name}"]
        with _damage_is_an_error():
            header = _LOCAL_HEADER.unpack_from(self._mapping, info.header_offset)
        begin = info.header_offset + _LOCAL_HEADER.size + header[-2] + header[-1]
        if header[0] != b"PK\x03\x04" or begin + size > self._size:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it is not in the file")
        return memoryview(self._mapping)[begin:begin + size]
