"""Every row of "Cases that must come out right" of the flight protocol, by its name."""

import copy
import json

import pytest

import adjudge
from adjudge.protocols.flight.config import DEFAULT, load
from adjudge.protocols.flight.fields import FIELDS
from adjudge.protocols.flight.plan import FlightPlan

STATE = dict(
    zip(
        FIELDS,
        [47.5, 8.5, 3500.0, 90.0, 88.0, 51.4, 0.0, 0.0, 99.9, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 95.0, 3450.0, 3500.0],
        strict=True,
    )
)
SPEED, HEADING = "GPS Ground Speed (kt)", "Magnetic Heading (deg)"


def arrays(state=STATE):
    return {name: [value] * 3 for name, value in state.items()}


@pytest.fixture
def judge(tmp_path, write_lines):
    """Evaluate some responses to one state through the whole engine."""
    made = iter(range(100))

    def run(*responses, task="S1", gold=True, shown=STATE, **config):
        folder = tmp_path / str(next(made))
        folder.mkdir()
        rows = [
            {"id": f"s{k}", "question": "?", "response": text, "model": "m", "timestamp": None}
            for k, text in enumerate(responses)
            if text is not None
        ]
        outputs = write_lines(folder / "outputs.jsonl", rows)
        truth = (
            {"T+1": arrays() if task == "M3" else {k: [v] for k, v in STATE.items()}}
            if task != "S1"
            else {"next_second": STATE}
        )
        lines = [
            {"id": f"s{k}", "current_state": shown if task == "S1" else [shown] * 3, **(truth if gold else {})}
            for k in range(len(responses))
        ]
        reference = write_lines(folder / "reference.jsonl", lines)
        settings = {"task": task, "outputs": [outputs], "reference": [reference], **config}
        return adjudge.evaluate("flight", settings, report=False, out=folder / "run")

    return run


def failed(run, sample="s0"):
    return [atom for atom in run.record(sample)["evidence_pack"]["atoms"] if atom["pass"] is False]


@pytest.mark.parametrize("text", ["The aircraft keeps climbing.", "null", "{}", "[1, 2]", "42", '{"note": 1}'])
def test_prose_without_json_null_or_empty_object_is_unparsed_and_never_scored(judge, text):
    run = judge(text)
    record = run.record("s0")
    assert record["bucket"] == "unparsed"
    assert record["agent_output"]["adjudication"] == "ineligible"
    (atom,) = failed(run)
    assert (atom["rule"], atom["severity"]) == ("protocol.json_parse", "CRITICAL")
    assert record["agent_output"]["cites"] == [atom["id"]]
    assert all(value is None for name, value in record["optional_scores"].items() if name != "reason")
    assert run.metrics["buckets"]["m"] == {
        "passed": 0, "failed": 0, "abstained": 0, "unparsed": 1, "errored": 0, "missing": 0, "n": 1,
    }  # fmt: skip


@pytest.mark.parametrize("value", [[], [1.0], [1.0] * 12, 1.0, None, {"a": 1}])
def test_m3_with_arrays_of_another_length_or_scalars_is_a_critical_array_shape(judge, value):
    run = judge(json.dumps(dict.fromkeys(FIELDS, value)), task="M3")
    atoms = [atom for atom in failed(run) if atom["type"] == "numeric_validity"]
    assert len(atoms) == 57
    assert {atom["rule"] for atom in atoms} == {"numeric_validity.array_shape"}
    assert {atom["severity"] for atom in atoms} == {"CRITICAL"}
    assert run.record("s0")["agent_output"]["adjudication"] == "ineligible"


def test_an_array_where_a_number_is_due_is_a_critical_array_shape(judge):
    run = judge(json.dumps({**STATE, SPEED: [99.9]}))
    assert [(a["rule"], a["field"]) for a in failed(run)] == [("numeric_validity.array_shape", SPEED)]


