"""Check: what one rule of the contract found on a run, with every reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

PASS, FAIL, NOT_APPLICABLE = "pass", "fail", "not_applicable"


@dataclass
class Check:
    """The outcome of a rule, the reasons for it, and whether a failure is only a warning."""

    code: str
    outcome: str = PASS
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warning: bool = False
    observed: float | None = None
    moot: bool = False
    """Whether there was nothing to check, so that nothing is left open."""

    @classmethod
    def unknown(cls, code: str, reason: str, notes: Iterable[str] = ()) -> Check:
        """A rule that could not be checked, and why."""
        return cls(code, NOT_APPLICABLE, [reason], list(notes))

    @classmethod
    def not_needed(cls, code: str, reason: str) -> Check:
        """A rule with nothing to check, and why."""
        return cls(code, NOT_APPLICABLE, [reason], moot=True)

    @classmethod
    def of(cls, content: dict[str, Any]) -> Check:
        """A check from leakage_report.json."""
        fields = {name: content[name] for name in cls.__dataclass_fields__ if name != "warning"}
        return cls(**fields, warning=content["severity"] == "WARNING")

    def fail(self, reason: str) -> None:
        """Add a reason to fail."""
        self.outcome = FAIL
        self.reasons.append(reason)

    @property
    def leak(self) -> bool:
        """Whether the rule failed and is not only a warning."""
        return self.outcome == FAIL and not self.warning

    def to_dict(self) -> dict[str, Any]:
        """Plain data for leakage_report.json."""
        severity = "WARNING" if self.warning else "CRITICAL" if self.outcome == FAIL else "INFO"
        others = {name: value for name, value in vars(self).items() if name not in {"code", "outcome", "warning"}}
        return {"code": self.code, "outcome": self.outcome, "severity": severity, **others}


def merged(checks: Iterable[Check]) -> dict[str, Check]:
    """One check a code: a failure wins over a pass, a pass over what could not be checked; all reasons are kept."""
    by_code: dict[str, Check] = {}
    for check in checks:
        known = by_code.get(check.code)
        if known is None or (known.outcome == NOT_APPLICABLE and check.outcome != NOT_APPLICABLE):
            by_code[check.code] = check
        elif check.outcome != NOT_APPLICABLE:
            by_code[check.code] = Check(
                check.code,
                FAIL if FAIL in {known.outcome, check.outcome} else PASS,
                known.reasons + check.reasons,
                known.notes + check.notes,
                known.warning or check.warning,
                check.observed if known.observed is None else known.observed,
            )
    return by_code
