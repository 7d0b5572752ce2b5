"""Encoding of Protocol Buffers messages. A field is its number and wire type, followed by a varint, a fixed-size number, or a length and bytes."""
import struct

# wire types of the Protocol Buffers encoding
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(value):
    """Returns the varint encoding of an integer: groups of 7 bits, lowest first. A negative integer is encoded as 64-bit two's complement."""
    value &= 2**64 - 1
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _field(number, wire_type):
    """Returns the tag of a field: its number and wire type."""
    return varint(number << 3 | wire_type)


def integer(number, value):
    """Returns a field that contains an integer, an enum value or a bool."""
    return _field(number, _VARINT) + varint(int(value))


def double(number, value):
    """Returns a field that contains a float64."""
    return _field(number, _FIXED64) + struct.pack("<d", value)


def float32(number, value):
    """Returns a field that contains a float32."""
    return _field(number, _FIXED32) + struct.pack("<f", value)


def message(number, *parts):
    """Returns a field that contains the concatenation of `parts`: the encoded fields of a message, or any bytes.

    >>> message(1, integer(2, 300)).hex()
    '0a0310ac02'
    """
    content = b"".join(parts)
    return _field(number, _BYTES) + varint(len(content)) + content


def text(number, value):
    """Returns a field that contains a string."""
    return message(number, value.encode())


def doubles(number, values):
    """Returns a packed field of float64 numbers."""
    return message(number, struct.pack(f"<{len(values)}d", *values))


def float32s(number, values):
    """Returns a packed field of float32 numbers."""
    return message(number, struct.pack(f"<{len(values)}f", *values))
