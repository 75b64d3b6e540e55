"""Thrift's compact protocol, as far as the metadata of a Parquet file needs it: writing, and taking a structure apart.

Format: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

_SMALL = tuple(bytes([number]) for number in range(128))


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


@lru_cache(maxsize=1 << 12)
def integer(number: int) -> Int:
    """An integer of 32 bits."""
    return Int(varint(zigzag(number)))


@lru_cache(maxsize=1 << 12)
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


def fields_of(data: bytes) -> dict[int, Value]:
    """The fields of a structure by number, each as it is encoded; those that are no more than true or false are left out."""
    found: dict[int, Value] = {}
    at, number = 0, 0
    while head := data[at]:
        at += 1
        number += head >> 4
        end = _behind(data, at, head & 15)
        if head & 15 in _KINDS:
            found[number] = _KINDS[head & 15](data[at:end])
        at = end
    return found


_KINDS: dict[int, type[Value]] = {kind.code: kind for kind in (Byte, Short, Int, Long, Binary, List, Struct)}


def _behind(data: bytes, at: int, code: int) -> int:
    """The place behind a value of a type; true and false stand in the head of their field."""
    if code in {1, 2}:
        return at
    if code == Byte.code:
        return at + 1
    if code in {Short.code, Int.code, Long.code}:
        return _number(data, at)[1]
    if code == Binary.code:
        size, at = _number(data, at)
        return at + size
    if code == List.code:
        size, inner = data[at] >> 4, data[at] & 15
        at += 1
        if size == 15:
            size, at = _number(data, at)
        for _ in range(size):
            at = _behind(data, at, inner)
        return at
    if code == Struct.code:
        while head := data[at]:
            at = _behind(data, at + 1, head & 15)
        return at + 1
    raise ValueError(f"no type of Parquet's metadata has the code {code}")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned integer and the place behind it."""
    number, shift = 0, 0
    while True:
        number |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return number, at
        shift += 7


def varint(number: int) -> bytes:
    """An unsigned integer, seven bits a byte, the lowest first."""
    if number < len(_SMALL):
        return _SMALL[number]
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number: int) -> int:
    """A signed integer as an unsigned one: 0, −1, 1, −2 become 0, 1, 2, 3."""
    return number << 1 if number >= 0 else (-number << 1) - 1
