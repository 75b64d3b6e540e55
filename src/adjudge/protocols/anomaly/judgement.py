"""One detector under the contract: its threshold, every check, what it did on each sequence, and where each ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.anomaly.contract import (
    TITLES,
    Calibration,
    calibrate,
    check_artifacts,
    check_consecutive,
    check_seeds,
    table_checks,
)
from adjudge.protocols.anomaly.decide import Decisions, decide
from adjudge.protocols.anomaly.leakage import Check, merged, not_applicable
from adjudge.protocols.anomaly.measure import PRIMARY
from adjudge.protocols.anomaly.settings import AnomalyConfig
from adjudge.protocols.anomaly.table import ScoreTable
from adjudge.protocols.anomaly.words import TEST

_WORDS = {True: ("detected", "quiet"), False: ("missed", "false_alarm")}


@dataclass(frozen=True)
class Judgement:
    """What was found of one detector. `recorded` was found while it ran; `checks` is every rule of the contract."""

    name: str
    table: ScoreTable
    folds: list[tuple[str, ScoreTable]]
    recorded: list[Check]
    record: dict[str, Any]
    checks: dict[str, Check]
    calibration: Calibration
    decisions: Decisions
    n_consecutive: int
    test: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        name: str,
        table: ScoreTable,
        recorded: list[Check],
        record: dict[str, Any],
        settings: AnomalyConfig,
        attacks: Sequence[tuple[str, float | None, int]] | None,
        folds: list[tuple[str, ScoreTable]],
    ) -> Judgement:
        """Judge the scores; `attacks` are (name, size, seed) of the catalog, where there is one."""
        broken = bool(np.isnan(table.score).any())
        consecutive, n = check_consecutive(settings.n_consecutive)
        calibration = calibrate(table, settings.target_fpr, settings.threshold, usable=not broken)
        left_out = [name for name in PRIMARY if settings.metrics is not None and name not in settings.metrics]
        made = table_checks(table, calibration, consecutive, settings.resamples, left_out, attacks)
        made += [check_artifacts(table, attacks), check_seeds(table, attacks, own=settings.scores is None)]
        sound = Check("detector.scores")
        if broken and not any(check.code == sound.code and check.leak for check in recorded):
            sound.fail("some scores are no number")
        made.append(sound)
        found = merged([*recorded, *made])
        checks = {code: found.get(code) or not_applicable(code, "not checked") for code in TITLES}
        decisions = decide(table, calibration.threshold, n)
        test = np.array(table.of(TEST), dtype=np.intp)
        return cls(name, table, folds, recorded, record, checks, calibration, decisions, n, test)

    @property
    def broken(self) -> bool:
        """Whether the detector gave no sound scores."""
        return self.checks["detector.scores"].leak

    @property
    def violations(self) -> list[Check]:
        """The rules that the detector or its pipeline violated."""
        return [check for check in self.checks.values() if check.leak]

    @property
    def good(self) -> NDArray[np.bool_]:
        """Per sequence of test: attacked and detected, or clean and quiet."""
        part = self.decisions.take(self.test)
        good: NDArray[np.bool_] = np.where(part.attacked, part.detected, part.events == 0)
        return good

    def bucket_names(self) -> list[str]:
        """Where each sequence of test ended."""
        if self.broken:
            return ["errored"] * self.test.size
        return ["passed" if good else "failed" for good in self.good]

    def verdicts(self) -> list[str]:
        """The verdict on each sequence of test."""
        if self.broken:
            return ["errored"] * self.test.size
        if self.violations:
            return ["invalid"] * self.test.size
        attacked = self.decisions.attacked[self.test]
        return [_WORDS[bool(good)][0 if hit else 1] for good, hit in zip(self.good, attacked, strict=True)]

    def buckets(self) -> dict[str, int]:
        """How many sequences of test ended where."""
        names = self.bucket_names()
        return {bucket: names.count(bucket) for bucket in BUCKETS} | {"n": len(names)}
