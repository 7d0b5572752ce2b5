"""The record format of event files (TFRecord): each record has a length and checksums of the length and of the data."""
import struct


def _table_of_crc32c():
    """Returns the table of CRC-32C remainders for all byte values (Castagnoli's polynomial, reflected bit order)."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table_of_crc32c()


def crc32c(data):
    """Returns the CRC-32C checksum of bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _masked(data):
    """Returns the masked checksum of `data` as 4 bytes: the CRC rotated by 15 bits plus a constant.

    The record format masks checksums because a CRC of data that contains CRCs is weak.
    """
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    """Returns the record for `data`: its length in 8 bytes, the length's checksum, the data, and the data's checksum."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)
