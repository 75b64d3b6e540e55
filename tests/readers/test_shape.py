"""Columns by the user's own names, and records inside one object."""

from __future__ import annotations

import json

import pytest

from adjudge.errors import ConfigError, InputError
from adjudge.readers.records import columns_of, shape_of


def applied(record, json_path=None, role="results", **columns):
    shape = shape_of(role, json_path, {name.replace("__", ":"): key for name, key in columns.items()})
    return [json.loads(each) for each in shape.applied(json.dumps(record).encode(), "f.json", 3)], shape


@pytest.mark.parametrize(
    "record, columns, renamed",
    [
        ({"nr": 1, "x": 2}, {"id": "nr"}, {"id": 1, "x": 2}),
        ({"q": {"no": 1, "of": 9}, "x": 2}, {"id": "q.no"}, {"id": 1, "q": {"of": 9}, "x": 2}),
        ({"q": {"no": 1}}, {"id": "q.no"}, {"id": 1}),
        ({"q.no": 1, "q": {"no": 2}}, {"id": "q.no"}, {"id": 1, "q": {"no": 2}}),
        ({"a": 1, "b": 2}, {"a": "b", "b": "a"}, {"a": 2, "b": 1}),
        ({"x": 1}, {"id": "nr"}, {"x": 1}),
        ({"q": 5}, {"id": "q.no"}, {"q": 5}),
        ({"hit": True}, {"cache.hit": "hit"}, {"cache": {"hit": True}}),
        ({"nr": None}, {"id": "nr"}, {"id": None}),
    ],
)
def test_keys_get_our_names(record, columns, renamed):
    assert applied(record, **columns)[0] == [renamed]


def test_a_column_of_one_role_is_not_for_another():
    assert applied({"nr": 1}, role="manifest", results__id="nr")[0] == [{"nr": 1}]
    assert applied({"nr": 1}, role="results", results__id="nr")[0] == [{"id": 1}]


def test_how_often_a_key_was_there_is_counted():
    _, shape = applied({"nr": 1}, id="nr", label="truth")
    assert shape.seen == {"nr": 1}


@pytest.mark.parametrize("path", ["$.a.b", "a.b"])
def test_records_inside_objects(path):
    assert applied({"a": {"b": [{"nr": 1}, {"nr": 2}]}}, path, id="nr")[0] == [{"id": 1}, {"id": 2}]
    assert applied({"a": {"b": {"nr": 3}}}, path)[0] == [{"nr": 3}]


def test_a_way_that_leads_nowhere_names_what_is_there():
    with pytest.raises(InputError, match=r"f\.json:3: has no 'b' on the way \$\.a\.b \(--json-path\); it has c, d"):
        applied({"a": {"c": 1, "d": 2}}, "$.a.b")


@pytest.mark.parametrize("word", ["id", "=x", "id="])
def test_a_word_that_is_no_column(word):
    with pytest.raises(ConfigError, match="is not OURS=THEIRS"):
        columns_of([word])
