"""Odd and broken input of the flight protocol: what one line holds costs that line at most, or is named with its place."""

import json
import math

import pytest

import adjudge
from adjudge.errors import InputError
from adjudge.protocols.flight.fields import FIELDS, GROUND_SPEED, HEADING, ROLL, VELOCITY_E

STATE = dict(
    zip(
        FIELDS,
        [47.5, 8.5, 3500.0, 90.0, 88.0, 51.4, 0.0, 0.0, 99.9, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 95.0, 3450.0, 3500.0],
        strict=True,
    )
)
ANSWER = json.dumps(STATE)
RIGHT = {"id": "a", "model": "m", "response": ANSWER}
TRUTH = {"id": "a", "flight_id": "F1", "next_second": STATE, "current_state": STATE}


@pytest.fixture
def judge(tmp_path):
    """Evaluate lines, as bytes or as records, through the whole engine."""
    runs = iter(range(100))

    def run(outputs, reference=(TRUTH,), *, limit=None, **config):
        folder = tmp_path / str(next(runs))
        folder.mkdir()
        paths = {}
        for role, lines in (("outputs", outputs), ("reference", reference)):
            paths[role] = folder / f"{role}.jsonl"
            content = (
                lines if isinstance(lines, bytes) else b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            )
            paths[role].write_bytes(content)
        settings = {"task": "S1", **{role: [str(path)] for role, path in paths.items()}, **config}
        return adjudge.evaluate("flight", settings, report=False, out=folder / "run", limit=limit)

    return run


def bucket(run, sample="a"):
    return run.record(sample)["bucket"]


def test_a_byte_order_mark_windows_lines_and_blank_lines_change_no_number(judge):
    reference = [TRUTH | {"id": name} for name in "abc"]
    lines = [json.dumps(RIGHT | {"id": name}).encode() for name in "abc"]
    plain = judge(b"\n".join(lines) + b"\n", reference)
    odd = judge(b"\xef\xbb\xbf\r\n" + b"\r\n  \r\n\r\n".join(lines), reference)
    assert plain.metrics["buckets"]["m"]["passed"] == 3
    assert odd.metrics == plain.metrics
    assert odd.samples.to_arrow().equals(plain.samples.to_arrow())


@pytest.mark.parametrize(
    "written, what",
    [
        (b"\xe9", "bytes that are not UTF-8"),
        (b"\xed\xa0\x80", "bytes that are not UTF-8"),
        (b"\\ud800", "lone surrogates"),
        (b"\\udc00\\ud800", "lone surrogates"),
        (b"\x00", "control characters"),
        (b"\x1b", "control characters"),
    ],
)
def test_a_character_that_is_none_costs_itself_and_not_the_run(judge, written, what):
    line = json.dumps(RIGHT | {"response": f"So @ it is: {ANSWER}"}).encode().replace(b"@", written)
    other = json.dumps(RIGHT | {"id": "b"}).encode()
    run = judge(other + b"\n" + line + b"\n", [TRUTH, TRUTH | {"id": "b"}])
    assert (bucket(run, "a"), bucket(run, "b")) == ("passed", "passed")
    assert run.record("a")["protocol_result"]["parsing"]["method"] == "embedded"
    assert f"outputs: 1 line held {what}, replaced or escaped: outputs.jsonl:2" in run.manifest.notes
    adjudge.verify(run)


def test_an_escaped_nul_is_a_character_like_any_other(judge):
    run = judge([RIGHT | {"response": f"So \0 it is: {ANSWER}"}])
    assert bucket(run) == "passed"
    assert run.record("a")["raw_response"].startswith("So \0 it is")
    assert not any("control" in note for note in run.manifest.notes)


def test_a_broken_character_inside_a_key_of_the_answer_makes_that_field_missing(judge):
    line = json.dumps(RIGHT).encode().replace(b"Roll (deg)", b"Roll\xff(deg)")
    record = judge(line).record("a")
    assert record["bucket"] == "failed"
    assert record["protocol_result"]["field_completeness"]["missing"] == [ROLL]


def test_an_answer_of_50_megabytes_is_unparsed_and_kept_in_part(judge):
    length = 50_000_000
    run = judge([RIGHT | {"response": "x" * length}, RIGHT | {"id": "b"}], [TRUTH, TRUTH | {"id": "b"}])
    record = run.record("a")
    assert (record["bucket"], bucket(run, "b")) == ("unparsed", "passed")
    assert len(record["raw_response"]) == 65_536
    assert record["protocol_result"]["parsing"]["error"] == f"text of {length} characters is over the limit of 1000000"


@pytest.mark.parametrize("opens, closes", [("[", "]"), ('{"a":', "}"), (f'{{"{ROLL}":', "}"), ('{"a":[', "]}")])
def test_json_that_is_nested_deep_in_an_answer_is_unparsed(judge, opens, closes):
    deep = opens * 100_000 + "0" + closes * 100_000
    run = judge([RIGHT | {"response": deep}, RIGHT | {"id": "b"}], [TRUTH, TRUTH | {"id": "b"}])
    assert (bucket(run, "a"), bucket(run, "b")) == ("unparsed", "passed")


