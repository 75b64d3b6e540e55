"""The example of the consistency protocol: invented questions, answers, and what a Scholar and an Auditor say of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from adjudge.protocols.common.examples import write_examples
from adjudge.protocols.consistency.encoding import REFUSAL
from adjudge.protocols.consistency.policy import LABELS


def example(folder: Path, seed: int) -> dict[str, Any]:
    """Write the pairs and return the configuration that judges them."""
    return {"pairs": [str(generate(folder, seed=seed, force=True))], "policy": "refusal-aware"}


ITEMS = 400
_SUBJECTS = ("return window", "warranty", "battery", "delivery", "repair", "invoice", "discount", "storage")
_FACTS = ("lasts 30 days", "covers two years", "charges in 90 minutes", "takes three days", "needs a receipt")
_WHY = {
    "VALID": ("each clause stands in the cited passage", "claim and passage say the same", "supported by the source"),
    "NOT_IN_CONTEXT": ("no passage answers the question", "the context is silent on this"),
    "REJECT": ("the passage says otherwise", "the claim adds a number the source lacks"),
    "ABSTAIN": ("two passages contradict each other",),
}
_POLICY = {
    "VALID": ("provenance and constraints hold", "sources are listed, limits are kept"),
    "NOT_IN_CONTEXT": ("a refusal is due here", "nothing to cite, refusal is right"),
    "REJECT": ("the length limit is broken", "a source is missing its date"),
    "ABSTAIN": ("the policy is silent on this",),
}


def generate(folder: Path, *, seed: int, items: int = ITEMS, force: bool = False) -> Path:
    """Write pairs.jsonl."""
    rng = random.Random(seed)  # noqa: S311 -- example data, not secrets
    pairs = [_pair(rng, number) for number in range(items)]
    return write_examples(folder, {"pairs.jsonl": pairs}, force=force)[0]


def _pair(rng: random.Random, number: int) -> dict[str, Any]:
    scholar = rng.choices(LABELS, (70, 14, 15, 1))[0]
    auditor = scholar if rng.random() < 0.94 else rng.choices(LABELS, (45, 15, 35, 5))[0]
    refused = scholar == "NOT_IN_CONTEXT"
    retrieved = [f"doc-{rng.randrange(900) + 100}" for _ in range(4)]
    cited = [] if refused else rng.sample(retrieved, 2)
    if cited and rng.random() < 0.015:
        cited[0] = "doc-9999"
    claim = REFUSAL if refused else f"The {rng.choice(_SUBJECTS)} {rng.choice(_FACTS)}."
    if refused and rng.random() < 0.05:
        claim = "Not in context."
    constraints = {"language": "en", "max_words": 40}
    return {
        "qid": f"q{number:04d}",
        "scholar": {"label": scholar, "reason": rng.choice(_WHY[scholar]), "model": "scholar-1", "temperature": 0},
        "auditor": {"label": auditor, "reason": _reason(rng, auditor), "model": "auditor-1", "seed": 7},
        "answer_json": {"claim": claim, "citations": cited, "constraints_echo": constraints},
        "retrieved_ids": retrieved,
        "constraints": constraints,
        "flags": {"provenance_violation": rng.random() < 0.012, "constraints_mismatch": rng.random() < 0.008},
    }


def _reason(rng: random.Random, label: str) -> str:
    if rng.random() < 0.01:
        return "checked with the author, jo.doe@example.org"
    return f"{rng.choice(_POLICY[label])}, see policy {rng.randrange(1, 9)}.{rng.randrange(10)}"
