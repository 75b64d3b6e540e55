"""A pool of processes: order, how far it runs ahead, a worker that dies, and what workers inherit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
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


def _inherited(_: int) -> tuple[str | None, bool]:
    import signal as own

    return os.environ.get("OPENBLAS_NUM_THREADS"), own.SIGINT in own.pthread_sigmask(own.SIG_BLOCK, [])


def test_a_job_begins_only_after_the_one_so_many_before_it_was_used(tmp_path):
    with Pool(2, "flight") as pool:
        assert pool.slots == 5
        jobs = [tmp_path / str(number) for number in range(40)]
        workers = set()
        for number, worker in enumerate(pool.map(_touch, jobs)):
            # Until this result is used, the job `slots` after it, which may overwrite what it points to, must not begin.
            begun = {int(path.name) for path in tmp_path.iterdir()}
            assert max(begun) < number + pool.slots
            assert number in begun
            workers.add(worker)
    assert len(workers) <= 2
    assert os.getpid() not in workers


def test_a_worker_that_dies_is_an_error_and_not_a_wait():
    with Pool(2, "flight") as pool, pytest.raises(AdjudgeError, match="a worker process died"):
        list(pool.map(_die, range(8)))


def test_workers_have_one_thread_for_products_and_leave_ctrl_c_to_the_parent(monkeypatch):
    """In a process of its own, since the server that workers are forked from is started once."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_runner import _inherited\n"
        "import os\n"
        "from adjudge.engine.runner import Pool\n"
        "if __name__ == '__main__':\n"
        "    with Pool(2, 'flight') as pool:\n"
        "        print(*pool.map(_inherited, [0]), os.environ.get('OPENBLAS_NUM_THREADS'), _inherited(0)[1])\n"
    )
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", program, here],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": here},
    )
    assert done.stdout.split("\n")[0] == "('1', True) None False"
