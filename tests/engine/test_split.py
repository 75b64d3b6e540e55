"""The split: whatever stands between the records, every record is found at its line, and a bad one is named."""

from __future__ import annotations

import msgspec
import pytest

from adjudge.engine import blocks
from adjudge.engine.runner import Serial
from adjudge.engine.split import split
from adjudge.errors import InputError
from adjudge.protocols.base import Input


class Key(msgspec.Struct):
    id: str
    model: str | None = None


def key_of(path, line, text):
    key = msgspec.json.decode(text, type=Key)
    return key.id, key.model


def found(tmp_path, data, *, limit=None):
    path = tmp_path / "outputs.jsonl"
    path.write_bytes(data)
    item = Input("outputs", (str(path),), key_of, "an output line is an object", limited=True)
    cut = split([item], tmp_path, Serial(), limit=limit)
    return sorted((line, bytes(text).strip()) for part in cut.partitions for _, line, text in part["outputs"].rows())


def record(number):
    return b'{"id":"s%05d","model":"m","response":"x"}' % number


@pytest.mark.parametrize(
    "before, between, last",
    [(b"", b"\n", b"\n"), (b"", b"\n", b""), (b"\xef\xbb\xbf", b"\n", b"\n"), (b"", b"\r\n", b"\r\n")],
)
def test_every_record_is_found_at_its_line_in_one_block_or_many(tmp_path, monkeypatch, before, between, last):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 500)
    records = [record(number) for number in range(300)]
    rows = found(tmp_path, before + between.join(records) + last)
    assert rows == list(enumerate(records, 1))


def test_blank_lines_are_no_records_but_count_as_lines(tmp_path):
    assert found(tmp_path, record(1) + b"\n\n  \n" + record(2) + b"\n") == [(1, record(1)), (4, record(2))]


def test_a_limit_keeps_the_first_records(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 100)
    data = b"\n".join(record(number) for number in range(50))
    assert [line for line, _ in found(tmp_path, data, limit=7)] == list(range(1, 8))


@pytest.mark.parametrize(
    "bad",
    [
        b'{"id":"a"}{"id":"b"}\n\n',  # two records and two lines, but not one on each
        b'{"id":"a"}{"id":"b"}\n{"id":\n"c"}\n',
        b'{"id":"a"\n',
        b'{"model":"m"}\n',
        b'{"id":"\xff"}\n',
    ],
)
def test_a_bad_record_is_named_by_its_line(tmp_path, monkeypatch, bad):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 500)
    data = b"".join(record(number) + b"\n" for number in range(100)) + bad + record(101) + b"\n"
    with pytest.raises(InputError) as caught:
        found(tmp_path, data)
    assert ":101:" in str(caught.value)
