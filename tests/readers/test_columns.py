"""Columns of a block: the same whichever records it begins with, and however many of the struct's keys they have."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.errors import InputError
from adjudge.readers.blocks import block_of
from adjudge.readers.columns import LOOKED_AT, ColumnReader


class Row(msgspec.Struct):
    """A record with two optional keys, one of them under another name."""

    id: str | int
    word: str | None = None
    number: float | None = msgspec.field(default=None, name="the number")


WORDS = {"word": ("C", "I")}


def columns(records: list[dict[str, Any]], *earlier: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The columns of some records, read after others."""
    reader = ColumnReader(Row, "a record has `id`", WORDS)
    for block in (*earlier, records):
        rows = [(place, msgspec.json.encode(record)) for place, record in enumerate(block, 1)]
        found = reader.read(block_of(rows, "a.jsonl"))
    return found


RECORDS = st.lists(
    st.fixed_dictionaries(
        {"id": st.one_of(st.text(), st.integers(-9, 9))},
        optional={
            "word": st.sampled_from(["C", "I", "other", "é", None, *map(str, range(40))]),
            "the number": st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
            "nobody's": st.one_of(st.text(), st.lists(st.integers()), st.none()),
        },
    ),
    min_size=1,
    max_size=3 * LOOKED_AT,
)


@given(RECORDS, RECORDS)
def test_columns_are_what_the_records_hold(earlier: list[dict[str, Any]], records: list[dict[str, Any]]) -> None:
    expected = {"id": [record["id"] for record in records]}
    for name, key in (("word", "word"), ("number", "the number")):
        values = [record.get(key) for record in records]
        if any(value is not None for value in values):
            expected[name] = values
    assert columns(records) == expected
    assert columns(records, earlier) == expected


def test_a_key_or_word_that_only_an_unseen_record_has_is_not_lost() -> None:
    records: list[dict[str, Any]] = [{"id": place, "word": "C"} for place in range(5 * LOOKED_AT)]
    records[3] |= {"the number": 0.5}
    records[4] |= {"word": "seldom"}
    found = columns(records, records[10:])
    assert found["number"][3] == 0.5
    assert found["word"][3:5] == ["C", "seldom"]


def test_a_record_that_cannot_be_read_is_named_by_its_line() -> None:
    with pytest.raises(InputError, match=r"a.jsonl:2: .*`id`"):
        columns([{"id": "a"}, {"word": "C"}, {"id": "b"}])


@pytest.mark.parametrize("odd", [{}, [], 1, True, ["C"]])
def test_a_word_that_is_no_text_is_named_by_its_line(odd: Any) -> None:
    with pytest.raises(InputError, match=r"a.jsonl:2: `word` is .*, expected text"):
        columns([{"id": "a", "word": "C"}, {"id": "b", "word": odd}])


def test_many_keys_that_nobody_reads_change_nothing() -> None:
    others = {f"key {place}": place for place in range(30)}
    assert columns([{"id": "a", "word": "I", **others}, {"id": "b"}]) == {"id": ["a", "b"], "word": ["I", None]}


@pytest.mark.parametrize("key", ["a\\b", 'a"b', "a\x00b", "a\tb", "\x1f", ""])
def test_a_key_may_hold_what_no_name_of_a_field_may(key: str) -> None:
    records = [{"id": place, "word": "C", key: place} for place in range(3)]
    assert columns(records) == {"id": [0, 1, 2], "word": ["C", "C", "C"]}
