"""What the engine promises, counts and measures of every run, whoever wrote the protocol, and metrics.json, which says it.

Every sample has an id, a model, a bucket and a verdict; every verdict cites atoms that exist, and one that did not pass
cites at least one atom that did not pass; the buckets are the six words and add up to n, for every model. The promises are
held when a run is written, and again by `verify`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.engine import judges, matching
from adjudge.engine.judges import JudgeTally
from adjudge.engine.matching import IdDigest, Matching
from adjudge.evidence.atoms import pack_citations
from adjudge.evidence.rule import Layout
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, NOT_APPLICABLE, PASS
from adjudge.protocols.base import Measured, Plan, Protocol, protocol
from adjudge.provenance.manifest import SCHEMA_VERSION
from adjudge.runs.run import Run
from adjudge.stats.estimate import Metric, by_gate_name, declaration, headline, stored
from adjudge.verdict.gates import Gate, judge

WORDS = ("sample", "model", "bucket", "verdict")
"""Columns of text that every sample has; only a row that is no sample of the data set has no bucket."""

_NAMED = 6  # rules in a note


def problems_of(samples: pa.Table, evidence: Evidence) -> list[str]:
    """Which promises one batch breaks, each with the first sample that does."""
    return column_problems(samples, evidence.n) or citation_problems(samples, evidence)


def column_problems(samples: pa.Table, n: int) -> list[str]:
    """Columns that are missing, of another type, or empty."""
    problems = []
    for name in (*WORDS, "cites"):
        if name not in samples.column_names:
            problems.append(f"samples have no column {name!r}")
            continue
        column = samples.column(name)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        expected, is_expected = ("binary", pa.types.is_binary) if name == "cites" else ("text", pa.types.is_string)
        if not is_expected(kind):
            problems.append(f"column {name!r} of the samples is {column.type}, expected {expected}")
        elif column.null_count and name != "bucket":
            problems.append(f"column {name!r} of the samples is empty on {column.null_count} rows")
    if samples.num_rows != n:
        problems.append(f"there are {samples.num_rows} samples and evidence for {n}")
    if not problems:
        known = set(_words(samples, "bucket")[1])
        problems += [f"bucket {word!r} is not one of {', '.join(BUCKETS)}" for word in sorted(known - {*BUCKETS})]
    return problems


def citation_problems(samples: pa.Table, evidence: Evidence) -> list[str]:
    """Verdicts that cite nothing, what is not there, or nothing that did not pass."""
    width, n = evidence.outcome.shape
    if not n:
        return []
    column = samples.column("cites").combine_chunks()
    size = -(-width // 8)
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset : column.offset + n + 1]
    if (np.diff(offsets) != size).any():
        return [f"cites are not {size} bytes a sample, a bit for each of its {width} atoms"]
    cited = np.frombuffer(column.buffers()[2], dtype=np.uint8)[offsets[0] : offsets[-1]].reshape(n, size)
    beyond = np.zeros(size, dtype=np.uint8)
    beyond[-1] = 0xFF << (width - 8 * (size - 1)) & 0xFF
    not_passed = np.frombuffer(pack_citations(evidence.outcome != PASS).buffers()[2], dtype=np.uint8).reshape(n, size)
    bucket, words = _words(samples, "bucket")
    passed = np.array([*(word == "passed" for word in words), False])[bucket]
    wrong = {
        "cites no evidence": ~cited.any(axis=1),
        "cites an atom that does not exist": (cited & beyond).any(axis=1),
        "did not pass, but cites no atom that did not pass": ~passed & ~(cited & not_passed).any(axis=1),
    }
    return [
        f"the verdict on {_name(samples, int(np.argmax(rows)))} {what} ({int(rows.sum())} of {n} samples)"
        for what, rows in wrong.items()
        if rows.any()
    ]


def _name(samples: pa.Table, row: int) -> str:
    return f"{samples.column('model')[row].as_py()}/{samples.column('sample')[row].as_py()}"


def _words(samples: pa.Table, name: str) -> tuple[NDArray[np.int64], list[str]]:
    """A column of words as codes, −1 for none, and the words."""
    column = samples.column(name).combine_chunks()
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return coded.indices.fill_null(-1).to_numpy().astype(np.int64), coded.dictionary.to_pylist()


@dataclass
class Tally:
    """Counts over all batches: samples by model and bucket, and the atoms of every position that could be judged."""

    buckets: Counter[tuple[str, str]] = field(default_factory=Counter)
    outside: int = 0
    """Rows that are no samples of the data set: they have no bucket and count nowhere."""
    samples: int = 0
    applied: Counter[int] = field(default_factory=Counter)
    reasons: defaultdict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, samples: pa.Table, evidence: Evidence) -> None:
        """Count one batch."""
        model, models = _words(samples, "model")
        bucket, words = _words(samples, "bucket")
        inside = bucket >= 0
        pairs, counts = np.unique(model[inside] * len(words) + bucket[inside], return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            self.buckets[models[pair // len(words)], words[pair % len(words)]] += count
        self.outside += int(np.count_nonzero(~inside))
        self.samples += evidence.n
        judged = (evidence.outcome != NOT_APPLICABLE).sum(axis=1)
        for position, count in enumerate(judged.tolist()):
            self.applied[position] += count
            if not self.applied[position] and evidence.reasons.codes is not None:
                values, counts = np.unique(evidence.reasons.codes[position], return_counts=True)
                named = zip(values.tolist(), counts.tolist(), strict=True)
                self.reasons[position].update(
                    {evidence.reasons.texts[code]: count for code, count in named if code >= 0}
                )

    def merge(self, other: Tally) -> None:
        """Add the counts of other batches."""
        self.buckets += other.buckets
        self.outside += other.outside
        self.samples += other.samples
        self.applied.update(other.applied)
        for position, counter in other.reasons.items():
            self.reasons[position].update(counter)

    def of_models(self) -> dict[str, dict[str, int]]:
        """The buckets of all samples, then of every model, each with its n."""
        counts = {name: dict.fromkeys(BUCKETS, 0) for name in ("all", *sorted({model for model, _ in self.buckets}))}
        for (model, bucket), count in self.buckets.items():
            for name in {"all", model}:
                counts[name][bucket] += count
        return {name: words | {"n": sum(words.values())} for name, words in counts.items()}

    def closed(self, buckets: Mapping[str, Any]) -> tuple[dict[str, dict[str, int]], list[str]]:
        """The protocol's buckets with all six words, and where they are not what the samples give."""
        by_model = self.of_models()
        written: dict[str, dict[str, int]] = {}
        problems: list[str] = []
        if "all" not in buckets:
            problems.append("buckets have no row `all`")
        for name, counts in buckets.items():
            words = {bucket: int(counts.get(bucket, 0)) for bucket in BUCKETS}
            written[name] = words | {"n": int(counts.get("n", sum(words.values())))}
            unknown = sorted(counts.keys() - {*BUCKETS, "n"})
            if unknown:
                problems.append(f"buckets of {name}: {unknown[0]!r} is not one of {', '.join(BUCKETS)}")
            if sum(words.values()) != written[name]["n"]:
                problems.append(f"buckets of {name} add up to {sum(words.values())}, but n is {written[name]['n']}")
            elif name not in by_model:
                problems.append(f"buckets of {name}: no sample has that model")
            elif written[name] != by_model[name]:
                problems.append(f"buckets of {name} are not those of its samples")
        return written, problems

    def notes(self, layout: Layout) -> list[str]:
        """Verifiers and rules that could be applied nowhere, and rows that count nowhere."""
        notes = []
        if self.outside:
            notes.append(
                f"{self.outside:,} rows are about nothing in the data set: they have no bucket and count nowhere"
            )
        if not self.samples:
            return notes
        idle = [position for position in range(layout.width) if not self.applied[position]]
        families: defaultdict[str, list[int]] = defaultdict(list)
        for position, place in enumerate(layout.positions):
            families[place.rule["family"]].append(position)
        for family, positions in families.items():
            if set(positions) <= set(idle):
                notes.append(f"verifier {family} was nowhere applicable{self._why(positions)}")
                idle = [position for position in idle if position not in positions]
        by_reason: dict[str, list[str]] = {}
        for position in idle:
            code = str(layout.positions[position].rule["code"])
            if not any(self.applied[place] for place in layout.positions_of(code).tolist()):
                by_reason.setdefault(self._why([position]), []).append(code)
        for reason, codes in by_reason.items():
            names = list(dict.fromkeys(codes))
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            notes.append(f"nowhere applicable: {', '.join(names[:_NAMED])}{more}{reason}")
        return notes

    def _why(self, positions: Sequence[int]) -> str:
        """The most frequent reason, in words."""
        counter = sum((self.reasons[position] for position in positions), Counter[str]())
        if not counter:
            return ""
        text = min(counter, key=lambda reason: (-counter[reason], reason))
        return f" ({text})" if len(counter) == 1 else f" (mostly: {text})"


