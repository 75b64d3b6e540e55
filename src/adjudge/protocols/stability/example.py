"""The example of the stability protocol: gold questions about an invented manual, and five runs of each."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from adjudge.protocols.common.examples import write_examples
from adjudge.protocols.stability.text import REFUSAL


def example(folder: Path, seed: int) -> dict[str, Any]:
    """Write the questions and runs, and return the configuration that judges them."""
    gold, runs = generate(folder, seed=seed, force=True)
    return {"gold": [str(gold)], "runs": [str(runs)]}


_SUBJECTS = ("return window", "warranty", "battery", "delivery", "repair", "invoice", "discount", "storage")
_FACTS = ("lasts 30 days", "covers two years", "charges in 90 minutes", "takes three days", "needs a receipt")


def generate(folder: Path, *, seed: int, items: int = 40, force: bool = False) -> tuple[Path, Path]:
    """Write gold.jsonl and runs.jsonl."""
    rng = random.Random(seed)  # noqa: S311 -- example data, not secrets
    golds = [_gold(rng, number) for number in range(items)]
    runs = [run for gold in golds for run in _runs(rng, gold)]
    gold_path, runs_path = write_examples(folder, {"gold.jsonl": golds, "runs.jsonl": runs}, force=force)
    return gold_path, runs_path


def _gold(rng: random.Random, number: int) -> dict[str, Any]:
    answerable = number % 5 != 0
    return {
        "qid": f"s{number:02d}",
        "question": f"What does the manual say about the {rng.choice(_SUBJECTS)}? Please answer in one sentence.",
        "answerable": answerable,
        "gold_claim_substr": [rng.choice(_FACTS)] if answerable else [],
        "gold_citations": [f"doc-{number + 100}"] if answerable else [],
        "constraints": {"language": "en"},
    }


def _runs(rng: random.Random, gold: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for seed in range(5):
        claim = f"According to the manual it {gold['gold_claim_substr'][0]}." if gold["answerable"] else REFUSAL
        if gold["answerable"] and rng.random() < 0.02:
            claim = "It depends on the model."
        answer = {"claim": claim, "citations": list(gold["gold_citations"]), "constraints_echo": gold["constraints"]}
        rows.append(
            {
                "qid": gold["qid"],
                "run_id": f"{gold['qid']}-{seed}",
                "seed": seed,
                "jitter": ("ws", "punct", "syn", "order")[seed % 4],
                "answer_json": answer,
                "retrieved_ids": [*gold["gold_citations"], "doc-900"],
            }
        )
    return rows
