"""The metrics of a flight run: what is declared and what may be paired, and how the partials of a model become estimates."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.flight.judge import DIMENSIONS, GRADES, error_score
from adjudge.protocols.flight.model_values import Values
from adjudge.protocols.flight.partials import EXCEEDANCE, PLACE, SCORES, Partial
from adjudge.protocols.flight.rules import FAMILIES
from adjudge.stats import bootstrap
from adjudge.stats.estimate import Estimate, Metric, share
from adjudge.stats.proportions import cluster_wilson, quantile, wilson

if TYPE_CHECKING:
    from adjudge.protocols.flight.config import FlightConfig

Floats = NDArray[np.float64]

TAIL = (95, 99)
_BY_FLIGHT = "Wilson; with the design effect of the flights where they are known"
_BOOTSTRAP = "bootstrap over flights; over samples where no flight is known"
_ORDER = "order statistics; at the design effect of the flights where they are known"
_NO_SAMPLES = "without samples"
_NONE_ELIGIBLE = "no sample is eligible"
_NO_REFERENCE = "no eligible sample has a reference"
_NOTHING_READ = "no answer has a reference to compare with"


def _score(name: str, formula: str, null: str = _NONE_ELIGIBLE, *, title: str = "", headline: bool = True) -> Metric:
    return Metric(name, title, "", 0.0, 100.0, "higher", headline, formula, _BOOTSTRAP, null)


def _rate(name: str, formula: str, null: str = _NO_SAMPLES, **more: Any) -> Metric:
    return share(name, formula=formula, null=null, **{"interval": _BY_FLIGHT, **more})


def _error(name: str, formula: str) -> Metric:
    return Metric(name, "", "", 0.0, None, "lower", False, formula, _BOOTSTRAP, _NO_REFERENCE)


def _tail(name: str, percent: int, words: str, *, headline: bool = False) -> Metric:
    formula = f"{percent}th percentile of the samples' {words}, ineligible ones too"
    return Metric(f"{name}_p{percent}", "", "", 0.0, None, "lower", headline, formula, _ORDER, _NOTHING_READ)


METRICS = (
    Metric(
        "eligibility_difference",
        "difference in eligibility",
        "%",
        -1.0,
        1.0,
        formula="eligibility rate of the first model − that of the second, on the same samples",
        interval="bootstrap over flights; Newcombe, paired, where no flight is known",
        null=_NO_SAMPLES,
    ),
    Metric(
        "total_difference_all",
        "difference in total score",
        low=-100.0,
        high=100.0,
        formula="total score of the first model − that of the second, ineligible as 0",
        interval=_BOOTSTRAP,
        null=_NO_SAMPLES,
    ),
    _rate("eligibility_rate", "samples whose answer breaks no critical rule ÷ all samples", headline=True),
    _rate(
        "data_eligibility_rate",
        "true states that break no critical rule ÷ samples with a reference: the ceiling of every model",
        "no sample has a reference",
    ),
    _rate("answer_rate", "samples with a readable answer ÷ all samples"),
    *(
        _rate(f"{bucket}_rate", f"samples that ended {bucket} ÷ all", better="lower")
        for bucket in ("abstained", "unparsed", "errored", "missing")
    ),
    _rate(
        "availability_rate",
        "mean over all samples of the share of required fields that the answer has",
        interval=_BOOTSTRAP,
    ),
    _rate(
        "compliance.*",
        "samples without a failed atom of the rule family ÷ samples on which the family was checked",
        "the family was checked on no sample",
    ),
    _score("availability_score", "100 · share of required fields given, mean over eligible samples"),
    _score(
        "constraint_score",
        "100 · Σ weight of passed atoms ÷ Σ weight (passed 0.5, failed 1, failed critically 3), mean over eligible",
    ),
    _score(
        "error_score", "0.6 · points of the MAE + 0.4 · points of the RMSE, mean over eligible samples with a reference"
    ),
    _score(
        "total_score",
        "0.2 · availability + 0.3 · constraint + 0.5 · error, mean over eligible samples with a reference",
    ),
    _score(
        "total_score_all",
        "total score with 0 for every ineligible sample ÷ all samples",
        _NO_SAMPLES,
        title="total score, ineligible 0",
    ),
    _score(
        "*_score_all", "the same score with 0 for every ineligible sample ÷ all samples", _NO_SAMPLES, headline=False
    ),
    _rate(
        "error_under_*_rate",
        "samples with an error score under the bound, or ineligible ÷ samples with a score, or ineligible",
        better="lower",
    ),
    _rate(
        "error_under_*_rate_eligible",
        "eligible samples with an error score under the bound ÷ eligible samples with an error score",
        _NONE_ELIGIBLE,
        better="lower",
    ),
    _score(
        "rubric_score", "100 · mean of the five grades (A 1, B 0.75, C 0.5, D 0), mean over all samples", _NO_SAMPLES
    ),
    _rate("grade_a.*", "samples with grade A in the rubric's dimension ÷ samples graded in it", "no sample is graded"),
    _error("mae", "mean absolute error over the fields of eligible samples with a reference"),
    _error("rmse", "mean over eligible samples of the root of the mean squared error"),
    _error("normalised_mae", "absolute error ÷ the field's jump limit, mean over fields and samples"),
    Metric(
        "skill_vs_persistence",
        high=1.0,
        better="higher",
        formula="1 − normalised error ÷ that of repeating the shown state, over the cells of eligible samples that have both",
        interval=_BOOTSTRAP,
        null="no eligible sample has both a reference and a shown state",
    ),
    _tail("mae", 95, "mean absolute errors", headline=True),
    _tail("mae", 99, "mean absolute errors"),
    _tail("rmse", 95, "root mean squared errors"),
    _tail("rmse", 99, "root mean squared errors"),
)


DATASET_COLUMNS = ("gold",)
"""Columns that are the data set's own, whatever the models answer."""


