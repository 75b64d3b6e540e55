"""Files as users have them: where a shown state stands, whose fault a fault is, which task a row is of, what a failed call is."""

import json
import re

import pytest
from click.testing import CliRunner

import adjudge
from adjudge.cli.main import main
from adjudge.errors import ConfigError, InputError
from adjudge.protocols.flight.config import DEFAULT, check, load
from adjudge.protocols.flight.fields import FIELDS, GROUND_SPEED, ROLL
from adjudge.protocols.flight.references import state_in_question
from adjudge.readers.extract import failed_call

STATE = dict(
    zip(
        FIELDS,
        [47.5, 8.5, 3500.0, 90.0, 88.0, 51.4, 0.0, 0.0, 99.9, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 95.0, 3450.0, 3500.0],
        strict=True,
    )
)
FAR = {**STATE, ROLL: 45.0}  # a jump of 45° from STATE, which is critical
ARRAYS = {name: [value] * 3 for name, value in STATE.items()}


@pytest.fixture
def judge(tmp_path, write_lines):
    """Evaluate output and reference records through the whole engine."""
    runs = iter(range(100))

    def run(outputs, reference=(), **config):
        folder = tmp_path / str(next(runs))
        folder.mkdir()
        settings = {"task": "S1", "outputs": [write_lines(folder / "outputs.jsonl", outputs)], **config}
        if reference:
            settings["reference"] = [write_lines(folder / "reference.jsonl", reference)]
        return adjudge.evaluate("flight", settings, report=False, out=folder / "run")

    return run


def atoms(run, family, sample="a"):
    return [atom for atom in run.record(sample)["evidence_pack"]["atoms"] if atom["type"] == family]


QUESTION = f"上一秒数据：{json.dumps(STATE, ensure_ascii=False)}\n请预测下一秒。"
SEVERAL = "\n".join(json.dumps({**STATE, ROLL: roll}) for roll in (-20.0, -10.0, 0.0)) + '\nAnswer {"like": "this"}.'


@pytest.mark.parametrize(
    "keys, task, source",
    [
        ({"current_state": STATE}, "S1", "output"),
        ({"current": STATE}, "S1", "output"),
        ({"context": {"current_state": STATE}}, "S1", "output"),
        ({"question": QUESTION}, "S1", "question"),
        ({"question": SEVERAL}, "M1", "question"),
        ({"question": SEVERAL}, "M3", "question"),
    ],
)
def test_the_shown_state_is_read_wherever_it_stands(judge, keys, task, source):
    answer = {name: [value] * 3 for name, value in FAR.items()} if task == "M3" else FAR
    run = judge([{"id": "a", "model": "m", "response": json.dumps(answer), **keys}], task=task)
    record = run.record("a")
    assert record["context"]["shown_from"] == source
    first = next(atom for atom in atoms(run, "jump_dynamics") if atom["field"] == ROLL and atom["step"] == 0)
    assert (first["pass"], first["severity"], first["meta"]["observed"]) == (False, "CRITICAL", 45.0)
    assert first["meta"]["compared_with"].endswith({"output": "line", "question": "question"}[source])
    assert record["bucket"] == "failed"
    assert any("taken from the question" in note for note in run.manifest.notes) == (source == "question")
    adjudge.verify(run)


def test_the_reference_says_what_was_shown_under_the_same_keys(judge):
    for keys in ({"current": STATE}, {"context": {"current_state": STATE}}, {"question": QUESTION}):
        run = judge(
            [{"id": "a", "model": "m", "response": json.dumps(FAR)}], [{"id": "a", "next_second": STATE, **keys}]
        )
        assert run.record("a")["bucket"] == "failed"


def test_without_a_shown_state_the_verifier_is_a_warning_and_local_dynamics_have_no_grade(judge):
    run = judge([{"id": "a", "model": "m", "response": json.dumps(FAR)}], [{"id": "a", "next_second": STATE}])
    assert {atom["pass"] for atom in atoms(run, "jump_dynamics")} == {None}
    assert any(note.startswith("verifier jump_dynamics was nowhere applicable") for note in run.manifest.notes)
    assert run.record("a")["rubric"]["field_validity_local_dynamics"] is None
    estimate = run.estimates["skill_vs_persistence", "model=m"]
    assert (estimate.value, estimate.why) == (None, "no eligible sample has both a reference and a shown state")
    (profile,) = run.metrics["model_profiles"]
    assert profile["error_distribution"]["by_field"][ROLL]["persistence_mae"] is None


