"""A pool of processes: order, how far it runs ahead, a worker that dies, a parent that dies, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adjudge.engine.runner import Pool
from adjudge.errors import AdjudgeError


def _touch(path: Path) -> int:
    path.touch()
    return os.getpid()


def _die(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def _interrupt(number: int) -> int:
    """As a terminal does, which sends Ctrl-C to every process of the group."""
    os.kill(os.getppid(), signal.SIGINT)  # the server that workers are forked from
    os.kill(os.getpid(), signal.SIGINT)
    return number


def _wait(path: Path) -> None:
    for process in (os.getpid(), os.getppid()):  # the worker, and the server that it was forked from
        (path / str(process)).touch()
    time.sleep(600)


def _start(program: str, *words: str) -> subprocess.Popen[str]:
    """A process of its own that runs a program, which may import this module."""
    here = str(Path(__file__).parent)
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def _alive(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody asked for yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_few_jobs_are_begun_before_results_are_used(tmp_path):
    with Pool(2, "flight") as pool:
        jobs = [tmp_path / str(number) for number in range(40)]
        workers = set()
        for number, worker in enumerate(pool.map(_touch, jobs)):
            # Two jobs a worker wait, besides the one whose result is used: samples in scratch files stay few.
            begun = {int(path.name) for path in tmp_path.iterdir()}
            assert max(begun) <= number + 2 * pool.workers
            assert number in begun
            workers.add(worker)
    assert number == 39
    assert len(workers) <= 2
    assert os.getpid() not in workers


def test_results_come_in_the_order_of_the_jobs():
    with Pool(2, "flight") as pool:
        assert list(pool.map(abs, range(0, -50, -1))) == list(range(50))
        assert list(pool.map(abs, [-7])) == [7]
        assert list(pool.map(abs, [])) == []


def test_a_worker_that_dies_is_an_error_and_not_a_wait():
    with Pool(2, "flight") as pool, pytest.raises(AdjudgeError, match="a worker process died"):
        list(pool.map(_die, range(8)))


def test_ctrl_c_is_left_to_the_parent():
    """In a process of its own, since the server that workers are forked from is started once."""
    process = _start(
        "from test_runner import _interrupt\n"
        "from adjudge.engine.runner import Pool\n"
        "if __name__ == '__main__':\n"
        "    with Pool(2, 'flight') as pool:\n"
        "        print(list(pool.map(_interrupt, range(4))))\n"
        "    import signal\n"
        "    print(signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
    )
    out, errors = process.communicate(timeout=60)
    assert out == "[0, 1, 2, 3]\nset()\n"
    assert errors == ""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_workers_end_when_their_parent_is_killed(tmp_path):
    process = _start(
        "import sys\n"
        "from pathlib import Path\n"
        "from test_runner import _wait\n"
        "from adjudge.engine.runner import Pool\n"
        "if __name__ == '__main__':\n"
        "    with Pool(2, 'flight') as pool:\n"
        "        list(pool.map(_wait, [Path(sys.argv[1])] * 4))\n",
        str(tmp_path),
    )
    deadline = time.monotonic() + 60
    while len(children := [int(path.name) for path in tmp_path.iterdir()]) < 3:
        assert time.monotonic() < deadline, "the workers never began"
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    assert all(_alive(child) for child in children)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 5
    while any(_alive(child) for child in children):
        assert time.monotonic() < deadline, "a process outlives its parent"
        time.sleep(0.05)
    process.communicate()
