"""A million pairs: adjudge against standard-library scorers that do less.

The first scorer loads all rows before it scores, as the script people copy does, the second streams; both arbitrate only
disagreements, check no hygiene and leave nothing that can be verified. Agreement figures must be equal to the last bit
of their own formulas. Each runs in a process of its own; CPU seconds are user plus system, and memory is the peak. All
run in turn, `--repeat` times; the least CPU of each is shown, and the ratio is the middle one of the turns. The bound on CPU is on the evaluation (`--no-report`);
what report.html costs on top is shown in a row of its own. Exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

LABELS = ("VALID", "NOT_IN_CONTEXT", "REJECT", "ABSTAIN")
_WORDS = [
    "the",
    "answer",
    "cites",
    "a",
    "passage",
    "that",
    "states",
    "limit",
    "of",
    "policy",
    "in",
    "section",
    "and",
    "retrieved",
    "source",
    "supports",
    "each",
    "clause",
    "without",
    "adding",
    "facts",
    "beyond",
    "context",
    "given",
    "by",
    "user",
    "question",
    "about",
    "returns",
    "shipping",
    "warranty",
    "service",
    "plan",
]
MOST_MEMORY, LEAST_RATIO, EQUAL = 400, 5.0, 1e-12
_PROGRAM = "from adjudge.cli.main import run; run()"


def write_pairs(path: Path, pairs: int, seed: int) -> None:
    """Pairs of about 490 bytes, 5 % disagreements, one in fifty with a red flag."""
    rng = random.Random(seed)  # noqa: S311 -- benchmark data
    texts = [" ".join(rng.choices(_WORDS, k=8)) for _ in range(20_000)]
    with path.open("w", encoding="utf-8") as stream:
        for number in range(pairs):
            scholar = rng.choices(LABELS, (79, 9, 11, 1))[0]
            other = rng.random() < 0.05
            auditor = rng.choice([label for label in LABELS if label != scholar]) if other else scholar
            retrieved = [f"doc-{rng.randrange(100_000):05d}" for _ in range(4)]
            refused = scholar == "NOT_IN_CONTEXT"
            row = {
                "qid": f"q{number:07d}",
                "scholar": {"label": scholar, "reason": rng.choice(texts)},
                "auditor": {"label": auditor, "reason": rng.choice(texts)},
                "answer_json": {
                    "claim": "not in context" if refused else rng.choice(texts),
                    "citations": [] if refused else retrieved[:2],
                    "constraints_echo": ["language:en", "max_words:60"],
                },
                "retrieved_ids": retrieved,
                "flags": {
                    "provenance_violation": rng.random() < 0.01,
                    "constraints_mismatch": rng.random() < 0.01,
                },
            }
            stream.write(json.dumps(row) + "\n")


def arbitrate(row: dict[str, Any]) -> tuple[str, str]:
    """The policy, in the order of the specification."""
    flags = row.get("flags") or {}
    if flags.get("provenance_violation") or flags.get("constraints_mismatch"):
        return "REJECT", "hard_flag"
    if not set(row["answer_json"]["citations"]) <= set(row["retrieved_ids"]):
        return "REJECT", "citation_out_of_scope"
    if row["auditor"]["label"] != "VALID":
        return "REJECT", "auditor_veto"
    if row["scholar"]["label"] in {"VALID", "NOT_IN_CONTEXT"}:
        return "VALID", "auditor_ok"
    return "REJECT", "incoherent_pair"


def score(rows: Iterable[dict[str, Any]], tsv: Path) -> dict[str, Any]:
    """Agreement, and the finals of disagreements."""
    first: Counter[str] = Counter()
    second: Counter[str] = Counter()
    n = agreed = abstained = 0
    with tsv.open("w", encoding="utf-8") as stream:
        stream.write("qid\tscholar\tauditor\tfinal\twhy\n")
        for row in rows:
            one, two = row["scholar"]["label"], row["auditor"]["label"]
            first[one] += 1
            second[two] += 1
            n += 1
            abstained += "ABSTAIN" in {one, two}
            if one == two:
                agreed += 1
            else:
                stream.write("\t".join((row["qid"], one, two, *arbitrate(row))) + "\n")
    chance = sum(first[label] * second[label] for label in LABELS) / n**2
    observed = agreed / n
    return {
        "n": n,
        "percent_agreement": observed,
        "kappa": (observed - chance) / (1 - chance),
        "abstain_rate": abstained / n,
        "disagreements": n - agreed,
    }


def loading(path: Path, tsv: Path) -> dict[str, Any]:
    """Load every row, then score."""
    with path.open(encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream if line.strip()]
    return score(rows, tsv)


def streaming(path: Path, tsv: Path) -> dict[str, Any]:
    """Score row by row."""
    with path.open(encoding="utf-8") as stream:
        return score((json.loads(line) for line in stream if line.strip()), tsv)


@dataclass(frozen=True)
class Row:
    """One line of the table: what a process took, and what adjudge is held against."""

    name: str
    rows: int
    cpu_seconds: float
    peak_mb: float
    ratio: float | None
    target: str | None
    met: bool
    equal: bool

    def __str__(self) -> str:
        ratio = "" if self.ratio is None else f"{self.ratio:.1f}×"
        target = "" if self.target is None else f"  {self.target}: {'met' if self.met else 'MISSED'}"
        each = self.cpu_seconds / self.rows * 1e6
        return f"{self.name:12} {self.cpu_seconds:8.2f} {each:10.1f} {self.peak_mb:8,.0f} {ratio:>11}{target}"


@dataclass(frozen=True)
class Cost:
    """What a process printed, its CPU seconds and its peak memory in MB."""

    figures: dict[str, Any]
    cpu: float
    memory: float


def measured(command: list[str], output: Path) -> Cost:
    """Run a process of its own."""
    with output.open("wb") as stream:
        actions = [(os.POSIX_SPAWN_DUP2, stream.fileno(), 1)]
        process = os.posix_spawn(command[0], command, dict(os.environ), file_actions=actions)
        _, status, usage = os.wait4(process, 0)
    if os.waitstatus_to_exitcode(status) not in {0, 1}:
        raise SystemExit(f"{command} failed")
    return Cost(json.loads(output.read_bytes()), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks consistency", description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--file", type=Path, help="pairs that were written before")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument(
        "--scorer", choices=["loading", "streaming"], help="run one scorer on --file and print its figures"
    )
    given = parser.parse_args(argv)
    if given.scorer:
        tsv = given.file.with_suffix(f".{given.scorer}.tsv")
        print(json.dumps({"loading": loading, "streaming": streaming}[given.scorer](given.file, tsv)))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="adjudge-consistency-"))
    try:
        rows = compare(given.file or folder / "pairs.jsonl", given.pairs, given.seed, given.repeat, folder)
    finally:
        shutil.rmtree(folder)
    if given.json is not None:
        given.json.write_text(json.dumps({"rows": [asdict(row) for row in rows]}, indent=2) + "\n", encoding="utf-8")
    return 0 if all(row.met and row.equal for row in rows) else 1


def compare(path: Path, pairs: int, seed: int, repeat: int, folder: Path) -> list[Row]:
    """Every row of the table, printed."""
    if not path.exists():
        write_pairs(path, pairs, seed)
    print(f"{pairs:,} pairs, {path.stat().st_size / 1e6:,.0f} MB")
    own = [sys.executable, "-c", _PROGRAM, "consistency", "--pairs", str(path), "--json", "--force"]
    script = [sys.executable, "-m", "benchmarks", "consistency", "--file", str(path), "--scorer"]
    commands = {
        "adjudge": [*own, "--no-report", "--out", str(folder / "run")],
        "with report": [*own, "--out", str(folder / "run-with-report")],
        "loading": [*script, "loading"],
        "streaming": [*script, "streaming"],
    }
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(repeat):
        for name, command in commands.items():
            costs[name].append(measured(command, folder / "figures.json"))
    least = {name: min(found, key=lambda cost: cost.cpu) for name, found in costs.items()}
    figures = least["adjudge"].figures
    rows = []
    for name, cost in least.items():
        peak = max(one.memory for one in costs[name])
        ratio = statistics.median(a.cpu / b.cpu for a, b in zip(costs[name], costs["adjudge"], strict=True))
        target, met = None, True
        if name in {"adjudge", "with report"}:
            target, met = f"under {MOST_MEMORY} MB", peak < MOST_MEMORY
        elif name == "loading":
            target, met = f"{LEAST_RATIO:.0f}× at least", ratio >= LEAST_RATIO
        equal = sum(figures["finals_by_why"].values()) == figures["n"] == pairs and alike(figures, cost.figures)
        rows.append(Row(name, pairs, cost.cpu, peak, None if name == "adjudge" else ratio, target, met, equal))
    print(f"{'':12} {'CPU s':>8} {'CPU µs/pair':>10} {'peak MB':>8} {'adjudge is':>11}")
    print(*rows, sep="\n")
    same = all(row.equal for row in rows)
    print("agreement figures are equal; every pair was arbitrated" if same else "agreement figures DIFFER")
    return rows


def alike(figures: dict[str, Any], others: dict[str, Any]) -> bool:
    """Whether the figures that a scorer gives are ours."""
    names = ("n", "percent_agreement", "kappa", "abstain_rate", "disagreements")
    return all(abs(figures[name] - others[name]) < EQUAL for name in names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