def test_a_line_that_is_nested_deep_is_named(judge):
    deep = b'{"id": "b", "model": "m", "response": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(InputError, match=r"outputs.jsonl:2: is nested too deep to be read"):
        judge(json.dumps(RIGHT).encode() + b"\n" + deep)


@pytest.mark.parametrize(
    "line, message",
    [
        ({"response": ANSWER}, "the record has no `id`; an output line is a JSON object with `id`, `response` and"),
        ({"id": None, "response": ANSWER}, "`id` is null, expected a whole number or text; `response` is the model's"),
        ({"id": "a", "response": 5}, "`response` is a whole number, expected text; `response` is the model's raw text"),
        (
            {"id": "a", "response": "", "model": ["m"]},
            "`model` is a list, expected text; `response` is the model's raw",
        ),
        (
            {"id": "a", "response": {}, "model": 1},
            "`model` is a whole number, expected text; `response` is the model's",
        ),
        ([1], "the record is a list, expected an object; an output line is"),
    ],
)
def test_an_output_line_of_another_shape_is_named(judge, line, message):
    with pytest.raises(InputError) as error:
        judge([RIGHT, line])
    assert error.value.line == 2
    assert message in str(error.value)


@pytest.mark.parametrize(
    "line, message",
    [
        ({"next_second": STATE}, "has neither `id` nor `sample_id`"),
        ({"id": None, "next_second": None}, "has neither `id` nor `sample_id`"),
        ({"id": 1.5, "next_second": STATE}, "its id is 1.5, expected a text or a whole number; a reference line is"),
        ({"id": True, "next_second": STATE}, "its id is True, expected a text or a whole number"),
        ([1], "the record is a list, expected an object; a reference line is"),
    ],
)
def test_a_reference_line_of_another_shape_is_named(judge, line, message):
    with pytest.raises(InputError) as error:
        judge([RIGHT], [TRUTH, line])
    assert (error.value.line, str(error.value).partition("reference.jsonl:2: ")[1]) == (2, "reference.jsonl:2: ")
    assert message in str(error.value)


def test_an_id_that_stands_twice_is_refused_with_both_places(judge):
    with pytest.raises(
        InputError, match=r"outputs.jsonl:3: id 'a' of model 'm' stands here a second time; first at .*:1"
    ):
        judge([RIGHT, RIGHT | {"model": "n"}, RIGHT])
    with pytest.raises(
        InputError, match=r"reference.jsonl:2: id '7' stands in the reference a second time; first at .*:1"
    ):
        judge([RIGHT | {"id": 7}], [TRUTH | {"id": 7}, TRUTH | {"id": "7"}])


def test_numbers_and_texts_are_the_same_id(judge):
    run = judge([RIGHT | {"id": 7}], [{"sample_id": "7", "next_second": STATE, "current_state": STATE}])
    assert bucket(run, "7") == "passed"
    assert run.metrics["unmatched_ids"] == {}


def test_an_answer_that_is_an_object_instead_of_text_is_read(judge):
    assert bucket(judge([RIGHT | {"response": STATE}])) == "passed"
    assert bucket(judge([RIGHT | {"response": [1]}])) == "unparsed"


@pytest.mark.parametrize("error", ["no answer", {"code": 429, "why": ["busy"]}])
def test_a_call_that_failed_is_errored_with_what_it_said(judge, error):
    run = judge([{"id": "a", "model": "m", "response": None, "error": error}])
    assert bucket(run) == "errored"
    (atom,) = [atom for atom in run.record("a")["evidence_pack"]["atoms"] if atom["pass"] is False]
    assert ("no answer" if isinstance(error, str) else '{\\"code\\": 429') in atom["message"]


def test_a_model_without_a_name_is_called_as_its_file(judge):
    assert set(judge([{"id": "a", "response": ANSWER}]).metrics["buckets"]) == {"all", "outputs"}


def gold_and_shown(run):
    (row,) = run.samples.select(["gold", "shown", "has_reference"]).to_pylist()
    return {name: dict(zip(FIELDS, row[name], strict=True)) for name in ("gold", "shown")}, row["has_reference"]


def test_numbers_in_texts_count_and_words_are_no_numbers(judge):
    written = {**STATE, ROLL: " 1.5 ", HEADING: "12"}
    values, has_reference = gold_and_shown(judge([RIGHT], [TRUTH | {"next_second": written, "current_state": written}]))
    assert has_reference
    for part in values.values():
        assert (part[ROLL], part[HEADING]) == (1.5, 12.0)
    for words in ({GROUND_SPEED: "inf", VELOCITY_E: "N/A"}, {GROUND_SPEED: "inf", VELOCITY_E: "nan"}):
        state = written | words
        values, has_reference = gold_and_shown(judge([RIGHT], [TRUTH | {"next_second": state, "current_state": state}]))
        assert not has_reference
        assert (values["shown"][ROLL], values["shown"][HEADING]) == (1.5, 12.0)
        assert math.isnan(values["shown"][GROUND_SPEED])
        assert math.isnan(values["shown"][VELOCITY_E])


