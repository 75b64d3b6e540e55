"""Episodes of other formats become ours, in the declared space."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adjudge.engine.evaluate import Options, evaluate
from adjudge.protocols.base import protocol
from adjudge.readers.gui import formats, mind2web
from adjudge.readers.gui.model import Screen, Shape
from adjudge.runs.run import Run


def episode(record, space="normalized", bbox="xyxy"):
    return formats.episode(msgspec.json.encode(record), space, bbox)


OLDER = {
    "id": "old-1",
    "goal": "Log in",
    "workflow_id": "login",
    "success": True,
    "steps": [
        {"t": 0.0, "observation": {}, "action": {"type": "click", "x": 0.5, "y": 0.4, "bbox": [0.4, 0.3, 0.6, 0.5]}},
        {"t": 1.0, "observation": {}, "action": {"type": "key_press", "key": "tab"}},
        {"t": 2.0, "observation": {}, "action": {"type": "click", "element_index": 7}},
        {"t": 3.0, "observation": {}, "action": {"type": "failed"}},
    ],
}

CURRENT = {
    "schema_version": "1.0.0",
    "episode_id": "new-1",
    "instruction": "Log in",
    "task_id": "login",
    "environment": "Windows 11",
    "success": True,
    "steps": [
        {
            "step_index": 0,
            "observation": {"screen_size": [1000, 500]},
            "action": {
                "type": "click",
                "coordinates": {"x": 250, "y": 100},
                "element": {"element_id": "b1", "bounds": {"x": 200, "y": 50, "width": 100, "height": 100}},
            },
        },
        {
            "step_index": 1,
            "observation": {},
            "action": {"type": "key", "key": "c", "modifiers": ["ctrl"], "normalized_coordinates": None},
        },
        {
            "step_index": 2,
            "observation": {},
            "action": {
                "type": "drag",
                "start_coordinates": {"x": 100, "y": 100},
                "normalized_start": [0.1, 0.2],
                "normalized_end": [0.5, 0.6],
            },
        },
        {"step_index": 3, "observation": {}, "action": {"type": "scroll", "scroll_direction": "down"}},
        {"step_index": 4, "observation": {}, "action": {"type": "open_app", "app_name": "Mail"}},
    ],
}


def test_openadapt_older_shape():
    found = episode(OLDER)
    assert (found.episode_id, found.scenario, found.goal) == ("old-1", "login", "Log in")
    assert [step.step for step in found.steps] == [0, 1, 2, 3]
    actions = [step.action for step in found.steps]
    assert [action.type for action in actions] == ["click", "key", "click", "fail"]
    assert (actions[0].x, actions[0].y, actions[0].element.bbox) == (0.5, 0.4, [0.4, 0.3, 0.6, 0.5])
    assert actions[1].key == "tab"
    assert actions[2].element.id == 7


@pytest.mark.parametrize(
    "space, bbox, point, box, ends",
    [
        ("pixel", "xywh", (250, 100), [200, 50, 100, 100], (100, 100, 500, 300)),
        ("pixel", "xyxy", (250, 100), [200, 50, 300, 150], (100, 100, 500, 300)),
        ("normalized", "xyxy", (0.25, 0.2), [0.2, 0.1, 0.3, 0.3], (0.1, 0.2, 0.5, 0.6)),
        ("per_mille", "xyxy", (250, 200), [200, 100, 300, 300], (100, 200, 500, 600)),
    ],
)
def test_openadapt_current_shape(space, bbox, point, box, ends):
    found = episode(CURRENT, space, bbox)
    assert (found.episode_id, found.scenario, found.platform) == ("new-1", "login", "Windows 11")
    assert found.screen == Screen(1000, 500)
    click, key, drag, scroll, app = (step.action for step in found.steps)
    assert (click.x, click.y) == pytest.approx(point)
    assert click.element.bbox == pytest.approx(box)
    assert click.element.id == "b1"
    assert key.key == "ctrl+c"
    assert (drag.x, drag.y, drag.end_x, drag.end_y) == pytest.approx(ends)
    assert (scroll.direction, app.text) == ("down", "Mail")


def test_openadapt_pixels_without_a_screen_cannot_be_normalised():
    step = {"step_index": 0, "observation": {}, "action": {"type": "click", "coordinates": {"x": 1, "y": 2}}}
    record = {"episode_id": "e", "instruction": "x", "steps": [step]}
    with pytest.raises(Shape, match="no screen_size"):
        episode(record)
    assert episode(record, "pixel").steps[0].action.x == 1


def test_openadapt_broken_records_are_refused():
    with pytest.raises(Shape, match="step 0 is not readable: the record has no `action`"):
        episode({"episode_id": "e", "instruction": "x", "steps": [{"step_index": 0}]})
    with pytest.raises(Shape, match="step 0 is not readable: the record is a whole number, expected an object"):
        episode({"id": "e", "steps": [3]})
    with pytest.raises(Shape, match=r"`action\.coordinates` is a whole number"):
        episode(
            {
                "episode_id": "e",
                "instruction": "x",
                "steps": [{"step_index": 0, "action": {"type": "click", "coordinates": 4}}],
            },
            "pixel",
        )
    sized = [{"step_index": k, "observation": {"screen_size": [9, 9 - k]}, "action": {"type": "wait"}} for k in (0, 1)]
    with pytest.raises(Shape, match="step 1 has another screen_size"):
        episode({"episode_id": "e", "instruction": "x", "steps": sized})
    sized[0]["observation"]["screen_size"] = [9]
    with pytest.raises(Shape, match="step 0: screen_size has 1 numbers, expected 2"):
        episode({"episode_id": "e", "instruction": "x", "steps": sized})
    flat = {"step_index": 0, "observation": {"screen_size": [0, 5]}, "action": CURRENT["steps"][0]["action"]}
    with pytest.raises(Shape, match="pixels on a screen of 0 × 5"):
        episode({"episode_id": "e", "instruction": "x", "steps": [flat]})
    with pytest.raises(Shape, match="step 0 is not readable: `step` is text, expected a whole number"):
        episode({"id": "e", "steps": [{"step": "first", "action": {"type": "wait"}}]})


SAMPLE = {
    "annotation_id": "a",
    "step": 0,
    "operation": "CLICK",
    "value": "",
    "bbox": [[10, 20, 30, 40]],
    "domain": "Travel",
}


def test_mind2web_samples():
    found = episode(SAMPLE, "pixel", "xywh")
    assert (found.scenario, found.platform) == ("Travel", "web")
    assert found.steps[0].action.element.bbox == [[10, 20, 30, 40]]
    with pytest.raises(Shape, match="pixels in xywh"):
        episode(SAMPLE)
    with pytest.raises(Shape, match="operation 'JUMP'"):
        episode({**SAMPLE, "operation": "JUMP"}, "pixel", "xywh")


@pytest.mark.parametrize(
    "said, value, expected",
    [
        ("CLICK", "None", ("click", None, None)),
        ("type", "x", ("type", "x", None)),
        ("SCROLL DOWN", "None", ("scroll", None, "down")),
        ("SELECT", "B", ("select", "B", None)),
    ],
)
def test_mind2web_operations(said, value, expected):
    action = mind2web.operation(said, value)
    assert (action.type, action.text, action.direction) == expected


@pytest.mark.parametrize("said", ["None", "SCROLL", "choose one of CLICK, TYPE"])
def test_what_is_no_operation_stays_text(said):
    assert mind2web.operation(said, "x") is None
    found = mind2web.prediction(msgspec.json.encode({"annotation_id": "a", "step": 2, "gpt_action": said}))
    assert (found.action, found.raw, found.step) == (None, said, 2)


def test_a_sample_without_a_predicted_operation_is_refused():
    with pytest.raises(Shape, match="has none of gpt_action"):
        mind2web.prediction(msgspec.json.encode(SAMPLE))


def test_steps_as_rows_of_parquet_are_joined_to_episodes(tmp_path, lines):
    rows = [
        {"episode_id": "b", "step": 1, "type": "done", "scenario": None},
        {
            "episode_id": "b",
            "step": 0,
            "type": "click",
            "x": 0.5,
            "y": 0.5,
            "scenario": "s",
            "bbox": [0.4, 0.4, 0.6, 0.6],
        },
        {"episode_id": "a", "step": 0, "type": "type", "text": "hi", "element_id": "3"},
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), tmp_path / "steps.parquet")
    said = [
        {"episode_id": "b", "step": 0, "raw": "CLICK(x=0.5, y=0.5)"},
        {"episode_id": "b", "step": 1, "raw": "DONE()"},
        {"episode_id": "a", "step": 0, "raw": 'TYPE("hi")'},
    ]
    config = {
        "episodes": [str(tmp_path / "steps.parquet")],
        "predictions": [lines(tmp_path / "p.jsonl", said)],
        "space": "normalized",
        "bbox": "xyxy",
    }
    run = Run(evaluate(protocol("gui"), config, Options(out=tmp_path / "run")))
    found = run.metrics["metrics"]
    assert (found["num_episodes"], found["num_steps"], found["episode_success_rate"]) == (2, 3, 1.0)
    assert found["bbox_hit_rate"] == 1.0
    assert run.metrics["metrics_by_scenario"]["s"]["num_steps"] == 2


_SCHEMA = pa.schema(
    [
        ("episode_id", pa.string()),
        ("step", pa.int64()),
        ("type", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("text", pa.string()),
        ("scenario", pa.string()),
        ("element_id", pa.string()),
        ("bbox", pa.list_(pa.float64())),
    ]
)
