"""The checklist: an item a code, what is refused, and how items come out of atoms and of columns."""

from __future__ import annotations

import pytest

from adjudge.errors import CitationRefused
from adjudge.evidence.atoms import atoms
from adjudge.verdict.agent import STATUSES, Item, Organizer, atoms_of, check_checklist, checklist_of, status_of
from verdict.evidence import RANGE, atom, ended_rule, evaluated, limits_rule

RULES = [rule.table() for rule in (limits_rule("a.a", RANGE), ended_rule())]
ITEMS = checklist_of(RULES)


def test_every_code_has_an_item_in_the_order_of_the_table():
    assert [(item.item_id, item.title, item.rules) for item in ITEMS] == [
        ("CHECK_001", "a.a holds", ("a.a",)),
        ("CHECK_002", "it is not cut", ("end.cut",)),
        ("CHECK_003", "it is not lost", ("end.lost",)),
    ]
    check_checklist(ITEMS, RULES, "rules")


@pytest.mark.parametrize(
    "items, what",
    [
        ([], "is empty"),
        ([*ITEMS, ITEMS[0]], "names an item twice"),
        ([*ITEMS, Item("X", "nothing", ())], "bound to no rule"),
        ([*ITEMS, Item("X", "more", ("z.z",))], r"do not exist: z\.z"),
        ([*ITEMS, *(Item(name, name, (f"z.{name}",)) for name in "abcd")], r"do not exist: z\.a, z\.b, z\.c$"),
        (ITEMS[:2], r"leaves out rules: end\.lost"),
        (ITEMS[1:], r"leaves out rules: a\.a"),
    ],
)
def test_a_checklist_that_does_not_fit_the_rules_is_refused(items, what):
    with pytest.raises(CitationRefused, match=f"agent 'mine'.*{what}"):
        check_checklist(items, RULES, "mine")


@pytest.mark.parametrize(
    "outcomes, status",
    [
        ((), "unknown"),
        (("not_applicable",), "unknown"),
        (("pass",), "pass"),
        (("not_applicable", "pass"), "pass"),
        (("pass", "fail"), "fail"),
        (("error",), "unknown"),
    ],
)
def test_an_item_fails_where_an_atom_did_and_passes_where_one_passed(outcomes, status):
    assert status_of([atom(place, outcome) for place, outcome in enumerate(outcomes)]) == status


@pytest.mark.parametrize(
    "ended, statuses",
    [(0, ("pass", "pass", "pass")), (1, ("pass", "fail", "unknown")), (2, ("pass", "unknown", "fail"))],
)
def test_a_code_that_shares_its_atom_rests_on_it_where_it_passed(ended, statuses):
    evidence = evaluated([limits_rule("a.a", RANGE), ended_rule()], [[0.0], [0.0]], ended=[ended])
    every = list(atoms(evidence, 0, "m", "s"))
    assert tuple(status_of(atoms_of(item, every, RULES)) for item in ITEMS) == statuses


def test_columns_give_the_statuses_of_the_atoms():
    rules = [limits_rule("a.a", RANGE), ended_rule(), limits_rule("b.b", RANGE, needs=("a.a",))]
    tables = [rule.table() for rule in rules]
    values = [[0.0, 3.0, 0.0, 9.0], [0.0, 0.0, 3.0, 9.0]]
    evidence = evaluated(rules, values, ended=[0, 1, 2, 0])
    # the second list has an item over rules that do not stand together, and one over two codes of one rule
    others = [Item("one", "a and b", ("a.a", "b.b")), Item("two", "ended", ("end.cut", "end.lost"))]
    for items in (checklist_of(tables), others):
        columns = Organizer(items, tables).statuses(evidence)
        for sample in range(evidence.n):
            every = list(atoms(evidence, sample, "m", "s"))
            expected = [status_of(atoms_of(item, every, tables)) for item in items]
            assert [STATUSES[code] for code in columns[:, sample]] == expected
