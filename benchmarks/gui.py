"""GUI steps a CPU second, as DSL text and as structured actions, against judging them one object at a time.

`python -m benchmarks gui [--steps N] [--objects N] [--repeat K] [--json FILE]`: N steps through the whole of `adjudge gui`
(read, split, judged, evidence written, measured with intervals), N steps through benchmarks/gui_objects.py (judged and
written, no intervals), each in a process of its own, by turns, the least CPU time of K kept; ours counts imports too. Both
also judge the same steps, and their figures must be equal. The target is held against objects written leanly;
dataclasses.asdict, which copies every atom and takes more than half of such a program's time, is shown beside it. Exits
with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class Row:
    """One line of the table; `ratio` is how many times more steps a CPU second than objects written leanly."""

    name: str
    rows: int
    cpu_seconds: float
    peak_mb: float
    ratio: float | None = None
    target: float | None = None
    equal: bool | None = None

    @property
    def met(self) -> bool:
        """Whether the row reaches its target, within the memory it may take, with equal figures."""
        reached = self.target is None or (self.ratio or 0.0) >= self.target
        return reached and self.equal is not False and (self.target is None or self.peak_mb < MEMORY_MB)

    def __str__(self) -> str:
        each = self.cpu_seconds / self.rows
        ratio = "" if self.ratio is None else f"{self.ratio:.1f}×"
        target = "" if self.target is None else f"{self.target:g}× {'met' if self.met else 'MISSED'}"
        cells = (f"{self.rows:,}", f"{each * 1e6:.1f}", f"{1 / each:,.0f}", f"{self.peak_mb:,.0f}", ratio, target)
        return f"| {self.name} | {' | '.join(cells)} |"


def _measure(which: str, folder: Path) -> dict[str, Any]:
    """One way over the files of a folder: CPU seconds, the most memory this process held, and what it found."""
    files = folder / "episodes.jsonl", folder / "predictions.jsonl"
    start = time.process_time()
    if which == "columns":
        found = columnar(*files, folder / "run")
    else:
        plain = asdict if which == "asdict" else gui_objects.lean
        found = gui_objects.evaluate(*files, folder / "objects.jsonl", plain=plain)
    seconds = time.process_time() - start
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "megabytes": megabytes, "found": found}


def _child(*words: str) -> str:
    command = [sys.executable, "-m", "benchmarks.gui", *words]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def same_figures(kind: str, ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether both ways found the same."""
    try:
        check_equal(ours, theirs)
    except AssertionError as error:
        print(f"{kind}: {error}", file=sys.stderr)
        return False
    return True


def compare(kind: str, steps: int, objects: int, repeat: int) -> list[Row]:
    """The rows of one kind of predictions, measured by turns."""
    sizes = {"columns": steps, "objects": objects, "asdict": objects}
    costs: dict[str, list[dict[str, Any]]] = {which: [] for which in sizes}
    with tempfile.TemporaryDirectory(prefix="adjudge-gui-") as name:
        for size in set(sizes.values()):
            (Path(name) / str(size)).mkdir()
            _child("--make", str(Path(name) / str(size)), "--kind", kind, "--steps", str(size))
        for _ in range(repeat):
            for which, size in sizes.items():
                folder = Path(name) / str(size)
                shutil.rmtree(folder / "run", ignore_errors=True)
                costs[which].append(json.loads(_child("--child", which, "--folder", str(folder))))
        shutil.rmtree(Path(name) / str(objects) / "run", ignore_errors=True)
        again = json.loads(_child("--child", "columns", "--folder", str(Path(name) / str(objects))))
    least = {which: min(cost["seconds"] for cost in found) for which, found in costs.items()}
    peak = {which: max(cost["megabytes"] for cost in found) for which, found in costs.items()}
    speed = {which: sizes[which] / least[which] for which in sizes}
    return [
        Row(
            f"{kind}: adjudge",
            steps,
            least["columns"],
            peak["columns"],
            speed["columns"] / speed["objects"],
            TARGET[kind],
            same_figures(kind, again["found"], costs["objects"][0]["found"]),
        ),
        Row(f"{kind}: objects, lean", objects, least["objects"], peak["objects"]),
        Row(
            f"{kind}: objects, asdict",
            objects,
            least["asdict"],
            peak["asdict"],
            speed["asdict"] / speed["objects"],
        ),
    ]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks gui")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--objects", type=int, default=100_000, help="steps of the way by objects")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument("--kind", choices=sorted(TARGET), help="this kind of predictions alone")
    parser.add_argument("--child", choices=("columns", "objects", "asdict"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.make is not None:
        make(given.make, given.steps, text=given.kind == "text")
        return 0
    if given.child is not None:
        print(json.dumps(_measure(given.child, given.folder)))
        return 0
    kinds = list(TARGET) if given.kind is None else [given.kind]
    rows = [row for kind in kinds for row in compare(kind, given.steps, given.objects, given.repeat)]
    print("| what | steps | CPU µs/step | steps/s | peak MB | against lean objects | target |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    print(*rows, sep="\n")
    equal = all(row.equal is not False for row in rows)
    print(
        f"\nfigures of both ways on {given.objects:,} steps: {'equal' if equal else 'DIFFERENT'}; at most {MEMORY_MB} MB"
    )
    if given.json is not None:
        document = {"rows": [asdict(row) | {"met": row.met} for row in rows]}
        given.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
