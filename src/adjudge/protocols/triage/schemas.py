"""JSON Schemas of the triage protocol: what it reads, and the record it writes."""

from __future__ import annotations

from typing import Any

from adjudge.evidence.vocabulary import BUCKETS, OUTCOMES, SEVERITIES
from adjudge.protocols.triage.batch import MODEL, TIMES
from adjudge.protocols.triage.judge import VERDICTS
from adjudge.runs.schemas import DRAFT, number_or_null

_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_ID: dict[str, Any] = {"type": ["string", "integer"]}
_OBJECT: dict[str, Any] = {"type": ["object", "null"]}


def schemas() -> dict[str, dict[str, Any]]:
    """By name."""
    return {
        "manifest": _document(
            "a record of the data set manifest", {"id": _ID, "label": _MAYBE_TEXT, "meta": _OBJECT}, ("id",)
        ),
        "result": _document("a result record", _result(), ("id",)),
        "record": _document("the record of one judged result", _record(), tuple(_record())),
    }


def _document(title: str, properties: dict[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {"$schema": DRAFT, "title": title, "type": "object", "required": list(required), "properties": properties}


def _result() -> dict[str, Any]:
    seconds = number_or_null()
    return {
        "id": _ID,
        "model": _MAYBE_TEXT,
        "use_tools": {"type": ["boolean", "null"]},
        "trial": {"type": "integer", "minimum": 0},
        "label": _MAYBE_TEXT,
        "prediction": _MAYBE_TEXT,
        "confidence": {
            "type": ["number", "string", "null"],
            "description": "0 to 1; a text such as 87% only with --percent",
        },
        "error": {},
        "error_type": _MAYBE_TEXT,
        "timings": {"type": ["object", "null"], "properties": dict.fromkeys((*TIMES[:3], TIMES[MODEL]), seconds)},
        "latency_seconds": seconds,
        "cache": {"type": ["object", "null"], "properties": {"hit": {"type": ["boolean", "null"]}}},
        "tool_usage": {"type": ["array", "null"]},
        "tool_details": {"type": ["array", "null"], "items": {"type": "object", "properties": {"seconds": seconds}}},
        "prompt_hashes": _OBJECT,
        "models": {
            "type": ["object", "null"],
            "properties": dict.fromkeys(("agent", "vision", "structuring"), _MAYBE_TEXT),
        },
        "run_config": _OBJECT,
        "timestamp": {},
        "meta": _OBJECT,
    }


def _record() -> dict[str, Any]:
    return {
        "sample_id": _TEXT,
        "model_name": _TEXT,
        "configuration": _TEXT,
        "trial": {"type": "integer"},
        "bucket": {"enum": list(BUCKETS)},
        "label": _TEXT,
        "answer": _TEXT,
        "verdict": {"enum": list(VERDICTS)},
        "cites": {"type": "array", "items": _TEXT, "minItems": 1},
        "confidence": number_or_null(),
        "confidence_state": _TEXT,
        "image": _MAYBE_TEXT,
        "shown": {"type": "object"},
        "said": {"type": "object"},
        "timings": {"type": "object"},
        "cache": {"enum": ["hit", "miss", "unknown"]},
        "tools": {"type": "object"},
        "provenance": {"type": "object"},
        "slices": {"type": "object"},
        "evidence": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "rule", "outcome", "severity", "scope", "observed", "message"],
                "properties": {
                    "outcome": {"enum": list(OUTCOMES)},
                    "severity": {"enum": list(SEVERITIES)},
                    "observed": number_or_null(),
                },
            },
        },
        "trace": {"type": "object"},
    }
