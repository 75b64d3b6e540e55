"""The method's scorer, written once more from its description with plain dictionaries, against ours on random pairs."""

from __future__ import annotations

import json
import random

import pyarrow.parquet as pq
import pytest

LABELS = ("VALID", "NOT_IN_CONTEXT", "REJECT", "ABSTAIN")
PAIRS = 5000


def arbitrate(row):
    """Four steps in order: hard flags and citation scope, the auditor's veto, the auditor's word, anything else."""
    scholar, auditor = row["scholar"]["label"], row["auditor"]["label"]
    flags = row.get("flags") or {}
    if flags.get("provenance_violation") or flags.get("constraints_mismatch"):
        return "REJECT", "hard_flag"
    citations = (row.get("answer_json") or {}).get("citations") or []
    if citations and row.get("retrieved_ids") is None:
        return "REJECT", "citations_unverifiable"
    if not set(citations) <= set(row.get("retrieved_ids") or []):
        return "REJECT", "citation_out_of_scope"
    if auditor != "VALID":
        return "REJECT", "auditor_veto"
    if scholar in ("VALID", "NOT_IN_CONTEXT"):
        return "VALID", "auditor_ok"
    return "REJECT", "incoherent_pair"


def score(rows):
    """Confusion over the four labels, percent agreement and κ, abstentions, and every final."""
    n = len(rows)
    confusion = {one: dict.fromkeys(LABELS, 0) for one in LABELS}
    for row in rows:
        confusion[row["scholar"]["label"]][row["auditor"]["label"]] += 1
    observed = sum(confusion[label][label] for label in LABELS) / n
    first = {label: sum(confusion[label].values()) / n for label in LABELS}
    second = {label: sum(confusion[other][label] for other in LABELS) / n for label in LABELS}
    expected = sum(first[label] * second[label] for label in LABELS)
    finals = {row["qid"]: arbitrate(row) for row in rows}
    return {
        "n": n,
        "confusion": confusion,
        "percent_agreement": observed,
        "kappa": None if expected == 1 else (observed - expected) / (1 - expected),
        "abstain_rate": sum("ABSTAIN" in (row["scholar"]["label"], row["auditor"]["label"]) for row in rows) / n,
        "disagreements": sum(row["scholar"]["label"] != row["auditor"]["label"] for row in rows),
        "finals": finals,
    }


def random_pair(rng, number):
    scholar = rng.choice(LABELS)
    auditor = scholar if rng.random() < 0.7 else rng.choice(LABELS)
    row = {"qid": f"q{number}", "scholar": {"label": scholar}, "auditor": {"label": auditor}}
    if rng.random() < 0.8:
        ids = [f"d{k}" for k in range(6)]
        row["answer_json"] = {
            "claim": rng.choice(["c", "not in context"]),
            "citations": rng.sample(ids, rng.randrange(4)),
        }
    if rng.random() < 0.8:
        row["retrieved_ids"] = rng.sample([f"d{k}" for k in range(6)], 5)
    if rng.random() < 0.8:
        row["flags"] = {
            name: rng.random() < 0.1 for name in ("provenance_violation", "constraints_mismatch") if rng.random() < 0.8
        }
    return row


@pytest.mark.parametrize("mode", ["pairs", "two files and answers"])
def test_ours_and_a_plain_scorer_agree_on_random_pairs(write, run, mode):
    rng = random.Random(11)  # noqa: S311 -- test data
    rows = [random_pair(rng, number) for number in range(PAIRS)]
    if mode == "pairs":
        config = {"pairs": [write("pairs.jsonl", rows)]}
    else:
        config = {
            agent: [write(f"{agent}.jsonl", [{"qid": row["qid"], **row[agent]} for row in rng.sample(rows, PAIRS)])]
            for agent in ("scholar", "auditor")
        }
        answers = [{name: value for name, value in row.items() if name not in ("scholar", "auditor")} for row in rows]
        config["answers"] = [write("answers.jsonl", answers)]
    path, ours = run(config)
    plain = score(rows)
    finals = plain.pop("finals")
    stored = pq.read_table(path / "samples.parquet", columns=["sample", "verdict", "why"]).to_pylist()
    assert {row["sample"]: (row["verdict"], row["why"]) for row in stored} == finals
    for name in ("percent_agreement", "kappa", "abstain_rate"):
        assert ours[name] == pytest.approx(plain.pop(name), rel=1e-12)
    assert {name: ours[name] for name in plain} == plain
    assert len({why for _, why in finals.values()}) == 6
    assert json.dumps(ours["finals_by_why"])
