"""The reviewer's contract: its rules as evidence, and the checks that decide them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.rule import Condition, Finding, Floats, Mask, Rule, RuleSet
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.anomaly.flights import Flight
from adjudge.protocols.anomaly.leakage import Check, check_disjoint, check_no_shuffle, not_applicable
from adjudge.protocols.anomaly.splits import Splits
from adjudge.protocols.anomaly.table import LABELLED, ScoreTable
from adjudge.protocols.anomaly.words import TEST, TRAIN, VAL
from adjudge.stats.error_measures import exceedance
from adjudge.stats.thresholds import exceeded_by_at_most, needed

NO_SCORES = "the detector gave no sound scores"
ELSEWHERE = "the detector ran elsewhere; scores do not show it"
TITLES: dict[str, tuple[str, str]] = {
    "split.disjoint": ("Every flight is in one split", "no flight, by id or by content, is in two splits"),
    "split.covers": ("The splits cover the data", "every flight is assigned, every assigned flight is there"),
    "split.no_shuffle": ("Time runs forward", "time runs forward within every flight"),
    "scaler.train_normal_only": ("The scaler saw train alone", "the scaler was fitted once, on normal rows of train"),
    "threshold.clean_val_only": (
        "The threshold comes from clean validation",
        "set on clean validation scores, then frozen",
    ),
    "feature.banned": ("No banned sensor", "no feature is fused, filtered, derived or a label"),
    "feature.allowed": ("Every feature is raw or declared", "every feature is raw or has a declared source"),
    "feature.circular": ("No circular feature", "no feature follows the target, the label or the other group"),
    "decision.n_consecutive": ("N is fixed before test", "the number of consecutive exceedances was fixed before test"),
    "attack.test_only": ("Attacks are in test alone", "train and validation rows are clean"),
    "metrics.complete": ("All primary metrics are reported", "every primary metric is reported, per attack"),
    "ci.bootstrap": ("Intervals come from the flight bootstrap", "at least 500 resamples of flights"),
    "artifacts.complete": ("All files are there", "every file of the contract is in the run"),
    "seeds.recorded": ("Seeds are recorded", "every seed stands in the configuration"),
    "code.clean": ("The code does not leak", "the code scan found no leak"),
    "detector.scores": ("The detector gives sound scores", "one finite score for every row of every flight"),
}
Attacks = Sequence[tuple[str, float | None, int]] | None
"""(name, size, seed) of every attack of the catalog, where there is one."""
DETECTED, QUIET = "detection.attack", "detection.false_alarm"


@dataclass(frozen=True)
class Calibration:
    """The threshold, where it comes from, and how often clean scores exceed it."""

    threshold: float | None
    source: str
    target_fpr: float
    n: int
    needed: int
    linear_percentile: float | None
    validation_fpr: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for calibration.json."""
        return dict(self.__dict__)


@dataclass
class ContractBatch:
    """What the rules read: every detector's checks, and per sequence its detector, whether it is attacked, its alarms."""

    n: int
    checks: Sequence[Mapping[str, Check]]
    model: NDArray[np.intp]
    broken: Mask
    attacked: Mask
    alarmed: Mask
    latency: Floats
    events: Floats


def calibrate(table: ScoreTable, target: float, given: float | None, *, usable: bool = True) -> Calibration:
    """The frozen threshold: from clean validation scores, or the one given from outside; none without usable scores."""
    if not usable:
        return Calibration(None, NO_SCORES, target, 0, needed(target), None, None)
    clean = [index for index in table.of(VAL) if table.sequences[index].attack is None]
    parts = [table.score[table.rows(index)] for index in clean]
    scores = np.concatenate(parts) if parts else np.zeros(0)
    linear = float(np.percentile(scores, 100 * (1 - target))) if scores.size else None
    threshold = given if given is not None else exceeded_by_at_most(scores, target) if scores.size else None
    achieved = exceedance(scores, threshold).value if scores.size and threshold is not None else None
    source = "clean validation scores" if given is None else "given from outside"
    return Calibration(threshold, source, target, int(scores.size), needed(target), linear, achieved)


