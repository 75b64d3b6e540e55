"""A flight sample as an object: the record that `export` writes and `explain` shows, and what a page shows of an opened one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.protocols.common.plan import agent_output
from adjudge.protocols.flight.fields import ANGLES, FIELDS
from adjudge.protocols.flight.judge import DIMENSIONS
from adjudge.protocols.flight.references import NO_GOLD
from adjudge.runs.run import Run
from adjudge.runs.section import Panel

_RULES = {"model": "rules", "temperature": 0.0}  # in runs of versions that named no agent
_SHOWN_FROM = {
    "output": "the state in the output's line",
    "reference": "the state in the reference's line",
    "question": "the last state in the question",
}
_PASS = {"pass": True, "fail": False, "not_applicable": None, "error": None}


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet."""
    manifest = run.manifest
    config = manifest.config
    judge = run.agent or _RULES
    library = manifest.digests["constraint_library"][:16]
    families = [family for family in run.layout.families() if family != "protocol"]
    origin = {"library_version": library, "config_version": manifest.protocol_version, "timestamp": manifest.timestamp}
    critical = [atom for atom in atoms if atom.failed and atom.severity == "CRITICAL"]
    return {
        "sample_id": row["sample"],
        "model_name": row["model"],
        "task_id": row.get("task", config["task"]),
        "bucket": row["bucket"],
        "context": {
            **{name: output.get(name) for name in ("question", "record_idx", "timestamp")},
            "shown_from": row.get("shown_from"),
            "flight_id": row["flight"],
        },
        "protocol_result": _protocol_result(row, atoms),
        "evidence_pack": {"atoms": [_atom(atom, origin, row) for atom in atoms]},
        "tables": state_tables(row, atoms),
        "agent_output": agent_output(run, row, atoms),
        "gating": {"passed": not critical, "reasons": _gating(critical)},
        "optional_scores": _scores(row),
        "rubric": {**{name: row[name] for name in DIMENSIONS}, "overall": row["rubric"]},
        "raw_response": output["response"],
        "trace": {
            "config_version": manifest.protocol_version,
            "config_hash": manifest.digests["config"][:16],
            "schema_version": manifest.digests["schema"][:16],
            "constraint_lib_version": library,
            "evaluator_version": manifest.environment["adjudge"],
            "timestamp": manifest.timestamp,
            "reproducibility_info": {
                "model": judge["model"],
                "temperature": judge["temperature"],
                "verifier_count": len(families),
                "verifier_ids": families,
                "seed": config["seed"],
            },
        },
    }


def _protocol_result(row: dict[str, Any], atoms: Sequence[Atom]) -> dict[str, Any]:
    missing = {atom.field for atom in atoms if atom.rule == "numeric_validity.missing_field" and atom.failed}
    invalid = {
        atom.field for atom in atoms if atom.family == "numeric_validity" and atom.failed and atom.field not in missing
    }
    parsed = row["status"] == "answered"
    first = atoms[0]
    return {
        "parsing": {
            "success": parsed,
            "method": row["method"],
            "span": [row["start"], row["end"]] if parsed else None,
            "repairs": row["repairs"].split(",") if row["repairs"] else [],
            "candidates": row["candidates"],
            "extra_keys": row["extra_keys"],
            "error": None if parsed else first.why,
        },
        "field_completeness": {"rate": row["completeness"], "missing": sorted(name for name in missing if name)},
        "type_validation": {"invalid": sorted(name for name in invalid if name)},
    }


def _atom(atom: Atom, origin: dict[str, str], row: dict[str, Any]) -> dict[str, Any]:
    meta: dict[str, Any] = {"observed": atom.observed, "limits": atom.limits, "checker": atom.family, **origin}
    if atom.family == "jump_dynamics" and atom.step == 0 and row.get("shown_from"):
        meta["compared_with"] = _SHOWN_FROM[row["shown_from"]]
    return {
        "id": atom.id,
        "type": atom.family,
        "rule": atom.rule,
        "field": atom.field,
        "step": atom.step,
        "pass": _PASS[atom.outcome],
        "outcome": atom.outcome,
        "severity": atom.severity,
        "scope": atom.scope,
        "message": atom.message,
        "meta": meta,
    }


