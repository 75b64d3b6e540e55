"""The operating point: below which confidence to abstain, chosen on calibration data alone, then applied to the test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Partition
from adjudge.protocols.triage.batch import GIVEN, NEGATIVE, POSITIVE, Columns, Floats, ReadBatch
from adjudge.protocols.triage.config import Costs, TriageConfig
from adjudge.protocols.triage.counts import Ints, Scores
from adjudge.protocols.triage.matching import batches, role, same_as_before
from adjudge.protocols.triage.measure import share_of
from adjudge.protocols.triage.rows import ResultRows
from adjudge.protocols.triage.words import Classes
from adjudge.readers.blocks import Block, blocks
from adjudge.readers.records import AS_IT_IS
from adjudge.readers.sources import open_source
from adjudge.stats.operating_point import cheapest_point, operating_point
from adjudge.stats.proportions import wilson

_REVIEWED = -1.0  # below every threshold: a record without an answer or a usable confidence goes to a person


class _Rows(NamedTuple):
    """Calibration records, one a sample."""

    label: NDArray[np.int8]
    answer: NDArray[np.int8]
    confidence: Floats


def choose(config: TriageConfig) -> dict[str, Any]:
    """The threshold of every configuration in the calibration files; one record a sample, that of its first trial."""
    alone = msgspec.structs.replace(
        config, results=[config.calibration], manifest=[], calibration=[], target_risk=None, costs=None, slices=[]
    )
    read = ResultRows(alone, None).read
    table = pa.concat_tables([read(block) for block in _blocks(config.calibration)])
    partition = Partition(rows={}, groups=(), files=tuple(config.calibration), tables={role(0): table})
    rows_of: dict[str, list[_Rows]] = {}
    columns = Columns(alone)
    for rows in batches(partition, alone):
        for name, part in _first_trials(columns.read(rows)):
            rows_of.setdefault(name, []).append(part)
    return {
        name: _choose(_Rows(*(np.concatenate(column) for column in zip(*parts, strict=True))), config)
        for name, parts in sorted(rows_of.items())
    }


def _first_trials(read: ReadBatch) -> Iterator[tuple[str, _Rows]]:
    """Of every configuration the record of each sample that has the least trial."""
    batch = read.batch
    confidence = np.where(batch.confidence_state == GIVEN, batch.confidence, _REVIEWED)
    sample = np.cumsum(np.append(True, ~same_as_before(read.samples)))
    trial, configurations = read.trials(), read.configurations().column()
    for place, name in enumerate(configurations.dictionary.to_pylist()):
        mine = np.flatnonzero(configurations.indices.to_numpy() == place)
        mine = mine[np.lexsort((trial[mine], sample[mine]))]
        mine = mine[np.append(True, sample[mine][1:] != sample[mine][:-1])]
        yield name, _Rows(batch.label[mine], batch.answer[mine], confidence[mine])


def _choose(rows: _Rows, config: TriageConfig) -> dict[str, Any]:
    label, answer, n = rows.label, rows.answer, int(rows.label.size)
    confidence = np.where(answer <= NEGATIVE, rows.confidence, _REVIEWED)
    use = confidence >= 0.0
    if config.costs is not None:
        cost = _cost(label[use], answer[use], config.costs)
        point = cheapest_point(confidence[use], cost, review_cost=config.costs.review)
        if point is None:
            return {"threshold": None, "why": "no calibration record has an answer and a confidence", "n": n}
        return {"method": "least cost", **msgspec.to_builtins(point), "n": n}
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
    applied: dict[str, Any]
    if threshold is None:
        applied = {"threshold": None, "why": point.get("why") or "reviewing everything is cheapest"}
        return applied if costs is None else {**applied, "answered": 0, "cost": costs.review}
    p, n = classes
    half = counts.size // 2
    of_p, of_n = int(counts[:half].sum()), int(counts[half:].sum())
    kept = scores.confidence >= threshold
    wrong = kept & ~scores.correct
    answered, errors = int(kept.sum()), int(wrong.sum())
    slips, flags = int((wrong & scores.positive).sum()), int((wrong & ~scores.positive).sum())
    applied = {
        "threshold": threshold,
        "answered": answered,
        "coverage": wilson(answered, of_p + of_n).to_dict(),
        "error_answered": share_of(errors, answered, "nothing is answered at this threshold").to_dict(),
        f"{p}_slip_rate": share_of(slips, of_p, f"no sample is labelled {p!r}").to_dict(),
        f"{n}_false_flag_rate": share_of(flags, of_n, f"no sample is labelled {n!r}").to_dict(),
    }
    if costs is not None:
        review = of_p + of_n - answered
        applied["cost"] = (slips * costs.slip + flags * costs.flag + review * costs.review) / (of_p + of_n)
    return applied


def _cost(label: Any, answer: Any, costs: Costs) -> Any:
    slip = (label == POSITIVE) & (answer == NEGATIVE)
    flag = (label == NEGATIVE) & (answer == POSITIVE)
    return np.where(slip, costs.slip, np.where(flag, costs.flag, 0.0))


def _blocks(paths: Sequence[str]) -> Iterator[Block]:
    for index, path in enumerate(paths):
        if path == "-":
            raise InputError("a calibration file is read twice, so it cannot be standard input", file="-")
        with open_source(path) as source:
            yield from blocks(source, index, AS_IT_IS)
