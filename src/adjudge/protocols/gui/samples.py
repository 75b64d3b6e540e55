"""samples.parquet of the gui protocol: made from the matched rows of a partition, and how a batch is restored from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.protocols.base import Partition
from adjudge.protocols.common.columns import WORD, coded, codes, cut, floats, known, places_in, taken, texts_by_row
from adjudge.protocols.gui.batch import ANSWERED, MISSING, STATUSES, UNMATCHED, UNPARSED, GuiBatch
from adjudge.protocols.gui.config import GuiConfig
from adjudge.protocols.gui.match import Matched, match
from adjudge.protocols.gui.rows import MILESTONES, POINTS, UNITS, Ints, RowReader, box_counts
from adjudge.protocols.gui.spaces import Floats, inside, outside_words
from adjudge.readers.gui.actions import DECLARED, PIXELS
from adjudge.readers.gui.model import Milestone
from adjudge.runs.writer import SAMPLES

BATCH_ROWS = 32768
TEXT_LIMIT = 65_536
_SAID = tuple(f"said_{name}" for name in POINTS)
_SCREEN = ("screen_width", "screen_height")
_RECORDED = ("step", "kind", *POINTS, "boxes", "element", "argument", "screenshot")
_PREDICTED = ("step", "type", *POINTS, *UNITS, "element", "argument", "structured", "self_report", "note", "raw")

SCHEMA = pa.schema(
    [
        ("sample", pa.string()),
        *((name, WORD) for name in ("model", "episode")),
        ("step", pa.int64()),
        *((name, WORD) for name in ("scenario", "platform", "status", "bucket", "verdict")),
        ("cites", pa.binary()),
        *((name, WORD) for name in ("type", "said_type")),
        *((name, pa.float64()) for name in (*POINTS, *_SAID, *_SCREEN)),
        ("boxes", pa.list_(pa.float64())),
        *((name, pa.string()) for name in ("element", "said_element", "argument", "said_argument")),
        ("distance", pa.float64()),
        ("milestones", pa.string()),
        *((name, pa.bool_()) for name in ("self_report", "outcome")),
    ]
)


class Steps(NamedTuple):
    """A batch of whole episodes, its columns of samples.parquet but for what is decided, and what is kept of its texts."""

    batch: GuiBatch
    columns: dict[str, pa.Array]
    outputs: pa.Table


class GuiReader:
    """Turns one partition into batches of whole episodes, in the order of (episode, step)."""

    def __init__(self, settings: GuiConfig, types: tuple[str, ...]) -> None:
        self.settings, self.types, self.space = settings, types, settings.space

    def read(self, partition: Partition) -> Iterator[Steps]:
        """Batches of whole episodes, about equal in rows."""
        matched = match(partition, self.types, unmatched=self.settings.unmatched)
        n = matched.episode.size
        if not n:
            return
        ends = np.append(np.flatnonzero(matched.episode[1:] != matched.episode[:-1]) + 1, n)
        batches = -(-n // BATCH_ROWS)
        wanted = np.arange(1, batches + 1) * n // batches
        low = 0
        for high in np.unique(ends[np.searchsorted(ends, wanted)]).tolist():
            yield self._steps(matched, low, high)
            low = high

    def _steps(self, matched: Matched, low: int, high: int) -> Steps:
        rows, answers, episode = (
            each[low:high] for each in (matched.recorded_row, matched.predicted_row, matched.episode)
        )
        recorded = taken(matched.recorded.table.select(_RECORDED), rows)
        predicted = taken(matched.predicted.table.select(_PREDICTED), answers)
        by_episode = slice(int(episode[0]), int(episode[-1]) + 1)
        row = pa.array((episode - by_episode.start).astype(np.int32))
        names, about = matched.recorded.names[by_episode], matched.recorded.table
        screen = taken(about.select(["width", "height"]), matched.about["screen"][episode])
        status = np.full(high - low, ANSWERED)
        status[~known(predicted, "type")] = UNPARSED
        status[answers < 0] = MISSING
        status[rows < 0] = UNMATCHED
        step = pc.coalesce(recorded.column("step"), predicted.column("step"))
        sizes = np.stack([floats(screen, name) for name in screen.column_names])
        columns = {
            "sample": pc.binary_join_element_wise(names.take(row), step.cast(pa.string()), "#"),
            "model": coded(np.zeros(high - low), [self.settings.model], np.int32),
            "episode": pa.DictionaryArray.from_arrays(row, names),
            "step": step,
            **{
                name: _spread(taken(about.select([name]), matched.about[name][by_episode]).column(name), row)
                for name in ("scenario", "platform")
            },
            "status": coded(status, STATUSES, np.int32),
            "type": coded(np.nan_to_num(floats(recorded, "kind"), nan=-1), self.types, np.int32),
            "said_type": predicted.column("type").dictionary_encode(),
            **{name: pa.array(floats(recorded, name), from_pandas=True) for name in POINTS},
            **{
                name: pa.array(values, from_pandas=True)
                for name, values in zip(
                    (*_SAID, *_SCREEN), (*self._points(matched, predicted, answers, sizes), *sizes), strict=True
                )
            },
            "boxes": recorded.column("boxes"),
            **{name: recorded.column(name) for name in ("element", "argument")},
            **{f"said_{name}": predicted.column(name) for name in ("element", "argument")},
            "milestones": _milestone_texts(matched.milestones, low, high),
            "self_report": predicted.column("self_report"),
            "outcome": taken(matched.outcomes.table, matched.outcome_row[by_episode]).column("success").take(row),
        }
        batch = restore(pa.table(columns), self.types, self.space)
        batch.notes = texts_by_row(predicted.column("note"))
        self._refuse_outside(batch, matched, low, predicted)
        return Steps(batch, columns, _outputs(predicted.column("raw"), recorded.column("screenshot")))

    def _points(self, matched: Matched, predicted: pa.Table, answers: Ints, screen: Floats) -> Floats:
        """The predicted points and ends in the declared space; those in another unit need the screen of the episode."""
        points = np.stack([floats(predicted, name) for name in POINTS])
        for end, name in enumerate(UNITS):
            unit = predicted.column(name).fill_null(DECLARED).to_numpy()
            rows = np.flatnonzero(unit != DECLARED)
            unknown = rows[np.isnan(screen[:, rows]).any(axis=0)]
            if unknown.size:
                what = "pixels" if unit[unknown[0]] == PIXELS else "shares of the screen"
                text = (
                    f": the prediction is in {what} and the recording has no screen size to put them into {self.space}"
                )
                raise matched.predicted.wrong(int(answers[unknown[0]]), text)
            whole = 1000.0 if self.space == "per_mille" else 1.0
            factor = np.where(unit[rows] == PIXELS, whole / screen[:, rows], screen[:, rows])
            points[2 * end : 2 * end + 2, rows] *= factor
        return points

    def _refuse_outside(self, batch: GuiBatch, matched: Matched, low: int, predicted: pa.Table) -> None:
        """Half a point, or a value outside the declared space, in an episode or a structured action."""
        structured = predicted.column("structured").fill_null(False).to_numpy()
        every, rows = np.ones(batch.n, dtype=np.bool_), np.arange(batch.n)
        for points, place, chosen, side, row_of in (
            (batch.target, rows, every, matched.recorded, matched.recorded_row),
            (batch.boxes.T, batch.box_row, every, matched.recorded, matched.recorded_row),
            (batch.point, rows, structured, matched.predicted, matched.predicted_row),
        ):
            screen = batch.screen[:, place]
            gap = np.isnan(points)
            half = (gap[0] != gap[1]) | (gap[2] != gap[3])
            bad = np.flatnonzero((half | ~inside(self.space, points, screen)) & chosen[place])
            if bad.size:
                first = int(bad[0])
                text = (
                    "has one coordinate of a point without the other"
                    if half[first]
                    else outside_words(self.space, points[:, first], screen[:, first]) + " (--space)"
                )
                row = int(row_of[low + place[first]])
                raise side.wrong(row, f", step {side.table.column('step')[row].as_py()}: {text}")


def table(steps: Steps, decided: Mapping[str, pa.Array]) -> pa.Table:
    """The rows of one batch."""
    columns = {**steps.columns, **decided}
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _outputs(texts: pa.ChunkedArray, screenshots: pa.ChunkedArray) -> pa.Table:
    """The raw texts, each cut at a bound (a structured action stands in the samples already), and the screenshots' names."""
    characters = pc.utf8_length(texts).cast(pa.int64())
    return pa.table(
        {"response": cut(texts, TEXT_LIMIT), "characters": characters, "screenshot": screenshots.dictionary_encode()}
    )


