"""Reading one partition: episodes and predictions matched by (episode, step), into batches of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from adjudge.errors import InputError
from adjudge.protocols.base import Partition
from adjudge.protocols.gui.batch import ANSWERED, MISSING, UNMATCHED, UNPARSED, GuiBatch, Objects
from adjudge.protocols.gui.boxes import box_columns
from adjudge.protocols.gui.kinds import argument
from adjudge.protocols.gui.records import Recorded, RecordReader, Said
from adjudge.protocols.gui.spaces import inside, outside_words
from adjudge.readers.action_dsl import Unparsed, parse
from adjudge.readers.gui.model import Action, Milestone, Screen

_NOTHING = (ANSWERED, -1, None, None, None, None, None, None, None)


@dataclass
class ReadBatch:
    """A batch as columns, with what stands beside them: whose steps they are, self-reports, outcomes and raw texts."""

    batch: GuiBatch
    episodes: list[str]
    scenarios: list[str | None]
    platforms: list[str | None]
    outcomes: list[bool | None]
    row: list[int]
    steps: list[int]
    self_reports: list[bool | None]
    texts: list[str | None]


class GuiReader:
    """Turns one partition into batches of whole episodes, in the order of (episode, step)."""

    def __init__(self, types: tuple[str, ...], *, space: str, bbox: str, unmatched: str, batch_rows: int) -> None:
        self.types, self.space, self.bbox, self.batch_rows = types, space, bbox, batch_rows
        self.records = RecordReader(types, space=space, bbox=bbox, unmatched=unmatched)
        self.code = {name: index for index, name in enumerate(types)}

    def read(self, partition: Partition) -> Iterator[ReadBatch]:
        """Batches of whole episodes."""
        episodes, said, outcomes = self.records.read(partition)
        # Predictions and outcomes of episodes that a limit cut off are no concern of this run.
        names = sorted(episodes if partition.limited else episodes.keys() | said.keys())
        waiting: list[str] = []
        rows = 0
        for name in names:
            waiting.append(name)
            rows += len(episodes[name].episode.steps) if name in episodes else len(said[name])
            if rows >= self.batch_rows:
                yield self._columns(waiting, episodes, said, outcomes, partition)
                waiting, rows = [], 0
        if waiting:
            yield self._columns(waiting, episodes, said, outcomes, partition)

    def _columns(
        self,
        names: list[str],
        episodes: Mapping[str, Recorded],
        said: Mapping[str, dict[int, Said]],
        outcomes: Mapping[str, tuple[bool, int, int]],
        partition: Partition,
    ) -> ReadBatch:
        """Rows of some episodes: their steps, then predictions for steps that they do not have."""
        read = _Rows()
        for index, name in enumerate(names):
            own = episodes.get(name)
            predicted = said.get(name, {})
            steps = [] if own is None else own.episode.steps
            if own is not None and own.episode.milestones:
                at = {step.step: len(read.steps) + k for k, step in enumerate(steps)}
                for milestone in own.episode.milestones:
                    read.milestones.setdefault(at[milestone.step], []).append(milestone)
            read.recorded += [step.action for step in steps]
            numbers = [step.step for step in steps]
            read.steps += numbers
            read.said += [predicted.get(number) for number in numbers]
            extra = sorted(predicted.keys() - set(numbers))
            read.recorded += [None] * len(extra)
            read.steps += extra
            read.said += [predicted[number] for number in extra]
            read.row += [index] * (len(numbers) + len(extra))
            read.owner += [own] * (len(numbers) + len(extra))
        batch = self._batch(read, partition)
        known = [None if name not in episodes else episodes[name].episode for name in names]
        return ReadBatch(
            batch=batch,
            episodes=names,
            scenarios=[None if episode is None else episode.scenario for episode in known],
            platforms=[None if episode is None else episode.platform for episode in known],
            outcomes=[outcomes[name][0] if name in outcomes else None for name in names],
            row=read.row,
            steps=read.steps,
            self_reports=[
                None if item is None or item.prediction.state is None else item.prediction.state.success
                for item in read.said
            ],
            texts=[None if item is None else item.prediction.raw for item in read.said],
        )

    def _batch(self, read: _Rows, partition: Partition) -> GuiBatch:
        n = len(read.steps)
        notes: dict[int, str] = {}
        columns = list(zip(*self._predicted(read, notes), strict=True))
        status = np.array(columns[0], dtype=np.uint8)
        recorded = [_WITHOUT if action is None else action for action in read.recorded]
        status[[row for row, action in enumerate(read.recorded) if action is None]] = UNMATCHED
        code = self.code
        screens = [
            _NO_SCREEN if own is None or own.episode.screen is None else own.episode.screen for own in read.owner
        ]
        target = np.array([[getattr(a, name) for a in recorded] for name in ("x", "y", "end_x", "end_y")], dtype=float)
        boxes, box_row = box_columns(recorded, self.bbox, lambda row, text: _at(read, row, partition, text))
        batch = GuiBatch(
            types=self.types,
            space=self.space,
            status=status,
            kind=np.array([code.get(a.type, -1) for a in recorded], dtype=np.int16),
            said=np.array(columns[1], dtype=np.int16),
            words=_objects(columns[2]),
            target=target.reshape(4, n),
            point=np.array(columns[3:7], dtype=float).reshape(4, n),
            screen=np.array([[s.width for s in screens], [s.height for s in screens]], dtype=float).reshape(2, n),
            boxes=boxes,
            box_row=box_row,
            element=_objects([_element(a) for a in recorded]),
            said_element=_objects(columns[8]),
            argument=_objects([argument(a, a.type) for a in recorded]),
            said_argument=_objects(columns[7]),
            milestones=read.milestones,
            notes=notes,
        )
        self._refuse_outside(batch, read, partition)
        return batch

    def _predicted(self, read: _Rows, notes: dict[int, str]) -> Iterator[tuple[object, ...]]:
        """(status, type, word, x, y, end_x, end_y, argument, element) of every row."""
        code, types = self.code, self.types
        for row, item in enumerate(read.said):
            if item is None:
                yield (MISSING, *_NOTHING[1:])
                continue
            prediction = item.prediction
            action = prediction.action
            if action is not None:
                kind = action.type.lower()
                yield (
                    ANSWERED,
                    code.get(kind, -1),
                    kind,
                    action.x,
                    action.y,
                    action.end_x,
                    action.end_y,
                    argument(action, kind),
                    _element(action),
                )
                continue
            parsed = parse(prediction.raw or "", types)
            if isinstance(parsed, Unparsed):
                notes[row] = f"{parsed.why} (characters {parsed.start} to {parsed.end})"
                yield (UNPARSED, *_NOTHING[1:])
            else:
                yield (ANSWERED, code.get(parsed[0], -1), *parsed)

    def _refuse_outside(self, batch: GuiBatch, read: _Rows, partition: Partition) -> None:
        """Half a point, or a value outside the declared space, in an episode or a structured action."""
        structured = np.fromiter(
            (item is not None and item.prediction.action is not None for item in read.said), dtype=bool, count=batch.n
        )
        corners = batch.boxes.T
        for points, screen, rows, choose, where in (
            (batch.target, batch.screen, np.arange(batch.n), None, _at),
            (corners, batch.screen[:, batch.box_row], batch.box_row, None, _at),
            (batch.point, batch.screen, np.arange(batch.n), structured, _at_prediction),
        ):
            gap = np.isnan(points)
            bad = (gap[0] != gap[1]) | (gap[2] != gap[3]) | ~inside(self.space, points, screen)
            if choose is not None:
                bad &= choose
            if bad.any():
                first = int(np.flatnonzero(bad)[0])
                half = gap[0, first] != gap[1, first] or gap[2, first] != gap[3, first]
                text = (
                    "has one coordinate of a point without the other"
                    if half
                    else outside_words(self.space, points[:, first], screen[:, first]) + " (--space)"
                )
                raise where(read, int(rows[first]), partition, text)


class _Rows:
    """The rows of a batch in the making."""

    def __init__(self) -> None:
        self.recorded: list[Action | None] = []
        self.said: list[Said | None] = []
        self.steps: list[int] = []
        self.row: list[int] = []
        self.owner: list[Recorded | None] = []
        self.milestones: dict[int, list[Milestone]] = {}


_WITHOUT = Action("")
_NO_SCREEN = Screen(np.nan, np.nan)


def _at(read: _Rows, row: int, partition: Partition, text: str) -> InputError:
    own = read.owner[row]
    assert own is not None  # noqa: S101 -- only recorded rows have targets and boxes
    return InputError(
        f"episode {own.name!r}, step {read.steps[row]}: {text}", file=partition.files[own.file], line=own.line
    )


def _at_prediction(read: _Rows, row: int, partition: Partition, text: str) -> InputError:
    item = read.said[row]
    assert item is not None  # noqa: S101 -- only predicted rows have points
    name = item.prediction.episode_id
    return InputError(
        f"episode {str(name)!r}, step {read.steps[row]}: {text}", file=partition.files[item.file], line=item.line
    )


def _element(action: Action) -> str | None:
    found = action.element
    return None if found is None or found.id is None else str(found.id)


def _objects(values: list[str | None] | tuple[object, ...]) -> Objects:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