def test_a_number_beyond_all_numbers_costs_its_field(judge):
    def huge(record):
        return json.dumps(record).replace("51.4", "1e999").encode()

    run = judge([RIGHT], huge(TRUTH))
    assert not gold_and_shown(run)[1]
    assert run.record("a")["optional_scores"]["reason"].endswith(
        "reference.jsonl:1: its gold has no finite number for `GPS Velocity E (m/s)`"
    )
    values, _ = gold_and_shown(judge(huge({"id": "a", "model": "m", "response": "", "current_state": STATE})))
    assert math.isnan(values["shown"][VELOCITY_E])
    record = judge(huge(RIGHT | {"response": STATE})).record("a")
    assert "1e999" in record["raw_response"]
    assert record["protocol_result"]["type_validation"]["invalid"] == [VELOCITY_E]


@pytest.mark.parametrize("states", [{}, {"current_state": None}, {"current_state": [1]}])
def test_a_reference_without_states_leaves_verdict_and_no_error_score(judge, states):
    run = judge([RIGHT], [{"id": "a", "next_second": None, **states}])
    values, has_reference = gold_and_shown(run)
    assert not has_reference
    assert all(math.isnan(value) for part in values.values() for value in part.values())
    assert bucket(run) == "passed"


def test_a_reference_of_another_task_is_told(judge):
    arrays = {"id": "a", "T+1": {name: [value] for name, value in STATE.items()}, "current_state": STATE}
    with pytest.raises(InputError, match="1 row of the reference has the gold of another task than S1"):
        judge([RIGHT], [arrays])
    with pytest.raises(InputError, match="another task than M1"):
        judge([RIGHT], [TRUTH | {"current_state": [STATE] * 3}], task="M1")
    run = judge([RIGHT, RIGHT | {"id": "b"}], [arrays, TRUTH | {"id": "b"}])
    assert (
        "reference.jsonl:1: has `T+1`, which is the gold of another task than S1"
        in run.record("a")["optional_scores"]["reason"]
    )
    assert any("1 have a reference that cannot be used" in note for note in run.manifest.notes)


@pytest.mark.parametrize(
    "states, roll",
    [
        ({**STATE, ROLL: 3.0}, 3.0),
        ({**STATE, ROLL: "3"}, 3.0),
        ([STATE, {**STATE, ROLL: " 3 "}], 3.0),
        (None, 0.0),
        ("level", 0.0),
    ],
)
def test_what_the_output_line_says_was_shown_goes_before_the_reference(judge, states, roll):
    second = RIGHT | {"id": "b"}
    run = judge([RIGHT | {"current_state": states}, second], [TRUTH, TRUTH | {"id": "b"}])
    shown = dict(zip(run.samples.column("sample").to_pylist(), run.samples.column("shown").to_pylist(), strict=True))
    assert shown["a"][FIELDS.index(ROLL)] == roll
    assert shown["b"] == list(STATE.values())


def test_keys_that_nothing_reads_are_named(judge):
    outputs = [RIGHT | {"latency": 1, "current_state": {**STATE, "Flaps": 0}}]
    reference = [TRUTH | {"next_second": {**STATE, "Flaps": 10}, "current_state": [{**STATE, "N1": 1}]}]
    run = judge(outputs, reference)
    notes = [note for note in run.manifest.notes if "nothing reads" in note]
    assert notes == [
        "outputs: keys that nothing reads: `current_state.Flaps` (100 %), `latency` (100 %), by their share of the records",
        "reference: keys that nothing reads: `current_state.N1` (100 %), `next_second.Flaps` (100 %), by their share of the records",
    ]
    every_key_is_read = judge([RIGHT | {"error": None}], [TRUTH | {"sample_id": "a", "T+1": None}])
    assert not any("nothing reads" in note for note in every_key_is_read.manifest.notes)


def test_lines_are_matched_by_number_where_that_is_asked_for(judge):
    outputs = b"\n" + json.dumps({"response": ANSWER, "model": "m"}).encode()
    reference = b"\n" + json.dumps({"id": 1.5, "next_second": STATE}).encode()
    run = judge(outputs, reference, match="line")
    assert run.samples.select(["sample", "has_reference"]).to_pylist() == [{"sample": "1", "has_reference": True}]


def test_a_limit_keeps_the_reference_of_what_is_judged(judge):
    reference = [TRUTH | {"id": name} for name in "cba"]
    run = judge([RIGHT | {"id": name} for name in "abc"], reference, limit=2)
    assert run.samples.select(["sample", "has_reference"]).to_pylist() == [
        {"sample": "a", "has_reference": True},
        {"sample": "b", "has_reference": True},
    ]
