"""A chat-completions server process on loopback, and ways to run `adjudge collect` as people do."""

import importlib
import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest

from adjudge.cli.main import run as cli

HERE = Path(__file__).parent


class Server:
    """The running server."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/v1"

    def counts(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url.removesuffix("/v1") + "/counts", timeout=5) as answer:
            return json.load(answer)

    def seen(self, question):
        return self.counts()["seen"].get(question, 0)


@pytest.fixture(scope="session")
def server_script():
    return HERE / "chat_server.py"


@pytest.fixture
def server(server_script):
    process = subprocess.Popen(
        [sys.executable, str(server_script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Server(int(process.stdout.readline()))
    finally:
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


@pytest.fixture(scope="session")
def program():
    return f"cmd:{sys.executable} {HERE / 'program.py'}"


@pytest.fixture
def command():
    """The command line of `adjudge collect` in this interpreter."""

    def words(*arguments):
        return [sys.executable, "-c", "from adjudge.cli.main import run; run()", "collect", *map(str, arguments)]

    return words


class Done(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


@pytest.fixture
def collect(command_line):
    """Run `adjudge collect` in the test's folder."""

    def run(*arguments, **more):
        return command_line("collect", *arguments, **more)

    return run


@pytest.fixture
def command_line(tmp_path, monkeypatch, capfd):
    """Run `adjudge` in the test's folder, as the console script does, but in this process."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, env=None, code=0):
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["adjudge", *map(str, arguments)])
            patch.setattr(sys, "path", [*sys.path])
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            importlib.invalidate_caches()
            with pytest.raises(SystemExit) as ended:
                cli()
        for number, handler in before.items():
            signal.signal(number, handler)
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
                del sys.modules[name]
        done = Done(*capfd.readouterr())
        assert ended.value.code == code, done.stderr
        return done

    return run


@pytest.fixture
def dataset(tmp_path, write_lines):
    """Write a data set whose texts are the questions given."""

    def write(questions, name="data.jsonl", **more):
        rows = [
            {"id": f"s{n:05d}", "text": text, "label": "fake" if n % 2 else "real", "meta": {"source": "secret-hint"}}
            | more
            for n, text in enumerate(questions)
        ]
        return write_lines(tmp_path / name, rows)

    return write


@pytest.fixture
def results(tmp_path):
    """The records of a results file by their keys; a key that stands twice fails."""

    def read(name="results.jsonl"):
        found = {}
        for line in (tmp_path / name).read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            key = (record["id"], record["model"], record["use_tools"], record["trial"])
            assert key not in found, f"{key} stands twice"
            found[key] = record
        return found

    return read
