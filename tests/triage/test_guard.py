"""The method's tables of valid and invalid comparisons, and every recorded fact as a factor."""

from __future__ import annotations

import copy
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import adjudge
from adjudge.comparisons.guard import examine
from adjudge.comparisons.systems import select
from adjudge.errors import ConfigError, InputError

BASE = {
    "model": "hawk",
    "use_tools": False,
    "models": {"agent": "hawk-1", "vision": "iris-1", "structuring": "form-1"},
    "prompt_hashes": {"system": "a" * 64, "user": "b" * 64},
    "run_config": {"temperature": 0.0, "max_iterations": 15, "reasoning_effort": "high"},
    "cache": {"hit": False},
}
LABELS = [("fake", "real")[number % 2] for number in range(40)]


def with_fact(base, fact, value):
    """A copy of a record's settings with one fact changed; `models.vision` is one inside another."""
    changed = copy.deepcopy(base)
    *outer, key = fact.split(".")
    place = changed
    for name in outer:
        place = place[name]
    place[key] = value
    return changed


@pytest.fixture
def run_of(judge, record):
    """A run over samples with these settings on every record."""
    answers = itertools.cycle(["fake", "real", "real", "uncertain", "fake"])

    def make(base, ids=range(40), labels=LABELS, **more):
        rows = [
            record(number, labels[number], next(answers), latency_seconds=1.0 + number / 40, **{**base, **more})
            for number in ids
        ]
        return judge(rows)

    return make


def compared(first, second, **options):
    """Status and reasons of the guard."""
    guard = examine(select([first, second]), **options)
    return guard.status, " ".join(guard.reasons)


OTHER = {
    "model": ("model", "wren"),
    "agent": ("models.agent", "hawk-2"),
    "tools": ("use_tools", True),
    "vision": ("models.vision", "iris-2"),
    "structuring": ("models.structuring", "form-2"),
    "prompt": ("prompt_hashes.system", "c" * 64),
    "temperature": ("run_config.temperature", 0.7),
    "max_iterations": ("run_config.max_iterations", 30),
    "reasoning_effort": ("run_config.reasoning_effort", "low"),
}
FACTOR = {name: "model" if name == "agent" else name for name in OTHER}

VALID = [
    pytest.param("model", id="model A against B: same data set, same mode"),
    pytest.param("tools", id="tools against no tools: same model, same data set"),
    pytest.param("vision", id="vision variants: same agent model, same data set"),
    pytest.param("prompt", id="prompts, where prompts are compared"),
    *(name for name in OTHER if name not in {"model", "tools", "vision", "prompt"}),
]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("name", VALID)
def test_valid_comparisons_vary_the_named_factor_alone(run_of, name, swapped):
    runs = [run_of(BASE), run_of(with_fact(BASE, *OTHER[name]))]
    first, second = runs[::-1] if swapped else runs
    assert compared(first, second, factor=FACTOR[name]) == ("COMPARABLE", "")
    for other in {"model", "tools", "vision", "temperature"} - {FACTOR[name]}:
        status, reasons = compared(first, second, factor=other)
        assert status == "NOT_COMPARABLE"
        assert f"{FACTOR[name]} varies too" in reasons


DATA = {
    "different data sets": ({"ids": range(20)}, {"ids": range(20, 40)}, "share no sample"),
    "less than half is shared": ({"ids": range(24)}, {"ids": range(16, 40)}, "8 samples are shared, of 24 and 24"),
    "other labels": ({}, {"labels": LABELS[1:] + LABELS[:1]}, "different labels"),
    "fewer samples, less than half": ({}, {"ids": range(19)}, "19 samples are shared, of"),
}


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("first, second, reason", DATA.values(), ids=DATA)
def test_invalid_data(run_of, first, second, reason, swapped):
    if swapped:
        first, second = second, first
    status, reasons = compared(run_of(BASE, **first), run_of(with_fact(BASE, "model", "wren"), **second))
    assert status == "NOT_COMPARABLE"
    assert reason in reasons


@pytest.mark.parametrize("swapped", [False, True])
def test_other_sizes_are_compared_on_what_both_have_with_n(run_of, swapped):
    runs = [run_of(BASE), run_of(with_fact(BASE, "model", "wren"), ids=range(5, 30))]
    first, second = runs[::-1] if swapped else runs
    comparison = adjudge.compare(first, second, factor="model")
    assert comparison.status == "COMPARABLE_ON_INTERSECTION"
    assert comparison.n == comparison.pairs[0].n == 25
    assert "everything is recomputed on the 25 samples" in comparison.notes[0]
    accuracy = next(metric for metric in comparison.pairs[0].metrics if metric.name == "accuracy")
    assert accuracy.n == 25


