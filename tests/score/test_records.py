"""The generic record: every case of the specification that needs no log of another tool."""

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adjudge
from adjudge.errors import InputError
from adjudge.protocols.score import generate as g

LETTERS = ["C"] * 196 + ["I"] * 169 + ["N"] * 13


def four_hundred():
    """400 attempts: 196 C, 169 I, 13 N and 22 errors."""
    records = [{"id": f"q{i}", "model": "m", "score": letter} for i, letter in enumerate(LETTERS)]
    return records + [{"id": f"e{i}", "model": "m", "error": "timeout"} for i in range(22)]


def test_every_attempt_stands_in_the_denominator(write, judge, value):
    run = judge(write(four_hundred()))
    assert value(run, "mean_score", "m") == 0.49
    assert value(run, "mean_score_scored", "m") == 196 / 365
    assert value(run, "coverage", "m") == 0.9125
    assert value(run, "mean_score_low", "m") == 0.49
    assert value(run, "mean_score_high", "m") == (196 + 35) / 400
    assert run.metrics["buckets"]["m"] == {
        "passed": 196,
        "failed": 169,
        "abstained": 13,
        "unparsed": 0,
        "errored": 22,
        "missing": 0,
        "n": 400,
    }
    assert not adjudge.verify(run).problems


def test_the_order_of_rows_and_the_workers_change_no_byte(write, judge, metrics_bytes):
    records = four_hundred()
    first = judge(write(records))
    records = records[::-3] + records[-2::-3] + records[-3::-3]
    second = judge(write(records, "again/scores.jsonl"), workers=2)
    assert metrics_bytes(first) == metrics_bytes(second)


def test_pass_at_k_and_pass_hat_k(write, judge, value):
    passes = [5, 5, 5, 4, 4, 3, 2, 1, 0, 0]
    records = [
        {"id": f"q{i}", "model": "m", "trial": trial, "score": trial <= c}
        for i, c in enumerate(passes)
        for trial in range(1, 6)
    ]
    run = judge(write(records))
    assert value(run, "pass_at_1", "m") == pytest.approx(0.58, abs=1e-15)
    assert value(run, "pass_hat_3", "m") == pytest.approx(0.39, abs=1e-15)
    assert value(run, "flip_rate", "m") == 0.5
    assert value(run, "mean_score", "m") == 0.58
    assert value(run, "pass_rate", "m", "trial=m|1") == 0.8


def test_k_larger_than_the_attempts_is_null_with_the_reason(write, judge):
    records = [{"id": f"q{i}", "model": "m", "trial": t, "score": 1} for i in range(3) for t in (1, 2)]
    run = judge(write(records), k=[2, 3])
    estimate = run.estimates["pass_hat_3", "model=m"]
    assert estimate.value is None
    assert "fewer than 3 attempts" in estimate.why
    assert run.estimates["pass_hat_2", "model=m"].value == 1.0


def test_a_csv_without_a_model_is_named_after_its_file(tmp_path, judge):
    path = tmp_path / "gpt-x.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerows([["question", "correct"], ["a", "true"], ["b", "0"], ["c", ""], ["d", "0.0"]])
    run = judge(path, columns={"id": "question", "score": "correct"})
    assert run.metrics["buckets"]["gpt-x"]["passed"] == 1
    assert run.metrics["buckets"]["gpt-x"]["failed"] == 2
    assert run.metrics["buckets"]["gpt-x"]["errored"] == 1
    assert any("name no model" in note for note in run.metrics["notes"])


def test_a_spreadsheet_with_decimal_commas_is_read_and_said(tmp_path, judge):
    path = tmp_path / "scores.csv"
    path.write_text("\ufeffid;model;score\r\nq1;m;0,5\r\nq2;m;1,0\r\nq3;m;0\r\n", encoding="utf-8")
    run = judge(path)
    assert run["mean_score", "m"].value == pytest.approx(0.5)
    assert any("scores: 2 numbers with a decimal comma" in note for note in run.manifest.notes)
    assert not adjudge.verify(run).problems


def test_a_wide_table_has_a_column_a_model(tmp_path, judge):
    path = tmp_path / "wide.csv"
    path.write_text("id,a,b\nq1,1,0\nq2,0,\nq3,1,1\n", encoding="utf-8")
    run = judge(path, wide=["a", "b"])
    assert run.metrics["buckets"]["a"]["passed"] == 2
    assert run.metrics["buckets"]["b"] == {
        "passed": 1,
        "failed": 1,
        "abstained": 0,
        "unparsed": 0,
        "errored": 0,
        "missing": 1,
        "n": 3,
    }


def test_parquet_and_json_are_read_like_json_lines(tmp_path, write, judge, metrics_bytes):
    records = [{"id": f"q{i}", "model": "m", "score": float(i % 2)} for i in range(20)]
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "scores.parquet")
    (tmp_path / "scores.json").write_text(json.dumps(records, indent=1), encoding="utf-8")
    runs = [judge(path) for path in (write(records), tmp_path / "scores.parquet", tmp_path / "scores.json")]
    assert metrics_bytes(runs[0]) == metrics_bytes(runs[1]) == metrics_bytes(runs[2])


