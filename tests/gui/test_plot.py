"""Pictures: null and 0 are two different things, and the SVG says so; a file that is not there is refused."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest

from adjudge.errors import ConfigError, InputError
from adjudge.protocols.gui.pictures import comparison, overlay

SVG = "{http://www.w3.org/2000/svg}"


def document(**metrics):
    return {"config_path": "c", "backend": "b", "metrics": metrics}


@pytest.fixture
def drawn(tmp_path, command):
    """The SVG of three files, of which one has 0, one null and one the sentinel of a metric no longer computed."""
    zero = {"action_type_accuracy": 0.0, "action_type_accuracy_ci": [0.0, 0.2], "mean_coord_error": 0.04}
    (tmp_path / "zero.json").write_text(json.dumps(document(**zero)))
    (tmp_path / "null.json").write_text(json.dumps(document(action_type_accuracy=None, mean_coord_error=None)))
    (tmp_path / "gone.json").write_text(json.dumps(document(action_type_accuracy=-1.0, mean_coord_error=-1)))
    files = [tmp_path / name for name in ("zero.json", "null.json", "gone.json")]
    result = command(
        "gui", "plot", "--files", *files, "--labels", "Zero", "Null", "Gone", "--output", tmp_path / "c.svg"
    )
    assert result.return_value == 0, result.exception
    return ET.parse(tmp_path / "c.svg").getroot()  # noqa: S314 -- our own file


def texts(root):
    return [node.text for node in root.iter(f"{SVG}text") if node.text]


def test_zero_and_null_are_told_apart(drawn):
    found = texts(drawn)
    assert found.count("n/a") == 4
    # The label of the bar of no height; axis labels are written 0.0.
    assert found.count("0") == 1
    assert found.count("0.04") >= 1
    assert {"Zero", "Null", "Gone"} <= set(found)


def test_only_what_has_a_value_has_a_mark(drawn):
    labels = [node.get("aria-label") or "" for node in drawn.iter(f"{SVG}path")]
    bars = [label for label in labels if re.search(r"file: (Zero|Null|Gone)", label)]
    assert any("Zero" in label for label in bars)
    assert not any("Null" in label or "Gone" in label for label in bars)


def test_lower_is_better_is_marked(drawn):
    found = texts(drawn)
    assert found.count("↓ lower is better") == 1
    assert found.count("↑ higher is better") == 1


def test_error_bars_stand_where_intervals_do():
    spec = comparison(
        [("a", document(click_hit_rate=0.5, click_hit_rate_ci=[0.4, 0.6])), ("b", document(click_hit_rate=0.5))]
    )
    [panel] = spec["concat"]
    assert [row["low"] for row in panel["data"]["values"]] == [0.4, None]


@pytest.mark.parametrize("ending, magic", [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE html>")])
def test_other_endings(tmp_path, command, ending, magic):
    (tmp_path / "a.json").write_text(json.dumps({"action_type_accuracy": 0.5}))
    out = tmp_path / f"c.{ending}"
    assert command("gui", "plot", "--files", tmp_path / "a.json", "-o", out).return_value == 0
    assert out.read_bytes().lstrip()[: len(magic)] == magic
    if ending == "html":
        assert b"https://cdn" not in out.read_bytes()


def test_refusals(tmp_path, command):
    (tmp_path / "a.json").write_text(json.dumps({"action_type_accuracy": 0.5}))
    wrong = command("gui", "plot", "--files", tmp_path / "a.json", "-o", tmp_path / "c.gif")
    assert isinstance(wrong.exception, ConfigError)
    assert ".gif" in str(wrong.exception)
    labels = command("gui", "plot", "--files", tmp_path / "a.json", "--labels", "a", "b", "-o", tmp_path / "c.png")
    assert "2 labels for 1 files" in str(labels.exception)
    absent = command("gui", "plot", "--files", tmp_path / "a.json", tmp_path / "b.json", "-o", tmp_path / "c.png")
    assert isinstance(absent.exception, InputError)
    assert "b.json: there is no such file" in str(absent.exception)
    metric = command(
        "gui", "plot", "--files", tmp_path / "a.json", "--metric", "action_type_acuracy", "-o", tmp_path / "c.png"
    )
    assert isinstance(metric.exception, ConfigError)
    assert "Did you mean 'action_type_accuracy'?" in str(metric.exception)
    assert not (tmp_path / "c.png").exists()


def test_labels_that_differ_stay_different(tmp_path, command):
    labels = [f"a very long label that goes on and on until its last word which is {word}" for word in ("one", "two")]
    for name in "ab":
        (tmp_path / f"{name}.json").write_text(json.dumps(document(action_type_accuracy=0.5)))
    files = [tmp_path / f"{name}.json" for name in "ab"]
    command("gui", "plot", "--files", *files, "--labels", *labels, "-o", tmp_path / "c.svg")
    root = ET.parse(tmp_path / "c.svg").getroot()  # noqa: S314 -- our own file
    assert set(labels) <= set(texts(root))


def test_overlay_draws_boxes_targets_and_points(judge, tmp_path, command):
    click = {"type": "click", "element": {"id": 1, "bbox": [0.1, 0.1, 0.3, 0.3]}}
    run = judge(
        {"e": [click, click, {"type": "done"}]}, {"e": ["CLICK(x=0.2, y=0.2)", "CLICK(x=0.8, y=0.8)", "DONE()"]}
    )
    boxes, lines, targets, points, _ = (layer["data"]["values"] for layer in overlay(run, "e")["layer"])
    assert [(point["step"], point["state"]) for point in points] == [("0", "hit"), ("1", "missed")]
    assert (len(boxes), len(lines), len(targets)) == (2, 2, 2)
    assert targets[0]["x"] == pytest.approx(0.2)
    result = command("gui", "overlay", run.path, "e", "-o", tmp_path / "o.svg")
    assert result.return_value == 0
    assert "1 of 3" not in (tmp_path / "o.svg").read_text()
    assert "2 of 3 steps fully correct" in (tmp_path / "o.svg").read_text()
    unknown = command("gui", "overlay", run.path, "f", "-o", tmp_path / "o.svg")
    assert "no episode 'f'; the first are e" in str(unknown.exception)


def test_the_strip_chart_has_a_cell_a_step(judge):
    done = {"type": "done"}
    run = judge({"a": [done, done], "b": [done]}, {"a": ["DONE()", "?"], "b": ["WAIT()"]})
    [strip] = [chart["spec"] for chart in run.charts if chart["name"] == "episodes"]
    rows = [(row["episode"], row["step"], row["outcome"]) for row in strip["data"]["values"]]
    assert rows == [("a", 0, "correct"), ("a", 1, "unparsed"), ("b", 0, "wrong type")]


def test_the_overlay_names_the_points_it_cannot_draw(judge):
    click = {"type": "click", "x": 0.5, "y": 0.5}
    run = judge({"e": [click, click, click]}, {"e": ["CLICK(x=512, y=3)", *["CLICK(x=0.5, y=0.5)"] * 2]})
    spec = overlay(run, "e")
    assert spec["title"]["subtitle"][-1] == "outside the space and not drawn: step 0"
    assert len(spec["layer"][3]["data"]["values"]) == 2
