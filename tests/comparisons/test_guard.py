"""The guard: a table of what differs between two runs, and what it must say."""

from __future__ import annotations

import pytest

from adjudge.comparisons.guard import cache_state, examine, latency_refused
from adjudge.comparisons.systems import System, select
from adjudge.errors import ConfigError

RIGHT = [True, False] * 10
IDS = [f"q{index:02d}" for index in range(20)]
LABELS = ["fake", "real"] * 10


def guard_of(make_run, first, second, **options):
    a = make_run("a", {"m1": RIGHT}, **{"ids": IDS, "labels": LABELS, **first})
    b = make_run("b", {"m2": RIGHT}, **{"ids": IDS, "labels": LABELS, **second})
    return examine(select([a, b]), **options)


VISION = '{"vision":"v"}'
AGENT = '{"agent":"a","vision":"v"}'


@pytest.mark.parametrize(
    "first, second, modes, varied",
    [
        pytest.param(["p"] * 20, ["p"] * 20, (False, True), False, id="equal"),
        pytest.param(["p"] * 20, ["q"] * 20, (False, True), True, id="other"),
        pytest.param(["p", "q"] * 10, ["q", "p"] * 10, (False, True), True, id="equal as sets, not by sample"),
        pytest.param(["p"] * 20, ["p"] * 19 + [None], (False, True), False, id="one record has none"),
        pytest.param([VISION] * 20, [AGENT] * 20, (False, True), False, id="the mode's own prompt"),
        pytest.param([VISION] * 20, [AGENT] * 20, (True, True), True, id="not the mode's, where the mode is the same"),
        pytest.param(['{"vision":"w"}'] * 20, [AGENT] * 20, (False, True), True, id="another prompt that both have"),
        pytest.param(['{"other":"v"}'] * 20, [AGENT] * 20, (False, True), True, id="no prompt that both have"),
    ],
)
def test_prompts_are_held_sample_by_sample_and_component_by_component(make_run, first, second, modes, varied):
    stated = [
        {"factors": {name: {"model": "m", "tools": mode}}} for name, mode in zip(("m1", "m2"), modes, strict=True)
    ]
    guard = guard_of(
        make_run,
        {"columns": {"prompts": {"m1": first}}, "top": stated[0]},
        {"columns": {"prompts": {"m2": second}}, "top": stated[1]},
    )
    assert ("prompt" in guard.varied) == varied
    assert any("the prompts differ" in reason for reason in guard.reasons) == varied


def test_prompts_of_samples_that_are_not_shared_do_not_count(make_run):
    prompts = [f"p{index}" for index in range(20)]
    later = {"ids": IDS[4:], "labels": LABELS[4:], "columns": {"prompts": {"m2": prompts[4:]}}}
    a = make_run("a", {"m1": RIGHT}, ids=IDS, labels=LABELS, columns={"prompts": {"m1": prompts}})
    guard = examine(select([a, make_run("b", {"m2": RIGHT[4:]}, **later)]))
    assert (guard.status, guard.reasons) == ("COMPARABLE_ON_INTERSECTION", [])


def test_equal_instruments_and_data_are_comparable(make_run):
    guard = guard_of(make_run, {}, {"shuffle": 3, "digests": {"report_data": "of what was derived"}})
    assert (guard.status, guard.reasons, len(guard.keys)) == ("COMPARABLE", [], 20)
    assert guard.varied == {"model": ["m1", "m2"]}


@pytest.mark.parametrize(
    "first, second, said",
    [
        pytest.param({}, {"protocol": "exam"}, "different protocols: quiz and exam", id="protocol"),
        pytest.param({}, {"version": "2"}, "different versions of quiz: 1 and 2", id="version"),
        pytest.param({}, {"digests": {"schema": "ff"}}, "differ in schema", id="schema"),
        pytest.param({}, {"digests": {"rules": "ff"}}, "differ in rule set", id="rules"),
        pytest.param(
            {"digests": {"constraint_library": "aa"}},
            {"digests": {"constraint_library": "bb"}},
            "differ in constraint library",
            id="library",
        ),
        pytest.param(
            {"config": {"library": {"bank": {"high": 60}}}},
            {"config": {"library": {"bank": {"high": 45}}}},
            "configuration (library.bank.high: 60, 45)",
            id="a limit is named",
        ),
        pytest.param({}, {"ids": [f"z{index}" for index in range(20)]}, "share no sample", id="other data"),
        pytest.param(
            {}, {"ids": IDS[:9] + [f"z{index}" for index in range(11)]}, "9 samples are shared, of 20 and 20", id="45 %"
        ),
        pytest.param(
            {},
            {"labels": ["real", *LABELS[1:]]},
            "different labels (label) on 1 of 20 shared samples, first 'q00'",
            id="label",
        ),
        pytest.param(
            {"top": {"dataset_columns": []}},
            {"top": {"dataset_columns": []}, "digests": {"dataset": "ff"}},
            "store no labels",
            id="nothing shows that labels are equal",
        ),
        pytest.param(
            {"digests": {"prompts": "aa"}}, {"digests": {"prompts": "bb"}}, "the prompts differ", id="prompts"
        ),
    ],
)
def test_what_differs_is_a_reason(make_run, first, second, said):
    guard = guard_of(make_run, first, second)
    assert guard.status == "NOT_COMPARABLE"
    assert len(guard.reasons) == 1
    assert said in guard.reasons[0]


