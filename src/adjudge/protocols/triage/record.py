"""A triage record as an object, for `export` and `explain`, and what a page shows of an opened one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.evidence.atoms import Atom
from adjudge.protocols.common.plan import cited, picked, plain_atoms
from adjudge.protocols.triage.batch import PROVENANCE, TIMES
from adjudge.runs.run import Run
from adjudge.runs.section import Panel


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet."""
    manifest = run.manifest
    return {
        "sample_id": row["sample"],
        "model_name": row["model"],
        **picked(row, "configuration", "trial", "bucket", "label", "answer", "verdict"),
        "cites": cited(row, atoms),
        **picked(row, "confidence", "confidence_state"),
        "image": output.get("image"),
        "shown": {
            "image": output.get("image"),
            **picked(row, "label", "answer", "confidence"),
            "rationale": output.get("rationale"),
            "analysis": output.get("analysis"),
            "tools": tools_in_words(output.get("tools")),
            "seconds": {name.removesuffix("_seconds"): row[name] for name in TIMES},
            "raw answer": output.get("raw_response"),
        },
        "said": {
            "prediction": output["response"],
            **picked(output, "confidence_text", "error", "error_type", "file", "line"),
        },
        "timings": picked(row, *TIMES),
        "cache": row["cache"],
        "tools": {"count": row["tool_count"], "seconds": row["tool_seconds"]},
        "provenance": {
            **{name: bool(row["carries"] >> index & 1) for index, name in enumerate(PROVENANCE)},
            "prompts": row["prompts"],
            "models_recorded": row["models"],
            "temperature_recorded": row["temperature"],
        },
        "slices": {name: row[name] for name in manifest.config["slices"]},
        "evidence": plain_atoms(atoms, ("id", "rule", "outcome", "severity", "scope", "observed", "message")),
        "trace": {
            "config_hash": manifest.digests["config"][:16],
            "schema_version": manifest.schema_version,
            "word_table_version": manifest.digests["constraint_library"][:16],
            "evaluator_version": manifest.environment["adjudge"],
            "timestamp": manifest.timestamp,
        },
    }


def tools_in_words(text: str | None) -> str | None:
    """The tools that were called, in words: `ela 0.3 s, noise_map 1.2 s error`."""
    try:
        calls = msgspec.json.decode(text) if text else []
    except msgspec.DecodeError:  # a long list was cut
        return text
    words = []
    for call in calls:
        if not isinstance(call, dict):
            words.append(str(call))
            continue
        seconds, status = call.get("seconds"), call.get("status")
        parts = [str(call.get("tool") or "unnamed"), f"{seconds:.3g} s" if isinstance(seconds, float | int) else ""]
        words.append(
            " ".join(part for part in (*parts, "" if status in {None, "ok", "completed"} else str(status)) if part)
        )
    return ", ".join(words) or None


def panels(run: Run) -> list[Panel]:
    """The image, what was said of it, the tools that were called, and how long it took."""
    del run
    return [
        Panel("picture", "The image", columns={"image": "image"}, missing="No record names the image."),
        Panel(
            "pairs",
            "Label and answer",
            columns={
                "label": "label",
                "answer": "answer",
                "confidence": "confidence",
                "error": "error",
                "kind of error": "error_type",
            },
        ),
        Panel(
            "texts",
            "What was said",
            columns={"rationale": "rationale", "analysis": "analysis", "raw answer": "raw_response"},
            missing="The record has neither a rationale nor an analysis.",
        ),
        Panel(
            "pairs",
            "Tools and times",
            columns={
                "tools": "@tools",
                "tools called": "tool_count",
                "seconds in tools": "tool_seconds",
                **{name.replace("_seconds", "").replace("_", " ") + ", seconds": name for name in TIMES},
                "cache": "cache",
            },
            values=_tools,
        ),
    ]


def _tools(run: Run, samples: pa.Table, outputs: pa.Table | None) -> Mapping[str, Sequence[Any]]:
    """The tools that were called, in words."""
    del run, samples
    if outputs is None or "tools" not in outputs.column_names:
        return {}
    return {"tools": [tools_in_words(text) for text in outputs.column("tools").to_pylist()]}