def test_m3_heading_from_359_5_to_0_5_is_a_step_of_one_degree(judge):
    answer = arrays() | {HEADING: [359.5, 0.5, 1.5]}
    run = judge(json.dumps(answer), task="M3", shown={**STATE, HEADING: 358.5})
    steps = {
        (atom["rule"], atom["step"]): atom["meta"]["observed"]
        for atom in run.record("s0")["evidence_pack"]["atoms"]
        if atom["field"] == HEADING and atom["type"] in {"jump_dynamics", "physics_constraint"}
    }
    assert set(steps.values()) == {1.0}
    assert len(steps) == 5


def test_5000_kt_at_index_1_only_is_critical_at_step_1_with_5000_observed(judge):
    answer = arrays() | {SPEED: [99.9, 5000.0, 99.9]}
    ranges = [atom for atom in failed(judge(json.dumps(answer), task="M3")) if atom["type"] == "range_sanity"]
    assert [(a["field"], a["step"], a["severity"], a["meta"]["observed"]) for a in ranges] == [
        (SPEED, 1, "CRITICAL", 5000.0)
    ]


def test_a_limit_changed_by_one_per_cent_changes_constraint_lib_version(judge):
    content = load(DEFAULT).content
    changed = copy.deepcopy(content)
    changed["fields"][SPEED]["jump"] *= 1.01
    text = json.dumps(STATE)
    first, same, other = (judge(text, library=library) for library in (content, copy.deepcopy(content), changed))
    versions = [run.record("s0")["trace"]["constraint_lib_version"] for run in (first, same, other)]
    assert versions[0] == versions[1] != versions[2]
    assert len(versions[0]) == 16


def test_every_limit_of_the_library_enters_its_version():
    content = json.loads(json.dumps(load(DEFAULT).content))
    seen = {FlightPlan({"task": "S1", "outputs": ["o"], "library": content}).digests["constraint_library"]}

    def leaves(node, path=()):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(value, dict | list):
                yield from leaves(value, (*path, key))
            elif isinstance(value, int | float) and not isinstance(value, bool):
                yield (*path, key)

    count = 0
    for path in leaves({k: v for k, v in content.items() if k != "kinematics"}):
        changed = copy.deepcopy(content)
        node = changed
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = node[path[-1]] * 1.01 + (0.01 if node[path[-1]] == 0 else 0)
        seen.add(FlightPlan({"task": "S1", "outputs": ["o"], "library": changed}).digests["constraint_library"])
        count += 1
    assert len(seen) == count + 1 > 70


@pytest.mark.parametrize("word", ["timeout", "bad request", "HTTP 500", "rate limit"])
def test_valid_json_whose_text_names_a_failure_is_parsed_normally(judge, word):
    run = judge(json.dumps({"comment": f"no {word} here", **STATE}))
    assert run.record("s0")["bucket"] == "passed"
    assert run.record("s0")["protocol_result"]["parsing"]["extra_keys"] == 1


@pytest.mark.parametrize(
    "text, bucket, rule",
    [
        ("Error: 429 rate limit exceeded", "errored", "protocol.api_error"),
        ("", "abstained", "protocol.abstained"),
        ('{"abstain": true}', "abstained", "protocol.abstained"),
        (None, "missing", "protocol.missing_output"),
    ],
)
def test_errors_abstentions_and_missing_outputs_have_their_own_buckets_and_stay_in_the_denominator(
    judge, text, bucket, rule
):
    run = judge(json.dumps(STATE), text)
    record = run.record("s1")
    assert record["bucket"] == bucket
    assert [atom["rule"] for atom in failed(run, "s1")] == [rule]
    eligibility = run.estimates["eligibility_rate", "model=m"]
    assert (eligibility.value, eligibility.n) == (0.5, 2)


def test_an_echoed_input_object_before_the_answer_is_not_taken(judge):
    answer = {**STATE, SPEED: 99.0}
    run = judge(f"You gave me {json.dumps(STATE)}\n```json\n{json.dumps(answer)}\n```")
    record = run.record("s0")
    parsing = record["protocol_result"]["parsing"]
    assert parsing["method"] == "fenced"
    start, end = parsing["span"]
    assert json.loads(record["raw_response"][start:end]) == answer


