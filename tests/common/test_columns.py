import numpy as np
import pyarrow as pa
import pytest

from adjudge.protocols.common.columns import WORD, coded, codes, floats, numbered

WORDS = ("yes", "no", "maybe")


@pytest.mark.parametrize("width, index", [(np.int8, pa.int8()), (np.int32, pa.int32())])
def test_codes_become_words_and_codes_again(width, index):
    values = np.array([2, -1, 0, 1, 1])
    column = coded(values, WORDS, width)
    assert column.to_pylist() == ["maybe", None, "yes", "no", "no"]
    assert column.type.index_type == index
    assert codes(pa.table({"said": column}), "said", WORDS).tolist() == values.tolist()


def test_a_word_that_is_not_listed_has_no_code():
    table = pa.table({"said": pa.array(["no", "never", None])})
    assert codes(table, "said", WORDS).tolist() == [1, -1, -1]


def test_codes_follow_the_words_and_not_the_stored_dictionary():
    column = pa.array(["maybe", "yes"]).cast(WORD)
    assert codes(pa.table({"said": column}), "said", WORDS).tolist() == [2, 0]


def test_null_is_nan():
    values = floats(pa.table({"x": pa.array([1, None], pa.int64())}), "x")
    assert values[0] == 1.0
    assert np.isnan(values[1])


def test_keys_of_several_columns_are_numbered_in_their_order():
    columns = [pa.chunked_array([["b", "a"], ["ä", "b"]]), pa.chunked_array([["", "a"]])]
    names, places = numbered(columns)
    assert names.to_pylist() == ["", "a", "b", "ä"]
    assert places.tolist() == [2, 1, 3, 2, 0, 1]


def test_no_keys_have_no_numbers():
    names, places = numbered([pa.chunked_array([], pa.string())])
    assert (len(names), places.size) == (0, 0)
