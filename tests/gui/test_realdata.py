"""Public evaluation files and trajectories, with the counts that are known of them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from adjudge.engine.evaluate import Options, evaluate
from adjudge.engine.verify import verify
from adjudge.protocols.base import protocol
from adjudge.protocols.gui.evalfile import denominator, load, metrics_of, migrate, numerator, problems, shape
from adjudge.protocols.gui.pictures import comparison, write_picture
from adjudge.readers.gui import formats
from adjudge.readers.gui.model import TYPES, SingleStep
from adjudge.runs.run import Run

pytestmark = pytest.mark.realdata

EVALUATIONS = {
    "eval_qwen2_5_login": ("nested", 0, None),
    "eval_qwen3_2b_base_login": ("nested", 9, None),
    "eval_qwen3_2b_base_login_hardened": ("v1.0", 47, 6),
    "eval_qwen3_2b_ft_login_hardened": ("v1.0", 116, 68),
}


@pytest.fixture
def openadapt(shared_data):
    return shared_data / "gui_openadapt"


@pytest.mark.parametrize("name", EVALUATIONS)
def test_openadapt_files_validate_or_migrate_and_their_counts_are_whole(openadapt, name):
    expected, right, hits = EVALUATIONS[name]
    document = load(str(openadapt / f"{name}.json"))
    assert shape(document) == expected
    assert problems(document) == []
    assert problems(migrate(document)) == []
    metrics = metrics_of(document)
    found = {
        metric: numerator(metrics[metric], n)
        for metric in ("action_type_accuracy", "click_hit_rate", "episode_success_rate")
        if metrics.get(metric) is not None and (n := denominator(metric, metrics))
    }
    assert found["action_type_accuracy"] == right
    assert found.get("click_hit_rate") == hits
    assert None not in found.values()


def test_plotting_them_shows_what_is_null(openadapt, tmp_path):
    files = [(name, load(str(openadapt / f"{name}.json"))) for name in EVALUATIONS]
    write_picture(comparison(files), tmp_path / "c.svg")
    texts = [node.text for node in ET.parse(tmp_path / "c.svg").iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314 -- our own file
    # Two files without click_hit_rate, one with a null mean_coord_error.
    assert texts.count("n/a") == 3
    assert "0.518" in texts
    assert "no file" not in texts


def test_openadapt_episodes_of_the_older_shape_are_read(openadapt):
    [record] = json.loads((openadapt / "sample_data.json").read_text())
    found = formats.episode(json.dumps(record).encode(), "normalized", "xyxy")
    assert not isinstance(found, SingleStep)
    assert (found.episode_id, found.scenario) == ("episode_001", "login_workflow")
    assert [step.action.type for step in found.steps] == ["click", "type", "click", "type", "click", "done"]
    assert (found.steps[4].action.x, found.steps[4].action.y) == (0.5, 0.7)


def test_every_type_of_the_published_episode_schema_is_known(openadapt):
    schema = json.loads((openadapt / "episode.schema.json").read_text())
    assert set(schema["$defs"]["ActionType"]["enum"]) <= set(TYPES)


def test_mind2web_end_to_end(shared_data, tmp_path):
    data = shared_data / "gui_mind2web"
    config = {
        "episodes": [str(data / "cross_task_blocks.jsonl")],
        "predictions": [str(data / "cross_task_plan.jsonl")],
        "space": "pixel",
        "bbox": "xywh",
    }
    run = Run(evaluate(protocol("gui"), config, Options(out=tmp_path / "run")))
    found = run.metrics["metrics"]
    assert (found["num_steps"], found["num_episodes"]) == (1338, 177)
    assert (found["missing_steps"], found["unparsed_steps"]) == (1, 5)
    assert found["action_type_accuracy"] == 982 / 1338
    assert found["success_by_types_only"] == 26 / 177
    assert found["mean_coord_error"] is None
    assert found["bbox_hit_rate"] is None
    assert found["click_steps_without_box"] == 80
    assert (found["click_steps"], found["coord_error_count"]) == (1121, 0)
    why = {item["name"]: item["why"] for item in run.metrics["estimates"] if item["slice"] == ""}
    assert why["bbox_hit_rate"] == "no prediction of the file has a point"
    boxes = run.samples.column("boxes").to_pylist()
    assert sum(box is not None and len(box) > 4 for box in boxes) == 32
    assert verify(run).problems == []
