"""A decoder's complaints in our own words."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import pytest

from adjudge.readers.settings import in_words


class Inner(msgspec.Struct):
    x: float


class Row(msgspec.Struct):
    id: str | int
    inner: Inner | None = None
    many: list[Inner] = []
    word: Literal["a", "b"] = "a"
    small: Annotated[int, msgspec.Meta(ge=0)] = 0


@pytest.mark.parametrize(
    "text, words",
    [
        ("{}", "the record has no `id`"),
        ('{"id": []}', "`id` is a list, expected a whole number or text"),
        ('{"id": 1, "inner": {}}', "`inner` has no `x`"),
        ('{"id": 1, "inner": 3}', "`inner` is a whole number, expected an object"),
        ('{"id": 1, "many": [{"x": 1}, {"x": true}]}', "`many[1].x` is true or false, expected a number"),
        ('{"id": 1, "word": "c"}', "`word` is 'c', which is not one of the allowed values"),
        ('{"id": 1, "small": -1}', "`small` is out of range, expected a whole number >= 0"),
        ("null", "the record is null, expected an object"),
        ('{"id": 1, "inner": {"x": 1e999}}', "it holds a number too large to be one"),
        ('{"id": 1, "small": 1e999}', "it holds a number too large to be one"),
        ('{"id": 1', "it ends in the middle of a value"),
        ('{"id": 1]', "it cannot be read on from byte 9"),
        ("", "it ends in the middle of a value"),
    ],
)
def test_in_words(text, words):
    with pytest.raises(msgspec.DecodeError) as caught:
        msgspec.json.decode(text, type=Row)
    assert in_words(caught.value) == words
