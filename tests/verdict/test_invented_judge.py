"""The demo's invented judge: recorded, replayed, validated; everything offline."""

import json

from click.testing import CliRunner

import adjudge
from adjudge.cli.demo import demo


def test_the_demo_records_replays_and_validates_an_invented_judge(tmp_path):
    done = CliRunner().invoke(demo, ["--protocol", "judge", "--out", str(tmp_path), "--quiet"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    recorded, run = (adjudge.load_run(tmp_path / "judge" / name) for name in ("recorded", "run"))
    adjudge.verify(recorded)
    adjudge.verify(run)
    assert recorded.samples.column("verdict").to_pylist() == run.samples.column("verdict").to_pylist()
    assert {"agent_refused.no_json", "agent_refused.unknown_atom", "agent_refused.laxer"} <= {
        n for n, _ in run.estimates
    }
    assert 0 < run.estimates["agent_stricter", ""].value < 0.1
    assert 0.9 < run.estimates["agent_unanimous", ""].value < 1
    validation = json.loads((run.path / "validation.json").read_text())
    assert validation["people"]["kappa"]["low"] > 0.6