def test_what_one_model_lacks_is_missing(write, judge):
    records = [{"id": f"q{i}", "model": "a", "score": 1} for i in range(4)]
    records += [{"id": f"q{i}", "model": "b", "score": 1} for i in range(3)]
    run = judge(write(records))
    assert run.metrics["buckets"]["b"]["missing"] == 1
    assert run.metrics["buckets"]["all"]["n"] == 8


def test_graded_scores_need_a_threshold_for_a_pass_rate(write, judge, value):
    records = [{"id": f"q{i}", "model": "m", "score": i / 10} for i in range(11)]
    run = judge(write(records))
    assert run.estimates["pass_rate", "model=m"].value is None
    assert "--pass-at" in run.estimates["pass_rate", "model=m"].why
    assert run.metrics["buckets"]["m"]["passed"] == 11
    assert value(run, "mean_score", "m") == pytest.approx(0.5)
    held = judge(write(records), pass_at=0.7)
    assert value(held, "pass_rate", "m") == 4 / 11


def test_a_letter_p_is_half_a_score_and_has_not_passed(write, judge, value):
    run = judge(write([{"id": "a", "model": "m", "score": "P"}, {"id": "b", "model": "m", "score": "C"}]))
    assert value(run, "mean_score", "m") == 0.75
    assert value(run, "pass_rate", "m") == 0.5


def test_tasks_have_blocks_and_a_macro_mean(write, judge, value):
    records = [{"id": f"q{i}", "model": "m", "task": "small", "score": 1} for i in range(2)]
    records += [{"id": f"q{i}", "model": "m", "task": "large", "score": 0} for i in range(8)]
    run = judge(write(records))
    assert value(run, "mean_score", "m") == 0.2
    assert value(run, "mean_score_macro", "m") == 0.5
    assert value(run, "mean_score", "m", "slice=m,task=small") == 1.0


def test_scores_by_name_are_all_reported_and_one_is_judged(write, judge, value):
    records = [{"id": f"q{i}", "model": "m", "scores": {"exact": i % 2, "fuzzy": 0.25}} for i in range(10)]
    run = judge(write(records))
    assert value(run, "mean_score", "m") == 0.5
    assert value(run, "mean_score", "m", "slice=m,check=fuzzy") == 0.25
    other = judge(write(records), scorer="fuzzy")
    assert value(other, "mean_score", "m") == 0.25
    assert not adjudge.verify(other).problems


def test_labels_by_people_correct_the_pass_rate(write, judge, value):
    records = [{"id": f"q{i}", "model": "m", "score": i % 2} for i in range(400)]
    labels = [{"id": f"q{i}", "label": 1 if i % 2 or i % 8 == 0 else 0} for i in range(100)]
    run = judge(write(records), truth=write(labels, "truth.jsonl"))
    assert value(run, "pass_rate", "m") == 0.5
    assert value(run, "pass_rate_labelled", "m") == 0.63
    assert 0.6 < value(run, "pass_rate_ppi", "m") < 0.66
    (shown,) = (section for section in run.metrics["sections"] if section["name"] == "labels")
    model, labelled, *rates = shown["rows"][0]
    assert (model, labelled) == ("m", 100)
    assert [rate["value"] for rate in rates[:2]] == [0.5, 0.63]


def test_slices_follow_meta(write, judge, value):
    records = [{"id": f"q{i}", "model": "m", "score": int(i < 5), "meta": {"kind": "xy"[i % 2]}} for i in range(10)]
    run = judge(write(records), slices=["meta.kind"])
    assert value(run, "mean_score", "m", "slice=m,meta.kind=x") == 0.6


@pytest.mark.parametrize(
    "record,told",
    [
        ({"id": "a", "score": "good"}, "score 'good' is no number"),
        ({"id": "a", "score": 1, "status": "fine"}, "status 'fine' is not one of"),
        ({"id": "a", "status": "scored"}, "there is no score"),
        ({"id": "a", "score": 1, "trial": 0}, "trial '0' is no whole number"),
        ({"id": "a", "score": 1, "confidence": 1.5}, "confidence 1.5 is not between 0 and 1"),
        ({"score": 1}, "id"),
        ({"id": "q", "score": 1}, "a second time"),
    ],
)
def test_bad_records_are_named_with_file_and_line(write, judge, record, told):
    path = write([{"id": "q", "score": 1}, record])
    with pytest.raises(InputError, match=told) as error:
        judge(path)
    assert error.value.file == path
    assert error.value.line == 2


def test_more_models_than_a_run_takes_are_refused(write, judge, monkeypatch):
    monkeypatch.setenv("ADJUDGE_MAX_MODELS", "30")
    with pytest.raises(InputError, match=r"names 31 models; at most 30 .*--column model=NAME"):
        judge(write([{"id": "q", "model": f"m{i}", "score": 1} for i in range(31)]))


