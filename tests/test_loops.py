"""Loops that were compiled by one process and are run by another without the compiler."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.errors import TypingError

from adjudge.instructions import bits_below, bits_equal, copy_memory, eight_bytes, few_bits_below, trailing_zeros
from adjudge.loops import Loop

STEP = 3
TABLE = np.array([5, 7, 11], dtype=np.int64)


def doubled(x):
    return 2 * x


@Loop
def weigh(values, factor, out):
    total = 0.0
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            out[i] += doubled(values[i, j]) * TABLE[i] + STEP
            total += factor * values[i, j]
    return total


@Loop
def lowest(bits):
    return trailing_zeros(bits[0])


@Loop
def holds(values, wanted):
    for k in range(values.shape[0]):  # noqa: SIM110 -- as a loop for the compiler
        if values[k] == wanted:
            return True
    return False


@pytest.mark.parametrize("turned", [False, True])
def test_a_loop_gives_what_its_function_gives_for_arrays_of_any_layout(turned):
    values = np.arange(12, dtype=np.int32).reshape(3, 4)
    values = np.asfortranarray(values)[:, ::-1] if turned else values
    out, expected = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    assert weigh(values, 0.5, out) == weigh.function(values, 0.5, expected) == 33.0
    assert out.tolist() == expected.tolist() == [72, 320, 848]


@given(st.integers(1, 2**64 - 1))
def test_trailing_zeros_are_those_of_the_number(bits):
    assert (
        lowest(np.array([bits], dtype=np.uint64)) == trailing_zeros(bits) == len(bin(bits)) - len(bin(bits).rstrip("0"))
    )


@Loop
def eight_at(data, i):
    return eight_bytes(data, np.uintp(i))


@Loop
def equal_at(data, i, byte):
    return bits_equal(data, np.uintp(i), np.uint8(byte))


@Loop
def below_at(data, i, byte):
    return bits_below(data, np.uintp(i), np.uint8(byte))


@Loop
def few_below_at(data, i, byte):
    return few_bits_below(data, np.uintp(i), np.uint8(byte))


@Loop
def copy_to(out, i, address, size):
    copy_memory(out, np.int32(i), address, np.int32(size))


@given(st.binary(max_size=300), st.integers(0, 20))
def test_memory_is_copied_to_its_place(data, i):
    origin = np.frombuffer(data or b" ", dtype=np.uint8)
    found, expected = np.zeros(350, dtype=np.uint8), np.zeros(350, dtype=np.uint8)
    copy_to(found, i, origin.ctypes.data, len(data))
    copy_to.function(expected, i, origin.ctypes.data, len(data))
    assert found.tobytes() == expected.tobytes() == bytes(i) + data + bytes(350 - i - len(data))


@given(st.binary(min_size=100, max_size=100), st.integers(0, 36), st.integers(0, 255))
def test_bytes_that_are_looked_at_together(data, i, byte):
    """At any place of an array, whatever its items."""
    for array in (np.frombuffer(data, dtype=np.uint8), np.frombuffer(data, dtype=np.uint32)):
        assert eight_at(array, i) == eight_bytes(array, i) == int.from_bytes(data[i : i + 8], "little")
        equal, below = int(equal_at(array, i, byte)), int(below_at(array, i, byte))
        assert equal == bits_equal(array, i, byte)
        assert below == bits_below(array, i, byte)
        assert few_below_at(array, i, byte) == few_bits_below(array, i, byte) == below & 0xFFFF
        assert [bool(equal >> k & 1) for k in range(64)] == [own == byte for own in data[i : i + 64]]
        assert [bool(below >> k & 1) for k in range(64)] == [own < byte for own in data[i : i + 64]]


def test_a_loop_may_return_whether():
    values = np.array([4, 5])
    assert holds(values, 5) is True
    assert holds(values, 6) is False


PROGRAM = """
    import sys
    import numpy as np
    from adjudge.loops import Loop

    STEP = {step}

    def grown(x):
        return x + {inner}

    @Loop
    def add(values):
        for k in range(values.shape[0]):
            values[k] = grown(values[k]) + STEP

    values = np.zeros(2, dtype={dtype!r})
    add(values)
    print(values.tolist(), "numba" in sys.modules)
"""


@pytest.fixture
def run(tmp_path):
    def run(step=1, inner=0, dtype="int64", folder=tmp_path, cache=tmp_path / "cache"):
        program = folder / "program.py"
        program.write_text(textwrap.dedent(PROGRAM.format(step=step, inner=inner, dtype=dtype)))
        environment = {"XDG_CACHE_HOME": str(cache), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, program], check=True, capture_output=True, text=True, env=environment, timeout=120
        )
        return done.stdout.strip()

    return run


def test_the_second_process_runs_without_numba(run):
    assert run() == "[1, 1] True"
    assert run() == "[1, 1] False"


def test_another_constant_function_or_type_is_compiled_anew(run):
    assert run() == "[1, 1] True"
    assert run(step=2) == "[2, 2] True"
    assert run(inner=5) == "[6, 6] True"
    assert run(dtype="float64") == "[1.0, 1.0] True"
    assert run() == "[1, 1] False"


def test_where_the_folder_cannot_hold_it_the_user_s_cache_does(run, tmp_path):
    (tmp_path / "__pycache__").write_text("not a folder")
    assert run() == "[1, 1] True"
    assert [path.suffix for path in (tmp_path / "cache" / "adjudge").iterdir()] == [".loop"]
    assert run() == "[1, 1] False"


def test_where_nothing_can_be_kept_it_still_runs(run, tmp_path):
    (tmp_path / "__pycache__").write_text("not a folder")
    (tmp_path / "cache").write_text("not a folder")
    assert run() == run() == "[1, 1] True"


@pytest.mark.parametrize("damage", [lambda whole: b"no head\n" + whole, lambda whole: whole[:-200], lambda _: b"{}\n"])
def test_a_damaged_file_is_compiled_anew(run, tmp_path, damage):
    run()
    (kept,) = (tmp_path / "__pycache__").glob("*.loop")
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    assert run() == "[1, 1] True"
    assert kept.read_bytes() == whole


def test_what_would_need_more_than_the_code_itself_is_refused():
    @Loop
    def allocates(out):
        out[0] = np.empty(3)[0]

    @Loop
    def pair(out):
        return out[0], out[0]

    with pytest.raises(TypingError, match="empty"):
        allocates(np.zeros(2))
    with pytest.raises(TypeError, match=r"pair returns .*; a loop"):
        pair(np.zeros(2))
