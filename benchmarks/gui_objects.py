"""GUI steps judged one object at a time: a yardstick of the speed table. It imports nothing of the protocol.

Every step becomes a step object with its recorded and predicted action, every check an atom object; the numbers are
sums over them. The action text is read by a plain tokenizer, character by character in spirit: one token a call.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TOKEN = re.compile(
    r"""\s*(?:([A-Za-z_]\w*)|([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|("(?:[^"\\]|\\.)*")|([()\[\],=]))"""
)
_POINTING = ("click", "double_click", "right_click", "hover")
_EDGE = 1e-9


@dataclass
class Act:
    """One action."""

    type: str
    x: float | None = None
    y: float | None = None
    text: str | None = None
    element: str | None = None
    boxes: list[list[float]] = field(default_factory=list)


@dataclass
class Atom:
    """What one rule found."""

    rule: str
    outcome: str
    severity: str
    observed: float | None
    message: str


@dataclass
class Judged:
    """One step, judged."""

    episode: str
    step: int
    recorded: Act
    said: Act | None
    status: str
    atoms: list[Atom]
    verdict: str


def parse(text: str) -> Act | None:
    """The action behind the last `Action:`; None where there is none."""
    body = text.rsplit("Action:", 1)[-1]
    tokens: list[tuple[str, str]] = []
    place = 0
    while place < len(body.rstrip()):
        found = _TOKEN.match(body, place)
        if found is None:
            return None
        kind = ("word", "number", "string", "sign")[(found.lastindex or 1) - 1]
        tokens.append((kind, found[found.lastindex or 1]))
        place = found.end()
    if len(tokens) < 3 or tokens[0][0] != "word" or tokens[1][1] != "(" or tokens[-1][1] != ")":
        return None
    act = Act(tokens[0][1].lower())
    index = 2
    while index < len(tokens) - 1:
        kind, value = tokens[index]
        if kind == "word" and tokens[index + 1][1] == "=":
            if tokens[index + 2][0] == "number":
                setattr(act, value, float(tokens[index + 2][1]))
            else:
                act.text = json.loads(tokens[index + 2][1])
            index += 3
        elif value == "[":
            act.element = tokens[index + 1][1]
            index += 3
        elif kind == "string":
            act.text = json.loads(value)
            index += 1
        else:
            return None
        if tokens[index][1] == ",":
            index += 1
    return act


def action(given: dict[str, Any]) -> Act:
    """An action from its JSON object."""
    element = given.get("element") or {}
    box = element.get("bbox")
    name = element.get("id")
    text = given.get("text") or given.get("key") or given.get("direction")
    boxes = [] if box is None else [box]
    return Act(given["type"], given.get("x"), given.get("y"), text, None if name is None else str(name), boxes)


def judge(episode: str, step: int, recorded: Act, said: Act | None, status: str, radius: float) -> Judged:
    """One step: its atoms and its verdict."""
    atoms = [_atom("gui.parse", status == "answered", "the prediction is an action" if said else status)]
    if said is not None:
        atoms += _answered(recorded, said, radius)
    wrong = any(atom.outcome == "fail" and atom.severity == "CRITICAL" for atom in atoms)
    return Judged(episode, step, recorded, said, status, atoms, "incorrect" if wrong else "correct")


def _answered(recorded: Act, said: Act, radius: float) -> list[Atom]:
    atoms = []
    has_point = said.x is not None and said.y is not None
    inside = not has_point or (0 <= (said.x or 0) <= 1 and 0 <= (said.y or 0) <= 1)
    right = said.type == recorded.type
    if has_point:
        atoms.append(_atom("gui.space", inside, f"coordinates {said.x}, {said.y}"))
    atoms.append(_atom("gui.action_type", right, f"{said.type} where {recorded.type} was recorded"))
    if recorded.type in _POINTING:
        usable = has_point and inside
        atoms.append(_atom("gui.point", usable, "there is a point" if usable else "there is no point"))
        if usable:
            distance = _distance(recorded, said)
            hit = distance <= radius + _EDGE
            atoms.append(_atom("gui.click_hit", hit, f"{distance:.6g} from the target, at most {radius}", distance))
        if recorded.boxes:
            over = usable and any(_over(said, box) for box in recorded.boxes)
            atoms.append(_atom("gui.bbox_hit", over, "in the box" if over else "not in the box", severity="WARNING"))
    elif right and recorded.type in {"type", "select"}:
        same = (said.text or "") == (recorded.text or "")
        atoms.append(_atom("gui.text", same, f"{said.text!r} where {recorded.text!r} was recorded"))
    elif right and recorded.type in {"key", "scroll"}:
        same = (said.text or "").casefold() == (recorded.text or "").casefold()
        atoms.append(_atom("gui.key", same, f"{said.text!r} where {recorded.text!r} was recorded"))
    return atoms


def _atom(rule: str, held: bool, message: str, observed: float | None = None, *, severity: str = "CRITICAL") -> Atom:
    return Atom(rule, "pass" if held else "fail", "INFO" if held else severity, observed, message)


def _distance(recorded: Act, said: Act) -> float:
    assert said.x is not None
    assert said.y is not None
    if recorded.x is not None and recorded.y is not None:
        across, down = said.x - recorded.x, said.y - recorded.y
        return math.sqrt(across * across + down * down)
    found = []
    for left, top, right, bottom in recorded.boxes:
        across, down = said.x - (left + right) / 2.0, said.y - (top + bottom) / 2.0
        found.append(math.sqrt(across * across + down * down))
    return min(found)


def _over(said: Act, box: list[float]) -> bool:
    left, top, right, bottom = box
    assert said.x is not None
    assert said.y is not None
    return left - _EDGE <= said.x <= right + _EDGE and top - _EDGE <= said.y <= bottom + _EDGE


def evaluate(episodes: Path, predictions: Path, out: Path, radius: float = 0.05) -> dict[str, Any]:
    """Read both files, judge every step, write every judged step as a line of JSON, and return the numbers."""
    said: dict[tuple[str, int], dict[str, Any]] = {}
    with predictions.open(encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            said[row["episode_id"], row["step"]] = row
    totals: dict[str, float] = dict.fromkeys(
        ("steps", "right", "missing", "unparsed", "pairs", "hits", "boxed", "in_box"), 0
    )
    distances: list[float] = []
    successes = episodes_seen = 0
    progress: list[float] = []
    with episodes.open(encoding="utf-8") as stream, out.open("w", encoding="utf-8") as sink:
        for line in stream:
            episode = json.loads(line)
            judged = []
            for step in episode["steps"]:
                row = said.get((episode["episode_id"], step["step"]))
                found, status = None, "missing"
                if row is not None:
                    found = parse(row["raw"]) if "raw" in row else action(row["action"])
                    status = "answered" if found is not None else "unparsed"
                judged.append(judge(episode["episode_id"], step["step"], action(step["action"]), found, status, radius))
            _count(judged, totals, distances)
            sink.writelines(json.dumps(_plain(item)) + "\n" for item in judged)
            episodes_seen += 1
            successes += all(item.verdict == "correct" for item in judged)
            progress.append(sum(_passed(item, "gui.action_type") for item in judged) / len(judged))
    steps = int(totals["steps"])
    return {
        "num_episodes": episodes_seen,
        "num_steps": steps,
        "action_type_accuracy": totals["right"] / steps,
        "coord_error_count": int(totals["pairs"]),
        "mean_coord_error": math.fsum(distances) / len(distances) if distances else None,
        "click_hit_rate": totals["hits"] / totals["pairs"] if totals["pairs"] else None,
        "bbox_hit_rate": totals["in_box"] / totals["boxed"] if totals["boxed"] else None,
        "episode_success_rate": successes / episodes_seen,
        "mean_episode_progress": math.fsum(progress) / len(progress),
        "missing_steps": int(totals["missing"]),
        "unparsed_steps": int(totals["unparsed"]),
    }


def _plain(item: Judged) -> dict[str, Any]:
    """A judged step as plain data, without the copies that dataclasses.asdict makes."""
    said = None if item.said is None else vars(item.said)
    return {**vars(item), "recorded": vars(item.recorded), "said": said, "atoms": [vars(atom) for atom in item.atoms]}


def _passed(item: Judged, rule: str) -> bool:
    return any(atom.rule == rule and atom.outcome == "pass" for atom in item.atoms)


def _count(judged: list[Judged], totals: dict[str, float], distances: list[float]) -> None:
    for item in judged:
        totals["steps"] += 1
        totals["right"] += _passed(item, "gui.action_type")
        totals["missing"] += item.status == "missing"
        totals["unparsed"] += item.status == "unparsed"
        if item.recorded.type != "click":
            continue
        for atom in item.atoms:
            if atom.rule == "gui.click_hit" and atom.observed is not None:
                totals["pairs"] += 1
                totals["hits"] += atom.outcome == "pass"
                distances.append(atom.observed)
        if item.recorded.boxes:
            totals["boxed"] += 1
            totals["in_box"] += _passed(item, "gui.bbox_hit")
