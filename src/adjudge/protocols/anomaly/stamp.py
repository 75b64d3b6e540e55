"""The stamp on a result, and the reviewer's checklist that it stands on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from adjudge.protocols.anomaly.checks import FAIL, NOT_APPLICABLE, PASS
from adjudge.protocols.anomaly.judge import Judgement

VALID, OPEN, INVALID = "VALID", "VALID WITH OPEN ITEMS", "INVALID"
UNKNOWN = "unknown"
REPRODUCED = "one-command reproduction tested"
WORST = "worst-case attack disclosed"
_REPRODUCE = "adjudge anomaly reproduce RUN"
_LINES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("code leakage check passes", ("code.clean",), "adjudge anomaly … --check-code SRC"),
    (
        "splits leakage check passes",
        ("split.disjoint", "split.covers", "split.no_shuffle"),
        "adjudge leakage --splits SPLITS --data DATA",
    ),
    ("no banned sensors in the feature list", ("feature.banned",), "adjudge leakage --data DATA"),
    (
        "threshold calibrated on validation, not test",
        ("threshold.clean_val_only",),
        "adjudge anomaly … (no --threshold)",
    ),
    ("N-consecutive rule documented", ("decision.n_consecutive",), "adjudge anomaly … --n-consecutive N"),
    ("bootstrap CIs reported", ("ci.bootstrap",), "adjudge anomaly … --resamples 2000"),
    (WORST, ("metrics.complete",), "adjudge anomaly … --catalog CATALOG (or labelled test flights)"),
)

Line = dict[str, Any]


class Reproduction(NamedTuple):
    """How a reproduction ended, and whether it was of the evaluation alone because the scores came from elsewhere."""

    held: bool
    evaluation_only: bool


def checklist(judgement: Judgement, reproduced: Reproduction | None) -> list[Line]:
    """The reviewer's lines, each with the rules it rests on and the command that closes it while it is open."""
    lines = []
    attacked = bool(judgement.decisions.attacked[judgement.test].any())
    for text, codes, command in _LINES:
        checks = [judgement.checks[code] for code in codes]
        outcomes = {check.outcome for check in checks}
        outcome = FAIL if FAIL in outcomes else UNKNOWN if NOT_APPLICABLE in outcomes else PASS
        why = "; ".join(check.reasons[0] for check in checks if check.outcome == NOT_APPLICABLE and check.reasons)
        if text == WORST and not attacked and outcome == PASS:
            outcome, why = UNKNOWN, "no attack was judged"
        lines.append(_line(text, outcome, codes, command, why))
    lines.append(_reproduction_line(reproduced))
    return lines


def _line(text: str, outcome: str, codes: Sequence[str], command: str, why: str) -> Line:
    closed_by = command if outcome == UNKNOWN else ""
    return {"line": text, "outcome": outcome, "atoms": list(codes), "why": why, "closed_by": closed_by}


def _reproduction_line(reproduced: Reproduction | None) -> Line:
    if reproduced is None:
        return _line(REPRODUCED, UNKNOWN, (), _REPRODUCE, "it was not tried")
    why = "the evaluation alone: the scores were read again, not made again" if reproduced.evaluation_only else ""
    return _line(REPRODUCED, PASS if reproduced.held else FAIL, (), _REPRODUCE, why)


def open_items(judgement: Judgement, lines: Sequence[Line]) -> list[Line]:
    """What is not known: lines of the checklist, and further rules that could not be checked."""
    covered = {code for line in lines for code in line["atoms"]}
    return [
        *({"item": line["line"], "why": line["why"]} for line in lines if line["outcome"] == UNKNOWN),
        *(
            {"item": check.code, "why": "; ".join(check.reasons[:2])}
            for check in judgement.checks.values()
            if check.outcome == NOT_APPLICABLE and not check.moot and check.code not in covered
        ),
    ]


def stamp(*, valid: bool, left_open: bool) -> str:
    """The word that stands above all numbers."""
    return INVALID if not valid else OPEN if left_open else VALID


def fill_reproduction(top: Line, reproduced: Reproduction) -> None:
    """Say in the checklist of a detector, and on its stamp, how its reproduction ended."""
    top["checklist"][-1] = _reproduction_line(reproduced)
    top["open_items"] = [item for item in top["open_items"] if item["item"] != REPRODUCED]
    top["stamp"] = stamp(valid=top["valid"], left_open=bool(top["open_items"]))


def combined(tops: Sequence[Line]) -> Line:
    """The stamp over several detectors: the worst of theirs."""
    valid = all(top["valid"] for top in tops)
    return {"valid": valid, "stamp": stamp(valid=valid, left_open=any(top["open_items"] for top in tops))}
