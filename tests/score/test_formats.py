"""Logs of the other tools: what was put in is what is read; what cannot be read is said in words."""

import json

import msgspec
import numpy as np
import pytest
from tests.score import formats as f

import adjudge
from adjudge.errors import InputError, NotComparable
from adjudge.readers.logs import helm, inspect_input, lm_eval
from adjudge.readers.logs.formats import find_logs, header_of, list_logs, read_log
from adjudge.readers.logs.record import STATUSES, TEXT_LIMIT

PLAIN = [(0, 1, 1.0, "scored"), (1, 1, 0.0, "scored"), (2, 1, 1.0, "scored")]
ERRORED = [*PLAIN, (3, 1, None, "errored")]


def read(path, scorer=None):
    """(id, trial) → (score or None, status) of every record, and the log."""
    log = find_logs([str(path)], scorer=scorer)[0]
    rows = {}
    for record in read_log(log, scorer):
        value = None if np.isnan(record.score) or STATUSES[record.status] != "scored" else record.score
        rows[record.id, record.trial] = (value, STATUSES[record.status])
    return rows, log


def by_order(rows):
    return [rows[key] for key in rows]


def test_lm_eval(tmp_path):
    attempts = [*PLAIN, (3, 1, None, "unparsed"), (4, 1, None, "missing")]
    rows, log = read(f.lm_eval(tmp_path, attempts, planned=5))
    assert rows["0", 1] == (1.0, "scored")
    assert rows["1", 1] == (0.0, "scored")
    assert rows["3", 1] == (None, "unparsed"), "[invalid] is no wrong answer"
    assert rows["4", 1] == (None, "missing")
    assert log.models == ["acme/large"]
    assert log.printed[0].value == 0.5


def test_unparsed_answers_of_lm_eval_stand_in_the_denominator(tmp_path, judge, value):
    f.lm_eval(tmp_path, [*PLAIN, (3, 1, None, "unparsed")], planned=4)
    run = judge(tmp_path)
    assert run.metrics["buckets"]["acme/large"]["unparsed"] == 1
    assert value(run, "mean_score", "acme/large") == 0.5
    assert value(run, "mean_score_scored", "acme/large") == 2 / 3


def test_the_confidence_of_a_multiple_choice_is_its_softmax(tmp_path):
    path = f.lm_eval(tmp_path, PLAIN)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["filtered_resps"] = [["-1.0", "True"], ["-2.0", "False"], ["-4.0", "False"]]
    f.lines(path, rows)
    log = header_of(str(path))
    shares = np.exp([-1.0, -2.0, -4.0])
    assert next(read_log(log)).confidence == pytest.approx(shares[0] / shares.sum())


