"""The columns give what judging one object at a time gives."""

from __future__ import annotations

import pytest
from benchmarks import data, gui_objects
from benchmarks.measure import same

import adjudge


@pytest.mark.parametrize("kind", ["gui-texts", "gui-actions"])
@pytest.mark.parametrize("seed", [1, 2])
def test_equal_numbers(tmp_path, kind, seed):
    episodes, predictions = data.write(kind, 2000, tmp_path, seed=seed, digits="all")
    theirs = gui_objects.evaluate(episodes, predictions, tmp_path / "objects.jsonl")
    config = {"episodes": [str(episodes)], "predictions": [str(predictions)], "space": "normalized", "bbox": "xyxy"}
    ours = adjudge.evaluate("gui", config, out=tmp_path / "run", report=False).metrics["metrics"]
    assert 0.1 < theirs["click_hit_rate"] < 1
    assert theirs["missing_steps"] > 10
    assert same(ours, theirs)
    assert not same(ours, {**theirs, "click_hit_rate": theirs["click_hit_rate"] + 1e-6})
