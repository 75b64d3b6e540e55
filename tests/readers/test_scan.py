"""The scanner: for every row that is not odd its columns are what an ordinary JSON reader finds, to the bit."""

from __future__ import annotations

import json
import math
import zlib

import hypothesis.strategies as st
import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings

from adjudge.readers import scan as module
from adjudge.readers.scan import (
    ABSENT,
    ARRAY,
    ESCAPED,
    FALSE,
    INTEGER,
    NULL,
    OBJECT,
    REAL,
    TEXT,
    TRUE,
    WRITTEN,
    Wanted,
    crc32,
    is_utf8,
    newlines,
    scan,
)

PATHS = [("id",), ("a",), ("o", "x"), ("o", "é"), ("l", 0), ("l", 2), ("l", 0, "x")]


def scanned(rows, paths=PATHS, *, fast=True):
    data = b"\n".join(rows)
    ends = np.cumsum([len(row) + 1 for row in rows]) - 1
    starts = ends - [len(row) for row in rows]
    return scan(Wanted(paths), data, starts.astype(np.int32), ends.astype(np.int32), fast=fast)


def at(document, path):
    """(whether it is there, the value) by the ordinary way."""
    for step in path:
        if isinstance(step, int):
            if not isinstance(document, list) or len(document) <= step:
                return False, None
        elif not isinstance(document, dict) or step not in document:
            return False, None
        document = document[step]
    return True, document


def check(row, found, index):
    document = msgspec.json.decode(row)
    for path in [*PATHS, ("o",), ("l",)]:
        there, value = at(document, path)
        kind = found.kinds(*path)[index]
        number = found.numbers(*path)[index]
        if not there:
            assert kind == ABSENT
        elif value is None:
            assert kind == NULL
        elif isinstance(value, bool):
            assert kind == (TRUE if value else FALSE)
        elif isinstance(value, int):
            assert (kind, number) == (INTEGER, float(value))
        elif isinstance(value, float):
            assert (kind, number) == (REAL, value)
            assert math.copysign(1, number) == math.copysign(1, value)
        elif isinstance(value, str):
            assert kind in {TEXT, ESCAPED}
            assert found.texts(*path)[index].as_py() == value
        else:
            assert kind == (ARRAY if isinstance(value, list) else OBJECT)
            assert number == len(value)
            first, last = found.spans(*path)
            assert msgspec.json.decode(bytes(found.data[first[index] : last[index]])) == value


numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(["x", "é", "id", "q\"'\\"]), inner, max_size=3)
    ),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from(["id", "a", "o", "l", "other"]), values, max_size=5)


@settings(max_examples=300, deadline=None)
@given(st.lists(documents, min_size=1, max_size=5), st.booleans(), st.booleans(), st.sampled_from([None, 1]))
def test_a_row_that_is_not_odd_reads_as_msgspec_reads_it(rows, ascii_only, spaced, indent):
    separators = (", ", ": ") if spaced else (",", ":")
    written = [json.dumps(row, ensure_ascii=ascii_only, separators=separators, indent=indent).encode() for row in rows]
    found = scanned(written)
    for index, row in enumerate(written):
        if not found.odd[index]:
            check(row, found, index)


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=40) | st.text('{}[]",:0123456789.eE+-truefalsn \\"axid', max_size=40).map(str.encode))
@example(b'{"a":01}')
@example(b'{"a":1.}')
@example(b'{"a":.5}')
@example(b'{"a":1e}')
@example(b'{"a":-}')
@example(b'{"a" 1}')
@example(b'{"a":1,}')
@example(b"{,}")
@example(b'{"a":[1,]}')
@example(b'{"a":"\\x"}')
@example(b'{"a":"\\ud800"}')
@example(b'{"a":"\\u12g4"}')
@example(b'{"a":"\\u12')
@example(b'{"a":"\\')
@example(b'{"a":"tab\there"}')
@example(b'{"a":tru}')
@example(b'{"a":1}}')
@example(b'{"a":1}{"a":2}')
@example(b'{"a":[}')
@example(b"[1]")
@example(b'"a"')
def test_what_is_no_json_object_is_odd(row):
    try:
        row.decode()
        well_formed = isinstance(msgspec.json.decode(row), dict)
    except (msgspec.DecodeError, UnicodeDecodeError):
        well_formed = False
    if not well_formed and b"\xff" not in row and _utf8(row):
        assert scanned([row]).odd[0]