def test_metrics_of_lm_eval_that_are_no_number_are_named(tmp_path):
    path = f.lm_eval(tmp_path, PLAIN)
    rows = [
        json.loads(line) | {"metrics": ["exact_match", "bleu"], "bleu": ["a", "b"]}
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    log = header_of(str(f.lines(path, rows)))
    assert log.checks == ["exact_match,strict"]
    assert any("bleu,strict" in note for note in log.notes)


@pytest.mark.parametrize("as_lines", [False, True])
def test_promptfoo(tmp_path, as_lines):
    rows, log = read(f.promptfoo(tmp_path / "out.json", ERRORED, as_lines=as_lines))
    assert by_order(rows) == [(1.0, "scored"), (0.0, "scored"), (1.0, "scored"), (None, "errored")]
    assert log.checks == ["score", "equals", "latency"]
    assert log.models == ["openai:acme-large"]


def test_the_same_test_of_promptfoo_again_is_another_trial(tmp_path, judge, value):
    attempts = [(1, 1, 1.0, "scored"), (2, 1, 1.0, "scored"), (1, 2, 0.0, "scored"), (2, 2, 1.0, "scored")]
    run = judge(f.promptfoo(tmp_path / "out.json", attempts))
    assert value(run, "pass_hat_2", "openai:acme-large") == 0.5
    assert not adjudge.verify(run).problems


def test_what_promptfoo_counts_as_passed_stands_beside_what_reaches_the_threshold(tmp_path, judge):
    run = judge(f.promptfoo(tmp_path / "out.json", ERRORED, lenient=True), pass_at=1.0)
    (row,) = next(section for section in run.metrics["sections"] if section["name"] == "printed")["rows"]
    assert row[3:6] == [0.75, 0.75, 0.5]
    assert "what the log calls passed" in row[6]


@pytest.mark.parametrize("wrapped", [False, True])
def test_deepeval(tmp_path, wrapped):
    rows, log = read(f.deepeval(tmp_path / "run.json", ERRORED, wrapped=wrapped))
    assert by_order(rows) == [(1.0, "scored"), (0.0, "scored"), (1.0, "scored"), (None, "errored")]
    assert log.checks == ["Correctness", "Tone"]
    assert log.conditions[""]["metric"]["Correctness"] == 0.5


def test_another_threshold_of_deepeval_is_not_comparable(tmp_path):
    first = f.deepeval(tmp_path / "a.json", PLAIN * 1, model="a")
    second = f.deepeval(tmp_path / "b.json", PLAIN, model="b", threshold=0.9)
    with pytest.raises(NotComparable, match=r"metric\.Correctness: 0\.5, 0\.9"):
        adjudge.compare(str(first), str(second))


def test_helm(tmp_path):
    attempts = [*PLAIN, (3, 1, None, "errored"), (4, 1, None, "missing")]
    rows, log = read(f.helm(tmp_path, attempts).parent)
    assert rows["id0", 1] == (1.0, "scored")
    assert rows["id3", 1] == (None, "errored")
    assert rows["id4", 1] == (None, "missing")
    assert log.tasks == ["capitals/test"]


def test_openai_evals(tmp_path):
    rows, log = read(f.openai_evals(tmp_path / "log.jsonl", ERRORED))
    assert by_order(rows) == [(1.0, "scored"), (0.0, "scored"), (1.0, "scored"), (None, "errored")]
    assert log.models == ["acme-large"]
    unfinished = header_of(str(f.openai_evals(tmp_path / "b.jsonl", ERRORED, finished=False)))
    assert any("not finished" in note for note in unfinished.notes)


def test_every_eval_ever(tmp_path):
    rows, log = read(f.every_eval_ever(tmp_path / "x_samples.jsonl", ERRORED))
    assert by_order(rows) == [(1.0, "scored"), (0.0, "scored"), (1.0, "scored"), (None, "errored")]
    assert log.printed[0].value == 0.5


def test_the_printed_numbers_of_every_tool_are_reproduced(tmp_path, judge):
    paths = [
        f.lm_eval(tmp_path / "lm", PLAIN),
        f.deepeval(tmp_path / "run.json", ERRORED),
        f.helm(tmp_path / "helm", PLAIN).parent,
        f.openai_evals(tmp_path / "log.jsonl", ERRORED),
        f.promptfoo(tmp_path / "out.json", ERRORED),
    ]
    for path in paths:
        section = next(section for section in judge(path).metrics["sections"] if section["name"] == "printed")
        again = [row for row in section["rows"] if row[4] is not None]
        assert again, path
        for row in again:
            assert row[4] == pytest.approx(row[3]), path


def test_a_folder_of_several_tools_is_read_whole_and_what_is_not_is_named(tmp_path):
    f.lm_eval(tmp_path, PLAIN)
    f.openai_evals(tmp_path / "log.jsonl", ERRORED)
    (tmp_path / "notes.json").write_text('{"anything": 1}', encoding="utf-8")
    logs = list_logs([str(tmp_path)])
    assert {log.format for log in logs.values()} == {"lm_eval", "openai_evals"}
    assert any("notes.json" in what for log in logs.values() for what in log.unread)


@pytest.mark.parametrize(
    "write,told",
    [
        (lambda folder: f.promptfoo(folder / "a.json", PLAIN, version=4), "promptfoo output of version 4"),
        (lambda folder: f.every_eval_ever(folder / "a_samples.jsonl", PLAIN, version="0.4.0"), "Every-Eval-Ever 0.4.0"),
        (
            lambda folder: f.document(folder / "results_1.json", {"results": {}, "configs": {}, "versions": {}}),
            "without their samples",
        ),
        (lambda folder: f.deepeval(folder / "a.json", []), "has no test cases"),
        (
            lambda folder: f.lines(folder / "a.jsonl", [{"spec": {}}, {"sample_id": "a", "type": "match", "data": {}}]),
            "a.jsonl:2",
        ),
        (
            lambda folder: f.openai_evals(folder / "a.jsonl", [(1, 1, None, "abstained")], finished=False),
            "no scores at all",
        ),
    ],
)
def test_logs_that_cannot_be_read_are_refused_in_words(tmp_path, judge, write, told):
    with pytest.raises(InputError, match=told):
        judge(write(tmp_path))


def test_a_scorer_that_no_log_has_is_named_with_those_it_has(tmp_path, judge):
    with pytest.raises(InputError, match=r"has no score 'nope' \(--scorer\); it has Correctness, Tone"):
        judge(f.deepeval(tmp_path / "a.json", PLAIN), scorer="nope")


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["logs_lm_eval", "logs_helm"])
def test_real_logs_are_read(shared_data, judge, name):
    run = judge(shared_data / name)
    section = next(section for section in run.metrics["sections"] if section["name"] == "printed")
    assert all(row[4] == pytest.approx(row[3], rel=1e-12) for row in section["rows"] if row[4] is not None)
    assert not adjudge.verify(run).problems


_CHOICES = {f"gen_args_{place}": {"arg_0": "Sky?", "arg_1": f" {word}"} for place, word in enumerate(("red", "blue"))}
_ASKED = [
    ({"gen_args_0": {"arg_0": "Sky?", "arg_1": {"until": ["\n"]}}}, "Sky?"),
    ([["Sky?", {"until": ["\n"]}]], "Sky?"),
    (_CHOICES, "Sky?\n[0] red\n[1] blue"),
    ([["Sky? red"], ["Sky? blue"]], "Sky? red\nSky? blue"),
    ({}, None),
    (None, None),
    ("text", None),
    ([{"arg_0": 5}, 7], None),
]


@pytest.mark.parametrize("arguments, asked", _ASKED)
def test_what_lm_eval_asked_is_shown(arguments, asked):
    assert lm_eval._input(arguments) == asked


def test_of_a_long_prompt_of_lm_eval_the_question_is_kept():
    shown = lm_eval._input([["example\n" * 1000 + "Sky?", " red"], ["example\n" * 1000 + "Sky?", " blue"]])
    assert len(shown) <= TEXT_LIMIT
    assert shown.startswith("…")
    assert shown.endswith("example\nSky?\n[0] red\n[1] blue")


def test_what_could_be_chosen_stands_below_the_question():
    assert inspect_input.with_choices("Sky?", ["red", "blue"]) == "Sky?\nA) red\nB) blue"
    assert inspect_input.with_choices("Sky?", None) == "Sky?"
    assert inspect_input.with_choices(None, ["red"]) is None
    mapped = {"instance": {"input": {"text": "Sky?"}}, "output_mapping": {"A": "red", "B": "blue"}}
    assert helm._asked(msgspec.convert(mapped, helm._Request)) == "Sky?\nA. red\nB. blue"
    assert helm._asked(None) is None