def test_skill_of_repeating_the_shown_state_is_0_where_only_some_rows_have_one(judge):
    rows = [{"id": f"s{k}", "model": "m", "response": json.dumps(STATE)} for k in range(4)]
    gold = {**STATE, ROLL: 5.0}
    reference = [{"id": f"s{k}", "next_second": gold, **({"current_state": STATE} if k % 2 else {})} for k in range(4)]
    assert judge(rows, reference).estimates["skill_vs_persistence", "model=m"].value == 0.0
    partly = {name: value for name, value in STATE.items() if name != GROUND_SPEED}
    reference = [{"id": f"s{k}", "next_second": gold, "current_state": partly} for k in range(4)]
    assert judge(rows, reference).estimates["skill_vs_persistence", "model=m"].value == 0.0


@pytest.mark.parametrize(
    "gold, what",
    [
        ({**STATE, ROLL: "inf"}, "no finite number for `Roll (deg)`"),
        ({name: value for name, value in STATE.items() if name != ROLL}, "no finite number for `Roll (deg)`"),
        ({}, "no finite number for `Latitude (WGS84 deg)` and 18 more"),
        ([STATE], "no finite number for `Latitude (WGS84 deg)` and 18 more"),
    ],
)
def test_a_fault_of_the_gold_is_the_references(judge, gold, what):
    outputs = [{"id": name, "model": "m", "response": json.dumps(STATE)} for name in "ab"]
    reference = [
        {"id": "a", "next_second": gold, "current_state": STATE},
        {"id": "b", "next_second": STATE, "current_state": STATE},
    ]
    run = judge(outputs, reference)
    record = run.record("a")
    assert record["bucket"] == "passed"
    assert record["optional_scores"]["conditional_error_score"] is None
    assert f"reference.jsonl:1: its gold has {what}" in record["optional_scores"]["reason"]
    assert record["rubric"]["predictive_quality_reliability"] is None
    assert any(
        f"of these, 1 have a reference that cannot be used: reference.jsonl:1: its gold has {what}" in note
        for note in run.manifest.notes
    )
    assert run.metrics["unmatched_ids"] == {}


def test_a_step_that_the_gold_lacks_is_a_fault_too(judge):
    run = judge(
        [{"id": "a", "model": "m", "response": json.dumps(ARRAYS)}],
        [{"id": "a", "T+1": {**ARRAYS, ROLL: [0.0, 0.0]}}],
        task="M3",
    )
    assert "`Roll (deg)` at t+3" in run.record("a")["optional_scores"]["reason"]


def test_an_infinite_shown_value_is_no_jump_of_the_model(judge):
    run = judge(
        [{"id": "a", "model": "m", "response": json.dumps(STATE)}],
        [{"id": "a", "next_second": STATE, "current_state": {**STATE, ROLL: "inf"}}],
    )
    assert run.record("a")["bucket"] == "passed"
    (roll,) = [atom for atom in atoms(run, "jump_dynamics") if atom["field"] == ROLL]
    assert roll["pass"] is None


def test_reasons_and_counts_say_what_is_so(judge):
    outputs = [{"id": "a", "model": "m", "response": json.dumps(STATE)}]
    alone = judge(outputs)
    assert alone.estimates["eligibility_rate", "model=m"].value == 1.0
    assert alone.estimates["total_score", "model=m"].why == "no eligible sample has a reference"
    reference = [{"id": name, "next_second": STATE} for name in ("a", *(f"r{k:03d}" for k in range(160)))]
    run = judge(outputs, reference)
    assert any(
        note.startswith("160 ids stand only in the reference: r000, r001, r002, …") for note in run.manifest.notes
    )
    one = judge(outputs, reference[:2])
    assert any(note.startswith("1 id stands only in the reference: r000") for note in one.manifest.notes)


def test_blank_lines_do_not_count_and_an_offset_does(judge, tmp_path):
    line = json.dumps({"response": json.dumps(STATE), "model": "m"})
    (tmp_path / "o.jsonl").write_text(f"\n{line}\n\n{line}\n")
    truths = [json.dumps({"next_second": {**STATE, ROLL: float(k)}}) for k in range(4)]
    (tmp_path / "r.jsonl").write_text("\n\n".join(truths))
    config = {
        "task": "S1",
        "outputs": [str(tmp_path / "o.jsonl")],
        "reference": [str(tmp_path / "r.jsonl")],
        "match": "line",
    }
    for offset in (0, 2):
        out = tmp_path / f"run{offset}"
        run = adjudge.evaluate("flight", {**config, "offset": offset}, report=False, out=out)
        gold = [row["gold"][FIELDS.index(ROLL)] for row in run.samples.select(["gold"]).to_pylist()]
        assert gold == [float(offset), float(offset + 1)]
        adjudge.verify(run)
    with pytest.raises(ConfigError, match="needs --match line"):
        adjudge.evaluate("flight", {**config, "match": "id", "offset": 2}, report=False, out=tmp_path / "x")


