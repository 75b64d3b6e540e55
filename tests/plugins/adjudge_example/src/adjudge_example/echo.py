"""A whole protocol in one file: was the answer, word for word, the question?"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.extend import (
    Finding,
    Input,
    Judged,
    Measured,
    Named,
    Plan,
    Protocol,
    Rule,
    RuleSet,
    Scope,
    Slot,
    VerifierGraph,
    digest,
    rule_sets,
    wilson,
)


@dataclass
class Batch:
    """Questions and answers."""

    asked: list[str]
    said: list[str]

    @property
    def n(self):
        return len(self.asked)


def _same(batch):
    failed = np.array([[a != b for a, b in zip(batch.asked, batch.said, strict=True)]])
    return Finding(failed, failed)


def build(context):
    return [
        Rule(
            code="echo.same_words",
            title="the answer is the question",
            scope=Scope.SAMPLE,
            slots=(Slot(None, 0),),
            passed="the answer is the question",
            failed="the answer is something else",
            check=_same,
        )
    ]


RULES = RuleSet("echo", "echo", build)


class EchoPlan(Plan):
    def __init__(self, config):
        self.config = {"file": config["file"], "seed": config.get("seed", 0)}
        self.graph = VerifierGraph([rule for rules in rule_sets("echo", ()) for rule in rules.build(None)])
        self.rules = [rule.table() for rule in self.graph.rules]
        self.digests = {"rules": digest(self.rules)}

    def inputs(self):
        def key(path, line, text):
            return str(msgspec.json.decode(text)["id"]), None

        return [Input("rows", (self.config["file"],), key, "a row has id, asked and said", limited=True)]

    def judge(self, partition):
        rows = sorted(
            (msgspec.json.decode(text) for _, _, text in partition.rows["rows"]), key=lambda row: str(row["id"])
        )
        if not rows:
            return
        batch = Batch([row["asked"] for row in rows], [row["said"] for row in rows])
        evidence = self.graph.evaluate(batch)
        passed = evidence.outcome[0] == 0
        samples = pa.table(
            {
                "sample": [str(row["id"]) for row in rows],
                "model": ["echo"] * batch.n,
                "bucket": ["passed" if ok else "failed" for ok in passed],
                "verdict": ["same" if ok else "other" for ok in passed],
                "cites": [b"\x01"] * batch.n,
                "asked": batch.asked,
                "said": batch.said,
            }
        )
        yield Judged(samples, evidence, pa.table({"response": batch.said}))

    def recheck(self, samples, evidence):
        again = self.graph.evaluate(Batch(samples.column("asked").to_pylist(), samples.column("said").to_pylist()))
        return [f"evidence: {text}" for text in again.differences(evidence)]

    def partial(self, samples, evidence, batch=None):
        del samples, batch
        return (int((evidence.outcome[0] == 0).sum()), evidence.n)

    def finish(self, partials):
        passed, n = (sum(column) for column in zip(*partials, strict=True))
        rate = wilson(passed, n)
        return Measured(
            estimates=[Named("echo_rate", "", rate)],
            buckets={"all": {"passed": passed, "failed": n - passed, "n": n}},
            metrics={"echo_rate": rate.value},
        )


class Echo(Protocol):
    name, version, title = "echo", "1", "Echoes"

    def plan(self, config):
        return EchoPlan(config)


PROTOCOL = Echo()
