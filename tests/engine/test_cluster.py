"""A Dask cluster gives the bytes of a serial run, also when a worker is lost in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

import adjudge
from adjudge.cli.main import main
from adjudge.engine import cluster as engine_cluster
from adjudge.engine import split
from adjudge.protocols.base import protocol

pytest.importorskip("distributed", reason="needs the `cluster` extra")


@contextmanager
def processes(*commands):
    """Real processes, ended by their ids when the test is over."""
    started = []
    try:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.extend(subprocess.Popen(command, **quiet) for command in commands)
        yield started
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def dask(*words):
    return [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]]


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers on loopback; gives the address and the workers."""
    told = tmp_path / "scheduler.json"
    scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(told))
    worker = dask(
        "worker",
        "--scheduler-file",
        str(told),
        "--host",
        "127.0.0.1",
        "--nthreads",
        "1",
        "--no-nanny",
        "--no-dashboard",
    )
    with processes(scheduler):
        _wait(lambda: _told(told))
        address = _told(told)["address"]
        with processes(worker, worker) as workers:
            _wait_for_workers(address, 2)
            yield address, workers


def _told(path):
    """What the scheduler wrote, or None while it is at it."""
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def _wait(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "the cluster did not start"
        time.sleep(0.05)


def _wait_for_workers(address, count):
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)


def content(run):
    return {
        path.relative_to(run.path).as_posix(): path.read_bytes()
        for path in sorted(run.path.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }


@pytest.mark.parametrize("name", ["flight", "consistency"])
def test_a_cluster_that_loses_a_worker_gives_the_bytes_of_a_serial_run(name, cluster, tmp_path, monkeypatch):
    address, workers = cluster
    monkeypatch.setattr(split, "ROWS_A_PARTITION", 8)  # many partitions, so that there is a middle
    config = protocol(name).example(tmp_path / "data", 0)
    serial = adjudge.evaluate(name, config, out=tmp_path / "serial", report=False)
    done = []

    def kill_one(rows, total):
        done.append(rows)
        if len(done) == 3:
            os.kill(workers[0].pid, signal.SIGKILL)

    from adjudge.engine.evaluate import Options, evaluate

    path = evaluate(protocol(name), config, Options(out=tmp_path / "cluster", cluster=address, on_progress=kill_one))
    assert workers[0].wait(10) == -signal.SIGKILL
    assert len(done) > 5
    assert content(adjudge.load_run(path)) == content(serial)
    assert adjudge.verify(path).problems == []


def test_an_address_without_a_scheduler_is_an_error_a_user_can_read(tmp_path, monkeypatch):
    from adjudge.engine import cluster as module

    monkeypatch.setattr(module, "_PATIENCE", "1s")
    config = protocol("flight").example(tmp_path / "data", 0)
    with pytest.raises(adjudge.ConfigError, match=r"no Dask scheduler at tcp://127\.0\.0\.1:9"):
        adjudge.evaluate("flight", config, out=tmp_path / "run", cluster="tcp://127.0.0.1:9")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("encrypted", [True, False])
def test_a_local_cluster_talks_tls_or_warns(tmp_path, monkeypatch, encrypted):
    if encrypted:
        pytest.importorskip("cryptography", reason="without it there is no TLS, and a warning")
    records = [{"id": f"s{k}", "label": "fake", "prediction": "fake", "confidence": 0.5} for k in range(3)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    addresses = []
    opened = engine_cluster.Cluster.__enter__

    def watched(self):
        cluster = opened(self)
        addresses.append(self._client.scheduler.address)
        return cluster

    monkeypatch.setattr(engine_cluster.Cluster, "__enter__", watched)
    monkeypatch.setattr(engine_cluster, "encrypted", lambda: encrypted)
    words = ["triage", "--results", str(tmp_path / "r.jsonl"), "--cluster", "local", "--workers", "1", "--quiet"]
    done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "run"), "--no-report"], standalone_mode=False)
    assert done.exception is None, done.exception
    assert [address.partition(":")[0] for address in addresses] == ["tls" if encrypted else "tcp"]
    assert addresses[0].split("//")[1].startswith("127.0.0.1:")
    assert ("listens on this machine without credentials" in done.stderr) != encrypted
