"""The numbers of a triage run: a block a configuration and trial, means over trials, slices, latency, provenance."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adjudge.errors import ConfigError
from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.base import Measured, Named
from adjudge.protocols.triage import charts
from adjudge.protocols.triage.batch import (
    ABSTAINED,
    ANSWERS,
    CONFIDENCE_STATES,
    ERRORED,
    MISSING,
    NEGATIVE,
    POSITIVE,
    PROVENANCE,
    UNPARSED,
)
from adjudge.protocols.triage.comparable import DATASET_COLUMNS, comparable
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.counts import AVERAGED, NO_VALUE, Block, Configuration, Ints, Partial, Pattern, merge
from adjudge.protocols.triage.facts import factors, refuse_mixtures
from adjudge.protocols.triage.latency import latency, latency_estimates
from adjudge.protocols.triage.metrics import FN, FP, TN, TP, Draw, Numbers, aliases, both, cell
from adjudge.protocols.triage.notes import judged, notes
from adjudge.protocols.triage.operating import apply
from adjudge.protocols.triage.sections import sections
from adjudge.protocols.triage.values import latencies, values
from adjudge.readers.sources import refuse_many_slices
from adjudge.stats import calibration, exact, selective
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import wilson

SLICE_VALUES = 50
PROMPTS_SHOWN = 20
MOST_BLOCKS = 200
"""Configurations with a block of their own and resampled intervals; of more there are shares with intervals, and values."""


def finish(partials: Sequence[Partial], config: TriageConfig) -> Measured:
    """All numbers from the partials, in order."""
    whole = merge(partials)
    measured = Measured(estimates=[], buckets={}, digests={"dataset": f"{whole.dataset:064x}"})
    configurations: dict[str, Any] = {}
    every = np.zeros(2 * ANSWERS, dtype=np.int64)
    names = sorted(whole.configurations)
    detailed = set(names[:MOST_BLOCKS])
    for name in names:
        block, counted = whole.blocks[name, "", ""], whole.configurations[name]
        refuse_mixtures(name, counted, sum(block.patterns.values()))
        view = _View(name, block, counted, config, measured)
        if name in detailed:
            configurations[name] = view.block()
            measured.estimates += latency_estimates(
                name, counted, view.draw(f"{name}/latency"), several=len(block.counts) > 1
            )
        else:
            view.values_alone()
            measured.estimates += latencies(name, counted)
        for trial, counts in sorted(block.counts.items()):
            measured.buckets[f"{name}|{trial}"] = _buckets(counts)
            every = every + counts
    measured.buckets = {"all": _buckets(every), **measured.buckets}
    measured.estimates.sort(key=lambda named: not named.slice.startswith("configuration="))
    slices = _slices(whole, config, measured)
    measured.metrics = {
        f"{named.slice.partition('=')[2]}/{named.name}": named.estimate.value
        for named in measured.estimates
        if named.slice.startswith("configuration=")
    }
    measured.top = {
        "headline": headline(config),
        "classes": {"positive": config.positive, "negative": config.negative},
        "samples": whole.samples,
        "judged": judged(whole),
        "gravest": ["triage.slip", "triage.false_flag"],
        "configurations": configurations,
        "slices": slices,
        "operating_points": config.operating or {},
        "comparable": comparable(config.classes(), config.bins),
        "dataset_columns": list(DATASET_COLUMNS),
        "factors": {
            name: factors(name, configuration, split=bool(config.split_by))
            for name, configuration in sorted(whole.configurations.items())
        },
    }
    shown = replace(whole, configurations={name: whole.configurations[name] for name in configurations})
    measured.notes = notes(whole, config, every, configurations)
    measured.sections = sections(shown, configurations, measured.estimates, config)
    measured.charts = charts.build(shown, configurations, config)
    return measured


def headline(config: TriageConfig) -> list[str]:
    """The estimates that a reader wants first."""
    p, n = config.classes()
    return [
        "accuracy",
        "accuracy_answered",
        "coverage",
        f"{p}_catch_rate",
        f"{p}_slip_rate",
        f"{n}_false_flag_rate",
        "ece",
        "aurc",
    ]


class _View:
    """One configuration."""

    def __init__(
        self, name: str, block: Block, counted: Configuration, config: TriageConfig, measured: Measured
    ) -> None:
        self.name, self.data, self.counted, self.config, self.measured = name, block, counted, config, measured
        self.classes = config.classes()
        self.trials = sorted(block.counts)

    def draw(self, stream: str) -> Draw:
        return Draw(self.config.seed, self.config.resamples, stream)

    def block(self) -> dict[str, Any]:
        """The configuration as metrics.json has it."""
        per_trial = {}
        for trial, where, numbers in self._numbers_of_trials():
            estimates = numbers.measure()
            self._add(where, estimates)
            per_trial[str(trial)] = self._trial(trial, numbers.counts, estimates)
            if self.config.operating is not None:
                point = self.config.operating.get(self.name)
                per_trial[str(trial)]["operating_point"] = apply(
                    point, numbers.counts, numbers.scores, self.classes, self.config.costs
                )
        if len(self.trials) > 1:
            self._add_pooled(Numbers.measure)
        scores = self.data.joined()
        return {
            "per_trial": per_trial,
            "summary": self._summary(per_trial),
            "reliability": self._reliability(),
            "risk_coverage": [
                {
                    "threshold": point.threshold,
                    "answered": point.answered,
                    "coverage": point.coverage,
                    "risk": point.risk.to_dict(),
                }
                for point in selective.risk_coverage(scores.confidence, scores.correct, blocks=scores.blocks)
            ],
            "latency": latency(self.counted),
            "provenance": self._provenance(),
        }

    def values_alone(self) -> None:
        """The estimates of the configuration without resampling: where there are very many, this is what most have."""
        for _, where, numbers in self._numbers_of_trials():
            self._add(where, values(numbers))
        if len(self.trials) > 1:
            self._add_pooled(values)

    def _numbers_of_trials(self) -> Iterator[tuple[int, str, Numbers]]:
        """The numbers of every trial, and the slice that they are about: the configuration where it has one trial."""
        scores, several = self.data.joined(), len(self.trials) > 1
        for trial in self.trials:
            mine = scores.rows(scores.trial == trial) if several else scores
            draw = self.draw(f"{self.name}|{trial}")
            numbers = Numbers(self.data.counts[trial], mine, self.classes, draw, bins=self.config.bins)
            yield trial, f"trial={self.name}|{trial}" if several else f"configuration={self.name}", numbers

    def _add_pooled(self, measure: Callable[[Numbers], dict[str, Estimate]]) -> None:
        """The estimates over all trials together, whose samples are clusters."""
        counts = sum(self.data.counts.values(), start=np.zeros(2 * ANSWERS, dtype=np.int64))
        patterns, bins = self.data.patterns, self.config.bins
        numbers = Numbers(counts, self.data.joined(), self.classes, self.draw(self.name), patterns=patterns, bins=bins)
        self._add(f"configuration={self.name}", measure(numbers) | {"flip_rate": flip_rate(patterns)})

    def _add(self, where: str, numbers: dict[str, Estimate]) -> None:
        self.measured.estimates += [Named(name, where, estimate) for name, estimate in numbers.items()]

    def _trial(self, trial: int, counts: Ints, numbers: dict[str, Estimate]) -> dict[str, Any]:
        p, n = self.classes
        values = {name: estimate.value for name, estimate in numbers.items()}
        values |= {alias: values[name] for alias, name in aliases(self.classes).items()}
        averages = {
            f"avg_{name}": column.mean() for name, column in zip(AVERAGED, self.counted.averaged[trial], strict=True)
        }
        states = dict(zip(CONFIDENCE_STATES, self.counted.states[trial].tolist(), strict=True))
        return {
            "total": int(counts.sum()),
            "correct": int(counts[[TP, TN]].sum()),
            "answered": int(counts[[TP, TN, FP, FN]].sum()),
            **values,
            **averages,
            "abstain_count": int(counts[list(both(ABSTAINED))].sum()),
            f"abstain_count_{p}": int(counts[cell(POSITIVE, ABSTAINED)]),
            f"abstain_count_{n}": int(counts[cell(NEGATIVE, ABSTAINED)]),
            "error_count": int(counts[list(both(ERRORED))].sum()),
            "unparsed_count": int(counts[list(both(UNPARSED))].sum()),
            "missing_count": int(counts[list(both(MISSING))].sum()),
            "confidence_count": {name.replace(" ", "_"): count for name, count in states.items()},
            **self._at_prevalence(values),
            "confusion": {"tp": int(counts[TP]), "tn": int(counts[TN]), "fp": int(counts[FP]), "fn": int(counts[FN])},
            "support": {n: int(counts[ANSWERS:].sum()), p: int(counts[:ANSWERS].sum())},
        }

    def _at_prevalence(self, values: dict[str, float | None]) -> dict[str, Any]:
        """Precision where a share `prevalence` of the samples is positive, by Bayes' rule from the two recalls."""
        share = self.config.prevalence
        if share is None:
            return {}
        p, n = self.classes
        recall_p, recall_n = values[f"recall_{p}"], values[f"recall_{n}"]
        if recall_p is None or recall_n is None:
            return {f"precision_{p}_at_prevalence": None, f"precision_{n}_at_prevalence": None}
        flagged = share * recall_p + (1 - share) * (1 - recall_n)
        passed = (1 - share) * recall_n + share * (1 - recall_p)
        return {
            f"precision_{p}_at_prevalence": share * recall_p / flagged if flagged else None,
            f"precision_{n}_at_prevalence": (1 - share) * recall_n / passed if passed else None,
        }

    def _summary(self, per_trial: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Mean and sample standard deviation over the trials; null where a trial has no value, or there is one trial."""
        blocks = list(per_trial.values())
        names = [name for name, value in blocks[0].items() if value is None or isinstance(value, float)]
        mean: dict[str, float | None] = {}
        std: dict[str, float | None] = {}
        for name in names:
            values = [block[name] for block in blocks]
            known = all(value is not None for value in values)
            mean[name] = exact.mean_of(values) if known else None
            std[name] = float(np.std(values, ddof=1)) if known and len(values) > 1 else None
        flips = flip_rate(self.data.patterns) if len(self.trials) > 1 else None
        return {
            "trials": len(blocks),
            "mean": mean,
            "std": std,
            "flip_rate": None if flips is None else flips.value,
        }

    def _reliability(self) -> list[dict[str, Any]]:
        scores = self.data.joined()
        clusters = scores.sample if len(self.trials) > 1 else None
        table = calibration.reliability_table(
            scores.confidence, scores.correct, bins=self.config.bins, clusters=clusters, tally=scores.tally
        )
        return [
            {
                "low": row.low,
                "high": row.high,
                "n": row.n,
                "mean_confidence": row.mean_confidence,
                "accuracy": row.accuracy.to_dict(),
            }
            for row in table
        ]

    def _provenance(self) -> dict[str, Any]:
        counted = self.counted
        carried = {name: int(count) for name, count in zip(PROVENANCE, counted.carries, strict=True)}
        return {
            "records": counted.received,
            "carried": carried,
            "missing": [name for name, count in carried.items() if count < counted.received],
            "prompts": _tally(counted.prompts)[:PROMPTS_SHOWN],
            "prompts_distinct": len(counted.prompts),
            "models": _tally(counted.models),
            "temperatures": _tally(counted.temperatures),
            "run_configs": _tally(counted.run_configs),
        }


def flip_rate(patterns: dict[Pattern, int]) -> Estimate:
    """The share of samples, among those with several trials, whose answer is not the same in all of them."""
    flipped = repeated = 0
    for pattern, count in patterns.items():
        if len(pattern) > 1:
            repeated += count
            flipped += count if len({place for _, place in pattern}) > 1 else 0
    if not repeated:
        return Estimate.null("no sample has several trials", method="wilson")
    return wilson(flipped, repeated)


def _buckets(counts: Ints) -> dict[str, int]:
    by_bucket = {
        "passed": counts[[TP, TN]].sum(),
        "failed": counts[[FP, FN]].sum(),
        "abstained": counts[list(both(ABSTAINED))].sum(),
        "unparsed": counts[list(both(UNPARSED))].sum(),
        "errored": counts[list(both(ERRORED))].sum(),
        "missing": counts[list(both(MISSING))].sum(),
    }
    return {name: int(by_bucket[name]) for name in BUCKETS} | {"n": int(counts.sum())}


def _tally(counter: Any) -> list[dict[str, Any]]:
    """Values by falling count, then name; what is not known last."""
    order = sorted(counter.items(), key=lambda item: (item[0] is None, -item[1], str(item[0])))
    return [{"value": value, "records": count} for value, count in order]


def _slices(whole: Partial, config: TriageConfig, measured: Measured) -> dict[str, Any]:
    """Every measure on the records of each value of a `meta` key, the largest values first."""
    _refuse_absent_slices(whole, config)
    by_key: dict[str, Any] = {}
    classes = config.classes()
    for key in config.slices:
        sizes: dict[str, int] = {}
        for (_, slice_key, value), block in whole.blocks.items():
            if slice_key == key:
                sizes[value] = sizes.get(value, 0) + sum(int(counts.sum()) for counts in block.counts.values())
        refuse_many_slices(key, len(sizes))
        shown = sorted(sizes, key=lambda value: (-sizes[value], value))[:SLICE_VALUES]
        by_key[key] = {"values": {value: sizes[value] for value in shown}, "left_out": len(sizes) - len(shown)}
        for name in sorted(whole.configurations):
            for value in shown:
                cut = whole.blocks.get((name, key, value))
                if cut is None:
                    continue
                where = f"slice={name},{key}={value}"
                numbers = Numbers(
                    sum(cut.counts.values(), start=np.zeros(2 * ANSWERS, dtype=np.int64)),
                    cut.joined(),
                    classes,
                    Draw(config.seed, config.resamples, f"{name}/{key}={value}"),
                    patterns=cut.patterns if len(cut.counts) > 1 else None,
                    bins=config.bins,
                ).measure()
                measured.estimates += [Named(metric, where, estimate) for metric, estimate in numbers.items()]
    return by_key


def _refuse_absent_slices(whole: Partial, config: TriageConfig) -> None:
    """A key to slice by that no record and no sample of the manifest has is a mistake in its name."""
    for key in config.slices:
        values = {value for _, slice_, value in whole.blocks if slice_ == key}
        if values == {NO_VALUE} and whole.meta_keys is not None:
            known = sorted(f"meta.{name}" for name in whole.meta_keys)
            close = difflib.get_close_matches(f"meta.{key.removeprefix('meta.')}", known, n=3, cutoff=0.5)
            meant = f"did you mean {' or '.join(close)}? " if close else ""
            raise ConfigError(f"no record has {key!r} to slice by; {meant}They have {', '.join(known) or 'no meta'}")
