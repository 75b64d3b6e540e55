"""Characters that are none cost themselves, never the record; everything else stays as it is."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.readers.characters import mended


@pytest.mark.parametrize(
    "record, value, what",
    [
        (b'{"a": "x\xffy"}', "x\ufffdy", "bytes that are not UTF-8"),
        (rb'{"a": "x\ud800y"}', "x\ufffdy", "lone surrogates"),
        (rb'{"a": "\udc00\ud83d\ude00"}', "\ufffd\U0001f600", "lone surrogates"),
        (rb'{"a": "\\ud800"}', "\\ud800", ""),
        (b'{"a": "x\x00y\x1f"}', "x\x00y\x1f", "control characters"),
        (
            b'{"a": "\xff\\ud800\x00"}',
            "\ufffd\ufffd\x00",
            "bytes that are not UTF-8 and control characters and lone surrogates",
        ),
        (b'{"a": "fine \xc3\xa9"}', "fine é", ""),
    ],
)
def test_what_is_mended(record, value, what):
    again, said = mended(record)
    assert (msgspec.json.decode(again)["a"], said) == (value, what)


@given(st.text(st.characters(), max_size=40))
def test_a_record_that_python_can_write_stays_readable(text):
    written = json.dumps({"a": text})
    again, _ = mended(written.encode())
    expected = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert msgspec.json.decode(again)["a"] == expected
