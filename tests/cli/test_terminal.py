"""Ids and texts of a run on a terminal: none moves the cursor, sets a title, hides or turns the reading direction."""

import csv
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata

import pytest

from adjudge.report.numbers import json_line, spreadsheet

EVIL = "m\x1b[2J\x1b]0;owned\x07\x9b31m\u202eend\u2028\u2066\ufeff"
FORMULA = "=cmd|' /C calc'!A0"


@pytest.fixture(scope="module")
def evil(adjudge_cli, data, tmp_path_factory, write_lines):
    """A run whose ids and one model are as bad as they can be; the other model is a formula."""
    folder = tmp_path_factory.mktemp("evil")
    reference = [json.loads(line) for line in data.reference.read_text(encoding="utf-8").splitlines()]
    paths = []
    for path, model in zip(data.outputs.values(), (EVIL, FORMULA), strict=False):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        rows = [row | {"id": EVIL + str(row["id"]), "model": model} for row in rows]
        paths.append(write_lines(folder / path.name, rows))
    rows = [row | {"id": EVIL + str(row["id"])} for row in reference]
    flags = ["--task", "S1", "--outputs", *paths, "--reference", write_lines(folder / "reference.jsonl", rows)]
    done = adjudge_cli("flight", *flags, "--out", folder / "run", "--no-report")
    assert done.returncode == 0, done.stderr
    assert_inert(done.stderr)
    return folder / "run", rows[0]["id"]


def assert_inert(text):
    hiding = {character for character in text if unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp"}}
    assert hiding <= {"\n", "\t"}, text[:2000]


def on_a_terminal(*words):
    """What a command prints where both streams are a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from adjudge.cli.start import run; run()", *map(str, words)],
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
    )
    os.close(theirs)
    pieces = []
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(ours)
    process.wait(60)
    return re.sub("\r+\n", "\n", b"".join(pieces).decode())


def test_no_command_prints_what_a_terminal_obeys(evil):
    run, sample = evil
    for words in (
        ["query", run, "select sample, model from samples limit 5"],
        ["query", run, "select sample, model from samples limit 5", "--format", "json"],
        ["query", run, "select sample, model from samples limit 5", "--format", "csv"],
        ["query", run, f'select 1 as "{EVIL}"'],
        ["query", run, f"select {EVIL}"],
        ["explain", run, sample],
        ["explain", run, sample, "--model", EVIL, "--all"],
        ["explain", run, EVIL],
        ["export", run, "--records", "jsonl", "--sample", sample],
        ["gate", run, "--gate", f"{EVIL}/eligibility_rate >= 2"],
        ["compare", run],
        ["report", run],
    ):
        shown = on_a_terminal(*words)
        assert "owned" in shown or words[0] == "gate", words
        assert_inert(shown)


def test_a_damaged_run_cannot_speak_through_verify(evil, tmp_path, copy_run):
    path = copy_run(evil[0])
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"][0]["path"] = EVIL
    (path / "manifest.json").write_text(json.dumps(manifest))
    shown = on_a_terminal("verify", path)
    assert "owned" in shown
    assert_inert(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", shown))  # the progress bar's own


@pytest.fixture
def copy_run(tmp_path):
    import shutil

    return lambda path: shutil.copytree(path, tmp_path / "copy")


def test_json_of_a_query_means_the_same(adjudge_cli, evil):
    done = adjudge_cli(
        "query", evil[0], "select distinct model from samples order by 1 desc limit 1", "--format", "json"
    )
    assert json.loads(done.stdout) == [{"model": EVIL}]


def test_no_cell_is_a_formula(adjudge_cli, evil):
    done = adjudge_cli("query", evil[0], "select distinct model, -1.5::double as x from samples", "--format", "csv")
    rows = list(csv.reader(done.stdout.splitlines()))
    assert ["'" + FORMULA, "-1.5"] in rows
    table = adjudge_cli("report", evil[0], "--format", "csv").stdout
    cells = [cell for row in csv.reader(table.splitlines()) for cell in row]
    assert not [cell for cell in cells if re.match(r"[=+@]|-[^\d]", cell)]


@pytest.mark.parametrize(
    "value, cell",
    [
        ("=1", "'=1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@x", "'@x"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("a=1", "a=1"),
        (-1, "-1"),
        (-1.5, "-1.5"),
        (None, ""),
        (True, "True"),
        (["=1"], "['=1']"),
    ],
)
def test_cells(value, cell):
    assert spreadsheet(value) == cell


def test_json_line_escapes_and_keeps_the_meaning():
    text = json.dumps({"a": EVIL + "ä 高 \U000e0001"}, ensure_ascii=False)
    assert json.loads(json_line(text)) == json.loads(text)
    assert "高" in json_line(text)
    assert_inert(json_line(text))
