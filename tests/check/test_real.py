"""Rule files for public data that nobody here wrote: what they find is what is known of the data."""

from __future__ import annotations

from pathlib import Path

import pytest

import adjudge
from adjudge.engine.verify import verify

RULES = Path(__file__).parent / "real"
CASES = {
    "triage": ("triage_df3/gpt52_visiononly.jsonl", {}, {"verdict.decided": (39, 461)}, 500),
    "web_actions": ("gui_mind2web/cross_task_plan.jsonl", {"id": "action_uid"}, {"action.right": (982, 355)}, 1332),
    "preferences": ("consistency_pandalm/testset-v1.json", {"id": "idx"}, {"people.majority": (999, 0)}, 992),
}


@pytest.mark.realdata
@pytest.mark.parametrize("name", CASES)
def test_what_is_known_of_the_data_is_found(shared_data, tmp_path, name):
    file, columns, known, passed = CASES[name]
    config = {"outputs": [str(shared_data / file)], "rule_file": str(RULES / f"{name}.yaml"), "columns": columns}
    run = adjudge.evaluate("check", config, out=tmp_path / "run", report=False)
    assert {code: (run.metrics["rules"][code]["pass"], run.metrics["rules"][code]["fail"]) for code in known} == known
    assert run.metrics["buckets"]["all"]["passed"] == passed
    assert verify(run).exit_code == 0
