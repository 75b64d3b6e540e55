"""The numbers of a flight run: task summary, model profiles, paired comparison, every rate and mean with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.evidence.layout import Layout
from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.base import Measured, Named
from adjudge.protocols.flight import charts
from adjudge.protocols.flight.comparable import DATASET_COLUMNS, comparable
from adjudge.protocols.flight.fields import FIELDS
from adjudge.protocols.flight.judge import DIMENSIONS, GRADES
from adjudge.protocols.flight.library import Library
from adjudge.protocols.flight.partials import (
    ATOM_KINDS,
    BINS,
    EXCEEDANCE,
    PLACE,
    SCORES,
    Partial,
    merge,
    partial,
)
from adjudge.protocols.flight.rules import FAMILIES
from adjudge.stats import bootstrap
from adjudge.stats.cells import multinomial_cells
from adjudge.stats.error_measures import quantile
from adjudge.stats.estimate import Estimate
from adjudge.stats.multiplicity import holm
from adjudge.stats.paired import mcnemar_exact
from adjudge.stats.proportions import cluster_wilson, newcombe_paired_difference, wilson
from adjudge.stats.ties import ranking

if TYPE_CHECKING:
    from adjudge.protocols.flight.config import FlightConfig

__all__ = ["Partial", "finish", "partial"]

PRIOR_VERSION = "1"
HEADLINE = (
    "eligibility_rate",
    "availability_score",
    "constraint_score",
    "error_score",
    "total_score",
    "rubric_score",
    "mae_p95",
)


def finish(partials: Sequence[Partial], config: FlightConfig, layout: Layout, library: Library) -> Measured:
    """All numbers from the partials, in order."""
    whole = merge(partials)
    _refuse_no_match(whole, config)
    measured = Measured(estimates=[], buckets={}, digests={"dataset": whole.samples_digest.hex()})
    profiles = []
    for index, model in enumerate(whole.models):
        numbers = _Model(whole, index, config, layout, library)
        numbers.measure()
        where = f"model={model}"
        measured.estimates += [Named(name, where, estimate) for name, estimate in numbers.estimates.items()]
        measured.buckets[model] = {**numbers.buckets(), "n": numbers.total("n")}
        profiles.append(numbers.profile(model))
    every = {name: int(whole.sums[:, :, PLACE[f"bucket.{name}"]].sum()) for name in BUCKETS}
    measured.buckets = {"all": {**every, "n": int(whole.sums[:, :, PLACE["n"]].sum())}, **measured.buckets}
    measured.metrics = {
        f"{named.slice.removeprefix('model=')}/{named.name}": named.estimate.value for named in measured.estimates
    }
    estimates = {(named.slice.removeprefix("model="), named.name): named.estimate for named in measured.estimates}
    measured.top = {
        "task": config.task,
        "library": library.name,
        "headline": [name for name in HEADLINE if any(named.name == name for named in measured.estimates)],
        "task_summary": {
            "task": config.task,
            "models": {profile["model_name"]: profile["summary"] for profile in profiles},
        },
        "model_profiles": [{key: value for key, value in profile.items() if key != "summary"} for profile in profiles],
        "comparison": _comparison(whole, config, estimates),
        "comparable": comparable(config.scores),
        "dataset_columns": list(DATASET_COLUMNS),
        "unmatched": {kind: names for kind, names in whole.unmatched.items() if names},
    }
    measured.charts = charts.build(whole, estimates, layout, config.task)
    measured.notes = _notes(whole, config)
    return measured


class _Model:
    """The numbers of one model."""

    def __init__(self, whole: Partial, index: int, config: FlightConfig, layout: Layout, library: Library) -> None:
        self.whole, self.index, self.config, self.layout, self.library = whole, index, config, layout, library
        self.sums = whole.sums[index]
        self.model = whole.models[index]
        self.clustered = any(name is not None for name in whole.flights)
        self.estimates: dict[str, Estimate] = {}

    def total(self, name: str) -> int:
        """The sum of a counted column."""
        return int(self.sums[:, PLACE[name]].sum())

    def buckets(self) -> dict[str, int]:
        return {name: self.total(f"bucket.{name}") for name in BUCKETS}

    def measure(self) -> None:
        found = self.estimates
        found["eligibility_rate"] = self.rate("eligible", "n")
        found["answer_rate"] = self.rate("answered", "n")
        for name in BUCKETS[2:]:
            found[f"{name}_rate"] = self.rate(f"bucket.{name}", "n")
        found["availability_rate"] = self.ratio("completeness", "n", "availability_rate")
        for family in FAMILIES:
            found[f"compliance.{family}"] = self.rate(f"clean.{family}", f"checked.{family}")
        if self.config.scores in {"fixed", "both"}:
            self._scores()
        if self.config.scores in {"rubric", "both"}:
            found["rubric_score"] = self.score("rubric", len(SCORES), "n")
            for dimension in DIMENSIONS:
                graded = sum(self.total(f"grade.{dimension}.{grade}") for grade in GRADES)
                found[f"grade_a.{dimension}"] = wilson(self.total(f"grade.{dimension}.A"), graded)
        self._errors()

    def _scores(self) -> None:
        for position, name in enumerate(SCORES):
            self.estimates[f"{name}_score"] = self.score(name, position, f"count.{name}")
            self.estimates[f"{name}_score_all"] = self.score(name, position, "n")
        for limit in EXCEEDANCE:
            under, scored = self.total(f"under.{limit}"), self.total("count.error")
            left_out = self.total("n") - self.total("eligible")
            known = scored + left_out
            self.estimates[f"error_under_{limit}_rate"] = wilson(under + left_out, known)
            self.estimates[f"error_under_{limit}_rate_eligible"] = wilson(under, scored)

    def _errors(self) -> None:
        found = self.estimates
        good_mae, good_rmse, bad_mae, bad_rmse = self.whole.columns[self.index]
        for name, good in (("mae", good_mae), ("rmse", good_rmse)):
            found[name] = self.ratio(f"sum.{name}", "count.error", name) if self.clustered else self._mean(good, name)
        found["normalised_mae"] = self.ratio("sum.normalised_mae", "count.error", "normalised_mae")
        found["skill_vs_persistence"] = self._skill()
        for name, good, bad in (("mae", good_mae, bad_mae), ("rmse", good_rmse, bad_rmse)):
            column = np.sort(np.concatenate([good, bad]))
            for share in (95, 99):
                found[f"{name}_p{share}"] = (
                    quantile(column, share / 100, is_sorted=True)
                    if column.size
                    else Estimate.null("no answer has a reference to compare with", n=0, method="order statistics")
                )

    def rate(self, part: str, whole: str) -> Estimate:
        """A share, by Wilson; with the design effect of the flights where they are known."""
        hits, trials = self.sums[:, PLACE[part]], self.sums[:, PLACE[whole]]
        use = trials > 0
        if not use.any():
            return Estimate.null("there is nothing to take a share of", method="Wilson")
        if self.clustered:
            return cluster_wilson(hits[use].astype(int), trials[use].astype(int))
        return wilson(int(hits.sum()), int(trials.sum()))

    def ratio(self, top: str, bottom: str, stream: str) -> Estimate:
        """A mean by bootstrap over flights; without flights, only for columns whose rows are not kept, the value alone."""
        numerators, denominators = self.sums[:, PLACE[top]], self.sums[:, PLACE[bottom]]
        use = denominators > 0
        if not use.any():
            return Estimate.null("no sample has this value", method="bootstrap")
        if not self.clustered:
            return Estimate(
                value=float(numerators.sum() / denominators.sum()),
                n=int(denominators.sum()),
                method="mean, no interval",
            )
        return bootstrap.ratio_of_sums(
            numerators[use],
            denominators[use],
            seed=self.config.seed,
            stream=f"{self.model}/{stream}",
            resamples=self.config.resamples,
            n=int(denominators.sum()),
            unit="flight",
        )

    def score(self, name: str, position: int, count: str) -> Estimate:
        """The mean of a score over the samples counted by `count`; those without the score are 0."""
        n = self.total(count)
        if n == 0:
            return Estimate.null("no sample is eligible" if count != "n" else "no samples", method="bootstrap")
        if self.clustered:
            return self.ratio(f"sum.{name}", count, f"{name}/{count}")
        counts, sums = self.whole.histogram[self.index, position].T
        cells = counts.astype(np.int64)
        values = np.divide(sums, counts, out=np.zeros(BINS + 1), where=counts > 0)
        cells[0] += n - int(cells.sum())
        values[0] = sums[0] / cells[0] if cells[0] else 0.0
        use = cells > 0
        return multinomial_cells(
            cells[use],
            lambda drawn: drawn @ values[use] / drawn.sum(axis=1),
            seed=self.config.seed,
            stream=f"{self.model}/{name}/{count}",
            resamples=self.config.resamples,
            value=float(sums.sum() / n),
        )

    def _mean(self, column: NDArray[np.float64], name: str) -> Estimate:
        if not column.size:
            return Estimate.null("no eligible sample has a reference", method="bootstrap")
        return bootstrap.mean(
            column, seed=self.config.seed, stream=f"{self.model}/{name}", resamples=self.config.resamples
        )

    def _skill(self) -> Estimate:
        """1 − normalised error / that of repeating the shown state, over eligible samples."""
        ours, theirs = self.sums[:, PLACE["sum.normalised_mae"]], self.sums[:, PLACE["sum.persistence"]]
        use = theirs > 0
        if not use.any():
            return Estimate.null("no eligible sample has both a reference and a shown state", method="bootstrap")
        n = self.total("count.error")
        if not self.clustered:
            return Estimate(value=float(1.0 - ours.sum() / theirs.sum()), n=n, method="ratio, no interval")
        ratio = bootstrap.ratio_of_sums(
            ours[use],
            theirs[use],
            seed=self.config.seed,
            stream=f"{self.model}/skill",
            resamples=self.config.resamples,
            n=n,
            unit="flight",
        )
        if ratio.value is None:
            return ratio
        return Estimate(
            value=1.0 - ratio.value,
            low=None if ratio.high is None else 1.0 - ratio.high,
            high=None if ratio.low is None else 1.0 - ratio.low,
            level=ratio.level,
            n=ratio.n,
            method=ratio.method,
            seed=ratio.seed,
            warnings=ratio.warnings,
        )

    def violations(self) -> dict[str, Any]:
        """Failed atoms by family and severity, with rates over the atoms that were checked."""
        atoms = self.whole.atoms[self.index]
        found = {}
        for family in (*FAMILIES, "protocol"):
            kinds = dict(zip(ATOM_KINDS, atoms[self.layout.positions_of(family)].sum(axis=0).tolist(), strict=True))
            checked = kinds["pass"] + kinds["warning"] + kinds["critical"]
            failed = kinds["warning"] + kinds["critical"]
            found[family] = {**kinds, "violations": failed, "rate": failed / checked if checked else None}
        return found

    def failure_modes(self) -> dict[str, Any]:
        """Failed atoms by rule code, and their distribution over the families."""
        by_code = dict(zip(self.layout.codes, self.whole.codes[self.index].tolist(), strict=True))
        families: dict[str, int] = dict.fromkeys((*FAMILIES, "protocol"), 0)
        for code, count in by_code.items():
            families[code.partition(".")[0]] = families.get(code.partition(".")[0], 0) + count
        total = sum(families.values())
        return {
            "by_rule": {code: count for code, count in by_code.items() if count},
            "by_family": families,
            "share": {name: count / total if total else None for name, count in families.items()},
        }

    def per_field(self) -> dict[str, Any]:
        """MAE and RMSE of every field over eligible samples, and those of repeating the shown state."""
        jumps = self.library.jumps()
        found = {}
        for name, jump, (absolute, squared, still, count) in zip(
            FIELDS, jumps, self.whole.fields[self.index], strict=True
        ):
            found[name] = (
                {
                    "mae": float(absolute / count),
                    "rmse": float(np.sqrt(squared / count)),
                    "normalised_mae": float(absolute / count / jump),
                    "persistence_mae": float(still / count),
                    "n": int(count),
                }
                if count
                else {"mae": None, "rmse": None, "normalised_mae": None, "persistence_mae": None, "n": 0}
            )
        return found

    def profile(self, model: str) -> dict[str, Any]:
        """The weight-free profile of a model, with the confidence prior as a block that no score reads."""
        values = {name: estimate.value for name, estimate in self.estimates.items()}
        scored = self.total("count.error")
        tail: dict[str, Any] = {
            name: values[name] for name in values if name.startswith(("mae_p", "rmse_p", "error_under_"))
        }
        under = self.total("under.50")
        tail["high_risk"] = {"count": under, "rate": under / scored if scored else None, "of": scored}
        prior = (self.config.confidence or {}).get(model)
        return {
            "model_name": model,
            "n": self.total("n"),
            "eligibility_rate": values["eligibility_rate"],
            "scores": {name: values[name] for name in values if "_score" in name},
            "violations": self.violations(),
            "failure_modes": self.failure_modes(),
            "error_distribution": {"mae": values["mae"], "rmse": values["rmse"], "by_field": self.per_field()},
            "tail_risk": tail,
            "confidence_prior": None
            if prior is None
            else {
                "model_name": model,
                "confidence_m": {
                    f"{task}_score": prior if task == self.config.task else None for task in ("S1", "M1", "M3")
                },
                "calculation_source": "confidence file",
                "version": PRIOR_VERSION,
                "metadata": {"task": self.config.task},
            },
            "summary": {
                "counts": {**self.buckets(), "n": self.total("n"), "eligible": self.total("eligible")},
                "with_reference": self.total("with_reference"),
                "repaired": self.total("repaired"),
                "extra_keys": self.total("extra_keys"),
                "availability": {"rate": values["availability_rate"], "answer_rate": values["answer_rate"]},
                "compliance": {family: values[f"compliance.{family}"] for family in FAMILIES},
                "grades": {
                    dimension: {grade: self.total(f"grade.{dimension}.{grade}") for grade in GRADES}
                    for dimension in DIMENSIONS
                },
            },
        }


def _comparison(
    whole: Partial, config: FlightConfig, estimates: dict[tuple[str, str], Estimate]
) -> dict[str, Any] | None:
    """Models on the same samples: paired differences of eligibility and of the total, Holm-adjusted, with tie groups."""
    models = whole.models
    if len(models) < 2:
        return None
    n = int(whole.sums[0, :, PLACE["n"]].sum())
    counts = whole.sums[0, :, PLACE["n"]]
    pairs: list[dict[str, Any]] = []
    for a in range(len(models)):
        for b in range(a + 1, len(models)):
            only_a, only_b, both = int(whole.only[a, b]), int(whole.only[b, a]), int(whole.both[a, b])
            test = mcnemar_exact(only_a, only_b)
            gap = newcombe_paired_difference(both, only_a, only_b, n - both - only_a - only_b)
            total = (
                bootstrap.ratio_of_sums(
                    whole.pair_sums[a, b],
                    counts,
                    seed=config.seed,
                    stream=f"{models[a]}~{models[b]}/total",
                    resamples=config.resamples,
                    n=n,
                    unit="flight",
                )
                if any(name is not None for name in whole.flights)
                else Estimate.null("the data names no flights to resample", n=n)
            )
            pairs.append(
                {
                    "a": models[a],
                    "b": models[b],
                    "n": n,
                    "eligible_only_a": only_a,
                    "eligible_only_b": only_b,
                    "eligibility_difference": gap.to_dict(),
                    "total_difference_all": total.to_dict(),
                    "p": test.p,
                    "log10_p": test.log10_p,
                    "test": test.method,
                }
            )
    adjusted = holm([pair["p"] for pair in pairs])
    for pair, value in zip(pairs, adjusted, strict=True):
        pair["p_holm"] = value
    matrix = {(pair["a"], pair["b"]): pair["p_holm"] for pair in pairs}
    values = [estimates[model, "eligibility_rate"].value or 0.0 for model in models]
    ranked = ranking(list(models), values, matrix)
    return {
        "metric": "eligibility_rate",
        "pairs": pairs,
        "ranking": [
            {"rank": item.rank, "model": item.name, "value": item.score, "tie_groups": list(item.letters)}
            for item in ranked
        ],
    }


def _refuse_no_match(whole: Partial, config: FlightConfig) -> None:
    """Outputs and a reference that share no id are not an evaluation in which everything is missing."""
    if not config.reference or whole.matched or not whole.unmatched.get("reference"):
        return
    outputs, reference = whole.unmatched.get("outputs", []), whole.unmatched.get("reference", [])
    example = f" The outputs have {outputs[0]!r}, the reference {reference[0]!r}." if outputs and reference else ""
    raise InputError(
        f"no id of the outputs stands in the reference.{example}",
        file=config.reference[0],
        hint="Rows are matched by id; --match line pairs old files by line number.",
    )


def _notes(whole: Partial, config: FlightConfig) -> list[str]:
    notes = []
    n = int(whole.sums[:, :, PLACE["n"]].sum())
    without = n - int(whole.sums[:, :, PLACE["with_reference"]].sum())
    if without:
        notes.append(f"{without} of {n} samples have no reference: they are judged, but have no error score")
    failed = int(whole.atoms[:, :, ATOM_KINDS.index("error")].sum())
    if failed:
        notes.append(f"{failed} atoms are instrument errors: a rule failed, not a model")
    if config.match == "line":
        notes.append("rows were matched by line number (--match line), not by id")
    known = [name for name in whole.flights if name is not None]
    if known and len(known) < 10:
        notes.append(f"intervals rest on {len(known)} flights; fewer than 10 make them rough")
    return notes
