"""The JSON Schema of the rule file, so that editors complete and check it."""

from __future__ import annotations

from typing import Any

from adjudge.protocols.check.reading import FIELD_KEYS, FORMAT, KEYS, MOST_PLACES, RULE_KEYS, TEST_KEYS
from adjudge.runs.schemas import DRAFT

_TEXT = {"type": "string"}
_NAMES = {"type": "array", "items": _TEXT}
_SEVERITY = {"enum": ["critical", "warning"]}
_BOUNDS = {"type": "array", "items": {"type": ["number", "null"]}, "minItems": 2, "maxItems": 2}


def schemas() -> dict[str, dict[str, Any]]:
    """The schemas of protocol check, by name."""
    return {"check": _rule_file()}


def _rule_file() -> dict[str, Any]:
    parts: dict[str, Any] = {
        "adjudge": {"const": FORMAT},
        "name": _TEXT,
        "about": _TEXT,
        "extract": {"enum": ["json", "none"]},
        "fields": {"type": "object", "additionalProperties": {"anyOf": [_TEXT, _field()]}, "minProperties": 1},
        "schema": {"type": "object", "description": "a JSON Schema about the answer, one rule a keyword and path"},
        "meta": {"type": "object", "additionalProperties": _TEXT},
        "input": {"type": "object", "additionalProperties": _TEXT},
        "rules": {
            "type": ["object", "null"],
            "propertyNames": {"pattern": "^[a-z][a-z0-9_]*\\.[a-z][a-z0-9_]*$"},
            "additionalProperties": {"anyOf": [{**_TEXT, "description": "an expression"}, _rule()]},
        },
        "scores": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["weights"],
                "properties": {
                    "weights": {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}},
                    "title": _TEXT,
                },
                "additionalProperties": False,
            },
        },
        "gates": _NAMES,
        "slices": _NAMES,
        "cluster": _TEXT,
        "sequence": _TEXT,
        "order": _TEXT,
        "tests": {"type": "array", "items": _test()},
    }
    return {
        "$schema": DRAFT,
        "title": "rule file of protocol check",
        "type": "object",
        "required": ["adjudge", "fields"],
        "properties": {key: parts[key] for key in KEYS},
        "additionalProperties": False,
    }


def _field() -> dict[str, Any]:
    parts: dict[str, Any] = {
        "path": {**_TEXT, "pattern": "^\\$"},
        "type": {**_TEXT, "description": "number, text, boolean, date, json, list(…) or object(…)"},
        "unit": _TEXT,
        "required": {"type": "boolean", "default": True},
        "lenient": {"type": "boolean", "default": False, "description": "values in quotes are taken"},
        "one_of": {"type": "array", "minItems": 1},
        "range": {
            "anyOf": [
                _BOUNDS,
                {
                    "type": "object",
                    "properties": {"warning": _BOUNDS, "critical": _BOUNDS},
                    "additionalProperties": False,
                },
            ]
        },
        "pattern": {**_TEXT, "description": "a regular expression for the whole text"},
        "severity": _SEVERITY,
        "places": {"type": "integer", "minimum": 1, "maximum": MOST_PLACES},
        "title": _TEXT,
    }
    return _table({key: parts[key] for key in FIELD_KEYS}, ["type"])


def _rule() -> dict[str, Any]:
    limits = {"type": "object", "properties": {"warning": {"type": "number"}, "critical": {"type": "number"}}}
    parts: dict[str, Any] = {
        "check": {**_TEXT, "description": "an expression that is true where the rule holds"},
        "observed": {**_TEXT, "description": "an expression that gives a number"},
        "when": {**_TEXT, "description": "an expression; elsewhere the rule is not applicable"},
        "severity": {"anyOf": [_SEVERITY, {**limits, "additionalProperties": False}]},
        "signed": {"type": "boolean"},
        "title": _TEXT,
        "passed": _TEXT,
        "failed": {**_TEXT, "description": "may hold {observed}, {unit}, {low}, {high}"},
        "unit": _TEXT,
        "needs": _NAMES,
        "optional": _NAMES,
    }
    return _table({key: parts[key] for key in RULE_KEYS}, [])


def _test() -> dict[str, Any]:
    blocks: dict[str, Any] = {key: {"type": "object"} for key in ("row", "gold", "meta", "input", "previous")}
    parts: dict[str, Any] = {"name": _TEXT, **blocks, "fails": _NAMES, "not_applicable": _NAMES}
    return _table({key: parts[key] for key in TEST_KEYS}, ["row"])


def _table(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
