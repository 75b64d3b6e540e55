"""`validate --strict` against the evaluation schema written once more as a Pydantic model, on random files."""

from __future__ import annotations

import json
import random
from typing import Annotated, Any, Literal

import pydantic
import pytest
from pydantic import BaseModel, Field

from adjudge.protocols.gui.evalfile import problems
from adjudge.protocols.gui.schemas import OPTIONAL, REQUIRED

FILES = 1000
Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=0, le=1)]


class Metrics(BaseModel):
    """Seven primary metrics, six auxiliary ones that may be null or absent; other keys are ignored."""

    num_episodes: Count
    num_steps: Count
    action_type_accuracy: Rate
    mean_coord_error: Annotated[float, Field(ge=0)] | None
    coord_error_count: Count
    episode_success_rate: Rate
    click_hit_rate: Rate | None
    bbox_hit_rate: Rate | None = None
    mean_episode_progress: Rate | None = None
    mean_episode_step_score: Rate | None = None
    weak_episode_success_rate: Rate | None = None
    state_success_rate: Rate | None = None
    element_accuracy: Rate | None = None


class Evaluation(BaseModel):
    """The file."""

    config_path: str
    backend: str
    dsl_mode: Literal["coord", "som"] = "coord"
    metrics: Metrics


def by_the_model(document):
    try:
        Evaluation.model_validate_json(json.dumps(document))
    except pydantic.ValidationError:
        return False
    return True


# Deliberate differences, by what a file holds or by what we say of it. The model takes `true` for 1 and "3" for 3; it does
# not know the sentinel −1 of metrics no longer computed, nor which numbers cannot stand together.
BEYOND_A_MODEL = (
    "which no whole number gives",
    "although coord_error_count is",
    "expected null in",
    "an evaluation of no steps is none",
)


def values_of(document):
    metrics = document.get("metrics")
    return list(metrics.values()) if isinstance(metrics, dict) else []


def deliberate(document):
    """Whether a file holds what the two take differently on purpose."""
    return any(
        isinstance(value, bool | str) or (isinstance(value, int | float) and value == -1)
        for value in values_of(document)
    )


def random_file(rng):
    som = rng.random() < 0.3
    steps, episodes, clicks = rng.randrange(1, 300), rng.randrange(1, 40), 0 if som else rng.randrange(1, 50)
    metrics: dict[str, Any] = {
        "num_episodes": episodes,
        "num_steps": steps,
        "action_type_accuracy": rng.randrange(steps + 1) / steps,
        "mean_coord_error": None if som else rng.random(),
        "coord_error_count": clicks,
        "episode_success_rate": rng.randrange(episodes + 1) / episodes,
        "click_hit_rate": None if som else rng.randrange(clicks + 1) / clicks,
        "mean_episode_progress": rng.random(),
        "mean_episode_step_score": None,
    }
    document: dict[str, Any] = {"config_path": "c.yaml", "backend": "b", "metrics": metrics, "extra": [1]}
    if som or rng.random() < 0.5:
        document["dsl_mode"] = "som" if som else "coord"
    for _ in range(rng.randrange(3)):
        break_it(rng, document)
    return document


def break_it(rng, document):
    """One change that may or may not make it invalid."""
    place = rng.random()
    if place < 0.15:
        name = rng.choice(["config_path", "backend", "dsl_mode"])
        document[name] = rng.choice([None, 3, "x", "coord", ["coord"]])
    elif place < 0.25:
        document.pop(rng.choice(["config_path", "backend", "dsl_mode"]), None)
    elif place < 0.35:
        document["metrics"].pop(rng.choice(list(document["metrics"])), None) if document["metrics"] else None
    else:
        name = rng.choice([*REQUIRED, *OPTIONAL])
        odd = [None, -1.0, -1, -0.5, 0, 1, 1.5, 7, 7.0, 7.5, "0.5", "many", True, [], {}, 0.333, 1e9]
        document["metrics"][name] = rng.choice(odd)


@pytest.mark.parametrize("seed", [1, 2])
def test_strict_and_the_model_agree_but_for_listed_differences(seed):
    rng = random.Random(seed)  # noqa: S311 -- test data
    agreed = differed = 0
    for _ in range(FILES):
        document = random_file(rng)
        ours, model = problems(document, strict=True), by_the_model(document)
        if (not ours) == model:
            agreed += 1
            continue
        differed += 1
        beyond = model and all(any(words in problem for words in BEYOND_A_MODEL) for problem in ours)
        assert beyond or deliberate(document), (document, ours)
    assert agreed > FILES / 2
    assert differed > FILES / 100, "the listed differences are met"


@pytest.mark.parametrize(
    "value, ours_valid, model_valid",
    [(True, False, True), ("0.5", False, True), (-1.0, True, False), (0.123, False, True)],
)
def test_every_listed_difference_is_one(value, ours_valid, model_valid):
    document = random_file(random.Random(0)) | {"config_path": "c", "backend": "b", "dsl_mode": "coord"}  # noqa: S311
    document["metrics"] = {
        "num_episodes": 4,
        "num_steps": 10,
        "action_type_accuracy": value,
        "mean_coord_error": None,
        "coord_error_count": 0,
        "episode_success_rate": 0.5,
        "click_hit_rate": None,
    }
    assert (not problems(document, strict=True), by_the_model(document)) == (ours_valid, model_valid)
