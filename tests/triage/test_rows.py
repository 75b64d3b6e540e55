"""From records to columns: what a record becomes does not depend on its neighbours, nor on how it is written."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

import adjudge
from adjudge.errors import InputError
from adjudge.protocols.base import Partition
from adjudge.protocols.triage.config import config_of
from adjudge.protocols.triage.matching import batches
from adjudge.protocols.triage.rows import ManifestRows, ResultRows, read_ids
from adjudge.readers.blocks import block_of
from adjudge.readers.triage_results import LAST_TRIAL

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
    "rationale": st.sampled_from([None, "smooth", 'é "🙂"\n\x00\\', "x" * 2001, 5, ["a", 1.5], {"b": None}, False]),
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


def block(rows, first=1):
    return block_of([(line, json.dumps(row).encode()) for line, row in enumerate(rows, first)], "r.jsonl")


def plain(*tables):
    """Tables as Python values, as text so that NaN equals itself and zeros have their sign."""
    return repr([row for table in tables for row in table.to_pylist()])


@settings(max_examples=150, deadline=None)
@given(st.lists(results, min_size=1, max_size=8))
def test_a_result_is_read_alike_alone_and_among_others(rows):
    """Where one record does not fit the type, the others of its block are read one by one too."""
    read = ResultRows(config_of(CONFIG), "run").read
    assert plain(read(block(rows))) == plain(*(read(block([row], line)) for line, row in enumerate(rows, 1)))


@settings(max_examples=50, deadline=None)
@given(st.lists(manifests, min_size=1, max_size=8))
def test_a_manifest_record_is_read_alike_alone_and_among_others(rows):
    for read in (ManifestRows(config_of(CONFIG)).read, read_ids):
        assert plain(read(block(rows))) == plain(*(read(block([row], line)) for line, row in enumerate(rows, 1)))


def test_numbers_of_a_record_in_every_way_it_may_be_written(record):
    plain_record = record(
        0, "fake", "fake", 0.25, timings={"total_seconds": 1.5}, cache={"hit": True}, tool_usage=["ela"],
        tool_details=[{"seconds": 0.1}, {"seconds": 0.2}, {"seconds": 0.3}, {}], run_config={"temperature": 0.0}, trial=2,
    )  # fmt: skip
    as_text = plain_record | {
        "confidence": "0.25", "timings": {"total_seconds": "1.5"}, "cache": {"hit": "yes"}, "trial": "2", "use_tools": "no",
        "tool_details": [{"seconds": "0.1"}, {"seconds": 0.2}, None, {"seconds": "0.3"}],
        "run_config": {"temperature": "0"},
    }  # fmt: skip
    table = ResultRows(config_of(CONFIG), None).read(block([plain_record, as_text]))
    for row in table.drop_columns(["line"]).to_pylist():
        assert (row["group"], row["answer"], row["confidence"], row["tool_seconds"]) == ("m|no-tools|2", 0, 0.25, 0.6)
        assert (row["total_seconds"], row["vision_llm_seconds"], row["latency_seconds"]) == (1.5, None, None)
        assert (row["cache"], row["tool_count"], row["temperature"], row["stamped"]) == (True, 1, 0.0, False)


def test_a_block_of_blank_lines_has_no_rows():
    config = config_of(CONFIG)
    assert ResultRows(config, None).read(block([])).num_rows == 0
    assert ManifestRows(config).read(block([])).num_rows == 0


def test_a_record_that_is_refused_is_named(record):
    read = ResultRows(config_of(CONFIG), None).read
    with pytest.raises(InputError, match=r"r\.jsonl:2: `latency_seconds` is 'long', expected a number"):
        read(block([record(0, "fake", "fake"), record(1, "fake", "fake", latency_seconds="long")]))
    with pytest.raises(InputError, match=rf"r\.jsonl:1: `trial` is {LAST_TRIAL + 1}, expected"):
        read(block([record(0, "fake", "fake", trial=LAST_TRIAL + 1)]))
    with pytest.raises(InputError, match=r"r\.jsonl:1: `id` is null, expected a whole number or text"):
        read(block([{"id": None}]))
    with pytest.raises(InputError, match=r"r\.jsonl:1: label 'cat' is not one of fake, real"):
        ManifestRows(config_of(CONFIG)).read(block([{"id": "a", "label": "cat"}]))


@pytest.mark.parametrize("key", ["id", "trial", "confidence", "latency_seconds", "meta", "models", "prompt_hashes"])
def test_a_number_beyond_all_bounds_is_named_with_its_line(key):
    record = f'{{"id": "a", "label": "fake", "{key}": 1e999}}'.encode()
    with pytest.raises(InputError, match=r"r\.jsonl:7: "):
        ResultRows(config_of(CONFIG), None).read(block_of([(7, record)], "r.jsonl"))


def test_a_whole_number_that_is_no_float_is_no_confidence_and_no_time():
    read, digits = ResultRows(config_of(CONFIG), None).read, "1" + "0" * 400
    table = read(block_of([(7, f'{{"id": "a", "confidence": {digits}}}'.encode())], "r.jsonl"))
    assert table.column("confidence_text").to_pylist() == [digits[:80]]
    with pytest.raises(InputError, match=r"r\.jsonl:7: `latency_seconds` is 10+, expected a number"):
        read(block_of([(7, f'{{"id": "a", "latency_seconds": {digits}}}'.encode())], "r.jsonl"))


@settings(deadline=None)  # the first sort loads a library
@given(
    st.lists(
        st.tuples(st.text("ab\0é\U0010ffff", max_size=12) | st.text(max_size=40), st.integers(0, 12)),
        min_size=1,
        unique=True,
    )
)
def test_rows_are_ordered_by_id_and_group(names):
    """Ids by their bytes, groups by their names: trial 10 stands before trial 2."""
    config = config_of({"results": ["r.jsonl"]})
    table = ResultRows(config, None).read(block([{"id": name, "trial": trial} for name, trial in names]))
    partition = Partition(rows={}, groups=(), files=("r.jsonl",), tables={"results": table})
    ordered = pa.concat_tables([rows.table for rows in batches(partition, config)])
    pairs = list(zip(ordered.column("key").to_pylist(), ordered.column("group").to_pylist(), strict=True))
    assert pairs == sorted((name, f"unnamed|no-tools|{trial}") for name, trial in names)


def test_keys_that_nothing_reads_are_named(judge, record, tmp_path, write_lines):
    manifest = write_lines(
        tmp_path / "m.jsonl", [{"id": "s0000", "label": "fake", "trace": 1, "meta": {"camera": "x"}}]
    )
    more = {
        "rationale": "smooth",
        "verbosity": 3,
        "image": "a.jpg",
        "timings": {"total_seconds": 1.0, "upload_seconds": 2.0},
        "run_config": {"temperature": 0.0, "top_p": 1.0},
        "tool_details": [{"tool": "ela", "seconds": 0.1}],
        "models": {"agent": "a", "router": "r"},
        "meta": {"anything": 1},
    }
    notes = judge([record(0, "fake", "fake", **more)], manifest=[manifest]).manifest.notes
    unread = ("timings.upload_seconds", "verbosity")
    assert (
        f"results: keys that nothing reads: {', '.join(f'`{key}` (100 %)' for key in unread)}, by their share of the records"
        in notes
    )
    assert "manifest: keys that nothing reads: `trace` (100 %), by their share of the records" in notes


def test_a_broken_character_costs_itself_and_not_the_run(tmp_path, record):
    """A byte-order mark, CRLF, blank lines, a lone surrogate, bytes that are no UTF-8, a NUL."""
    lines = [json.dumps(record(n, "fake", "fake", note="@")).encode() for n in range(6)]
    lines[1] = lines[1].replace(b"@", b"\\ud83d")
    lines[2] = lines[2].replace(b"@", b"\xff")
    lines[3] = lines[3].replace(b"@", b"\0")
    lines[4] = lines[4].replace(b'"prediction": "fake"', b'"prediction": "fake\\udead"')
    lines[5] = lines[5].replace(b'"note": "@"', b'"models": {"agent": "\\ud83d"}')
    (tmp_path / "r.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\r\n\r\n".join(lines) + b"\r\n")
    run = adjudge.evaluate("triage", {"results": [str(tmp_path / "r.jsonl")], "resamples": 100}, out=tmp_path / "run")
    assert run.metrics["buckets"]["all"] | {"n": 6} == run.metrics["buckets"]["all"]
    assert (run.metrics["buckets"]["all"]["passed"], run.metrics["buckets"]["all"]["unparsed"]) == (5, 1)
    assert run.record("s0004")["said"] | {"prediction": "fake\ufffd", "line": 9} == run.record("s0004")["said"]
    assert run.record("s0005")["provenance"]["models_recorded"] == '{"agent":"\ufffd"}'
    assert any(note.startswith("results: 5 lines held ") for note in run.manifest.notes)
    adjudge.verify(run)


def test_names_that_differ_in_case_alone_are_different_names(judge, record):
    rows = [
        record(n, label, answer, model=model, meta={"source": source}, models={"agent": model, "Agent": "x"})
        for model in ("Login", "login")
        for n, (label, answer, source) in enumerate([("Login", "LOGIN", "Web"), ("Logout", "logout", "web")])
    ]
    run = judge(rows, positive="Login", negative="Logout", slices=["meta.source"])
    assert list(run.metrics["configurations"]) == ["Login|no-tools", "login|no-tools"]
    assert run.metrics["buckets"]["all"]["passed"] == 4
    assert run.metrics["slices"]["meta.source"]["values"] == {"Web": 2, "web": 2}
    adjudge.verify(run)


def test_a_slice_that_is_no_single_value_is_named_with_its_line(judge, record, tmp_path, write_lines):
    rows = [record(0, "fake", "fake", meta={"source": "web"}), record(1, "real", "real", meta={"source": ["web"]})]
    with pytest.raises(InputError, match=r"\.jsonl:2: slice meta\.source is a list, not one value"):
        judge(rows, slices=["source"])
    manifest = write_lines(
        tmp_path / "m.jsonl",
        [{"id": f"s{n:04d}", "label": label, "meta": {"source": {}}} for n, label in enumerate(["fake", "real"])],
    )
    with pytest.raises(InputError, match=r"m\.jsonl:2: slice meta\.source is an object, not one value"):
        judge(rows[:1], slices=["source"], manifest=[manifest])
    rows[1]["meta"] = {"source": None}
    run = judge(rows, slices=["source"], manifest=[manifest])
    assert run.metrics["slices"]["source"]["values"] == {"(none)": 1, "web": 1}
