"""The simulated clock: waiting takes no time, is measured as if it had, and is the same each time."""

import asyncio
import json
import time
from datetime import UTC, datetime

import pytest

from adjudge.collect.clock import Clock, SimulatedClock
from adjudge.collect.dataset import Dataset
from adjudge.collect.output import Output
from adjudge.collect.runner import Runner
from adjudge.collect.settings import Settings
from adjudge.collect.subject import Reply, Subject
from adjudge.provenance.redact import Redactor

START = datetime(2026, 1, 1, tzinfo=UTC)


class Sleeper(Subject):
    """Sleeps as long as the sample says."""

    model = "sleeper"

    def identity(self):
        return {"subject": "sleeper"}

    async def ask(self, request):
        await asyncio.sleep(request.sample["text"])
        return Reply(prediction="real")


@pytest.fixture
def run(tmp_path, dataset):
    def collect(name, sleeps, clock, **settings):
        path = tmp_path / name
        data = Dataset(str(dataset(sleeps)))
        with Output(path, Redactor(()), resume=False) as output:
            Runner(data, [Sleeper()], Settings(**settings), output, clock=clock).run()
        return path.read_bytes()

    return collect


def test_hours_are_measured_and_not_waited_for(run):
    began = time.perf_counter()
    lines = run("a.jsonl", [7200.0, 3600.0, 1.5], SimulatedClock(START, tick=0.0), workers=3, timeout=5000.0)
    assert time.perf_counter() - began < 30.0
    records = {record["id"]: record for record in map(json.loads, lines.splitlines())}
    assert records["s00001"]["latency_seconds"] == pytest.approx(3600.0)
    assert records["s00002"]["latency_seconds"] == pytest.approx(1.5)
    late = records["s00000"]
    assert (late["error_type"], late["latency_seconds"]) == ("timeout", None)
    assert late["timings"]["total_seconds"] == pytest.approx(5000.0)
    assert {record["timestamp"] for record in records.values()} == {"2026-01-01T00:00:00.000+00:00"}
    assert {record["run_config"]["clock"] for record in records.values()} == {"simulated"}


def test_records_stand_in_the_order_in_which_they_end_and_are_the_same_each_time(run):
    sleeps = [30.0, 10.0, 20.0, 5.0]
    first = run("a.jsonl", sleeps, SimulatedClock(START), workers=2)
    assert [json.loads(line)["id"] for line in first.splitlines()] == ["s00001", "s00000", "s00002", "s00003"]
    assert run("b.jsonl", sleeps, SimulatedClock(START), workers=2) == first


def test_the_usual_clock_is_not_named(run):
    (record,) = map(json.loads, run("a.jsonl", [0.01], Clock()).splitlines())
    assert "clock" not in record["run_config"]
    assert 0.01 <= record["latency_seconds"] < 5.0
