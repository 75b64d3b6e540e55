"""Damaged rows of every role of every protocol: each is judged or named in an error, and none ends in a traceback.

ADJUDGE_FUZZ says how many rows a protocol; `make fuzz` takes 100,000.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
from pathlib import Path

import pytest

import adjudge
from adjudge.errors import AdjudgeError
from adjudge.protocols.base import protocol
from adjudge.readers.blocks import blocks_of_lines

ROWS = int(os.environ.get("ADJUDGE_FUZZ", "1200"))
PROTOCOLS = ("flight", "triage", "consistency", "gui", "stability", "check", "score")
CHUNK = 400
ODD = [
    *("", "x", "\ud800", "a\x00b", "ÿ" * 5000, "\u202e", "NaN", "1e999", "null", "🙂", "=1+1"),
    *(0, -1, 1e308, -1e308, 10**30, True, None, [], {}, [[]], [None], {"a": {}}, ["x", 1, None]),
]


def damaged(rng: random.Random, record: dict) -> bytes:
    """One record as it should not be."""
    kind = rng.randrange(8)
    text = json.dumps(record)
    if kind == 0:
        return text[: rng.randrange(len(text))].encode()
    if kind == 1:
        data = bytearray(text.encode())
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(data).replace(b"\n", b" ")
    if kind == 2:
        return (text[:-1] + ', "deep": ' + "[" * rng.choice([10, 2000]) + "]" * 2000 + "}").encode()
    if kind == 3:
        return rng.choice([b"null", b"[]", b"3", b'"x"', b"{}", b"{{}}", b"\xff\xfe", b"{'id': 1}"])
    path = _somewhere(rng, record)
    if kind == 4:
        _put(record, path, rng.choice(ODD))
    elif kind == 5:
        _put(record, path, None, drop=True)
    elif kind == 6:
        _put(record, path, "\udfff" + "x" * rng.choice([1, 100_000]))
    else:
        record[rng.choice(["extra", "ID", "Model", "\u00e9"])] = rng.choice(ODD)
    return json.dumps(record, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def _somewhere(rng: random.Random, value: object) -> list:
    path: list = []
    while True:
        if isinstance(value, dict) and value:
            step = rng.choice(sorted(value))
        elif isinstance(value, list) and value:
            step = rng.randrange(len(value))
        else:
            return path
        path.append(step)
        value = value[step]
        if rng.random() < 0.4:
            return path


def _put(record: dict, path: list, value: object, *, drop: bool = False) -> None:
    if not path:
        return
    for step in path[:-1]:
        record = record[step]
    if drop:
        del record[path[-1]]
    else:
        record[path[-1]] = value


@pytest.mark.parametrize("name", PROTOCOLS)
def test_damaged_rows_are_judged_or_named(name, tmp_path):
    rng = random.Random(f"fuzz {name}")  # noqa: S311 -- no secret
    config = {**_example(name, tmp_path / "example"), "resamples": 100}
    inputs = protocol(name).plan(config).inputs()
    share = ROWS // len(inputs)
    for item in inputs:
        lines = [line for path in item.paths for line in Path(path).read_text().splitlines()]
        damaged_rows = [damaged(rng, json.loads(rng.choice(lines))) for _ in range(share)]
        accepted = [row for row in damaged_rows if _readable(item, row)]
        assert 0 < len(accepted) < len(damaged_rows)  # or the damage is no test
        for start in range(0, len(accepted), CHUNK):
            _judge(name, config, item, accepted[start : start + CHUNK], tmp_path)


def _example(name: str, folder: Path) -> dict:
    """The example of a protocol; of `score`, whose example is a log of another tool, records of its own."""
    if name != "score":
        return protocol(name).example(folder, 3)
    records = [
        {
            "id": f"q{place}",
            "model": "mn"[place % 2],
            "task": "t",
            "trial": 1 + place % 3,
            "score": ["C", "I", "P", "N", 1, 0.5, True, "0.25", None][place % 9],
            "status": [None, "abstained", "unparsed", "errored"][place % 4] if place % 9 == 8 else None,
            "error": "timeout" if place % 9 == 8 else None,
            "answer": ["A", 3, ["x"]][place % 3],
            "target": "B",
            "explanation": "because",
            "confidence": place / 100,
            "cluster": f"c{place % 5}",
            "input_hash": f"{place:08x}",
            "meta": {"subject": "law"},
        }
        for place in range(60)
    ]
    folder.mkdir()
    path = folder / "scores.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return {"logs": [str(path)], "slices": ["meta.subject"]}


def _readable(item, row: bytes) -> bool:
    """Whether a row alone is read; one that is not must be named with its line."""
    problem = None
    for block, _ in blocks_of_lines(io.BytesIO(row), "rows.jsonl", 0, first=True):
        problem = _refusal(item, block)
    assert problem is None or "rows.jsonl:1: " in problem, problem
    return problem is None


def _refusal(item, block) -> str | None:
    try:
        if item.read is not None:
            item.read(block)
        else:
            block.each(lambda line, text: item.key("rows.jsonl", line, text), item.expected)
    except AdjudgeError as error:
        return str(error)
    return None


def _judge(name: str, config: dict, item, rows: list[bytes], folder: Path) -> None:
    """Rows that can be read alone, in one evaluation: a run whose buckets add up, or an error that names something."""
    path = folder / "rows.jsonl"
    path.write_bytes(b"\n".join(rows))
    changed = {**config, item.role: [str(path)]}
    if name == "triage":
        changed = {**config, "results": [[str(path)]]} if item.role == "results" else changed
    if name == "score":
        changed = {**config, "logs": [str(path)]}
    try:
        run = adjudge.evaluate(name, changed, out=folder / "run", force=True, report=False)
    except AdjudgeError as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert refused.exit_code in {2, 3}, str(refused)
        assert re.search(r"'|`|\d", str(refused)), str(refused)  # it names what it found
        return
    assert run.metrics["buckets"]["all"]["n"] > 0
