"""JSON Schemas of the flight protocol: what it reads, and the record it writes."""

from __future__ import annotations

from typing import Any

from adjudge.evidence.vocabulary import BUCKETS, OUTCOMES, SEVERITIES, Scope
from adjudge.protocols.flight.fields import FIELDS, TASKS
from adjudge.protocols.flight.judge import DIMENSIONS, GRADES
from adjudge.protocols.flight.shown import SOURCES
from adjudge.runs.schemas import DRAFT, number_or_null

_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_ID: dict[str, Any] = {"type": ["string", "integer"]}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_NUMBER: dict[str, Any] = {"type": ["number", "string"], "description": "a number or a numeric string"}


def schemas() -> dict[str, dict[str, Any]]:
    """By name."""
    return {
        "sample": _document("a flight sample", _sample()),
        "output": _document("a model output", _output()),
        "record": record_schema(),
        "model-confidence": _document("a confidence prior file", _confidence()),
    }


def record_schema() -> dict[str, Any]:
    """The schema of the record, whose content the trace names by its hash."""
    return _document("the record of one judged sample", _record())


def _document(title: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": DRAFT, "title": title, **body}


def _object(properties: dict[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "required": [name for name in properties if name not in optional],
        "properties": properties,
    }


def _sample() -> dict[str, Any]:
    state = _object(dict.fromkeys(FIELDS, _NUMBER), optional=FIELDS)
    arrays = _object({name: {"type": "array", "items": _NUMBER} for name in FIELDS}, optional=FIELDS)
    context = _object(
        {
            "question": _MAYBE_TEXT,
            "current_state": {"oneOf": [state, {"type": "array", "items": state}, {"type": "null"}]},
            "record_idx": {"type": ["integer", "null"]},
        }
    )
    gold = _object(
        {"next_second": state, "T+1": arrays, "available": {"type": "boolean"}}, optional=("next_second", "T+1")
    )
    return _object({"sample_id": _ID, "task_id": {"enum": list(TASKS)}, "context": context, "gold": gold})


def _output() -> dict[str, Any]:
    return _object(
        {
            "model_name": _TEXT,
            "sample_id": _ID,
            "raw_response_text": _MAYBE_TEXT,
            "timestamp": _MAYBE_TEXT,
            "task_id": {"enum": list(TASKS)},
        }
    )


def _confidence() -> dict[str, Any]:
    score = {"type": ["number", "null"]}
    prior = _object(
        {
            "model_name": _TEXT,
            "confidence_m": _object(
                {f"{task}_score": score for task in TASKS}, optional=tuple(f"{t}_score" for t in TASKS)
            ),
            "calculation_source": _TEXT,
            "version": _TEXT,
            "metadata": {"type": "object"},
        },
        optional=("calculation_source", "version", "metadata"),
    )
    plain = _object(
        {"results": {"type": "array", "items": _object({"model_name": _TEXT, "c_score": {"type": "number"}})}}
    )
    return {
        "oneOf": [plain, prior, {"type": "array", "items": prior}, {"type": "object", "additionalProperties": prior}]
    }


def _atom() -> dict[str, Any]:
    return _object(
        {
            "id": _TEXT,
            "type": _TEXT,
            "rule": _TEXT,
            "field": _MAYBE_TEXT,
            "step": {"type": "integer"},
            "pass": {"type": ["boolean", "null"]},
            "outcome": {"enum": list(OUTCOMES)},
            "severity": {"enum": list(SEVERITIES)},
            "scope": {"enum": [str(scope) for scope in Scope]},
            "message": _TEXT,
            "meta": _object(
                {
                    "observed": number_or_null(),
                    "limits": {"type": "object"},
                    "checker": _TEXT,
                    "library_version": _TEXT,
                    "config_version": _TEXT,
                    "timestamp": _TEXT,
                    "compared_with": _TEXT,
                },
                optional=("compared_with",),
            ),
        }
    )


def _record() -> dict[str, Any]:
    item = _object(
        {
            "item_id": _TEXT,
            "constraint_id": _TEXT,
            "title": _TEXT,
            "status": {"enum": ["pass", "fail", "unknown"]},
            "evidence_ids": _TEXTS,
        }
    )
    reason = _object(
        {
            "rank": {"type": "integer"},
            "reason": _TEXT,
            "rule": _TEXT,
            "field": _MAYBE_TEXT,
            "severity": {"enum": ["WARNING", "CRITICAL"]},
            "count": {"type": "integer"},
            "evidence_ids": _TEXTS,
        }
    )
    parsing = _object(
        {
            "success": {"type": "boolean"},
            "method": _MAYBE_TEXT,
            "span": {"type": ["array", "null"], "items": {"type": "integer"}},
            "repairs": _TEXTS,
            "candidates": {"type": "integer"},
            "extra_keys": {"type": "integer"},
            "error": _MAYBE_TEXT,
        }
    )
    scores = dict.fromkeys(
        ("availability_score", "constraint_satisfaction_score", "conditional_error_score", "total_score"),
        number_or_null(),
    )
    info = _object(
        {
            "model": _TEXT,
            "temperature": {"type": "number"},
            "verifier_count": {"type": "integer"},
            "verifier_ids": _TEXTS,
            "seed": {"type": "integer"},
        }
    )
    texts = (
        "config_version",
        "config_hash",
        "schema_version",
        "constraint_lib_version",
        "evaluator_version",
        "timestamp",
    )
    return _object(
        {
            "sample_id": _TEXT,
            "model_name": _TEXT,
            "task_id": {"enum": list(TASKS)},
            "bucket": {"enum": list(BUCKETS)},
            "context": _object(
                {
                    "question": _MAYBE_TEXT,
                    "record_idx": {"type": ["integer", "null"]},
                    "timestamp": _MAYBE_TEXT,
                    "shown_from": {"enum": [*SOURCES, None]},
                    "flight_id": _MAYBE_TEXT,
                }
            ),
            "tables": {
                "type": "array",
                "items": _object(
                    {"title": _TEXT, "columns": _TEXTS, "rows": {"type": "array", "items": {"type": "array"}}}
                ),
            },
            "protocol_result": _object(
                {
                    "parsing": parsing,
                    "field_completeness": _object({"rate": {"type": "number"}, "missing": _TEXTS}),
                    "type_validation": _object({"invalid": _TEXTS}),
                }
            ),
            "evidence_pack": _object({"atoms": {"type": "array", "items": _atom()}}),
            "agent_output": _object(
                {
                    "checklist": {"type": "array", "items": item},
                    "adjudication": {"enum": ["eligible", "ineligible"]},
                    "cites": {**_TEXTS, "minItems": 1},
                    "attribution": {"type": "array", "items": reason},
                }
            ),
            "gating": _object({"passed": {"type": "boolean"}, "reasons": _TEXTS}),
            "optional_scores": _object({**scores, "reason": _MAYBE_TEXT}),
            "rubric": _object(
                {**{name: {"enum": [*GRADES, None]} for name in DIMENSIONS}, "overall": number_or_null()}
            ),
            "raw_response": _MAYBE_TEXT,
            "trace": _object({**dict.fromkeys(texts, _TEXT), "reproducibility_info": info}),
        }
    )
