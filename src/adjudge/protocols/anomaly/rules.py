"""The rules of the contract: those on the run, which its checks decide, and those on each sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjudge.evidence.rule import Condition, Finding, Mask, Rule, RuleSet
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.anomaly.batch import ContractBatch

NO_SCORES = "the detector gave no sound scores"
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
    "detector.train_only": ("The detector learns from train alone", "fitted without validation it scores the same"),
    "detector.causal": ("Scores do not look ahead", "the score of a row does not change with the rows after it"),
    "detector.scores": ("The detector gives sound scores", "one finite score for every row of every flight"),
}
DETECTED, QUIET = "detection.attack", "detection.false_alarm"


def _run_rule(code: str) -> Rule:
    title, passed = TITLES[code]

    def check(batch: ContractBatch) -> Finding:
        of_detectors = [checks[code] for checks in batch.checks]
        failed = np.array([item.outcome == "fail" for item in of_detectors])[batch.model][None]
        critical = np.array([item.leak for item in of_detectors])[batch.model][None]
        values = np.array([item.observed for item in of_detectors], dtype=np.float64)
        observed = None if np.isnan(values).all() else values[batch.model][None]
        texts = ["; ".join(item.reasons[:3])[:300] for item in of_detectors]
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
    missed = batch.attacked & ~batch.detected
    return Finding(missed[None], np.zeros((1, batch.n), dtype=bool), batch.latency[None])


def _quiet(batch: ContractBatch) -> Finding:
    alarmed = ~batch.attacked & (batch.events > 0)
    return Finding(alarmed[None], np.zeros((1, batch.n), dtype=bool), batch.events[None])


def rules(context: Any) -> list[Rule]:
    """All rules: the contract on the run, then what the detector did on the sequence."""
    del context
    sound = Condition(lambda batch: ~batch.broken[None], NO_SCORES)
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
            conditions=(sound, Condition(lambda batch: batch.attacked[None], "the flight is clean")),
        ),
        Rule(
            code=QUIET,
            title="No alarm on a clean flight",
            scope=Scope.SEQUENCE,
            passed="no alarm",
            failed="{observed} alarms on a clean flight",
            check=_quiet,
            conditions=(sound, Condition(lambda batch: ~batch.attacked[None], "the flight is attacked")),
        ),
    ]


RULES = RuleSet("anomaly", "anomaly", rules)
