"""GUI steps a CPU second, as DSL text and as structured actions, against judging them one object at a time.

`python -m benchmarks gui [--steps N] [--objects N]`: N steps through the whole of `adjudge gui` (read, split, judged,
evidence written, measured with intervals), N steps through benchmarks/gui_objects.py (judged and written, no intervals), and
both on the same steps for equal numbers. The target is held against objects written leanly; dataclasses.asdict, which
copies every atom and takes more than half of such a program's time, is shown beside it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import gui_objects

STEPS_AN_EPISODE = 20
TARGET = {"text": 3.0, "actions": 5.0}
MEMORY_MB = 1000


def make(folder: Path, steps: int, *, text: bool, seed: int = 0) -> tuple[Path, Path]:
    """Episodes and predictions of a seeded agent that is right now and then."""
    random = np.random.default_rng(seed)
    episodes, predictions = folder / "episodes.jsonl", folder / "predictions.jsonl"
    with episodes.open("w", encoding="utf-8") as told, predictions.open("w", encoding="utf-8") as said:
        for number in range(steps // STEPS_AN_EPISODE):
            rolls = random.random((STEPS_AN_EPISODE, 6)).round(4).tolist()
            name = f"episode-{number:07d}"
            recorded = [_recorded(roll) for roll in rolls]
            rows = [{"step": k, "action": action} for k, action in enumerate(recorded)]
            scenario = ("login", "shop", "settings")[number % 3]
            told.write(json.dumps({"episode_id": name, "scenario": scenario, "steps": rows}) + "\n")
            for k, (action, roll) in enumerate(zip(recorded, rolls, strict=True)):
                row = _said(action, roll, text=text)
                if row is not None:
                    said.write(json.dumps({"episode_id": name, "step": k, **row}) + "\n")
    return episodes, predictions


def _recorded(roll: list[float]) -> dict[str, Any]:
    kind, x, y, width = roll[0], 0.1 + 0.8 * roll[1], 0.1 + 0.8 * roll[2], 0.01 + 0.08 * roll[3]
    if kind < 0.6:
        box = [round(v, 4) for v in (x - width, y - width / 2, x + width, y + width / 2)]
        return {"type": "click", "x": round(x, 4), "y": round(y, 4), "element": {"id": int(x * 40), "bbox": box}}
    if kind < 0.8:
        return {"type": "type", "text": f"text {int(roll[1] * 1000)}"}
    if kind < 0.9:
        return {"type": "scroll", "direction": "down" if roll[1] < 0.7 else "up"}
    return {"type": "key", "key": "enter"} if kind < 0.95 else {"type": "done"}


def _said(action: dict[str, Any], roll: list[float], *, text: bool) -> dict[str, Any] | None:
    luck, shift = roll[4], 0.08 * (roll[5] - 0.5)
    if luck < 0.02:
        return None
    found = {key: value for key, value in action.items() if key != "element"}
    if luck < 0.12:
        found = {"type": "wait"}
    elif action["type"] == "click":
        found["x"], found["y"] = round(action["x"] + shift, 4), round(action["y"] - shift, 4)
    elif luck < 0.2 and "text" in found:
        found["text"] += "!"
    if not text:
        return {"action": found}
    if 0.2 < luck < 0.22:
        return {"raw": "Action: I am not sure"}
    spoken = _spoken(found)
    return {"raw": spoken if luck < 0.8 else f"I look at the screen.\nAction: {spoken}"}


def _spoken(action: dict[str, Any]) -> str:
    kind = action["type"].upper()
    if "x" in action:
        return f"{kind}(x={action['x']}, y={action['y']})"
    words = [json.dumps(action[name]) for name in ("text", "key", "direction") if name in action]
    return f"{kind}({', '.join(words)})"


def columnar(episodes: Path, predictions: Path, out: Path) -> dict[str, Any]:
    """The whole of `adjudge gui`, without the report page."""
    from adjudge.engine.evaluate import Options, evaluate
    from adjudge.protocols.base import protocol

    config = {"episodes": [str(episodes)], "predictions": [str(predictions)], "space": "normalized", "bbox": "xyxy"}
    path = evaluate(protocol("gui"), config, Options(out=out))
    found: dict[str, Any] = json.loads((path / "metrics.json").read_text(encoding="utf-8"))["metrics"]
    return found


def check_equal(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Counts and rates are the same; sums of distances to the last bit but a few."""
    for name, value in theirs.items():
        if isinstance(value, float):
            assert abs(ours[name] - value) <= 1e-12 * max(1.0, abs(value)), (name, ours[name], value)
        else:
            assert ours[name] == value, (name, ours[name], value)


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def child(kind: str, steps: int, which: str) -> dict[str, float]:
    """One measurement in a process of its own: CPU seconds, and the most memory it held."""
    command = [sys.executable, "-m", "benchmarks.gui", "--child", which, "--kind", kind, "--steps", str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _measure(kind: str, steps: int, which: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        maker = [sys.executable, "-m", "benchmarks.gui", "--make", str(folder), "--kind", kind, "--steps", str(steps)]
        subprocess.run(maker, check=True)
        files = folder / "episodes.jsonl", folder / "predictions.jsonl"
        if which == "columns":
            seconds = _timed(lambda: columnar(*files, folder / "run"))
        else:
            plain = asdict if which == "asdict" else gui_objects.lean
            seconds = _timed(lambda: gui_objects.evaluate(*files, folder / "objects.jsonl", plain=plain))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "megabytes": memory}


def same_results(steps: int) -> None:
    """Both ways on the same steps, as text and as actions."""
    for kind in TARGET:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            files = make(folder, steps, text=kind == "text")
            check_equal(columnar(*files, folder / "run"), gui_objects.evaluate(*files, folder / "objects.jsonl"))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks gui")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--objects", type=int, default=100_000, help="steps of the way by objects")
    parser.add_argument("--kind", choices=sorted(TARGET), default="text")
    parser.add_argument("--child", choices=("columns", "objects", "asdict"))
    parser.add_argument("--make", type=Path)
    given = parser.parse_args(argv)
    if given.make is not None:
        make(given.make, given.steps, text=given.kind == "text")
        return 0
    if given.child is not None:
        print(json.dumps(_measure(given.kind, given.steps, given.child)))
        return 0
    same_results(20_000)
    print("results of both ways are equal on 20,000 steps, as text and as actions")
    held = True
    for kind, target in TARGET.items():
        ours, theirs = child(kind, given.steps, "columns"), child(kind, given.objects, "objects")
        naive = given.objects / child(kind, given.objects, "asdict")["seconds"]
        fast, slow = given.steps / ours["seconds"], given.objects / theirs["seconds"]
        held = held and fast / slow >= target and ours["megabytes"] < MEMORY_MB
        print(
            f"{kind}: {given.steps:,} steps in {ours['seconds']:.1f} CPU s and {ours['megabytes']:.0f} MB "
            f"({fast:,.0f} steps/s); by objects {slow:,.0f} steps/s: "
            f"{fast / slow:.1f}× (target {target:g}×, {MEMORY_MB} MB); by objects written with dataclasses.asdict "
            f"{naive:,.0f} steps/s: {fast / naive:.1f}×"
        )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