SHORT = ("0", "-0", "7", "-12.5", "0.001", "46.54934", "12345678", "1234567.12345678")
LONGER = ("123456789", "12345678.12345678", "1.123456789", "0.1e3", "1E5", "-1e-7", "9007199254740993")
OTHER = ("true", '"3"', "null", "{}", "[1]")
DOUBTFUL = ("1e400", "1" * 40, "0." + "3" * 40)
NO_JSON = ("00", "01", "-01.5", "1.", ".5", "-", "+1", "1.5x", "1 2", "1_0", "0x1F", "NaN", "1.2.3", "1e", "")
NAMES = ("x", "y", "a longer key")


def check_record(items, blanks, *, whole):
    """Read as the row itself or inside one; whether the row was odd."""
    before, colon, behind = blanks
    inner = ",".join(f'{before}"{key}":{colon}{number}{behind}' for key, number in items)
    row = (f"{{{inner}}}" if whole else f'{{"id": 1, "o": {{{inner}}}}}').encode()
    paths = [(name,) for name in NAMES] if whole else [("id",), *(("o", name) for name in NAMES)]
    found = scanned([row], paths)
    if found.odd[0]:
        return True
    document = msgspec.json.decode(row)
    own = document if whole else document["o"]
    assert found.numbers(*paths[-1][:-1]).tolist() == [len(items)]
    for path in paths[-3:]:
        value, written = own.get(path[-1]), dict(items).get(path[-1])
        kind = int(found.kinds(*path)[0])
        assert (kind == INTEGER, kind == REAL) == (type(value) is int, type(value) is float)
        assert (kind == ABSENT) == (path[-1] not in own)
        if kind in (INTEGER, REAL):
            assert found.numbers(*path).tobytes() == np.array([float(written)]).tobytes()
            assert row[slice(*(int(place[0]) for place in found.spans(*path)))].decode() == written
    return False


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("number", [*SHORT, *LONGER, *OTHER, *DOUBTFUL, *NO_JSON])
def test_a_record_with_one_number_of_any_kind(number, whole):
    """At any place of it; what is well-formed and in no doubt is not odd, the rest always is."""
    for place in range(3):
        items = [(name, number if place == k else "-2.25") for k, name in enumerate(NAMES)]
        for blanks in (("", "", ""), ("\n  ", " ", " ")):
            assert check_record(items, blanks, whole=whole) == (number in DOUBTFUL + NO_JSON)


BLANKS = st.sampled_from(["", " ", "\n  ", "\t"])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([*NAMES, "z"]), st.sampled_from([*SHORT, *LONGER, *OTHER])), max_size=5),
    st.tuples(BLANKS, BLANKS, BLANKS),
    st.booleans(),
)
@example([("x", "1"), ("y", "2"), ("y", "2")], ("", "", ""), False)
def test_records_with_keys_in_any_order(items, blanks, whole):
    """Missing ones and some too many; a row is odd where a wanted one stands twice, and only there."""
    wanted = [key for key, _ in items if key in NAMES]
    assert check_record(items, blanks, whole=whole) == (len(set(wanted)) < len(wanted))


# Pieces of long strings: runs of backslashes at any place, all escapes, what is none, and what may not stand there.
PIECES = st.sampled_from(
    ["plain", "x" * 61, "\\\\", '\\"', "\\n", "\\t", "\\/", "\\b", "\\u00e9", "é", "\\", '"', "\\q", "\n", "\\u12"]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join))
