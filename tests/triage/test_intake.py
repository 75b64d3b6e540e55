"""Records as columns: the compiled way gives the table that the ordinary way gives."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from adjudge.errors import InputError
from adjudge.protocols.base import Block
from adjudge.protocols.triage import intake
from adjudge.protocols.triage.config import config_of
from adjudge.protocols.triage.facts import code_of, unpacked
from adjudge.protocols.triage.intake import ResultIntake
from adjudge.protocols.triage.manifest import ManifestIntake, read_ids
from adjudge.protocols.triage.read import by_id
from adjudge.protocols.triage.records import LAST_TRIAL

CONFIG = {"results": ["r.jsonl"], "manifest": ["m.jsonl"], "slices": ["meta.source", "a.b"], "bad_confidence": "count"}

words = st.sampled_from(["fake", "real", "uncertain", "AI-generated", " Real ", "no idea", "", "é\n"])
seconds = st.one_of(st.none(), st.floats(0, 100), st.integers(0, 100), st.just(-0.0), st.just("1.5"))
tools = st.lists(
    st.one_of(st.builds(lambda s: {"tool": "ela", "seconds": s}, seconds), st.just({}), st.none()), max_size=10
)
metas = st.one_of(
    st.none(),
    st.just([]),
    st.fixed_dictionaries(
        {},
        optional={
            "source": st.sampled_from(["web", "app", None, 3, 1.5, True]),
            "a": st.sampled_from([{"b": "x"}, {"b": {"c": 1}}, {"b": []}, {}, None, "b"]),
            "other": st.integers(),
        },
    ),
)
optional = {
    "model": st.sampled_from(["m", "n", "", None, "tä"]),
    "use_tools": st.sampled_from([True, False, None, "yes"]),
    "trial": st.sampled_from([0, 1, 2, 1.0, "1", 2**31 - 1]),
    "label": st.sampled_from(["fake", "real", None, "Fake ", "cat"]),
    "prediction": st.one_of(st.none(), words),
    "confidence": st.one_of(st.none(), st.floats(-0.5, 1.5), st.integers(0, 1), st.sampled_from(["0.5", "87%", True])),
    "error": st.sampled_from([None, "late", "", {"code": 3}]),
    "error_type": st.sampled_from([None, "TimeoutError", ""]),
    "timings": st.one_of(
        st.none(),
        st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(
                ["vision_llm_seconds", "agent_graph_seconds", "total_seconds", "model_seconds"], seconds
            ),
        ),
    ),
    "latency_seconds": seconds,
    "cache": st.sampled_from([{"hit": True}, {"hit": False}, {"hit": None}, {}, None]),
    "tool_usage": st.sampled_from([[], ["ela"], [{"tool": "ela"}, None], None]),
    "tool_details": st.one_of(st.none(), tools),
    "prompt_hashes": st.sampled_from([{}, {"a": "1"}, {"a": "2"}, None, "x", 0]),
    "models": st.sampled_from([{}, {"agent": "a"}, {"agent": "", "vision": "v"}, None, "x"]),
    "run_config": st.sampled_from([{}, {"temperature": 0}, {"temperature": 0.0}, {"temperature": None}, None]),
    "timestamp": st.sampled_from([0, 1.5, "now", "", None, {}, [], {"s": 1}, True, "\\"]),
    "meta": metas,
}
results_id = st.one_of(st.integers(), st.text(max_size=5))
results = st.fixed_dictionaries({"id": results_id}, optional=optional)
manifests = st.fixed_dictionaries(
    {"id": st.one_of(st.integers(), st.text(max_size=5))},
    optional={"label": st.sampled_from(["fake", "real", "", None]), "meta": metas},
)


def block(rows, *, fast, file=0):
    texts = [json.dumps(row).encode() for row in rows]
    ends = np.cumsum([len(text) for text in texts])
    starts = ends - [len(text) for text in texts]
    lines = np.arange(1, len(rows) + 1)
    return Block("r.jsonl", file, b"".join(texts), starts.astype(np.int32), ends.astype(np.int32), lines, fast=fast)


def plain(table):
    """A table as Python values, NaN as a text so that it equals itself, zeros with their sign."""
    found = table.to_pydict()
    if "numbers" in found:
        found["numbers"] = [repr(row) for row in unpacked(table.column("numbers")).tolist()]
    return found


@settings(max_examples=250, deadline=None)
@given(st.lists(st.lists(results, min_size=1, max_size=8), min_size=1, max_size=3))
def test_results_read_the_compiled_way_are_those_read_the_ordinary_way(blocks):
    config = config_of(CONFIG)
    fast, ordinary = ResultIntake(config, "run"), ResultIntake(config, "run")
    for number, rows in enumerate(blocks):
        tables = [read(block(rows, fast=way, file=number)) for read, way in ((fast.read, True), (ordinary.read, False))]
        assert tables[0].schema == tables[1].schema
        assert plain(tables[0]) == plain(tables[1])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_rows_written_alike_are_read_as_the_ordinary_way_reads_them(data):
    """Blocks of rows that share their keys, so that most have the form of one before them."""
    keys = data.draw(st.lists(st.sampled_from(sorted(optional)), unique=True))
    alike = st.fixed_dictionaries({"id": results_id, **{key: optional[key] for key in keys}})
    config = config_of(CONFIG)
    fast, ordinary = ResultIntake(config, "run"), ResultIntake(config, "run")
    for rows in data.draw(st.lists(st.lists(alike, min_size=1, max_size=8), min_size=2, max_size=5)):
        assert plain(fast.read(block(rows, fast=True))) == plain(ordinary.read(block(rows, fast=False)))


def test_every_text_of_facts_is_told(record, monkeypatch):
    """A code is that of a text in `group`, or of the text beside it once there is no more room."""
    monkeypatch.setattr(intake, "HELD_TEXT", 400)
    reader = ResultIntake(config_of(CONFIG), None)
    held, beside = set(), set()
    for start in (0, 5):
        rows = [
            record(n, "fake", "fake", error=f"failure number {n % 7}", trial=n % 2) for n in range(start, start + 5)
        ]
        table = reader.read(block(rows, fast=True))
        codes = unpacked(table.column("numbers"))["facts"].tolist()
        texts = table.column("facts").to_pylist()
        held |= {code_of(text) for text in table.column("group").to_pylist() if text is not None}
        beside |= {text for text in texts if text is not None}
        assert all(
            code in held if text is None else code == code_of(text) for code, text in zip(codes, texts, strict=True)
        )
    assert held
    assert beside


@settings(max_examples=100, deadline=None)
@given(st.lists(manifests, min_size=1, max_size=8))
def test_manifests_read_the_compiled_way_are_those_read_the_ordinary_way(rows):
    config = config_of(CONFIG)
    tables = [ManifestIntake(config).read(block(rows, fast=fast)) for fast in (True, False)]
    assert tables[0].schema == tables[1].schema
    assert plain(tables[0]) == plain(tables[1])
    ids = [read_ids(block(rows, fast=fast)) for fast in (True, False)]
    assert plain(ids[0]) == plain(ids[1])


def test_ordinary_records_are_not_odd(record, monkeypatch):
    rows = [
        record(n, "fake", "fake", 0.25, timings={"total_seconds": 1.5}, cache={"hit": True}, timestamp=17, meta={})
        | {
            "tool_usage": ["ela"],
            "tool_details": [{"seconds": s} for s in (0.1, 0.2, 0.3)],
            "run_config": {"temperature": 0.0},
        }
        for n in range(5)
    ]
    reader = ResultIntake(config_of(CONFIG), None)
    monkeypatch.setattr(reader, "_ordinary", lambda *_: pytest.fail("was read the ordinary way"))
    for way in ("scanned", "formed"):
        numbers = unpacked(reader.read(block(rows, fast=True)).column("numbers"))
        assert numbers["tool_seconds"].tolist() == [0.6] * 5, way
        assert numbers["total_seconds"].tolist() == [1.5] * 5, way
        monkeypatch.setattr(reader, "_scan", lambda *_: pytest.fail("has no form"))


@pytest.mark.parametrize("fast", [True, False])
def test_a_record_that_is_refused_is_named_either_way(record, fast):
    rows = [record(0, "fake", "fake"), record(1, "fake", "fake", latency_seconds="long")]
    with pytest.raises(InputError, match=r"r\.jsonl:2: `latency_seconds` is 'long', expected a number"):
        ResultIntake(config_of(CONFIG), None).read(block(rows, fast=fast))
    with pytest.raises(InputError, match=r"r\.jsonl:1: label 'cat' is not one of fake, real"):
        ManifestIntake(config_of(CONFIG)).read(block([{"id": "a", "label": "cat"}], fast=fast))
    with pytest.raises(InputError, match=rf"r\.jsonl:1: `trial` is {LAST_TRIAL + 1}, expected"):
        ResultIntake(config_of(CONFIG), None).read(block([record(0, "fake", "fake", trial=LAST_TRIAL + 1)], fast=fast))


@settings(deadline=None)  # the first sort loads a library
@given(
    st.lists(st.tuples(st.text("ab\0é\U0010ffff", max_size=12) | st.text(max_size=40), st.integers(0, 2)), min_size=1)
)
def test_rows_are_ordered_by_id_and_group(rows):
    ids = pa.array(["before", *(name for name, _ in rows)], pa.string())[1:]
    order = by_id(ids, np.array([group for _, group in rows], dtype=np.int32))
    assert [rows[place] for place in order.tolist()] == sorted(rows)
    assert sorted(order.tolist()) == list(range(len(rows)))
