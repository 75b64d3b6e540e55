"""Charts are templates whose holes a protocol fills."""

from __future__ import annotations

import json
import sys

import pytest

from adjudge.protocols.common import plan


@pytest.fixture
def template(tmp_path, monkeypatch):
    """A package with the one template `t`."""
    (tmp_path / "drawn" / "vega").mkdir(parents=True)
    (tmp_path / "drawn" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "drawn", raising=False)
    plan._read.cache_clear()
    return lambda content: (tmp_path / "drawn" / "vega" / "t.json").write_text(json.dumps(content))


def test_holes_become_values_and_texts(template):
    template({"title": "Rates of $model", "data": {"values": "$rows"}, "x": [0, "$top"], "kept": "a"})
    filled = plan.filled("drawn", "t", model="a $b", rows=[{"v": None}], top=2.5)
    assert filled == {"title": "Rates of a $b", "data": {"values": [{"v": None}]}, "x": [0, 2.5], "kept": "a"}


def test_a_layer_whose_condition_is_empty_is_left_out(template):
    template({"layer": [{"if": "$rows", "mark": "rule", "data": {"values": "$rows"}}, {"mark": "bar"}]})
    assert plan.filled("drawn", "t", rows=None) == {"layer": [{"mark": "bar"}]}
    shown = [{"mark": "rule", "data": {"values": [1]}}, {"mark": "bar"}]
    assert plan.filled("drawn", "t", rows=[1]) == {"layer": shown}


def test_a_hole_without_a_value_is_an_error(template):
    template({"title": "$title"})
    with pytest.raises(KeyError, match="title"):
        plan.filled("drawn", "t")


def test_a_chart_has_the_name_of_its_file_or_another(template):
    template({"mark": "bar"})
    assert plan.chart("drawn", "t") == {"name": "t", "spec": {"$schema": plan.SCHEMA, "mark": "bar"}}
    assert plan.chart("drawn", "t", "other")["name"] == "other"


def test_values_do_not_change_the_template(template):
    template({"data": {"values": "$rows"}})
    plan.filled("drawn", "t", rows=[])["data"]["values"].append(1)
    assert plan.filled("drawn", "t", rows=[2]) == {"data": {"values": [2]}}
