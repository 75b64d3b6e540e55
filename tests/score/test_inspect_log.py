"""Inspect logs: what the generator put in is what is read, as zip and as JSON, whole, crashed and damaged."""

import json
import math
import struct
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from tests.score import formats as f

import adjudge
from adjudge.errors import InputError, NotComparable
from adjudge.protocols.score import generate as g
from adjudge.readers.logs import zipped
from adjudge.readers.logs.formats import header_of, list_logs, read_log
from adjudge.readers.logs.record import STATUSES


def four_hundred():
    """200 samples × 2 epochs: 196 C, 169 I, 13 N, 22 errors."""
    values = ["C"] * 196 + ["I"] * 169 + ["N"] * 13 + [None] * 22
    return [
        g.Attempt(1 + place % 200, 1 + place // 200, value, None if value else "timeout")
        for place, value in enumerate(values)
    ]


def log_of(attempts, **spec):
    ids = tuple(dict.fromkeys(attempt.id for attempt in attempts))
    epochs = max(attempt.epoch for attempt in attempts)
    return g.document(g.Spec(**{"model": "m", "epochs": epochs, "sample_ids": ids, **spec}), attempts)


@pytest.fixture
def both(tmp_path):
    """The same log as `.eval` and as JSON."""
    log = log_of(four_hundred())
    return g.write_eval(tmp_path / "a.eval", log), f.document(tmp_path / "a.json", log)


def test_every_attempt_stands_in_the_denominator(both, judge, value):
    run = judge(both[0])
    assert value(run, "mean_score", "m") == 0.49
    assert value(run, "mean_score_scored", "m") == 196 / 365
    assert value(run, "coverage", "m") == 0.9125
    counts = run.metrics["buckets"]["m"]
    assert (counts["abstained"], counts["errored"], counts["n"]) == (13, 22, 400)
    assert not adjudge.verify(run).problems


def test_json_gives_the_same_numbers_byte_for_byte(both, judge, metrics_bytes):
    assert metrics_bytes(judge(both[0])) == metrics_bytes(judge(both[1]))


def test_another_order_of_the_samples_changes_no_byte(tmp_path, judge, metrics_bytes):
    log = log_of(four_hundred())
    first = g.write_eval(tmp_path / "a.eval", log)
    log["samples"] = log["samples"][::-1]
    second = g.write_eval(tmp_path / "b.eval", log)
    assert metrics_bytes(judge(first)) == metrics_bytes(judge(second, workers=2))


def test_the_printed_numbers_are_reproduced_by_the_rule_of_the_log(both, judge):
    run = judge(both[0])
    section = next(section for section in run.metrics["sections"] if section["name"] == "printed")
    for row in section["rows"]:
        assert row[4] == pytest.approx(row[3], rel=1e-12)
    accuracy = next(row for row in section["rows"] if "accuracy" in row[2])
    assert accuracy[5] == 0.49
    assert "leaves out 22 attempts (22 errored)" in accuracy[6]


def test_what_was_put_in_is_what_is_read(tmp_path):
    attempts = [
        g.Attempt("a", 1, "C"),
        g.Attempt("a", 2, "P"),
        g.Attempt("b", 1, "N"),
        g.Attempt("b", 2, math.nan, reason="invalid_response_format"),
        g.Attempt("c", 1, math.nan, reason="grader_failed"),
        g.Attempt("c", 2, 0.25),
        g.Attempt("d", 1, None, "boom"),
    ]
    log = header_of(str(g.write_eval(tmp_path / "a.eval", log_of(attempts))))
    records = {(record.id, record.trial): record for record in read_log(log)}
    status = {key: STATUSES[record.status] for key, record in records.items()}
    assert status == {
        ("a", 1): "scored",
        ("a", 2): "scored",
        ("b", 1): "abstained",
        ("b", 2): "unparsed",
        ("c", 1): "errored",
        ("c", 2): "scored",
        ("d", 1): "errored",
        ("d", 2): "missing",
    }
    assert [records[key].score for key in (("a", 1), ("a", 2), ("c", 2))] == [1.0, 0.5, 0.25]
    assert records["d", 1].error == "boom"


def test_a_log_without_its_header_is_read_from_its_journal(tmp_path, judge):
    attempts = [g.Attempt(1, 1, "C"), g.Attempt(2, 1, "I")]
    log = log_of(attempts, sample_ids=(1, 2, 3))
    run = judge(g.write_eval(tmp_path / "crashed.eval", log, finished=False))
    assert run.metrics["buckets"]["m"]["missing"] == 1
    assert any("not finished" in note for note in run.metrics["notes"])


def test_a_sample_after_the_last_summary_of_a_crashed_log_is_read_from_its_member(tmp_path, judge):
    log = log_of([g.Attempt(1, 1, "C"), g.Attempt(2, 1, "I")])
    files = g.members(log, finished=False)
    files["_journal/summaries/1.json"] = g.encoded([g._summary(log["samples"][0])])
    path = tmp_path / "crashed.eval"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    assert judge(path).metrics["buckets"]["m"]["failed"] == 1


@pytest.mark.parametrize("write", [g.write_eval, f.document])
def test_tokens_of_the_cache_are_kept_where_the_log_has_them(tmp_path, judge, write):
    log = log_of(four_hundred())
    first, second = log["samples"][:2]
    first["model_usage"]["m"] |= {"input_tokens_cache_read": 50, "input_tokens_cache_write": 13}
    first["model_usage"]["a grader"] = {"input_tokens": 900, "input_tokens_cache_read": 900}
    run = judge(write(tmp_path / "a.log", log))
    records = {record["sample_id"]: record["as_reported"]["cache_tokens"] for record in run.records()}
    names = [f"{log['eval']['task']}/{sample['id']}" for sample in (first, second)]
    assert records[names[0]] == {"read": 50, "written": 13}
    assert records[names[1]] == {"read": None, "written": None}


def test_a_requeued_sample_counts_once_the_last(tmp_path, judge):
    log = log_of([g.Attempt(1, 1, "I"), g.Attempt(2, 1, "I"), g.Attempt(1, 1, "C")])
    for write, name in ((f.document, "a.json"), (g.write_eval, "a.eval")):
        run = judge(write(tmp_path / name, log))
        counts = run.metrics["buckets"]["m"]
        assert (counts["passed"], counts["n"]) == (1, 2)
        assert any(note.endswith("the last counts: 1") for note in run.metrics["notes"])


def test_a_cut_summary_is_hashed_by_the_whole_sample(tmp_path):
    def digest(text, name):
        log = header_of(str(g.write_eval(tmp_path / name, log_of([g.Attempt(1, 1, "C", input=text)]))))
        return next(read_log(log)).input_hash

    assert digest("x" * 6000 + "a", "a.eval") != digest("x" * 6000 + "b", "b.eval")
    assert digest("x" * 6000 + "a", "c.eval") == digest("x" * 6000 + "a", "d.eval")


@pytest.mark.parametrize("finished", [True, False])
def test_a_sample_in_chunks_is_read_from_its_first(tmp_path, finished):
    log = log_of([g.Attempt(1, 1, "C", input="x" * 6000 + "a")])
    whole = g.write_eval(tmp_path / "whole.eval", log)
    path = tmp_path / "chunked.eval"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in g.members(log, finished=finished).items():
            if finished or not name.startswith("_journal/summaries"):
                archive.writestr(name.replace("_epoch_1.json", "_epoch_1/sample.json"), data)
    first, second = (next(read_log(header_of(str(one)))) for one in (whole, path))
    assert first.input_hash == second.input_hash
    assert second.score == 1.0


def zstandard(path, files, frames=1):
    """A zip whose members are packed by method 93, in several frames; zipfile itself cannot write them."""
    entries, offset = [], 0
    with path.open("wb") as stream:
        for name, data in files.items():
            cut = max(1, -(-len(data) // frames))
            packed = b"".join(_frame(data[start : start + cut]) for start in range(0, len(data), cut))
            fields = (20, 0, 93, 0, 33, zlib.crc32(data), len(packed), len(data), len(name))
            stream.write(struct.pack("<4s5H3L2H", b"PK\x03\x04", *fields, 0) + name.encode() + packed)
            entries.append((name, fields, offset))
            offset = stream.tell()
        for name, fields, place in entries:
            head = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, *fields, 0, 0, 0, 0, 0, place)
            stream.write(head + name.encode())
        size = stream.tell() - offset
        stream.write(struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, len(entries), len(entries), size, offset, 0))
    return path


def _frame(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packed:
        packed.write(data)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("frames", [1, 3])
def test_zstandard_members_are_read(tmp_path, both, judge, metrics_bytes, frames):
    path = zstandard(tmp_path / "z.eval", g.members(log_of(four_hundred())), frames)
    assert metrics_bytes(judge(path)) == metrics_bytes(judge(both[0]))


@pytest.mark.parametrize(
    "change,told",
    [
        (lambda log: log.update(version=3), "Inspect log of version 3"),
        (lambda log: log["samples"][0]["scores"]["match"].update(value="rather good"), 'is "rather good", no number'),
        (lambda log: log.pop("eval"), "member"),
    ],
)
def test_logs_that_cannot_be_read_are_refused_in_words(tmp_path, judge, change, told):
    log = log_of([g.Attempt(1, 1, "C")])
    files = None
    if "eval" in log:
        change(log)
    try:
        files = g.members(log)
    except KeyError:
        files = {"header.json": g.encoded(log), "summaries.json": b"[]"}
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with pytest.raises(InputError, match=told):
        judge(path)


def test_a_truncated_zip_is_told_from_a_log(tmp_path, judge):
    path = g.write_eval(tmp_path / "a.eval", log_of([g.Attempt(1, 1, "C")]))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="truncated, or still being written"):
        judge(path)


@pytest.mark.parametrize("name", ["../outside.json", "/etc/outside.json", "samples/../../x.json", "C:\\x.json"])
def test_members_that_point_outside_are_refused(tmp_path, judge, name):
    path = g.write_eval(tmp_path / "a.eval", log_of([g.Attempt(1, 1, "C")]))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(zipfile.ZipInfo(name), b"{}")
    with pytest.raises(InputError, match="points outside the log"):
        judge(path)
    assert not Path("/etc/outside.json").exists()


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, judge, monkeypatch):
    log = log_of([g.Attempt(1, 1, "C")])
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**g.members(log), "summaries.json": b" " * 70_000_000 + b"[]"}.items():
            archive.writestr(name, data)
    with pytest.raises(InputError, match=r"summaries\.json' unpacks to 70,000,002 bytes"):
        judge(path)
    monkeypatch.setattr(zipped, "MOST_BYTES", 100)
    with pytest.raises(InputError, match="more than the 100 that are read"):
        judge(g.write_eval(tmp_path / "large.eval", log))


