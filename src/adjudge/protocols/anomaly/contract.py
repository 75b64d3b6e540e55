"""The reviewer's contract over scores: the frozen threshold, and the checks that scores and configuration decide.

`missing_reasons` makes the recorded checks of a run again from what it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjudge.protocols.anomaly.batch import ATTACKED, LABELLED, NORMAL, ScoreTable
from adjudge.protocols.anomaly.batch import Sequence as Item
from adjudge.protocols.anomaly.catalog import Attack
from adjudge.protocols.anomaly.checks import Check
from adjudge.protocols.anomaly.config import AnomalyConfig
from adjudge.protocols.anomaly.leakage import Content, check_disjoint, check_no_shuffle, column_checks, split_checks
from adjudge.protocols.anomaly.overlap import overlap
from adjudge.protocols.anomaly.rows import SPLITS, Flight, Splits
from adjudge.protocols.anomaly.rules import NO_SCORES
from adjudge.protocols.anomaly.words import TEST, TRAIN, VAL
from adjudge.stats.detection import exceeded_by_at_most, needed
from adjudge.stats.proportions import exceedance

FROM_VALIDATION = "clean validation scores"
FEWEST = 500
"""Resamples that an interval needs."""
ELSEWHERE = "the detector ran elsewhere; scores do not show it"
Attacks = Sequence[Attack] | None
"""Every attack of the catalog, where there is one."""


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


def calibrate(table: ScoreTable, target: float, from_outside: float | None, *, usable: bool = True) -> Calibration:
    """The frozen threshold: from clean validation scores, or the one given from outside; none without usable scores."""
    if not usable:
        return Calibration(None, NO_SCORES, target, 0, needed(target), None, None)
    rows = [table.rows(index) for index in table.clean(VAL)]
    scores = np.concatenate([np.zeros(0), *(table.score[part][table.label[part] == NORMAL] for part in rows)])
    linear = float(np.percentile(scores, 100 * (1 - target))) if scores.size else None
    threshold, source = from_outside, "given from outside"
    if from_outside is None:
        threshold, source = exceeded_by_at_most(scores, target) if scores.size else None, FROM_VALIDATION
    achieved = exceedance(scores, threshold).value if scores.size and threshold is not None else None
    return Calibration(threshold, source, target, int(scores.size), needed(target), linear, achieved)


def check_threshold(calibration: Calibration) -> Check:
    """`threshold.clean_val_only`."""
    if calibration.source == NO_SCORES:
        return Check.unknown("threshold.clean_val_only", NO_SCORES)
    check = Check("threshold.clean_val_only", observed=calibration.threshold)
    if calibration.source != FROM_VALIDATION:
        check.fail(f"the threshold {calibration.threshold:g} was given from outside")
    elif calibration.n < calibration.needed:
        wanted = f"a target of {100 * calibration.target_fpr:g} % needs {calibration.needed}"
        check.fail(f"{calibration.n} clean validation samples; {wanted}")
    return check


def check_consecutive(setting: Any) -> tuple[Check, int]:
    """`decision.n_consecutive`: one whole number, or the rule fails; and the N that is used."""
    check = Check("decision.n_consecutive")
    if isinstance(setting, int) and not isinstance(setting, bool):
        check.observed = float(setting)
        return check, setting
    check.fail(f"n_consecutive is {setting!r}: one whole number must be fixed before test")
    numbers = [item for item in setting if isinstance(item, int)] if isinstance(setting, list) else []
    return check, numbers[0] if numbers else 5


def check_attacks(table: ScoreTable) -> Check:
    """`attack.test_only`."""
    check = Check("attack.test_only")
    for index in (*table.of_split(TRAIN), *table.of_split(VAL)):
        item, rows = table.sequences[index], int((table.label[table.rows(index)] == ATTACKED).sum())
        if item.attack is not None or rows:
            check.fail(f"flight {item.flight} of {item.split} is attacked ({item.attack}, {rows} rows labelled)")
    return check


def check_resamples(resamples: int) -> Check:
    """`ci.bootstrap`."""
    check = Check("ci.bootstrap", observed=float(resamples))
    if resamples < FEWEST:
        check.fail(f"{resamples} resamples, at least {FEWEST} are needed")
    return check


def check_metrics(table: ScoreTable, left_out: Sequence[str], attacks: Attacks) -> Check:
    """`metrics.complete`: no primary metric and no attack of the catalog is left out."""
    check = Check("metrics.complete")
    for name in left_out:
        check.fail(f"{name} is left out")
    judged = {item.attack for item in _attacked(table)}
    for name in sorted({attack.name for attack in attacks or ()} - judged):
        check.fail(f"attack {name} of the catalog was not judged")
    return check


def check_artifacts(table: ScoreTable, attacks: Attacks) -> Check:
    """`artifacts.complete`: the catalog of the run describes every attack that was judged."""
    check = Check("artifacts.complete")
    if attacks is None:
        return check
    known = {(attack.name, attack.magnitude) for attack in attacks}
    judged = {(item.attack, item.magnitude) for item in _attacked(table) if item.attack != LABELLED}
    for name, size in sorted(judged - known, key=str):
        shown = name if size is None else f"{name} of size {size:g}"
        check.fail(f"catalog.json does not describe {shown}, which was judged")
    return check


def check_seeds(table: ScoreTable, attacks: Attacks, *, injected_here: bool) -> Check:
    """`seeds.recorded`: whatever draws random numbers for an attack names its seed, and it is one of the catalog's."""
    check = Check("seeds.recorded")
    for name in sorted({attack.name for attack in attacks or () if attack.random and attack.seed is None}):
        check.fail(f"attack {name} draws random numbers, and the catalog records no seed for it")
    if injected_here:
        return check
    injected = [item for item in _attacked(table) if item.attack != LABELLED]
    if not check.reasons and not injected:
        return Check.not_needed(check.code, "no attack was injected")
    if not check.reasons and all(item.seed is None for item in injected):
        return Check.unknown(check.code, "the scores name no seed of an attack")
    known = {(attack.name, attack.seed) for attack in attacks or ()}
    for name, seed in sorted({(str(item.attack), item.seed) for item in injected}, key=str):
        if seed is None:
            check.fail(f"attack {name} was injected without a recorded seed")
        elif any(name == other for other, _ in known) and (name, seed) not in known:
            check.fail(f"attack {name} was injected with seed {seed}, which the catalog does not record")
    return check


