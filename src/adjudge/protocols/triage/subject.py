"""The invented models of the example, as subjects of `adjudge collect`: python:adjudge.protocols.triage.subject:hawk_1.

A picture is stood for by `trace`, what a forensic eye could measure in it: above 0 it speaks for a fake, below for a real
one, and the nearer to 0 the less. A model sees it through noise of its own and answers uncertain where it sees little. What it
says about its confidence grows faster than its accuracy: it is over-confident, the smaller model more. `hawk_1` and
`wren_mini` wait as long as such a model would take, so run them under a simulated clock; `agent` is either of them, by the name
of the model that is asked, and does not wait.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

TOOLS = ("metadata", "ela", "noise_map")


@dataclass(frozen=True)
class Model:
    """How well it sees, how careful it is, how much it overstates, how often it fails, how long it takes."""

    name: str
    skill: float
    tool_gain: float
    caution: float
    overstatement: float
    errors: float
    seconds: float


HAWK = Model("hawk-1", 1.35, 0.50, 0.55, 2.2, 0.01, 5.2)
WREN = Model("wren-mini", 0.85, 0.45, 0.35, 3.0, 0.03, 1.9)


async def hawk_1(request: dict[str, Any]) -> dict[str, Any]:
    """The larger model."""
    return await _answer(HAWK, request)


async def wren_mini(request: dict[str, Any]) -> dict[str, Any]:
    """The smaller model: faster, less able, more sure of itself."""
    return await _answer(WREN, request)


async def agent(request: dict[str, Any]) -> dict[str, Any]:
    """The model that `--models` names, answering at once; it tells no times, for they would not be measured."""
    model = next((model for model in (HAWK, WREN) if model.name == request["model"]), None)
    if model is None:
        raise ValueError(f"there is no model {request['model']!r}; there are {HAWK.name} and {WREN.name}")
    answer = await _answer(model, request, waits=False)
    return {key: value for key, value in answer.items() if key != "timings"}


async def _answer(model: Model, request: dict[str, Any], *, waits: bool = True) -> dict[str, Any]:
    tools, trial = request["use_tools"], request["trial"]
    seed = (request["seed"] or 0) - trial  # the runner adds the trial
    # Most of what a model sees of a picture is the same each time it looks, with and without tools.
    lasting = Random(f"{seed}/{model.name}/{request['id']}").gauss(0.0, 1.0)  # noqa: S311 -- invented answers
    random = Random(f"{seed}/{model.name}/{request['id']}/{tools}/{trial}")  # noqa: S311
    if random.random() < model.errors:
        if random.random() < 0.3:
            return {"error": "the picture may show a person, which this model does not judge", "error_type": "refused"}
        if not waits:
            return {"error": "no answer in an hour", "error_type": "timeout"}
        await asyncio.sleep(3600.0)
    vision = await _wait(random.gammavariate(6.0, model.seconds / 6.0), waits=waits)
    used = []
    agent = 0.0
    if tools:
        used = [
            {"tool": name, "seconds": await _wait(random.gammavariate(2.0, 0.3), waits=waits), "status": "ok"}
            for name in TOOLS
            if random.random() < 0.6
        ]
        agent = await _wait(random.gammavariate(5.0, 0.8), waits=waits)
    skill = model.skill + (model.tool_gain if tools else 0.0)
    seen = skill * request["sample"]["trace"] + 0.9 * lasting + 0.45 * random.gauss(0.0, 1.0)
    return {
        "response": _said(model, seen, random),
        "models": {
            "agent": f"{model.name}-2026-01",
            "vision": request["settings"].get("vision_model", "iris-2026-01"),
            "structuring": "form-3",
        },
        "timings": {"vision_llm_seconds": vision, **({"agent_graph_seconds": agent} if tools else {})},
        "tool_details": used,
        "usage": {"prompt_tokens": 900 + 240 * len(used), "completion_tokens": random.randint(30, 90)},
        "cache": {"hit": False},
        "finish_reason": "stop",
    }


def _said(model: Model, seen: float, random: Random) -> str:
    verdict = "uncertain" if abs(seen) < model.caution else "fake" if seen > 0 else "real"
    if verdict == "fake" and random.random() < 0.1:
        verdict = "AI-generated"
    # A calibrated model would say 1 / (1 + exp(-|seen|)); this one overstates what it sees.
    log_odds = model.overstatement * abs(seen) + 0.6 * random.gauss(0.0, 1.0)
    confidence = round(min(1.0 / (1.0 + math.exp(-log_odds)), 0.99), 2)
    return msgspec.json.encode({"prediction": verdict, "confidence": confidence}).decode()


async def _wait(seconds: float, *, waits: bool) -> float:
    """Wait, and say how long by the clock of the event loop."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    await asyncio.sleep(round(seconds, 3) if waits else 0.0)
    return round(loop.time() - start, 6)
