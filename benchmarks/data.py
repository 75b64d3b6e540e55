"""Seeded input files of any size for every protocol, unlike those of `adjudge PROTOCOL generate`.

`python -m benchmarks.data flight --samples 100000 --digits all --out DIR` writes the files and prints their paths. Ids,
texts, escapes, blanks, the order of keys and what optional keys are there differ from record to record (`variety.py`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import flight_data
from benchmarks.variety import Variety

STEPS_AN_EPISODE, FLIGHTS, ATTACKS, CLUSTERS = 20, 20, 6, 100
LABELS = ("VALID", "NOT_IN_CONTEXT", "REJECT", "ABSTAIN")
WORDS = {"fake": ("fake", "AI-generated", " Synthetic", "manipulated"), "real": ("real", "Authentic", "genuine ")}


def number(value: float, digits: str) -> float:
    """With four decimals, or as it is."""
    return round(value, 4) if digits == "four" else value


def triage(rows: int, folder: Path, seed: int, digits: str) -> list[Path]:
    """results.jsonl: one model without tools, one trial, ids in no order, about 1 KB a row."""
    variety, rng, path = Variety(seed), np.random.default_rng(seed), folder / "results.jsonl"
    hashes = {name: f"{place:064x}" for place, name in enumerate(("vision_system", "agent_user"), 7)}
    with path.open("wb") as stream:
        for sample in rng.permutation(rows).tolist():
            chance = variety.random.random
            label = "fake" if chance() < 0.5 else "real"
            seen = variety.random.gauss(1.2 if label == "fake" else -1.2, 1.3)
            word = "uncertain" if abs(seen) < 0.4 else variety.random.choice(WORDS["fake" if seen > 0 else "real"])
            seconds = variety.random.gammavariate(4.0, 0.9)
            prediction: dict[str, Any] = {"prediction": word, "analysis_verdict": word.strip()}
            if chance() < 0.95:
                prediction["confidence"] = number(1.0 / (1.0 + np.exp(-abs(seen))).item(), digits)
            failed = chance() < 0.002
            record = variety.record(
                {
                    "id": variety.identifier(sample),
                    "model": "vision-1",
                    "label": label,
                    "timings": {"vision_llm_seconds": seconds, "total_seconds": seconds + 5e-5},
                    "rationale": f"{variety.text()} {variety.text()} {variety.text()}",
                    **({"error": "request timed out", "error_type": "TimeoutError"} if failed else prediction),
                },
                {
                    "use_tools": False,
                    "trial": 0,
                    "image": f"{sample}.jpeg",
                    "meta": {"source": variety.text()[:20], "size": sample % 7},
                    "run_config": {"temperature": 0.0, "max_iterations": 15},
                    "prompt_hashes": hashes,
                    "tool_details": [],
                    "cache": {"hit": chance() < 0.25},
                    "latency_seconds": seconds + 0.012,
                },
                0.85,
            )
            stream.write(variety.line(record))
    return [path]


def consistency(pairs: int, folder: Path, seed: int) -> list[Path]:
    """pairs.jsonl: 5 % disagreements, now and then a red flag or a citation that was not retrieved."""
    variety, path = Variety(seed), folder / "pairs.jsonl"
    chance = variety.random.random
    with path.open("wb") as stream:
        for place in range(pairs):
            scholar = variety.random.choices(LABELS, (79, 9, 11, 1))[0]
            auditor = variety.random.choice(LABELS) if chance() < 0.07 else scholar
            retrieved = [
                f"doc {variety.random.randrange(10**6)}§é"[: 8 + k] for k in range(variety.random.randint(2, 5))
            ]
            refused = scholar == "NOT_IN_CONTEXT"
            cited = [] if refused else retrieved[:2] if chance() < 0.99 else ["elsewhere"]
            claim = "not in context" if refused else variety.text()
            flags = {"provenance_violation": chance() < 0.01, "constraints_mismatch": chance() < 0.01}
            record = variety.record(
                {
                    "qid": variety.identifier(place),
                    "scholar": variety.ordered({"label": scholar, "reason": variety.text()}),
                    "auditor": variety.ordered({"label": auditor, "reason": variety.text()}),
                    "answer_json": variety.ordered(
                        {"claim": claim, "citations": cited, "constraints_echo": ["language:en", "max_words:60"]}
                    ),
                    "retrieved_ids": retrieved,
                },
                {"flags": flags, "question": variety.text()},
            )
            stream.write(variety.line(record))
    return [path]


def gui(steps: int, folder: Path, seed: int, digits: str, *, texts: bool) -> list[Path]:
    """episodes.jsonl and the predictions of an agent that is right now and then, as actions or as texts."""
    variety = Variety(seed)
    paths = [folder / "episodes.jsonl", folder / "predictions.jsonl"]
    with paths[0].open("wb") as episodes, paths[1].open("wb") as predictions:
        for place in range(max(1, steps // STEPS_AN_EPISODE)):
            name = variety.identifier(place)
            recorded = [_recorded(variety, digits) for _ in range(STEPS_AN_EPISODE)]
            rows = [variety.ordered({"step": k, "action": action}) for k, action in enumerate(recorded)]
            optional = {"scenario": ("login", "shop", "réglages")[place % 3], "goal": variety.text(), "platform": "web"}
            episodes.write(variety.line(variety.record({"episode_id": name, "steps": rows}, optional)))
            for k, action in enumerate(recorded):
                predicted = _predicted(variety, action, digits, texts=texts)
                if predicted is not None:
                    record = variety.record({"episode_id": name, "step": k, **predicted}, {"state": {"success": True}})
                    predictions.write(variety.line(record))
    return paths


def _recorded(variety: Variety, digits: str) -> dict[str, Any]:
    kind, x, y = variety.random.random(), variety.random.uniform(0.1, 0.9), variety.random.uniform(0.1, 0.9)
    if kind < 0.6:
        width = variety.random.uniform(0.01, 0.09)
        box = [number(value, digits) for value in (x - width, y - width / 2, x + width, y + width / 2)]
        place: dict[str, Any] = {"type": "click", "x": number(x, digits), "y": number(y, digits)}
        return variety.record(place, {"element": {"id": int(x * 40), "bbox": box}}, 0.9)
    if kind < 0.8:
        return variety.ordered({"type": "type", "text": variety.text()})
    if kind < 0.9:
        return {"type": "scroll", "direction": "down" if x < 0.7 else "up"}
    return {"type": "key", "key": "enter"} if kind < 0.95 else {"type": "done"}


def _predicted(variety: Variety, action: dict[str, Any], digits: str, *, texts: bool) -> dict[str, Any] | None:
    """A prediction for a recorded action; none for one in fifty."""
    luck, shift = variety.random.random(), variety.random.uniform(-0.04, 0.04)
    if luck < 0.02:
        return None
    predicted = {key: value for key, value in action.items() if key != "element"}
    if luck < 0.12:
        predicted = {"type": "wait"}
    elif action["type"] == "click":
        predicted |= {"x": number(action["x"] + shift, digits), "y": number(action["y"] - shift, digits)}
    elif luck < 0.2 and "text" in predicted:
        predicted["text"] += "!"
    if not texts:
        return {"action": predicted}
    if 0.2 < luck < 0.22:
        return {"raw": "Action: I am not sure"}
    arguments = [f"{axis}={predicted[axis]}" for axis in ("x", "y") if axis in predicted]
    arguments += [json.dumps(predicted[key]) for key in ("text", "key", "direction") if key in predicted]
    spoken = f"{predicted['type'].upper()}({', '.join(arguments)})"
    return {"raw": spoken if luck < 0.6 else f"{variety.text()}\nAction: {spoken}"}


def anomaly(rows: int, folder: Path, seed: int) -> list[Path]:
    """scores.parquet of twenty test flights, each clean and under six attacks, and splits.json."""
    variety, rng = Variety(seed), np.random.default_rng(seed)
    samples = max(100, rows // (FLIGHTS * (ATTACKS + 1)))
    tests = [f"flight {variety.identifier(place)}" for place in range(FLIGHTS)]
    words = pa.dictionary(pa.int32(), pa.string())
    kinds = {"flight": words, "attack": words, "t": pa.float64(), "score": pa.float64(), "label": pa.bool_()}
    sequences: list[tuple[str, str | None]] = [("validation", None), ("Prüfung", None)]
    sequences += [(name, f"attack {k}" if k else None) for k in range(ATTACKS + 1) for name in tests]
    paths = [folder / "scores.parquet", folder / "splits.json"]
    with pq.ParquetWriter(paths[0], pa.schema(list(kinds.items())), compression="zstd") as writer:
        for name, attack in sequences:
            label = np.zeros(samples, dtype=bool)
            label[samples // 2 : samples * 3 // 4] = attack is not None
            score = rng.normal(size=samples) + rng.normal(0, 0.3) + 1.5 * label
            values = ([name] * samples, [attack] * samples, np.arange(samples) / 100.0, score, label)
            columns = [pa.array(column, kind) for column, kind in zip(values, kinds.values(), strict=True)]
            writer.write_table(pa.table(columns, schema=writer.schema))
    splits = {"train_flights": ["training"], "val_flights": ["validation", "Prüfung"], "test_flights": tests}
    paths[1].write_text(json.dumps(splits), encoding="utf-8")
    return paths


RULES = """adjudge: 1
name: invoices
fields: {number: text, date: date, vendor: text, currency: text, net: number, tax: number, total: number, paid: boolean}
rules:
  invoice.sum: {observed: net + tax - total, severity: {warning: 0.01, critical: 1.0}}
  invoice.tax: tax between 0 and net
  invoice.number: regexp_full_match(number, 'INV-[0-9]{7}')
  invoice.date: date between date '2026-01-01' and date '2026-12-31'
  plausible.eur: {check: total < 1e6, when: currency = 'EUR'}
