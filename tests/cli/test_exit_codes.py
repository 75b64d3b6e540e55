"""How a command ends when the machine fails, the user interrupts, or nobody reads on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

START = "from adjudge.cli.start import run\n"
WATCHED = """
from adjudge.cli import start
command = start._command
def watched():
    print("go", flush=True)
    return command()
start._command = watched
start.run()
"""


def call(*words, first="", **more):
    code = START + first + "run()"
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run([sys.executable, "-c", code, *map(str, words)], text=True, check=False, timeout=120, **more)


def one_sentence(text):
    assert "Traceback" not in text
    assert "Exception ignored" not in text
    assert len(text.splitlines()) == 1, text
    return text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("delay", [0, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4])
def test_a_signal_at_any_moment_ends_without_a_word_too_many(flags, tmp_path, number, delay):
    words = [
        sys.executable,
        "-c",
        WATCHED,
        "flight",
        *flags,
        "--out",
        tmp_path / "run",
    ]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "go\n"
    time.sleep(delay)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    run = tmp_path / "run"
    assert not list(tmp_path.rglob("*.part"))
    if "\nDigest " in errors:  # the machine is quick, and all was done and told
        assert (run / "report.html").is_file()
        assert "Traceback" not in errors
        return
    assert one_sentence(errors).startswith("interrupted; ")
    whole = f"the run is whole at {run}, without its page" in errors  # where the machine is quick
    assert list(tmp_path.iterdir()) == ([run] if whole else [])


def test_two_signals_leave_nothing_either(flags, tmp_path):
    words = [sys.executable, "-c", START + "run()", "flight", *flags, "--out", tmp_path / "run"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(tmp_path.glob(".run*/run")):
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in {128 + signal.SIGTERM, 128 + signal.SIGINT}
    one_sentence(errors)
    assert list(tmp_path.iterdir()) == []


def test_a_limit_of_file_sizes_is_exit_4_and_leaves_nothing(flags, tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)); "
    done = call("flight", *flags, "--out", tmp_path / "run", first=limit)
    assert done.returncode == 4
    assert "File too large" in one_sentence(done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_exit_4_wherever_it_is_met(run, adjudge_cli, tmp_path):
    full = {"stdout": Path("/dev/full").open("w")}  # noqa: SIM115 -- for as long as the test
    for words in (
        ["query", run, "select * from evidence"],
        ["query", run, "select * from evidence", "--format", "csv"],
        ["query", run, "select 1", "--format", "csv"],
        ["export", run, "--records", "jsonl"],
        ["report", run],
        ["--help"],
    ):
        done = call(*words, **full)
        assert done.returncode == 4, words
        assert "No space left on device" in one_sentence(done.stderr)
    full["stdout"].close()
    done = call("gate", run, "--sarif", "/dev/full", "--quiet")
    assert done.returncode == 4
    assert "No space left on device" in one_sentence(done.stderr)


def test_too_long_a_path_is_exit_4(flags):
    done = call("flight", *flags, "--out", "x" * 300)
    assert done.returncode == 4
    assert "File name too long" in one_sentence(done.stderr)


@pytest.mark.parametrize(
    "error, said",
    [("MemoryError", "not enough memory"), ("KeyError('x')", "an error of adjudge itself, KeyError: 'x'")],
)
def test_an_error_of_the_instrument_is_exit_4_and_debug_shows_where(error, said):
    broken = f"import adjudge\ndef load(path): raise {error}\nadjudge.load_run = load\n"
    done = call("explain", "run", "sample", first=broken)
    assert done.returncode == 4
    assert said in one_sentence(done.stderr)
    done = call("--debug", "explain", "run", "sample", first=broken)
    assert done.returncode == 4
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["query", None, "select * from evidence"],
        ["export", None, "--records", "jsonl"],
        ["--help"],
        ["schema", "metrics"],
    ],
    ids=lambda words: words[0],
)
def test_a_closed_pipe_is_no_failed_gate(run, words):
    read, write = os.pipe()
    os.close(read)
    done = call(*(run if word is None else word for word in words), stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_what_is_wrong_with_the_command_is_still_exit_2(tmp_path):
    assert call("explain", tmp_path, "sample").returncode == 2
    assert call("nonsense").returncode == 2
    assert call("--help").returncode == 0
    assert call("--version").returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_imports_ends_the_program_without_a_word(number):
    code = f"import sys, os; sys.argv = ['/bin/adjudge']; import adjudge.cli; os.kill(os.getpid(), {int(number)})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", b"")
    other = code.replace("/bin/adjudge", "/bin/other")
    assert subprocess.run([sys.executable, "-c", other], capture_output=True, check=False).returncode == -number


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_code_that_a_library_composes_has_its_own_exit_code(tmp_path, number):
    composed = f"start._command = lambda: exec('import os; os.kill(os.getpid(), {int(number)})')"
    loaded = "from adjudge.cli import start\nimport adjudge.provenance.redact, adjudge.report.numbers"
    (tmp_path / "probe.py").write_text(f"{loaded}\n{composed}\nstart.run()\n")
    words = [sys.executable, "-m", "probe"]  # as `python -m adjudge`; the console script ends in another way
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + number
    assert one_sentence(done.stderr).startswith("interrupted; ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_meets_a_destructor_is_not_lost(number):
    """There Python prints what is raised and goes on."""
    destructor = (
        "import os, time\nfrom adjudge.cli import start\n"
        f"class Dying:\n    def __del__(self):\n        os.kill(os.getpid(), {int(number)})\n        time.sleep(0)\n"
        "def command():\n    Dying()\n    time.sleep(30)\nstart._command = command\n"
    )
    done = call(first=destructor)
    assert (done.returncode, one_sentence(done.stderr)) == (128 + number, "interrupted; nothing was written\n")


def test_what_else_cannot_be_raised_is_printed():
    code = "from adjudge.cli import start\nclass Dying:\n    def __del__(self):\n        1 / 0\nstart._command = lambda: (Dying(), 0)[1]\n"
    done = call(first=code)
    assert done.returncode == 0
    assert "ZeroDivisionError" in done.stderr


def test_an_error_that_cannot_be_put_into_words_is_exit_4():
    unloadable = (
        "import sys\nfrom adjudge.cli import start\nsys.modules['adjudge.report.numbers'] = None\n"
        "def _broken(): raise ImportError('failed to map segment from shared object')\nstart._command = _broken\n"
    )
    done = call(first=unloadable)
    assert (done.returncode, done.stderr) == (4, "adjudge: there is not enough memory\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_between_the_imports_and_the_command_is_not_a_traceback(number):
    kill = (
        f"import os; from adjudge.cli import start; start._keep_memory = lambda: os.kill(os.getpid(), {int(number)})\n"
    )
    code = "import sys; sys.argv[0] = 'adjudge'\n" + kill + "start.run()"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "")


def test_a_library_for_which_memory_does_not_suffice_is_no_error_of_ours():
    broken = "import adjudge\ndef load(path): raise ImportError('x.so: failed to map segment from shared object')\n"
    done = call("explain", "run", "sample", first=broken + "adjudge.load_run = load\n")
    assert (done.returncode, one_sentence(done.stderr)) == (4, "adjudge: there is not enough memory\n")


@pytest.mark.parametrize("closed, code, said", [(0, 0, ""), (1, 4, "adjudge: Bad file descriptor\n"), (2, 0, "")])
def test_a_closed_stream_is_no_file_of_ours(run, closed, code, said):
    done = call("export", run, "--records", "jsonl", preexec_fn=lambda: os.close(closed))
    assert (done.returncode, done.stderr) == (code, said)
    assert bool(done.stdout) == (closed != 1)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_a_run_is_made_whatever_stream_is_closed(flags, tmp_path, closed):
    words = ["flight", *flags, "--out", tmp_path / "run", "--no-report"]
    done = call(*words, preexec_fn=lambda: [os.close(number) for number in closed])
    assert done.returncode == 0, done.stderr
    assert call("verify", tmp_path / "run").returncode == 0


def test_a_name_that_is_no_utf8_is_exit_2(tmp_path):
    words = [sys.executable, "-c", START + "run()", "score", b"in\xff.jsonl", "--out", tmp_path / "run"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert one_sentence(done.stderr).startswith(r"adjudge: 'in\udcff.jsonl' is no text of UTF-8")
