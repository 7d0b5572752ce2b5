"""Messages of Protocol Buffers, written by hand: a field is its number and wire type, then a varint, a fixed number, or bytes with their length."""
import struct

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(value):
    """Returns an integer in groups of 7 bits, the lowest first; a negative one as 64 bits of two's complement."""
    value &= 2**64 - 1
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _field(number, wire_type):
    return varint(number << 3 | wire_type)


def integer(number, value):
    """Returns a field of an integer, enum or bool."""
    return _field(number, _VARINT) + varint(int(value))


def double(number, value):
    """Returns a field of a float64."""
    return _field(number, _FIXED64) + struct.pack("<d", value)


def float32(number, value):
    """Returns a field of a float32."""
    return _field(number, _FIXED32) + struct.pack("<f", value)


def message(number, *parts):
    """Returns a field of a message that consists of fields, or of bytes.

    >>> message(1, integer(2, 300)).hex()
    '0a0310ac02'
    """
    content = b"".join(parts)
    return _field(number, _BYTES) + varint(len(content)) + content


def text(number, value):
    """Returns a field of a string."""
    return message(number, value.encode())


def doubles(number, values):
    """Returns a packed field of float64 numbers."""
    return message(number, struct.pack(f"<{len(values)}d", *values))


def float32s(number, values):
    """Returns a packed field of float32 numbers."""
    return message(number, struct.pack(f"<{len(values)}f", *values))
