import numpy as np
import pytest

from adjudge.errors import StatsError
from adjudge.stats import resampling
from adjudge.stats.resampling import compositions, generator, resamples_of, weights


def test_a_stream_depends_on_seed_and_name_alone():
    assert generator(1, "accuracy").random() == generator(1, "accuracy").random()
    draws = {generator(seed, name).random() for seed in (1, 2) for name in ("accuracy", "f1")}
    assert len(draws) == 4


def test_streams_are_the_same_on_every_machine():
    # PCG64 with SeedSequence(7, spawn_key=SHA-256 words of "accuracy"); raw output, which NumPy keeps stable.
    assert generator(7, "accuracy").bit_generator.random_raw(2).tolist() == [11092122593797391136, 2221130434965343372]


def test_every_resample_draws_as_many_units_as_there_are():
    rows = np.concatenate(list(weights(40, 500, 3, "a")))
    assert rows.shape == (500, 40)
    assert (rows.sum(axis=1) == 40).all()
    # Each unit's count is Binomial(40, 1/40): mean 1, variance 1 - 1/40, here over 20,000 counts.
    assert rows.var() == pytest.approx(0.975, abs=0.05)


def test_many_units_come_in_chunks_that_together_are_the_resamples():
    chunks = list(weights(1 << 20, 5, 3, "a"))
    assert len(chunks) > 1
    assert sum(len(chunk) for chunk in chunks) == 5


def test_the_size_of_a_chunk_changes_nothing(monkeypatch):
    drawn = np.concatenate(list(weights(301, 50, 1, "x")))
    monkeypatch.setattr(resampling, "_CHUNK_CELLS", 1)
    one_by_one = list(weights(301, 50, 1, "x"))
    assert len(one_by_one) == 50
    assert (np.concatenate(one_by_one) == drawn).all()


def test_strata_keep_their_sizes():
    strata = np.array(["b", "a", "b", "a", "a", "b", "b", "c", "c", "b"])
    rows = np.concatenate(list(weights(10, 200, 3, "a", strata=strata)))
    for stratum in "abc":
        assert (rows[:, strata == stratum].sum(axis=1) == (strata == stratum).sum()).all()
    with pytest.raises(StatsError, match="one stratum for each"):
        list(weights(10, 5, 3, "a", strata=["a"]))


@pytest.mark.parametrize("m, distinct", [(2, 3), (3, 10), (5, 126), (8, 6435)])
def test_all_distinct_resamples_with_their_probabilities(m, distinct):
    rows, probabilities = compositions(m)
    assert len(rows) == len({tuple(row) for row in rows.tolist()}) == distinct
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    # Drawing every unit once has probability m!/m^m.
    once = (rows == 1).all(axis=1)
    assert probabilities[once] == pytest.approx(np.prod(np.arange(1, m + 1) / m))


def test_enumeration_within_strata():
    plan = resamples_of(5, 100, seed=1, stream="a", strata=[0, 0, 1, 1, 1])
    assert plan.enumerated is not None
    assert len(plan.enumerated) == 3 * 10
    assert plan.probabilities.sum() == pytest.approx(1.0)
    assert (plan.enumerated[:, :2].sum(axis=1) == 2).all()
    assert plan.recorded_seed is None
    assert plan.says == "all 30 distinct resamples"


def test_more_units_are_drawn():
    plan = resamples_of(10, 100, seed=1, stream="a")
    assert plan.enumerated is None
    assert plan.recorded_seed == 1
    assert plan.says == "100 resamples"


@pytest.mark.parametrize("m, resamples, seed", [(0, 10, 1), (3, 0, 1)])
def test_nothing_to_draw_is_refused(m, resamples, seed):
    with pytest.raises(StatsError):
        resamples_of(m, resamples, seed=seed, stream="a")


def test_negative_seed_is_refused():
    with pytest.raises(StatsError, match="negative"):
        generator(-1, "a")
