"""The operating point: below which confidence to abstain, chosen on calibration data alone, then applied to the test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from adjudge.errors import InputError
from adjudge.protocols.base import Partition
from adjudge.protocols.triage.batch import GIVEN, NEGATIVE, POSITIVE
from adjudge.protocols.triage.columns import Columns
from adjudge.protocols.triage.config import Costs, TriageConfig
from adjudge.protocols.triage.partials import Ints, Scores
from adjudge.protocols.triage.read import TriageReader, role
from adjudge.protocols.triage.words import Classes
from adjudge.readers.records import records
from adjudge.readers.sources import open_source
from adjudge.stats.estimate import Estimate
from adjudge.stats.operating_point import cheapest_point, operating_point
from adjudge.stats.proportions import wilson

_REVIEWED = -1.0  # below every threshold: a record without an answer or a usable confidence goes to a person


class _Row(NamedTuple):
    trial: int
    label: int
    answer: int
    confidence: float


def choose(config: TriageConfig) -> dict[str, Any]:
    """The threshold of every configuration in the calibration files; one record a sample, that of its first trial."""
    own = msgspec.structs.replace(
        config, results=[config.calibration], manifest=[], calibration=[], target_risk=None, costs=None, slices=[]
    )
    reader, columns = TriageReader(own), Columns(own)
    partition = Partition(rows={role(0): _lines(config.calibration)}, groups=(), files=tuple(config.calibration))
    found: dict[str, dict[str, _Row]] = {}
    for rows, order in reader.batches(partition):
        read = columns.read(rows, order)
        batch = read.batch
        confidence = np.where(batch.confidence_state == GIVEN, batch.confidence, _REVIEWED)
        values = zip(batch.label.tolist(), batch.answer.tolist(), confidence.tolist(), strict=True)
        for sample, place, value in zip(read.samples.to_pylist(), read.group.tolist(), values, strict=True):
            group = read.groups[place]
            known = found.setdefault(group.configuration, {})
            if sample not in known or group.trial < known[sample].trial:
                known[sample] = _Row(group.trial, *value)
    return {name: _choose(list(known.values()), config) for name, known in sorted(found.items())}


def _choose(rows: Sequence[_Row], config: TriageConfig) -> dict[str, Any]:
    label, answer = np.array([row.label for row in rows]), np.array([row.answer for row in rows])
    answered = answer <= NEGATIVE
    confidence = np.where(answered, [row.confidence for row in rows], _REVIEWED)
    use = confidence >= 0.0
    if config.costs is not None:
        cost = _cost(label[use], answer[use], config.costs)
        point = cheapest_point(confidence[use], cost, review_cost=config.costs.review)
        if point is None:
            return {"threshold": None, "why": "no calibration record has an answer and a confidence", "n": len(rows)}
        return {"method": "least cost", **msgspec.to_builtins(point), "n": len(rows)}
    assert config.target_risk is not None  # noqa: S101 -- held by the configuration's check, told to the type checker
    if config.risk == "slip":
        mine = label == POSITIVE
        wrong = use[mine] & (answer[mine] == NEGATIVE)
        chosen = operating_point(confidence[mine], wrong, target=config.target_risk, of="all")
    else:
        chosen = operating_point(confidence[use], answer[use] != label[use], target=config.target_risk)
    return {"method": f"{config.risk} rate under target", **msgspec.to_builtins(chosen)}


def apply(
    point: dict[str, Any] | None, counts: Ints, scores: Scores, classes: Classes, costs: Costs | None
) -> dict[str, Any]:
    """What the threshold makes of the test: records below it, or without a confidence, go to a person."""
    if point is None:
        return {"threshold": None, "why": "the calibration files do not have this configuration"}
    threshold = point["threshold"]
    found: dict[str, Any]
    if threshold is None:
        found = {"threshold": None, "why": point.get("why") or "reviewing everything is cheapest"}
        return found if costs is None else {**found, "answered": 0, "cost": costs.review}
    p, n = classes
    half = counts.size // 2
    of_p, of_n = int(counts[:half].sum()), int(counts[half:].sum())
    kept = scores.confidence >= threshold
    wrong = kept & ~scores.correct
    answered, errors = int(kept.sum()), int(wrong.sum())
    slips, flags = int((wrong & scores.positive).sum()), int((wrong & ~scores.positive).sum())
    found = {
        "threshold": threshold,
        "answered": answered,
        "coverage": wilson(answered, of_p + of_n).to_dict(),
        "error_answered": _share(errors, answered, "nothing is answered at this threshold"),
        f"{p}_slip_rate": _share(slips, of_p, f"no sample is labelled {p!r}"),
        f"{n}_false_flag_rate": _share(flags, of_n, f"no sample is labelled {n!r}"),
    }
    if costs is not None:
        review = of_p + of_n - answered
        found["cost"] = (slips * costs.slip + flags * costs.flag + review * costs.review) / (of_p + of_n)
    return found


def _share(hits: int, base: int, why: str) -> dict[str, Any]:
    return (wilson(hits, base) if base else Estimate.null(why, method="wilson")).to_dict()


def _cost(label: Any, answer: Any, costs: Costs) -> Any:
    slip = (label == POSITIVE) & (answer == NEGATIVE)
    flag = (label == NEGATIVE) & (answer == POSITIVE)
    return np.where(slip, costs.slip, np.where(flag, costs.flag, 0.0))


def _lines(paths: Sequence[str]) -> Iterator[tuple[int, int, bytes]]:
    for index, path in enumerate(paths):
        if path == "-":
            raise InputError("a calibration file is read twice, so it cannot be standard input", file="-")
        with open_source(path) as source:
            for line, text in records(source):
                yield index, line, text
