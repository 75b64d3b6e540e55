"""The verdict sentence: a table from the JSON of a comparison to the exact words."""

from __future__ import annotations

import pytest

from adjudge.report.sentence import sentence

FAKES = {"better": "catches more fakes", "worse": "catches fewer fakes"}
REFUSED = {"compared": False, "why": "A was cached, B was not cached", "cache": ["hit", "miss"]}
COMPARED = {"compared": True, "why": None, "cache": ["miss", "miss"]}


def share(verdict, value, low, high, *, name="accuracy", p=0.2, p_holm=0.4, **more):
    return {
        "name": name,
        "title": name.replace("_", " "),
        "slice": "",
        "kind": "binary",
        "unit": "",
        "n": 500,
        "clusters": None,
        "difference": {"value": value, "low": low, "high": high},
        "p": p,
        "log10_p": None,
        "p_holm": p_holm,
        "margin": None,
        "verdict": verdict,
        "why": None,
        "needs": None,
        "phrases": {},
        **more,
    }


BETTER = share("better", 0.042, 0.011, 0.073, name="fake_catch_rate", p=0.003, p_holm=0.009, phrases=FAKES)
WORSE = share("worse", -0.042, -0.073, -0.011, name="fake_catch_rate", p=0.003, p_holm=0.009, phrases=FAKES)
EQUIVALENT = share("equivalent", 0.003, -0.011, 0.017, name="coverage", margin=0.02)
OPEN = share("inconclusive", 0.012, -0.008, 0.032, needs={"n": 1873, "to_find": 0.012})
QUICK = share("better", -0.31, -0.42, -0.2, kind="mean", unit="s", name="latency", p=0.0001, p_holm=0.0004)
SLOW = {**QUICK, "verdict": "worse", "difference": {"value": 0.31, "low": 0.2, "high": 0.42}}


def document(metrics, latency=None, **more):
    pair = {"a": "A", "b": "B", "identical": False, "metrics": metrics, "latency": latency}
    return {
        "status": "COMPARABLE",
        "reasons": [],
        "n": 500,
        "tests": len(metrics),
        "systems": [{"name": "A", "n": 500}, {"name": "B", "n": 500}],
        "pairs": [pair],
        "rankings": [],
        **more,
    }