def check_threshold(calibration: Calibration) -> Check:
    """`threshold.clean_val_only`."""
    if calibration.source == NO_SCORES:
        return not_applicable("threshold.clean_val_only", NO_SCORES)
    check = Check("threshold.clean_val_only", observed=calibration.threshold)
    if calibration.source != "clean validation scores":
        check.fail(f"the threshold {calibration.threshold:g} was given from outside")
    elif calibration.n < calibration.needed:
        check.fail(
            f"{calibration.n} clean validation samples; a target of {100 * calibration.target_fpr:g} % needs "
            f"{calibration.needed}"
        )
    return check


def check_consecutive(given: Any) -> tuple[Check, int]:
    """`decision.n_consecutive`: one whole number, or the rule fails; and the N that is used."""
    check = Check("decision.n_consecutive")
    if isinstance(given, int) and not isinstance(given, bool):
        check.observed = float(given)
        return check, given
    check.fail(f"n_consecutive is {given!r}: one whole number must be fixed before test")
    numbers = [item for item in given if isinstance(item, int)] if isinstance(given, list) else []
    return check, numbers[0] if numbers else 5


def check_attacks(table: ScoreTable) -> Check:
    """`attack.test_only`."""
    check = Check("attack.test_only")
    for split in (TRAIN, VAL):
        for index in table.of(split):
            item = table.sequences[index]
            rows = int(table.label[table.rows(index)].sum())
            if item.attack is not None or rows:
                check.fail(f"flight {item.flight} of {split} is attacked ({item.attack}, {rows} rows labelled)")
    return check


def check_resamples(resamples: int) -> Check:
    """`ci.bootstrap`."""
    check = Check("ci.bootstrap", observed=float(resamples))
    if resamples < 500:
        check.fail(f"{resamples} resamples, at least 500 are needed")
    return check


def check_metrics(table: ScoreTable, left_out: Sequence[str], attacks: Attacks) -> Check:
    """`metrics.complete`: no primary metric and no attack of the catalog is left out."""
    check = Check("metrics.complete")
    for name in left_out:
        check.fail(f"{name} is left out")
    judged = {table.sequences[index].attack for index in table.of(TEST)}
    for name in sorted({attack for attack, *_ in attacks or ()} - judged):
        check.fail(f"attack {name} of the catalog was not judged")
    return check


def check_artifacts(table: ScoreTable, attacks: Attacks) -> Check:
    """`artifacts.complete`: the catalog of the run describes every attack that was judged."""
    check = Check("artifacts.complete")
    if attacks is None:
        return check
    known = {(name, size) for name, size, _ in attacks}
    judged = {(item.attack, item.magnitude) for index in table.of(TEST) if (item := table.sequences[index]).attack}
    for name, size in sorted(judged - known, key=str):
        shown = name if size is None else f"{name} of size {size:g}"
        check.fail(f"catalog.json does not describe {shown}, which was judged")
    return check


def check_seeds(table: ScoreTable, attacks: Attacks, *, own: bool) -> Check:
    """`seeds.recorded`: every injected attack names its seed, and it is one of the catalog's."""
    check = Check("seeds.recorded")
    injected = [item for index in table.of(TEST) if (item := table.sequences[index]).attack not in {None, LABELLED}]
    if not own and not any(item.seed is not None for item in injected):
        why = "the scores name no seed of an attack" if injected else "no attack was injected"
        return not_applicable("seeds.recorded", why)
    known = {(name, seed) for name, _, seed in attacks or ()}
    names = {name for name, _ in known}
    for name, seed in sorted({(item.attack, item.seed) for item in injected}, key=str):
        if seed is None:
            check.fail(f"attack {name} was injected without a recorded seed")
        elif name in names and (name, seed) not in known:
            check.fail(f"attack {name} was injected with seed {seed}, which the catalog does not record")
    return check


