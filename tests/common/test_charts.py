from adjudge.protocols.common.charts import SCHEMA, chart, intervals, layer, tooltip


def test_a_layer_has_its_own_rows_and_filter_only_where_asked():
    assert layer("bar", {"x": 1}, color="red") == {"mark": {"type": "bar", "color": "red"}, "encoding": {"x": 1}}
    assert layer("bar", {}, data=[{"n": 1}], where="datum.n > 0") == {
        "data": {"values": [{"n": 1}]},
        "transform": [{"filter": "datum.n > 0"}],
        "mark": {"type": "bar"},
        "encoding": {},
    }


def test_intervals_are_a_line_and_a_point_on_one_axis():
    line, point = intervals({"type": "quantitative"}, "value", "blue", tooltip=tooltip("n"))
    assert line["encoding"] == {"x": {"type": "quantitative", "field": "low"}, "x2": {"field": "high"}}
    assert point["encoding"] == {"x": {"type": "quantitative", "field": "value"}, "tooltip": [{"field": "n"}]}


def test_a_chart_has_the_name_by_which_it_is_asked_for():
    assert chart("rates", "Rates", width=3) == {
        "name": "rates",
        "spec": {"$schema": SCHEMA, "title": "Rates", "width": 3},
    }
