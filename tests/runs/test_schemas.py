"""Schemas are files; the words and keys in them are those that the code writes and reads."""

from __future__ import annotations

import jsonschema
import pytest

from adjudge.evidence.vocabulary import BUCKETS, OUTCOMES, SEVERITIES, Scope
from adjudge.protocols.base import names, protocol
from adjudge.protocols.check import reading
from adjudge.protocols.flight.fields import FIELDS, TASKS
from adjudge.protocols.flight.judge import DIMENSIONS, GRADES
from adjudge.protocols.flight.references import SOURCES
from adjudge.protocols.gui import schemas as gui
from adjudge.protocols.triage.batch import MODEL, TIMES
from adjudge.protocols.triage.judge import VERDICTS
from adjudge.report import eee
from adjudge.runs.section import published, schemas
from adjudge.verdict.agent import DECISIONS

FLIGHT, TRIAGE, CHECK, GUI, EEE, RUNS, AGENTS = (
    published(f"adjudge.{name}")
    for name in ("protocols.flight", "protocols.triage", "protocols.check", "protocols.gui", "report", "runs", "agents")
)


def at(schema, path):
    """The part of a schema under the properties of a path; `*` are the items of an array."""
    for key in path.split("."):
        schema = (
            schema["items"]
            if key == "*"
            else schema["additionalProperties"]
            if key == "+"
            else schema["properties"][key]
        )
    return schema


@pytest.mark.parametrize(
    "schema, path, words",
    [
        (FLIGHT["output"], "task_id", TASKS),
        (FLIGHT["sample"], "task_id", TASKS),
        (FLIGHT["record"], "task_id", TASKS),
        (FLIGHT["record"], "bucket", BUCKETS),
        (FLIGHT["record"], "context.shown_from", [*SOURCES, None]),
        (FLIGHT["record"], "evidence_pack.atoms.*.outcome", OUTCOMES),
        (FLIGHT["record"], "evidence_pack.atoms.*.severity", SEVERITIES),
        (FLIGHT["record"], "evidence_pack.atoms.*.scope", Scope),
        *((FLIGHT["record"], f"rubric.{name}", [*GRADES, None]) for name in DIMENSIONS),
        (TRIAGE["record"], "bucket", BUCKETS),
        (TRIAGE["record"], "verdict", VERDICTS),
        (TRIAGE["record"], "evidence.*.outcome", OUTCOMES),
        (TRIAGE["record"], "evidence.*.severity", SEVERITIES),
        (RUNS["evidence"], "outcome", OUTCOMES),
        (RUNS["evidence"], "severity", SEVERITIES),
        (AGENTS["judgement"], "verdict", DECISIONS),
        (EEE["eee-aggregate"], "source_metadata.evaluator_relationship", eee.RELATIONSHIPS),
        (EEE["eee-aggregate"], "model_info.additional_details.deployment_type", eee.DEPLOYMENTS),
        (EEE["eee-aggregate"], "model_info.additional_details.model_availability", eee.AVAILABLE),
    ],
)
def test_words_are_those_of_the_code(schema, path, words):
    assert at(schema, path)["enum"] == [None if word is None else str(word) for word in words]


def _numbers():
    """The numbers of a gui evaluation, without its tables."""
    properties = at(GUI["gui-eval"], "metrics")["properties"]
    return [name for name in properties if not name.startswith("metrics_by_")]


@pytest.mark.parametrize(
    "properties, keys",
    [
        (FLIGHT["sample"]["$defs"]["state"]["properties"], FIELDS),
        (FLIGHT["sample"]["$defs"]["series"]["properties"], FIELDS),
        (TRIAGE["result"]["properties"]["timings"]["properties"], (*TIMES[:3], TIMES[MODEL])),
        (at(GUI["gui-eval"], "metrics")["required"], gui.REQUIRED),
        (
            _numbers(),
            (*gui.REQUIRED, *gui.OPTIONAL, *gui.LATER_RATES, *gui.LATER_COUNTS, "click_distance_50th_percentile"),
        ),
        (CHECK["check"]["properties"], reading.KEYS),
        (at(CHECK["check"], "fields.+")["anyOf"][1]["properties"], reading.FIELD_KEYS),
        (at(CHECK["check"], "rules.+")["anyOf"][1]["properties"], reading.RULE_KEYS),
        (at(CHECK["check"], "tests.*")["properties"], reading.TEST_KEYS),
    ],
)
def test_keys_are_those_of_the_code(properties, keys):
    assert set(properties) == set(keys)


def test_constants_are_those_of_the_code():
    assert at(EEE["eee-aggregate"], "schema_version")["const"] == eee.VERSION
    assert at(EEE["eee-instance"], "schema_version")["const"] == f"instance_level_eval_{eee.VERSION}"
    assert at(CHECK["check"], "adjudge")["const"] == reading.FORMAT
    places = at(CHECK["check"], "fields.+")["anyOf"][1]["properties"]["places"]
    assert places["maximum"] == reading.MOST_PLACES


def test_every_schema_is_a_schema():
    every = [
        *schemas().values(),
        *EEE.values(),
        *(body for name in names() for body in protocol(name).schemas().values()),
    ]
    for body in every:
        jsonschema.Draft202012Validator.check_schema(body)