@dataclass
class Counted:
    """What the engine counts itself, for every protocol alike."""

    tally: Tally = field(default_factory=Tally)
    matching: Matching = field(default_factory=Matching)
    ids: IdDigest = field(default_factory=IdDigest)
    """Of the records that the samples are about; `read_ids` of all that were read."""
    read_ids: IdDigest = field(default_factory=IdDigest)
    judges: JudgeTally = field(default_factory=JudgeTally)

    def merge(self, other: Counted) -> None:
        """Add what was counted of other partitions."""
        self.tally.merge(other.tally)
        self.matching.merge(other.matching)
        self.ids.merge(other.ids)
        self.read_ids.merge(other.read_ids)
        if other.judges.asked:
            self.judges.merge(other.judges)

    def intake(self, notes: Sequence[str]) -> dict[str, Any]:
        """What intake.json says of the input, which nothing in the run repeats."""
        digests = {"ids_sha256": self.ids.hexdigest(), "read_ids_sha256": self.read_ids.hexdigest()}
        return {**self.matching.to_dict(), **digests, "notes": list(notes)}


def verdict_word(passed: bool | None) -> str | None:
    """Whether all gates pass, as the manifest says it."""
    return {True: "pass", False: "fail", None: None}[passed]


def metrics_of(chosen: Protocol) -> Sequence[Metric]:
    """The metrics of a protocol, and those that the engine adds to every run."""
    return (*chosen.metrics(), *matching.METRICS, *judges.METRICS)


