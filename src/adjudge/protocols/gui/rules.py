"""The rules on one GUI step: it parses, lies in the declared space, is of the right type, hits, and says the right thing.

A critical failure is what keeps a step from being fully correct; a warning is evidence that decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.evidence.rule import Condition, Finding, Limits, Rule, RuleSet, Slot, Variant
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.gui.batch import ANSWERED, UNMATCHED, GuiBatch, present, same
from adjudge.protocols.gui.grounding import GroundingContext, grounding_rules
from adjudge.protocols.gui.spaces import EDGE, Mask, outside_words
from adjudge.readers.gui.model import DRAG, ON_ELEMENT, POINTING, WITH_KEY, WITH_OPTIONAL_TEXT, WITH_TEXT, Milestone

_ENDS = (Slot("point", 0, (("point", 0),)), Slot("end", 0, (("end", 0),)))


@dataclass(frozen=True)
class GuiContext:
    """What the rules depend on."""

    som: bool
    radius: float
    text: str


def build(context: GuiContext | GroundingContext) -> list[Rule]:
    """All rules, in the order in which their atoms stand."""
    if isinstance(context, GroundingContext):
        return grounding_rules()
    in_points = Condition(lambda _: np.full((1, 1), not context.som), "elements are judged, not points (SoM)")
    in_marks = Condition(lambda _: np.full((1, 1), context.som), "points are judged, not elements (coordinate mode)")
    return [
        Rule(
            code="gui.parse",
            title="the prediction is one action",
            passed="the prediction is an action",
            failed="no action could be read from the text: {why}",
            check=_parsed,
            variants=(
                Variant("gui.missing", "there is a prediction for the step", "there is no prediction for the step"),
                Variant("gui.unmatched", "the prediction is for a recorded step", "the recording has no such step"),
            ),
        ),
        Rule(
            code="gui.space",
            title="coordinates lie in the declared space",
            needs=("gui.parse",),
            passed="the coordinates lie in the declared space",
            failed="{why}",
            check=_in_space,
            conditions=(Condition(lambda batch: batch.has_coordinates[None], "the action has no coordinates"),),
        ),
        Rule(
            code="gui.action_type",
            title="the action has the recorded type",
            needs=("gui.parse",),
            passed="the type is the recorded one",
            failed="the type is {why}",
            check=_of_type,
        ),
        Rule(
            code="gui.point",
            title="the action has a point, and the recording something to hit",
            scope=Scope.FIELD,
            slots=_ENDS,
            needs=("gui.parse",),
            passed="there is a {field} and something to hit",
            failed="there is no {field} to compare: {why}",
            check=_has_point,
            conditions=(in_points, Condition(_asks_point, "the recorded action has no such point")),
        ),
        Rule(
            code="gui.click_hit",
            title="the point lies within the radius of the target",
            scope=Scope.FIELD,
            slots=_ENDS,
            needs=("gui.parse", "gui.point"),
            passed="the {field} is {observed} from the target, at most {high}",
            failed="the {field} is {observed} from the target; the radius is {high}. {why}",
            check=lambda batch: _hits(batch, context.radius),
            nominal=Limits(high=context.radius, critical_high=context.radius),
            conditions=(
                Condition(
                    lambda batch: batch.can_normalise[None], "pixels without a screen size have no normalised distance"
                ),
            ),
        ),
        Rule(
            code="gui.bbox_hit",
            title="the point lies in the recorded box, edges included",
            needs=("gui.parse",),
            passed="the point lies in the recorded box",
            failed="no point lies in the recorded box. {why}",
            check=_in_box,
            conditions=(
                in_points,
                Condition(lambda batch: batch.is_kind(POINTING)[None], "the recorded action does not point"),
                Condition(lambda batch: batch.has_box[None], "the recording has no box"),
            ),
        ),
        Rule(
            code="gui.element",
            title="the action is on the recorded element",
            needs=("gui.parse",),
            passed="the element is the recorded one",
            failed="the element is not the recorded one. {why}",
            check=_on_element,
            conditions=(in_marks, Condition(_asks_element, "the recorded action is on no element")),
        ),
        Rule(
            code="gui.text",
            title="the text is the recorded one",
            needs=("gui.parse", "gui.action_type"),
            passed="the text is the recorded one",
            failed="the text is not the recorded one",
            check=lambda batch: _same_text(batch, normalized=context.text == "normalized"),
            conditions=(Condition(lambda batch: _asks_text(batch)[None], "the recorded action has no text"),),
        ),
        Rule(
            code="gui.key",
            title="the key or the direction is the recorded one",
            needs=("gui.parse", "gui.action_type"),
            passed="the key or direction is the recorded one",
            failed="the key or direction is not the recorded one",
            check=_same_key,
            conditions=(
                Condition(lambda batch: batch.is_kind(WITH_KEY)[None], "the recorded action has no key or direction"),
            ),
        ),
        Rule(
            code="gui.milestone",
            title="the milestones of the step are reached",
            passed="the milestones of the step are reached",
            failed="not reached: {why}",
            check=lambda batch: _reaches_milestones(batch, som=context.som),
            conditions=(
                Condition(lambda batch: (batch.status != UNMATCHED)[None], "the recording has no such step"),
                Condition(
                    lambda batch: np.isin(np.arange(batch.n), list(batch.milestones))[None], "the step has no milestone"
                ),
            ),
        ),
    ]


RULES = RuleSet("gui", "gui", build, version="2")


def _parsed(batch: GuiBatch) -> Finding:
    failed = (batch.status != ANSWERED)[None]
    variant = np.maximum(batch.status.astype(np.int8) - 1, 0)[None]
    return Finding(failed, failed, variant=variant, details={(0, row): text for row, text in batch.notes.items()})


def _in_space(batch: GuiBatch) -> Finding:
    failed = ~batch.in_space
    details = {
        (0, int(row)): outside_words(batch.space, batch.point[:, row], batch.screen[:, row])
        for row in np.flatnonzero(failed & (batch.status == ANSWERED))
    }
    return Finding(failed[None], failed[None], details=details)


def _of_type(batch: GuiBatch) -> Finding:
    failed = (batch.kind != batch.said) | (batch.said < 0)
    rows = np.flatnonzero(failed & (batch.status == ANSWERED))
    words = batch.words.take(pa.array(rows)).dictionary_encode()
    pairs, place = np.unique(
        words.indices.to_numpy().astype(np.int64) * (len(batch.types) + 1) + batch.kind[rows], return_inverse=True
    )
    shared = []
    for index, pair in enumerate(pairs.tolist()):
        word, kind = divmod(pair, len(batch.types) + 1)
        text = f"{words.dictionary[word].as_py()} instead of {batch.types[kind]}"
        shared.append((0, rows[place == index], text))
    return Finding(failed[None], failed[None], shared=shared)


def _asks_point(batch: GuiBatch) -> Mask:
    """(2, n): where a recorded action asks for a point, and for an end."""
    drag = batch.is_kind(DRAG)
    return np.stack([batch.is_kind(POINTING) | drag, drag])


def _has_point(batch: GuiBatch) -> Finding:
    no_target = ~batch.has_target
    # Without a screen size only a box can be hit.
    no_target[0] |= ~batch.can_normalise & ~batch.has_box
    no_target[1] |= ~batch.can_normalise
    failed = no_target | ~batch.has_point
    asked = _asks_point(batch) & failed & (batch.status == ANSWERED)
    shared = [
        (slot, np.flatnonzero(asked[slot] & mask[slot]), text)
        for slot in (0, 1)
        for mask, text in (
            (no_target, "the recording has nothing to compare with"),
            (~no_target, "the action has none"),
        )
    ]
    return Finding(failed, failed, shared=shared)


def _hits(batch: GuiBatch, radius: float) -> Finding:
    failed = batch.distance > radius + EDGE
    return Finding(failed, failed, batch.distance, details=_where(batch, failed[0] & batch.can_normalise))


def _in_box(batch: GuiBatch) -> Finding:
    failed = ~batch.in_box
    asked = failed & batch.has_box & batch.is_kind(POINTING) & (batch.status == ANSWERED)
    return Finding(failed[None], (failed & ~batch.can_normalise)[None], details=_where(batch, asked))


def _where(batch: GuiBatch, missed: Mask) -> dict[tuple[int, int], str]:
    """What a missed click aimed at and where it went."""
    details = {}
    rows = np.flatnonzero(missed & (batch.status != UNMATCHED))
    for row, (target, boxes, point) in zip(rows.tolist(), batch.places(rows), strict=True):
        named = (("the point is", point), ("the target", target), ("the box", boxes))
        details[0, row] = ", ".join([f"{what} {place}" for what, place in named if place])
    return details


def _on_element(batch: GuiBatch) -> Finding:
    failed = ~batch.same_element
    decides = batch.is_kind((*POINTING, *DRAG))
    unnamed = np.flatnonzero(failed & decides & ~batch.has_element & (batch.status == ANSWERED))
    return Finding(failed[None], (failed & decides)[None], shared=[(0, unnamed, "the recording names no element")])


def _asks_element(batch: GuiBatch) -> Mask:
    return (batch.is_kind((*POINTING, *DRAG)) | (batch.is_kind(ON_ELEMENT) & batch.has_element))[None]


def _same_text(batch: GuiBatch, *, normalized: bool) -> Finding:
    recorded, predicted = (pc.fill_null(column, "") for column in (batch.argument, batch.said_argument))
    failed = _asks_text(batch) & (batch.said == batch.kind) & ~same(recorded, predicted)
    if normalized:
        _forgive(failed, recorded, predicted, one_space)
    return Finding(failed[None], failed[None])


def _asks_text(batch: GuiBatch) -> Mask:
    return batch.is_kind(WITH_TEXT) | (batch.is_kind(WITH_OPTIONAL_TEXT) & present(batch.argument))


def _same_key(batch: GuiBatch) -> Finding:
    failed = batch.is_kind(WITH_KEY) & (batch.said == batch.kind) & ~same(batch.argument, batch.said_argument)
    _forgive(failed, batch.argument, batch.said_argument, same_key)
    return Finding(failed[None], failed[None])


def _forgive(failed: Mask, recorded: pa.StringArray, predicted: pa.StringArray, form: Callable[[Any], Any]) -> None:
    """Take back failures of texts that are equal in the form in which they are compared."""
    rows = np.flatnonzero(failed)
    texts = (column.take(pa.array(rows)).to_pylist() for column in (recorded, predicted))
    failed[rows] = [form(one) != form(other) for one, other in zip(*texts, strict=True)]


def reached(batch: GuiBatch, row: int, milestone: Milestone, *, som: bool) -> bool:
    """Whether the prediction at a step reaches a milestone: its type, and near enough or on the element where asked.

    In SoM mode nobody points, so near enough means on the recorded element.
    """
    predicted = batch.said[row]
    if batch.status[row] != ANSWERED or predicted < 0 or batch.types[predicted] != milestone.type:
        return False
    if milestone.max_distance is not None:
        near = batch.same_element[row] if som else batch.distance[0, row] <= milestone.max_distance + EDGE
        if not near:
            return False
    if milestone.element is None:
        return True
    wanted = str(milestone.element)
    on_box = batch.element[row].as_py() == wanted and bool(batch.in_box[row])
    return batch.said_element[row].as_py() == wanted or on_box


def _reaches_milestones(batch: GuiBatch, *, som: bool) -> Finding:
    failed = np.zeros((1, batch.n), dtype=bool)
    details = {}
    for row, wanted in batch.milestones.items():
        unmet = [milestone.name for milestone in wanted if not reached(batch, row, milestone, som=som)]
        if unmet:
            failed[0, row] = True
            details[0, row] = ", ".join(unmet)
    return Finding(failed, np.zeros_like(failed), details=details)


def same_key(word: str | None) -> str | None:
    """A key or direction as it is compared: case and blanks do not matter."""
    return None if word is None else "".join(word.split()).casefold()


def one_space(text: str | None) -> str | None:
    """A text with every run of white space as one blank and none at the ends."""
    return None if text is None else " ".join(text.split())