def test_the_digest_of_the_data_set_is_that_of_its_items_however_they_were_cut(write, judge, monkeypatch):
    items = [{"id": f"q{i}", "input_hash": f"{i * 7:x}" * (i % 3), "target": "ABCD"[i % 4]} for i in range(300)]
    answers = [{"model": "a", "score": i % 2, **item} for i, item in enumerate(items)]
    more = [{"model": "b", "trial": trial, "score": 1, **item} for item in items for trial in (1, 2)]
    alone = judge(write(answers))
    monkeypatch.setattr("adjudge.engine.split.ROWS_A_PARTITION", 10)
    cut = judge(write([*more[::-1], *answers], "more.jsonl"))
    digests = [run.metrics["digests"]["dataset"] for run in (alone, cut)]
    assert digests[0] == digests[1]
    assert not adjudge.verify(cut).problems
    for key in ("id", "input_hash", "target"):
        other = [{**answers[0], key: "another"}, *answers[1:]]
        assert judge(write(other, f"{key}.jsonl")).metrics["digests"]["dataset"] != digests[0]
    swapped = [{**answers[0], "target": "B"}, {**answers[1], "target": "A"}, *answers[2:]]
    assert judge(write(swapped, "swapped.jsonl")).metrics["digests"]["dataset"] != digests[0]


def test_files_that_lack_attempts_of_others_are_filled_by_task_model_and_trial(write, judge):
    records = [
        {"id": "q1", "task": "t", "model": "a", "score": 1},
        {"id": "q2", "task": "t", "model": "a", "score": 0.5},
        {"id": "q2", "task": "t", "model": "b", "score": 1},
        {"id": "q2", "task": "t", "model": "b", "trial": 2, "score": 1},
        {"id": "q9", "task": "u", "model": "a", "score": 1},
    ]
    run = judge(write(records))
    rows = run.columns(["item", "model", "trial", "bucket"]).to_pylist()
    missing = {(row["item"], row["model"], row["trial"]) for row in rows if row["bucket"] == "missing"}
    assert missing == {("t/q1", "b", 1), ("t/q1", "b", 2)}


@pytest.mark.parametrize("key, proposed", [("correct", "correct"), ("Accuracy", "Accuracy"), ("colour", "NAME")])
def test_a_file_without_any_score_is_refused_with_its_keys(write, judge, key, proposed):
    path = write([{"id": "a", key: 1}, {"id": "b", key: 0}])
    with pytest.raises(InputError, match="none of the first 2 records has a `score`") as refused:
        judge(path)
    assert f"they have {', '.join(sorted(['id', key]))}." in str(refused.value)
    assert f"--column score={proposed} says" in str(refused.value)
    assert judge(path, columns={"score": key}).metrics["buckets"]["all"]["passed"] == 1


@pytest.mark.parametrize("told", [{"score": None}, {"error": "timeout"}, {"status": "abstained"}])
def test_a_file_that_says_why_there_is_no_score_is_read(write, judge, told):
    assert judge(write([{"id": "a", **told}])).metrics["buckets"]["all"]["passed"] == 0


@pytest.mark.parametrize("odd", ["\x00", "\x1f", "\x00x"])
def test_names_may_end_in_any_character(write, judge, odd):
    records = [
        {"id": f"q{number}{end}", "model": f"m{other}", "task": f"t{another}", "score": number % 2}
        for end, other, another in (("", "", ""), (odd, "", ""), ("", odd, ""), ("", "", odd))
        for number in range(3)
    ]
    run = judge(write(records))
    assert run.metrics["buckets"]["m"] == {
        **dict.fromkeys(run.metrics["buckets"]["m"], 0),
        "passed": 3,
        "failed": 6,
        "n": 9,
    }
    assert run.metrics["buckets"][f"m{odd}"]["missing"] == 3  # the ids with the odd end; nobody else has the odd task
    assert not adjudge.verify(run).problems


def test_labels_without_a_task_are_of_the_only_task(tmp_path, write, judge, value):
    log = str(g.write_example(tmp_path, 0, samples=20)[0])
    labels = [{"id": place, "label": place % 2} for place in range(1, 11)]
    run = judge(log, truth=write(labels, "truth.jsonl"))
    assert value(run, "pass_rate_labelled", "acme/large") == 0.5
    assert [section["rows"][0][1] for section in run.metrics["sections"] if section["name"] == "labels"] == [20]


def test_labels_that_are_of_no_sample_are_told(write, judge):
    run = judge(write([{"id": "q", "model": "m", "score": 1}]), truth=write([{"id": "Q", "label": 1}], "truth.jsonl"))
    assert any("no label of truth.jsonl is of a sample here" in note for note in run.metrics["notes"])


@pytest.mark.parametrize("number", ["1e308", "-1e101", "9" * 400, '"1e308"'])
def test_a_number_that_no_sum_holds_is_no_score_of_a_record_either(tmp_path, judge, number):
    path = tmp_path / "a.jsonl"
    rows = [f'{{"id": "{name}", "score": {score}}}' for name, score in (("a", number), ("b", number), ("c", 0.5))]
    path.write_text("\n".join(rows), encoding="utf-8")
    counts = judge(path).metrics["buckets"]["a"]
    assert (counts["passed"], counts["errored"]) == (1, 2)
