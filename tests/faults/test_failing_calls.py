"""Every call by which a run reaches the disk fails once, in turn: the old run stays, or none, or the new one is whole."""

import errno
import os
import shutil
from pathlib import Path

import pytest

import adjudge
from adjudge.engine import split as splitting
from adjudge.runs.tables import NewFile

OLD, NEW = 2, 3


class Failing:
    """Counts the calls that write, sync, rename or make something, and lets one of them fail."""

    def __init__(self, monkeypatch, number, code):
        self.number, self.code, self.calls = number, code, []
        for owner, name in (
            (os, "fsync"),
            (os, "rename"),
            (os, "replace"),
            (os, "mkdir"),
            (NewFile, "write"),
            (NewFile, "close"),
            (Path, "write_bytes"),
        ):
            monkeypatch.setattr(owner, name, self._watched(name, getattr(owner, name)))

    def _watched(self, name, real):
        def call(*args, **more):
            self.calls.append(name)
            if len(self.calls) == self.number:
                if name == "write_bytes":
                    real(args[0], args[1][: len(args[1]) // 2])  # half of it is there when the disk is full
                raise OSError(self.code, os.strerror(self.code))
            return real(*args, **more)

        return call


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A page without charts, and few partitions."""
    monkeypatch.setattr("adjudge.report.html.svgs", lambda specs: [_nothing() for _ in specs])
    monkeypatch.setattr(splitting, "ROWS_A_PARTITION", 8)


def _nothing():
    from adjudge.report.charts import Drawing

    return Drawing(None, "nothing is drawn here")


@pytest.mark.parametrize("code, before", [(errno.ENOSPC, None), (errno.EIO, OLD)], ids=["new", "replacing"])
def test_whichever_call_fails_there_is_the_old_run_or_none_or_the_new_one_whole(config, tmp_path, state, code, before):
    out = tmp_path / "runs" / "run"
    kept = tmp_path / "kept"
    if before is not None:
        adjudge.evaluate("flight", config, out=out, limit=before, report=False)
        shutil.copytree(out, kept)
    number, seen = 0, []
    while True:
        number += 1
        with pytest.MonkeyPatch.context() as patch:
            failing = Failing(patch, number, code)
            try:
                adjudge.evaluate("flight", config, out=out, limit=NEW, force=True)
                failed = False
            except (OSError, adjudge.OutputError):
                failed = True
        if len(failing.calls) < number:
            break
        found = state(out)
        assert failed or found == NEW, failing.calls[number - 1]
        assert found in {before, NEW}, failing.calls[number - 1]
        seen.append(found)
        if found == NEW:  # back to the start
            shutil.rmtree(out)
            if before is not None:
                shutil.copytree(kept, out)
        elif out.parent.exists():
            assert [path.name for path in out.parent.iterdir()] in ([], ["run"]), failing.calls[number - 1]
    assert state(out) == NEW
    assert [path.name for path in out.parent.iterdir()] == ["run"]
    assert {before, NEW} == set(seen)
    assert {"fsync", "rename", "mkdir", "write", "close", "write_bytes"} <= set(failing.calls)
    assert number > 30
