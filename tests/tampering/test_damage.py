"""Runs damaged at random: a list of problems, a refusal, or a run that holds; never another exception.

`python tests/tampering/damage.py 5000` takes more seeds; one that ends otherwise belongs into CRASHED.
"""

import pytest

from tampering import damage

CRASHED: tuple[int, ...] = ()
"""Seeds that once ended in a traceback."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return damage.small_runs(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("seed", sorted({*range(40), *CRASHED}))
def test_a_damaged_run_is_told(runs, tmp_path, seed):
    word, done, seconds = damage.attempt(runs, seed, tmp_path)
    assert word in {"holds", "problems", "another version", "refused (2)"}, (word, done)
    assert seconds < damage.SLOW