@example("\\" * 127)
@example("\\" * 128)
@example("x" * 63 + "\\" + '"' + "x" * 62)
def test_long_strings_end_where_msgspec_finds_their_end(inner):
    """In a string that is wanted and in one that is passed over."""
    row = f'{{"id": "{inner}", "other": "{inner}", "a": 1}}'.encode()
    found = scanned([row])
    try:
        expected = msgspec.json.decode(row)
    except msgspec.DecodeError:
        expected = None
    assert found.odd[0] == (expected is None)
    if expected is not None:
        assert found.texts("id").to_pylist() == [expected["id"]]
        assert found.numbers("a").tolist() == [1.0]


def _utf8(row):
    try:
        row.decode()
    except UnicodeDecodeError:
        return False
    return True


ORDINARY = [
    b'{"id":"a","a":1.5,"o":{"x":null,"y":{"x":3}},"l":[{"x":true},2,"z"]}',
    b' { "a" : -0.0 , "l" : [ ] , "o" : { } } ',
    b'{"a":"caf\\u00e9 \\ud7ff \\"quoted\\"\\n","id":"' + "ünï".encode() + b'"}',
    b'{"a":12345678901234567,"id":"0123456789012345678901234567890123456789"}',
    b'{"a":0.30000000000000004}',
    b'{"a":1E5,"o":{"x":2.5e-7}}',
    b'{"a":"said \\"x\\""}',
    b"{}",
]


@pytest.mark.parametrize("row", ORDINARY)
def test_ordinary_rows_are_not_odd(row):
    found = scanned([row])
    assert not found.odd[0]
    check(row, found, 0)


@pytest.mark.parametrize(
    "row",
    [
        b'{"a":1,"a":2}',  # the last one counts, says the ordinary reader
        b'{"o":{"x":1},"o":{}}',
        b'{"\\u0061":1}',  # a key in disguise
        b'{"a":1e300}',
        b'{"a":123456789012345678901234567890}',
        b'{"a":"\\ud83d\\ude00"}',
        b'{"other":' + b"[" * 70 + b"]" * 70 + b"}",
    ],
)
def test_what_is_in_doubt_is_left_to_the_ordinary_reader(row):
    assert scanned([row]).odd[0]


def test_numbers_are_rounded_as_python_rounds_them():
    random = np.random.default_rng(5)
    written = [repr(value) for value in random.lognormal(0, 2, 20_000).tolist()]
    written += [f"{a}.{b}" for a, b in random.integers(0, 10**9, (20_000, 2)).tolist()]
    written += [
        f"{a}e{b}" for a, b in zip(random.integers(1, 10**18, 5000), random.integers(-25, 25, 5000), strict=True)
    ]
    found = scanned([f'{{"a":{text}}}'.encode() for text in written])
    sure = ~found.odd
    assert (found.numbers("a")[sure] == np.array([float(text) for text in written])[sure]).all()
    assert sure[:40_000].mean() > 0.99


def test_halfway_cases_are_not_guessed():
    # Halfway between two doubles, and one unit in the last digit beside it.
    written = [f"{(2**53 + 1) / 2:.1f}", "9007199254740993.0", "9007199254740993.1", "4503599627370496.5"]
    found = scanned([f'{{"a":{text}}}'.encode() for text in written])
    for index, text in enumerate(written):
        assert found.odd[index] or found.numbers("a")[index] == float(text)


def test_rows_of_an_unexpected_kind_become_odd():
    found = scanned([b'{"a":1}', b'{"a":"1"}', b"{}"])
    found.expect("a", kinds=(INTEGER, ABSENT))
    assert found.odd.tolist() == [False, True, False]
    assert found.texts("a").to_pylist() == [None, None, None]


def test_without_the_compiled_loops_every_row_is_odd(monkeypatch):
    monkeypatch.setattr(module, "available", lambda: False)
    assert scanned([b'{"a":1}']).odd.all()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["l", "o"]), st.lists(values, max_size=4) | values)), st.booleans())
