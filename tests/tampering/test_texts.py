"""Raw texts replaced, with every digest made to fit: what was read from them is read again, and the rest is listed."""

import json
import shutil

import pytest

import adjudge
from adjudge.engine.verify import verify
from adjudge.protocols.base import protocol
from adjudge.protocols.flight.fields import FIELDS
from tampering.damage import scored
from tampering.forge import edit_table, fit

BESIDE = "the raw texts in outputs/, "


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    runs = {}

    def run(name, **settings):
        key = name, *settings
        if key not in runs:
            folder = tmp_path_factory.mktemp("texts")
            example = scored(folder / "data") if name == "anomaly" else dict(protocol(name).example(folder / "data", 3))
            config = {**example, "resamples": 100, **{key: value(folder) for key, value in settings.items()}}
            runs[key] = adjudge.evaluate(name, config, out=folder / "run", report=False).path
        return runs[key]

    return run


def replaced(column, change, wanted=lambda value: value is not None, **also):
    """The first wanted text changed, and other columns of the same row with it."""

    def apply(rows):
        row = next(row for row in rows if wanted(row[column]))
        row[column] = change(row[column])
        row |= {name: value(row) for name, value in also.items()}

    return apply


def _length(row):
    return len(row["response"])


def _another_key(text):
    return text.replace('"total"', '"totals"')


WAYS = {
    "flight: an answer": (
        "flight",
        replaced("response", lambda text: "{}", characters=_length),
        "answer in samples.parquet is not what the texts give",
    ),
    "check: an answer": (
        "check",
        replaced("response", _another_key, lambda text: bool(text) and '"total"' in text, characters=_length),
        "samples.parquet: answer.total is not what the stored texts hold",
    ),
    "gui: an action of another type": (
        "gui",
        replaced("response", lambda text: "DONE()", lambda text: bool(text) and "CLICK" in text, characters=_length),
        "said_type in samples.parquet is not what the texts say",
    ),
    "gui: an action at another place": (
        "gui",
        replaced(
            "response",
            lambda text: "CLICK(x=0.999, y=0.001)",
            lambda text: bool(text) and "CLICK(" in text,
            characters=_length,
        ),
        "said_x, said_y, said_end_x or said_end_y in samples.parquet is not what the texts say",
    ),
    "gui: another length": (
        "gui",
        replaced("response", lambda text: text + " "),
        "characters are not those of the texts",
    ),
    "triage: a verdict": (
        "triage",
        replaced("response", lambda text: "real", lambda text: text == "fake"),
        "answer in samples.parquet is not what the words of the verdicts say",
    ),
    "triage: an error that was none": (
        "triage",
        replaced("error", lambda _: "no answer", lambda error: error is None),
        "answer in samples.parquet is not what the words of the verdicts say",
    ),
    "triage: a confidence": (
        "triage",
        replaced("confidence_text", lambda _: "high", lambda text: text is None),
        "confidence_state in samples.parquet is not what the texts of the confidences say",
    ),
    "consistency: a longer reason": (
        "consistency",
        replaced("scholar_reason", lambda text: f"{text} And so on."),
        "reason_length of an agent in samples.parquet is not what the reasons say",
    ),
    "consistency: a reason removed": (
        "consistency",
        replaced("auditor_reason", lambda _: None),
        "auditor_reason_length in samples.parquet is not that of the reason",
    ),
    "consistency: personal data": (
        "consistency",
        replaced(
            "auditor_reason", lambda text: "ann@example.org".ljust(len(text), "."), lambda t: bool(t) and len(t) > 15
        ),
        "personal of an agent in samples.parquet is not what the reasons say",
    ),
    "consistency: a refusal": (
        "consistency",
        replaced("response", lambda _: "not in context", lambda text: bool(text) and text != "not in context"),
        "claim in samples.parquet is not what the texts say",
    ),
    "stability: a claim": (
        "stability",
        replaced("claims", lambda claims: [str(place) * 9 for place in range(len(claims))]),
        "ned50 in samples.parquet is not that of the claims",
    ),
    "stability: a claim left out": (
        "stability",
        replaced("claims", lambda claims: claims[1:]),
        "runs in samples.parquet is not that of the claims",
    ),
    "stability: a refusal": (
        "stability",
        replaced(
            "claims", lambda claims: ["not in context", *claims[1:]], lambda claims: "not in context" not in claims
        ),
        "refusals in samples.parquet is not that of the claims",
    ),
    "score: a target": (
        "score",
        replaced("target", lambda text: f"{text}?"),
        "target in samples.parquet is not what stands beside the answers",
    ),
    "anomaly: the alarms in words": (
        "anomaly",
        replaced("response", lambda _: "17 alarms"),
        "response is not the number of alarms in samples.parquet",
    ),
}


@pytest.mark.parametrize("what", WAYS)
def test_a_text_that_says_something_else_is_found(made, tmp_path, what):
    name, change, words = WAYS[what]
    run = shutil.copytree(made(name), tmp_path / "run")
    edit_table("outputs", change)(run)
    fit(run)
    assert f"outputs/part-00000.parquet: {words}" in verify(adjudge.load_run(run)).problems


@pytest.mark.parametrize("name", ["anomaly", "check", "consistency", "flight", "gui", "score", "stability", "triage"])
def test_answers_of_an_honest_run_are_read_again_and_the_rest_of_the_texts_is_listed(made, name):
    result = verify(adjudge.load_run(made(name)))
    assert result.problems == []
    assert "that the stored answers are what the raw texts in outputs/ say" in result.checked
    listed = [text for text in result.not_checked if text.startswith(BESIDE)]
    assert len(listed) == (name != "anomaly")  # whose outputs follow from its tables, all of them
    assert all(text.startswith(f"{BESIDE}beyond ") for text in listed)


@pytest.mark.parametrize("name, column", [("stability", "claims"), ("score", "response"), ("triage", "file")])
def test_a_column_of_texts_that_is_not_there_is_found(made, tmp_path, name, column):
    """Once a KeyError in `export` and `explain`: seeds 2000528, 2002917 and 2004813 of damage.py."""
    run = shutil.copytree(made(name), tmp_path / "run")
    edit_table(
        "outputs",
        lambda rows: [{f"{key}?" if key == column else key: value for key, value in row.items()} for row in rows],
        lambda schema: schema.set(schema.get_field_index(column), schema.field(column).with_name(f"{column}?")),
    )(run)
    fit(run)
    (problem,) = [text for text in verify(adjudge.load_run(run)).problems if text.startswith("outputs/")]
    assert column in problem


def test_texts_that_were_cut_are_no_problem(tmp_path):
    long = "x" * 70_000
    (tmp_path / "outputs.jsonl").write_text(json.dumps({"id": "1", "model": "m", "response": long}) + "\n")
    state = dict.fromkeys(FIELDS, 0.0)
    (tmp_path / "reference.jsonl").write_text(json.dumps({"id": "1", "shown": state, "reference": state}) + "\n")
    files = {name: [str(tmp_path / f"{name}.jsonl")] for name in ("outputs", "reference")}
    run = adjudge.evaluate("flight", {"task": "S1", **files, "resamples": 100}, out=tmp_path / "run", report=False)
    assert verify(run).problems == []
