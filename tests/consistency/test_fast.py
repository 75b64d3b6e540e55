"""Compiled loops and the ordinary way give the same tables; rows as people write them need no ordinary way."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from adjudge.errors import InputError
from adjudge.protocols.base import Block
from adjudge.protocols.consistency import tables
from adjudge.protocols.consistency.blocks import BlockReader
from adjudge.protocols.consistency.policy import LABELS
from adjudge.protocols.consistency.reasons import look_into

ROLES = ("pairs", "scholar", "auditor", "answers")


def block(rows, *, fast):
    ends = np.cumsum([len(row) + 1 for row in rows]) - 1
    starts = ends - [len(row) for row in rows]
    data = b"\n".join(rows) + b"\n"
    lines = np.arange(1, len(rows) + 1)
    return Block("rows.jsonl", 3, data, starts.astype(np.int32), ends.astype(np.int32), lines, fast)


def read(role, rows, *, fast, skip_bad=True):
    return BlockReader(role, skip_bad=skip_bad).read(block(rows, fast=fast))


def refusal(role, rows, *, fast):
    """The message of the error for the first row that cannot be used."""
    with pytest.raises(InputError) as error:
        read(role, rows, fast=fast, skip_bad=False)
    return str(error.value)


def maybe(keys):
    return st.fixed_dictionaries({}, optional=keys)


words = st.sampled_from(
    ["", "short", "a reason that is long enough to be quoted", "jo@example.org", "call 212-555-0142", "says REJECT",
     "INVALID", "VALID", "not in context", 'a "quoted" \\ word\n', "ünï", "1234567", "😀 there", "12 34 56 7"]
)  # fmt: skip
reasons = st.none() | words | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ids = st.sampled_from(["d1", "d2", "1", "é", "", 'q"', 0, 1, 2, -1, 10**17, 10**18, 2**64])
odd_ids = ids | st.sampled_from([None, 1.5, ["d1"], True])
lists = st.none() | st.lists(ids, max_size=4) | st.lists(odd_ids, max_size=2) | st.sampled_from([3, "d1", {}])
anything = st.sampled_from([None, 1, "s", "S", "é", [1, 2], {"a": 1, "b": 2}, {"b": 2, "a": 1}, {}])
labels = st.sampled_from([*LABELS, *LABELS, *LABELS, None, "valid", "VALID ", 3])
agents = maybe(
    {
        "label": labels,
        "reason": reasons | st.just(7),
        "votes": st.none() | st.lists(st.sampled_from(LABELS), max_size=3),
        "model": st.sampled_from([None, "m", 3]),
        "temperature": st.sampled_from([None, 0, 0.0, -0.0, 0.7, "hot"]),
        "seed": st.sampled_from([None, 0, 7, 1.0]),
        "evidence_digest": st.sampled_from([None, "a", "b"]),
    }
)
truths = st.sampled_from([None, True, False, 1])
answers = maybe(
    {
        "answer_json": st.none() | maybe({"claim": reasons, "citations": lists, "constraints_echo": anything}),
        "retrieved_ids": lists,
        "flags": st.none() | maybe({"provenance_violation": truths, "constraints_mismatch": truths}) | st.just([]),
        "constraints": anything,
    }
)
qids = st.sampled_from(["q1", "q2", "é", "", 0, 7, -3, 2**53, 2**70, 1.5, None])


def of_role(role):
    if role == "answers":
        said = answers
    elif role == "pairs":
        agent = agents | st.just(None)
        said = st.builds(lambda a, c, x: {"scholar": a, "auditor": c, **x}, agent, agent, answers)
    else:
        said = agents
    return st.builds(lambda qid, row: {"qid": qid, **row}, qids, said)


@pytest.mark.parametrize("role", ROLES)
@settings(max_examples=150, deadline=None)
@given(data=st.data(), ascii_only=st.booleans(), spaced=st.booleans())
def test_both_ways_read_the_same(role, data, ascii_only, spaced):
    separators = (", ", " : ") if spaced else (",", ":")
    rows = data.draw(st.lists(of_role(role), min_size=1, max_size=6))
    written = [json.dumps(row, ensure_ascii=ascii_only, separators=separators).encode() for row in rows]
    written += [b'{"qid": "x", "qid": "y"}', data.draw(st.sampled_from([b"[1]", b'{"qid":', b"{}"]))]
    slow, fast = (read(role, written, fast=fast) for fast in (False, True))
    assert fast.equals(slow)
    assert tables.compiled(fast)
    assert not tables.compiled(slow)
    assert refusal(role, written, fast=True) == refusal(role, written, fast=False)


@pytest.mark.parametrize(
    "row",
    [
        {"qid": "q", "scholar": {"label": "VALID", "reason": "r"}, "auditor": {"label": "REJECT", "reason": None}},
        {"qid": 12, "scholar": {"label": "VALID"}, "auditor": {"label": "ABSTAIN", "model": "m", "temperature": 0.5}},
        {
            "qid": "é",
            "scholar": {"label": "NOT_IN_CONTEXT", "reason": "tab\tand é", "seed": 3, "evidence_digest": "a"},
            "auditor": {"label": "NOT_IN_CONTEXT", "reason": "fine", "evidence_digest": "b"},
            "answer_json": {"claim": "not in context", "citations": ["d1", 7], "constraints_echo": {"a": [1]}},
            "retrieved_ids": ["d1", "7", "d9"],
            "constraints": {"a": [1]},
            "flags": {"provenance_violation": True, "constraints_mismatch": None},
        },
        {"qid": "n", "scholar": {"label": "VALID"}, "auditor": {"label": "VALID"}, "flags": None, "answer_json": None},
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_rows_as_people_write_them_are_read_by_the_compiled_loops(row, ascii_only, monkeypatch):
    written = [json.dumps(row, ensure_ascii=ascii_only).encode()]
    expected = read("pairs", written, fast=False)
    monkeypatch.setattr(BlockReader, "_ordinary", None)
    assert read("pairs", written, fast=True).equals(expected)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(reasons, reasons, st.booleans()), min_size=1, max_size=8), st.integers(0, 2))
def test_reasons_are_looked_into_alike(rows, skipped):
    """A reason that quotes, names or holds what it should not is found by both ways, also in a slice of a column."""
    texts = [
        pa.array([one for one, _, _ in rows], pa.string()),
        pa.array([f"they say {one} too" if quote and one else two for one, two, quote in rows], pa.string()),
    ]
    codes = np.arange(len(rows), dtype=np.int8)
    sides = [side[skipped:] for side in texts]
    both = (codes[skipped:] % 4, codes[skipped:] % 3)
    slow, fast = (look_into(sides, both, fast=fast) for fast in (False, True))
    assert [side.to_pylist() for side in slow.texts] == [side.to_pylist() for side in fast.texts]
    for one, two in zip(slow[1:], fast[1:], strict=True):
        assert (one == two).all()


def test_a_list_longer_than_the_loops_hold_is_still_read():
    many = [f"d{k}" for k in range(3000)]
    row = {"qid": "q", "answer_json": {"citations": [*many, "out"]}, "retrieved_ids": many}
    found = tables.codes_of(read("answers", [json.dumps(row).encode()], fast=True))["answer"]
    assert found["out_of_scope"].tolist() == [1]