def test_a_member_with_a_wrong_checksum_is_refused(tmp_path, judge):
    path = zstandard(tmp_path / "z.eval", g.members(log_of([g.Attempt(1, 1, "C")])))
    data = bytearray(path.read_bytes())
    place = data.rindex(b"header.json")
    data[place - 30] ^= 1  # its CRC-32 in the directory
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="its checksum is wrong"):
        judge(path)


def test_a_log_without_scores_is_said_so(tmp_path, judge):
    empty = g.write_eval(tmp_path / "empty.eval", log_of([g.Attempt(1, 1, None)], model="other"))
    with pytest.raises(InputError, match="has no scores at all"):
        judge(empty)
    scored = g.write_eval(tmp_path / "a.eval", log_of([g.Attempt(1, 1, "C")]))
    run = judge(empty, scored)
    assert any("has no scores" in note for note in run.metrics["notes"])
    assert run.metrics["buckets"]["other"]["errored"] == 1


def test_logs_of_two_task_versions_are_not_compared(tmp_path):
    attempts = [g.Attempt(i, 1, "C") for i in range(20)]
    first = g.write_eval(tmp_path / "a.eval", log_of(attempts, model="a"))
    second = g.write_eval(tmp_path / "b.eval", log_of(attempts, model="b", task_version=2))
    with pytest.raises(NotComparable, match="task_version: 1, 2"):
        adjudge.compare(str(first), str(second))


