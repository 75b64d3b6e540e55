"""`adjudge gate`, `report` and `explain` through the command line: exit codes, baseline, JUnit, SARIF."""

import io
import json
import re
import signal
import sys
from xml.etree import ElementTree as ET

import msgspec
import pytest

import adjudge
from adjudge.cli.main import run
from adjudge.comparisons import baseline as base
from adjudge.comparisons.baseline import difference_of
from adjudge.report.junit import Case, junit
from adjudge.stats.estimate import Estimate


def command(*words, **environment):
    """The console script in this process: exit code, standard output, standard error."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["adjudge", *map(str, words)])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setattr(signal, "signal", lambda *_: None)
        patch.setenv("GITHUB_STEP_SUMMARY", environment.get("GITHUB_STEP_SUMMARY", ""))
        with pytest.raises(SystemExit) as stopped:
            run()
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return stopped.value.code, *texts


@pytest.fixture(scope="module")
def written(flight_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("baseline") / "baseline.json"
    code, _, said = command("gate", flight_run.path, "--write-baseline", path)
    assert code == 0, said
    return path


def changed(path, target, **changes):
    """A baseline whose entries of one estimate are other ones."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    for entry in stored["estimates"]:
        if entry["name"] == "total_score":
            entry.update(changes)
    target.write_text(json.dumps(stored), encoding="utf-8")
    return target


def test_a_run_of_one_model_takes_names_alone_as_its_evaluation_does(flight_data, tmp_path):
    paths, name, _ = flight_data
    inputs = {
        "task": "S1",
        "outputs": [str(paths.outputs[name])],
        "reference": [str(paths.reference)],
        "resamples": 200,
    }
    judged = adjudge.evaluate("flight", inputs, out=tmp_path / "run", gates=["eligibility_rate >= 0.01"])
    assert {where for _, where in judged.estimates} == {"", f"model={name}"}  # counts are of the whole run
    assert judged.metrics["gates"]["eligibility_rate >= 0.01"]["outcome"] == "pass"
    code, _, said = command("gate", judged.path, "--gate", "eligibility_rate >= 0.01", "--gate", "matched >= 0.5")
    assert (code, said.splitlines()[-1]) == (0, "3 of 3 checks hold")


@pytest.mark.parametrize(
    "metric, ending",
    [
        ("eligibility_rate", "did you mean '{model}/eligibility_rate' or "),  # of one of five models
        ("{model}/eligibilty_rate", "did you mean '{model}/eligibility_rate'"),
        ("zzz", "there are data_eligibility_rate, matched, only_in_outputs, only_in_reference …"),
    ],
)
def test_a_gate_on_a_name_that_is_nowhere_says_which_names_there_are(flight_run, metric, ending):
    model = next(iter(flight_run.estimates))[1].partition("=")[2]
    code, _, said = command("gate", flight_run.path, "--gate", f"{metric} >= 0.1".replace("{model}", model))
    assert code == 1
    assert f"; {ending}".replace("{model}", model) in said


def test_a_gate_that_holds_is_0(flight_run, flight_data):
    code, _, said = command("gate", flight_run.path, "--gate", f"{flight_data[1]}/eligibility_rate >= 0.1")
    assert code == 0, said
    assert "2 of 2 checks hold" in said


def test_a_gate_that_fails_or_is_unknown_is_1(flight_run, flight_data, tmp_path):
    gates = tmp_path / "gates.yaml"
    gates.write_text(f"gates:\n  - {flight_data[1]}/eligibility_rate.low >= 0.999\n", encoding="utf-8")
    code, _, said = command("gate", flight_run.path, "--gates", gates)
    assert code == 1
    assert "FAIL     gates:" in said
    code, _, said = command("gate", flight_run.path, "--gate", "nobody/eligibility_rate >= 0")
    assert code == 1
    assert "UNKNOWN" in said


def test_the_gates_of_the_run_are_the_default(flight_run):
    code, _, said = command("gate", flight_run.path)
    assert code == 1
    assert said.count("gates: ") == 3


def test_the_gates_of_the_protocol_are_the_default(tmp_path):
    good = adjudge.evaluate("consistency", pairs(tmp_path, agree=40), out=tmp_path / "good", report=False)
    code, _, said = command("gate", good.path)
    assert code == 0, said
    assert [line.split(":")[1].strip() for line in said.splitlines() if " gates: " in line] == list(
        good.metrics["gates"]
    )
    bad = adjudge.evaluate("consistency", pairs(tmp_path, agree=20), out=tmp_path / "bad", report=False)
    code, _, said = command("gate", bad.path, "--junit", tmp_path / "j.xml")
    assert code == 1
    assert "FAIL     gates: pa: observed 50 %" in said
    root = ET.parse(tmp_path / "j.xml").getroot()  # noqa: S314 -- our own file
    assert len(root.findall("testsuite/testcase/failure")) == said.count("FAIL ")


def test_a_run_without_gates_is_0_and_says_that_nothing_is_held(flight_run, config, tmp_path):
    run = adjudge.evaluate("flight", {**config, "outputs": config["outputs"][:1]}, out=tmp_path / "run", report=False)
    code, _, said = command("gate", run.path)
    assert code == 0
    assert said.startswith("no gates: flight has none of its own")


