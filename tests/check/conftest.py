"""Rule files from text, and evaluations of rows that a test writes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import adjudge
from adjudge.engine.evaluate import Options, evaluate
from adjudge.protocols.base import protocol
from adjudge.protocols.check.document import parse
from adjudge.protocols.check.reading import rule_file
from adjudge.protocols.check.rulefile import RuleFile
from adjudge.runs.run import Run


def rules_of(text: str) -> RuleFile:
    return rule_file(parse(textwrap.dedent(text), "rules.yaml"))


def lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


@pytest.fixture
def judge(tmp_path: Path) -> Callable[..., Run]:
    """Judge answers (objects, or texts) by the text of a rule file."""

    def run(
        rules: str,
        answers: Sequence[Any],
        *,
        reference: Sequence[Mapping[str, Any]] = (),
        workers: int = 1,
        **settings: Any,
    ) -> Run:
        folder = tmp_path / f"case{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        rows = [
            answer
            if isinstance(answer, dict) and "response" in answer
            else {"id": f"s{place:03d}", "model": "m", "response": answer if isinstance(answer, str) else _text(answer)}
            for place, answer in enumerate(answers)
        ]
        (folder / "outputs.jsonl").write_bytes(lines(rows))
        (folder / "rules.yaml").write_text(textwrap.dedent(rules))
        config: dict[str, Any] = {
            "outputs": [str(folder / "outputs.jsonl")],
            "rule_file": str(folder / "rules.yaml"),
            **settings,
        }
        if reference:
            (folder / "reference.jsonl").write_bytes(lines(reference))
            config["reference"] = [str(folder / "reference.jsonl")]
        return adjudge.load_run(evaluate(protocol("check"), config, Options(out=folder / "run", workers=workers)))

    return run


def _text(answer: Any) -> str:
    return msgspec.json.encode(answer).decode()


def atoms_of(run: Run, sample: str) -> dict[str, tuple[str, str]]:
    """(outcome, why) of every atom of a sample, by rule and field."""
    return {
        atom["rule"] + ("" if atom["field"] is None else f" {atom['field']}"): (atom["outcome"], atom["message"])
        for atom in run.record(sample)["atoms"]
    }
