"""The jobs of the speed table. Ours is the installed `adjudge`; a yardstick is a Python process, its start included too."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.measure import ADJUDGE, Figures, Growth, Job, Workers, Yardstick
from benchmarks.table import Target

_EVALUATION = ("--out", "{run}", "--json", "--no-report")
_FILES = ("--outputs", "{data}/outputs.jsonl", "--reference", "{data}/reference.jsonl")
_S1 = (ADJUDGE, "flight", "--task", "S1", *_FILES, *_EVALUATION)
_M3 = (ADJUDGE, "flight", "--task", "M3", *_FILES, *_EVALUATION)
_TRIAGE = (ADJUDGE, "triage", "--results", "{data}/results.jsonl", *_EVALUATION)
_PAIRS = (ADJUDGE, "consistency", "--pairs", "{data}/pairs.jsonl", *_EVALUATION)
_STEPS = ("--episodes", "{data}/episodes.jsonl", "--predictions", "{data}/predictions.jsonl")
_GUI = (ADJUDGE, "gui", *_STEPS, "--space", "normalized", "--bbox", "xyxy", *_EVALUATION)
_SCORES = (ADJUDGE, "anomaly", "--scores", "{data}/scores.parquet", "--splits", "{data}/splits.json", *_EVALUATION)
_LOG = (ADJUDGE, "score", "{data}/log.eval", *_EVALUATION)
_RECORDS = (ADJUDGE, "score", "{data}/scores.jsonl", *_EVALUATION)
_CHECK = (ADJUDGE, "check", "--outputs", "{data}/outputs.jsonl", "--rules", "{data}/rules.yaml", *_EVALUATION)
_COUNTS = "select rule, severity, count(*) as n from evidence group by all"
_BYTES, _AT_ONCE = Target("bytes_an_atom", most=3.5), Target("cpu", most=0.6)


def _program(name: str, *files: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "benchmarks.yardsticks", name, *(f"{{data}}/{file}" for file in files))


def _flight(metrics: Any) -> Figures:
    (model,) = set(metrics["buckets"]) - {"all"}
    scores = {name.removeprefix(f"{model}/"): value for name, value in metrics["metrics"].items()}
    return {**metrics["buckets"]["all"], **scores}


def _triage(metrics: Any) -> Figures:
    figures = {}
    for name, block in metrics["configurations"].items():
        by_cache = block["latency"]["by_cache"]
        latency = {f"{state}/{stage}": each for state, stages in by_cache.items() for stage, each in stages.items()}
        more = {"carried": block["provenance"]["carried"], "possibly_cached": block["latency"]["possibly_cached"]}
        for trial, values in block["per_trial"].items():
            figures[f"{name}|{trial}"] = values | more | {"latency": latency}
    return figures


def _metrics(metrics: Any) -> Figures:
    return dict(metrics["metrics"])


def _counts(rows: Any) -> Figures:
    return {f"{row['rule']} {row['severity']}": row["n"] for row in rows}


_PARSE = Yardstick(
    "json.loads of the same lines and answers", _program("json_loads", "outputs.jsonl", "reference.jsonl")
)
_PARSE_HELD = Yardstick(_PARSE.label, _PARSE.command, least=1.0)
_PARSE_ANSWERS = Yardstick(_PARSE.label, _program("json_loads", "outputs.jsonl"), least=0.667)
_STRUCTS = Yardstick(
    "a msgspec Struct per atom", _program("struct_per_atom", "outputs.jsonl", "reference.jsonl"), _flight, 10.0
)
_SCORER = Yardstick("a scorer with the standard library", _program("triage", "results.jsonl"), _triage, 1.6)
_LOADING = Yardstick("a scorer that loads all rows", _program("consistency", "pairs.jsonl"), dict, 2.8)
_OBJECTS = Yardstick(
    "an object per step and atom", _program("gui", "episodes.jsonl", "predictions.jsonl"), _metrics, 2.3
)
_SKLEARN = Yardstick(
    "scikit-learn's AUROC and AP, without intervals", _program("anomaly", "scores.parquet", "splits.json"), _metrics
)
_MEMBERS = Yardstick("zipfile and json.loads of every sample", _program("inspect_samples", "log.eval"), dict, 2.0)
_LINES = Yardstick("json.loads of the same lines", _program("json_lines", "scores.jsonl"), dict, 1.0)
_ARRAYS = ("scores.npy", "positive.npy", "cluster.npy")
_LOOP = Yardstick("scikit-learn, 20 of the 2,000 resamples", _program("auroc_loop", *_ARRAYS), dict)
_ARROW = Yardstick("PyArrow, row group by row group", (*_program("counts"), "{run}"), _counts)
_IMPORTS = Yardstick("Python that imports NumPy and PyArrow", _program("imports"))
_CLICK = Yardstick("Python that imports click", (sys.executable, "-c", "import click"))

_S1_FOUR, _S1_ALL = ("flight",), ("flight", "--digits", "all")
_AUROC = _program("auroc_ours", *_ARRAYS)
_QUERY = (ADJUDGE, "query", "{run}", _COUNTS, "--format", "json")
_EXPLAIN = (ADJUDGE, "explain", "{run}", "{sample}")
_FLAT = (Target("peak_mb", most=1000.0), Target("memory_growth", most=1.5), _BYTES)
_START = (Target("cpu", most=0.3),)


def _large(
    name: str, sizes: tuple[int, int], unit: str, files: tuple[str, ...], ours: tuple[str, ...], *theirs: Yardstick
) -> Job:
    """A whole evaluation without report; its group is the first word of its name."""
    return Job(name, name.replace(",", "").split()[0], unit, *sizes, files, ours, theirs, (_BYTES,))


def _small(name: str, files: tuple[str, ...], ours: tuple[str, ...], *targets: Target) -> Job:
    return Job(f"{name}, small", "small", "rows", 500, 500, files, ours, (_IMPORTS,), targets)


JOBS: tuple[Job | Growth | Workers, ...] = (
    _large("flight S1, four decimals", (100_000, 5_000), "samples", _S1_FOUR, _S1, _PARSE_HELD, _STRUCTS),
    _large("flight S1, all digits", (100_000, 5_000), "samples", _S1_ALL, _S1, _PARSE_HELD, _STRUCTS),
    _large("flight M3", (30_000, 2_000), "samples", ("flight", "--task", "M3"), _M3, _PARSE),
    _large("triage", (1_000_000, 10_000), "rows", ("triage",), _TRIAGE, _SCORER),
    _large("consistency", (1_000_000, 10_000), "pairs", ("consistency",), _PAIRS, _LOADING),
    _large("gui, actions", (1_000_000, 10_000), "steps", ("gui-actions",), _GUI, _OBJECTS),
    _large("gui, texts", (1_000_000, 10_000), "steps", ("gui-texts",), _GUI, _OBJECTS),
    _large("check", (200_000, 10_000), "answers", ("check",), _CHECK, _PARSE_ANSWERS),
    _large("anomaly", (5_000_000, 14_000), "scores", ("anomaly",), _SCORES, _SKLEARN),
    _large("score, Inspect log", (100_000, 2_000), "samples", ("inspect",), _LOG, _MEMBERS),
    _large("score, records", (1_000_000, 10_000), "rows", ("records",), _RECORDS, _LINES),
    Job("AUROC, cluster bootstrap", "bootstrap", "scores", 1_000_000, 50_000, ("scores",), _AUROC, (_LOOP,)),
    Job("counts by rule", "queries", "samples", 1_000_000, 5_000, _S1_FOUR, _QUERY, (_ARROW,), prepare=_S1),
    Job("one sample", "queries", "samples", 1_000_000, 5_000, _S1_FOUR, _EXPLAIN, (_IMPORTS,), prepare=_S1),
    _small("flight S1", _S1_FOUR, _S1, _AT_ONCE),
    _small("triage", ("triage",), _TRIAGE, _AT_ONCE),
    _small("triage with report", ("triage",), _TRIAGE[:-1]),
    _small("consistency", ("consistency",), _PAIRS, _AT_ONCE),
    _small("gui, texts", ("gui-texts",), _GUI, _AT_ONCE),
    Job("adjudge --help", "start", "start", 1, 1, (), (ADJUDGE, "--help"), (_CLICK,), _START),
    Growth("growth, flight S1", "growth", "samples", _S1_FOUR, _S1, targets=_FLAT),
    Growth("growth, consistency", "growth", "pairs", ("consistency",), _PAIRS),
    Workers("second worker, flight S1", "workers", "samples", _S1_FOUR, _S1),
    Workers("second worker, consistency", "workers", "pairs", ("consistency",), _PAIRS),
)
