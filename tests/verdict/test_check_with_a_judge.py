"""The user's own rules under a language model: the same checks, stored and replayed as in flight."""

from pathlib import Path

import pytest

import adjudge
from adjudge.protocols.base import protocol


@pytest.mark.parametrize("model", ["faithful", "strict", "lenient"])
def test_a_judge_over_rules_of_ones_own(judge_url, tmp_path, model):
    config = protocol("check").example(tmp_path, 0) | {"resamples": 100}
    options = {"url": judge_url, "cache": str(tmp_path / "cache")}
    rules = adjudge.evaluate("check", config, out=tmp_path / "rules", limit=20, report=False)
    judged = {**config, "agent": f"llm:{model}", "agent_options": options | {"validation": None}}
    judged["rule_file"] = _without_gates(config["rule_file"], tmp_path)
    run = adjudge.evaluate("check", judged, out=tmp_path / "run", limit=20, report=False)
    adjudge.verify(run)
    verdicts = [one.samples.column("verdict").to_pylist() for one in (rules, run)]
    stricter = run.estimates["agent_stricter", ""].value
    assert (verdicts[0] == verdicts[1]) == (stricter == 0.0)
    assert ("agent_refused.laxer", "") in run.estimates if model == "lenient" else stricter is not None


def _without_gates(path, folder):
    """The same rules without gates, to which a judge that nobody validated may not be held."""
    kept, skipping = [], False
    for line in Path(path).read_text(encoding="utf-8").split("\n"):
        skipping = line.startswith("gates:") or (skipping and (line.startswith((" ", "-")) or not line.strip()))
        if not skipping:
            kept.append(line)
    target = folder / "rules.yaml"
    target.write_text("\n".join(kept), encoding="utf-8")
    return str(target)
