"""The columns give what judging one object at a time gives."""

from __future__ import annotations

import pytest
from benchmarks import gui, gui_objects


@pytest.mark.parametrize("text", [True, False], ids=["text", "actions"])
@pytest.mark.parametrize("seed", [1, 2])
def test_equal_numbers(tmp_path, text, seed):
    files = gui.make(tmp_path, 2000, text=text, seed=seed)
    theirs = gui_objects.evaluate(*files, tmp_path / "objects.jsonl")
    ours = gui.columnar(*files, tmp_path / "run")
    assert 0.1 < theirs["click_hit_rate"] < 1
    assert theirs["missing_steps"] > 10
    gui.check_equal(ours, theirs)
    with pytest.raises(AssertionError):
        gui.check_equal(ours, {**theirs, "click_hit_rate": theirs["click_hit_rate"] + 1e-6})
