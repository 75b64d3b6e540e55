"""A run as an in-toto statement: its files as subjects, its gates as a test result."""

from __future__ import annotations

from typing import Any

import msgspec

from adjudge.runs.run import Run
from adjudge.runs.writer import MANIFEST

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
_NO_GATES = "no gates: nothing was held to a bound"


def statement(run: Run) -> bytes:
    """The statement (v1) with a test-result predicate (v0.1): a gate that is not passed has failed.

    A run without gates has passed nothing: its result is WARNED, and says why.
    """
    outcomes = {name: gate["outcome"] for name, gate in run.metrics["gates"].items()}
    passed = [name for name, outcome in outcomes.items() if outcome == "pass"]
    failed = [name for name, outcome in outcomes.items() if outcome != "pass"]
    subjects = [_described(MANIFEST, run.digest)]
    document = {
        "_type": STATEMENT,
        "subject": [*subjects, *(_described(entry.path, entry.sha256) for entry in run.manifest.files)],
        "predicateType": PREDICATE,
        "predicate": {
            "result": "FAILED" if failed else "PASSED" if passed else "WARNED",
            "configuration": [
                *(_described(entry.name, entry.sha256) for entry in run.manifest.inputs),
                {"name": "config", "digest": {"sha256": run.manifest.digests["config"]}},
            ],
            "passedTests": passed,
            "warnedTests": [] if outcomes else [_NO_GATES],
            "failedTests": failed,
        },
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _described(name: str, sha256: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": sha256}}
