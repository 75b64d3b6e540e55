"""The table of verdicts: what is written of reasons, statuses, quotes and votes is read again."""

from __future__ import annotations

import numpy as np

from adjudge.verdict.adjudicator import (
    agent_table,
    deliberation_lists,
    reason_lists,
    stored_item_atoms,
    stored_reasons,
    stored_statuses,
)
from adjudge.verdict.agent import Reasons
from adjudge.verdict.deliberation import CheckedReason, Deliberation, Quote
from verdict.evidence import atom

ATOMS = [atom(0), atom(1, "fail", "WARNING"), atom(2, "fail", "CRITICAL"), atom(3, "fail", "WARNING")]
REASONS = Reasons(  # sample 0 has two reasons, sample 2 one
    sample=np.array([0, 0, 2]),
    worst=np.array([2, 1], dtype=np.int16).repeat([1, 2]),
    size=np.array([2, 1, 1], dtype=np.int16),
    atoms=np.array([1, 2, 3, 1], dtype=np.int16),
)
STATUSES = np.array([[0, 1, 2], [2, 1, 0]], dtype=np.uint8)


def rows(**lists):
    return agent_table(np.array([0, 1, 2], dtype=np.int8), STATUSES, **lists).to_pylist()


def test_statuses_are_one_byte_an_item_and_read_again():
    table = rows()
    assert [row["decided_by"] for row in table] == ["agent", "rules", "not asked"]
    assert [stored_statuses(row) for row in table] == [["pass", "unknown"], ["fail", "fail"], ["unknown", "pass"]]
    assert [row["row"] for row in table] == [0, 1, 2]
    assert table[0]["votes"] is None


def test_reasons_of_the_rules_are_read_again_by_sample_and_rank():
    stored = [stored_reasons(row, ATOMS) for row in rows(**reason_lists(REASONS, 3))]
    told = [
        [(each.rank, each.worst.position, [a.position for a in each.atoms], each.severity) for each in one]
        for one in stored
    ]
    assert told == [[(1, 2, [1, 2], "CRITICAL"), (2, 1, [3], "WARNING")], [], [(1, 1, [1], "WARNING")]]
    assert {(each.words, each.quote, each.verified) for one in stored for each in one} == {(None, None, None)}


def test_an_agent_s_own_reasons_stand_in_place_of_the_rules_and_others_keep_theirs():
    own = CheckedReason((1, 3), "it is wrong", Quote("so", verified=True)), CheckedReason((2,), None, None)
    answered = Deliberation(
        "agent", False, (1,), own, (Quote("q", verified=False),), ("ineligible", "refused: cut_off"), ("cut_off",)
    )
    table = rows(**deliberation_lists([answered, None, Deliberation("rules", True, (0,))], REASONS))
    first, second = stored_reasons(table[0], ATOMS)
    assert (first.worst.position, first.words, first.quote, first.verified) == (1, "it is wrong", "so", True)
    assert [a.position for a in first.atoms] == [1, 3]
    assert (second.worst.position, second.words, second.quote, second.verified) == (2, None, None, None)
    assert (table[0]["quotes"], table[0]["quotes_verified"]) == (["q"], [False])
    assert (table[0]["votes"], table[0]["refused"]) == (["ineligible", "refused: cut_off"], ["cut_off"])
    assert [each.worst.position for each in stored_reasons(table[2], ATOMS)] == [1]
    assert [table[2][name] for name in ("quotes", "quotes_verified", "votes", "refused")] == [None] * 4


def test_the_atoms_that_an_agent_put_under_its_items():
    assert stored_item_atoms({"item_sizes": None, "item_atoms": None}, ATOMS) is None
    stored = stored_item_atoms({"item_sizes": [1, 0, 2], "item_atoms": [3, 0, 2]}, ATOMS)
    assert [[each.position for each in one] for one in stored] == [[3], [], [0, 2]]