def comparable(scores: str) -> list[dict[str, Any]]:
    """What `adjudge compare` may pair, what matters most first; scores only where the fixed profile was asked for."""
    outcomes: list[dict[str, Any]] = [
        {
            "name": "eligibility_rate",
            "column": "verdict",
            "equals": "eligible",
            "kind": "binary",
            "cluster": "flight",
            "phrases": {
                "better": "stays within physics and safety more often",
                "worse": "stays within physics and safety less often",
            },
        }
    ]
    if scores in {"fixed", "both"}:
        outcomes += [
            {
                "name": "total_score_all",
                "title": "total score (ineligible as 0)",
                "column": "total",
                "null": 0.0,
                "kind": "mean",
                "cluster": "flight",
            },
            {
                "name": "error_score",
                "title": "error score (where both are eligible)",
                "column": "error",
                "kind": "mean",
                "cluster": "flight",
            },
        ]
    return outcomes


class ModelNumbers:
    """The estimates of one model on one task; `label` names its streams of random numbers."""

    def __init__(self, whole: Partial, index: int, values: Values, config: FlightConfig, label: str) -> None:
        self.whole, self.index, self.config, self.label = whole, index, config, label
        self.model = whole.models[index]
        self.sums, self.values = whole.sums[index], values
        self.clustered = whole.clustered
        self.estimates: dict[str, Estimate] = {}

    def total(self, name: str) -> int:
        """The sum of a counted column."""
        return int(self.sums[:, PLACE[name]].sum())

    def column(self, name: str, *, eligible: bool | None = None) -> Floats:
        """The values of samples with a reference: of all, of the eligible ones or of the others."""
        column: Floats = self.values.columns[name]
        return column if eligible is None else column[self.values.columns["eligible"] == eligible]

    def measure(self) -> None:
        """Every estimate, by name."""
        estimates = self.estimates
        estimates["eligibility_rate"] = self._rate(self._sum("eligible"), self._sum("n"))
        estimates["answer_rate"] = self._rate(self._sum("answered"), self._sum("n"))
        for name in BUCKETS[2:]:
            estimates[f"{name}_rate"] = self._rate(self._sum(f"bucket.{name}"), self._sum("n"))
        estimates["availability_rate"] = self._counted_mean("completeness", "n", "availability_rate")
        for family in FAMILIES:
            estimates[f"compliance.{family}"] = self._rate(self._sum(f"clean.{family}"), self._sum(f"checked.{family}"))
        if self.config.scores in {"fixed", "both"}:
            self._scores()
        if self.config.scores in {"rubric", "both"}:
            estimates["rubric_score"] = self._score("rubric", "n")
            for dimension in DIMENSIONS:
                graded = [self._sum(f"grade.{dimension}.{grade}") for grade in GRADES]
                estimates[f"grade_a.{dimension}"] = self._rate(graded[0], np.sum(graded, axis=0))
        self._errors()

    def _scores(self) -> None:
        for name in SCORES:
            self.estimates[f"{name}_score"] = self._score(name, f"count.{name}")
            self.estimates[f"{name}_score_all"] = self._score(name, "n")
        left_out = self._sum("n") - self._sum("eligible")
        scored = self._sum("count.error")
        for limit in EXCEEDANCE:
            under = self._sum(f"under.{limit}")
            self.estimates[f"error_under_{limit}_rate"] = self._rate(under + left_out, scored + left_out)
            self.estimates[f"error_under_{limit}_rate_eligible"] = self._rate(under, scored)

    def _errors(self) -> None:
        estimates = self.estimates
        for name in ("mae", "rmse", "normalised_mae"):
            estimates[name] = self._mean(name, "count.error", name)
        estimates["skill_vs_persistence"] = self._skill()
        for name in ("mae", "rmse"):
            column = self.column(name)
            for percent in TAIL:
                estimates[f"{name}_p{percent}"] = self._quantile(column, percent / 100)

    def _sum(self, name: str) -> Floats:
        """A column by flight."""
        column: Floats = self.sums[:, PLACE[name]]
        return column

    def _rate(self, hits: Floats, trials: Floats) -> Estimate:
        """A share, by Wilson; with the design effect of the flights where they are known."""
        use = trials > 0
        if not use.any():
            return Estimate.null("there is nothing to take a share of", method="Wilson")
        if self.clustered:
            return _clustered_share(hits[use].astype(np.int64).tobytes(), trials[use].astype(np.int64).tobytes())
        return wilson(int(hits.sum()), int(trials.sum()))

    def _quantile(self, column: Floats, q: float) -> Estimate:
        if not column.size:
            return Estimate.null(_NOTHING_READ, method="order statistics")
        return quantile(column, q, clusters=self.values.columns["flight"] if self.clustered else None)

    def _by_flight(self, top: str, bottom: str, stream: str, n: int | None = None) -> Estimate:
        """A ratio of sums by bootstrap over flights."""
        numerators, denominators = self._sum(top), self._sum(bottom)
        use = denominators > 0
        rows = int(denominators.sum()) if n is None else n
        drawing = self._drawing(stream)
        return bootstrap.ratio_of_sums(numerators[use], denominators[use], n=rows, unit="flight", **drawing)

    def _drawing(self, stream: str) -> bootstrap.Drawing:
        return self.config.drawing(f"{self.label}/{stream}")

    def _mean(self, name: str, count: str, stream: str) -> Estimate:
        """The mean of an error over eligible samples, by flight or by sample."""
        if not self.total(count):
            return Estimate.null(_NO_REFERENCE, method="bootstrap")
        if self.clustered:
            return self._by_flight(f"sum.{name}", count, stream)
        return bootstrap.mean(self.column(name, eligible=True), **self._drawing(stream))

    def _score(self, name: str, count: str) -> Estimate:
        """The mean of a score over the samples counted by `count`; of all, those without the score are 0."""
        n = self.total(count)
        if n == 0:
            why = "no samples" if count == "n" else _NONE_ELIGIBLE
            why = why if not self.total("eligible") else _NO_REFERENCE
            return Estimate.null(why, method="bootstrap")
        stream = f"{name}/{count}"
        if name in self.values.counted:
            return self._counted_mean(name, count, stream)
        if self.clustered:
            return self._by_flight(f"sum.{name}", count, stream)
        scores = self.scores(name)
        return bootstrap.mean(np.concatenate([scores, np.zeros(n - scores.size)]), **self._drawing(stream))

    def scores(self, name: str) -> Floats:
        """Every error or total score of the eligible samples."""
        if name == "total":
            return self.column("total", eligible=True)
        return error_score(self.column("mae", eligible=True), self.column("rmse", eligible=True))

    def _counted_mean(self, name: str, count: str, stream: str) -> Estimate:
        """The mean of a score with few distinct values, by flight or by sample; samples without it are 0."""
        top = name if name == "completeness" else f"sum.{name}"
        if self.clustered:
            return self._by_flight(top, count, stream)
        counted = Counter(self.values.counted[name])
        counted[0.0] += self.total(count) - counted.total()
        values = np.array(sorted(value for value, rows in counted.items() if rows))
        cells = np.array([counted[value] for value in values.tolist()])
        mean = float(self._sum(top).sum() / self.total(count))
        drawing = self._drawing(stream)
        return bootstrap.multinomial_cells(
            cells, lambda drawn: drawn @ values / drawn.sum(axis=1), value=mean, **drawing
        )

    def _skill(self) -> Estimate:
        """1 − normalised error / that of repeating the shown state, over the cells of eligible samples that have both."""
        if not self._sum("sum.persistence").any():
            why = "no eligible sample has both a reference and a shown state"
            why = why if not self.total("count.persistence") else "repeating the shown state makes no error at all"
            return Estimate.null(why, method="bootstrap")
        n = self.total("count.persistence")
        if self.clustered:
            ratio = self._by_flight("sum.beside_persistence", "sum.persistence", "skill", n)
        else:
            still = self.column("persistence_mae", eligible=True)
            ours = self.column("beside_persistence", eligible=True)
            shown = np.isfinite(still)
            ratio = bootstrap.ratio_of_sums(ours[shown], still[shown], n=n, unit="row", **self._drawing("skill"))
        ends = {"value": ratio.value, "low": ratio.high, "high": ratio.low}  # it falls where the ratio rises
        skill = {name: None if end is None else 1.0 - end for name, end in ends.items()}
        return msgspec.structs.replace(ratio, **skill)


@lru_cache(maxsize=1 << 14)
def _clustered_share(hits: bytes, trials: bytes) -> Estimate:
    """The share of hits by flight, as 64-bit numbers; of many models on the same samples most shares are the same ones."""
    return cluster_wilson(np.frombuffer(hits, dtype=np.int64), np.frombuffer(trials, dtype=np.int64))
