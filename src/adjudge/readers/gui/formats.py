"""The formats of a record, told apart by its keys: our own is decoded at once, the others are read here, one by one."""

from __future__ import annotations

import msgspec

from adjudge.readers.blocks import merged, tree_of
from adjudge.readers.gui import mind2web, native, openadapt
from adjudge.readers.gui.model import Episode, Outcome, Prediction, Shape

EPISODE_KEYS = merged(tree_of(Episode), native.STEP_KEYS, mind2web.EPISODE_KEYS, openadapt.KEYS)
PREDICTION_KEYS = merged(native.PREDICTION_KEYS, mind2web.PREDICTION_KEYS, openadapt.KEYS)

_NONE = msgspec.Raw(b"")


class _Keys(msgspec.Struct, gc=False):
    """The keys that name an episode, and those that tell formats apart."""

    episode_id: str | int | None = None
    id: str | int | None = None
    annotation_id: str | None = None
    instruction: msgspec.Raw = _NONE
    steps: msgspec.Raw = _NONE


_keys = msgspec.json.Decoder(_Keys)


def episode(text: bytes, space: str, bbox: str) -> Episode:
    """One record as an episode in the declared space and box order, a SingleStep where it is one step of it."""
    keys = _named(text)
    if keys.annotation_id is not None:
        return mind2web.episode(text, space, bbox)
    if not bytes(keys.steps):
        return native.step_row(text, space, bbox)
    theirs = bytes(keys.instruction) or keys.episode_id is None or b'"step_index"' in text
    return openadapt.episode(text, space, bbox) if theirs else native.episode(text, space, bbox)


def predictions(text: bytes, space: str, bbox: str) -> list[Prediction]:
    """One record as predictions: one, or those of every step where it is a whole episode that the agent ran."""
    keys = _named(text)
    if keys.annotation_id is not None:
        return [mind2web.prediction(text)]
    if not bytes(keys.steps):
        return [native.prediction(text, space, bbox)]
    run = episode(text, space, bbox)
    return [Prediction(run.episode_id, step.step, step.action) for step in run.steps]


def outcome(text: bytes) -> Outcome:
    """One record as an outcome."""
    _named(text)
    return native.OUTCOME.decode(text)


def _named(text: bytes) -> _Keys:
    """The keys of a record, of which one must name the episode."""
    keys = _keys.decode(text)
    if keys.episode_id is None and keys.annotation_id is None and keys.id is None:
        raise Shape("has neither `episode_id` nor `annotation_id` nor `id`")
    return keys
