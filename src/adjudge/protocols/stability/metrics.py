"""The aggregates of stability, each with an interval clustered by question."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.protocols.base import Measured, Named
from adjudge.protocols.stability import charts
from adjudge.protocols.stability.batch import COUNTS, FLAGS, SHARES, StabilityBatch
from adjudge.protocols.stability.config import StabilityConfig
from adjudge.protocols.stability.judge import STABLE, UNSTABLE, VERDICTS
from adjudge.protocols.stability.rules import MEASURES
from adjudge.runs.section import Section
from adjudge.stats import bootstrap
from adjudge.stats.estimate import Better, Estimate, Metric, count, share
from adjudge.stats.proportions import cluster_wilson

_BY_QUESTION = "Wilson with the design effect of the questions"
_BOOTSTRAP = "bootstrap over questions"
_FEW = "no item has two runs"


def _rate(name: str, formula: str, null: str) -> Metric:
    return share(name, name.upper(), headline=True, formula=formula, interval=_BY_QUESTION, null=null)


def _mean(name: str, formula: str, better: Better = "higher") -> Metric:
    return Metric(name, name.upper(), "", 0.0, 1.0, better, True, formula, _BOOTSTRAP, _FEW)


def _counted(name: str, formula: str, title: str = "") -> Metric:
    return count(name, title, headline=True, formula=formula, interval="none: counted")


METRICS = (
    _rate(
        "acr",
        "runs whose claim contains a gold substring ÷ runs of answerable items",
        "no item is answerable with a gold substring",
    ),
    _rate(
        "cghc",
        "runs that cite a gold citation ÷ runs of items with gold citations",
        "no item is answerable with a gold citation",
    ),
    _mean("css", "mean Jaccard index of the citation sets of two runs, mean over items"),
    _mean("ned50", "median normalised edit distance of the claims of two runs, mean over items", "lower"),
    _rate("scu", "runs that echo the constraints of the item ÷ runs", "without runs"),
    _rate("rcr", "refusals ÷ runs of items that cannot be answered", "every item is answerable"),
    _mean("iaa", "share of pairs of runs with the same normalised claim, mean over items"),
    _counted("items_with_too_few_runs", "gold items with fewer runs than asked for"),
    _counted(
        "unstable",
        "gold items with enough runs of which a measure, or the scope of a citation, breaks its bound",
        "unstable items",
    ),
)

_LISTED = 200
_HITS = {"acr": "acr_hits", "cghc": "cghc_hits", "scu": "scu_hits", "rcr": "refusals"}


@dataclass
class Partial:
    """The items of one batch."""

    batch: StabilityBatch
    names: list[str]
    verdicts: list[str]
    digest: bytes


def partial(samples: pa.Table, batch: StabilityBatch) -> Partial:
    """What one batch adds to the numbers."""
    names = samples.column("sample").to_pylist()
    return Partial(
        batch=batch,
        names=names,
        verdicts=samples.column("verdict").to_pylist(),
        digest=hashlib.sha256("\n".join(names).encode()).digest(),
    )


def finish(partials: Sequence[Partial], config: StabilityConfig) -> Measured:
    """All numbers, from the partials in order."""
    min_runs = config.min_runs
    whole = StabilityBatch(
        {name: np.concatenate([p.batch.counts[name] for p in partials]) for name in COUNTS},
        {name: np.concatenate([p.batch.shares[name] for p in partials]) for name in SHARES},
        {name: np.concatenate([p.batch.flags[name] for p in partials]) for name in FLAGS},
    )
    items = sorted(
        (name, int(runs), verdict)
        for p in partials
        for name, runs, verdict in zip(p.names, p.batch.counts["runs"], p.verdicts, strict=True)
    )
    few = [{"qid": name, "runs": runs} for name, runs, _ in items if runs < min_runs]
    named = [Named(name, "", _aggregate(whole, name, config)) for name in (*MEASURES, "iaa")]
    unstable = [name for name, _, verdict in items if verdict == VERDICTS[UNSTABLE]]
    named += [
        Named("items_with_too_few_runs", "", Estimate(value=float(len(few)), n=len(items), method="count")),
        Named("unstable", "", Estimate(value=float(len(unstable)), n=len(items), method="count")),
    ]
    notes = [f"gold item {entry['qid']} has {entry['runs']} runs, fewer than {min_runs}" for entry in few[:20]]
    notes += [
        f"{name.upper()} is about no item: {estimate.why}"
        for name, _, estimate in named
        if estimate.value is None and estimate.n
    ]
    top: dict[str, Any] = {
        "n": len(items),
        "runs": int(whole.counts["runs"].sum()),
        **{name: estimate.value for name, _, estimate in named if name not in charts.COUNTED},
        "too_few_runs": few,
        "unstable": unstable,
    }
    return Measured(
        estimates=named,
        metrics={"n": len(items)} | {name: estimate.value for name, _, estimate in named},
        top=top,
        charts=[charts.measures(named)],
        sections=[_unstable(items, whole, [name for p in partials for name in p.names])],
        notes=notes,
        digests={"dataset": hashlib.sha256(b"".join(p.digest for p in partials)).hexdigest()},
        one_model=True,
    )


def _aggregate(whole: StabilityBatch, name: str, config: StabilityConfig) -> Estimate:
    """Shares of runs with questions as clusters; pairwise measures as the mean over questions."""
    about = whole.applies(name)
    if not about.any():
        return Estimate.null("no gold item of that kind", n=whole.n)
    if name in _HITS:
        return cluster_wilson(whole.counts[_HITS[name]][about], whole.counts["runs"][about])
    values: NDArray[np.float64] = whole.share(name)
    known = values[~np.isnan(values)]
    if not known.size:
        return Estimate.null("no item has two runs")
    return bootstrap.mean(known, seed=config.seed, stream=name, resamples=config.resamples)


def _unstable(items: Sequence[tuple[str, int, str]], whole: StabilityBatch, names: Sequence[str]) -> Section:
    """The items that did not hold, with every measure of each."""
    place = {name: index for index, name in enumerate(names)}
    shares = {name: np.where(whole.applies(name), whole.share(name), np.nan) for name in MEASURES}
    rows = []
    for name, runs, verdict in items:
        if verdict == VERDICTS[STABLE]:
            continue
        values = (float(shares[measure][place[name]]) for measure in MEASURES)
        astray = int(whole.counts["out_of_scope"][place[name]])
        rows.append((name, verdict, runs, *(None if np.isnan(value) else value for value in values), astray))
    return Section(
        "unstable_items",
        f"Items that did not hold: {len(rows):,} of {len(items):,}",
        ("qid", "verdict", "runs", *(name.upper() for name in MEASURES), "runs citing out of scope"),
        rows[:_LISTED],
        note="The method asks for none. NED50 is a distance, the others are shares of runs or pairs of runs.",
        place="first",
        empty="Every item holds every bound.",
    )
