"""Which format a record is in, told by its keys, and its key for matching."""

from __future__ import annotations

import msgspec

from adjudge.readers.gui import mind2web, native, openadapt
from adjudge.readers.gui.model import Episode, Prediction, Shape

_NONE = msgspec.Raw(b"")


class _Id(msgspec.Struct, gc=False):
    """The keys that name an episode."""

    episode_id: str | int | None = None
    id: str | int | None = None
    annotation_id: str | None = None


class _Shape(_Id, gc=False):
    """With those that tell formats apart."""

    instruction: msgspec.Raw = _NONE
    steps: msgspec.Raw = _NONE


_id = msgspec.json.Decoder(_Id)
_shape = msgspec.json.Decoder(_Shape)


def key(text: bytes) -> str:
    """The episode a record of any format belongs to."""
    found = _id.decode(text)
    for name in (found.episode_id, found.annotation_id, found.id):
        if name is not None:
            return str(name)
    raise Shape("has neither `episode_id` nor `annotation_id` nor `id`")


def episode(text: bytes, space: str, bbox: str) -> tuple[Episode, bool]:
    """One record as an episode in the declared space and box order, and whether it holds the whole episode."""
    found = _shape.decode(text)
    if found.annotation_id is not None:
        return mind2web.episode(text, space, bbox), False
    if not bytes(found.steps):
        return native.step_row(text), False
    if bytes(found.instruction):
        return openadapt.current(text, space, bbox), True
    if found.episode_id is None:
        return openadapt.older(text), True
    return native.episode(text), True


def prediction(text: bytes) -> Prediction:
    """One record as a prediction."""
    if b'"annotation_id"' in text:
        return mind2web.prediction(text)
    return native.prediction(text)