def check_scored_splits(table: ScoreTable, splits: Splits) -> list[Check]:
    """`split.disjoint` and `split.covers` of a scores file, also by the content of clean sequences."""
    flights = {
        item.flight: Flight(item.flight, table.time[table.rows(i)], {"score": table.score[table.rows(i)]})
        for i, item in enumerate(table.sequences)
        if item.attack is None
    }
    # Scores with few distinct values repeat by chance; only varied ones show a copied flight.
    varied = [flight for flight in flights.values() if np.unique(flight.columns["score"]).size > 10]
    disjoint = check_disjoint(splits, varied)
    for name, said in table.declared:
        for split in (TRAIN, VAL, TEST):
            if name in splits.of(split) and said != split:
                disjoint.fail(f"flight {name} is {said!r} in the scores and {split} in splits.json")
    covers = Check("split.covers")
    present = {item.flight for item in table.sequences}
    for item in sorted({item.flight for item in table.sequences if item.split == "unassigned"}):
        covers.fail(f"flight {item} is in the scores and in no split")
    for split in (VAL, TEST):
        for name in sorted(set(splits.of(split)) - present):
            covers.fail(f"flight {name} of {split} has no scores")
    return [disjoint, covers]


def table_checks(
    table: ScoreTable,
    calibration: Calibration,
    consecutive: Check,
    resamples: int,
    left_out: Sequence[str],
    attacks: Attacks,
) -> list[Check]:
    """The checks that follow from the scores and the configuration alone; verification makes them again."""
    return [
        check_no_shuffle([(item.id, table.time[table.rows(i)]) for i, item in enumerate(table.sequences)]),
        check_threshold(calibration),
        consecutive,
        check_attacks(table),
        check_metrics(table, left_out, attacks),
        check_resamples(resamples),
    ]


def elsewhere_checks() -> list[Check]:
    """What cannot be checked when only scores are at hand."""
    codes = ("scaler.train_normal_only", "feature.banned", "feature.allowed", "feature.circular")
    return [not_applicable(code, ELSEWHERE) for code in codes]


def _run_rule(code: str) -> Rule:
    title, passed = TITLES[code]

    def check(batch: ContractBatch) -> Finding:
        found = [checks[code] for checks in batch.checks]
        failed = np.array([item.outcome == "fail" for item in found])[batch.model][None]
        critical = np.array([item.leak for item in found])[batch.model][None]
        values = [item.observed for item in found]
        observed = None
        if any(value is not None for value in values):
            observed = np.array([np.nan if value is None else value for value in values])[batch.model][None]
        texts = ["; ".join(item.reasons[:3])[:300] for item in found]
        details = {(0, int(i)): texts[batch.model[i]] for i in np.flatnonzero(failed[0])}
        return Finding(failed, critical, observed, details=details)

    def applies(batch: ContractBatch) -> Mask:
        holds: Mask = np.array([checks[code].outcome != "not_applicable" for checks in batch.checks])[batch.model]
        return holds[None]

    return Rule(
        code=code,
        title=title,
        scope=Scope.RUN,
        passed=passed,
        failed="{why}",
        check=check,
        conditions=(Condition(applies, "it could not be checked; leakage_report.json says why"),),
    )


def _detected(batch: ContractBatch) -> Finding:
    missed = batch.attacked & ~batch.alarmed
    return Finding(missed[None], np.zeros((1, batch.n), dtype=bool), batch.latency[None])


def _quiet(batch: ContractBatch) -> Finding:
    alarmed = ~batch.attacked & (batch.events > 0)
    return Finding(alarmed[None], np.zeros((1, batch.n), dtype=bool), batch.events[None])


def rules(context: Any) -> list[Rule]:
    """All rules: the contract on the run, then what the detector did on the sequence."""
    del context
    return [
        *(_run_rule(code) for code in TITLES),
        Rule(
            code=DETECTED,
            title="The attack is detected",
            scope=Scope.SEQUENCE,
            passed="detected {observed} ms after its start",
            failed="not detected until its end, {observed} ms after its start",
            unit="ms",
            check=_detected,
            conditions=(
                Condition(lambda batch: ~batch.broken[None], NO_SCORES),
                Condition(lambda batch: batch.attacked[None], "the flight is clean"),
            ),
        ),
        Rule(
            code=QUIET,
            title="No alarm on a clean flight",
            scope=Scope.SEQUENCE,
            passed="no alarm",
            failed="{observed} alarms on a clean flight",
            check=_quiet,
            conditions=(
                Condition(lambda batch: ~batch.broken[None], NO_SCORES),
                Condition(lambda batch: ~batch.attacked[None], "the flight is attacked"),
            ),
        ),
    ]


RULES = RuleSet("anomaly", "anomaly", rules)
