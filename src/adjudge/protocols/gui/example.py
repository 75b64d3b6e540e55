"""The example of the gui protocol: generated episodes, and what four agents do on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from adjudge.protocols.common.examples import write_examples
from adjudge.readers.action_dsl import Action, render


def example(folder: Path, seed: int) -> dict[str, Any]:
    """The data set of the demo, and the configuration that judges the agent that clicks off target."""
    generate(folder, seed=seed, force=True)
    return {
        "episodes": [str(folder / "episodes.jsonl")],
        "predictions": [str(folder / "predictions_off_target.jsonl")],
        "outcomes": [str(folder / "outcomes_off_target.jsonl")],
        "space": "normalized",
        "bbox": "xyxy",
        "config_path": "example",
        "backend": "off_target",
    }


AGENTS = ("careful", "off_target", "stops_early", "broken_syntax")
EPISODES_A_SCENARIO = 8
_SCREENS = {"windows": (1920, 1080), "macos": (1440, 900), "web": (1280, 800)}
_NAMES = ("ada", "grace", "alan", "edsger", "barbara", "donald", "frances", "niklaus")
_COUNTRIES = ("Austria", "Denmark", "Ghana", "Japan", "Peru")


@dataclass
class _Screen:
    """The elements of a form, stacked down the page, each with a mark and a box."""

    random: np.random.Generator
    boxes: dict[str, tuple[int, list[float]]] = field(default_factory=dict)

    def element(self, name: str) -> dict[str, Any]:
        """The element of that name, placed when it is first asked for."""
        if name not in self.boxes:
            row = len(self.boxes)
            left = 0.3 + float(self.random.uniform(-0.1, 0.1))
            top = 0.12 + 0.11 * row + float(self.random.uniform(-0.01, 0.01))
            width = float(self.random.uniform(0.08, 0.3))
            box = [left, top, left + width, top + 0.05]
            self.boxes[name] = (row + 1, [round(value, 4) for value in box])
        mark, box = self.boxes[name]
        return {"id": mark, "bbox": box}

    def click(self, name: str) -> dict[str, Any]:
        """A click in the middle of an element."""
        element = self.element(name)
        left, top, right, bottom = element["bbox"]
        x, y = round((left + right) / 2, 4), round((top + bottom) / 2, 4)
        return {"type": "click", "x": x, "y": y, "element": element}

    def type(self, name: str, text: str) -> dict[str, Any]:
        """A text into an element."""
        return {"type": "type", "text": text, "element": self.element(name)}

    def drag(self, name: str) -> dict[str, Any]:
        """A drag along an element."""
        element = self.element(name)
        left, top, right, bottom = element["bbox"]
        y = round((top + bottom) / 2, 4)
        x, end = round(left + 0.01, 4), round(right - 0.01, 4)
        return {"type": "drag", "x": x, "y": y, "end_x": end, "end_y": y, "element": element}


def _login(screen: _Screen, random: np.random.Generator) -> list[dict[str, Any]]:
    name = str(random.choice(_NAMES))
    return [
        screen.click("user"),
        screen.type("user", f"{name}@example.org"),
        {"type": "key", "key": "tab"},
        screen.type("password", f"{name}-{random.integers(1000, 9999)}"),
        screen.click("sign in"),
        {"type": "wait"},
        {"type": "done"},
    ]


def _registration(screen: _Screen, random: np.random.Generator) -> list[dict[str, Any]]:
    name = str(random.choice(_NAMES))
    return [
        screen.click("name"),
        screen.type("name", name.title()),
        screen.click("email"),
        screen.type("email", f"{name}@example.org"),
        {"type": "select", "text": str(random.choice(_COUNTRIES)), "element": screen.element("country")},
        screen.click("terms"),
        screen.click("register"),
        {"type": "done"},
    ]


def _settings(screen: _Screen, random: np.random.Generator) -> list[dict[str, Any]]:
    middle = [{"type": "scroll", "direction": "down"}, screen.drag("volume"), screen.click("dark mode")]
    if random.random() < 0.5:
        middle.reverse()
    return [screen.click("menu"), *middle, screen.click("save"), {"type": "done"}]


_SCENARIOS = {"login": _login, "registration": _registration, "settings": _settings}


def generate(folder: Path, *, seed: int = 0, force: bool = False) -> list[Path]:
    """Write episodes, the predictions of every agent in both modes, outcomes and grounding records."""
    random = np.random.default_rng(np.random.SeedSequence([seed, 6]))
    episodes = [_episode(scenario, index, random) for scenario in _SCENARIOS for index in range(EPISODES_A_SCENARIO)]
    files: dict[str, list[Any]] = {"episodes.jsonl": episodes}
    for place, agent in enumerate(AGENTS):
        for suffix, som in (("", False), ("_som", True)):
            agent_random = np.random.default_rng(np.random.SeedSequence([seed, 7, place, som]))
            files[f"predictions_{agent}{suffix}.jsonl"] = _predictions(episodes, agent, agent_random, som=som)
        files[f"outcomes_{agent}.jsonl"] = _outcomes(episodes, agent, random)
    files["grounding.jsonl"] = _grounding(episodes, random)
    otherwise = "choose another folder, or --force to replace it"
    return write_examples(folder, files, force=force, otherwise=otherwise)


def _episode(scenario: str, index: int, random: np.random.Generator) -> dict[str, Any]:
    platform = str(random.choice(sorted(_SCREENS)))
    width, height = _SCREENS[platform]
    steps = _SCENARIOS[scenario](_Screen(random), random)
    clicks = [number for number, action in enumerate(steps) if action["type"] == "click"]
    last = clicks[-1]
    milestones = [
        {"name": "started", "step": clicks[0], "type": "click", "max_distance": 0.1},
        {"name": "submitted", "step": last, "type": "click", "element": steps[last]["element"]["id"]},
    ]
    return {
        "episode_id": f"{scenario}-{index:02d}",
        "scenario": scenario,
        "goal": f"Complete the {scenario} form",
        "screen": {"width": width, "height": height},
        "platform": platform,
        "milestones": milestones,
        "steps": [{"step": number, "action": action} for number, action in enumerate(steps)],
    }


def _predictions(
    episodes: list[dict[str, Any]], agent: str, random: np.random.Generator, *, som: bool
) -> list[dict[str, Any]]:
    rows = []
    for episode in episodes:
        steps = episode["steps"]
        stop = len(steps) if agent != "stops_early" else int(random.integers(1, len(steps) + 1))
        for number, step in enumerate(steps[:stop]):
            answer = _say(step["action"], agent, random, som=som)
            row: dict[str, Any] = {"episode_id": episode["episode_id"], "step": number, "raw": answer}
            if step["action"]["type"] == "done":
                row["state"] = {"success": True}
            rows.append(row)
    return rows


def _say(action: dict[str, Any], agent: str, random: np.random.Generator, *, som: bool) -> str:
    """What an agent says where this action was recorded."""
    spread = {"careful": 0.008, "off_target": 0.06, "stops_early": 0.012, "broken_syntax": 0.015}[agent]
    slip = {"careful": 0.03, "off_target": 0.06, "stops_early": 0.05, "broken_syntax": 0.05}[agent]
    kind = action["type"]
    if random.random() < slip:
        kind = "wait"
    values = {name: _near(action[name], spread, random) for name in ("x", "y", "end_x", "end_y") if name in action}
    element = None
    if "element" in action and (som or kind in {"type", "select"}):
        mark = action["element"]["id"]
        element = str(mark if random.random() > 4 * spread else mark + 1)
    argument = action.get("text") or action.get("key") or action.get("direction")
    if kind == "wait":
        answered = Action("wait")
    elif som and kind in {"click", "drag"}:
        answered = Action(kind, element=element)
    else:
        answered = Action(kind, **values, argument=argument, element=element if som else None)
    text = f"I see the form.\nAction: {render(answered)}"
    return _broken(text, random) if agent == "broken_syntax" and random.random() < 0.35 else text


def _broken(text: str, random: np.random.Generator) -> str:
    """The same, as a model that has lost the syntax says it."""
    ways = (
        text.rstrip(")"),
        text.replace("(", " ", 1),
        text.replace("Action: ", "Action: I would "),
        "Action: CLICK(x=812, y=344)",
    )
    return ways[int(random.integers(len(ways)))]


def _outcomes(episodes: list[dict[str, Any]], agent: str, random: np.random.Generator) -> list[dict[str, Any]]:
    chance = {"careful": 0.85, "off_target": 0.35, "stops_early": 0.25, "broken_syntax": 0.3}[agent]
    return [
        {"episode_id": episode["episode_id"], "success": bool(random.random() < chance), "checker": "example"}
        for episode in episodes
    ]


def _grounding(episodes: list[dict[str, Any]], random: np.random.Generator) -> list[dict[str, Any]]:
    steps = [(episode, step, step["action"]) for episode in episodes for step in episode["steps"]]
    rows = []
    for episode, step, click in steps:
        if click["type"] == "click":
            candidates = [[_near(click[axis], 0.05, random) for axis in ("x", "y")] for _ in range(5)]
            row = {
                "id": f"{episode['episode_id']}-{step['step']}",
                "bbox": click["element"]["bbox"],
                "point": candidates[0],
                "candidates": candidates,
                "platform": episode["platform"],
                "ui_type": "text" if click["element"]["id"] % 2 else "icon",
            }
            rows.append(row)
    return rows


def _near(value: float, spread: float, random: np.random.Generator) -> float:
    """A coordinate that misses another by so much."""
    return round(float(np.clip(value + random.normal(0.0, spread), 0.0, 1.0)), 4)
