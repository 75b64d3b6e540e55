"""Small runs of a quiz protocol, written with the real run writer: one rule, one atom a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.rule import Finding, Rule, Slot
from adjudge.evidence.vocabulary import Scope
from adjudge.provenance.canonical import digest
from adjudge.provenance.manifest import SCHEMA_VERSION, InputFile, Manifest
from adjudge.runs.run import Run
from adjudge.runs.writer import CHARTS, METRICS, RULES, PartWriter, RunWriter

MakeRun = Callable[..., Run]


class _Answers:
    def __init__(self, right: np.ndarray) -> None:
        self.right, self.n = right, right.size


def _check(batch: _Answers) -> Finding:
    wrong = ~batch.right[None, :]
    return Finding(failed=wrong, critical=wrong)


_RULE = Rule(
    code="quiz.answer",
    title="The answer is right",
    scope=Scope.SAMPLE,
    slots=(Slot(None, 1),),
    passed="the answer is right",
    failed="the answer is wrong",
    check=_check,
)


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """make_run(name, {model: right or wrong}, …): a finished run; extra columns are {name: {model: values}}."""

    def make(
        name: str,
        models: dict[str, Sequence[bool]],
        *,
        ids: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        columns: dict[str, dict[str, Sequence[Any]]] | None = None,
        top: dict[str, Any] | None = None,
        digests: dict[str, str] | None = None,
        config: dict[str, Any] | None = None,
        protocol: str = "quiz",
        version: str = "1",
        trials: int = 1,
        shuffle: int | None = None,
        says: str = "",
    ) -> Run:
        n = len(next(iter(models.values())))
        ids = [f"q{index:06d}" for index in range(n // trials)] if ids is None else list(ids)
        labels = ["yes"] * len(ids) if labels is None else list(labels)
        order = np.arange(n) if shuffle is None else np.random.default_rng(shuffle).permutation(n)
        config = {"outputs": [f"{name}.jsonl"], **(config or {"strict": True})}
        rules = [_RULE.table()]
        stated = {
            "config": digest({key: value for key, value in config.items() if key != "outputs"}),
            "rules": digest(rules),
            "dataset": digest([ids, labels]),
            **(digests or {}),
        }
        out = tmp_path / name
        with RunWriter(out) as writer:
            part = PartWriter(writer.folder, 0)
            for model, values in models.items():
                right = np.asarray(values, dtype=bool)[order]
                samples = [ids[index // trials] for index in order]
                found: dict[str, Any] = {
                    "sample": pa.array(samples),
                    "model": pa.array([model] * n).dictionary_encode(),
                    "bucket": pa.array(np.where(right, "passed", "failed")).dictionary_encode(),
                    "verdict": pa.array(np.where(right, "right", "wrong")).dictionary_encode(),
                    "label": pa.array([labels[index // trials] for index in order]),
                }
                if trials > 1:
                    found["trial"] = pa.array([int(index % trials) for index in order])
                for column, by_model in (columns or {}).items():
                    found[column] = pa.array([by_model[model][index] for index in order])
                evidence = VerifierGraph([_RULE]).evaluate(_Answers(right))
                texts = pa.table(
                    {"response": pa.array([f"{sample}:{ok}{says}" for sample, ok in zip(samples, right, strict=True)])}
                )
                part.add(pa.table(found), evidence, texts)
            part.close()
            writer.add_samples(part.samples)
            writer.write_json(
                METRICS,
                {
                    "schema_version": SCHEMA_VERSION,
                    "protocol": protocol,
                    "protocol_version": version,
                    "digests": stated,
                    "pass": None,
                    "gates": {},
                    "buckets": {},
                    "metrics": {},
                    "estimates": [],
                    "notes": [],
                    **(top or {}),
                },
            )
            writer.write_json(CHARTS, [])
            writer.write_json(RULES, {"schema_version": SCHEMA_VERSION, "rules": rules})
            writer.commit(
                Manifest(
                    schema_version=SCHEMA_VERSION,
                    protocol=protocol,
                    protocol_version=version,
                    command=[],
                    config=config,
                    digests=stated,
                    seeds={"seed": 0},
                    inputs=[InputFile(role="outputs", name=f"{name}.jsonl", bytes=0, sha256="")],
                    files=[],
                    environment={},
                    notes=[],
                    timestamp="2026-01-01T00:00:00+00:00",
                    timings={},
                )
            )
        return Run(out)

    return make


@pytest.fixture
def pairs() -> Callable[..., tuple[list[bool], list[bool]]]:
    """Two columns of right and wrong with these four counts."""

    def build(both: int, only_a: int, only_b: int, neither: int) -> tuple[list[bool], list[bool]]:
        first = [True] * (both + only_a) + [False] * (only_b + neither)
        second = [True] * both + [False] * only_a + [True] * only_b + [False] * neither
        return first, second

    return build
