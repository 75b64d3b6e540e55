"""The split: whatever stands between the records, every record is found at its line, and a bad one is named."""

from __future__ import annotations

import msgspec
import pytest

from adjudge.engine.runner import Serial
from adjudge.engine.split import Wanted, partition_count, raw_rows, split
from adjudge.errors import ConfigError, InputError
from adjudge.protocols.base import Input
from adjudge.readers import blocks


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
    cut = split([item], tmp_path, Serial(), wanted=Wanted(limit))
    return sorted(
        (line, bytes(text).strip()) for part in cut.partitions for _, line, text in raw_rows(part["outputs"].table())
    )


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
    ],
)
def test_a_bad_record_is_named_by_its_line(tmp_path, monkeypatch, bad):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 500)
    data = b"".join(record(number) + b"\n" for number in range(100)) + bad + record(101) + b"\n"
    with pytest.raises(InputError) as caught:
        found(tmp_path, data)
    assert ":101:" in str(caught.value)


def test_a_character_that_is_none_costs_itself_and_is_named(tmp_path):
    path = tmp_path / "outputs.jsonl"
    path.write_bytes(record(1) + b'\n{"id":"a\xff"}\n{"id":"b","response":"\\ud83d!"}\n' + record(2) + b"\n")
    item = Input("outputs", (str(path),), key_of, "", keys={"id": None, "model": None})
    cut = split([item], tmp_path, Serial())
    texts = sorted(text for part in cut.partitions for _, _, text in raw_rows(part["outputs"].table()))
    assert texts[:2] == [b'{"id":"a\xef\xbf\xbd"}', b'{"id":"b","response":"\\ufffd!"}']
    assert cut.notes == [
        "outputs: keys that nothing reads: `response` (75 %), by their share of the records",
        (
            "outputs: 2 lines held bytes that are not UTF-8 or lone surrogates, replaced or escaped: "
            "outputs.jsonl:2, outputs.jsonl:3"
        ),
    ]


@pytest.mark.parametrize("rows", [100, 10_000, 10_050, 25_000])
def test_keys_are_looked_at_in_the_first_records_and_every_hundredth(tmp_path, rows):
    path = tmp_path / "outputs.jsonl"
    odd = [b'{"id":"s%d","odd":1}' % place for place in range(rows)]
    path.write_bytes(b"\n".join(odd))
    item = Input("outputs", (str(path),), key_of, "", keys=Key)
    (note,) = split([item], tmp_path, Serial()).notes
    looked = len([place for place in range(rows) if place < 10_000 or place % 100 == 0])
    assert note.startswith("outputs: keys that nothing reads: `odd` (100 %), by their share of the ")
    assert (f"the {looked:,} of {rows:,} records: the first 10,000" in note) == (rows > 10_000)


def test_columns_of_the_users_own_file(tmp_path):
    path = tmp_path / "outputs.jsonl"
    path.write_text('{"question": {"no": "q1"}, "who": "m"}\n{"question": {"no": "q2"}, "who": "m"}\n')
    item = Input("outputs", (str(path),), key_of, "")
    cut = split([item], tmp_path, Serial(), wanted=Wanted(columns={"id": "question.no", "model": "who"}))
    assert (cut.rows, cut.groups) == ({"outputs": 2}, ("m",))
    with pytest.raises(ConfigError, match=r"--column id=nr: no record of .*outputs\.jsonl has a key 'nr'"):
        split([item], tmp_path, Serial(), wanted=Wanted(columns={"id": "nr", "model": "who"}))


def test_records_inside_one_object(tmp_path):
    path = tmp_path / "outputs.json"
    path.write_text('{\n"run": 1,\n"details": [{"id": "a"}, {"id": "b"}]}')
    item = Input("outputs", (str(path),), key_of, "")
    assert split([item], tmp_path, Serial(), wanted=Wanted(json_path="$.details")).rows == {"outputs": 2}
    with pytest.raises(InputError, match="has no 'rows' on the way"):
        split([item], tmp_path, Serial(), wanted=Wanted(json_path="$.rows"))


@pytest.mark.parametrize(
    "rows, size, count",
    [
        (0, 0, 1),
        (65_536, 0, 1),
        (65_537, 0, 2),
        (1_000_000, 1 << 30, 16),  # the records ask for more
        (100_000, 3 << 27, 4),  # the bytes ask for more
        (3, 1 << 40, 4),  # --limit 3 of a large file
        (1 << 40, 1 << 60, 256),
    ],
)
def test_partitions_follow_from_records_and_bytes(rows, size, count):
    assert partition_count(rows, size) == count
