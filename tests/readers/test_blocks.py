"""Blocks of lines: one record a line whatever the decoder thinks, errors with their line, odd shapes read another way."""

from __future__ import annotations

import io
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.errors import InputError
from adjudge.readers import blocks as module
from adjudge.readers.blocks import block_of, blocks_of_lines


class Row(msgspec.Struct):
    id: str
    n: float | None = None


DECODER = msgspec.json.Decoder(Row)


def block(*texts):
    return block_of(enumerate([text.encode() for text in texts], 1), "f.jsonl")


def test_records_become_rows():
    assert block('{"id": "a"}', '{"id": "b", "n": 2}').decode(DECODER, "") == [Row("a"), Row("b", 2.0)]


@pytest.mark.parametrize(
    "texts, line, words",
    [
        (['{"id": "a"}', '{"id": "b"}{"id": "c"}'], 2, "is not JSON: it cannot be read on from byte 13"),
        (['{"id": "a"}{"id": "b"}', '{"id":', '"c"}'], 1, "is not JSON"),
        (['{"id": "a"}', '{"n": 1}'], 2, "the record has no `id`; a row"),
        (['{"id": "a"}', '{"id": "b", "n": "x"}'], 2, "`n` is text, expected a number; a row"),
        (['{"id": "a"}', "[1]"], 2, "the record is a list, expected an object; a row"),
        (['{"id": "a"', '{"id": "b"}'], 1, "is not JSON: it ends in the middle of a value; a row"),
        (['{"id": "a", "x": ' + "[" * 100_000], 1, "is nested too deep to be read"),
    ],
)
def test_a_record_that_cannot_be_read_is_named(texts, line, words):
    with pytest.raises(InputError) as caught:
        block(*texts).decode(DECODER, "a row")
    assert caught.value.line == line
    assert words in str(caught.value)


def test_another_shape_is_read_another_way():
    odd = block('{"id": "a"}', '{"id": 7}').decode(
        DECODER, "", lambda line, text: Row(f"{line}:{json.loads(text)['id']}")
    )
    assert odd == [Row("a"), Row("2:7")]


def test_a_lone_surrogate_costs_that_character_alone():
    rows = block('{"id": "a"}', r'{"id": "x\ud800y"}', '{"id": "b"}')
    assert [row.id for row in rows.decode(DECODER, "")] == ["a", "x\ufffdy", "b"]
    assert rows.mended == {2: "lone surrogates"}


texts = st.lists(
    st.one_of(
        st.builds(lambda name: json.dumps({"id": name}), st.text(st.characters(codec="utf-8"), max_size=12)),
        st.sampled_from(["", "  ", "\r", '{"id": "q", "n": 1e3}']),
    ),
    max_size=30,
)


@settings(max_examples=60)
@given(texts=texts, size=st.integers(1, 60), end=st.sampled_from(["\n", "\r\n", ""]), bom=st.booleans())
def test_every_line_is_found_however_the_stream_is_cut(texts, size, end, bom):
    data = ("\ufeff" if bom else "").encode() + "\n".join(texts).encode() + end.encode()
    expected = [
        (number, json.loads(text)["id"]) for number, text in enumerate("\n".join(texts).split("\n"), 1) if text.strip()
    ]
    before, module.BLOCK_BYTES = module.BLOCK_BYTES, size
    try:
        found = []
        line = 0
        for piece, count in blocks_of_lines(io.BytesIO(data), "f", 0, first=True):
            found += zip(piece.lines.tolist(), [row.id for row in piece.decode(DECODER, "")], strict=True)
            line += count
    finally:
        module.BLOCK_BYTES = before
    assert found == expected