def _gating(critical: Sequence[Atom]) -> list[str]:
    if not critical:
        return []
    rules = ", ".join(dict.fromkeys(atom.rule for atom in critical))
    noun = "violation" if len(critical) == 1 else "violations"
    return [f"Found {len(critical)} critical {noun}: {rules}"]


def _scores(row: dict[str, Any]) -> dict[str, Any]:
    reason = None
    if row["verdict"] != "eligible":
        reason = "ineligible: no score"
    elif row["error"] is None:
        fault = row.get("reference_fault")
        reason = "no value can be compared" if row["has_reference"] else "no reference to compare with"
        reason = f"no reference that can be used: {fault}" if fault and not fault.endswith(NO_GOLD) else reason
    return {
        "availability_score": row["availability"],
        "constraint_satisfaction_score": row["constraint"],
        "conditional_error_score": row["error"],
        "total_score": row["total"],
        "reason": reason,
    }


COLUMNS = ("field", "shown", "predicted", "true", "error", "jump limit", "outcome")


def state_tables(row: Mapping[str, Any], atoms: Sequence[Atom]) -> list[dict[str, Any]]:
    """One table a predicted second: a row a field."""
    steps = sorted({atom.step for atom in atoms if atom.family == "jump_dynamics"})
    jumps = {(atom.field, atom.step): atom for atom in atoms if atom.family == "jump_dynamics"}
    tables = []
    for step in steps:
        rows = []
        for place, field in enumerate(FIELDS):
            cell = step * len(FIELDS) + place
            shown, answer, true = _number(row["shown"], place), _number(row["answer"], cell), _number(row["gold"], cell)
            limit, outcome = jumps[field, step].limits.get("high"), _outcome(field, step, atoms)
            rows.append([field, shown, answer, true, _error(field, answer, true), limit, outcome])
        second = f"t+{step + 1}" if len(steps) > 1 else "the next second"
        tables.append({"title": f"The state at {second}", "columns": list(COLUMNS), "rows": rows})
    return tables


def _number(values: Sequence[float] | None, place: int) -> float | None:
    value = None if values is None else values[place]
    return None if value is None or value != value else value  # noqa: PLR0124 -- NaN is no number


def _error(field: str, answer: float | None, true: float | None) -> float | None:
    if answer is None or true is None:
        return None
    apart = abs(answer - true)
    return min(apart % 360.0, 360.0 - apart % 360.0) if field in ANGLES else apart


def _outcome(field: str, step: int, atoms: Sequence[Atom]) -> str:
    """The worst that any atom about this field and second says."""
    about = [atom for atom in atoms if atom.field == field and atom.step == step]
    failed = [atom for atom in about if atom.failed]
    if failed:
        worst = "CRITICAL" if any(atom.severity == "CRITICAL" for atom in failed) else "WARNING"
        return f"{worst}: {', '.join(dict.fromkeys(atom.rule.partition('.')[2] for atom in failed))}"
    return "pass" if any(atom.outcome == "pass" for atom in about) else "not checked"


def panels(run: Run) -> list[Panel]:
    """A row a field and second; the error of an angle goes around at 360 degrees."""
    del run
    return [
        Panel(
            "table",
            "The state, field by field",
            columns={"shown": "shown", "predicted": "answer", "true": "gold"},
            options={
                "rows": list(FIELDS),
                "head": "field",
                "error": ["predicted", "true"],
                "angles": sorted(ANGLES),
                "limit": "jump_dynamics",
                "limit_title": "jump limit",
            },
            note="What was shown, predicted and true, how far off the prediction is, and by how much a value may change in a second.",
        ),
        Panel("texts", "The question", columns={"question": "question"}),
    ]
