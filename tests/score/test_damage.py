"""Damaged records and logs: each is judged or named in an error, and none ends in a traceback."""

import json
import random

import pytest
from tests.engine.test_fuzz import damaged
from tests.score import formats as f

from adjudge.errors import AdjudgeError
from adjudge.protocols.score import generate as g

ATTEMPTS = [(sample, 1, float(sample % 2), "scored") for sample in range(6)]
RECORD = {
    "id": "q1",
    "model": "m",
    "task": "t",
    "trial": 1,
    "score": 1,
    "scores": {"a": 1, "b": 0.5},
    "status": "scored",
    "error": None,
    "answer": "A",
    "target": "A",
    "confidence": 0.5,
    "cluster": "c",
    "meta": {"k": 1},
}
WRITERS = {
    "deepeval": lambda folder: f.deepeval(folder / "a.json", ATTEMPTS),
    "every_eval_ever": lambda folder: f.every_eval_ever(folder / "a_samples.jsonl", ATTEMPTS),
    "helm": lambda folder: f.helm(folder, ATTEMPTS),
    "inspect": lambda folder: g.write_json(
        folder / "a.json", g.document(g.Spec("m", sample_ids=(1, 2)), [g.Attempt(1, 1, "C"), g.Attempt(2, 1, "I")])
    ),
    "lm_eval": lambda folder: f.lm_eval(folder, ATTEMPTS),
    "openai_evals": lambda folder: f.openai_evals(folder / "a.jsonl", ATTEMPTS),
    "promptfoo": lambda folder: f.promptfoo(folder / "a.json", ATTEMPTS),
}


def hurt(rng, path):
    """Damage one line of a file of lines, or a document as a whole."""
    lines = path.read_bytes().splitlines()
    if path.suffix == ".jsonl":
        place = rng.randrange(len(lines))
        lines[place] = damaged(rng, json.loads(lines[place]))
        path.write_bytes(b"\n".join(lines) + b"\n")
        return
    document = json.loads(path.read_bytes())
    if isinstance(document, list):
        place = rng.randrange(len(document))
        text = damaged(rng, document[place]).decode("utf-8", "replace")
        path.write_text(
            "[" + ",".join([*map(json.dumps, document[:place]), text]) + "]", encoding="utf-8", errors="replace"
        )
    else:
        path.write_bytes(damaged(rng, document))


@pytest.mark.parametrize("name", WRITERS)
def test_damaged_logs(tmp_path, judge, name):
    rng = random.Random(name)  # noqa: S311 -- reproducible damage
    for round_ in range(6):
        folder = tmp_path / str(round_)
        folder.mkdir()
        path = WRITERS[name](folder)
        hurt(rng, path)
        try:
            judge(path)
        except AdjudgeError:
            continue


def test_damaged_records(tmp_path, judge):
    rng = random.Random(5)  # noqa: S311 -- reproducible damage
    for round_ in range(16):
        rows = [json.dumps(RECORD | {"id": f"q{i}"}).encode() for i in range(3)]
        rows.insert(rng.randrange(4), damaged(rng, json.loads(json.dumps(RECORD))))
        path = tmp_path / f"{round_}.jsonl"
        path.write_bytes(b"\n".join(rows) + b"\n")
        try:
            judge(path)
        except AdjudgeError:
            continue
