"""Read and write the variable-length numbers of the protobuf wire format."""

from __future__ import annotations

BITS_MAX = 63


def read_varint(raw: bytes, at: int) -> tuple[int, int]:
    """Read a number at a place; returns it and the place after it.

    Raises:
        ValueError: the bytes end inside the number, or it is longer than 64 bits.
    """
    value = shift = 0
    while True:
        if at >= len(raw):
            raise ValueError(f"the bytes end inside a number at byte {at}")
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > BITS_MAX:
            raise ValueError("a number is too long")


def varint(value: int) -> bytes:
    """Write a number that is not negative."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
