"""Damaged records and logs: each is judged or named in an error, and none ends in a traceback."""

import hashlib
import json
import random

import pytest
from tests.engine.test_fuzz import damaged
from tests.score import formats as f

import adjudge
from adjudge.errors import AdjudgeError, InputError, VerificationFailed
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
    "inspect": lambda folder: f.document(
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


def changed(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("number", [10**23, 2**63, 2**31, -1])
def test_a_trial_of_helm_that_no_column_holds_is_named(tmp_path, judge, number):
    path = f.helm(tmp_path, ATTEMPTS)
    changed(path, lambda instances: instances[1].update(train_trial_index=number))
    with pytest.raises(InputError, match=r"train_trial_index"):
        judge(path)


@pytest.mark.parametrize("key", ["epoch", "input_tokens_cache_read"])
def test_a_number_of_inspect_that_no_column_holds_is_named(tmp_path, judge, key):
    path = WRITERS["inspect"](tmp_path)

    def change(log):
        sample = log["samples"][0]
        sample.update(epoch=2**31) if key == "epoch" else sample.update(model_usage={"m": {key: 2**63}})

    changed(path, change)
    with pytest.raises(InputError, match=key):
        judge(path)


def test_a_log_that_plans_more_attempts_than_anybody_made_is_refused(tmp_path, judge):
    inspect = WRITERS["inspect"](tmp_path)
    changed(inspect, lambda log: log["eval"]["config"].update(epochs=10**12))
    lm_eval = f.lm_eval(tmp_path / "lm", ATTEMPTS, planned=10**12)
    for path in (inspect, lm_eval):
        with pytest.raises(InputError, match=r"plans [0-9,]+ attempts and has \d: more than 1,000,000 would be absent"):
            judge(path)


def test_a_threshold_that_the_configuration_does_not_give_is_found(tmp_path, judge, write):
    """A run that passes from a half on, and says in its manifest that it passes from 1 on."""
    log = write([{"id": str(i), "model": "m", "score": "CIP"[i % 3]} for i in range(9)])
    forged, honest = judge(log, pass_at=0.5).path, judge(log).path
    for name in ("metrics.json", "manifest.json"):
        stored, digests = (json.loads((run / name).read_bytes())["digests"] for run in (forged, honest))
        text = (forged / name).read_text(encoding="utf-8").replace(stored["config"], digests["config"])
        (forged / name).write_text(text.replace('"pass_at": 0.5', '"pass_at": null'), encoding="utf-8")
    manifest = json.loads((forged / "manifest.json").read_bytes())
    for entry in manifest["files"]:
        content = (forged / entry["path"]).read_bytes()
        entry |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (forged / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(VerificationFailed, match="threshold is not what"):
        adjudge.verify(forged)
