from __future__ import annotations

import pytest

from adjudge.protocols.base import protocol
from adjudge.runs.run import Run

TOKEN = "not in context"  # noqa: S105 -- the refusal token, no secret
GIVEN = {"language": "en", "max_words": 40}


def atoms(path, sample="q"):
    recorded = Run(path, protocol("consistency").record)
    return {(atom.rule, atom.field): atom for atom in recorded.atoms(recorded.find(sample)[0])}, recorded


def one(rule, field, outcome, found):
    """Outcome of a rule on one item; the other codes of the same rule are not there then."""
    assert (rule, field) in found, sorted(found)
    assert found[rule, field].outcome == outcome


@pytest.mark.parametrize(
    "labels,claim,citations,rule,outcome",
    [
        (("NOT_IN_CONTEXT", "NOT_IN_CONTEXT"), TOKEN, [], "refusal.other_claim", "pass"),
        (("NOT_IN_CONTEXT", "VALID"), "Not in context", [], "refusal.other_claim", "fail"),
        (("VALID", "NOT_IN_CONTEXT"), TOKEN + " ", [], "refusal.other_claim", "fail"),
        (("VALID", "VALID"), TOKEN, ["d"], "refusal.with_citations", "fail"),
        (("VALID", "VALID"), "It is so.", ["d"], "refusal.other_claim", "pass"),
        (("NOT_IN_CONTEXT", "NOT_IN_CONTEXT"), None, [], "refusal.other_claim", "not_applicable"),
    ],
)
def test_the_refusal_token_is_exact(write, pair, run, labels, claim, citations, rule, outcome):
    row = pair("q", *labels, answer_json={"claim": claim, "citations": citations}, retrieved_ids=["d"])
    path, _ = run({"pairs": [write("p.jsonl", [row])]})
    one(rule, None, outcome, atoms(path)[0])


@pytest.mark.parametrize(
    "scholar,auditor,rule,field,outcome",
    [
        ({"evidence_digest": "a"}, {"evidence_digest": "a"}, "evidence.same_digest", None, "pass"),
        ({"evidence_digest": "a"}, {"evidence_digest": "b"}, "evidence.same_digest", None, "fail"),
        ({"evidence_digest": "a"}, {}, "evidence.same_digest", None, "not_applicable"),
        ({"reason": "x" * 280}, {}, "reason.too_long", "scholar", "pass"),
        ({}, {"reason": "x" * 281}, "reason.too_long", "auditor", "fail"),
        ({}, {"reason": None}, "reason.too_long", "auditor", "not_applicable"),
        ({"reason": "ask jo@example.org"}, {}, "reason.personal_data", "scholar", "fail"),
        ({"reason": "see 2024-05-17"}, {}, "reason.personal_data", "scholar", "pass"),
        ({"reason": "the auditor says REJECT"}, {"label": "REJECT"}, "reason.not_blind", "scholar", "fail"),
        ({"reason": "VALID by the source"}, {}, "reason.not_blind", "scholar", "pass"),
        ({"reason": "the auditor also says VALID"}, {}, "reason.not_blind", "scholar", "fail"),
        ({"reason": "INVALID quote"}, {"label": "REJECT"}, "reason.not_blind", "scholar", "pass"),
        ({"reason": "they wrote: 'policy 3 forbids such claims'"}, {"reason": "policy 3 forbids such claims"},
         "reason.not_blind", "scholar", "fail"),
        ({"reason": "ok"}, {"reason": "ok"}, "reason.not_blind", "scholar", "pass"),
        ({}, {}, "seed.unstable", "scholar", "not_applicable"),
        ({"model": "m"}, {}, "seed.unstable", "scholar", "fail"),
        ({"model": "m", "temperature": 0.7}, {}, "seed.unstable", "scholar", "fail"),
        ({"model": "m", "temperature": 0}, {}, "seed.unstable", "scholar", "pass"),
        ({"model": "m", "temperature": 0.7, "seed": 0}, {}, "seed.unstable", "scholar", "pass"),
        ({"votes": ["VALID", "VALID", "REJECT"]}, {}, "seed.unstable", "scholar", "pass"),
        ({"votes": ["REJECT", "REJECT"]}, {}, "seed.votes_contradict_label", "scholar", "fail"),
    ],
)  # fmt: skip
def test_hygiene_atoms(write, pair, run, scholar, auditor, rule, field, outcome):
    row = pair("q")
    row["scholar"] |= scholar
    row["auditor"] |= auditor
    path, _ = run({"pairs": [write("p.jsonl", [row])]})
    one(rule, field, outcome, atoms(path)[0])


