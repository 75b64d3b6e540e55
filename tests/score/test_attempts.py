"""Attempts from batches: however they were cut, the columns are the same; those of one value take no room."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.protocols.score.attempts import merged, partial_of

NAN = float("nan")
TEXTS = {"item": "i", "model": "m", "task": "t", "status": "scored", "verdict": "passed", "target": "x"}
ABSENT = dict.fromkeys(("reported", "threshold", "confidence", "truth"))


def samples(count, **given):
    """Stored samples that differ in what is given."""
    columns = {name: [value] * count for name, value in (TEXTS | ABSENT).items()}
    columns |= {"trial": [1] * count, "named": [True] * count, "score": [1.0] * count, "cluster": ["c"] * count}
    columns |= {"input_hash": ["0"] * count, "item": [f"i{number}" for number in range(count)]} | given
    types = dict.fromkeys(("score", *ABSENT), pa.float64()) | dict.fromkeys((*TEXTS, "cluster"), pa.string())
    return pa.table({name: pa.array(values, types.get(name)) for name, values in columns.items()})


def together(*tables):
    return merged([partial_of(table, (), ()) for table in tables])


def takes_no_room(column):
    return column.strides == (0,)


def test_columns_of_one_value_take_no_room_and_the_others_are_whole():
    attempts = together(samples(3, score=[1.0, 0.0, 1.0]), samples(2, score=[0.0, 0.0]))
    assert attempts.columns["score"].tolist() == [1, 0, 1, 0, 0]
    assert attempts.columns["trial"].tolist() == [1] * 5
    assert np.isnan(attempts.columns["reported"]).tolist() == [True] * 5
    slim = {name for name, column in attempts.columns.items() if takes_no_room(column)}
    assert slim == {*TEXTS, *ABSENT, "success", "trial", "cluster"} - {"item"}


@pytest.mark.parametrize(
    "name, first, second",
    [("trial", 1, 2), ("model", "a", "b"), ("truth", None, 1.0), ("cluster", "c", None), ("score", 1.0, NAN)],
)
def test_batches_of_one_value_each_that_differ_are_told_apart(name, first, second):
    attempts = together(samples(2, **{name: [first] * 2}), samples(1, **{name: [second]}))
    found = attempts.columns[name]
    words = attempts.words.get(name)
    if words is not None:
        assert [words[code] if code >= 0 else None for code in found] == [first, first, second]
    else:
        np.testing.assert_array_equal(found, np.array([first, first, second], dtype=float))


@given(st.lists(st.sampled_from([None, 0.0, 0.5, 1.0]), min_size=1, max_size=12), st.integers(0, 12))
def test_the_columns_are_the_same_wherever_the_batches_were_cut(values, cut):
    whole = samples(len(values), score=values)
    one, two = together(whole), together(*(part for part in (whole.slice(0, cut), whole.slice(cut)) if part.num_rows))
    for name, column in one.columns.items():
        np.testing.assert_array_equal(column, two.columns[name])
