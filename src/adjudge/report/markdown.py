"""A run as Markdown: a short summary for a pull request or a job page, the rest folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.report import numbers, view
from adjudge.report.contracts import contracts
from adjudge.report.data import failure_modes
from adjudge.report.numbers import line
from adjudge.runs.run import Run

_MODES, _SECTION_ROWS = 10, 50
MARK = {"pass": "✅", "fail": "❌", "unknown": "⚠️"}
_SPECIAL = str.maketrans(
    {**{sign: f"\\{sign}" for sign in "\\`*_{}[]()#+!|~>"}, "&": "&amp;", "<": "&lt;", "@": "&#64;"}
)


def markdown(run: Run, *, gates: Mapping[str, Any] | None = None) -> str:
    """Verdict, gates and headline estimates; buckets, ranking and failure modes in a fold; warnings always in sight.

    `gates` are outcomes to show instead of those that the run was made with.
    """
    judged = run.metrics["gates"] if gates is None else gates
    passed = all(gate["outcome"] == "pass" for gate in judged.values())
    verdict = "✅ every gate passed" if passed else "❌ not every gate passed"
    blocks = [f"### adjudge: {escape(view.title(run))}", f"**{verdict}**" if judged else ""]
    blocks += [_contracts(run), *_sections(run, "first"), _gates(run, judged), _headline(run)]
    blocks += [*_sections(run, "results"), _warnings(run), _fold(run)]
    blocks.append(f"`adjudge verify {line(str(run.path)).replace('`', '')}` recomputes every number.")
    return "\n\n".join(block for block in blocks if block) + "\n"


def _contracts(run: Run) -> str:
    blocks = []
    for item in contracts(run):
        mark = MARK["fail" if not item["valid"] else "pass" if item["stamp"] == "VALID" else "unknown"]
        name = f"{escape(item['name'])}: " if item["name"] else ""
        checks = [
            [MARK[entry["outcome"]], escape(entry["line"]), f"`{entry['closed_by']}`" if entry["closed_by"] else ""]
            for entry in item["checklist"]
        ]
        blocks += [
            f"**{mark} {name}{escape(item['sentence'])}**",
            escape(item["calibration"]),
            "\n".join(f"- `{entry['code']}`: {escape(entry['reason'])}" for entry in item["violations"]),
            rows(["", "Checklist", "Closed by"], checks, left=3),
        ]
        if item["negative"]:
            blocks += ["Negative results:", "\n".join(f"- {escape(text)}" for text in item["negative"])]
    return "\n\n".join(block for block in blocks if block)


def escape(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no HTML, no mention of anybody."""
    return line(text).translate(_SPECIAL)


def rows(head: Sequence[str], body: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """A table whose cells are already escaped."""
    marks = [":--" if index < left else "--:" for index in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, marks, *body))


def _gates(run: Run, judged: Mapping[str, Any]) -> str:
    if not judged:
        return ""
    body = [
        [
            f"{MARK[gate['outcome']]} {gate['outcome']}",
            escape(name),
            escape(view.gate_must(run, gate)),
            view.gate_number(run, gate, "observed"),
            escape(gate["why"] or ""),
        ]
        for name, gate in judged.items()
    ]
    table = rows(["gate", "", "must hold", "observed", "why"], body, left=3)
    unchecked = run.metrics.get("not_checked") or ()
    return table + "".join(f"\n\n{escape(name)} not checked" for name in unchecked)


def _headline(run: Run) -> str:
    headline = view.headline(run)
    if not headline.names:
        return ""
    head, body = headline.table()
    return rows([escape(title) for title in head], [[escape(label), *texts] for label, *texts in body])


def _warnings(run: Run) -> str:
    return "\n".join(f"> ⚠️ {escape(text)}  " for text in view.warnings(run))


def _sections(run: Run, place: str) -> list[str]:
    blocks = []
    for section in view.sections(run, place):
        head = [escape(title) for title in section.head]
        body = [[escape(text) for text in row] for row in section.rows[:_SECTION_ROWS]]
        hidden = len(section.rows) - len(body)
        parts = [
            f"**{escape(section.title)}**",
            escape(section.note),
            rows(head, body, left=section.left) if body else escape(section.empty),
            f"… and {numbers.count(hidden)} more" if hidden else "",
        ]
        blocks.append("\n\n".join(part for part in parts if part))
    return blocks


def _fold(run: Run) -> str:
    parts = [_buckets(run), _ranking(run), *_sections(run, "more"), _modes(run), _provenance(run)]
    parts = [part for part in parts if part]
    return "<details><summary>Details</summary>\n\n" + "\n\n".join(parts) + "\n\n</details>"


def _buckets(run: Run) -> str:
    head, body = view.bucket_table(run)
    if not body:
        return ""
    return "**Where every sample ended**\n\n" + rows(head, [[escape(name), *counts] for name, *counts in body])


def _ranking(run: Run) -> str:
    comparison = view.tie_groups(run)
    if comparison is None:
        return ""
    body = [[str(item["rank"]), escape(str(item["model"])), view.letters(item)] for item in comparison["ranking"]]
    metric = escape(run.metric(str(comparison.get("metric", "score"))).title)
    return f"**Ranking by {metric}** (who shares a letter cannot be told apart)\n\n" + rows(
        ["rank", "model", "tie group"], body, left=3
    )


def _modes(run: Run) -> str:
    modes = failure_modes(run)["rows"][:_MODES]
    body = [
        [escape(row["model"]), escape(row["rule"]), numbers.count(row["samples"]), numbers.count(row["critical"])]
        for row in modes
    ]
    return (
        "**Most frequent failures**\n\n" + rows(["model", "rule", "samples", "critical"], body, left=2) if body else ""
    )


def _provenance(run: Run) -> str:
    digests = ", ".join(f"{escape(name)} `{value[:16]}`" for name, value in run.manifest.digests.items())
    return f"Digests: {digests}"
