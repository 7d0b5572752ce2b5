"""Files of records, each framed by its length and by checksums of the length and of the record."""
import struct


def _table_of_crc32c():
    """Returns the CRC-32C remainders of all bytes (Castagnoli's polynomial, lowest bit first)."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table_of_crc32c()


def crc32c(data):
    """Returns the CRC-32C of bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _masked(data):
    """Returns the checksum rotated and shifted by a constant, as the format of records demands, because a CRC of data that contains CRCs is weak."""
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    """Returns the frame of a record: 8 bytes of length and their checksum, the data and theirs."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)