"""


def check(rows: int, folder: Path, seed: int, digits: str) -> list[Path]:
    """outputs.jsonl and rules.yaml: answers of 8 fields, some in prose or fences, one in a hundred with a wrong type."""
    variety, path = Variety(seed), folder / "outputs.jsonl"
    chance = variety.random.random
    with path.open("wb") as stream:
        for place in range(rows):
            net = 10.0 + 5000.0 * chance()
            wrong = chance()
            answer = variety.ordered(
                {
                    "number": f"INV-{place:07d}",
                    "date": f"2026-{1 + place % 12:02d}-{1 + place % 28:02d}",
                    "vendor": variety.text()[:24],
                    "currency": variety.random.choice(("EUR", "USD", "CHF")),
                    "net": number(net, digits),
                    "tax": number(0.19 * net, digits) if wrong > 0.01 else f"{0.19 * net:.2f}",
                    "total": number(1.19 * net + (wrong > 0.95), digits),
                    "paid": chance() < 0.5,
                }
            )
            text = variety.line(answer).decode().rstrip()
            if chance() < 0.3:
                text = f"Here it is:\n```json\n{text}\n```"
            required = {"id": variety.identifier(place), "response": text, "model": "reader-1"}
            stream.write(variety.line(variety.record(required, {"prompt": variety.text(), "seconds": chance()})))
    (folder / "rules.yaml").write_text(RULES, encoding="utf-8")
    return [path, folder / "rules.yaml"]


def scores(rows: int, folder: Path, seed: int) -> list[Path]:
    """scores.npy, positive.npy and cluster.npy: scores of 100 clusters of unequal size, each with its own level."""
    rng = np.random.default_rng(seed)
    share = rng.lognormal(0.0, 0.5, CLUSTERS)
    cluster = rng.choice(CLUSTERS, size=rows, p=share / share.sum()).astype(np.int64)
    positive = rng.random(rows) < 0.3
    score = rng.normal(size=rows) + positive + 0.3 * rng.normal(size=CLUSTERS)[cluster]
    columns = {"scores": score, "positive": positive, "cluster": cluster}
    for name, values in columns.items():
        np.save(folder / f"{name}.npy", values)
    return [folder / f"{name}.npy" for name in columns]


def inspect_log(samples: int, folder: Path, seed: int) -> list[Path]:
    """log.eval: one model, one epoch, in Inspect's shape with its transcripts, about 6 KB a sample."""
    from adjudge.protocols.score import generate as score

    spec = score.Spec("acme/large", sample_ids=tuple(range(1, samples + 1)))
    attempts = score.attempts_of(seed, spec.model, samples=samples, epochs=1, skill=1.0)
    return [score.write_eval(folder / "log.eval", score.document(spec, attempts))]