@pytest.mark.parametrize(
    "comparison, said",
    [
        pytest.param(
            document([BETTER]), "B catches more fakes: +4.2 points [1.1, 7.3], p = 0.003.", id="better, one metric"
        ),
        pytest.param(
            document([WORSE]), "B catches fewer fakes: -4.2 points [-7.3, -1.1], p = 0.003.", id="worse, one metric"
        ),
        pytest.param(
            document([EQUIVALENT]),
            "coverage is equivalent within 2 points (+0.3 points [-1.1, 1.7]).",
            id="equivalent, one metric",
        ),
        pytest.param(
            document([OPEN]),
            "accuracy is inconclusive: +1.2 points [-0.8, 3.2], p = 0.200; needs about n = 1,900 (here 500).",
            id="inconclusive, one metric",
        ),
        pytest.param(
            document([BETTER, EQUIVALENT], REFUSED),
            "B catches more fakes: +4.2 points [1.1, 7.3], p = 0.009 after correction; coverage is equivalent within 2 "
            "points (+0.3 points [-1.1, 1.7]); latency is not comparable: A was cached, B was not cached.",
            id="better and equivalent, latency refused",
        ),
        pytest.param(
            document([WORSE, OPEN]),
            "B catches fewer fakes: -4.2 points [-7.3, -1.1], p = 0.009 after correction; accuracy is inconclusive: "
            "+1.2 points [-0.8, 3.2], p = 0.400 after correction; needs about n = 1,900 (here 500).",
            id="worse and inconclusive",
        ),
        pytest.param(
            document([EQUIVALENT, QUICK], COMPARED),
            "coverage is equivalent within 2 points (+0.3 points [-1.1, 1.7]); "
            "B is better on latency: -0.31 s [-0.42, -0.20], p = 4.0e-04 after correction.",
            id="equivalent, and quicker",
        ),
        pytest.param(
            document([BETTER, SLOW], COMPARED),
            "B catches more fakes: +4.2 points [1.1, 7.3], p = 0.009 after correction; "
            "B is worse on latency: +0.31 s [0.20, 0.42], p = 4.0e-04 after correction.",
            id="better, but slower",
        ),
        pytest.param(
            document([OPEN], REFUSED),
            "accuracy is inconclusive: +1.2 points [-0.8, 3.2], p = 0.200; needs about n = 1,900 (here 500); "
            "latency is not comparable: A was cached, B was not cached.",
            id="inconclusive, latency refused",
        ),
        pytest.param(
            document([QUICK], {**REFUSED, "compared": True}),
            "B is better on latency: -0.31 s [-0.42, -0.20], p = 1.0e-04; "
            "latency was compared by force: A was cached, B was not cached.",
            id="latency by force",
        ),
        pytest.param(
            document([{**BETTER, "phrases": {}}]),
            "B is better on fake catch rate: +4.2 points [1.1, 7.3], p = 0.003.",
            id="no phrase of the protocol's own",
        ),
        pytest.param(
            document([{**BETTER, "slice": "source=phone"}, OPEN]),
            "B is better on fake catch rate where source=phone: +4.2 points [1.1, 7.3], p = 0.009 after correction; "
            "accuracy is inconclusive: +1.2 points [-0.8, 3.2], p = 0.400 after correction; "
            "needs about n = 1,900 (here 500).",
            id="a slice",
        ),
        pytest.param(
            document([{**OPEN, "margin": 0.02, "needs": {"n": 990, "to_find": 0.02}, "clusters": 12}]),
            "accuracy is inconclusive: +1.2 points [-0.8, 3.2], p = 0.200; "
            "finding 2 points needs about n = 990 (here 500 in 12 clusters).",
            id="inconclusive at a margin, in clusters",
        ),
        pytest.param(
            document([{**OPEN, "needs": None, "why": "one cluster only"}]),
            "accuracy is inconclusive: +1.2 points [-0.8, 3.2], p = 0.200; one cluster only.",
            id="inconclusive, with a reason",
        ),
        pytest.param(
            document(
                [{**OPEN, "difference": {"value": None, "low": None, "high": None, "why": "x"}, "why": "no pairs"}]
            ),
            "accuracy cannot be compared: no pairs.",
            id="nothing to compare",
        ),
        pytest.param(
            document([{**BETTER, "p": 2.2e-308, "log10_p": -458.628}]),
            "B catches more fakes: +4.2 points [1.1, 7.3], p = 2.4e-459.",
            id="a p that no double holds",
        ),
        pytest.param(
            document([{**BETTER, "p_holm": 4.4e-308}, OPEN]),
            "B catches more fakes: +4.2 points [1.1, 7.3], p < 1e-300 after correction; accuracy is inconclusive: +1.2 "
            "points [-0.8, 3.2], p = 0.400 after correction; needs about n = 1,900 (here 500).",
            id="a corrected p that no double holds",
        ),
        pytest.param(
            document(
                [share("better", 0.041, 0.022, 0.061, kind="ratio", name="F1 of fake", p=0.001), EQUIVALENT], REFUSED
            ),
            "B is better on F1 of fake: +4.1 points [2.2, 6.1], p = 0.400 after correction; coverage is equivalent within 2 "
            "points (+0.3 points [-1.1, 1.7]); latency is not comparable: A was cached, B was not cached.",
            id="a ratio is said in points",
        ),
    ],
)
def test_what_is_said_of_two_systems(comparison, said):
    assert sentence(comparison) == f"B against A, on 500 samples: {said}"


def test_a_slice_that_is_not_told_apart_is_left_to_the_table():
    assert "social" not in sentence(document([BETTER, {**OPEN, "slice": "source=social"}]))


