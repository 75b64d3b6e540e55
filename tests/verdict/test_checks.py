"""What an agent's answer is held to: every refusal by name, and what is kept of an answer that passes."""

from __future__ import annotations

import pytest

from adjudge.verdict.agent import Attribution, Item, ItemStatus, Judgement
from adjudge.verdict.deliberation import (
    REFUSALS,
    Checked,
    CheckedReason,
    Quote,
    Refusal,
    check,
    check_statuses,
    stands_in,
)
from verdict.evidence import atom

PASSED, WARNED, GRAVE, OPEN = (
    atom(0),
    atom(1, "fail", "WARNING"),
    atom(2, "fail", "CRITICAL"),
    atom(3, "not_applicable"),
)
HARMLESS, EVERY = [PASSED, WARNED, OPEN], [PASSED, WARNED, GRAVE, OPEN]


def because(*cites, severity="WARNING", quote=None):
    return Attribution("so it is", tuple(each.id for each in cites), severity, quote)


@pytest.mark.parametrize(
    "atoms, judgement, reason, words",
    [
        (HARMLESS, "eligible", "unknown_verdict", "the answer is a str"),
        (HARMLESS, Judgement("maybe", (PASSED.id,)), "unknown_verdict", "'maybe'"),
        (HARMLESS, Judgement("eligible", ()), "no_citation", "cites no atom"),
        (HARMLESS, Judgement("eligible", (PASSED.id, "m/s/z")), "unknown_atom", "'m/s/z'"),
        (HARMLESS, Judgement("ineligible", (PASSED.id,)), "unsupported", "did not pass"),
        (EVERY, Judgement("eligible", (PASSED.id,)), "laxer", GRAVE.id),
        (EVERY, Judgement("ineligible", (GRAVE.id,), ("a reason",)), "attribution", "at least one atom"),
        (EVERY, Judgement("ineligible", (GRAVE.id,), (because(),)), "attribution", "at least one atom"),
        (HARMLESS, Judgement("eligible", (PASSED.id,), (because(GRAVE),)), "attribution", "no atom of this sample"),
        (
            EVERY,
            Judgement("ineligible", (GRAVE.id,), (because(WARNED, GRAVE),)),
            "attribution",
            "its atoms say CRITICAL",
        ),
        (
            EVERY,
            Judgement("ineligible", (GRAVE.id,), (because(PASSED, severity="WARNING"),)),
            "attribution",
            "say INFO",
        ),
    ],
)
def test_an_answer_that_does_not_hold_is_refused_by_name(atoms, judgement, reason, words):
    refused = check(judgement, atoms, "an answer")
    assert isinstance(refused, Refusal)
    assert refused.reason == reason
    assert reason in REFUSALS
    assert words in refused.words


def test_a_long_word_is_cut_in_the_refusal():
    refused = check(Judgement("x" * 200, (PASSED.id,)), HARMLESS, None)
    assert refused.words == "the verdict is '" + "x" * 78 + "…, expected eligible or ineligible"
    assert "…" not in check(Judgement("x" * 78, (PASSED.id,)), HARMLESS, None).words


def test_what_is_kept_of_an_answer():
    reasons = (because(OPEN, WARNED, WARNED, quote="an  answer"), because(WARNED, quote="another"), because(WARNED))
    judgement = Judgement("ineligible", (WARNED.id, PASSED.id, WARNED.id), reasons, ("answer", "no"))
    assert check(judgement, HARMLESS, "this is an\nanswer") == Checked(
        "ineligible",
        (0, 1),
        (
            CheckedReason((1, 3), "so it is", Quote("an  answer", verified=True)),
            CheckedReason((1,), None, Quote("another", verified=False)),
            CheckedReason((1,), "so it is", None),
        ),
        (Quote("answer", verified=True), Quote("no", verified=False)),
    )


def test_an_agent_may_be_stricter_than_the_rules_and_cite_what_was_not_applicable():
    assert isinstance(check(Judgement("ineligible", (OPEN.id,)), HARMLESS, None), Checked)
    assert isinstance(check(Judgement("eligible", (WARNED.id,)), HARMLESS, None), Checked)


@pytest.mark.parametrize(
    "quote, answer, stands",
    [
        ("ﬁne", "it is fine", True),
        ("it  is", "it\tis", True),
        ("It", "it is", False),
        (" ", "it is", False),
        ("it", None, False),
    ],
)
def test_a_quote_stands_in_an_answer_after_normalisation(quote, answer, stands):
    assert stands_in(quote, answer) is stands


ITEM = Item("CHECK_001", "a", ("a.a",))


@pytest.mark.parametrize(
    "status, atoms, fits",
    [
        ("pass", [PASSED], True),
        ("pass", [PASSED, OPEN], True),
        ("pass", [OPEN], False),
        ("pass", [PASSED, WARNED], False),
        ("fail", [WARNED], True),
        ("fail", [PASSED], False),
        ("unknown", [OPEN], True),
        ("unknown", [], True),
        ("unknown", [WARNED], False),
        ("good", [PASSED], False),
        ("pass", [PASSED, atom(9)], False),
    ],
)
def test_a_status_follows_from_its_atoms(status, atoms, fits):
    refused = check_statuses([ITEM], [ItemStatus(status, tuple(each.id for each in atoms))], EVERY)
    assert (refused is None) is fits
    if refused is not None:
        assert refused == Refusal("organize", f"item CHECK_001 is {status!r}, which its atoms do not say")


def test_every_item_has_a_status():
    assert (
        check_statuses([ITEM, ITEM], [ItemStatus("pass", (PASSED.id,))], EVERY).words
        == "there are 1 statuses for 2 items"
    )