def test_two_logs_are_compared_directly(tmp_path):
    first, second = g.write_example(tmp_path, 0)
    comparison = adjudge.compare(str(first), str(second))
    assert comparison.status == "COMPARABLE"
    assert comparison.pairs[0].metrics[0].verdict == "worse"
    assert comparison.pairs[0].metrics[0].clusters == 150


def test_models_that_differ_in_temperature_too_are_refused(tmp_path):
    attempts = [g.Attempt(i, 1, "C") for i in range(20)]
    first = g.write_eval(tmp_path / "a.eval", log_of(attempts, model="a"))
    second = g.write_eval(tmp_path / "b.eval", log_of(attempts, model="b", temperature=1.0))
    with pytest.raises(NotComparable, match="more than one factor varies"):
        adjudge.compare(str(first), str(second))
    third = g.write_eval(tmp_path / "c.eval", log_of(attempts, model="a", temperature=1.0))
    assert adjudge.compare(str(first), str(third)).varied.keys() == {"generation"}


@pytest.mark.realdata
def test_real_logs_are_read_and_their_numbers_reproduced(shared_data, judge):
    folder = shared_data / "logs_inspect"
    logs = list_logs([str(folder)])
    assert sum(log.unscored for log in logs.values()) == 1
    for log in logs.values():
        if log.unscored:
            continue
        run = judge(log.path)
        section = next(section for section in run.metrics["sections"] if section["name"] == "printed")
        assert section["rows"]
        for row in section["rows"]:
            assert row[4] == row[3], "to all digits"
        assert not adjudge.verify(run).problems


