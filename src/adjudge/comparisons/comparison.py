"""compare: from runs to a comparison, a plain object that holds every number and can be written as JSON."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.comparisons.flips import Flips, flips
from adjudge.comparisons.guard import (
    CACHE,
    LATENCY,
    Guard,
    Status,
    cache_state,
    combined,
    examine,
    grouped,
    in_state,
    latency_refused,
    named_factor,
)
from adjudge.comparisons.outcomes import EVERY, PASSED, Outcome, chosen, equal_rows, holds, plain
from adjudge.comparisons.paired import Compared, Paired, Pairs, Settings, pair
from adjudge.comparisons.rankings import Folded, Ranking, foremost, rankings
from adjudge.comparisons.sums import summed
from adjudge.comparisons.systems import SYSTEM_COLUMNS, System, select
from adjudge.errors import ConfigError, NotComparable
from adjudge.provenance.manifest import SCHEMA_VERSION
from adjudge.runs.run import Run
from adjudge.stats.ties import benjamini_hochberg, holm

EVIDENCE_SHOWN = 20
_MOST_SLICES, _MOST_SYSTEMS = 50, 64
_PLACE = {"part", "row", *SYSTEM_COLUMNS}
_LATENCY = Outcome(name=LATENCY, column=LATENCY, kind="mean", higher_is_better=False, unit="s", title="latency")


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Whether latencies were compared, and why not."""

    compared: bool
    why: str | None
    cache: list[str]


