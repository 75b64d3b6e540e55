"""A protocol in one file: is the answer, letter for letter, the one in the gold file?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from adjudge import extend as adj

EXPECTED = "a row has id and answer"


class Config(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    answers: list[str]
    gold: list[str]
    seed: int = 0


class Row(msgspec.Struct):
    id: str
    answer: str
    model: str | None = None  # a gold answer has none


ROLES = {role: adj.Role(Row, (("id",), ("answer",)), f"adjudge exact --{role} FILE …") for role in ("answers", "gold")}


@dataclass
class Batch:
    answers: list[str | None]
    gold: list[str]

    @property
    def n(self):
        return len(self.gold)

    def answered(self):
        return np.array([[answer is not None for answer in self.answers]])

    def right(self):
        return np.array([[answer == gold for answer, gold in zip(self.answers, self.gold, strict=True)]])


def build(context):
    def rule(code, words, holds, **more):
        check = lambda batch: adj.Finding(~holds(batch), ~holds(batch))  # noqa: E731
        return adj.Rule(code=code, title=words, passed="yes", failed=f"not so: {words}", check=check, **more)

    given = rule("answer.given", "there is an answer", Batch.answered)
    return [given, rule("match.exact", "it is the gold answer", Batch.right, needs=("answer",))]


RULES = adj.RuleSet("exact", "exact", build)


class ExactPlan(adj.BatchPlan):
    source = "the stored answers give"

    def __init__(self, options):
        self.settings = adj.configured("exact", options, Config)
        self.config = msgspec.to_builtins(self.settings)
        self.use_rules("exact", None)
        self.use_digests(without=("answers", "gold"), rules=self.rules)

    def inputs(self):
        files = {role: tuple(getattr(self.settings, role)) for role in ROLES}
        return [adj.Input(role, files[role], None, EXPECTED, read=self.rows, keys=Row) for role in ROLES]

    def rows(self, block):
        rows = block.decode(msgspec.json.Decoder(Row), EXPECTED)
        names = {"key": "id", "group": "model", "answer": "answer"}
        return pa.table({name: pa.array([getattr(r, key) for r in rows], pa.string()) for name, key in names.items()})

    def judge(self, partition):
        found = {}
        for row in pa.concat_tables(partition.tables.values()).to_pylist():
            if (row["key"], row["group"]) in found:
                raise adj.InputError(f"id {row['key']!r} stands there twice for {row['group'] or 'the gold answers'}")
            found[row["key"], row["group"]] = row["answer"]
        keys = [(key, model) for key in sorted({k for k, m in found if m is None}) for model in partition.groups]
        if keys:
            batch = Batch([found.get(key) for key in keys], [found[key, None] for key, _ in keys])
            evidence = self.graph.evaluate(batch)
            texts = {"sample": [k for k, _ in keys], "model": [m for _, m in keys]}
            texts |= {"answer": batch.answers, "gold": batch.gold}
            columns = {name: pa.array(column, pa.string()) for name, column in texts.items()}
            samples = pa.table(columns | self.decided(batch, evidence))
            yield adj.Judged(samples, evidence, pa.table({"response": columns["answer"]}), batch)

    def restore(self, samples):
        return Batch(*(samples.column(name).to_pylist() for name in ("answer", "gold")))

    def decided(self, batch, evidence):
        (answered,), (right,) = batch.answered(), batch.right()
        buckets = np.select([right, answered], ["passed", "failed"], "missing")
        verdicts, cites = np.where(right, "right", "wrong"), adj.pack_citations(evidence.outcome >= 0)
        return {"bucket": pa.array(buckets), "verdict": pa.array(verdicts), "cites": cites}

    def partial(self, samples, evidence, batch=None):
        models, ends = (samples.column(name).to_pylist() for name in ("model", "bucket"))
        return Counter(models), Counter(model for model, end in zip(models, ends, strict=True) if end == "passed")

    def finish(self, partials):
        n, right = (sum(counts, Counter()) for counts in zip(*partials, strict=True))
        return adj.Measured([adj.Named("exact_match", f"model={m}", adj.wilson(right[m], n[m])) for m in sorted(n)])


class Exact(adj.Protocol):
    name, version, title = "exact", "1", "Exact matches"
    plan = staticmethod(ExactPlan)
    roles = staticmethod(lambda: ROLES)
    metrics = staticmethod(lambda: [adj.share("exact_match", headline=True, formula="right ÷ all", interval="Wilson")])


PROTOCOL = Exact()
