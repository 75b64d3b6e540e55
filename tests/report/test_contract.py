"""The stamp, the checklist and the negative results stand in every shape of the report."""

from __future__ import annotations

import json

import numpy as np
import pytest

import adjudge
from adjudge.report.contracts import contracts
from adjudge.report.html import render
from adjudge.report.markdown import markdown
from adjudge.report.text import summary


@pytest.fixture
def judged(tmp_path):
    """A run over scores that see one attack and miss the other."""

    def run(**options):
        random = np.random.default_rng(0)
        lines = ["flight,t,score,label,attack,magnitude,seed"]
        for flight, attack in [("v", ""), *((f, a) for f in ("a", "b") for a in ("", "bias", "drift"))]:
            for t in range(200):
                label = int(bool(attack) and 100 <= t < 150)
                score = random.random() + (2.0 * label if attack == "bias" else 0.0)
                lines.append(f"{flight},{t},{score},{label},{attack},{'2.0,1' if attack else ','}")
        (tmp_path / "s.csv").write_text("\n".join(lines) + "\n")
        splits = {"train_flights": ["t"], "val_flights": ["v"], "test_flights": ["a", "b"]}
        (tmp_path / "splits.json").write_text(json.dumps(splits))
        config = {"scores": str(tmp_path / "s.csv"), "splits": str(tmp_path / "splits.json"), "resamples": 500}
        return adjudge.evaluate("anomaly", config | options, out=tmp_path / "run", force=True)

    return run


EXPECTED = (
    "Worst attack: drift; best: bias.",
    "Mostly missed: drift of 2, recall 0 %.",
    "Smallest detectable drift: none of those tried (up to 2) (recall 50 %), none of those tried (up to 2) (recall 90 %).",
    "Smallest detectable bias: at most 2 (smallest tried) (recall 50 %), at most 2 (smallest tried) (recall 90 %).",
    "False alarms under a shifted condition: unknown: no shifted condition in the data.",
)


def test_negative_results_are_in_every_shape(judged):
    run = judged()
    (found,) = contracts(run)
    assert set(EXPECTED) <= set(found["negative"])
    page, text, mark = render(run).decode(), summary(run).replace("\n    ", " "), markdown(run)
    for line in EXPECTED:
        assert line in page
        assert line in text
        assert line.split(" (")[0] in mark
    assert "VALID" in text.splitlines()[2]
    assert "one-command reproduction tested" in page
    assert "one-command reproduction tested" in mark


def test_invalid_run_says_so_first_and_shows_no_numbers(judged):
    run = judged(threshold=0.5)
    text, page, mark = summary(run), render(run).decode(), markdown(run)
    assert text.splitlines()[2].startswith("INVALID")
    assert "violates threshold.clean_val_only: the threshold 0.5 was given from outside" in text
    assert "the contract was violated, so there is no result" in page
    assert "**❌ INVALID: the contract was violated" in mark
    assert "Worst attack" not in text + page + mark