def edited(path, change=None, **spec):
    """The log of fifteen questions, each a `C` or an `I`, after a change of the document."""
    attempts = [g.Attempt(i, 1, "CI"[i % 3 == 0]) for i in range(1, 16)]
    ids = tuple(range(1, 16))
    log = g.document(g.Spec("acme/a", sample_ids=ids)._replace(**spec), attempts)
    if change is not None:
        change(log)
    path.write_bytes(g.encoded(log))
    return str(path)


def other_questions(log):
    for sample in log["samples"]:
        sample["input"] = "Quite another question"


def test_models_that_were_asked_other_things_are_not_ranked_in_one_run_nor_compared(tmp_path, judge):
    one = edited(tmp_path / "a.json")
    run = judge(one, edited(tmp_path / "b.json", other_questions, model="acme/b"))
    assert not [section for section in run.metrics["sections"] if section["name"] == "ranking"]
    assert any("another input or target" in note for note in run.metrics["notes"])
    with pytest.raises(NotComparable, match="15 of 15 shared samples"):
        adjudge.compare(run.path)


def test_a_sample_that_one_log_lacks_is_no_other_question(tmp_path):
    whole = edited(tmp_path / "a.json")
    lacking = edited(tmp_path / "b.json", lambda log: log["samples"].pop(4), model="acme/b")
    metric = adjudge.compare(whole, lacking).pairs[0].metrics[0]
    assert (metric.n, metric.discordant.only_a) == (15, 1)


def two_scores(log, lacks_first=False):
    for place, sample in enumerate(log["samples"]):
        value = sample["scores"]["match"]
        lacks = lacks_first and place == 0
        sample["scores"] = {**({} if lacks else {"strict": {**value, "value": "I"}}), "loose": value}


def test_the_judged_score_is_not_that_of_the_first_sample(tmp_path, judge, value):
    whole = edited(tmp_path / "a.json", two_scores)
    lacking = edited(tmp_path / "b.json", lambda log: two_scores(log, lacks_first=True), model="acme/b")
    run = judge(whole, lacking)
    assert [value(run, "mean_score", model) for model in ("acme/a", "acme/b")] == [0.0, 0.0]


def test_models_that_are_judged_by_different_scores_are_not_compared(tmp_path, judge):
    strict = edited(tmp_path / "a.json", two_scores)
    loose = edited(
        tmp_path / "b.json",
        lambda log: [two_scores(log), [sample["scores"].pop("strict") for sample in log["samples"]]],
        model="acme/b",
    )
    with pytest.raises(NotComparable, match="judged_score"):
        adjudge.compare(judge(strict, loose).path)


@pytest.mark.parametrize(
    "factor, change",
    [
        ("model_roles", lambda log: log["eval"].update(model_roles={"grader": {"model": "x/judge"}})),
        ("limits", lambda log: log["eval"]["config"].update(token_limit=100)),
        ("solver", lambda log: log["plan"].update(finish={"solver": "self_critique", "params": {}})),
    ],
)
def test_what_may_make_a_difference_is_named_and_two_at_once_are_refused(tmp_path, factor, change):
    before = edited(tmp_path / "a.json")
    assert list(adjudge.compare(before, edited(tmp_path / "b.json", change)).varied) == [factor]
    with pytest.raises(NotComparable, match="more than one factor"):
        adjudge.compare(before, edited(tmp_path / "c.json", change, model="acme/b"))


def printed_of(run):
    return [row for section in run.metrics["sections"] if section["name"] == "printed" for row in section["rows"]]


def test_the_mode_of_a_log_tells_no_answer_from_a_wrong_one(tmp_path, judge):
    attempts = [g.Attempt(1, epoch, value) for epoch, value in enumerate("NCCI", 1)]
    log = g.document(g.Spec("acme/a", epochs=4, sample_ids=(1,)), attempts)
    log["results"]["scores"][0] |= {
        "reducer": "mode",
        "metrics": {"accuracy": {"name": "accuracy", "value": 1.0, "params": {}}},
    }
    path = tmp_path / "a.json"
    path.write_bytes(g.encoded(log))
    assert printed_of(judge(path))[0][3:5] == [1.0, 1.0]


