"""A sample as an object, which `export` writes and `explain` shows; and what a page shows of an opened answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.protocols.check.config import document_of
from adjudge.protocols.check.reading import rule_file
from adjudge.protocols.common.plan import cited, other_columns, picked, plain_atoms
from adjudge.runs.run import Run
from adjudge.runs.section import Panel

_TEXTS = re.compile(r"'[^']*'|\"[^\"]*\"")
_NAMES = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BLOCKS = frozenset({"answer", "gold", "meta", "input", "previous", "score", "rule"})


def record(run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
    """The record of one row of samples.parquet, with its answer, gold values and atoms."""
    del run
    blocks: dict[str, dict[str, Any]] = {}
    shown: dict[str, Any] = {}
    for key, value in other_columns(row, "sample", "model", "verdict").items():
        block, dot, name = key.partition(".")
        if dot and block in _BLOCKS:
            blocks.setdefault(block, {})[name] = value.isoformat() if hasattr(value, "isoformat") else value
        else:
            shown[key] = value
    return {
        "id": row["sample"],
        **picked(row, "model", "verdict"),
        **shown,
        **blocks,
        "response": output.get("response"),
        "cites": cited(row, atoms),
        "atoms": plain_atoms(atoms),
    }


def panels(run: Run) -> list[Panel]:
    """Every declared field with its value, the reference's and the rules about it; then what else the sample carries."""
    file = rule_file(document_of(run.manifest.config["rule_file"]))
    about = {
        code: [name for name in file.fields if name in _NAMES.findall(_TEXTS.sub(" ", f"{rule.check} {rule.observed}"))]
        for code, rule in file.rules.items()
    }
    beside = [name for name in run.column_names if name.partition(".")[0] in {"meta", "input", "previous", "score"}]
    columns, missing = {"answer": "answer.{}", "gold": "gold.{}"}, "No field was read from the answer."
    options = {"rows": list(file.fields), "head": "field", "filled": True, "checks": "all", "about": about}
    return [
        Panel("table", "The fields, with their rules", columns=columns, options=options, missing=missing),
        Panel("pairs", "Beside the answer", columns={name.replace(".", " "): name for name in beside}),
    ]