def test_a_changed_data_set_is_3(tmp_path):
    before = adjudge.evaluate("consistency", pairs(tmp_path, agree=40), out=tmp_path / "before", report=False)
    after = adjudge.evaluate(
        "consistency", pairs(tmp_path, agree=40, prefix="other"), out=tmp_path / "after", report=False
    )
    command("gate", before.path, "--write-baseline", tmp_path / "b.json")
    assert command("gate", before.path, "--baseline", tmp_path / "b.json")[0] == 0
    code, _, said = command("gate", after.path, "--baseline", tmp_path / "b.json")
    assert code == 3
    assert "not comparable: the data set is another one" in said


def pairs(folder, agree, prefix="q"):
    """Forty pairs of labels, of which so many agree."""
    path = folder / f"pairs_{agree}.jsonl"
    labels = [("VALID", "VALID") if n % 2 else ("REJECT", "REJECT") for n in range(agree)]
    labels += [("VALID", "REJECT")] * (40 - agree)
    rows = [
        {
            "qid": f"{prefix}{n}",
            "scholar": {"label": scholar, "reason": "r"},
            "auditor": {"label": auditor, "reason": "r"},
            "flags": {"provenance_violation": False},
        }
        for n, (scholar, auditor) in enumerate(labels)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {"pairs": [str(path)]}


@pytest.mark.parametrize(
    "words, expected",
    [
        (("--gate", "nonsense"), "is not of the form"),
        (("--gates", "/nowhere.yaml"), "cannot be read"),
        (("--baseline", "/nowhere.json"), "cannot be read"),
    ],
)
def test_bad_input_is_2(flight_run, words, expected):
    code, _, said = command("gate", flight_run.path, *words)
    assert code == 2
    assert expected in said


def test_a_file_of_gates_that_is_no_list_is_2(flight_run, tmp_path):
    (tmp_path / "g.yaml").write_text("gates: {a: 1}", encoding="utf-8")
    code, _, said = command("gate", flight_run.path, "--gates", tmp_path / "g.yaml")
    assert code == 2
    assert "expected a list of gates" in said


def test_the_same_run_holds_against_its_baseline(flight_run, written):
    code, _, said = command("gate", flight_run.path, "--baseline", written)
    assert code == 0, said
    stored = json.loads(written.read_text(encoding="utf-8"))
    directions = {entry["name"]: entry["better"] for entry in stored["estimates"]}
    assert directions["mae_p95"] == "lower"
    assert directions["error_score"] == directions["eligibility_rate"] == "higher"


def test_worse_within_the_noise_passes_beyond_it_fails_and_says_what(flight_run, written, tmp_path):
    now = flight_run.estimates
    model = next(name for name in flight_run.metrics["buckets"] if name != "all")
    value = now["total_score", f"model={model}"].value
    near = changed(written, tmp_path / "near.json", value=value + 0.2, low=value - 5, high=min(100, value + 5))
    far = changed(written, tmp_path / "far.json", value=value + 300, low=value + 299, high=value + 301)
    assert command("gate", flight_run.path, "--baseline", near)[0] == 0
    code, _, said = command("gate", flight_run.path, "--baseline", far)
    assert code == 1
    line = next(line for line in said.splitlines() if f"{model}/total_score" in line)
    assert line.startswith("FAIL")
    assert "worse beyond noise and margin" in line
    assert re.search(r"difference -300\S* \[-3\d\d\S*, -2\d\d\S*\]", line)
    assert "margin 0" in line
    assert command("gate", flight_run.path, "--baseline", far, "--margin", "total_score=400")[0] == 0


def test_other_data_is_3_and_junit_says_error(flight_run, written, tmp_path):
    stored = json.loads(written.read_text(encoding="utf-8"))
    stored["digests"]["dataset"] = "0" * 64
    (tmp_path / "other.json").write_text(json.dumps(stored), encoding="utf-8")
    code, _, said = command(
        "gate", flight_run.path, "--baseline", tmp_path / "other.json", "--junit", tmp_path / "j.xml"
    )
    assert code == 3
    assert "not comparable: the data set is another one" in said
    root = ET.parse(tmp_path / "j.xml").getroot()  # noqa: S314 -- our own file
    assert len(root.findall("testsuite/testcase/error")) == 1


def test_another_configuration_is_not_comparable_with_every_reason(flight_run, config, written, tmp_path):
    other = adjudge.evaluate(
        "flight", {**config, "outputs": config["outputs"][:1], "top_k": 3}, out=tmp_path / "other", report=False
    )
    with pytest.raises(adjudge.NotComparable) as caught:
        base.hold(other, base.read(written))
    assert any("configuration" in reason for reason in caught.value.reasons)
    (models,) = (reason for reason in caught.value.reasons if reason.startswith("the baseline is of "))
    (judged,) = other.metrics["buckets"].keys() - {"all"}
    assert models.endswith(f", the run of {judged}")


@pytest.mark.parametrize(
    "now, before, better, margin, outcome",
    [
        ((0.90, 0.88, 0.92), (0.95, 0.93, 0.97), "higher", 0.0, "fail"),  # d −0.05 [−0.078, −0.022]
        ((0.90, 0.88, 0.92), (0.95, 0.93, 0.97), "higher", 0.03, "pass"),
        ((0.90, 0.88, 0.92), (0.92, 0.90, 0.94), "higher", 0.0, "pass"),
        ((0.95, 0.93, 0.97), (0.90, 0.88, 0.92), "higher", 0.0, "pass"),
        ((0.95, 0.93, 0.97), (0.90, 0.88, 0.92), "lower", 0.0, "fail"),
        ((0.90, None, None), (0.95, None, None), "higher", 0.0, "fail"),
        ((0.90, None, None), (0.95, None, None), "higher", 0.06, "pass"),
        ((None, None, None), (0.95, 0.93, 0.97), "higher", 0.0, "unknown"),
    ],
)
def test_the_rule(now, before, better, margin, outcome):
    value, low, high = now
    found = Estimate(value=value, low=low, high=high, why="nothing" if value is None else None)
    entry = base.Entry(name="x", slice="", value=before[0], low=before[1], high=before[2], better=better)
    assert base._held(entry, found, margin).outcome == outcome


def test_difference_of_two_intervals_by_hand():
    gap = difference_of(Estimate(value=5.0, low=2.0, high=9.0), Estimate(value=1.0, low=0.0, high=5.0))
    assert (gap.value, gap.low) == (4.0, 4.0 - 5.0)  # √(3² + 4²) = 5
    assert gap.high == pytest.approx(4.0 + 17**0.5)  # √(4² + 1²)


def test_junit_of_a_run(flight_run, tmp_path):
    command("gate", flight_run.path, "--junit", tmp_path / "j.xml")
    root = ET.parse(tmp_path / "j.xml").getroot()  # noqa: S314 -- our own file
    assert root.tag == "testsuites"
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == {"gates", "instrument"}
    gates = suites["gates"]
    assert (gates.get("tests"), gates.get("failures"), gates.get("errors")) == ("3", "1", "1")
    cases = gates.findall("testcase")
    assert [[found.tag for found in case] for case in cases] == [[], ["failure"], ["error"]]


def test_junit_can_carry_any_text():
    text = junit([Case("a", 'x<"&\x1b\x00', "failure", "m\ud800]]>", "")], timestamp="2026-05-01T12:00:00")
    root = ET.fromstring(text)  # noqa: S314 -- our own text
    case = root.find("testsuite/testcase")
    assert case.get("name") == 'x<"&\ufffd\ufffd'
    assert case.find("failure").text == "m\ufffd]]>"


def test_sarif_names_file_line_and_rule(flight_run, flight_data, tmp_path):
    command("gate", flight_run.path, "--sarif", tmp_path / "s.sarif")
    log = json.loads((tmp_path / "s.sarif").read_text(encoding="utf-8"))
    assert log["version"] == "2.1.0"
    logged = log["runs"][0]
    rules = logged["tool"]["driver"]["rules"]
    failed = sum(
        count for p in flight_run.metrics["model_profiles"] for count in p["failure_modes"]["by_rule"].values()
    )
    assert len(logged["results"]) == failed
    located = 0
    for result in logged["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"error", "warning"}
        where = result["locations"][0]
        if "physicalLocation" not in where:
            assert result["ruleId"] == "protocol.missing_output"
            continue
        uri = where["physicalLocation"]["artifactLocation"]["uri"]
        with open(uri.removeprefix("file://"), encoding="utf-8") as stream:  # noqa: PTH123 -- a URI
            line = stream.read().splitlines()[where["physicalLocation"]["region"]["startLine"] - 1]
        record = msgspec.json.decode(line)
        assert (record["id"], record["model"]) == (result["properties"]["sample"], result["properties"]["model"])
        located += 1
        if located > 200:
            break
    assert located > 100


def test_a_job_summary_is_appended(flight_run, tmp_path):
    (tmp_path / "summary.md").write_text("before\n", encoding="utf-8")
    command("gate", flight_run.path, GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert text.startswith("before\n### adjudge: flight S1")


def test_report_writes_what_the_ending_says_and_never_over_a_file(flight_run, tmp_path):
    target = tmp_path / "x.md"
    assert command("report", flight_run.path, "-o", target)[0] == 0
    assert target.read_text(encoding="utf-8").startswith("### adjudge")
    code, _, said = command("report", flight_run.path, "-o", target)
    assert code == 2
    assert "--force" in said
    code, _, said = command("report", flight_run.path, "-o", tmp_path / "x.docx")
    assert code == 2
    assert "names no format" in said
    code, out, _ = command("report", flight_run.path, "--format", "csv")
    assert code == 0
    assert out.startswith("name,slice,value")


def test_explain_from_the_command_line(flight_run):
    row = flight_run.samples.slice(0, 1).to_pylist()[0]
    code, out, _ = command("explain", flight_run.path, row["sample"], "--model", row["model"])
    assert code == 0
    assert "Verdict: " in out
    code, _, said = command("explain", flight_run.path, "nobody")
    assert code == 2
    assert "has no sample" in said
