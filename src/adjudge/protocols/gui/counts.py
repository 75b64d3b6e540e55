"""What one batch of GUI steps adds to the numbers: counts by episode and recorded type, mergeable in order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import FAIL, PASS
from adjudge.protocols.common.columns import distinct_words
from adjudge.protocols.gui.batch import ANSWERED, MISSING, UNMATCHED, UNPARSED, GuiBatch, X, present
from adjudge.protocols.gui.spaces import Floats, Mask, inside
from adjudge.readers.gui.model import DRAG, NOTHING, ON_ELEMENT, POINTING, SPACES
from adjudge.stats.exact import group_sums

Ints = NDArray[np.int64]

COUNTS = (
    "n", "right", "full", "scored", "missing", "unparsed", "outside", "normalised", "pairs", "hits", "boxed",
    "box_hits", "unboxed", "pointed", "on_element", "element_right", "drags", "drag_hits",
    "pointing", "marks_only", "points_only",
)  # fmt: skip
PLACE = {name: index for index, name in enumerate(COUNTS)}
OUTCOMES = ("correct", "off target or wrong argument", "wrong type", "outside the space", "unparsed", "missing")
LISTED = 20
STRIPS = 24


class Miss(NamedTuple):
    """A click that missed: how far from its target, its step, and both places."""

    distance: float
    sample: str
    scenario: str | None
    target: str
    box: str
    point: str


@dataclass
class Partial:
    """Counts of some episodes. `cell_*` are by (episode, recorded type); `distances` are those of click steps."""

    episodes: list[str]
    scenarios: list[str | None]
    platforms: list[str | None]
    steps: Ints
    milestones: Ints
    unreached: Ints
    free_milestones: Ints
    outcomes: Ints
    self_reports: Ints
    cell_episode: Ints
    cell_kind: Ints
    cells: Ints
    cell_distance: Floats
    distances: Floats
    misses: list[Miss]
    fits: Ints
    unmatched: int
    unmatched_names: list[str]
    strips: list[tuple[str, str | None, list[int], list[int]]]
    dataset: bytes

    def count(self, name: str) -> int:
        """The total of a counted column."""
        return int(self.cells[:, PLACE[name]].sum())


def partial(samples: pa.Table, batch: GuiBatch, evidence: Evidence, *, som: bool) -> Partial:
    """The partial of one batch of whole episodes; `batch` is what `samples` stores."""
    types = batch.types
    matched = batch.status != UNMATCHED
    names, code = distinct_words(samples, "episode")
    begins = np.append(True, code[1:] != code[:-1])[: code.size]
    first, place = np.flatnonzero(begins), np.cumsum(begins) - 1
    known = np.bincount(place, weights=matched, minlength=first.size) > 0
    kept = np.flatnonzero(known)
    renumber = np.cumsum(known) - 1
    rows = np.flatnonzero(matched)
    episode = renumber[place[rows]]
    m = kept.size
    counts = _counts(batch, evidence, som=som)[:, rows]
    kind = batch.kind[rows].astype(np.int64)
    cell, where = np.unique(episode * len(types) + kind, return_inverse=True)
    paired = np.flatnonzero(counts[PLACE["pairs"]])
    lone = np.flatnonzero(~matched)
    sample = samples.column("sample")
    return Partial(
        episodes=[str(names[code[first[k]]]) for k in kept],
        scenarios=_of_episodes(samples, "scenario", first[kept]),
        platforms=_of_episodes(samples, "platform", first[kept]),
        steps=np.bincount(episode, minlength=m),
        **_milestones(batch, evidence, rows, episode, m),
        outcomes=_flags(samples, "outcome")[first[kept]],
        self_reports=_last(_flags(samples, "self_report")[rows], episode, m),
        cell_episode=cell // len(types),
        cell_kind=cell % len(types),
        cells=np.stack([np.bincount(where[row], minlength=cell.size) for row in counts], axis=1),
        cell_distance=_sums(batch.distance[0, rows[paired]], where[paired], cell.size),
        distances=batch.distance[0, rows[paired]][kind[paired] == types.index("click")],
        misses=_misses(samples, batch, evidence),
        fits=_fits(batch),
        unmatched=int(lone.size),
        unmatched_names=[sample[int(k)].as_py() for k in lone[:LISTED]],
        strips=_strips(samples, batch, evidence, first[kept][:STRIPS]),
        dataset=_dataset(samples, matched),
    )


def _sums(values: Floats, groups: Ints, size: int) -> Floats:
    """The sum of each group; most have no values."""
    used, place = np.unique(groups, return_inverse=True)
    sums = np.zeros(size)
    if used.size:
        sums[used] = group_sums(values, place, used.size)
    return sums


def merge(partials: Sequence[Partial]) -> Partial:
    """All partials as one, in their order; every episode stands in one of them."""
    merged: dict[str, Any] = {each.name: [getattr(part, each.name) for part in partials] for each in fields(Partial)}
    shift = np.cumsum([0, *map(len, merged["episodes"])])
    for name, values in merged.items():
        if isinstance(values[0], list):
            merged[name] = list(chain.from_iterable(values))
        elif isinstance(values[0], np.ndarray):
            merged[name] = np.concatenate(values)
    merged |= {name: sum(getattr(part, name) for part in partials) for name in ("fits", "unmatched")}
    return Partial(
        **merged
        | {
            "cell_episode": np.concatenate([part.cell_episode + by for part, by in zip(partials, shift, strict=False)]),
            "unmatched_names": sorted(merged["unmatched_names"])[:LISTED],
            "strips": sorted(merged["strips"])[:STRIPS],
            "misses": sorted(merged["misses"], key=lambda miss: (-miss.distance, miss.sample))[:LISTED],
            "dataset": hashlib.sha256(b"".join(merged["dataset"])).digest(),
        }
    )


def _counts(batch: GuiBatch, evidence: Evidence, *, som: bool) -> Mask:
    """(counts, steps): what each step adds to the counts of its cell."""
    place = evidence.layout.positions_of
    passed = {
        code: evidence.outcome[place(code)] == PASS
        for code in ("gui.action_type", "gui.click_hit", "gui.bbox_hit", "gui.element")
    }
    critical = evidence.failed() & (evidence.severity == 2)
    answered = batch.status == ANSWERED
    full = ~np.logical_or.reduce(critical, axis=0)
    right = passed["gui.action_type"][0]
    pointing, drag = batch.is_kind(POINTING), batch.is_kind(DRAG)
    coord = np.full(batch.n, not som)
    on_element = batch.is_kind(ON_ELEMENT) & batch.has_element & ~coord
    pairs = pointing & ~np.isnan(batch.distance[0]) & coord
    said_pointing = answered & batch.says(POINTING)
    marked, has_point = present(batch.said_element), ~np.isnan(batch.point[X])
    values: dict[str, Mask] = {
        "n": np.ones(batch.n, dtype=bool),
        "right": right,
        "full": full,
        "scored": np.where(pointing, full, right),
        "missing": batch.status == MISSING,
        "unparsed": batch.status == UNPARSED,
        "outside": answered & ~batch.in_space,
        "normalised": pointing & batch.has_target[0] & batch.can_normalise & coord,
        "pairs": pairs,
        "hits": pairs & passed["gui.click_hit"][0],
        "boxed": pointing & batch.has_box & coord,
        "box_hits": pointing & passed["gui.bbox_hit"][0],
        "unboxed": pointing & ~batch.has_box,
        "pointed": answered & batch.has_point[0],
        "on_element": on_element,
        "element_right": on_element & passed["gui.element"][0],
        "drags": drag & batch.has_target.all(axis=0) & batch.can_normalise & coord,
        "drag_hits": drag & passed["gui.click_hit"].all(axis=0),
        "pointing": said_pointing,
        "marks_only": said_pointing & marked & ~has_point,
        "points_only": said_pointing & ~marked & has_point,
    }
    return np.stack([values[name] for name in COUNTS])


def _milestones(batch: GuiBatch, evidence: Evidence, rows: Ints, episode: Ints, m: int) -> dict[str, Ints]:
    """By episode: milestones, those steps where one is not reached, and those that an agent reaches by doing nothing."""
    count, free = np.zeros(batch.n, dtype=np.int64), np.zeros(batch.n, dtype=np.int64)
    for row, wanted in batch.milestones.items():
        count[row] = len(wanted)
        free[row] = sum(w.type in NOTHING and w.max_distance is None and w.element is None for w in wanted)
    failed = evidence.outcome[evidence.layout.positions_of("gui.milestone")[0]] == FAIL
    return {
        name: np.bincount(episode, weights=values[rows], minlength=m).astype(np.int64)
        for name, values in (("milestones", count), ("unreached", failed), ("free_milestones", free))
    }


def _misses(samples: pa.Table, batch: GuiBatch, evidence: Evidence) -> list[Miss]:
    """The clicks farthest from their targets."""
    failed = evidence.outcome[evidence.layout.positions_of("gui.click_hit")[0]] == FAIL
    rows = np.flatnonzero(failed & batch.is_kind(POINTING))
    names, scenarios = samples.column("sample"), samples.column("scenario")
    farthest = rows[np.argsort(-batch.distance[0, rows], kind="stable")][:LISTED]
    return [
        Miss(float(batch.distance[0, row]), names[row].as_py(), scenarios[row].as_py(), *places)
        for row, places in zip(farthest.tolist(), batch.places(farthest), strict=True)
    ]


def _of_episodes(samples: pa.Table, name: str, rows: Ints) -> list[str | None]:
    known_words, code = distinct_words(samples, name)
    return [known_words[code[row]] for row in rows]


def _flags(samples: pa.Table, name: str) -> Ints:
    """A boolean column as 1, 0 and −1 for null."""
    column = samples.column(name).combine_chunks().cast(pa.int8())
    flags: Ints = pc.fill_null(column, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return flags


def _last(flags: Ints, episode: Ints, m: int) -> Ints:
    """The last flag of each episode that is not null, else −1."""
    last = np.full(m, -1, dtype=np.int64)
    told = flags >= 0
    last[episode[told]] = flags[told]
    return last


def _fits(batch: GuiBatch) -> Ints:
    """(2, 1 + spaces): of recorded and of predicted steps with coordinates, how many, and how many fit each space.

    A step counts for `normalized` under another declared space only when a coordinate is a fraction: (0, 1) is a pixel.
    """
    fitting = np.zeros((2, 1 + len(SPACES)), dtype=np.int64)
    for index, every in enumerate((batch.target, batch.point)):
        known = ~np.isnan(every)
        pointing = np.flatnonzero(np.logical_or.reduce(known, axis=0))
        # The ends of drags are mostly absent.
        points, screen = every[: 4 if known[2:].any() else 2, pointing], batch.screen[:, pointing]
        fitting[index, 0] = pointing.size
        fits_declared = inside(batch.space, points, screen)
        for place, space in enumerate(SPACES, 1):
            fits = inside(space, points, screen)
            if space == "normalized" and batch.space != space:
                fits &= np.logical_or.reduce(np.nan_to_num(points) % 1.0 != 0.0, axis=0)
            elif space != batch.space:
                fits &= ~fits_declared
            fitting[index, place] = fits.sum()
    return fitting


def _strips(
    samples: pa.Table, batch: GuiBatch, evidence: Evidence, starts: Ints
) -> list[tuple[str, str | None, list[int], list[int]]]:
    """(episode, scenario, steps, outcomes) of the first episodes, for the strip chart."""
    if not starts.size:
        return []
    names, code = distinct_words(samples, "episode")
    scenarios, scenario = distinct_words(samples, "scenario")
    head = int(np.flatnonzero(code == code[starts[-1]])[-1]) + 1
    status, code = batch.status[:head], code[:head]
    right = evidence.outcome[evidence.layout.positions_of("gui.action_type")[0], :head] == PASS
    critical = (evidence.outcome[:, :head] == FAIL) & (evidence.severity[:, :head] == 2)
    outcome = np.where(~np.logical_or.reduce(critical, axis=0), 0, np.where(right, 1, 2))
    outcome[~batch.in_space[:head] & (status == ANSWERED)] = 3
    outcome[status == UNPARSED] = 4
    outcome[status == MISSING] = 5
    steps = samples.column("step").to_numpy()
    steps_of = {start: np.flatnonzero((code == code[start]) & (status != UNMATCHED)) for start in starts.tolist()}
    return [
        (str(names[code[start]]), scenarios[scenario[start]], steps[rows].tolist(), outcome[rows].tolist())
        for start, rows in steps_of.items()
    ]


def _dataset(samples: pa.Table, matched: Mask) -> bytes:
    """Over ids and recorded actions: the same data set whatever the agent."""
    whole = hashlib.sha256()
    recorded = samples if matched.all() else samples.filter(pa.array(matched))
    for name in ("sample", "type", "element", "argument", "milestones"):
        column = recorded.column(name).combine_chunks().cast(pa.string()).fill_null("")
        every = pa.ListArray.from_arrays(pa.array([0, len(column)], pa.int32()), column)
        whole.update(pc.binary_join(every, "\x00")[0].as_py().encode())
    for name in ("x", "y", "end_x", "end_y", "screen_width", "screen_height"):
        whole.update(pc.fill_null(recorded.column(name), -1.0).to_numpy().tobytes())
    whole.update(
        np.asarray(recorded.column("boxes").combine_chunks().flatten().to_numpy(zero_copy_only=False)).tobytes()
    )
    return whole.digest()
