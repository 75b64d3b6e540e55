"""What a page shows of an opened answer: every declared field with its value, the reference's, and the rules about it."""

from __future__ import annotations

import re

from adjudge.protocols.check.config import document_of
from adjudge.protocols.check.reading import rule_file
from adjudge.protocols.check.rulefile import RuleFile
from adjudge.runs.run import Run
from adjudge.runs.section import Panel

_TEXTS = re.compile(r"'[^']*'|\"[^\"]*\"")
_NAMES = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def panels(run: Run) -> list[Panel]:
    """Fields first, then what else the sample carries."""
    file = rule_file(document_of(run.manifest.config["rule_file"]))
    beside = [name for name in run.column_names if name.partition(".")[0] in {"meta", "input", "previous", "score"}]
    return [
        Panel(
            "table",
            "The fields, with their rules",
            columns={"answer": "answer.{}", "gold": "gold.{}"},
            options={
                "rows": list(file.fields),
                "head": "field",
                "filled": True,
                "checks": "all",
                "about": _about(file),
            },
            missing="No field was read from the answer.",
        ),
        Panel("pairs", "Beside the answer", columns={name.replace(".", " "): name for name in beside}),
    ]


def _about(file: RuleFile) -> dict[str, list[str]]:
    """The fields that the expressions of each rule name."""
    return {
        code: [name for name in file.fields if name in _words(f"{rule.check or ''} {rule.observed or ''}")]
        for code, rule in file.rules.items()
    }


def _words(expression: str) -> set[str]:
    return set(_NAMES.findall(_TEXTS.sub(" ", expression)))
