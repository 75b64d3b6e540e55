"""A run that was killed goes on where it was, and equals one that was not."""

import os
import signal
import subprocess
import sys
import time

import pytest

import adjudge

ADJUDGE = [sys.executable, "-c", "from adjudge.cli.start import run; run()"]


def flags(files, judge_url, tmp_path, name):
    return [
        *ADJUDGE,
        "flight",
        "--task=S1",
        "--outputs",
        *files["outputs"][:3],
        "--reference",
        *files["reference"],
        "--agent=llm:slow",
        f"--agent-url={judge_url}",
        "--votes=3",
        f"--agent-cache={tmp_path / 'cache'}",
        f"--out={tmp_path / name}",
        "--agent-concurrency=24",
        "--no-report",
        "--quiet",
    ]


def answers(tmp_path):
    return sum(1 for _ in (tmp_path / "cache").rglob("*.json")) if (tmp_path / "cache").exists() else 0


def interrupted(command, tmp_path, number):
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while answers(tmp_path) < 100 and time.monotonic() < end:
        time.sleep(0.05)
    os.kill(process.pid, number)
    words = process.communicate(timeout=30)[1]
    return process.returncode, words


@pytest.mark.parametrize("number, code", [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_a_killed_run_goes_on_and_equals_an_uninterrupted_one(files, judge_url, tmp_path, number, code):
    ended, words = interrupted(flags(files, judge_url, tmp_path, "resumed"), tmp_path, number)
    assert ended == code
    if number == signal.SIGINT:
        assert "goes on from there" in words
        assert "Traceback" not in words
    assert not (tmp_path / "resumed").exists()
    before = answers(tmp_path)
    assert before >= 100
    assert subprocess.run(flags(files, judge_url, tmp_path, "resumed"), check=False).returncode == 0
    assert answers(tmp_path) > before
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = [
        word.replace(str(tmp_path / "cache"), str(elsewhere / "cache"))
        for word in flags(files, judge_url, tmp_path, "whole")
    ]
    assert subprocess.run(command, check=False).returncode == 0
    resumed, whole = (adjudge.load_run(tmp_path / name) for name in ("resumed", "whole"))
    for name in (
        "metrics.json",
        "samples.parquet",
        "agent.json",
        "agent/part-00000.parquet",
        "evidence/part-00000.parquet",
    ):
        assert (resumed.path / name).read_bytes() == (whole.path / name).read_bytes(), name
    transcripts = [run.side_table("transcripts", 0).drop_columns(["seconds"]).to_pylist() for run in (resumed, whole)]
    assert transcripts[0] == transcripts[1]
    assert len(transcripts[0]) >= 1500
    adjudge.verify(resumed)