def test_a_log_that_clusters_its_standard_error_is_clustered(tmp_path, judge):
    def by_document(log):
        for place, sample in enumerate(log["samples"]):
            sample["metadata"] = {"document": f"d{place // 5}"}
        metrics = {
            "stderr": {"name": "stderr", "value": math.sqrt(1.5 * 2 / 3) / 15, "params": {"cluster": "document"}}
        }
        log["results"]["scores"][0]["metrics"] = metrics

    run = judge(edited(tmp_path / "a.json", by_document))
    passes = [sum(i % 3 != 0 for i in range(low, low + 5)) for low in (1, 6, 11)]
    error = math.sqrt(1.5 * sum((passed - sum(passes) / 3) ** 2 for passed in passes)) / 15
    assert printed_of(run)[0][4] == pytest.approx(error, abs=1e-12)
    assert run.estimates["pass_rate", "model=acme/a"].method.endswith("3 clusters")


def test_half_of_a_surrogate_pair_costs_itself_and_not_the_log(tmp_path, judge, value):
    log = log_of([g.Attempt(1, 1, "C", answer="\ud83d"), g.Attempt(2, 1, "I")])
    log["samples"][0]["scores"]["match"]["answer"] = "cut \ud83d"
    path = tmp_path / "a.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    run = judge(path)
    assert value(run, "pass_rate", "m") == 0.5
    assert "cut \ufffd" in run.explain("capitals/1")


def test_members_are_bounded_together(tmp_path, judge, monkeypatch):
    monkeypatch.setattr(zipped, "RATIO_FROM", 1 << 21)
    files = g.members(log_of([g.Attempt(1, 1, "C")]), finished=False)
    with zipfile.ZipFile(tmp_path / "a.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        for place in range(60):
            archive.writestr(f"_journal/summaries/{place + 2}.json", b"[" + b" " * (1 << 20) + b"]")
    with pytest.raises(InputError, match="and those before it unpack to"):
        judge(tmp_path / "a.eval")


@pytest.mark.parametrize("number", ["1e308", "9" * 400, "-1e200"])
def test_a_number_that_no_sum_holds_is_no_score(tmp_path, judge, number):
    path = f.document(tmp_path / "a.json", log_of([g.Attempt(1, 1, 0.5), g.Attempt(2, 1, 0.25), g.Attempt(3, 1, 1.0)]))
    path.write_text(path.read_text(encoding="utf-8").replace("0.25", number), encoding="utf-8")
    assert judge(path).metrics["buckets"]["m"]["errored"] == 1


@pytest.mark.parametrize("settings", ['{"a":' * 600 + "1" + "}" * 600, '{"t": NaN}'])
def test_settings_that_no_manifest_holds_are_refused_by_file(tmp_path, judge, settings):
    path = f.document(tmp_path / "a.json", log_of([g.Attempt(1, 1, "C")]))
    path.write_text(path.read_text(encoding="utf-8").replace('"task_args": {}', f'"task_args": {settings}'))
    with pytest.raises(InputError, match="cannot be kept as it is") as error:
        judge(path)
    assert error.value.file == str(path)


def test_a_target_nested_deep_is_named(tmp_path, judge):
    files = g.members(log_of([g.Attempt(1, 1, "C")]))
    deep = b"[" * 900 + b"1" + b"]" * 900
    files["summaries.json"] = files["summaries.json"].replace(b'"target": "A"', b'"target": ' + deep)
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with pytest.raises(InputError, match="of an unknown shape"):
        judge(tmp_path / "a.eval")


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_log_with_nan_is_told_by_its_content(tmp_path, judge, metrics_bytes, indent):
    log = log_of([g.Attempt(1, 1, "C"), g.Attempt(2, 1, math.nan), g.Attempt(3, 1, "I")])
    path = tmp_path / "a.json"
    path.write_text(json.dumps(log, indent=indent), encoding="utf-8")
    assert metrics_bytes(judge(path)) == metrics_bytes(judge(g.write_eval(tmp_path / "a.eval", log)))


def test_runs_in_a_folder_of_logs_are_no_logs(tmp_path, judge, value):
    (tmp_path / "logs").mkdir()
    log = g.write_eval(tmp_path / "logs" / "a.eval", log_of([g.Attempt(1, 1, "C")]))
    adjudge.evaluate("score", {"logs": [str(log)]}, out=tmp_path / "logs" / "run", report=False)
    assert value(judge(tmp_path / "logs"), "pass_rate", "m") == 1.0
