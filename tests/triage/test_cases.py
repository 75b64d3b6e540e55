"""The cases that must come out right."""

from __future__ import annotations

import pytest


def test_37_caught_of_247_fakes_with_461_abstained(judge, cells, trial, why):
    run = judge(
        cells(
            (37, "fake", "fake", 0.8),
            (210, "fake", "uncertain", 0.6),
            (2, "real", "fake", 0.7),
            (251, "real", "uncertain", 0.6),
        )
    )
    block = trial(run)
    assert block["support"] == {"fake": 247, "real": 253}
    assert block["confusion"] == {"tp": 37, "tn": 0, "fp": 2, "fn": 0}
    assert (block["total"], block["answered"], block["correct"]) == (500, 39, 37)
    assert block["abstain_count"] == 461
    assert block["error_count"] == 0
    assert block["accuracy"] == 0.074
    assert block["accuracy_answered"] == 37 / 39
    assert block["coverage"] == 0.078
    assert block["recall_fake"] == 1.0
    assert block["fake_catch_rate"] == 37 / 247
    assert block["recall_real"] == 0.0
    assert block["precision_real"] is None
    assert "nothing was answered 'real'" in why(run, "precision_real")
    assert block["balanced_accuracy"] == 0.5
    assert block["balanced_accuracy_all"] == 37 / 247 / 2
    assert run.metrics["buckets"]["all"] == {
        "passed": 37, "failed": 2, "abstained": 461, "unparsed": 0, "errored": 0, "missing": 0, "n": 500
    }  # fmt: skip


def test_40_errored_records_of_one_class_raise_error_rate_and_lower_the_coverage_of_that_class(judge, cells, trial):
    whole = cells((100, "fake", "fake", 0.8), (100, "real", "real", 0.8))
    broken = [
        {**item, "prediction": None, "error": "timeout", "error_type": "TimeoutError"} if index < 40 else item
        for index, item in enumerate(whole)
    ]
    before, after = trial(judge(whole)), trial(judge(broken))
    assert (before["error_rate"], after["error_rate"]) == (0.0, 0.2)
    assert (before["coverage_fake"], after["coverage_fake"]) == (1.0, 0.6)
    assert (before["coverage_real"], after["coverage_real"]) == (1.0, 1.0)
    assert after["error_count"] == 40
    assert after["accuracy"] == 160 / 200
    assert after["accuracy_answered"] == 1.0
    assert after["fake_catch_rate"] == 0.6


def test_two_results_runs_of_one_model_are_two_blocks(judge, record, trial, tmp_path, write_lines):
    first = write_lines(tmp_path / "first.jsonl", [record(0, "fake", "fake"), record(1, "real", "real")])
    second = write_lines(tmp_path / "second.jsonl", [record(0, "fake", "real"), record(1, "real", "real")])
    run = judge(results=[[first], [second]])
    assert list(run.metrics["configurations"]) == ["m|no-tools", "second|m|no-tools"]
    assert trial(run)["accuracy"] == 1.0
    assert trial(run, "second|m|no-tools")["accuracy"] == 0.5


def test_runs_from_files_of_one_name_are_told_apart(judge, record, tmp_path, write_lines):
    (tmp_path / "b").mkdir()
    (tmp_path / "c").mkdir()
    files = [
        write_lines(tmp_path / folder / "results.jsonl", [record(0, "fake", "fake"), record(1, "real", "real")])
        for folder in (".", "b", "c")
    ]
    run = judge(results=[[file] for file in files])
    assert list(run.metrics["configurations"]) == ["m|no-tools", "results-2|m|no-tools", "results|m|no-tools"]


def test_equal_confidences_have_one_aurc_whatever_the_row_order(judge, cells, trial):
    rows = cells((30, "fake", "fake", 0.7), (10, "real", "fake", 0.7))
    orders = [rows, rows[::-1], rows[7:] + rows[:7], rows[::2] + rows[1::2]]
    values = {trial(judge(order))["aurc"] for order in orders}
    assert len(values) == 1
    assert values.pop() == pytest.approx(0.25, abs=1e-15)


@pytest.mark.parametrize(
    "rows, names",
    [
        (
            [(3, "fake", "uncertain", 0.5), (3, "real", "uncertain", 0.5)],
            [
                "accuracy_answered",
                "precision_fake",
                "recall_fake",
                "f1_fake",
                "balanced_accuracy",
                "mcc",
                "ece",
                "brier",
                "aurc",
            ],
        ),
        ([(3, "fake", "fake", 0.5)], ["real_pass_rate", "real_false_flag_rate", "coverage_real", "recall_real", "mcc"]),
        (
            [(3, "fake", "fake", None), (3, "real", "real", None)],
            ["ece", "brier", "log_loss", "aurc", "auroc_confidence"],
        ),
    ],
)
def test_nothing_over_nothing_is_null_with_a_reason(judge, cells, trial, why, rows, names):
    run = judge(cells(*rows))
    for name in names:
        assert trial(run)[name] is None, name
        assert why(run, name), name


def test_one_trial_has_no_standard_deviation(judge, cells):
    run = judge(cells((2, "fake", "fake", 0.5), (2, "real", "real", 0.5)))
    summary = run.metrics["configurations"]["m|no-tools"]["summary"]
    assert summary["mean"]["accuracy"] == 1.0
    assert summary["std"]["accuracy"] is None


def test_missing_confidence_is_counted_and_not_used_for_calibration(judge, cells, trial):
    with_gap = trial(judge(cells((4, "fake", "fake", 0.6), (4, "real", "fake", None), (2, "real", "real", 0.6))))
    without = trial(judge(cells((4, "fake", "fake", 0.6), (2, "real", "real", 0.6))))
    assert with_gap["confidence_count"] == {"given": 6, "not_given": 4, "out_of_range": 0, "unreadable": 0}
    assert with_gap["brier"] == without["brier"]
    assert with_gap["answered"] == 10


def test_an_abstention_is_a_warning_and_an_error_says_what_it_was(judge, record):
    run = judge([record(0, "fake", "uncertain"), record(1, "fake", None, error="the server is gone")])
    abstained, errored = ({atom.rule: atom for atom in run.atoms(run.find(sample)[0])} for sample in ("s0000", "s0001"))
    assert (abstained["triage.answered"].outcome, abstained["triage.answered"].severity) == ("fail", "WARNING")
    assert (errored["triage.error"].outcome, errored["triage.error"].severity) == ("fail", "CRITICAL")
    assert "the server is gone" in errored["triage.error"].message


def test_a_slip_and_a_false_flag_have_codes_of_their_own(judge, record):
    run = judge([record(0, "fake", "real"), record(1, "real", "fake"), record(2, "real", "real")])
    codes = [
        next(atom.rule for atom in run.atoms(run.find(f"s000{number}")[0]) if atom.position == 4) for number in range(3)
    ]
    assert codes == ["triage.slip", "triage.false_flag", "triage.correct"]