def introduce(run: Run) -> None:
    """Tell an opened run what its installed protocol says of it: the record view, the metrics, what a page shows of a sample."""
    chosen = protocol(run.manifest.protocol)
    run.recorder, run.declarations, run.panels = chosen.record, partial(metrics_of, chosen), chosen.panels


def metrics_document(
    chosen: Protocol, plan: Plan, measured: Measured, counted: Counted, gates: Sequence[Gate]
) -> tuple[dict[str, Any], list[str]]:
    """The document, from the numbers alone, so that `verify` can make it again; and the promises that it breaks."""
    protocol_names = {name for name, _, _ in measured.estimates}
    counted_here, tables = [*counted.matching.estimates()], [*measured.sections]
    if plan.adjudicator is not None and counted.judges.asked:
        counted_here += counted.judges.estimates()
        tables += counted.judges.sections(plan.adjudicator.document())
    estimates = [*measured.estimates, *(named for named in counted_here if named.name not in protocol_names)]
    names = [named.name for named in estimates]
    metrics = metrics_of(chosen)
    outcomes, passed = judge(gates, by_gate_name(estimates)) if gates else ({}, None)
    tally = counted.tally
    counted_buckets = {"all": tally.of_models()["all"]} if measured.one_model else tally.of_models()
    buckets, problems = tally.closed(measured.buckets or counted_buckets)
    document = {
        "schema_version": SCHEMA_VERSION,
        "protocol": chosen.name,
        "protocol_version": chosen.version,
        "digests": {**plan.digests, **measured.digests},
        "pass": passed,
        "gates": outcomes,
        "buckets": buckets,
        "headline": headline(metrics, names),
        "declared": stored(metrics, names),
        **_top(measured.top, metrics),
        **({"sections": [section.to_dict() for section in tables]} if tables else {}),
        "metrics": measured.metrics,
        "estimates": [{"name": name, "slice": where, **estimate.to_dict()} for name, where, estimate in estimates],
        "notes": [*counted.matching.notes(), *tally.notes(Layout.of(plan.rules)), *measured.notes],
    }
    return document, problems


def _top(top: dict[str, Any], metrics: Sequence[Metric]) -> dict[str, Any]:
    """The protocol's keys; what can be compared takes its direction, unit and range from the metric of the same name."""
    outcomes = top.get("comparable")
    if not isinstance(outcomes, list):
        return top
    comparable = []
    for outcome in outcomes:
        metric, declared = declaration(metrics, outcome["name"]), dict[str, Any]()
        if metric is not None and metric.better is not None:
            declared["higher_is_better"] = metric.better == "higher"
        if metric is not None and outcome["kind"] == "mean":
            declared |= {"unit": metric.unit} if metric.unit else {}
            declared |= {"span": metric.high - metric.low} if metric.low is not None and metric.high is not None else {}
        comparable.append({**declared, **outcome})
    return {**top, "comparable": comparable}
