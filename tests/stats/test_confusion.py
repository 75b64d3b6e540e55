import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from adjudge.errors import StatsError
from adjudge.stats import confusion as cf

ABSTAINED, ERRORED, MISSING = -1, -2, -3
LABELS = ("real", "fake", "other")
SEEDED = {"seed": 1, "stream": "s", "resamples": 50}
rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=60)


def table_of(truth, answer, labels=("a", "b"), clusters=None):
    """The table of codes: truths 0 … K-1, answers 0 … K-1, or ABSTAINED, ERRORED, MISSING below 0."""
    k, width = len(labels), len(labels) + 3
    answer = np.asarray(answer, dtype=int)
    groups = np.zeros(answer.size, dtype=int) if clusters is None else np.asarray(clusters)
    counts = np.zeros((groups.max(initial=0) + 1, k, width), dtype=int)
    np.add.at(counts, (groups, np.asarray(truth, dtype=int), np.where(answer < 0, k - 1 - answer, answer)), 1)
    return cf.Confusion(tuple(labels), counts.sum(axis=0), None if clusters is None else counts)


def approx(value):
    return pytest.approx(value, abs=1e-12)


@settings(max_examples=60)
@given(rows, st.booleans())
def test_equals_scikit_learn_on_answered_rows(data, clustered):
    truth, answer, clusters = np.array(data).T
    table = table_of(truth, answer, LABELS, clusters=clusters if clustered else None)
    for place, label in enumerate(LABELS):
        expected = metrics.f1_score(truth, answer, labels=[place], average=None, zero_division=np.nan)[0]
        assert cf.f1(table, label, **SEEDED).value == (None if np.isnan(expected) else approx(expected))
    # scikit-learn gives 0 where MCC is undefined and averages balanced accuracy over the classes that occur.
    both_vary = len(set(truth)) > 1 and len(set(answer)) > 1
    expected = approx(metrics.matthews_corrcoef(truth, answer)) if both_vary else None
    assert cf.mcc(table, **SEEDED).value == expected
    if len(set(truth)) == 3:
        assert cf.balanced_accuracy(table, **SEEDED).value == approx(metrics.balanced_accuracy_score(truth, answer))
    else:
        assert "no rows of class" in cf.balanced_accuracy(table, **SEEDED).why


def test_triage_example():
    # 247 fakes and 253 reals; 37 fakes caught, 2 reals flagged, 461 abstained.
    truth = np.repeat([1, 0], [247, 253])
    answer = np.full(500, ABSTAINED)
    answer[:37] = 1
    answer[247:249] = 1
    table = table_of(truth, answer, ("real", "fake"))
    assert cf.f1(table, "fake", over="all", **SEEDED).value == approx(2 * 37 / (37 + 2 + 247))
    assert cf.f1(table, "fake", **SEEDED).value == approx(2 * 37 / (39 + 37))
    assert cf.balanced_accuracy(table, **SEEDED).value == 0.5
    assert cf.mcc(table, **SEEDED).why == "truth or answer is the same on every row among the answered"


def test_every_row_is_in_one_cell():
    table = table_of([0, 0, 0, 0, 1], [0, ABSTAINED, ERRORED, MISSING, 0])
    assert table.counts.tolist() == [[1, 0, 1, 1, 1], [1, 0, 0, 0, 0]]
    assert table.n == 5


def test_no_answer_counts_as_wrong_over_all_and_not_at_all_over_answered():
    table = table_of([0, 0, 1, 1], [0, MISSING, 1, 1])
    assert cf.f1(table, "a", over="all", **SEEDED).value == approx(2 / 3)
    assert cf.f1(table, "a", over="answered", **SEEDED).value == 1.0
    assert cf.mcc(table, over="answered", **SEEDED).value == 1.0
    assert cf.mcc(table, over="all", **SEEDED).value < 1.0


def test_perfect_f1_has_an_interval_of_some_width():
    table = table_of([0] * 20 + [1] * 20, [0] * 20 + [1] * 20)
    estimate = cf.f1(table, "a", **SEEDED)
    # Wilson's lower end for 20/20 is 20/(20 + z²) = 0.8389; F1 = 2J/(1 + J).
    assert estimate.low == pytest.approx(2 * 0.83887 / 1.83887, abs=1e-5)
    assert estimate.high == 1.0
    assert estimate.method == "wilson on TP / (TP + FP + FN)"


def test_clustered_measures_use_the_clusters():
    random = np.random.default_rng(3)
    clusters = np.repeat(np.arange(40), 25)
    truth = random.integers(0, 2, 1000)
    # Whole clusters are answered well or badly, so that rows tell less than their number.
    wrong = random.random(1000) < np.where(np.arange(40) % 2, 0.02, 0.5)[clusters]
    answer = np.where(wrong, 1 - truth, truth)
    plain = table_of(truth, answer)
    clustered = table_of(truth, answer, ("a", "b"), clusters=clusters)
    for measure in (cf.mcc, cf.balanced_accuracy):
        one, other = measure(plain, seed=1, stream="s"), measure(clustered, seed=1, stream="s")
        assert one.value == other.value
        assert one.n == other.n == 1000
        assert other.high - other.low > 1.4 * (one.high - one.low)
    all_right = table_of(truth, truth, clusters=clusters)
    assert "cluster design effect" in cf.f1(all_right, "a", **SEEDED).method


def test_label_names_and_row_order_change_nothing():
    random = np.random.default_rng(5)
    truth, answer = random.integers(0, 3, 300), random.integers(-3, 3, 300)
    order = random.permutation(300)
    one, other = table_of(truth, answer, LABELS), table_of(truth[order], answer[order], ("x", "y", "z"))
    assert cf.mcc(one, **SEEDED) == cf.mcc(other, **SEEDED)
    assert cf.f1(one, "fake", **SEEDED) == cf.f1(other, "y", **SEEDED)


def test_large_counts_do_not_overflow():
    big = cf.Confusion(("a", "b"), np.array([[4 * 10**9, 10**9, 0, 0, 0], [10**9, 4 * 10**9, 0, 0, 0]]))
    assert cf.mcc(big, **SEEDED).value == approx(0.6)


def test_nothing_is_null_with_a_reason():
    empty = table_of([], [])
    measures = [
        cf.f1(empty, "a", **SEEDED),
        cf.mcc(empty, **SEEDED),
    ]
    assert all(estimate.value is None and estimate.why for estimate in measures)


def test_a_label_outside_the_label_space_is_refused():
    with pytest.raises(StatsError, match="label 'nope' is not one of real, fake, other"):
        cf.f1(table_of([0], [0], LABELS), "nope", **SEEDED)
