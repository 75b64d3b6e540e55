"""A results file survives kill -9, Ctrl-C and a second start: the same keys, none twice, none lost."""

import fcntl
import json
import os
import signal
import subprocess
import time

import pytest


def wait_for_lines(path, least, process):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if path.exists() and path.read_bytes().count(b"\n") >= least:
            return
        assert process.poll() is None, "it ended before it was to be killed"
        time.sleep(0.01)
    pytest.fail(f"{path} never had {least} lines")


@pytest.fixture
def start(command, tmp_path):
    """Start `adjudge collect` and leave it running; whatever is left at the end is killed."""
    running = []

    def begin(*arguments):
        process = subprocess.Popen(command(*arguments), cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        running.append(process)
        return process

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait(10)
        process.stderr.close()


@pytest.mark.parametrize("kind", ["openai", "cmd"])
def test_killed_in_the_middle_and_resumed_has_every_key_once(
    kind, server, program, start, collect, dataset, results, tmp_path
):
    data = dataset([f"slow {n}" for n in range(60)])
    subject = {"openai": "openai:echo", "cmd": f"echo={program}"}[kind]
    arguments = (
        *("--dataset", data, "--subject", subject, "--base-url", server.url, "--output", "results.jsonl"),
        *("--workers", 4, "--trials", 2),
    )
    path = tmp_path / "results.jsonl"
    whole = {(f"s{n:05d}", "echo", False, t) for n in range(60) for t in range(2)}
    for least in (10, 40):
        process = start(*arguments, "--resume")
        wait_for_lines(path, least, process)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        assert len(path.read_bytes().splitlines()) < len(whole)
    with path.open("ab") as stream:
        stream.write(b'{"id": "s00059", "model": "ec')  # a line that the crash cut short
    before = path.read_bytes().count(b"\n")
    done = collect(*arguments, "--resume")
    assert results().keys() == whole
    assert f"{120 - before} records written" in done.stderr
    assert f"{before} were there before" in done.stderr
    done = collect(*arguments, "--resume")
    assert "0 records written" in done.stderr
    assert results().keys() == whole


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_finishes_what_is_in_flight_and_says_how_to_go_on(
    number, program, start, collect, dataset, results, tmp_path
):
    data = dataset([f"slow {n}" for n in range(100)])
    arguments = ("--dataset", data, "--subject", f"p={program}", "--output", "results.jsonl", "--workers", 3)
    process = start(*arguments)
    wait_for_lines(tmp_path / "results.jsonl", 9, process)
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    found = results()
    assert process.returncode == 128 + number
    assert 9 <= len(found) < 100
    assert all(record["error"] is None for record in found.values())
    assert f"interrupted: {len(found)} of 100 records are in results.jsonl" in said
    assert "run the same command with --resume to go on" in said
    collect(*arguments, "--resume")
    assert len(results()) == 100


def test_a_second_interrupt_cancels_and_resume_asks_again(server, start, collect, dataset, results, tmp_path):
    data = dataset(["plain", "hang 1", "hang 2"])
    arguments = (
        *("--dataset", data, "--subject", "openai:echo", "--base-url", server.url, "--output", "results.jsonl"),
        *("--timeout", 20),
    )
    process = start(*arguments)
    wait_for_lines(tmp_path / "results.jsonl", 1, process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 130
    assert [r["error_type"] for _, r in sorted(results().items())] == [None, "cancelled", "cancelled"]
    collect(*arguments[:-1], 1, "--resume")
    assert [r["error_type"] for _, r in sorted(results().items())] == [None, "timeout", "timeout"]
    assert server.seen("plain") == 1


def test_errors_are_asked_again_only_when_wanted(server, collect, dataset, results):
    data = dataset(["plain", "flaky", "forbidden"])
    arguments = (
        *("--dataset", data, "--subject", "openai:echo", "--base-url", server.url, "--output", "results.jsonl"),
        *("--retries", 0),
    )
    collect(*arguments)
    assert [r["error_type"] for _, r in sorted(results().items())] == [None, "http", "http"]
    collect(*arguments, "--resume")
    assert (server.seen("flaky"), server.seen("forbidden")) == (1, 1)
    collect(*arguments, "--resume", "--retry-errors")
    assert [r["error_type"] for _, r in sorted(results().items())] == [None, None, "http"]
    assert (server.seen("plain"), server.seen("flaky"), server.seen("forbidden")) == (1, 2, 2)


def test_a_file_that_is_there_is_neither_replaced_nor_mixed(program, collect, dataset, results, tmp_path):
    data = dataset(["plain", "plain"])
    arguments = ("--dataset", data, "--subject", f"p={program}", "--output", "results.jsonl")
    collect(*arguments)
    before = (tmp_path / "results.jsonl").read_bytes()
    done = collect(*arguments, code=2)
    assert "exists already; --resume goes on with it, --force replaces it" in done.stderr
    done = collect(*arguments, "--resume", "--temperature", 1, code=2)
    assert "results.jsonl:1: was collected with another temperature (0.0, now 1.0)" in done.stderr
    assert (tmp_path / "results.jsonl").read_bytes() == before
    collect(*arguments, "--force", "--temperature", 1)
    assert {r["run_config"]["temperature"] for r in results().values()} == {1.0}


def test_a_file_that_is_no_collection_is_refused(program, collect, dataset, tmp_path, write_lines):
    write_lines(tmp_path / "results.jsonl", [{"id": "a", "note": "mine"}])
    done = collect(
        *("--dataset", dataset(["plain"]), "--subject", f"p={program}", "--output", "results.jsonl", "--resume"), code=2
    )
    assert "results.jsonl:1: is no record of a collection" in done.stderr
    assert json.loads((tmp_path / "results.jsonl").read_text(encoding="utf-8"))["note"] == "mine"


def test_two_collections_do_not_write_one_file(program, collect, dataset, tmp_path):
    with (tmp_path / "results.jsonl").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = collect(
            *("--dataset", dataset(["plain"]), "--subject", f"p={program}", "--output", "results.jsonl"), code=2
        )
    assert "is being written by another collection" in done.stderr


def test_a_full_disk_ends_the_run_with_a_message(program, collect, dataset):
    if not os.path.exists("/dev/full"):  # noqa: PTH110 -- a device, not a path of ours
        pytest.skip("this system has no /dev/full")
    done = collect("--dataset", dataset(["plain"]), "--subject", f"p={program}", "--output", "/dev/full", code=4)
    assert "/dev/full cannot be written: No space left on device" in done.stderr
