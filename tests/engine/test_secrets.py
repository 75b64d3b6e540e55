"""Nothing of a credential is in any file of a run, nor in a message, wherever it was given."""

import subprocess
import sys
from pathlib import Path

import pytest

import adjudge
from adjudge.engine.evaluate import Options, evaluate
from adjudge.protocols.base import protocol

SECRET = "Zq7rT2wXy9LmNb4K"  # noqa: S105 -- it is looked for


@pytest.fixture
def files(tmp_path):
    return protocol("stability").example(tmp_path / "data", 1)


def bytes_of(run):
    return b"\n".join(path.read_bytes() for path in run.rglob("*") if path.is_file())


def test_no_file_of_a_run_has_a_credential_of_the_command_the_files_or_the_environment(tmp_path, files, monkeypatch):
    pytest.importorskip("fsspec")
    import fsspec

    monkeypatch.setenv("SERVICE_PASS", "correct horse battery")
    memory = fsspec.filesystem("memory")
    gold, runs = (f"memory://user:{SECRET}@store/{name}.jsonl?sig={SECRET}" for name in ("gold", "runs"))
    for url, name in ((gold, "gold"), (runs, "runs")):
        memory.pipe_file(url.removeprefix("memory://"), Path(files[name][0]).read_bytes())
    command = ("adjudge", "run", "stability", "--api-key", SECRET, f"--token={SECRET}", "correct horse battery")
    path = evaluate(
        protocol("stability"),
        {**files, "gold": [gold], "runs": [runs]},
        Options(out=tmp_path / "run", command=command, report=None),
    )
    found = bytes_of(path)
    assert b"[redacted]" in found, "the search would find what is there"
    assert SECRET.encode() not in found
    assert b"correct horse" not in found
    assert adjudge.verify(path).problems == []


def test_a_message_has_no_credential(tmp_path):
    words = ["flight", "--task", "S1", "--outputs", f"https://user:{SECRET}@127.0.0.1:9/x.jsonl?sig={SECRET}"]
    code = "from adjudge.cli.start import run; run()"
    for more in ([], ["--debug"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *more, *words, "--out", tmp_path / "run"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert SECRET not in done.stdout + done.stderr
        assert "[redacted]" in done.stderr