def _attacked(table: ScoreTable) -> list[Item]:
    return [item for item in table.sequences if item.split == TEST and item.attack is not None]


def check_scored_splits(table: ScoreTable, splits: Splits, bound: float) -> list[Check]:
    """`split.disjoint` and `split.covers` of a scores file, also by the content of clean sequences."""
    flights = {
        item.flight: Flight(item.flight, table.time[table.rows(i)], {"score": table.score[table.rows(i)]})
        for i, item in enumerate(table.sequences)
        if item.attack is None
    }
    # Scores with few distinct values repeat by chance; only varied ones show a copied flight.
    varied = [flight for flight in flights.values() if np.unique(flight.columns["score"]).size > 10]
    shared = overlap(varied)
    disjoint = check_disjoint(splits, Content([tuple(pair) for pair in shared.pairs], (), ()), bound=bound)
    for name, declared_split in table.declared:
        for split in SPLITS:
            if name in splits.of(split) and declared_split != split:
                disjoint.fail(f"flight {name} is {declared_split!r} in the scores and {split} in splits.json")
    covers = Check("split.covers")
    present = {item.flight for item in table.sequences}
    for name in sorted({item.flight for item in table.sequences if item.split == "unassigned"}):
        covers.fail(f"flight {name} is in the scores and in no split")
    for split in (VAL, TEST):
        for name in sorted(set(splits.of(split)) - present):
            covers.fail(f"flight {name} of {split} has no scores")
    return [disjoint, covers]


def score_checks(table: ScoreTable, calibration: Calibration, settings: AnomalyConfig, attacks: Attacks) -> list[Check]:
    """The checks that follow from the scores and the configuration alone; verification makes them again."""
    return [
        check_no_shuffle([(item.id, table.time[table.rows(i)]) for i, item in enumerate(table.sequences)]),
        check_threshold(calibration),
        check_consecutive(settings.n_consecutive)[0],
        check_attacks(table),
        check_metrics(table, settings.left_out, attacks),
        check_resamples(settings.resamples),
        check_artifacts(table, attacks),
        check_seeds(table, attacks, injected_here=settings.scores is None),
    ]


def elsewhere_checks() -> list[Check]:
    """What cannot be checked when only scores are at hand."""
    codes = ["scaler.train_normal_only", "detector.train_only", "detector.causal"]
    codes += ["feature.banned", "feature.allowed", "feature.circular"]
    return [Check.unknown(code, ELSEWHERE) for code in codes]


def missing_reasons(
    recorded: Sequence[Check], record: Mapping[str, Any], table: ScoreTable, splits: Splits, settings: AnomalyConfig
) -> list[str]:
    """Every reason that follows from the run's splits, scores and record, and that the recorded check lacks."""
    if settings.scores is not None:
        checks = check_scored_splits(table, splits, settings.overlap_bound)
    else:
        present = [*(record.get("flights") or ()), *(item.flight for item in table.sequences)]
        checks = split_checks(splits, record, present, settings, folds=settings.leave_one_flight_out)
        checks += column_checks(record, settings)
    known = {(check.code, reason) for check in recorded for reason in check.reasons}
    reasons = [(check.code, reason) for check in checks for reason in check.reasons]
    return [f"{code} does not say: {reason}" for code, reason in reasons if (code, reason) not in known]
