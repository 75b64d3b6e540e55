"""Small inputs of every protocol and format, each with the command that judges them: what the fuzzing damages.

`python tests/fuzzing/corpus.py FOLDER` writes them and prints name and command of each, a line a case.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from adjudge.protocols.anomaly.example import example as anomaly_example
from adjudge.protocols.base import protocol
from adjudge.protocols.check.example import generate as check_files
from adjudge.protocols.consistency.example import generate as consistency_files
from adjudge.protocols.flight.generate import generate as flight_files
from adjudge.protocols.score import generate as inspect_log
from score import formats as logs

Words = list[str]
Writer = Callable[[Path], Words]
ATTEMPTS = [(sample, 1, float(sample % 2), "scored") for sample in range(6)]
RECORDS = [
    {
        "id": f"q{place % 4}",
        "model": "ab"[place // 4],
        "task": "t",
        "trial": 1,
        "score": place % 2,
        "scores": {"x": place % 2, "y": 0.5},
        "status": "scored",
        "answer": "A",
        "target": "A",
        "confidence": 0.25 + place / 16,
        "cluster": f"c{place % 2}",
        "meta": {"k": place % 3},
    }
    for place in range(8)
]


def corpus(folder: Path) -> dict[str, Words]:
    """Write every case into a folder of its own; the command of each, whose files are relative to its folder."""
    commands = {}
    for name, write in sorted(CASES.items()):
        (folder / name).mkdir(parents=True)
        commands[name] = [word.replace(f"{folder / name}/", "") for word in write(folder / name)]
        for path in (folder / name).rglob("*.jsonl"):
            if path.stat().st_size > 1 << 15:
                path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:8]))
        _remove_unnamed(folder / name, commands[name])
    return commands


def _remove_unnamed(folder: Path, words: Words) -> None:
    """A file that no word names is read by nobody, unless a whole folder is read, or a file of settings names it."""
    if "." in words or "--config" in words:
        return
    for path in sorted(folder.rglob("*")):
        if path.is_file() and str(path.relative_to(folder)) not in words:
            path.unlink()


def _lines(path: str, count: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()[:count]]


def _write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def _flight(task: str) -> Writer:
    def write(folder: Path) -> Words:
        files = flight_files(folder, seed=1, task=task, flights=2, seconds=8)
        outputs = [word for path in list(files.outputs.values())[:2] for word in ("--outputs", str(path))]
        return ["flight", "--task", task, *outputs, "--reference", str(files.reference)]

    return write


def _flight_settings(folder: Path) -> Words:
    protocol("flight").example(folder, 1)
    names = ("--outputs", "outputs_owl-c.jsonl", "--reference", "reference.jsonl", "--library", "library.yaml")
    return ["flight", "--task", "S1", *names, "--confidence", "confidence_S1.json"]


def _configured(folder: Path) -> Words:
    files = flight_files(folder, seed=2, task="S1", flights=1, seconds=4)
    for path in [*list(files.outputs.values())[1:], *folder.glob("tasks*")]:
        path.unlink()
    first = next(iter(files.outputs.values())).name
    text = f"task: S1\noutputs: [{first}]\nreference: [{files.reference.name}]\ngates: ['eligibility_rate >= 0.5']\nseed: 3\n"
    (folder / "settings.yaml").write_text(text)
    return ["flight", "--config", "settings.yaml"]


def _gui(mode: str) -> Writer:
    def write(folder: Path) -> Words:
        protocol("gui").example(folder, 1)
        answers = "predictions_off_target.jsonl" if mode == "coord" else "predictions_careful_som.jsonl"
        _write(folder / "episodes.jsonl", _lines(str(folder / "episodes.jsonl"), 3))
        kept = [row for row in _lines(str(folder / answers), 99) if row["episode_id"] <= "login-02"]
        _write(folder / answers, kept)
        outcomes = "outcomes_off_target.jsonl"
        _write(folder / outcomes, _lines(str(folder / outcomes), 3))
        files = ("--episodes", "episodes.jsonl", "--predictions", answers, "--outcomes", outcomes)
        return ["gui", *files, "--space", "normalized", "--bbox", "xyxy", "--dsl-mode", mode]

    return write


def _grounding(folder: Path) -> Words:
    protocol("gui").example(folder, 1)
    _write(folder / "grounding.jsonl", _lines(str(folder / "grounding.jsonl"), 12))
    return ["gui", "grounding", "--records", "grounding.jsonl", "--space", "normalized", "--bbox", "xyxy"]


def _triage(folder: Path) -> Words:
    files = protocol("triage").example(folder, 1)
    assert files is not None
    results = [row for row in _lines(files["results"][0][0], 4000) if row["id"] < "img-0006" and row["trial"] < 2]
    manifest = [row for row in _lines(files["manifest"][0], 4000) if row["id"] < "img-0006"]
    calibration = [row for row in _lines(files["calibration"][0], 4000) if row["model"] == results[0]["model"]][:20]
    more = ("--manifest", _write(folder / "manifest.jsonl", manifest))
    more += ("--calibration", _write(folder / "calibration.jsonl", calibration), "--target-risk", "0.2")
    return ["triage", "--results", _write(folder / "results.jsonl", results), *more, "--slice", "meta.source"]


def _triage_plain(folder: Path) -> Words:
    rows = [
        {"id": f"i{place}", "label": ("real", "fake")[place % 2], "prediction": "fake", "confidence": place / 10}
        for place in range(9)
    ]
    return ["triage", "--results", _write(folder / "results.jsonl", rows)]


def _pairs(folder: Path) -> Words:
    pairs = consistency_files(folder, seed=1, items=8)
    return ["consistency", "--pairs", str(pairs), "--policy", "refusal-aware", "--on-bad-row", "skip"]


def _policy(folder: Path) -> Words:
    from click.testing import CliRunner

    from adjudge.cli.main import main

    pairs = consistency_files(folder, seed=2, items=5)
    (folder / "policy.yaml").write_text(CliRunner().invoke(main, ["consistency", "policy", "show", "strict"]).output)
    return ["consistency", "--pairs", str(pairs), "--policy", "policy.yaml"]


def _roles(folder: Path) -> Words:
    pairs = _lines(str(consistency_files(folder, seed=3, items=6)), 6)
    words: Words = ["consistency"]
    for role in ("scholar", "auditor"):
        rows = [{"qid": pair["qid"], **pair[role]} for pair in pairs]
        words += [f"--{role}", _write(folder / f"{role}.jsonl", rows)]
    rows = [{key: value for key, value in pair.items() if key not in {"scholar", "auditor"}} for pair in pairs]
    return [*words, "--answers", _write(folder / "answers.jsonl", rows)]


def _raters(folder: Path) -> Words:
    rows = [{"item": f"i{k % 5}", "rater": f"r{k // 5}", "label": "AB"[k * k % 3 % 2]} for k in range(15)]
    more = ("--labels", "A,B", "--reference", "r0")
    return ["consistency", "--raters", _write(folder / "ratings.jsonl", rows), *more]


def _stability(folder: Path) -> Words:
    files = protocol("stability").example(folder, 1)
    assert files is not None
    gold = _lines(files["gold"][0], 4)
    runs = [row for row in _lines(files["runs"][0], 400) if row["qid"] <= gold[-1]["qid"]]
    files = {"gold": _write(folder / "gold.jsonl", gold), "runs": _write(folder / "runs.jsonl", runs)}
    return ["consistency", "stability", "--gold", files["gold"], "--runs", files["runs"]]


def _scores(kind: str) -> Writer:
    def write(folder: Path) -> Words:
        random = np.random.default_rng(1)
        flights = [f"f{place}" for place in range(6) for _ in range(12)]
        columns = {
            "flight": flights,
            "t": np.tile(np.arange(12) / 10, 6),
            "score": random.random(72).round(3),
            "label": np.tile([0] * 6 + [1] * 6, 6) * np.repeat([0, 0, 0, 0, 1, 1], 12),
            "attack": np.where(np.repeat([0, 0, 0, 0, 1, 1], 12) == 1, "bias", ""),
        }
        table, path = pa.table(columns), folder / f"scores.{kind}"
        pq.write_table(table, path) if kind == "parquet" else pyarrow.csv.write_csv(table, path)
        splits = {"train_flights": ["f0", "f1"], "val_flights": ["f2", "f3"], "test_flights": ["f4", "f5"]}
        (folder / "splits.json").write_text(json.dumps(splits))
        return ["anomaly", "--scores", str(path), "--splits", "splits.json", "--resamples", "100"]

    return write


def _detector(folder: Path) -> Words:
    anomaly_example(folder, 1)
    table = pq.read_table(folder / "flights.parquet")
    step = np.concatenate(
        [
            np.flatnonzero(np.array(table.column("flight").to_pylist()) == name)[:300:10]
            for name in sorted(set(table.column("flight").to_pylist()))
        ]
    )
    pq.write_table(table.take(pa.array(step)), folder / "flights.parquet")
    files = ("--data", "flights.parquet", "--splits", "splits.json", "--catalog", "catalog.json")
    return ["anomaly", *files, "--detector", "residual", "--resamples", "100"]


def _inspect(kind: str) -> Writer:
    def write(folder: Path) -> Words:
        spec = inspect_log.Spec("m", sample_ids=(1, 2, 3, 4))
        values = ["C", "I", "N", None]
        attempts = [inspect_log.Attempt(k + 1, 1, values[k], None if values[k] else "timeout") for k in range(4)]
        writer = inspect_log.write_eval if kind == "eval" else logs.document
        return ["score", str(writer(folder / f"log.{kind}", inspect_log.document(spec, attempts)))]

    return write


def _log(writer: Callable[..., Any], name: str | None) -> Writer:
    def write(folder: Path) -> Words:
        writer(folder if name is None else folder / name, ATTEMPTS)
        return ["score", "."]

    return write


def _records(kind: str) -> Writer:
    def write(folder: Path) -> Words:
        path = folder / f"records.{kind}"
        flat = [{key: value for key, value in row.items() if not isinstance(value, dict)} for row in RECORDS]
        if kind == "jsonl":
            _write(path, RECORDS)
        elif kind == "json":
            path.write_text(json.dumps(RECORDS, indent=1))
        elif kind == "parquet":
            pq.write_table(pa.Table.from_pylist(RECORDS), path)
        else:
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(flat[0]))
                writer.writeheader()
                writer.writerows(flat)
        return ["score", str(path), *(("--scorer", "x", "--slice", "meta.k") if kind != "csv" else ())]

    return write


def _wide(folder: Path) -> Words:
    (folder / "wide.csv").write_text("id,a,b,ref\nq1,1,0,x\nq2,0.5,1,y\nq3,,1,z\nq4,0,0,w\n")
    return ["score", "wide.csv", "--wide", "a,b"]


def _check(kind: str) -> Writer:
    def write(folder: Path) -> Words:
        files = check_files(folder, seed=1, kind=kind)
        reference = _lines(files["reference"][0], 6)
        ids = {row["id"] for row in reference}
        rows = [row for row in _lines(files["outputs"][0], 400) if row["id"] in ids]
        names = ("--outputs", _write(folder / "outputs.jsonl", rows))
        names += ("--reference", _write(folder / "reference.jsonl", reference))
        return ["check", *names, "--rules", files["rule_file"]]

    return write


def _schema(folder: Path) -> Words:
    (folder / "rules.yaml").write_text(
        "adjudge: 1\nfields: {total: number, currency: text}\nrules: {a.large: total < 100}\n"
        "schema:\n  required: [total, currency]\n  properties:\n"
        '    total: {type: number, minimum: 0}\n    currency: {enum: [EUR, USD]}\n    lines: {items: {$ref: "#/$defs/line"}}\n'
        "  $defs:\n    line: {type: object, required: [sku], properties: {qty: {type: integer, exclusiveMinimum: 0}}}\n"
    )
    answers = [{"total": k * 30 - 20, "currency": "EUR", "lines": [{"sku": "A", "qty": k}]} for k in range(5)]
    rows = [{"id": f"a{k}", "model": "m", "response": json.dumps(answer)} for k, answer in enumerate(answers)]
    return ["check", "--outputs", _write(folder / "outputs.jsonl", rows), "--rules", "rules.yaml"]


CASES: dict[str, Writer] = {
    "anomaly-csv": _scores("csv"),
    "anomaly-detector": _detector,
    "anomaly-parquet": _scores("parquet"),
    "check-calls": _check("tool_calls"),
    "check-invoices": _check("invoices"),
    "check-schema": _schema,
    "consistency-pairs": _pairs,
    "consistency-policy": _policy,
    "consistency-raters": _raters,
    "consistency-roles": _roles,
    "flight-M3": _flight("M3"),
    "flight-S1": _flight("S1"),
    "flight-config": _configured,
    "flight-settings": _flight_settings,
    "gui-coord": _gui("coord"),
    "gui-grounding": _grounding,
    "gui-som": _gui("som"),
    "score-csv": _records("csv"),
    "score-deepeval": _log(logs.deepeval, "a.json"),
    "score-eval": _inspect("eval"),
    "score-every": _log(logs.every_eval_ever, "a_samples.jsonl"),
    "score-helm": _log(logs.helm, None),
    "score-inspect": _inspect("json"),
    "score-json": _records("json"),
    "score-jsonl": _records("jsonl"),
    "score-lm": _log(logs.lm_eval, None),
    "score-openai": _log(logs.openai_evals, "a.jsonl"),
    "score-parquet": _records("parquet"),
    "score-promptfoo": _log(logs.promptfoo, "a.json"),
    "score-wide": _wide,
    "stability": _stability,
    "triage": _triage,
    "triage-plain": _triage_plain,
}
"""By name: writes the files of a case and returns its command."""


if __name__ == "__main__":
    for case in corpus(Path(sys.argv[1])).items():
        print(json.dumps(case))