def restore(samples: pa.Table, types: tuple[str, ...], space: str) -> GuiBatch:
    """The batch from what is stored."""
    boxes = samples.column("boxes").combine_chunks()
    milestones = texts_by_row(samples.column("milestones"))
    return GuiBatch(
        types=types,
        space=space,
        status=codes(samples, "status", STATUSES).astype(np.uint8),
        kind=_places(samples, "type", types),
        said=_places(samples, "said_type", types),
        words=_strings(samples, "said_type"),
        target=np.stack([floats(samples, name) for name in POINTS]),
        point=np.stack([floats(samples, name) for name in _SAID]),
        screen=np.stack([floats(samples, name) for name in _SCREEN]),
        boxes=np.asarray(boxes.flatten().to_numpy(zero_copy_only=False), dtype=float).reshape(-1, 4),
        box_row=np.repeat(np.arange(samples.num_rows), box_counts(boxes)),
        **{name: _strings(samples, name) for name in ("element", "said_element", "argument", "said_argument")},
        milestones={row: MILESTONES.decode(text) for row, text in milestones.items()},
    )


def reread(samples: pa.Table, outputs: pa.Table, reader: RowReader) -> list[str]:
    """Where stored actions are not those that the texts spell; a text that was cut is left."""
    texts, characters = outputs.column("response"), outputs.column("characters")
    whole = pc.less_equal(characters, TEXT_LIMIT).fill_null(False)
    if pc.any(pc.not_equal(pc.utf8_length(texts), characters).filter(whole)).as_py():
        return ["characters are not those of the texts"]
    stored = samples.filter(whole)
    again = reader.spoken(texts.filter(whole).to_pylist())
    problems = []
    if set(samples.filter(texts.is_valid()).column("status").to_pylist()) & {"missing"}:
        problems.append("a step without a prediction has a text")
    for name, spoken in {"said_type": "type", "said_argument": "argument", "said_element": "element"}.items():
        if stored.column(name).cast(pa.string()).to_pylist() != again.column(spoken).to_pylist():
            problems.append(f"{name} in {SAMPLES} is not what the texts say")
    points = (floats(stored, f"said_{name}") for name in POINTS)
    if not all(
        np.array_equal(point, again.column(name).to_numpy(), equal_nan=True)
        for name, point in zip(POINTS, points, strict=True)
    ):
        problems.append(f"said_x, said_y, said_end_x or said_end_y in {SAMPLES} is not what the texts say")
    return problems


def _spread(values: pa.ChunkedArray, row: pa.Array) -> pa.DictionaryArray:
    """One word an episode, spread over its steps."""
    by_episode = values.combine_chunks().dictionary_encode()
    return pa.DictionaryArray.from_arrays(by_episode.indices.take(row), by_episode.dictionary)


def _milestone_texts(milestones: Mapping[int, list[Milestone]], low: int, high: int) -> pa.StringArray:
    texts = {row: msgspec.json.encode(wanted).decode() for row, wanted in milestones.items() if low <= row < high}
    return pa.array([texts.get(row) for row in range(low, high)], pa.string())


def _places(samples: pa.Table, name: str, types: tuple[str, ...]) -> NDArray[np.int16]:
    """A column of types as places in `types`, −1 for none of them."""
    places = places_in(samples, name, types)
    return np.where(places < len(types), places, -1).astype(np.int16)


def _strings(samples: pa.Table, name: str) -> pa.StringArray:
    return samples.column(name).combine_chunks().cast(pa.string())
