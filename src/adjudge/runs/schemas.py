"""JSON Schemas of the run directory: manifest.json, metrics.json, and a row of the evidence table."""

from __future__ import annotations

from typing import Any

import msgspec

from adjudge.evidence.vocabulary import OUTCOMES, SEVERITIES
from adjudge.provenance.manifest import Manifest

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def number_or_null() -> dict[str, Any]:
    """A number that may not exist."""
    return {"type": ["number", "null"]}


def schemas() -> dict[str, dict[str, Any]]:
    """The schemas that all protocols share, by name."""
    return {"manifest": _manifest(), "metrics": _metrics(), "evidence": _evidence()}


def _manifest() -> dict[str, Any]:
    schema = msgspec.json.schema(Manifest)
    return {"$schema": DRAFT, "title": "manifest.json of a run", **schema}


def _estimate() -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["name", "slice", "value", "low", "high", "level", "n", "method", "seed", "why"],
        "properties": {
            "name": {"type": "string"},
            "slice": {"type": "string"},
            "value": number_or_null(),
            "low": number_or_null(),
            "high": number_or_null(),
            "level": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "n": {"type": "integer", "minimum": 0},
            "method": {"type": "string"},
            "seed": {"type": ["integer", "null"]},
            "why": {"type": ["string", "null"]},
            "warnings": {"type": "array", "items": {"type": "string"}},
        },
    }


def _metrics() -> dict[str, Any]:
    gate = {
        "type": "object",
        "required": ["metric", "op", "bound", "on", "observed", "outcome", "why"],
        "properties": {
            "metric": {"type": "string"},
            "op": {"enum": [">=", "<=", ">", "<", "=="]},
            "bound": {"type": "number"},
            "on": {"enum": ["value", "low", "high"]},
            "observed": number_or_null(),
            "outcome": {"enum": ["pass", "fail", "unknown"]},
            "why": {"type": ["string", "null"]},
        },
    }
    return {
        "$schema": DRAFT,
        "title": "metrics.json of a run; a protocol adds the keys that it documents",
        "type": "object",
        "required": ["schema_version", "protocol", "metrics", "estimates", "buckets", "gates", "pass"],
        "properties": {
            "schema_version": {"type": "string"},
            "protocol": {"type": "string"},
            "pass": {"type": ["boolean", "null"]},
            "gates": {"type": "object", "additionalProperties": gate},
            "buckets": {"type": "object"},
            "metrics": {"type": "object"},
            "estimates": {"type": "array", "items": _estimate()},
            "notes": {"type": "array", "items": {"type": "string"}},
        },
    }


def _evidence() -> dict[str, Any]:
    return {
        "$schema": DRAFT,
        "title": "a row of evidence/part-NNNNN.parquet",
        "type": "object",
        "required": ["sample", "rule", "field", "step", "outcome", "severity", "observed", "why"],
        "properties": {
            "sample": {"type": "integer", "minimum": 0, "description": "row of the sample within its partition"},
            "rule": {"type": "string", "pattern": "^[a-z][a-z0-9_]*\\.[a-z][a-z0-9_]*$"},
            "field": {"type": ["string", "null"]},
            "step": {"type": "integer", "minimum": 0},
            "outcome": {"enum": list(OUTCOMES)},
            "severity": {"enum": list(SEVERITIES)},
            "observed": number_or_null(),
            "why": {"type": ["string", "null"]},
        },
        "additionalProperties": False,
    }
