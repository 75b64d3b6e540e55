"""Thrift's compact protocol, as far as the metadata of a Parquet file needs it: writing alone.

Format: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Value(bytes):
    """An encoded value; the class says of what type."""

    code = 0


class Byte(Value):
    """An integer of 8 bits."""

    code = 3


class Short(Value):
    """An integer of 16 bits."""

    code = 4


class Int(Value):
    """An integer of 32 bits."""

    code = 5


class Long(Value):
    """An integer of 64 bits."""

    code = 6


class Binary(Value):
    """Bytes or text."""

    code = 8


class List(Value):
    """Values of one type."""

    code = 9


class Struct(Value):
    """Fields by number."""

    code = 12


def byte(number: int) -> Byte:
    """A signed byte."""
    return Byte(number.to_bytes(1, "little", signed=True))


def short(number: int) -> Short:
    """An integer of 16 bits."""
    return Short(varint(zigzag(number)))


def integer(number: int) -> Int:
    """An integer of 32 bits."""
    return Int(varint(zigzag(number)))


def long(number: int) -> Long:
    """An integer of 64 bits."""
    return Long(varint(zigzag(number)))


def binary(data: bytes) -> Binary:
    """Bytes with their length."""
    return Binary(varint(len(data)) + data)


def sequence(values: Sequence[Value]) -> List:
    """A list of values, which are of one type; an empty one is of structures."""
    size, code = len(values), values[0].code if values else Struct.code
    head = bytes([size << 4 | code]) if size < 15 else bytes([0xF0 | code]) + varint(size)
    return List(head + b"".join(values))


def struct(fields: Iterable[tuple[int, Value | bool]] = ()) -> Struct:
    """Fields in the order of their numbers, which lie less than 16 apart."""
    out, last = bytearray(), 0
    for number, value in fields:
        if isinstance(value, Value):
            out.append((number - last) << 4 | value.code)
            out += value
        else:
            out.append((number - last) << 4 | (1 if value else 2))
        last = number
    return Struct(bytes(out) + b"\0")


def varint(number: int) -> bytes:
    """An unsigned integer, seven bits a byte, the lowest first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number: int) -> int:
    """A signed integer as an unsigned one: 0, −1, 1, −2 become 0, 1, 2, 3."""
    return number << 1 if number >= 0 else (-number << 1) - 1
