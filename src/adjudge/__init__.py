"""adjudge turns outputs you already have into verdicts that anyone can check.

    import adjudge
    run = adjudge.evaluate("triage", results="results.jsonl", seed=1)
    print(run.report())

This module is the door for people who evaluate; `adjudge.extend` is the one for packages that add rules or protocols.
Nothing else is public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adjudge.errors import (
    AdjudgeError,
    CitationRefused,
    ConfigError,
    InputError,
    InstrumentError,
    NotComparable,
    OutputError,
    PromiseBroken,
    ProtocolViolation,
    RunError,
    StatsError,
    VerificationFailed,
)

if TYPE_CHECKING:
    from adjudge.api import Comparison, Run, compare, evaluate, load_run, verify
    from adjudge.stats.estimate import Estimate, Metric

__all__ = [
    "AdjudgeError",
    "CitationRefused",
    "Comparison",
    "ConfigError",
    "Estimate",
    "InputError",
    "InstrumentError",
    "Metric",
    "NotComparable",
    "OutputError",
    "PromiseBroken",
    "ProtocolViolation",
    "Run",
    "RunError",
    "StatsError",
    "VerificationFailed",
    "compare",
    "evaluate",
    "load_run",
    "verify",
]

_ELSEWHERE = {"Estimate": "adjudge.stats.estimate", "Metric": "adjudge.stats.estimate"}


def __getattr__(name: str) -> Any:
    """Everything that needs NumPy and Arrow, imported when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'adjudge' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_ELSEWHERE.get(name, "adjudge.api")), name)
    globals()[name] = value
    return value
