"""One sample before an agent: what is asked, how often, and whose verdict stands."""

from __future__ import annotations

import pytest

from adjudge.verdict.agent import Item, ItemStatus, Judgement
from adjudge.verdict.deliberation import Case, Deliberation, Question, Refusal, deliberate, rules_decide
from verdict.evidence import atom

PASSED, WARNED, GRAVE = atom(0), atom(1, "fail", "WARNING"), atom(2, "fail", "CRITICAL")
YES, NO = Judgement("eligible", (PASSED.id,)), Judgement("ineligible", (WARNED.id,))
UNCITED, SILENT = Judgement("eligible", ()), Refusal("no_answer", "there was no answer")


def came_of(answers, votes, atoms=(PASSED, WARNED), status="pass"):
    """The questions that were asked, and what the answers come to."""
    case = Case("m", "s", atoms, "text", [Item("CHECK_001", "a", ("a.a",))], [ItemStatus(status, (PASSED.id,))])
    steps, questions, answers = deliberate(case, votes), [], iter(answers)
    try:
        question = next(steps)
        while True:
            questions.append(question)
            question = steps.send(next(answers))
    except StopIteration as end:
        return questions, end.value


@pytest.mark.parametrize(
    "answers, votes, decided_by, eligible, ballots, refused",
    [
        ([YES], 1, "agent", True, ("eligible",), ()),
        ([NO], 1, "agent", False, ("ineligible",), ()),
        ([UNCITED, YES], 1, "agent", True, ("eligible",), ("no_citation",)),
        ([UNCITED, SILENT], 1, "rules", True, ("refused: no_answer",), ("no_citation", "no_answer")),
        ([YES, NO, NO], 3, "agent", False, ("eligible", "ineligible", "ineligible"), ()),
        ([YES, NO], 2, "rules", True, ("eligible", "ineligible"), ("no_majority",)),
        (
            [YES, SILENT, SILENT],
            2,
            "rules",
            True,
            ("eligible", "refused: no_answer"),
            ("no_answer", "no_answer", "no_majority"),
        ),
        ([SILENT] * 4, 2, "rules", True, ("refused: no_answer",) * 2, ("no_answer",) * 4),
    ],
)
def test_whose_verdict_stands(answers, votes, decided_by, eligible, ballots, refused):
    _, result = came_of(answers, votes)
    assert (result.decided_by, result.eligible, result.votes, result.refused) == (
        decided_by,
        eligible,
        ballots,
        refused,
    )
    assert (
        result.cites == {("agent", True): (0,), ("agent", False): (1,), ("rules", True): (0, 1)}[decided_by, eligible]
    )


def test_a_refused_answer_is_asked_for_again_once_with_the_refusal_in_words():
    questions, _ = came_of([UNCITED, YES, SILENT, SILENT, YES], 3)
    assert questions == [
        Question(0, 0),
        Question(0, 1, "the verdict cites no atom; cite at least one"),
        Question(1, 0),
        Question(1, 1, "there was no answer"),
        Question(2, 0),
    ]


def test_a_checklist_that_its_atoms_do_not_say_ends_it_before_anything_is_asked():
    questions, result = came_of([], 1, status="fail")
    assert questions == []
    assert result == Deliberation("rules", True, (0, 1), refused=("organize",))


def test_the_first_answer_of_the_decision_that_won_is_kept():
    first, second = (
        Judgement("ineligible", (WARNED.id,), quotes=("text",)),
        Judgement("ineligible", (PASSED.id, WARNED.id)),
    )
    _, result = came_of([first, second], 2)
    assert (result.cites, [quote.text for quote in result.quotes]) == ((1,), ["text"])


def test_the_rules_cite_what_is_critical_or_else_everything():
    assert rules_decide((PASSED, WARNED, GRAVE), "rules") == Deliberation("rules", False, (2,))
    assert rules_decide((PASSED, WARNED), "not asked") == Deliberation("not asked", True, (0, 1))