class PairOfSystems(msgspec.Struct, frozen=True, kw_only=True):
    """The second system held against the first. `verdict` is that of the first metric."""

    a: str
    b: str
    n: int
    samples: int
    identical: bool
    verdict: str
    metrics: list[Compared]
    latency: Latency | None
    flipped: Flips


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The whole result. `status` stays NOT_COMPARABLE, with its reasons, when a comparison was forced."""

    schema_version: str
    protocol: str
    status: Status
    reasons: list[str]
    notes: list[str]
    forced: bool
    factor: str | None
    varied: dict[str, list[Any]]
    alpha: float
    margin: float | None
    margins: dict[str, float]
    seed: int
    resamples: int
    n: int
    samples: int
    tests: int
    systems: list[dict[str, Any]]
    folded: list[Folded]
    pairs: list[PairOfSystems]
    rankings: list[Ranking]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, full precision."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def compare(  # noqa: PLR0913 -- public: every choice of a comparison by its name
    *runs: str | Path | Run,
    model: str | None = None,
    model_a: str | None = None,
    model_b: str | None = None,
    metrics: Sequence[str] = (),
    slices: Sequence[str] = (),
    factor: str | None = None,
    margin: float | None = None,
    margins: Mapping[str, float] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    resamples: int = 2000,
    force: bool = False,
    evidence: int = EVIDENCE_SHOWN,
) -> Comparison:
    """Compare runs (or models: `RUN::MODEL`) on the samples they share; the first is what the others are held against.

    Of one run alone, `factor` pairs the systems that differ in it and in nothing else.
    Raises NotComparable with every reason when the guard says no, unless `force`, which the result records.
    """
    settings = Settings(
        alpha=alpha, margin=margin, margins=dict(margins or {}), seed=seed, resamples=resamples, slices=slices
    )
    chosen_systems = select(runs, model=model, model_a=model_a, model_b=model_b)
    factor = None if factor is None else named_factor(chosen_systems, factor)
    groups = grouped(chosen_systems, factor)
    systems = [system for group in groups for system in group]
    guards = [examine(group, factor=factor) for group in groups]
    guard = combined(guards)
    protocols = {system.run.manifest.protocol for system in systems}
    if guard.reasons and (not force or not all(group_guard.keys for group_guard in guards) or len(protocols) > 1):
        raise NotComparable(guard.reasons)
    latency_alone = LATENCY in metrics
    with_latency = not metrics or latency_alone or list(metrics) == [EVERY]
    outcomes, notes = chosen([system.run for system in systems], [name for name in metrics if name != LATENCY])
    if latency_alone and len(metrics) == 1:
        outcomes = []
    for name in settings.margins:
        if name not in {*(outcome.name for outcome in outcomes), LATENCY}:
            raise ConfigError(f"a margin is given for {name!r}, which is not compared")
    groups, folded, untested_pairs = _folded(groups, guards, outcomes)
    if folded:
        systems = [system for group in groups for system in group]
        notes = [_folding(len(systems), len(folded), outcomes[0].title or outcomes[0].name), *notes]
    pairs = [
        _Pair(first, second, group_guard, outcomes, settings, force=force, latency=with_latency)
        for group, group_guard in zip(groups, guards, strict=True)
        for first, second in combinations(group, 2)
    ]
    if not any(item.paired or item.latency for item in pairs):
        raise NotComparable(["the runs declare no metric alike", *notes])
    if latency_alone:
        refused = [item.latency.why or LATENCY for item in pairs if item.latency and not item.latency.compared]
        refused += [f"{LATENCY} is not recorded" for item in pairs if item.latency is None]
        if refused and len(metrics) == 1:
            raise NotComparable([f"latency is not comparable: {why}" for why in dict.fromkeys(refused)])
    tested = [paired for item in pairs for paired in item.paired]
    p_values = [paired.tests[0].p for paired in tested]
    untested = untested_pairs * max(len(item.paired) for item in pairs)
    adjusted = zip(holm(p_values, untested=untested), benjamini_hochberg(p_values, untested=untested), strict=True)
    corrected = dict(zip(map(id, tested), adjusted, strict=True))
    count = sum(p is not None for p in p_values) + untested
    settled = [item.settle(corrected, count, evidence=evidence) for item in pairs]
    return Comparison(
        schema_version=SCHEMA_VERSION,
        protocol=systems[0].run.manifest.protocol,
        status=guard.status,
        reasons=guard.reasons,
        notes=[*guard.notes, *notes],
        forced=bool(guard.reasons)
        or any(item.latency and item.latency.compared and item.latency.why for item in pairs),
        factor=factor,
        varied=guard.varied,
        alpha=alpha,
        margin=margin,
        margins=dict(settings.margins),
        seed=seed,
        resamples=resamples,
        n=len(guard.keys),
        samples=len(set(systems[0].items(guard.keys))),
        tests=count,
        systems=[system.describe() for system in systems],
        folded=folded,
        pairs=settled,
        rankings=rankings(systems, outcomes, p_of_pairs(settled), guard.keys, alpha)
        if len(systems) > 2 and len(groups) == 1
        else [],
    )


def _folded(
    groups: Sequence[list[System]], guards: Sequence[Guard], outcomes: Sequence[Outcome]
) -> tuple[list[list[System]], list[Folded], int]:
    """Every group without the systems beyond the most that are held against each other; these; and how many pairs they are in."""
    largest = max(map(len, groups))
    if largest > _MOST_SYSTEMS and not outcomes:
        raise ConfigError(
            f"there are {largest:,} systems, and by latency alone at most {_MOST_SYSTEMS} are compared: "
            "name those that matter, as in RUN::MODEL"
        )
    kept_groups, folded = [], []
    for group, guard in zip(groups, guards, strict=True):
        kept, others = (
            foremost(group, outcomes[0], guard.keys, _MOST_SYSTEMS) if len(group) > _MOST_SYSTEMS else (group, [])
        )
        kept_groups.append(kept)
        folded += others
    untested = sum(comb(len(group), 2) for group in groups) - sum(comb(len(kept), 2) for kept in kept_groups)
    return kept_groups, folded, untested


def _folding(kept: int, folded: int, metric: str) -> str:
    return (
        f"{kept:,} of {kept + folded:,} systems are held against each other: the first and those with the best {metric}. "
        f"The {folded:,} others stand under `folded` in the JSON (`--json`); their pairs count as tests, "
        "since the data chose. Name others as RUN::MODEL"
    )


class _Pair:
    """Two systems: what is tested now, and settled when all p values are known."""

    def __init__(
        self,
        first: System,
        second: System,
        guard: Guard,
        outcomes: Sequence[Outcome],
        settings: Settings,
        *,
        force: bool,
        latency: bool,
    ) -> None:
        self.first, self.second, self.keys, self.settings = first, second, guard.keys, settings
        self.outcomes = outcomes
        self.latency = self._latency(force=force) if latency else None
        tested = [*outcomes, *([_LATENCY] if self.latency and self.latency.compared else [])]
        self.paired = [self._pair(outcome, "", None) for outcome in tested]
        if self.latency and not self.latency.compared:
            self.paired += [self._pair(_LATENCY, f"{CACHE}={state}", both) for state, both in self._cache_states()]
        for name in settings.slices:
            for word, inside in self._slices(name):
                self.paired += [self._pair(outcome, f"{name}={word}", inside) for outcome in tested]
        self.identical = self._identical()

    def settle(
        self, corrected: Mapping[int, tuple[float | None, float | None]], tests: int, *, evidence: int
    ) -> PairOfSystems:
        metrics = []
        for paired in self.paired:
            p_holm, p_bh = corrected[id(paired)]
            metrics.append(paired.settle(p_holm=p_holm, p_bh=p_bh, tests=tests, identical=self.identical))
        return PairOfSystems(
            a=self.first.name,
            b=self.second.name,
            n=len(self.keys),
            samples=len(set(self.first.items(self.keys))),
            identical=self.identical,
            verdict=metrics[0].verdict,
            metrics=metrics,
            latency=self.latency,
            flipped=flips(_flipping(self.outcomes), self.first, self.second, self.keys, evidence=evidence),
        )

    def _latency(self, *, force: bool) -> Latency | None:
        if any(LATENCY not in system.run.column_names for system in (self.first, self.second)):
            return None
        why = latency_refused(self.first, self.second, self.keys)
        states = [cache_state(system, self.keys) for system in (self.first, self.second)]
        return Latency(compared=why is None or force, why=why, cache=states)

    def _cache_states(self) -> list[tuple[str, Any]]:
        """Of systems that mix cache states: the samples on which both were cached, and those on which neither was."""
        if any(CACHE not in system.run.column_names for system in (self.first, self.second)):
            return []
        columns = [system.table([CACHE], self.keys).column(0) for system in (self.first, self.second)]
        both = [(state, np.all([in_state(column, state) for column in columns], axis=0)) for state in ("miss", "hit")]
        return [(state, rows) for state, rows in both if rows.sum() > 1]

    def _pair(self, outcome: Outcome, where: str, inside: Any) -> Paired:
        names = sorted(outcome.columns())
        a, b = (system.table(names, self.keys) for system in (self.first, self.second))
        use = outcome.inside(a) & outcome.inside(b)
        if inside is not None:
            use = use & inside
        if outcome.is_summed:
            sums = summed(outcome, a, b, use)
            keep = (sums.first[:, -1] > 0.0) | (sums.second[:, -1] > 0.0)
            use = keep  # a row that neither has adds nothing
            values, kept = sums.values(), sums.rows(keep)
            first, second, statistic = kept.first, kept.second, kept.statistic
        else:
            first, second = outcome.values(a), outcome.values(b)
            keep = use & ~np.isnan(first) & ~np.isnan(second)
            first, second, statistic = first[keep], second[keep], None
            values = outcome.whole(first), outcome.whole(second)
        clusters = self._clusters(outcome, a)
        pairs = Pairs(
            outcome,
            where,
            first,
            second,
            None if clusters is None else clusters[keep],
            left_out=int(use.sum() - keep.sum()),
            values=values,
            statistic=statistic,
        )
        return pair(pairs, self.settings)

    def _clusters(self, outcome: Outcome, rows: pa.Table) -> Any:
        """Codes of the clusters: the protocol's, else the samples where there are several trials, else none.

        A sample without a cluster beside samples with one stands alone.
        """
        items = self.first.items(self.keys)
        if outcome.cluster is not None:
            labels = plain(rows.column(outcome.cluster))
            if labels.null_count < len(labels):
                names = [
                    f"alone {item}" if label is None else f"cluster {label}"
                    for label, item in zip(labels.to_pylist(), items, strict=True)
                ]
                return np.unique(np.array(names), return_inverse=True)[1]
        return None if len(set(items)) == len(items) else np.unique(np.array(items), return_inverse=True)[1]

    def _slices(self, name: str) -> list[tuple[str, Any]]:
        for system in (self.first, self.second):
            if name not in system.run.column_names:
                raise ConfigError(
                    f"{system.run.path} has no column {name!r} to slice by; it has {', '.join(system.run.column_names)}"
                )
        a, b = (system.table([name], self.keys).column(0) for system in (self.first, self.second))
        if not equal_rows(a, b).all():
            raise ConfigError(f"{name!r} differs between the runs, so it is an outcome and cannot be a slice")
        words = sorted({str(word) for word in plain(a).unique().to_pylist() if word is not None})
        if len(words) > _MOST_SLICES:
            raise ConfigError(f"{name!r} has {len(words)} values; slices are for at most {_MOST_SLICES}")
        return [(word, holds(a, word)) for word in words]

    def _identical(self) -> bool:
        """Whether both hold the same answers and results, in every column that the runs store."""
        if any((paired.pairs.first != paired.pairs.second).any() for paired in self.paired):
            return False
        first, second = self.first, self.second
        if set(first.run.column_names) != set(second.run.column_names):
            return False
        for name in first.run.column_names:
            if name not in _PLACE:
                a, b = (system.table([name], self.keys).column(0) for system in (first, second))
                if not equal_rows(a, b).all():
                    return False
        outputs = [_outputs(system, self.keys) for system in (first, second)]
        return outputs[0] == outputs[1]


def _outputs(system: System, keys: Sequence[str]) -> list[Any] | None:
    """The raw outputs behind the keys, in their order; None where the run keeps none."""
    outputs = _outputs_of(system.run.path / "outputs", system.run.digest)
    if not outputs:
        return None
    places = system.table(["part", "row"], keys).to_pylist()
    return [outputs.get((place["part"], place["row"])) for place in places]


@functools.lru_cache(maxsize=2)
def _outputs_of(folder: Path, digest: str) -> Mapping[tuple[int, int], Any]:
    """The raw outputs of the run of a digest by place, kept for the next pair."""
    del digest
    outputs: dict[tuple[int, int], Any] = {}
    for path in sorted(folder.glob("part-*.parquet")):
        part = int(path.stem.removeprefix("part-"))
        for output in pq.read_table(path).to_pylist():
            outputs[part, output.pop("row")] = output
    return outputs


def _flipping(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome by which samples flip: the first yes-or-no one, else whether a sample passed."""
    passed = Outcome(name="pass_rate", column="bucket", kind="binary", equals=PASSED)
    return next((outcome for outcome in outcomes if outcome.kind == "binary"), passed)


def p_of_pairs(pairs: Sequence[PairOfSystems]) -> dict[str, dict[tuple[str, str], float | None]]:
    """The corrected p of each metric as a whole, by the two systems."""
    by_metric: dict[str, dict[tuple[str, str], float | None]] = {}
    for pair_of in pairs:
        for metric in pair_of.metrics:
            if not metric.slice:
                by_metric.setdefault(metric.name, {})[pair_of.a, pair_of.b] = metric.p_holm
    return by_metric
