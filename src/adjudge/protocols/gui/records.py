"""What a partition holds: episodes, predictions and outcomes by episode, each checked and with its place."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import msgspec

from adjudge.errors import InputError
from adjudge.protocols.base import Partition
from adjudge.readers.gui import formats, native
from adjudge.readers.gui.model import Episode, Outcome, Prediction

T = TypeVar("T")
_outcome = msgspec.json.Decoder(Outcome)


def episode_key(path: str, line: int, text: bytes) -> tuple[str, None]:
    """The key of a record of any role: its episode."""
    del path, line
    return formats.key(text), None


class Said(NamedTuple):
    """A prediction and where it stands."""

    prediction: Prediction
    file: int
    line: int


@dataclass
class Recorded:
    """An episode and where it stands."""

    name: str
    episode: Episode
    file: int
    line: int


class RecordReader:
    """Reads the records of a partition, joins episodes from their steps, and refuses what does not belong."""

    def __init__(self, types: tuple[str, ...], *, space: str, bbox: str, unmatched: str) -> None:
        self.types, self.space, self.bbox, self.unmatched = types, space, bbox, unmatched
        self.known = frozenset(types)

    def read(
        self, partition: Partition
    ) -> tuple[dict[str, Recorded], dict[str, dict[int, Said]], dict[str, tuple[bool, int, int]]]:
        """Episodes, predictions by step, and outcomes with their places, all by episode."""
        episodes = self._episodes(partition)
        said = self._predictions(partition)
        outcomes = self._outcomes(partition)
        if not partition.limited:
            self._refuse_unknown(said, outcomes, episodes, partition)
        return episodes, said, outcomes

    def _episodes(self, partition: Partition) -> dict[str, Recorded]:
        found: dict[str, Recorded] = {}
        pieces: dict[str, list[Recorded]] = {}
        for file, line, text in partition.rows["episodes"]:
            path = partition.files[file]
            episode, whole = _decoded(
                lambda text: formats.episode(text, self.space, self.bbox),
                text,
                path,
                line,
                "an episode or one step of it",
            )
            name = str(episode.episode_id)
            own = Recorded(name, episode, file, line)
            if not whole:
                pieces.setdefault(name, []).append(own)
            elif name in found:
                first = found[name]
                raise InputError(
                    f"episode {name!r} stands here a second time; first at {partition.files[first.file]}:{first.line}",
                    file=path,
                    line=line,
                )
            else:
                found[name] = own
        for name, parts in pieces.items():
            if name in found:
                raise InputError(
                    f"episode {name!r} stands whole at {partition.files[found[name].file]}:{found[name].line} "
                    "and here as a single step",
                    file=partition.files[parts[0].file],
                    line=parts[0].line,
                )
            found[name] = _joined(parts, partition)
        for own in found.values():
            self._check(own, partition)
        return found

    def _check(self, own: Recorded, partition: Partition) -> None:
        """Steps in order, each once, of known types; milestones about steps that are there."""
        path, line = partition.files[own.file], own.line
        steps = own.episode.steps
        steps.sort(key=lambda step: step.step)
        if not steps:
            raise InputError(f"episode {own.name!r} has no steps; there is nothing to judge", file=path, line=line)
        screen = own.episode.screen
        if screen is not None and not (screen.width > 0 and screen.height > 0):
            raise InputError(
                f"episode {own.name!r} has a screen of {screen.width:g} × {screen.height:g}", file=path, line=line
            )
        numbers = {step.step for step in steps}
        if len(numbers) < len(steps):
            twice = next(a.step for a, b in itertools.pairwise(steps) if a.step == b.step)
            raise InputError(
                f"episode {own.name!r} has step {twice} twice; a step number stands once", file=path, line=line
            )
        for step in steps:
            kind = step.action.type = step.action.type.lower()
            if kind not in self.known:
                raise self._unknown_type(kind, f"episode {own.name!r}, step {step.step}: action type", path, line)
        for milestone in own.episode.milestones or ():
            milestone.type = milestone.type.lower()
            where = f"episode {own.name!r}: milestone {milestone.name!r}"
            if milestone.step not in numbers:
                raise InputError(f"{where} is about step {milestone.step}, which is not there", file=path, line=line)
            if milestone.type not in self.known:
                raise self._unknown_type(milestone.type, f"{where}: type", path, line)

    def _unknown_type(self, kind: str, what: str, path: str, line: int) -> InputError:
        close = difflib.get_close_matches(kind, self.types, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else f"Known are {', '.join(self.types)}."
        return InputError(f"{what} {kind!r} is unknown (--types {kind} accepts it).", file=path, line=line, hint=hint)

    def _predictions(self, partition: Partition) -> dict[str, dict[int, Said]]:
        found: dict[str, dict[int, Said]] = {}
        decode = native.PREDICTION.decode
        for file, line, text in partition.rows["predictions"]:
            try:
                try:
                    prediction = decode(text)
                    if (prediction.action is None) == (prediction.raw is None):
                        prediction = formats.prediction(text)
                except msgspec.ValidationError:
                    # Another format, or one that says what is wrong with it.
                    prediction = formats.prediction(text)
            except (msgspec.DecodeError, UnicodeError) as error:
                raise _refused(error, partition.files[file], line, "a prediction") from None
            name = str(prediction.episode_id)
            own = found.get(name)
            if own is None:
                own = found[name] = {}
            if prediction.step in own:
                first = own[prediction.step]
                raise InputError(
                    f"episode {name!r}, step {prediction.step} is predicted a second time; first at "
                    f"{partition.files[first.file]}:{first.line}",
                    file=partition.files[file],
                    line=line,
                )
            own[prediction.step] = Said(prediction, file, line)
        return found

    def _outcomes(self, partition: Partition) -> dict[str, tuple[bool, int, int]]:
        found: dict[str, tuple[bool, int, int]] = {}
        for file, line, text in partition.rows.get("outcomes", ()):
            path = partition.files[file]
            outcome = _decoded(_outcome.decode, text, path, line, "an outcome {episode_id, success}")
            name = str(outcome.episode_id)
            if name in found:
                raise InputError(f"episode {name!r} has a second outcome", file=path, line=line)
            found[name] = (outcome.success, file, line)
        return found

    def _refuse_unknown(
        self,
        said: Mapping[str, dict[int, Said]],
        outcomes: Mapping[str, tuple[bool, int, int]],
        episodes: Mapping[str, Recorded],
        partition: Partition,
    ) -> None:
        """Outcomes and (unless they are to be reported) predictions for episodes that are not there."""
        for name in sorted(said.keys() - episodes.keys()):
            if self.unmatched == "refuse":
                own = min(said[name].values(), key=lambda item: (item.file, item.line))
                raise _unknown_episode(name, episodes, partition.files[own.file], own.line)
        for name in sorted(outcomes.keys() - episodes.keys()):
            _, file, line = outcomes[name]
            raise _unknown_episode(name, episodes, partition.files[file], line)


def _decoded(decode: Callable[[bytes], T], text: bytes, path: str, line: int, what: str) -> T:
    try:
        return decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise _refused(error, path, line, what) from None


def _refused(error: Exception, path: str, line: int, what: str) -> InputError:
    return InputError(f"{error}; expected {what}", file=path, line=line)


def _joined(parts: list[Recorded], partition: Partition) -> Recorded:
    """One episode from its steps, which must agree about the episode."""
    parts.sort(key=lambda own: (own.episode.steps[0].step, own.file, own.line))
    first = parts[0].episode
    joined = Episode(first.episode_id, [own.episode.steps[0] for own in parts])
    for name in ("scenario", "goal", "screen", "platform", "milestones"):
        for own in parts:
            value = getattr(own.episode, name)
            if value is None:
                continue
            if getattr(joined, name) is None:
                setattr(joined, name, value)
            elif getattr(joined, name) != value:
                raise InputError(
                    f"episode {own.name!r} has another {name} here than in its step {parts[0].episode.steps[0].step}",
                    file=partition.files[own.file],
                    line=own.line,
                )
    return Recorded(parts[0].name, joined, parts[0].file, parts[0].line)


def _unknown_episode(name: str, episodes: Mapping[str, Recorded], path: str, line: int) -> InputError:
    close = difflib.get_close_matches(name, list(episodes)[:5000], n=1)
    hint = f"Did you mean {close[0]!r}?" if close else "(--unmatched report counts and lists such predictions instead.)"
    return InputError(f"episode {name!r} is not among the episodes.", file=path, line=line, hint=hint)