@example([{"l": ['a,"]b\\', [1, [2], {"x": "],"}], {}, "", None]}, {}, {"l": []}, {"l": [0]}], True)
def test_the_elements_of_lists_stand_where_msgspec_finds_them(rows, spaced):
    written = [
        json.dumps(row, indent=1 if spaced else None, separators=None if spaced else (",", ":")).encode()
        for row in rows
    ]
    found = scanned(written or [b"{}"])
    expected = [
        (index, element)
        for index, row in enumerate(written)
        if not found.odd[index] and found.kinds("l")[index] == ARRAY
        for element in msgspec.json.decode(row)["l"]
    ]
    places = zip(*(column.tolist() for column in found.elements("l")), strict=True)
    assert [(row, msgspec.json.decode(bytes(found.data[a:b]))) for a, b, row in places] == expected


def test_elements_are_rows_of_another_scan():
    row = b'{"id":"e","l":[{"id":"a","a":1}, {"id":"b","a":"x"} ,7]}'
    found = scanned([b'{"l":3}', row])
    starts, ends, owner = found.elements("l")
    inner = scan(Wanted(PATHS), b'{"l":3}\n' + row, starts, ends, fast=True)
    assert owner.tolist() == [1, 1, 1]
    assert inner.odd.tolist() == [False, False, True]
    assert inner.texts("id").to_pylist() == ["a", "b", None]


def test_whole_numbers_can_be_read_as_their_digits():
    found = scanned([b'{"a":-12}', b'{"a":"x"}', b'{"a":1.5}', b'{"a":true}'])
    assert found.texts("a", kinds=WRITTEN).to_pylist() == ["-12", "x", None, None]
    assert found.texts("a").to_pylist() == [None, "x", None, None]


@settings(deadline=None)  # the first call loads the compiled loop
@given(st.lists(texts, max_size=5))
def test_the_hash_of_a_key_is_zlibs(keys):
    array = pa.array(["before", *keys], pa.string())[1:]
    expected = [zlib.crc32(key.encode()) for key in keys]
    assert crc32(array, fast=True).tolist() == crc32(array, fast=False).tolist() == expected


def test_words_are_told_apart_by_every_byte():
    rows = [b'"yes"', b'"no"', b'"ye"', b'"yess"', b'"y\\u0065s"', b'"Yes"', b'""', b"null", b"3", b'"caf\xc3\xa9"']
    found = scanned([b'{"a":' + value + b"}" for value in rows] + [b'{"a":"yes"', b"{}"])
    assert found.words("a", among=("no", "yes", "café")).tolist() == [1, 0, -1, -1, -1, -1, -1, -1, -1, 2, -1, -1]
    assert found.words("a", among=()).tolist() == [-1] * 12


@settings(max_examples=50, deadline=None)
@given(st.lists(documents, min_size=1, max_size=5), st.data())
def test_all_expectations_at_once_are_those_one_by_one(rows, data):
    written = [json.dumps(row).encode() for row in rows]
    kinds = {path: data.draw(st.sets(st.integers(ABSENT, ARRAY)).map(sorted)) for path in PATHS[:4]}
    one, other = scanned(written), scanned(written)
    one.expect_all(one.wanted.allowed(kinds))
    for path, own in kinds.items():
        other.expect(*path, kinds=own)
    assert one.odd.tolist() == other.odd.tolist()


@settings(deadline=None)
@given(st.binary(max_size=400) | st.text("\n\x0b\x0a\x8a ab", max_size=400).map(str.encode), st.integers(0, 8))
def test_newlines_are_found_where_they_are(data, cut):
    size = max(0, len(data) - cut)
    padded = data + b"\n" * (-len(data) % 8)
    expected = [place for place in range(size) if data[place] == ord("\n")]
    for fast in (True, False):
        places, ascii_only = newlines(padded, size, fast=fast)
        assert places.tolist() == expected
        assert ascii_only == padded.isascii()


@settings(deadline=None)
@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_utf8_is_what_python_decodes(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        assert not is_utf8(data)
    else:
        assert is_utf8(data)
        assert is_utf8(bytearray(data))


def test_short_lines_are_found_in_a_second_try():
    data = b"{}\n" * 4000
    places, ascii_only = newlines(data, len(data), fast=True)
    assert places.tolist() == list(range(2, len(data), 3))
    assert ascii_only