@pytest.mark.parametrize("task", ["S1", "M1", "M3"])
def test_an_echo_of_the_input_after_the_answer_is_not_scored_as_the_answer(judge, task):
    answer = arrays({**STATE, SPEED: 99.0}) if task == "M3" else {**STATE, SPEED: 99.0}
    run = judge(f"{json.dumps(answer)}\nThis follows from the state I was given: {json.dumps(STATE)}", task=task)
    record = run.record("s0")
    start, end = record["protocol_result"]["parsing"]["span"]
    assert json.loads(record["raw_response"][start:end]) == answer
    assert record["bucket"] == "passed"
    adjudge.verify(run)


def test_an_answer_that_repeats_the_shown_state_is_an_answer(judge):
    assert judge(json.dumps(STATE)).record("s0")["bucket"] == "passed"
    assert judge(f"{json.dumps(STATE)} {json.dumps(STATE)}").record("s0")["bucket"] == "passed"


@pytest.mark.parametrize("literal", ["true", '"N/A"', '""', "NaN", "1e999", "null", "[]", "{}"])
def test_a_value_that_is_no_number_is_a_critical_validity_failure(judge, literal):
    text = json.dumps(STATE).replace(json.dumps(SPEED) + ": 99.9", json.dumps(SPEED) + ": " + literal)
    atoms = [atom for atom in failed(judge(text)) if atom["field"] == SPEED]
    expected = "numeric_validity.array_shape" if literal == "[]" else "numeric_validity.invalid_value"
    assert [(a["rule"], a["severity"]) for a in atoms] == [(expected, "CRITICAL")]


def test_no_reference_for_a_sample_gives_evidence_and_verdict_but_no_error_score(judge):
    run = judge(json.dumps(STATE), gold=False)
    record = run.record("s0")
    assert record["agent_output"]["adjudication"] == "eligible"
    scores = record["optional_scores"]
    assert (scores["availability_score"], scores["constraint_satisfaction_score"]) == (100.0, 100.0)
    assert scores["conditional_error_score"] is None
    assert "no reference" in scores["reason"]
    assert record["rubric"]["predictive_quality_reliability"] is None
    assert any("1 of 1 samples have no reference" in note for note in run.metrics["notes"])


def test_gold_fed_back_is_eligible_and_scores_full_marks(judge):
    for task, answer in (("S1", STATE), ("M1", STATE), ("M3", arrays())):
        run = judge(json.dumps(answer), task=task)
        record = run.record("s0")
        assert record["agent_output"]["adjudication"] == "eligible"
        assert record["optional_scores"]["total_score"] == 100.0
        assert len(record["evidence_pack"]["atoms"]) == run.layout.width
        assert len(record["agent_output"]["cites"]) == len(record["evidence_pack"]["atoms"])


@pytest.mark.parametrize("beyond, fails", [(0.0, False), (0.5, True)])
def test_pitch_must_go_with_climb_only_above_its_limit(judge, beyond, fails):
    pitch = load(DEFAULT).library.rules.attitude_velocity_consistency.pitch_deg + beyond
    state = {**STATE, "Pitch (deg)": pitch, "GPS Velocity U (m/s)": 0.0}
    codes = [atom["rule"] for atom in failed(judge(json.dumps(state), shown=state))]
    assert ("physics_constraint.attitude_velocity_consistency" in codes) is fails


@pytest.mark.parametrize(
    "airspeed, pitch, climb, outcome, said",
    [
        (95.0, 20.0, 0.0, "pass", "no stall: airspeed is 95 kt"),
        (45.0, 10.0, 0.0, "pass", "pitch is 10°, not over 15"),
        (45.0, 20.0, 600.0, "pass", "vertical speed is 600 fpm, not under 500"),
        (45.0, 20.0, 400.0, "fail", "stall at 45 kt"),
    ],
)
def test_an_aircraft_that_does_not_stall_is_told_why(judge, airspeed, pitch, climb, outcome, said):
    state = {**STATE, "Indicated Airspeed (kt)": airspeed, "Pitch (deg)": pitch, "Vertical Speed (fpm)": climb}
    atoms = judge(json.dumps(state), shown=state).record("s0")["evidence_pack"]["atoms"]
    [atom] = [atom for atom in atoms if atom["rule"] == "safety_constraint.stall_condition"]
    assert atom["outcome"] == outcome
    assert said in atom["message"]
