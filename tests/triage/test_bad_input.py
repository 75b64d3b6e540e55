"""Bad input is named with file and line, and nothing is left of a run that was refused."""

from __future__ import annotations

import pytest

import adjudge
from adjudge.errors import ConfigError, InputError, ProtocolViolation


@pytest.fixture
def refused(tmp_path, write_lines):
    """What is said to records that are refused; they stand in results.jsonl after two good ones."""

    def message(rows, **config):
        path = write_lines(tmp_path / "results.jsonl", rows)
        with pytest.raises(InputError) as caught:
            adjudge.evaluate("triage", {"results": [path], **config}, out=tmp_path / "run", report=False)
        assert not (tmp_path / "run").exists()
        return str(caught.value).removeprefix(f"{tmp_path}/")

    return message


@pytest.fixture
def good(record):
    return [record(0, "fake", "fake"), record(1, "real", "real")]


@pytest.mark.parametrize("value", [1.2, -0.1, "1.2"])
def test_confidence_out_of_range_is_a_range_error(refused, good, record, value):
    assert refused([*good, record(2, "fake", "fake", value)]).startswith(
        f"results.jsonl:3: confidence {float(value)} is not between 0 and 1."
    )


def test_confidence_as_percentage_is_parsed_only_with_percent(refused, good, record, judge, trial):
    rows = [*good, record(2, "fake", "fake", "87%")]
    said = refused(rows)
    assert said.startswith(
        "results.jsonl:3: confidence '87%' is no number between 0 and 1. --percent reads percentages."
    )
    block = trial(judge(rows, percent=True))
    assert block["avg_confidence"] == pytest.approx((0.8 + 0.8 + 0.87) / 3)


@pytest.mark.parametrize(
    "value, state", [(1.2, "out_of_range"), ("87%", "unreadable"), (True, "unreadable"), ("high", "unreadable")]
)
def test_bad_confidences_can_be_counted_instead(judge, good, record, trial, value, state):
    run = judge([*good, record(2, "fake", "fake", value)], bad_confidence="count")
    block = trial(run)
    assert block["confidence_count"][state] == 1
    assert block["avg_confidence"] == 0.8
    assert block["answered"] == 3
    assert any("confidences not used" in note for note in run.metrics["notes"])
    atoms = {atom.rule: atom for atom in run.atoms(run.find("s0002")[0])}
    outcome = atoms["triage.confidence_range"].outcome
    assert outcome == ("fail" if state == "out_of_range" else "not_applicable")


def test_unknown_verdict_word_is_unparsed_and_no_guess(judge, good, record, trial):
    run = judge([*good, record(2, "fake", "probably fake"), record(3, "real", None)])
    block = trial(run)
    assert block["unparsed_count"] == 2
    assert block["unparsed_rate"] == 0.5
    assert block["answered"] == 2
    said = run.record("s0002")
    assert (said["bucket"], said["verdict"]) == ("unparsed", "unparsed")
    assert said["said"]["line"] == 3
    assert [atom["message"] for atom in said["evidence"] if atom["id"] in said["cites"]] == [
        "the verdict is no declared word: 'probably fake'"
    ]


def test_a_word_can_be_declared(judge, good, record, trial):
    rows = [*good, record(2, "fake", " Probably  FAKE ")]
    assert trial(judge(rows, words={"probably fake": "fake"}))["confusion"]["tp"] == 2


@pytest.mark.parametrize("word", ["AI-generated", "synthetic", "Manipulated", "tampered", "deepfake"])
def test_declared_words_of_fake(judge, good, record, trial, word):
    assert trial(judge([*good, record(2, "fake", word)]))["confusion"]["tp"] == 2


@pytest.mark.parametrize("word", ["authentic", "natural", " Genuine"])
def test_declared_words_of_real(judge, good, record, trial, word):
    assert trial(judge([*good, record(2, "real", word)]))["confusion"]["tn"] == 2


def test_label_missing_in_the_results_is_that_of_the_manifest(judge, good, record, trial, tmp_path, write_lines):
    manifest = write_lines(
        tmp_path / "m.jsonl", [{"id": f"s{n:04d}", "label": "fake" if n != 1 else "real"} for n in range(3)]
    )
    rows = [*good, {key: value for key, value in record(2, "", "fake").items() if key != "label"}]
    assert trial(judge(rows, manifest=[manifest]))["confusion"]["tp"] == 2


def test_label_missing_everywhere(refused, good, record, tmp_path, write_lines):
    rows = [*good, record(2, None, "fake")]
    assert refused(rows).startswith("results.jsonl:3: id 's0002' has no `label`, and there is no manifest that has it")
    manifest = write_lines(tmp_path / "m.jsonl", [{"id": f"s{n:04d}"} for n in range(3)])
    said = refused(rows, manifest=[manifest])
    assert said.startswith("results.jsonl:3: id 's0002' has no `label`, and none in the manifest (")
    assert said.endswith("m.jsonl:3)")


def test_label_against_the_manifest(refused, good, tmp_path, write_lines):
    manifest = write_lines(tmp_path / "m.jsonl", [{"id": "s0000", "label": "fake"}, {"id": "s0001", "label": "fake"}])
    said = refused(good, manifest=[manifest])
    assert said.startswith("results.jsonl:2: id 's0001' has label 'real', but 'fake' in the manifest (")


def test_label_outside_the_label_space(refused, good, record):
    said = refused([*good, record(2, "Fake ", "fake")])
    assert said == (
        "results.jsonl:3: label 'Fake ' is not one of fake, real. Did you mean 'fake'? (--strip-labels accepts it)"
    )
    assert "Did you mean" not in refused([*good, record(2, "cat", "fake")])


