"""The aggregates of stability, each with an interval clustered by question."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.protocols.base import Measured, Named
from adjudge.protocols.common.plan import Spec, chart
from adjudge.protocols.stability.batch import StabilityBatch
from adjudge.protocols.stability.config import StabilityConfig
from adjudge.protocols.stability.judge import STABLE, UNSTABLE, VERDICTS
from adjudge.protocols.stability.rules import MEASURES
from adjudge.protocols.stability.samples import restore
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


def finish(partials: Sequence[pa.Table], config: StabilityConfig) -> Measured:
    """All numbers, from the samples of every batch in order."""
    samples = pa.concat_tables(partials)
    whole, min_runs = restore(samples), config.min_runs
    names, verdicts, runs = (samples.column(name).to_pylist() for name in ("sample", "verdict", "runs"))
    by_name = sorted(range(whole.n), key=names.__getitem__)
    few = [{"qid": names[row], "runs": runs[row]} for row in by_name if runs[row] < min_runs]
    unstable = [names[row] for row in by_name if verdicts[row] == VERDICTS[UNSTABLE]]
    estimates = {name: _aggregate(whole, name, config) for name in (*MEASURES, "iaa")}
    counted = {"items_with_too_few_runs": few, "unstable": unstable}
    named = [Named(name, "", estimate) for name, estimate in estimates.items()]
    named += [
        Named(name, "", Estimate(value=float(len(items)), n=whole.n, method="count")) for name, items in counted.items()
    ]
    notes = [f"gold item {entry['qid']} has {entry['runs']} runs, fewer than {min_runs}" for entry in few[:20]]
    notes += [
        f"{name.upper()} is about no item: {estimate.why}"
        for name, estimate in estimates.items()
        if estimate.value is None and estimate.n
    ]
    digests = [hashlib.sha256("\n".join(part.column("sample").to_pylist()).encode()).digest() for part in partials]
    not_held = [row for row in by_name if verdicts[row] != VERDICTS[STABLE]]
    return Measured(
        estimates=named,
        metrics={"n": whole.n} | {name: estimate.value for name, _, estimate in named},
        top={
            "n": whole.n,
            "runs": int(whole.counts["runs"].sum()),
            **{name: estimate.value for name, estimate in estimates.items()},
            "too_few_runs": few,
            "unstable": unstable,
        },
        charts=[_chart(estimates)],
        sections=[_unstable(whole, [(row, names[row], verdicts[row]) for row in not_held])],
        notes=notes,
        digests={"dataset": hashlib.sha256(b"".join(digests)).hexdigest()},
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


def _chart(estimates: Mapping[str, Estimate]) -> Spec:
    """Every aggregate with its interval."""
    rows = [
        {"measure": name.upper(), "value": e.value, "low": e.low, "high": e.high}
        for name, e in estimates.items()
        if e.value is not None
    ]
    return chart(__package__, "stability", rows=rows, order=[row["measure"] for row in rows])


def _unstable(whole: StabilityBatch, not_held: Sequence[tuple[int, str, str]]) -> Section:
    """The items that did not hold, with every measure of each."""
    shares = [np.where(whole.applies(name), whole.share(name), np.nan).tolist() for name in MEASURES]
    runs, astray = (whole.counts[name].tolist() for name in ("runs", "out_of_scope"))
    rows = [
        (name, verdict, runs[row], *(None if math.isnan(share[row]) else share[row] for share in shares), astray[row])
        for row, name, verdict in not_held
    ]
    return Section(
        "unstable_items",
        f"Items that did not hold: {len(rows):,} of {whole.n:,}",
        ("qid", "verdict", "runs", *(name.upper() for name in MEASURES), "runs citing out of scope"),
        rows[:_LISTED],
        note="The method asks for none. NED50 is a distance, the others are shares of runs or pairs of runs.",
        place="first",
        empty="Every item holds every bound.",
    )