@pytest.mark.parametrize(
    "constraints,echo,outcome",
    [
        (GIVEN, dict(reversed(GIVEN.items())), "pass"),
        (GIVEN, {"language": "en"}, "fail"),
        (GIVEN, None, "fail"),
        (None, GIVEN, "not_applicable"),
    ],
)
def test_constraints_are_echoed_where_given(write, pair, run, constraints, echo, outcome):
    row = pair("q", constraints=constraints, answer_json={"claim": "c", "constraints_echo": echo})
    path, _ = run({"pairs": [write("p.jsonl", [row])]})
    one("constraints.not_echoed", None, outcome, atoms(path)[0])


@pytest.mark.parametrize(
    "votes,label",
    [
        (["VALID", "VALID", "REJECT"], "VALID"),
        (["VALID", "REJECT"], "ABSTAIN"),
        (["VALID", "VALID", "REJECT", "ABSTAIN"], "ABSTAIN"),
        (["REJECT"], "REJECT"),
    ],
)
def test_votes_are_reduced_by_strict_majority(write, pair, run, votes, label):
    row = pair("q") | {"scholar": {"votes": votes}}
    path, metrics = run({"pairs": [write("p.jsonl", [row])]})
    sample = Run(path).find("q")[0]
    assert sample["scholar"] == label
    assert sample["scholar_reducer"] == "strict_majority"
    assert metrics["votes_reduced"] == {"reducer": "strict_majority", "items": 1}


def test_masked_everywhere_in_the_run_and_the_record_cites_its_atoms(write, pair, run):
    row = pair("q", "VALID", "REJECT")
    row["auditor"]["reason"] = "author is jo@example.org, +44 20 7946 0958"
    path, _ = run({"pairs": [write("p.jsonl", [row])]})
    _, recorded = atoms(path)
    record = recorded.record("q")
    assert record["auditor_reason"] == "author is [e-mail], [phone]"
    assert record["final"] == "REJECT"
    assert record["cites"] == ["pair/q/label.auditor_valid/@0"]
    assert {atom["id"] for atom in record["atoms"]} > set(record["cites"])
    for file in path.rglob("*"):
        assert not file.is_file() or b"jo@example" not in file.read_bytes()
    assert b"[e-mail], [phone]" in (path / "consistency_disagreements.tsv").read_bytes()


def test_every_way_to_lack_a_label_has_a_code_of_its_own(write, run):
    both, rest = {"qid": "both", "label": "VALID"}, {"label": "VALID", "reason": "r"}
    path, _ = run(
        {
            "scholar": [write("s.jsonl", [both, {"qid": "s", **rest}, {"qid": "bad", "label": "MAYBE"}])],
            "auditor": [write("a.jsonl", [both, {"qid": "a", **rest}])],
            "answers": [write("answers.jsonl", [{"qid": "z", "answer_json": {"claim": "c", "citations": []}}])],
            "on_bad_row": "skip",
        }
    )
    codes = {
        sample: [(rule, atom.outcome) for (rule, _), atom in atoms(path, sample)[0].items() if rule.startswith("pair.")]
        for sample in ("both", "s", "a", "bad", "z")
    }
    assert codes == {
        "both": [("pair.only_scholar", "pass")],
        "s": [("pair.only_scholar", "fail")],
        "a": [("pair.only_auditor", "fail")],
        "bad": [("pair.bad_row", "fail")],
        "z": [("pair.unknown_answer", "fail")],
    }