def test_labels_can_be_stripped(judge, good, record, trial):
    assert trial(judge([*good, record(2, "Fake ", "fake")], strip_labels=True))["support"]["fake"] == 2


def test_one_sample_with_two_labels(refused, good, record):
    said = refused([*good, record(1, "fake", "real", trial=1)])
    assert said.startswith("results.jsonl:3: id 's0001' has label 'fake', but 'real' at ")
    assert said.endswith("results.jsonl:2")


def test_the_same_id_twice_in_a_trial(refused, good, record):
    said = refused([*good, record(1, "real", "fake")])
    assert said.startswith("results.jsonl:3: id 's0001' of m|no-tools, trial 0, stands here a second time; first at ")
    assert "results.jsonl:2. Each sample is answered once a trial." in said


def test_the_same_id_in_another_trial_mode_or_model_is_no_repetition(judge, good, record):
    more = [
        record(0, "fake", "fake", trial=1),
        record(0, "fake", "fake", use_tools=True),
        record(0, "fake", "fake", model="n"),
    ]
    assert judge([*good, *more]).metrics["buckets"]["all"]["n"] == 5


def test_a_result_id_that_the_manifest_lacks(refused, good, record, tmp_path, write_lines, judge, trial):
    manifest = write_lines(tmp_path / "m.jsonl", [{"id": f"s{n:04d}", "label": ("fake", "real")[n]} for n in range(2)])
    rows = [*good, record(7, "fake", "fake")]
    assert refused(rows, manifest=[manifest]).startswith("results.jsonl:3: id 's0007' is not in the manifest.")
    assert trial(judge(rows, manifest=[manifest], unmatched="ignore"))["total"] == 2


def test_a_manifest_id_twice(refused, good, tmp_path, write_lines):
    rows = [{"id": "s0000", "label": "fake"}, {"id": "s0001", "label": "real"}, {"id": "s0000", "label": "fake"}]
    write_lines(tmp_path / "m.jsonl", rows)
    with pytest.raises(
        InputError, match=r"m\.jsonl:3: id 's0000' stands in the manifest a second time; first at .*m\.jsonl:1"
    ):
        adjudge.evaluate(
            "triage",
            {"results": [write_lines(tmp_path / "results.jsonl", good)], "manifest": str(tmp_path / "m.jsonl")},
            out=tmp_path / "run",
            report=False,
        )


def test_one_class_absent_is_said_and_its_rates_are_null(judge, record, trial):
    run = judge([record(n, "fake", "fake") for n in range(5)])
    assert "no record is labelled 'real': every rate over that class is null" in run.metrics["notes"]
    assert trial(run)["real_pass_rate"] is None
    assert trial(run)["fake_catch_rate"] == 1.0


@pytest.mark.parametrize(
    "line, said",
    [
        ("{", "results.jsonl:3: is not JSON"),
        ("[1]", "results.jsonl:3: the record is a list, expected an object"),
        ('{"model": "m"}', "results.jsonl:3: the record has no `id`"),
        (
            '{"id": "x", "trial": -1, "label": "fake"}',
            "results.jsonl:3: `trial` is -1, expected a whole number from 0 on",
        ),
        (
            '{"id": "x", "use_tools": "maybe", "label": "fake"}',
            "results.jsonl:3: `use_tools` is 'maybe', expected true or false",
        ),
        ('{"id": "x", "label": "fake", "timings": 3}', "results.jsonl:3: `timings` is a number, expected an object"),
        ('{"id": "x", "label": 1, "prediction": "fake"}', "results.jsonl:3: `label` is a number, expected text"),
        (
            '{"id": "x", "label": "fake", "latency_seconds": "long"}',
            "results.jsonl:3: `latency_seconds` is 'long', expected a number",
        ),
    ],
)
def test_lines_that_are_no_results(refused, good, line, said):
    assert refused([*good, line]).startswith(said)


@pytest.mark.parametrize(
    "config, said",
    [
        ({"results": []}, "no results"),
        ({"mode": "some"}, "mode is 'some'"),
        ({"target_risk": 0.1}, "needs a calibration file"),
        ({"calibration": ["r.jsonl"], "target_risk": 0.1}, "both calibration and results"),
        ({"calibration": ["c.jsonl"], "target_risk": 2.0}, "expected a share between 0 and 1"),
        ({"prevalence": 1.0}, "expected a share between 0 and 1"),
        ({"positive": "real"}, "must be two names"),
        ({"words": {"x": "cat"}}, "means 'cat'"),
        ({"colour": 1}, "colour"),
        ({"bins": 0}, "bins is 0"),
        ({"slices": ["meta."]}, "a slice names a key"),
        ({"costs": {"slip": 1.0, "flag": -1.0, "review": 1.0}, "calibration": ["c.jsonl"]}, "costs are not negative"),
    ],
)
def test_wrong_configuration(config, said):
    from adjudge.protocols.base import protocol

    with pytest.raises(ConfigError, match=said):
        protocol("triage").plan({"results": ["r.jsonl"], **config})


def test_calibration_and_test_share_no_sample(good, tmp_path, write_lines):
    results = write_lines(tmp_path / "results.jsonl", good)
    calibration = write_lines(tmp_path / "calibration.jsonl", good[1:])
    with pytest.raises(
        ProtocolViolation, match=r"results\.jsonl:2: id 's0001' also stands in the calibration, at .*:1"
    ):
        adjudge.evaluate(
            "triage",
            {"results": [results], "calibration": [calibration], "target_risk": 0.2},
            out=tmp_path / "run",
            report=False,
        )