def test_identical_runs():
    comparison = document([EQUIVALENT])
    comparison["pairs"][0]["identical"] = True
    assert (
        sentence(comparison)
        == "B against A, on 500 samples: the two are equivalent, for they hold the same answers and results."
    )


@pytest.mark.parametrize(
    "more, opening",
    [
        (
            {"status": "COMPARABLE_ON_INTERSECTION", "n": 480},
            "B against A, on the 480 samples that all share (500 of A and 500 of B): ",
        ),
        (
            {"status": "NOT_COMPARABLE", "reasons": ["A and B differ in schema", "the prompts differ"]},
            "B against A, forced although not comparable (A and B differ in schema; the prompts differ), on 500 shared samples: ",
        ),
    ],
)
def test_how_it_opens(more, opening):
    assert sentence(document([BETTER], **more)).startswith(opening + "B catches more fakes")


def test_what_is_not_comparable_has_reasons_and_no_number():
    assert (
        sentence({"status": "NOT_COMPARABLE", "reasons": ["the prompts differ"], "pairs": []})
        == "Not comparable: the prompts differ."
    )


def ranked(letters):
    values = {"m1": 0.9, "m2": 0.895, "m3": 0.5}
    places = [{"name": name, "value": values[name], "tie_groups": list(groups)} for name, groups in letters.items()]
    ranking = {"title": "accuracy", "kind": "binary", "unit": "", "places": places}
    systems = [{"name": name, "n": 500} for name in letters]
    return document([BETTER], rankings=[ranking], systems=systems)


@pytest.mark.parametrize(
    "letters, said",
    [
        (
            {"m1": "a", "m2": "a", "m3": "b"},
            "by accuracy: m1 90 % (a), m2 89.5 % (a), m3 50 % (b); names that share a letter are not told apart.",
        ),
        (
            {"m1": "a", "m2": "a", "m3": "a"},
            "by accuracy no two are told apart: m1 90 % (a), m2 89.5 % (a), m3 50 % (a).",
        ),
    ],
)
def test_what_is_said_of_three(letters, said):
    assert sentence(ranked(letters)) == f"3 systems, on 500 samples: {said}"


def test_pairs_of_one_run_have_a_line_each_with_its_own_names_and_n():
    comparison = document([BETTER], tests=2)
    (first,) = comparison["pairs"]
    comparison["pairs"] = [
        {**first, "n": 500},
        {**first, "a": "C", "b": "D", "n": 480, "metrics": [WORSE], "latency": REFUSED},
    ]
    comparison["systems"] = [{"name": name, "n": 500} for name in "ABCD"]
    assert sentence(comparison).split("\n") == [
        "B against A, on 500 samples: B catches more fakes: +4.2 points [1.1, 7.3], p = 0.009 after correction.",
        (
            "D against C, on 480 samples: D catches fewer fakes: -4.2 points [-7.3, -1.1], p = 0.009 after correction; latency "
            "is not comparable: A was cached, B was not cached."
        ),
    ]


def test_above_the_numbers_it_has_none_of_them():
    assert sentence(document([BETTER, OPEN, EQUIVALENT]), bare=True) == (
        "B against A, on 500 samples: B catches more fakes; accuracy is inconclusive: needs about n = 1,900 (here 500); "
        "coverage is equivalent within 2 points."
    )
    assert sentence(document([BETTER, BETTER, WORSE, SLOW, OPEN]), bare=True) == (
        "B against A, on 500 samples: B is better on 2 of 5 metrics (fake catch rate, fake catch rate); "
        "B is worse on 2 of 5 metrics (fake catch rate, latency); 1 is inconclusive."
    )
    letters = {"m1": "a", "m2": "a", "m3": "b"}
    assert sentence(ranked(letters), bare=True) == (
        "3 systems, on 500 samples: by accuracy: m1 (a), m2 (a), m3 (b); names that share a letter are not told apart."
    )


def test_names_from_outside_cannot_move_the_cursor():
    comparison = document([{**BETTER, "phrases": {}, "title": "x\x1b[2J"}])
    assert "\x1b" not in sentence(comparison)
