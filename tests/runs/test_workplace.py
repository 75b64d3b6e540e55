"""A run grows beside its place: nothing that is there is lost, nothing of dead processes stays."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import adjudge
from adjudge.engine.evaluate import Options, evaluate
from adjudge.errors import OutputError
from adjudge.protocols.base import protocol
from adjudge.protocols.flight.generate import generate
from adjudge.runs.tables import whole_file, write_whole
from adjudge.runs.writer import Workplace


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    data = generate(tmp_path_factory.mktemp("data"), seed=1, task="S1", flights=2, seconds=5)
    outputs = [str(path) for path in data.outputs.values()][:1]
    return {"task": "S1", "outputs": outputs, "reference": [str(data.reference)], "resamples": 100}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("thesis", [True, False], ids=["with a file", "empty"])
def test_a_folder_that_appears_while_the_run_is_made_is_left(config, tmp_path, thesis):
    def appear(done, total):
        (tmp_path / "run").mkdir(exist_ok=True)
        if thesis:
            (tmp_path / "run" / "thesis.txt").write_text("years of work")

    options = Options(out=tmp_path / "run", on_progress=appear)
    with pytest.raises(OutputError, match=r"exists already|appeared while"):
        evaluate(protocol("flight"), config, options)
    assert names(tmp_path) == ["run"]
    assert names(tmp_path / "run") == (["thesis.txt"] if thesis else [])


def test_force_does_not_replace_a_folder_that_appears_and_is_no_run(config, tmp_path):
    def appear(done, total):
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / "thesis.txt").write_text("years of work")

    with pytest.raises(OutputError, match="no run of adjudge"):
        evaluate(protocol("flight"), config, Options(out=tmp_path / "run", force=True, on_progress=appear))
    assert names(tmp_path / "run") == ["thesis.txt"]


def test_a_folder_that_is_filled_in_the_last_moment_is_left(tmp_path):
    work = Workplace(tmp_path / "run")
    work.open()
    work.run.mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("years of work")
    with pytest.raises(OSError, match="not empty"):
        work.settle(replace=False, claim=False)
    work.close()
    assert names(tmp_path / "run") == ["thesis.txt"]


def test_an_empty_folder_is_a_place(config, tmp_path):
    (tmp_path / "run").mkdir()
    adjudge.verify(adjudge.evaluate("flight", config, report=False, out=tmp_path / "run", limit=3))


def test_two_evaluations_in_the_same_second_are_two_runs(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        evaluate(protocol("flight"), config, Options(limit=2))
    assert len(names(tmp_path / "runs")) == 2


def test_force_through_a_link_replaces_the_run_behind_it(config, tmp_path):
    adjudge.evaluate("flight", config, report=False, out=tmp_path / "disk" / "run", limit=2)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "run")
    run = adjudge.evaluate("flight", config, report=False, out=tmp_path / "link", limit=3, force=True)
    assert run.manifest.config["limit"] == 3
    assert adjudge.load_run(tmp_path / "disk" / "run").manifest.config["limit"] == 3
    assert names(tmp_path) == ["disk", "link"]
    assert names(tmp_path / "disk") == ["run"]
    assert (tmp_path / "link").is_symlink()


def test_what_a_dead_process_left_is_removed_and_what_a_living_one_has_is_not(tmp_path):
    code = (
        "import pathlib, sys, time; from adjudge.runs.writer import Workplace;"
        "w = Workplace(pathlib.Path(sys.argv[1])); w.open(); w.run.mkdir(); print(w.folder, flush=True); time.sleep(60)"
    )
    killed, living = (
        subprocess.Popen([sys.executable, "-c", code, tmp_path / name], stdout=subprocess.PIPE, text=True)
        for name in ("one", "two")
    )
    dead, held = (Path(process.stdout.readline().strip()).name for process in (killed, living))
    killed.kill()
    killed.communicate()
    assert set(names(tmp_path)) == {dead, held}
    work = Workplace(tmp_path / "three")
    work.open()
    assert set(names(tmp_path)) == {held, work.folder.name}
    work.close()
    living.kill()
    living.communicate()


def test_a_run_that_was_being_replaced_when_the_process_died_comes_back(tmp_path):
    work = Workplace(tmp_path / "run")
    work.open()
    (work.folder / "old").mkdir()
    (work.folder / "old" / "manifest.json").write_text("{}")
    work._unlock()  # as when the process dies
    again = Workplace(tmp_path / "other")
    again.open()
    again.close()
    assert names(tmp_path) == ["run"]
    assert names(tmp_path / "run") == ["manifest.json"]


def test_a_file_is_whole_or_absent(tmp_path, monkeypatch):
    path = tmp_path / "x"
    write_whole(path, b"old")

    def full(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"), whole_file(path) as stream:
        stream.write(b"half of the n")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x"]


def test_a_device_is_written_to_and_stays_a_device(tmp_path):
    write_whole(Path("/dev/null"), b"x")
    assert not Path("/dev/null").is_file()
    with pytest.raises(OutputError, match="No space left"):
        write_whole(Path("/dev/full"), b"x")


def test_a_link_to_a_file_stays_a_link(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


def test_an_evaluation_that_is_refused_leaves_no_parent_that_it_made(config, tmp_path):
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"id": 1}\n')
    (tmp_path / "kept").mkdir()
    for place in ("runs/run", "a/b/run", "kept/c/run"):
        with pytest.raises(adjudge.AdjudgeError):
            evaluate(protocol("flight"), config | {"reference": [str(broken)]}, Options(out=tmp_path / place))
    assert names(tmp_path) == ["broken.jsonl", "kept"]
    assert names(tmp_path / "kept") == []
    assert evaluate(protocol("flight"), config, Options(out=tmp_path / "a" / "b" / "run")).is_dir()


def test_a_parent_that_another_evaluation_removes_is_made_again(tmp_path, monkeypatch):
    first, second = Workplace(tmp_path / "runs" / "one"), Workplace(tmp_path / "runs" / "two")
    first.open()
    removals = [first.close]
    made = Path.mkdir

    def removed_before(path, *arguments, **more):
        if path.name.endswith(".adjudge") and removals:
            removals.pop()()
        made(path, *arguments, **more)

    monkeypatch.setattr(Path, "mkdir", removed_before)
    second.open()
    assert removals == []
    assert second.folder.is_dir()
    second.close()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="only Linux has a folder in which no folder can be made")
def test_where_no_folder_can_be_made_is_said():
    with pytest.raises(OutputError, match="no folder can be made in /proc"):
        Workplace(Path("/proc/run")).open()
