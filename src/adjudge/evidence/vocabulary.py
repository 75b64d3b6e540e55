"""Outcomes, severities and scopes: small integers in columns, words everywhere else."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Outcome(IntEnum):
    """What one rule found on one sample."""

    PASS = 0
    FAIL = 1
    NOT_APPLICABLE = 2
    ERROR = 3


class Severity(IntEnum):
    """How much a failure matters; a pass is INFO."""

    INFO = 0
    WARNING = 1
    CRITICAL = 2


class Scope(StrEnum):
    """What a rule is about."""

    FIELD = "FIELD"
    SAMPLE = "SAMPLE"
    CROSS_FIELD = "CROSS_FIELD"
    SEQUENCE = "SEQUENCE"
    RUN = "RUN"


# The same as plain integers, for comparisons with columns.
PASS, FAIL, NOT_APPLICABLE, ERROR = (int(outcome) for outcome in Outcome)
WARNING, CRITICAL = int(Severity.WARNING), int(Severity.CRITICAL)

OUTCOMES = ("pass", "fail", "not_applicable", "error")
SEVERITIES = ("INFO", "WARNING", "CRITICAL")
BUCKETS = ("passed", "failed", "abstained", "unparsed", "errored", "missing")