@pytest.mark.parametrize("swapped", [False, True])
def test_other_prompts_need_to_be_named(run_of, swapped):
    runs = [run_of(BASE), run_of(with_fact(BASE, *OTHER["prompt"]))]
    first, second = runs[::-1] if swapped else runs
    status, reasons = compared(first, second)
    assert (status, "the prompts differ" in reasons) == ("NOT_COMPARABLE", True)


@pytest.mark.parametrize("swapped", [False, True])
def test_mixed_cache_states_refuse_latency_alone(run_of, judge, record, swapped):
    answers = itertools.cycle(["fake", "real"])
    mixed = judge(
        [
            record(
                number,
                LABELS[number],
                next(answers),
                latency_seconds=1.0,
                **{**BASE, "cache": {"hit": number % 2 == 0}},
            )
            for number in range(40)
        ]
    )
    runs = [run_of(with_fact(BASE, "model", "wren")), mixed]
    first, second = runs[::-1] if swapped else runs
    comparison = adjudge.compare(first, second, factor="model")
    assert comparison.status == "COMPARABLE"
    assert comparison.pairs[0].latency.compared is False
    assert "mixes cached and uncached answers" in comparison.pairs[0].latency.why
    with pytest.raises(adjudge.NotComparable, match="latency is not comparable"):
        adjudge.compare(first, second, factor="model", metrics=["latency_seconds"])


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changed=st.sets(st.sampled_from(sorted(OTHER)), max_size=2),
    factor=st.sampled_from(sorted(set(FACTOR.values()))),
)
def test_comparable_if_and_only_if_nothing_but_the_named_factor_differs(run_of, changed, factor):
    second = BASE
    for name in sorted(changed):
        second = with_fact(second, *OTHER[name])
    status, reasons = compared(run_of(BASE), run_of(second), factor=factor)
    others = {FACTOR[name] for name in changed} - {factor}
    assert (status == "COMPARABLE") == (not others)
    assert all(f"{name} varies too" in reasons for name in others)


def test_a_setting_that_one_of_two_records_lacks_differs(run_of):
    without = {**BASE, "run_config": {"temperature": 0.0, "max_iterations": 15}}
    status, reasons = compared(run_of(BASE), run_of(without), factor="model")
    assert status == "NOT_COMPARABLE"
    assert "reasoning_effort varies too (high, nothing)" in reasons
    assert compared(run_of(BASE), run_of({**without, "use_tools": True}), factor="tools")[0] == "COMPARABLE"


def test_what_one_run_does_not_record_at_all_is_a_note(run_of):
    guard = examine(select([run_of(BASE), run_of({**BASE, "model": "wren", "models": None})]), factor="model")
    assert guard.status == "COMPARABLE"
    assert any(note.startswith("vision is recorded for some of the runs only") for note in guard.notes)


def test_a_model_that_sees_for_itself_is_one_factor(run_of):
    both = [
        {**BASE, "model": name, "models": {"agent": name, "vision": name, "structuring": "form-1"}}
        for name in ("hawk", "wren")
    ]
    assert compared(*map(run_of, both), factor="model") == ("COMPARABLE", "")


def test_a_factor_may_be_named_by_its_fact_and_a_wrong_one_gets_the_near_ones(run_of):
    runs = [run_of(BASE), run_of(with_fact(BASE, *OTHER["vision"]))]
    assert adjudge.compare(*runs, factor="models.vision").varied == {"vision": ["iris-1", "iris-2"]}
    with pytest.raises(ConfigError, match="did you mean 'reasoning_effort'"):
        adjudge.compare(*runs, factor="reasoning")


@pytest.mark.parametrize("fact", ["models.vision", "run_config.temperature", "prompt_hashes.system", "models.agent"])
def test_a_file_that_mixes_two_systems_is_refused_or_split(judge, record, fact):
    name = next(name for name, (of, _) in OTHER.items() if of == fact)
    settings_of = [BASE, with_fact(BASE, *OTHER[name])]
    rows = [record(number, LABELS[number], "fake", **settings_of[number % 2]) for number in range(40)]
    with pytest.raises(InputError, match=f"never pooled: {fact}: .* \\(20 records\\)") as refused:
        judge(rows)
    assert f"--split-by {fact}" in str(refused.value)
    run = judge(rows, split_by=[fact])
    assert [block["per_trial"]["0"]["total"] for block in run.metrics["configurations"].values()] == [20, 20]
    assert {facts["model"]["model"] for facts in run.metrics["factors"].values()} == {"hawk"}


def test_prompts_that_differ_from_sample_to_sample_are_no_mixture(judge, record):
    rows = [
        record(number, LABELS[number], "fake", **with_fact(BASE, "prompt_hashes.user", f"{number:064x}"))
        for number in range(40)
    ]
    assert len(judge(rows).metrics["configurations"]) == 1


def test_a_wrong_fact_to_split_by(judge, record):
    with pytest.raises(ConfigError, match="expected a fact of the records"):
        judge([record(0, "fake", "fake")], split_by=["vision"])