@pytest.mark.parametrize(
    "text",
    [
        "The aircraft is close to the climb rate limit.",
        "An overloaded aircraft would stall here.",
        "Error 500 ft in altitude is likely.",
        "Expect a timeout of the turn at 300 ft; status unknown.",
        "500 ft above the ground the aircraft levels off.",
        "The server error budget is not my concern: 404 feet below.",
        '{"note": "no error here", "error": null}',
        "Unauthorized deviations are excluded.",
        "Errors of 400 fpm are typical.",
    ],
)
def test_prose_about_flying_is_no_failed_call(text, judge):
    assert failed_call(text) is None
    assert judge([{"id": "a", "model": "m", "response": text}]).record("a")["bucket"] == "unparsed"


def test_rows_of_another_task_are_refused_with_a_count(judge):
    rows = [{"id": f"s{k}", "model": "m", "response": "{}", "task_id": "S1" if k < 3 else "M3"} for k in range(8)]
    with pytest.raises(
        InputError, match=r"outputs.jsonl:4: 5 of the 8 records here are of task 'M3', the run is of S1"
    ):
        judge(rows)
    assert (
        judge([{"id": "a", "model": "m", "response": json.dumps(STATE), "task_id": "S1"}]).record("a")["bucket"]
        == "passed"
    )


def test_outputs_and_reference_that_were_swapped_are_told(judge):
    outputs = [{"id": "a", "model": "m", "response": json.dumps(STATE)}]
    reference = [{"id": "a", "next_second": STATE}]
    with pytest.raises(InputError, match=r"looks like a reference.*swapped"):
        judge(reference, outputs)
    with pytest.raises(InputError, match=r"looks like an output.*swapped"):
        judge(outputs, outputs)


def test_answers_in_the_shape_of_another_task_are_a_warning(judge):
    rows = [{"id": f"s{k}", "model": "m", "response": json.dumps(ARRAYS)} for k in range(3)]
    assert any("all 3 answers have arrays where numbers are due" in note for note in judge(rows).manifest.notes)
    rows = [{"id": f"s{k}", "model": "m", "response": json.dumps(STATE)} for k in range(3)]
    assert any("numbers where arrays are due" in note for note in judge(rows, task="M3").manifest.notes)


def test_published_samples_and_outputs_are_read(judge):
    output = {
        "model_name": "m",
        "sample_id": "a",
        "raw_response_text": json.dumps(STATE),
        "timestamp": "2025",
        "task_id": "S1",
    }
    sample = {
        "sample_id": "a",
        "task_id": "S1",
        "context": {"question": "?", "current_state": STATE, "record_idx": 7},
        "gold": {"next_second": {**STATE, ROLL: 1.0}, "available": True},
    }
    run = judge([{**output, "question": "What next?", "record_idx": 7}], [sample])
    record = run.record("a")
    assert record["bucket"] == "passed"
    assert record["optional_scores"]["conditional_error_score"] > 0
    assert record["context"] == {
        "question": "What next?", "record_idx": 7, "timestamp": "2025", "shown_from": "reference", "flight_id": None,
    }  # fmt: skip
    assert not any("keys that nothing reads" in note for note in run.manifest.notes)
    hidden = judge([output], [{**sample, "gold": {"next_second": STATE, "available": False}}])
    assert hidden.record("a")["optional_scores"]["conditional_error_score"] is None


def test_the_trace_names_the_schema_by_its_content(judge):
    rows = [{"id": "a", "model": "m", "response": json.dumps(STATE), "current_state": STATE}]
    first, second = judge(rows), judge(rows, task="M1")
    trace = first.record("a")["trace"]
    assert re.fullmatch("[0-9a-f]{16}", trace["schema_version"])
    assert first.manifest.digests["schema"] != second.manifest.digests["schema"]
    info = trace["reproducibility_info"]
    assert info["verifier_count"] == len(info["verifier_ids"]) == 6
    assert "protocol" not in info["verifier_ids"]
    meta = first.record("a")["evidence_pack"]["atoms"][0]["meta"]
    assert (meta["config_version"], meta["timestamp"]) == (trace["config_version"], trace["timestamp"])


def test_an_edited_library_does_not_call_itself_by_the_built_in_name():
    content = load(DEFAULT).content
    assert check(content, "file").library.name == DEFAULT
    content["fields"][ROLL]["jump"] = 21
    assert check(content, "file").library.name == f"{DEFAULT}, edited"
    content["rules"]["m3_array_continuity"]["jumps"] = -1
    with pytest.raises(ConfigError, match="jumps is -1, expected a positive number"):
        check(content, "file")


def test_a_newline_in_a_models_name_does_not_break_the_title(judge):
    run = judge([{"id": "a", "model": "m\nx", "response": json.dumps(STATE)}])
    done = CliRunner().invoke(main, ["report", str(run.path)], standalone_mode=False)
    assert "\nx" not in (done.output + done.stderr).split("Where every")[0]


def test_the_last_object_with_flight_fields_is_the_state_of_a_question():
    assert state_in_question(SEVERAL) is not None
    assert state_in_question("no braces") is None
    assert state_in_question('{"a": 1} {') is None
