"""Runs damaged at random: a list of problems, a refusal, or a run that holds; never another exception.

`python tests/tampering/damage.py 5000` takes more seeds; one that ends otherwise belongs into CRASHED.
"""

import pytest

from fuzzing import bounded
from tampering import damage

CRASHED: tuple[int, ...] = ()
"""Seeds that once ended in a traceback."""


@pytest.fixture(scope="module")
def attempt(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    runs, samples = damage.written_runs(folder / "runs")
    return damage.attempt_on(runs, samples, folder)


def test_damaged_runs_are_told(attempt):
    seeds = sorted({*range(40), *CRASHED})
    outcomes = list(bounded.outcomes(attempt, seeds))
    assert [outcome.seed for outcome in outcomes] == seeds
    assert [outcome for outcome in outcomes if outcome.failed] == []
    assert {"problems", "refused (2)"} <= {outcome.word for outcome in outcomes}


def test_a_command_that_breaks_is_told(attempt, monkeypatch):
    def broken(*_):
        raise KeyError("x")

    monkeypatch.setattr(damage, "called", broken)
    assert attempt(0)[0].startswith("TRACEBACK KeyError")
