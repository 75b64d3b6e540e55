"""Columns of texts: every escape, nulls, values of another kind, nothing at all."""

from __future__ import annotations

import msgspec
import pytest

from adjudge.readers.texts import NO_TEXT, texts_of


class Said(msgspec.Struct):
    """A record with a text."""

    text: msgspec.Raw = NO_TEXT


def column(*records: str) -> list[str | None]:
    """The texts of records; "other" for a value that is none."""
    rows = msgspec.json.Decoder(Said).decode_lines("\n".join(records))
    texts: list[str | None] = texts_of([row.text for row in rows], lambda *_: "other").to_pylist()
    return texts


@pytest.mark.parametrize(
    "text",
    ["", "plain", 'a "b" \\ / c', "\x00\x08\x0c\n\r\t\x7f", "é ½ 東京 🙂 \u2028\ufeff", '{"text": 5}', "x" * 3_000_000],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_text_is_what_its_json_says(text: str, ascii_only: bool) -> None:
    import json

    record = json.dumps({"text": text}, ensure_ascii=ascii_only)
    assert column(record, '{"text" :  null }', "{}", record) == [text, None, None, text]


def test_nothing_said_is_a_column_of_nulls() -> None:
    assert column("{}", "{}") == [None, None]
    assert texts_of([], lambda *_: None).to_pylist() == []


def test_a_value_of_another_kind_is_what_the_caller_makes_of_it() -> None:
    seen = []

    def other(place: int, value: msgspec.Raw) -> str | None:
        seen.append(place)
        return None if value == msgspec.Raw(b"false") else f"json {bytes(value).decode()}"

    values = [msgspec.Raw(value) for value in (b'"a"', b"5", b"null", b"false", b'["x"]', b'{"a": 1}')]
    assert texts_of(values, other).to_pylist() == ["a", "json 5", None, None, 'json ["x"]', 'json {"a": 1}']
    assert seen == [1, 3, 4, 5]
