"""The numbers of a triage run: a block a configuration and trial, means over trials, slices, latency, provenance."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from adjudge.errors import ConfigError
from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.base import Measured, Named
from adjudge.protocols.triage import charts
from adjudge.protocols.triage.batch import ABSTAINED, ANSWERS, CONFIDENCE_STATES, NEGATIVE, POSITIVE, PROVENANCE
from adjudge.protocols.triage.comparable import DATASET_COLUMNS, comparable
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.counts import (
    AVERAGED,
    CELLS,
    NO_VALUE,
    Block,
    Configuration,
    Ints,
    Partial,
    Pattern,
    merge,
)
from adjudge.protocols.triage.facts import factors, refuse_mixtures
from adjudge.protocols.triage.latency import latency, latency_estimates
from adjudge.protocols.triage.measure import Draw, Numbers, share_of
from adjudge.protocols.triage.metrics import CELLS_OF, FN, FP, TN, TP, aliases, cell
from adjudge.protocols.triage.notes import judged, notes
from adjudge.protocols.triage.operating import apply
from adjudge.protocols.triage.sections import sections
from adjudge.readers.sources import refuse_many_slices
from adjudge.stats import calibration, exact, selective
from adjudge.stats.estimate import Estimate

SLICE_VALUES = 50
PROMPTS_SHOWN = 20
MOST_BLOCKS = 200
"""Configurations with a block of their own and resampled intervals; of more there are shares with intervals, and values."""


def finish(partials: Sequence[Partial], config: TriageConfig) -> Measured:
    """All numbers from the partials, in order."""
    whole = merge(partials)
    measured = Measured(estimates=[], buckets={}, digests={"dataset": f"{whole.dataset:064x}"})
    configurations: dict[str, Any] = {}
    every = np.zeros(CELLS, dtype=np.int64)
    for place, name in enumerate(sorted(whole.configurations)):
        block, counted = whole.blocks[name, "", ""], whole.configurations[name]
        refuse_mixtures(name, counted, sum(block.patterns.values()))
        view = _View(name, block, counted, config, measured)
        draw = None
        if place < MOST_BLOCKS:
            configurations[name] = view.block()
            draw = view.draw(f"{name}/latency")
        else:
            view.measured_trials(resampled=False)
        measured.estimates += latency_estimates(name, counted, draw, several=view.several)
        for trial, counts in sorted(block.counts.items()):
            measured.buckets[f"{name}|{trial}"] = _buckets(counts)
            every = every + counts
    measured.buckets = {"all": _buckets(every), **measured.buckets}
    measured.put_first("configuration")
    measured.top = {
        "classes": {"positive": config.positive, "negative": config.negative},
        "samples": whole.samples,
        "judged": judged(whole),
        "gravest": ["triage.slip", "triage.false_flag"],
        "configurations": configurations,
        "slices": _slices(whole, config, measured),
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


class _View:
    """One configuration."""

    def __init__(
        self, name: str, block: Block, counted: Configuration, config: TriageConfig, measured: Measured
    ) -> None:
        self.name, self.data, self.counted, self.config, self.measured = name, block, counted, config, measured
        self.classes = config.classes()
        self.several = len(block.counts) > 1

    def draw(self, stream: str) -> Draw:
        return Draw(self.config.seed, self.config.resamples, stream)

    def block(self) -> dict[str, Any]:
        """The configuration as metrics.json has it."""
        per_trial = {}
        for trial, numbers, estimates in self.measured_trials():
            values = self._trial(trial, numbers.counts, estimates)
            if self.config.operating is not None:
                point = self.config.operating.get(self.name)
                values["operating_point"] = apply(
                    point, numbers.counts, numbers.scores, self.classes, self.config.costs
                )
            per_trial[str(trial)] = values
        scores = self.data.joined()
        return {
            "per_trial": per_trial,
            "summary": self._summary(list(per_trial.values())),
            "reliability": self._reliability(),
            "risk_coverage": msgspec.to_builtins(
                selective.risk_coverage(scores.confidence, scores.correct, blocks=scores.blocks)
            ),
            "latency": latency(self.counted),
            "provenance": self._provenance(),
        }

    def measured_trials(self, *, resampled: bool = True) -> list[tuple[int, Numbers, dict[str, Estimate]]]:
        """Every trial with its estimates, which are added to the run's, as are those of several trials together."""
        scores, bins, trials = self.data.joined(), self.config.bins, []
        for trial, counts in sorted(self.data.counts.items()):
            scores_of_trial = scores.rows(scores.trial == trial) if self.several else scores
            numbers = Numbers(counts, scores_of_trial, self.classes, self.draw(f"{self.name}|{trial}"), bins=bins)
            trials.append((trial, numbers, numbers.measure(resampled=resampled)))
            where = f"trial={self.name}|{trial}" if self.several else f"configuration={self.name}"
            _add(self.measured, where, trials[-1][2])
        if self.several:
            pooled = _all_trials(self.data, self.config, self.name).measure(resampled=resampled)
            _add(self.measured, f"configuration={self.name}", pooled | {"flip_rate": flip_rate(self.data.patterns)})
        return trials

    def _trial(self, trial: int, counts: Ints, numbers: dict[str, Estimate]) -> dict[str, Any]:
        p, n = self.classes
        values = {name: estimate.value for name, estimate in numbers.items()}
        values |= {alias: values[name] for alias, name in aliases(self.classes).items()}
        averages = {f"avg_{name}": self.counted.mean(trial, name) for name in AVERAGED}
        states = dict(zip(CONFIDENCE_STATES, self.counted.states[trial].tolist(), strict=True))
        buckets = _buckets(counts)
        return {
            "total": buckets["n"],
            "correct": buckets["passed"],
            "answered": buckets["passed"] + buckets["failed"],
            **values,
            **averages,
            "abstain_count": buckets["abstained"],
            f"abstain_count_{p}": int(counts[cell(POSITIVE, ABSTAINED)]),
            f"abstain_count_{n}": int(counts[cell(NEGATIVE, ABSTAINED)]),
            "error_count": buckets["errored"],
            "unparsed_count": buckets["unparsed"],
            "missing_count": buckets["missing"],
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

    def _summary(self, blocks: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Mean and sample standard deviation over the trials; null where a trial has no value, or there is one trial."""
        mean: dict[str, float | None] = {}
        std: dict[str, float | None] = {}
        for name, value in blocks[0].items():
            if value is None or isinstance(value, float):
                values = [block[name] for block in blocks]
                known = None not in values
                mean[name] = exact.mean_of(values) if known else None
                std[name] = float(np.std(values, ddof=1)) if known and len(values) > 1 else None
        return {"trials": len(blocks), "mean": mean, "std": std, "flip_rate": flip_rate(self.data.patterns).value}

    def _reliability(self) -> Any:
        scores = self.data.joined()
        clusters = scores.sample if self.several else None
        table = calibration.reliability_table(
            scores.confidence, scores.correct, bins=self.config.bins, clusters=clusters, tally=scores.tally
        )
        return msgspec.to_builtins(table)

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
    return share_of(flipped, repeated, "no sample has several trials")


def _buckets(counts: Ints) -> dict[str, int]:
    return {name: int(counts[list(CELLS_OF[name])].sum()) for name in BUCKETS} | {"n": int(counts.sum())}


def _tally(counter: Any) -> list[dict[str, Any]]:
    """Values by falling count, then name; what is not known last."""
    order = sorted(counter.items(), key=lambda item: (item[0] is None, -item[1], str(item[0])))
    return [{"value": value, "records": count} for value, count in order]


def _all_trials(block: Block, config: TriageConfig, stream: str) -> Numbers:
    """The numbers of all trials of a block together, whose samples are clusters where there are several."""
    patterns = block.patterns if len(block.counts) > 1 else None
    draw = Draw(config.seed, config.resamples, stream)
    return Numbers(block.total(), block.joined(), config.classes(), draw, patterns=patterns, bins=config.bins)


def _add(measured: Measured, where: str, estimates: dict[str, Estimate]) -> None:
    measured.estimates += [Named(name, where, estimate) for name, estimate in estimates.items()]


def _slices(whole: Partial, config: TriageConfig, measured: Measured) -> dict[str, Any]:
    """Every measure on the records of each value of a `meta` key, the largest values first."""
    _refuse_absent_slices(whole, config)
    by_key: dict[str, Any] = {}
    for key in config.slices:
        sizes: Counter[str] = Counter()
        for (_, slice_key, value), block in whole.blocks.items():
            if slice_key == key:
                sizes[value] += int(block.total().sum())
        refuse_many_slices(key, len(sizes))
        shown = sorted(sizes, key=lambda value: (-sizes[value], value))[:SLICE_VALUES]
        by_key[key] = {"values": {value: sizes[value] for value in shown}, "left_out": len(sizes) - len(shown)}
        for name in sorted(whole.configurations):
            for value in shown:
                if (name, key, value) in whole.blocks:
                    numbers = _all_trials(whole.blocks[name, key, value], config, f"{name}/{key}={value}")
                    _add(measured, f"slice={name},{key}={value}", numbers.measure())
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
