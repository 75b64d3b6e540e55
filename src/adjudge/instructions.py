"""What compiled loops do with one instruction or two, and Python has no word for.

The functions say what is meant; within a loop (`loops.Loop`) the machine's own stand in for them. Where several bytes are
looked at together they must all lie in the array: nobody checks that.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np


def trailing_zeros(bits: Any) -> Any:
    """How many zeros stand below the lowest bit that is set."""
    return (int(bits) & -int(bits)).bit_length() - 1


def eight_bytes(data: Any, i: Any) -> Any:
    """The eight bytes from byte i on as one number, the first lowest, whatever the items of the array are."""
    return np.uint64(int.from_bytes(_bytes(data, i, 8), "little"))


def bits_equal(data: Any, i: Any, byte: Any) -> Any:
    """Which of the 64 bytes from byte i on are this one, a bit each, the first lowest."""
    return np.uint64(sum((own == byte) << place for place, own in enumerate(_bytes(data, i, 64))))


def bits_below(data: Any, i: Any, byte: Any) -> Any:
    """As `bits_equal`, which are less than this one."""
    return np.uint64(sum((own < byte) << place for place, own in enumerate(_bytes(data, i, 64))))


def few_bits_below(data: Any, i: Any, byte: Any) -> Any:
    """As `bits_below`, of 16 bytes."""
    return np.uint64(sum((own < byte) << place for place, own in enumerate(_bytes(data, i, 16))))


def copy_memory(out: Any, i: Any, address: Any, size: Any) -> None:
    """Copy bytes from an address of this process to byte i of an array and on."""
    out.view(np.uint8)[int(i) : int(i) + int(size)] = np.frombuffer(ctypes.string_at(int(address), int(size)), np.uint8)


def _bytes(data: Any, i: Any, size: int) -> bytes:
    found: bytes = data.view(np.uint8)[int(i) : int(i) + size].tobytes()
    return found


def machine_instructions() -> dict[Callable[..., Any], Any]:
    """The same for Numba."""
    from llvmlite import ir
    from numba.core import types
    from numba.cpython.unsafe import numbers
    from numba.extending import intrinsic

    byte, word = ir.IntType(8), ir.IntType(64)

    def at(context: Any, builder: Any, signature: Any, given: Any, kind: Any) -> Any:
        """A pointer to what begins at byte i, where array and i are given first."""
        array = context.make_array(signature.args[0])(context, builder, given[0])
        first = builder.bitcast(array.data, byte.as_pointer())
        return builder.bitcast(builder.gep(first, [given[1]]), kind.as_pointer())

    def load(_: Any, data: Any, i: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return builder.load(at(context, builder, signature, given, word), align=1)

        return types.uint64(data, i), generate

    def copy(_: Any, out: Any, i: Any, address: Any, size: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            to = at(context, builder, signature, given, byte)
            origin, length = (builder.sext(number, word) if number.type != word else number for number in given[2:])
            pointer = byte.as_pointer()
            memcpy = builder.module.declare_intrinsic("llvm.memcpy", [pointer, pointer, word])
            builder.call(memcpy, [to, builder.inttoptr(origin, pointer), length, ir.Constant(ir.IntType(1), 0)])
            return context.get_dummy_value()

        return types.none(out, i, address, size), generate

    def compare(how: str, lanes: int) -> Any:
        wide = ir.VectorType(byte, lanes)
        places = ir.VectorType(ir.IntType(32), lanes)

        def typed(_: Any, data: Any, i: Any, other: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
                own = builder.load(at(context, builder, signature, given, wide), align=1)
                nothing = ir.Constant(wide, ir.Undefined)
                one = builder.insert_element(nothing, given[2], ir.Constant(ir.IntType(32), 0))
                all_alike = builder.shuffle_vector(one, nothing, ir.Constant(places, [0] * lanes))
                bits = builder.bitcast(builder.icmp_unsigned(how, own, all_alike), ir.IntType(lanes))
                return bits if lanes == word.width else builder.zext(bits, word)

            return types.uint64(data, i, other), generate

        return intrinsic(typed)

    return {
        trailing_zeros: numbers.trailing_zeros,
        eight_bytes: intrinsic(load),
        bits_equal: compare("==", 64),
        bits_below: compare("<", 64),
        few_bits_below: compare("<", 16),
        copy_memory: intrinsic(copy),
    }
