"""Logs in the shapes in which their tools write them beyond the plain ones of the generators."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.score import formats as f
from tests.score.test_formats import PLAIN, by_order, read

import adjudge
from adjudge.errors import NotComparable, VerificationFailed
from adjudge.protocols.score import generate as g
from adjudge.provenance.canonical import file_digest
from adjudge.readers.logs import openai_evals
from adjudge.readers.logs.formats import find_logs, header_of, list_logs, read_log

NAN = float("nan")


def inspect_log(path, values, **header):
    """One sample a row, its scores by name; the rest of the log as the generator writes it."""
    attempts = [g.Attempt(1 + place, 1, "C", None) for place in range(len(values))]
    log = g.document(g.Spec(model="m", epochs=1, sample_ids=tuple(range(1, 1 + len(values)))), attempts)
    for sample, scores in zip(log["samples"], values, strict=True):
        sample["scores"] = {name: {"value": value} for name, value in scores.items()}
    log |= header
    return f.document(path, log) if path.suffix == ".json" else g.write_eval(path, log)


@pytest.mark.parametrize("name", ["a.eval", "a.json"])
def test_a_score_that_is_nan_under_its_own_name_hides_no_keys(tmp_path, name):
    values = [{"judge": NAN}, {"judge": {"a": 1.0, "b": 0.0}}, {"judge": {"a": 0.0, "b": NAN}}]
    path = inspect_log(tmp_path / name, values)
    rows, log = read(path)
    assert log.checks == ["judge/a", "judge/b"]
    assert by_order(rows) == [(None, "errored"), (1.0, "scored"), (0.0, "scored")]


def test_why_a_score_of_several_keys_is_absent_is_kept(tmp_path):
    path = inspect_log(tmp_path / "a.json", [{"judge": {"a": 1.0}}, {"judge": NAN}])
    document = json.loads(path.read_text())
    document["samples"][1]["scores"]["judge"]["reason"] = "invalid_response_format"
    assert by_order(read(f.document(path, document))[0]) == [(1.0, "scored"), (None, "unparsed")]


def test_a_score_of_words_alone_is_not_judged_before_one_of_numbers(tmp_path):
    rows, log = read(
        inspect_log(tmp_path / "a.eval", [{"kind": "sandbagging", "match": "C"}, {"kind": "fine", "match": "I"}])
    )
    assert log.checks == ["match", "kind"]
    assert by_order(rows) == [(1.0, "scored"), (0.0, "scored")]


def test_samples_that_inspect_marks_invalid_are_noted(tmp_path):
    log = header_of(str(inspect_log(tmp_path / "a.eval", [{"match": "C"}], invalidated=True)))
    assert any("marked invalid" in note for note in log.notes)


def test_printed_numbers_without_a_reducer_of_epochs_are_about_attempts(tmp_path, judge):
    values = ["C", "C", "I", "I", None, "C"]
    attempts = [g.Attempt(1 + place % 3, 1 + place // 3, value, None) for place, value in enumerate(values)]
    log = g.document(g.Spec(model="m", epochs=2, sample_ids=(1, 2, 3)), attempts)
    log["eval"]["config"]["epochs_reducer"] = []
    (scores,) = log["results"]["scores"]
    scores["reducer"] = None
    scores["metrics"] = {"accuracy": {"name": "accuracy", "value": 0.6, "params": {}}}
    run = judge(g.write_eval(tmp_path / "a.eval", log))
    (row,) = next(section for section in run.metrics["sections"] if section["name"] == "printed")["rows"]
    assert row[3:5] == [0.6, 0.6]
    assert "reduces" not in row[6]
    assert not adjudge.verify(run).problems


def test_another_grader_is_a_factor(tmp_path):
    logs = []
    for place, grader in enumerate(("acme/judge", "acme/other")):
        path = inspect_log(tmp_path / f"{place}.json", [{"match": "C"}])
        document = json.loads(path.read_text())
        document["eval"]["model"] = f"m{place}"
        document["eval"]["model_roles"] = {"grader": {"model": grader, "config": {}, "args": {}}}
        logs.append(str(f.document(path, document)))
    with pytest.raises(NotComparable, match="model_roles"):
        adjudge.compare(*logs)


def test_another_grader_of_promptfoo_is_a_factor(tmp_path):
    logs = []
    for place, grader in enumerate(("openai:judge", {"id": "openai:other"})):
        path = f.promptfoo(tmp_path / f"{place}.json", PLAIN, provider=f"m{place}")
        document = promptfoo_rows(path)
        for row in document["results"]["results"]:
            row["testCase"]["options"] = {"provider": grader}
        logs.append(str(f.document(path, document)))
    with pytest.raises(NotComparable, match="evaluation_model"):
        adjudge.compare(*logs)


def test_every_metric_of_helm_has_an_entry_for_an_instance(tmp_path, judge):
    path = f.helm(tmp_path, PLAIN)
    instances = json.loads(path.read_text())
    tokens = [{**one, "stats": one["stats"][:1]} for one in instances]
    f.document(path, [*tokens, *({**one, "stats": one["stats"][1:]} for one in instances)])
    run = judge(path)
    assert run.metrics["buckets"]["acme/large"]["passed"] == 2
    assert run.metrics["buckets"]["acme/large"]["n"] == 3


def test_a_mean_of_helm_over_a_part_of_a_split_is_not_recomputed(tmp_path):
    path = f.helm(tmp_path, PLAIN)
    name = {"name": "exact_match", "split": "test", "sub_split": "easy"}
    f.document(tmp_path / "stats.json", [{"name": name, "count": 1, "mean": 0.25}])
    assert [(one.name, one.rule) for one in header_of(str(path)).printed] == [("mean of easy", "")]


def test_lm_eval_before_it_named_the_filter_of_a_sample(tmp_path):
    path = f.lm_eval(tmp_path, PLAIN)
    (results,) = tmp_path.glob("results_*.json")
    document = json.loads(results.read_text())
    document["results"]["capitals"]["exact_match,flexible"] = 1.0
    f.document(results, document)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        del row["filter"], row["metrics"]
    f.lines(path, [*rows, *({**row, "exact_match": 1.0} for row in rows)])
    judged, log = read(path)
    assert log.checks == ["exact_match,strict", "exact_match,flexible"]
    assert by_order(judged) == [(1.0, "scored"), (0.0, "scored"), (1.0, "scored")]
    assert by_order(read(path, "exact_match,flexible")[0]) == [(1.0, "scored")] * 3


def test_results_of_lm_eval_are_found_by_their_time(tmp_path):
    path = f.lm_eval(tmp_path, PLAIN)
    (results,) = tmp_path.glob("results_*.json")
    results.rename(results.with_name(results.name.replace("results_", "mine_")))
    logs = list_logs([str(tmp_path)])
    assert list(logs) == [str(path)]
    assert logs[str(path)].models == ["acme/large"]


def promptfoo_rows(path):
    return json.loads(path.read_text())


def buckets(run):
    counts = run.metrics["buckets"]["all"]
    return counts["passed"], counts["failed"], counts["errored"]


def test_what_promptfoo_calls_passed_has_passed_whatever_its_score(tmp_path, judge, value):
    path = f.promptfoo(
        tmp_path / "out.json",
        [(0, 1, 0.5, "scored"), (1, 1, 0.5, "scored"), (2, 1, 1.0, "scored"), (3, 1, None, "errored")],
    )
    document = promptfoo_rows(path)
    document["results"]["results"][0]["success"] = True  # a threshold of the test
    f.document(path, document)
    run = judge(path)
    assert buckets(run) == (2, 1, 1)
    assert value(run, "pass_rate", "openai:acme-large") == 0.5
    assert value(run, "mean_score", "openai:acme-large") == 0.5
    assert any("what the log says" in note for note in run.metrics["notes"])
    (cited,) = [
        atom for atom in run.record(run.samples.to_pylist()[0]["sample"])["evidence"] if atom["rule"] == "score.verdict"
    ]
    assert cited["outcome"] in {"pass", "fail"}
    assert not adjudge.verify(run).problems
    held = judge(path, pass_at=0.5)
    assert buckets(held) == (3, 0, 1)
    assert not adjudge.verify(held).problems


def test_verdicts_of_a_log_that_were_altered_do_not_hold(tmp_path, judge):
    run = judge(f.deepeval(tmp_path / "run.json", PLAIN))
    path = run.path / "samples.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.column_names.index("success"), "success", pa.array([True] * 3)), path)
    manifest = json.loads((run.path / "manifest.json").read_text())
    for entry in manifest["files"]:
        entry |= {"bytes": (run.path / entry["path"]).stat().st_size, "sha256": file_digest(run.path / entry["path"])}
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(VerificationFailed, match="verdict is not what the stored scores give"):
        adjudge.verify(adjudge.load_run(run.path))


def test_scores_of_which_a_log_does_not_say_whether_they_passed_have_no_pass_rate(tmp_path, judge, value):
    path = f.deepeval(tmp_path / "run.json", [(0, 1, 0.5, "scored"), (1, 1, 0.25, "scored")])
    document = json.loads(path.read_text())
    del document["testCases"][0]["metricsData"][0]["success"]
    run = judge(f.document(path, document))
    assert value(run, "pass_rate", "acme-large") is None
    assert any(note.startswith("of 1 scores the log does not say") for note in run.metrics["notes"])


def test_a_failed_assertion_of_old_promptfoo_is_no_error(tmp_path):
    path = f.promptfoo(tmp_path / "out.json", [*PLAIN, (3, 1, None, "errored")])
    document = promptfoo_rows(path)
    for row in document["results"]["results"]:
        del row["failureReason"]
        if row["gradingResult"] is not None and not row["success"]:
            row["error"] = row["gradingResult"]["reason"]
    f.document(path, document)
    assert by_order(read(path)[0]) == [(1.0, "scored"), (0.0, "scored"), (1.0, "scored"), (None, "errored")]


def test_variables_that_promptfoo_sets_itself_do_not_tell_tests_apart(tmp_path):
    path = f.promptfoo(tmp_path / "out.json", [(0, 1, 1.0, "scored"), (0, 2, 0.0, "scored")])
    document = promptfoo_rows(path)
    for place, row in enumerate(document["results"]["results"]):
        row["vars"] |= {"sessionId": f"s{place}", "_conversation": [{"input": str(place)}]}
    f.document(path, document)
    rows, _ = read(path)
    assert sorted(trial for _, trial in rows) == [1, 2]
    assert len({name for name, _ in rows}) == 1


def test_a_set_of_assertions_of_promptfoo_has_its_own_name(tmp_path):
    path = f.promptfoo(tmp_path / "out.json", PLAIN)
    document = promptfoo_rows(path)
    for row in document["results"]["results"]:
        named = {"metadata": {"assertionSet": {"type": "assert-set", "metric": "polite"}}}
        row["gradingResult"]["componentResults"] += [{"pass": True, "score": 1, "reason": ""} | named, None]
    f.document(path, document)
    assert read(path)[1].checks == ["score", "equals", "latency", "polite"]


def conversations(path, scenarios):
    metric = {"name": "Role", "threshold": 0.5, "score": 1.0, "success": True}
    cases = [
        {
            "name": f"conversational_test_case_{place}",
            "scenario": scenario,
            "expectedOutcome": "done",
            "turns": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
            "metricsData": [metric],
        }
        for place, scenario in enumerate(scenarios)
    ]
    return f.document(path, {"testRunData": {"testCases": [], "conversationalTestCases": cases}})


def test_conversations_of_deepeval_are_told_by_their_scenario(tmp_path):
    one, two = (
        {record.id: record for record in read_log(find_logs([str(path)])[0])}
        for path in (conversations(tmp_path / ".a.json", "xy"), conversations(tmp_path / ".b.json", "yx"))
    )
    assert one.keys() == two.keys()
    assert {record.input for record in one.values()} == {"x", "y"}
    record = next(iter(one.values()))
    assert (record.answer, record.target, record.model) == ("hello", "done", "a")


def test_a_metric_of_deepeval_that_passes_low_scores_passes_them_here(tmp_path, judge):
    path = f.deepeval(tmp_path / "run.json", PLAIN)
    document = json.loads(path.read_text())
    for place, case in enumerate(document["testCases"]):
        case["metricsData"][0] |= {"name": "Bias", "score": place / 2, "success": place / 2 <= 0.5}
    assert buckets(judge(f.document(path, document))) == (2, 1, 0)


def test_what_every_eval_ever_calls_correct_has_passed(tmp_path, judge):
    path = f.every_eval_ever(tmp_path / "a_samples.jsonl", PLAIN)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["evaluation"] = {"score": 0.5, "is_correct": row is rows[0]}
    assert buckets(judge(f.lines(path, rows))) == (1, 2, 0)


def test_a_model_that_grades_in_openai_evals_is_not_the_one_that_answered(tmp_path):
    path = f.openai_evals(tmp_path / "log.jsonl", PLAIN[:1])
    spec, asked, *_ = (json.loads(line) for line in path.read_text().splitlines())
    graded = {**asked, "data": {"prompt": "rate: A", "sampled": ["5"]}}
    metrics = {**asked, "type": "metrics", "data": {"choice": "5", "score": 5.0}}
    failed = {**asked, "sample_id": "capitals.dev.9", "type": "error", "data": {"type": "E", "message": "why"}}
    f.lines(path, [spec, asked, graded, metrics, failed])
    first, second = openai_evals.records(openai_evals.header(str(path)), "score")
    assert (first.input, first.answer, first.score) == ("capital 0?", '["A"]', 5.0)
    assert second.error == "why"


def test_a_cell_of_error_that_says_there_was_none_is_no_error(tmp_path, judge):
    path = tmp_path / "a.csv"
    rows = ["q1,1,,False", "q2,0,,nan", "q3,1,,None", "q4,,,True", "q5,1,,timeout", "q6,1,scored,timeout"]
    path.write_text("\n".join(["id,score,status,error", *rows]), encoding="utf-8")
    counts = judge(path).metrics["buckets"]["a"]
    assert (counts["passed"], counts["failed"], counts["errored"]) == (3, 1, 2)
