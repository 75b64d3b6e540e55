"""OpenAdapt-ML episodes, current shape (`episode_id`, `instruction`, pixels) and older shape (`id`, `goal`, x and y)."""

from __future__ import annotations

import msgspec

from adjudge.readers.blocks import tree_of
from adjudge.readers.gui.actions import AnyAction, Frame, pair, placed
from adjudge.readers.gui.model import Episode, Milestone, Screen, Shape, Step
from adjudge.readers.settings import in_words

_WHAT = "expected an OpenAdapt-ML episode"


class _Observation(msgspec.Struct):
    screen_size: list[float] | None = None


class _Step(msgspec.Struct):
    action: AnyAction
    step_index: int | None = None
    step: int | None = None
    observation: _Observation | None = None


class _Recording(msgspec.Struct):
    """An episode with the keys of both shapes."""

    steps: list[msgspec.Raw]
    episode_id: str | int | None = None
    id: str | int | None = None
    instruction: str | None = None
    goal: str | None = None
    scenario: str | int | None = None
    task_id: str | int | None = None
    workflow_id: str | int | None = None
    environment: str | int | None = None
    milestones: list[Milestone] | None = None


_recording, _step = msgspec.json.Decoder(_Recording), msgspec.json.Decoder(_Step)
KEYS = {**dict.fromkeys(_Recording.__struct_fields__), "milestones": tree_of(Milestone), "steps": tree_of(_Step)}


def episode(text: bytes, space: str, bbox: str) -> Episode:
    """A recording of either shape. It says itself what is pixels and what is normalised; `x`, `y` and `bbox` are declared.

    Its scenario is `scenario`, or else the task or workflow it belongs to.
    """
    record = _recording.decode(text)
    name = record.id if record.episode_id is None else record.episode_id
    if name is None:
        raise Shape(f"has neither `episode_id` nor `id`; {_WHAT}")
    steps = [_decoded(step, index) for index, step in enumerate(record.steps)]
    screen: Screen | None = None
    for index, step in enumerate(steps):
        if step.observation is None or step.observation.screen_size is None:
            continue
        size = Screen(*pair(step.observation.screen_size, f"step {index}: screen_size"))
        if screen is not None and size != screen:
            raise Shape(f"step {index} has another screen_size than the steps before; one episode has one screen")
        screen = size
    frame = Frame(space, bbox, screen)
    return Episode(
        name,
        [Step(_number(step, index), placed(step.action, frame, f"step {index}")) for index, step in enumerate(steps)],
        next((str(word) for word in (record.scenario, record.task_id, record.workflow_id) if word is not None), None),
        record.goal or record.instruction,
        screen,
        None if record.environment is None else str(record.environment),
        record.milestones,
    )


def _number(step: _Step, index: int) -> int:
    """A step by its own number, or by its place."""
    return next((number for number in (step.step_index, step.step) if number is not None), index)


def _decoded(step: msgspec.Raw, index: int) -> _Step:
    try:
        return _step.decode(step)
    except msgspec.ValidationError as error:
        raise Shape(f"step {index} is not readable: {in_words(error)}; {_WHAT}") from None
