"""JSON Schemas of the Every-Eval-Ever records as adjudge writes them."""

from __future__ import annotations

from typing import Any

from adjudge.report.eee import AVAILABLE, DEPLOYMENTS, RELATIONSHIPS, VERSION
from adjudge.runs.schemas import DRAFT

_TEXT = {"type": "string", "minLength": 1}
_WORDS = {"type": "object", "additionalProperties": {"type": "string"}}
_NUMBER = {"type": "number"}
_COUNT = {"type": "integer", "minimum": 0}
_PLACE = r"^data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}_samples\.jsonl$"
_DIGEST = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def schemas() -> dict[str, dict[str, Any]]:
    """Both, by the names under which `adjudge schema` prints them."""
    return {"eee-aggregate": _aggregate(), "eee-instance": _instance()}


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **optional},
        "additionalProperties": False,
    }


def _aggregate() -> dict[str, Any]:
    interval = _object(
        {
            "lower": _NUMBER,
            "upper": _NUMBER,
            "confidence_level": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "method": {"type": "string"},
        }
    )
    metric = _object(
        {
            "metric_id": _TEXT,
            "metric_name": _TEXT,
            "lower_is_better": {"type": "boolean"},
            "score_type": {"enum": ["binary", "continuous", "levels"]},
        },
        min_score={"oneOf": [_NUMBER, {"const": "-Infinity"}]},
        max_score={"oneOf": [_NUMBER, {"const": "Infinity"}]},
    )
    details = _object({"deployment_type": {"enum": list(DEPLOYMENTS)}, "model_availability": {"enum": list(AVAILABLE)}})
    result = _object(
        {
            "evaluation_result_id": _TEXT,
            "evaluation_name": _TEXT,
            "source_data": _object(
                {"dataset_name": _TEXT, "source_type": {"const": "other"}, "additional_details": _WORDS}
            ),
            "metric_config": metric | {"dependentRequired": {"min_score": ["max_score"], "max_score": ["min_score"]}},
            "score_details": _object(
                {
                    "score": _NUMBER,
                    "uncertainty": _object({"num_samples": _COUNT}, confidence_interval=interval),
                    "details": _WORDS,
                }
            ),
        }
    )
    return {
        "$schema": DRAFT,
        "title": "Every-Eval-Ever 0.3: all numbers of one model, as `adjudge export --eee` writes them",
        **_object(
            {
                "schema_version": {"const": VERSION},
                "evaluation_id": _TEXT,
                "evaluation_timestamp": _TEXT,
                "retrieved_timestamp": {"type": "string", "pattern": "^[0-9]+$"},
                "source_metadata": _object(
                    {
                        "source_name": _TEXT,
                        "source_type": {"const": "evaluation_run"},
                        "source_organization_name": _TEXT,
                        "evaluator_relationship": {"enum": list(RELATIONSHIPS)},
                        "additional_details": _WORDS,
                    }
                ),
                "model_info": _object({"name": _TEXT, "id": _TEXT, "additional_details": details}, developer=_TEXT),
                "eval_library": _object({"name": _TEXT, "version": _TEXT, "additional_details": _WORDS}),
                "evaluation_results": {"type": "array", "items": result},
                "detailed_evaluation_results": _object(
                    {
                        "format": {"const": "jsonl"},
                        "file_path": {"type": "string", "pattern": _PLACE},
                        "hash_algorithm": {"const": "sha256"},
                        "checksum": _DIGEST,
                        "total_rows": _COUNT,
                    }
                ),
            }
        ),
    }


def _instance() -> dict[str, Any]:
    texts = {"type": "array", "items": {"type": "string"}}
    attribution = _object(
        {
            "turn_idx": {"const": 0},
            "source": {"const": "output.raw"},
            "extracted_value": {"type": "string"},
            "extraction_method": _TEXT,
            "is_terminal": {"const": True},
        }
    )
    return {
        "$schema": DRAFT,
        "title": "Every-Eval-Ever 0.3: one sample of one model, a line of the file that the aggregate names",
        **_object(
            {
                "schema_version": {"const": f"instance_level_eval_{VERSION}"},
                "evaluation_id": _TEXT,
                "model_id": _TEXT,
                "evaluation_name": _TEXT,
                "sample_id": _TEXT,
                "sample_hash": _DIGEST,
                "interaction_type": {"const": "single_turn"},
                "input": _object({"raw": _TEXT, "reference": texts}),
                "output": _object({"raw": texts}),
                "answer_attribution": {"type": "array", "items": attribution},
                "evaluation": _object({"score": _NUMBER, "is_correct": {"type": "boolean"}}),
                "metadata": _WORDS,
            }
        ),
    }