def test_every_reason_is_given(make_run):
    second = {"version": "2", "digests": {"schema": "ff"}, "labels": LABELS[::-1]}
    assert len(guard_of(make_run, {}, second).reasons) == 3


def test_half_of_the_data_shared_with_equal_labels_is_comparable_on_it(make_run):
    guard = guard_of(make_run, {}, {"ids": IDS[:10] + [f"z{index}" for index in range(10)]})
    assert guard.status == "COMPARABLE_ON_INTERSECTION"
    assert guard.keys == IDS[:10]
    assert "on the 10 samples that all share, of 20 of m1 and 20 of m2" in guard.notes[0]


@pytest.mark.parametrize(
    "first, second, factor, reasons",
    [
        pytest.param({"model": "m"}, {"model": "n"}, None, [], id="one factor"),
        pytest.param(
            {"model": "m", "tools": True}, {"model": "m", "tools": False}, "tools", [], id="the one asked for"
        ),
        pytest.param(
            {"model": "m", "tools": True},
            {"model": "n", "tools": False},
            None,
            ["more than one factor varies"],
            id="two",
        ),
        pytest.param(
            {"model": "m", "tools": True},
            {"model": "n", "tools": False},
            "tools",
            ["model varies too (m, n), but only tools was to vary"],
            id="another beside the one asked for",
        ),
        pytest.param(
            {"model": "m", "prompt": "p"}, {"model": "m", "prompt": "q"}, "prompt", [], id="prompts are compared"
        ),
        pytest.param(
            {"model": "m", "vision": "v"}, {"model": "m", "vision": "w"}, "prompt", ["vision varies too"], id="vision"
        ),
    ],
)
def test_one_factor_may_vary(make_run, first, second, factor, reasons):
    guard = guard_of(make_run, {"top": {"factors": {"m1": first}}}, {"top": {"factors": {"m2": second}}}, factor=factor)
    assert len(guard.reasons) == len(reasons)
    assert all(said in reason for said, reason in zip(reasons, guard.reasons, strict=True))


def test_a_factor_nobody_recorded_is_a_note(make_run):
    assert "the runs do not record it" in guard_of(make_run, {}, {}, factor="vision").notes[0]


def test_a_factor_that_is_none(make_run):
    with pytest.raises(
        ConfigError, match="'colour' is not one of model, tools, vision, structuring, prompt, temperature"
    ):
        guard_of(make_run, {}, {}, factor="colour")


@pytest.mark.parametrize(
    "first, second, refused",
    [
        pytest.param([True] * 4, ["hit"] * 4, None, id="both cached"),
        pytest.param([False] * 4, ["miss"] * 4, None, id="both not"),
        pytest.param([True] * 4, ["miss"] * 4, "m1 was cached, m2 was not cached", id="one cached"),
        pytest.param(
            [True, False] * 2, ["miss"] * 4, "m1 mixes cached and uncached answers, m2 was not cached", id="mixed"
        ),
        pytest.param([None] * 4, ["miss"] * 4, "the cache state of m1 is unknown, m2 was not cached", id="unknown"),
        pytest.param([True, None] * 2, ["hit"] * 4, "the cache state of m1 is unknown, m2 was cached", id="in part"),
    ],
)
def test_latency_needs_one_known_cache_state(make_run, first, second, refused):
    a = make_run("a", {"m1": RIGHT[:4]}, columns={"cache": {"m1": first}})
    b = make_run("b", {"m2": RIGHT[:4]}, columns={"cache": {"m2": second}})
    systems = select([a, b])
    assert latency_refused(*systems, list(systems[0].place)) == refused


def test_without_a_cache_column_the_state_is_unknown(make_run):
    system = select([make_run("a", {"m1": RIGHT, "m2": RIGHT})])[0]
    assert cache_state(system, list(system.place)) == "unknown"


def test_answers_that_were_not_timed_do_not_make_the_state_unknown(make_run):
    columns = {"cache": {"m1": ["hit", "unknown"] * 2}, "latency_seconds": {"m1": [0.1, None] * 2}}
    system = System(make_run("a", {"m1": RIGHT[:4]}, columns=columns), "m1", "m1")
    assert cache_state(system, list(system.place)) == "hit"
