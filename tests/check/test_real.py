"""Rule files for public data that nobody here wrote: what they find is what is known of the data."""

from __future__ import annotations

from pathlib import Path

import pytest

import adjudge
from adjudge.engine.verify import verify

RULES = Path(__file__).parent / "real"
CASES = {
    "triage": ("triage_df3/gpt52_visiononly.jsonl", {}, {"verdict.decided": (39, 461)}, 500),
    "web_actions": (
        "gui_mind2web/cross_task_plan.jsonl",
        {"columns": {"id": "action_uid"}},
        {"action.right": (982, 355)},
        1332,
    ),
    "preferences": (
        "consistency_pandalm/testset-v1.json",
        {"columns": {"id": "idx"}},
        {"people.majority": (999, 0)},
        992,
    ),
    "perturbed_math": (
        "logs_lm_eval/samples_math_perturbed_full_2026-01-21T03-44-18.458309.jsonl",
        {"columns": {"id": "doc_id"}},
        {"log.scored": (10, 0), "reply.says": (2, 8)},
        10,
    ),
    "taxi_scores": (
        "anomaly_nab/results/numenta/realKnownCause/numenta_nyc_taxi.csv",
        {"match": "line"},
        {"detector.quiet": (9271, 14), "reward.paid": (9285, 0)},
        10_320,
    ),
    "arc_samples": ("logs_inspect/data_arc_sonnet.json", {"json_path": "$.samples"}, {"score.right": (5, 0)}, 5),
}


@pytest.mark.realdata
@pytest.mark.parametrize("name", CASES)
def test_what_is_known_of_the_data_is_found(shared_data, tmp_path, name):
    file, settings, known, passed = CASES[name]
    config = {"outputs": [str(shared_data / file)], "rule_file": str(RULES / f"{name}.yaml"), **settings}
    run = adjudge.evaluate("check", config, out=tmp_path / "run", report=False)
    assert {code: (run.metrics["rules"][code]["pass"], run.metrics["rules"][code]["fail"]) for code in known} == known
    assert run.metrics["buckets"]["all"]["passed"] == passed
    assert verify(run).exit_code == 0