def records(rows: int, folder: Path, seed: int) -> list[Path]:
    """scores.jsonl: generic records of one model, ids in no order, about 340 bytes a row."""
    variety, rng, path = Variety(seed), np.random.default_rng(seed), folder / "scores.jsonl"
    choose, bits = variety.random.choice, variety.random.getrandbits
    with path.open("wb") as stream:
        for sample in rng.permutation(rows).tolist():
            record = {
                "id": f"mmlu-philosophy-{sample:07d}",
                "model": "acme/large-2026-01",
                "task": "mmlu",
                "trial": 1,
                "score": choose("CCI"),
                "answer": choose("ABCD"),
                "target": choose("ABCD"),
                "explanation": "The answer follows from the second sentence of the passage, where the author says so.",
                "input_hash": f"{bits(128):032x}",
                "meta": {"subject": "philosophy", "difficulty": 3},
            }
            stream.write(msgspec.json.encode(record) + b"\n")
    return [path]


KINDS: dict[str, Callable[[int, Path, int, str, str], list[Path]]] = {
    "flight": lambda n, out, seed, digits, task: [*flight_data.write(task, n, out, seed=seed, digits=digits)],
    "triage": lambda n, out, seed, digits, _: triage(n, out, seed, digits),
    "consistency": lambda n, out, seed, *_: consistency(n, out, seed),
    "gui-actions": lambda n, out, seed, digits, _: gui(n, out, seed, digits, texts=False),
    "gui-texts": lambda n, out, seed, digits, _: gui(n, out, seed, digits, texts=True),
    "check": lambda n, out, seed, digits, _: check(n, out, seed, digits),
    "anomaly": lambda n, out, seed, *_: anomaly(n, out, seed),
    "scores": lambda n, out, seed, *_: scores(n, out, seed),
    "inspect": lambda n, out, seed, *_: inspect_log(n, out, seed),
    "records": lambda n, out, seed, *_: records(n, out, seed),
}


def write(kind: str, size: int, folder: Path, *, seed: int = 0, digits: str = "four", task: str = "S1") -> list[Path]:
    """Write the files of one kind into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return KINDS[kind](size, folder, seed, digits, task)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.data", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--samples", type=int, default=1000, help="samples, rows, pairs, steps or scores [1000]")
    parser.add_argument("--digits", choices=("four", "all"), default="four", help="decimals of the numbers [four]")
    parser.add_argument("--task", choices=("S1", "M3"), default="S1", help="of flight [S1]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    chosen = parser.parse_args()
    options = {"seed": chosen.seed, "digits": chosen.digits, "task": chosen.task}
    print(*write(chosen.kind, chosen.samples, chosen.out, **options), sep="\n")


if __name__ == "__main__":
    main()
