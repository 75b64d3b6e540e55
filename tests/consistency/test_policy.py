from __future__ import annotations

import itertools

import pytest
import yaml

from adjudge.errors import ConfigError
from adjudge.protocols.consistency.policy import FINALS, INPUTS, load, policy_text
from adjudge.verdict.decision import load_table

V, N, R, A = "VALID", "NOT_IN_CONTEXT", "REJECT", "ABSTAIN"

# The whole of `strict` where no flag is raised and citations are none or in scope: (scholar, auditor) -> final, why.
STRICT = {
    (V, V): (V, "auditor_ok"),
    (V, N): (R, "auditor_veto"),
    (V, R): (R, "auditor_veto"),
    (V, A): (R, "auditor_veto"),
    (N, V): (V, "auditor_ok"),
    (N, N): (R, "auditor_veto"),
    (N, R): (R, "auditor_veto"),
    (N, A): (R, "auditor_veto"),
    (R, V): (R, "incoherent_pair"),
    (R, N): (R, "auditor_veto"),
    (R, R): (R, "auditor_veto"),
    (R, A): (R, "auditor_veto"),
    (A, V): (R, "incoherent_pair"),
    (A, N): (R, "auditor_veto"),
    (A, R): (R, "auditor_veto"),
    (A, A): (R, "auditor_veto"),
}
SCOPE = {"out_of_scope": "citation_out_of_scope", "unverifiable": "citations_unverifiable"}
CASES = list(itertools.product(("none", "raised"), ("none", "in_scope", *SCOPE), STRICT, ("other", "refusal_token")))


def expected(flag, citations, labels):
    if flag == "raised":
        return R, "hard_flag"
    if citations in SCOPE:
        return R, SCOPE[citations]
    return STRICT[labels]


@pytest.mark.parametrize("flag,citations,labels,claim", CASES)
def test_strict_decides_every_combination_as_written(flag, citations, labels, claim):
    row = load("strict").table.decide(
        hard_flag=flag, citations=citations, scholar=labels[0], auditor=labels[1], claim=claim
    )
    assert (row.final, row.why) == expected(flag, citations, labels)


@pytest.mark.parametrize("flag,citations,labels,claim", CASES)
def test_refusal_aware_differs_only_where_both_refuse_with_the_token(flag, citations, labels, claim):
    row = load("refusal-aware").table.decide(
        hard_flag=flag, citations=citations, scholar=labels[0], auditor=labels[1], claim=claim
    )
    refused = flag == "none" and citations not in SCOPE and labels == (N, N) and claim == "refusal_token"
    assert (row.final, row.why) == ((N, "agreed_refusal") if refused else expected(flag, citations, labels))


@pytest.mark.parametrize(
    "change,message",
    [
        (lambda t: t["rows"].pop(), "combinations have no row, such as hard_flag none"),
        (lambda t: t["rows"].insert(1, t["rows"][0]), r"row 2 \(hard_flag\) is unreachable"),
        (lambda t: t["rows"].append({"final": "REJECT", "why": "never"}), r"row 7 \(never\) is unreachable"),
        (lambda t: t["rows"][0].update(final="MAYBE"), "final is 'MAYBE', expected one of VALID"),
        (lambda t: t["rows"][0].pop("why"), "`why` is missing"),
        (
            lambda t: t["rows"][0].update(when={"hard_flags": "raised"}),
            "no input 'hard_flags'.*Did you mean 'hard_flag'",
        ),
        (lambda t: t["rows"][3].update(when={"auditor": {"not": "VALLID"}}), "auditor is never 'VALLID'.*'VALID'"),
        (lambda t: t["rows"][0].update(then=1), "a row has `when`, `final` and `why`"),
        (lambda t: t.pop("policy"), "`policy` is missing"),
        (lambda t: t.update(extra=1), "'extra' is not a key"),
        (lambda t: t.update(rows={}), "a policy is a table"),
    ],
)
def test_a_table_with_a_fault_is_refused_by_name(change, message):
    content = yaml.safe_load(policy_text("strict"))
    change(content)
    with pytest.raises(ConfigError, match=message):
        load_table(content, "mine.yaml", INPUTS, FINALS)


def test_lookup_over_columns_equals_one_by_one():
    import numpy as np

    table = load("refusal-aware").table
    cases = list(itertools.product(*(range(len(words)) for words in INPUTS.values())))
    columns = {name: np.array(column) for name, column in zip(INPUTS, zip(*cases, strict=True), strict=True)}
    found = table.lookup(columns)
    for case, index in zip(cases, found, strict=True):
        words = {name: INPUTS[name][code] for name, code in zip(INPUTS, case, strict=True)}
        assert table.rows[index] is table.decide(**words)


def test_policy_commands(cli, tmp_path):
    assert cli("consistency", "policy", "show", "strict").output == policy_text("strict")
    assert "6 rows decide all 256 combinations" in cli("consistency", "policy", "check", "strict").output
    mine = tmp_path / "mine.yaml"
    mine.write_text(policy_text("strict").replace("  - final: REJECT\n    why: incoherent_pair\n", ""))
    with pytest.raises(ConfigError, match="have no row"):
        raise cli("consistency", "policy", "check", str(mine)).exception


@pytest.mark.parametrize(
    "change, message",
    [
        ({"policy": ""}, "`policy` is missing"),
        ({"policy": 5}, "`policy` is missing"),
        ({"rows": [{"final": "yes", "why": ""}]}, "row 1: `why` is missing"),
        ({"rows": [{"final": "yes", "why": 3}]}, "row 1: `why` is missing"),
        ({"rows": [{"final": "yes", "why": "w", "when": {"seen": {"nor": "a"}}}]}, "row 1"),
        ({"rows": [{"final": "yes", "why": "w", "when": {"seen": "c"}}]}, "row 1"),
    ],
)
def test_a_table_that_cannot_be_read_says_where(change, message):
    good = {
        "policy": "p",
        "rows": [{"final": "yes", "why": "w", "when": {"seen": {"not": "a"}}}, {"final": "no", "why": "v"}],
    }
    inputs = {"seen": ("a", "b")}
    table = load_table(good, "here", inputs, ("yes", "no"))
    assert [row.why for row in table.rows] == ["w", "v"]
    with pytest.raises(ConfigError, match=message):
        load_table(good | change, "here", inputs, ("yes", "no"))
