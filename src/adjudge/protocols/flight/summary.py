"""What a run says of a task and of a model without weighing it: counts, distributions, violations, tail risk."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.layout import Layout
from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.flight.fields import FIELDS
from adjudge.protocols.flight.judge import DIMENSIONS, GRADES
from adjudge.protocols.flight.library import Library
from adjudge.protocols.flight.metrics import TAIL, ModelNumbers
from adjudge.protocols.flight.partials import ATOM_FAMILIES, EXCEEDANCE, FIELD_SUMS
from adjudge.protocols.flight.rare_atoms import ATOM_KINDS
from adjudge.protocols.flight.rules import FAMILIES
from adjudge.stats.error_measures import quantile_values

PERCENTILES = (5, 10, 25, 75, 90, 95, 99)


def distribution(values: NDArray[np.float64]) -> dict[str, float | int | None]:
    """n, mean, median, sample standard deviation, extremes and percentiles (order statistics) of a column."""
    names = ("mean", "median", "std", "min", "max", *(f"p{percent}" for percent in PERCENTILES))
    n = int(values.size)
    if not n:
        return {"n": 0, **dict.fromkeys(names)}
    with np.errstate(over="ignore"):
        mean, spread = float(values.mean()), float(values.std(ddof=1)) if n > 1 else None
    statistics = (
        mean,
        float(np.median(values)),
        spread if spread is not None and math.isfinite(spread) else None,
        float(values.min()),
        float(values.max()),
        *quantile_values(values, [percent / 100 for percent in PERCENTILES]),
    )
    return {"n": n, **dict(zip(names, statistics, strict=True))}


class Summary:
    """The plain numbers of one model, or of all models together."""

    def __init__(self, numbers: ModelNumbers, layout: Layout, library: Library) -> None:
        self.numbers, self.layout, self.library = numbers, layout, library

    def task_summary(self) -> dict[str, Any]:
        """What the method lists of a task."""
        total = self.numbers.total
        return {
            "counts": {**self.buckets(), "n": total("n"), "eligible": total("eligible")},
            "eligibility_rate": _share(total("eligible"), total("n")),
            "with_reference": total("with_reference"),
            "repaired": total("repaired"),
            "extra_keys": total("extra_keys"),
            "availability": {
                "rate": self._completeness(),
                "answer_rate": _share(total("answered"), total("n")),
                "distribution": self.counted("completeness"),
            },
            "compliance": {family: _share(total(f"clean.{family}"), total(f"checked.{family}")) for family in FAMILIES},
            "constraint_profile": self.violations,
            "conditional_error": self.errors,
            "scores": self.scores,
            "tail_risk": self.tail_risk,
            "failure_modes": self.failure_modes,
            "grades": {
                dimension: {grade: total(f"grade.{dimension}.{grade}") for grade in GRADES} for dimension in DIMENSIONS
            },
        }

    def profile(self) -> dict[str, Any]:
        """The weight-free profile of a model."""
        values = {name: estimate.value for name, estimate in self.numbers.estimates.items()}
        return {
            "model_name": self.numbers.model,
            "task": self.numbers.whole.task,
            "n": self.numbers.total("n"),
            "eligibility_rate": values["eligibility_rate"],
            "scores": {name: values[name] for name in values if "_score" in name},
            "score_statistics": self.scores,
            "violations": self.violations,
            "failure_modes": self.failure_modes,
            "error_distribution": {
                "mae": values["mae"],
                "rmse": values["rmse"],
                "statistics": self.errors,
                "by_field": self.per_field(),
            },
            "tail_risk": self.tail_risk,
        }

    def buckets(self) -> dict[str, int]:
        """Where the samples ended."""
        return {name: self.numbers.total(f"bucket.{name}") for name in BUCKETS}

    @cached_property
    def errors(self) -> dict[str, Any]:
        """The errors of eligible samples with a reference, in raw units, and their scores."""
        columns = {name: self.numbers.column(name, eligible=True) for name in ("mae", "rmse")}
        return {name: distribution(column) for name, column in columns.items()}

    @cached_property
    def scores(self) -> dict[str, Any]:
        """Every score of eligible samples, and the rubric of all."""
        distributions = {name: self.counted(name) for name in ("availability", "constraint")}
        distributions |= {name: distribution(self.numbers.scores(name)) for name in ("error", "total")}
        return {**distributions, "rubric": self.counted("rubric")}

    def counted(self, name: str) -> dict[str, Any]:
        """The distribution of a score that is counted by value."""
        counts = sorted(self.numbers.values.counted[name].items())
        values = np.array([value for value, _ in counts])
        return distribution(np.repeat(values, [count for _, count in counts]) if counts else values)

    @cached_property
    def tail_risk(self) -> dict[str, Any]:
        """High percentiles of the errors, and how often the error score is low; ineligible samples count as low."""
        total = self.numbers.total
        risks: dict[str, Any] = {}
        for name in ("mae", "rmse"):
            column = self.numbers.column(name)
            highest = (
                quantile_values(column, [percent / 100 for percent in TAIL]) if column.size else [None] * len(TAIL)
            )
            risks |= {f"{name}_p{percent}": value for percent, value in zip(TAIL, highest, strict=True)}
        left_out, scored = total("n") - total("eligible"), total("count.error")
        for limit in EXCEEDANCE:
            under = total(f"under.{limit}")
            risks[f"error_under_{limit}_rate"] = _share(under + left_out, scored + left_out)
            risks[f"error_under_{limit}_rate_eligible"] = _share(under, scored)
        risky = total(f"under.{EXCEEDANCE[0]}")
        risks["high_risk"] = {"count": risky, "rate": _share(risky, scored), "of": scored}
        return risks

    @cached_property
    def violations(self) -> dict[str, Any]:
        """Failed atoms by family and severity, with rates over the atoms that were checked."""
        atoms = self.numbers.whole.atoms[self.numbers.index]
        families = {}
        for family, row in zip(ATOM_FAMILIES, atoms, strict=True):
            kinds = dict(zip(ATOM_KINDS, row.tolist(), strict=True))
            failed = kinds["warning"] + kinds["critical"]
            families[family] = {**kinds, "violations": failed, "rate": _share(failed, kinds["pass"] + failed)}
        return families

    @cached_property
    def failure_modes(self) -> dict[str, Any]:
        """Failed atoms by rule code, and their distribution over the families."""
        by_code = dict(zip(self.layout.codes, self.numbers.whole.codes[self.numbers.index].tolist(), strict=True))
        families: dict[str, int] = dict.fromkeys(ATOM_FAMILIES, 0)
        for code, count in by_code.items():
            family = code.partition(".")[0]
            families[family] = families.get(family, 0) + count
        total = sum(families.values())
        return {
            "by_rule": {code: count for code, count in by_code.items() if count},
            "by_family": families,
            "share": {name: _share(count, total) for name, count in families.items()},
        }

    def per_field(self) -> dict[str, Any]:
        """MAE and RMSE of every field over eligible samples, and those of repeating the shown state."""
        errors = {}
        rows = self.numbers.whole.fields[self.numbers.index]
        for name, jump, row in zip(FIELDS, self.library.jumps().tolist(), rows, strict=True):
            sums = dict(zip(FIELD_SUMS, row.tolist(), strict=True))
            mae = _ratio(sums["absolute"], sums["count"])
            square = _ratio(sums["squared"], sums["count"])
            errors[name] = {
                "mae": mae,
                "rmse": None if square is None else math.sqrt(square),
                "normalised_mae": None if mae is None else mae / jump,
                "persistence_mae": _ratio(sums["persistence"], sums["persistence_count"]),
                "n": int(sums["count"]),
            }
        return errors

    def _completeness(self) -> float | None:
        rows = self.numbers.values.counted["completeness"]
        return _ratio(math.fsum(value * count for value, count in rows.items()), rows.total())


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _ratio(top: float, bottom: float) -> float | None:
    value = top / bottom if bottom else None
    return value if value is None or math.isfinite(value) else None
