"""`adjudge score` and the commands that take logs, as a user calls them."""

import json
import os
import shutil
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner

from adjudge.cli import start
from adjudge.cli.common import write_file
from adjudge.cli.main import main
from adjudge.errors import OutputError
from adjudge.protocols.score import generate as g


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return [str(path) for path in g.write_example(tmp_path, 0, samples=40)]


def command(*words, cwd):
    program = "from adjudge.cli.start import run; run()"
    return subprocess.run([sys.executable, "-c", program, *words], cwd=cwd, capture_output=True, text=True, check=False)


def call(*words):
    return CliRunner().invoke(main, list(words), standalone_mode=False)


def test_list_says_what_was_recognised(logs):
    result = call("score", "--list", *logs)
    assert "Inspect log, version 2, zip" in result.stdout
    assert "models   acme/large" in result.stdout
    assert "80 planned" in result.stdout
    listed = json.loads(call("score", "--list", "--json", *logs).stdout)
    assert [log["checks"] for log in listed] == [["match"], ["match"]]


def test_logs_are_judged_compared_explained_verified_and_gated_directly(logs, tmp_path):
    judged = call("score", *logs, "--out", "run", "--no-report", "-q")
    assert (judged.return_value, judged.output) == (0, "")
    result = call("compare", *logs, "--json", "--out", "kept")
    compared = json.loads(result.stdout)
    assert compared["status"] == "COMPARABLE"
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["acme_large", "acme_small"]
    assert "Verdict:" in call("explain", logs[0], "capitals/1").stdout
    verified = call("verify", logs[0])
    assert verified.return_value == 0
    assert "that the harness judged rightly" in verified.stderr
    assert call("gate", logs[0], "--gate", "acme/large/mean_score >= 0.99").return_value == 1
    assert call("gate", logs[0], "--write-baseline", "base.json").return_value == 0
    assert call("gate", logs[0], "--baseline", "base.json").return_value == 0
    assert "What the log itself printed" in call("report", logs[0], "-o", "-", "--format", "md").stdout


def test_who_names_a_log_is_told_of_the_log(logs, tmp_path):
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
        shutil.copy(logs[0], tmp_path / folder / "same.eval")
    twice = command("compare", "before/same.eval", "after/same.eval", cwd=tmp_path)
    assert "after-same against before-same, on 40 samples × 2 trials" in " ".join(twice.stderr.split())
    assert "acme_large-2 against acme_large-1" in command("compare", logs[0], logs[0], cwd=tmp_path).stderr
    for words in (["explain", logs[0], "nowhere"], ["compare", logs[0]], ["compare", f"{logs[0]}::zz", logs[1]]):
        refused = command(*words, cwd=tmp_path)
        assert refused.returncode == 2
        assert f"{logs[0]} " in refused.stderr
        assert "adjudge-" not in refused.stderr
    assert command("verify", logs[0], cwd=tmp_path).stderr.startswith(f"{logs[0]} holds")
    assert call("compare", *logs, "--out", "kept").return_value == 0
    again = call("compare", *logs, "--out", "kept")
    assert "acme_large exists already; choose another --out" in str(again.exception)


def test_a_log_whose_name_begins_as_another_is_told_by_its_own(monkeypatch):
    monkeypatch.setattr(start, "JUDGED_LOGS", {"/t/a": "a.eval", "/t/a-2": "a-2.eval"})
    assert start.with_logs("/t/a-2 holds, /t/a does not") == "a-2.eval holds, a.eval does not"


def test_a_log_is_asked_and_exported_as_a_run_is(logs):
    asked = call("query", logs[0], "select count(distinct item) from samples", "--format", "csv")
    assert asked.stdout.splitlines()[1] == "40"
    assert len(call("export", logs[0], "--records", "jsonl").stdout.splitlines()) == 80


def test_a_log_of_one_model_is_gated_by_names_alone(logs):
    assert call("gate", logs[0], "--gate", "pass_rate >= 0.01").return_value == 0
    assert call("gate", logs[0], "--gate", "pass_rate >= 0.99").return_value == 1


def test_a_check_that_one_log_alone_reports_is_named(logs, tmp_path):
    attempts = g.attempts_of(0, "acme/other", samples=40, epochs=2, skill=1.0)
    spec = g.Spec("acme/other", epochs=2, sample_ids=tuple(range(1, 41)), scorer="includes")
    g.write_eval(tmp_path / "other.eval", g.document(spec, attempts))
    refused = call("compare", logs[0], "other.eval").exception
    words = "rule set (acme/large alone has reported.check of match; acme/other alone has reported.check of includes)"
    assert words in str(refused)


def test_a_baseline_of_another_task_version_is_not_held(tmp_path, logs):
    assert call("gate", logs[0], "--write-baseline", "base.json").return_value == 0
    attempts = g.attempts_of(0, "acme/large", samples=40, epochs=2, skill=1.4)
    spec = g.Spec("acme/large", epochs=2, sample_ids=tuple(range(1, 41)), task_version=2)
    other = g.write_eval(tmp_path / "other.eval", g.document(spec, attempts))
    result = call("gate", str(other), "--baseline", "base.json")
    assert result.exception.exit_code == 3
    assert "conditions" in str(result.exception)


def test_the_demo_judges_the_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("demo", "--protocol", "score", "--quiet").return_value == 0
    assert (tmp_path / "demo" / "score" / "run" / "report.html").is_file()


def test_records_on_standard_input_are_all_read(tmp_path):
    import subprocess
    import sys

    lines = "".join(json.dumps({"id": f"q{i}", "model": "m", "score": i % 2}) + "\n" for i in range(50))
    words = [
        "-c",
        "from adjudge.cli.start import run; run()",
        "score",
        "-",
        "--out",
        str(tmp_path / "run"),
        "--no-report",
        "--json",
    ]
    done = subprocess.run([sys.executable, *words], input=lines, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["buckets"]["m"]["n"] == 50


def test_a_pipe_is_read_once_and_nothing_of_it_is_lost(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    records = [{"id": f"s{number}", "model": "m", "score": number % 2} for number in range(30)]
    text = "".join(json.dumps(record) + "\n" for record in records)
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=[text], daemon=True)
    writer.start()
    words = ["score", tmp_path / "pipe", "--out", tmp_path / "run", "--no-report", "--quiet"]
    subprocess.run([sys.executable, "-m", "adjudge", *words], check=True, timeout=60)
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["buckets"]["all"]["n"] == 30


def test_no_log_is_written_over(logs, tmp_path):
    before = [(tmp_path / name).read_bytes() for name in ("acme_large.eval", "acme_small.eval")]
    for words in (
        ("compare", *logs, "-o", logs[1]),
        ("compare", *logs, "-o", "third.eval"),
        ("gate", logs[0], "--write-baseline", logs[0]),
        ("export", logs[0], "--records", "jsonl", "-o", logs[0]),
    ):
        assert isinstance(call(*words).exception, OutputError), words
    assert before == [(tmp_path / name).read_bytes() for name in ("acme_large.eval", "acme_small.eval")]


@pytest.mark.parametrize("bound", ["acme/large/error_rate <= 5", "pass_rate.low >= -0.1", "pass_rate < 1.5"])
def test_a_gate_that_cannot_fail_is_refused(logs, bound):
    assert "cannot fail" in str(call("gate", logs[0], "--gate", bound).exception)
    assert "cannot fail" in str(call("score", logs[0], "--gate", bound, "--out", "run").exception)


def test_a_gate_that_cannot_pass_fails(logs):
    assert call("gate", logs[0], "--gate", "pass_rate >= 60").return_value == 1


@pytest.mark.parametrize("margin", ["2", "pass_rate=2"])
def test_a_margin_as_wide_as_the_range_is_refused(logs, margin):
    assert "margin" in str(call("compare", *logs, "--margin", margin).exception)


def test_two_models_with_long_names_stay_two(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in (1000, 1200):
        spec = g.Spec(f"/checkpoints/of/a/run/with/a/long/name/step-{place}", sample_ids=(1,))
        g.write_eval(tmp_path / f"{place}.eval", g.document(spec, [g.Attempt(1, 1, "C")]))
    shown = call("score", "1000.eval", "1200.eval", "--out", "run", "--no-report").stderr
    assert "…step-1000" in shown.partition("Ranking")[0]
    assert "…step-1200" in shown.partition("Ranking")[0]


def test_one_sample_of_several_models_is_told_with_its_first_reason(logs):
    assert "score 0 is under the threshold" in call("explain", ".", "capitals/1").stdout


def test_what_varies_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place, temperature in enumerate((0.0, 0.7)):
        spec = g.Spec("m", sample_ids=(1,), temperature=temperature)
        g.write_eval(tmp_path / f"{place}.eval", g.document(spec, [g.Attempt(1, 1, "C")]))
    shown = call("compare", "0.eval", "1.eval").stderr
    assert 'What varies: generation: {"temperature":0.0}, {"temperature":0.7}' in shown


def test_who_mistypes_a_log_is_told_of_the_one_beside(logs):
    said = str(call("compare", logs[0], "acme_smal.eval").exception)
    assert "there is no such folder, and no such log; did you mean acme_small.eval?" in said


def test_a_log_that_is_gone_meanwhile_hinders_no_writing(tmp_path):
    start.LOGS.append(str(tmp_path / "gone.json"))
    try:
        write_file(tmp_path / "a.txt", b"a")
        write_file(tmp_path / "a.txt", b"b")
    finally:
        start.LOGS.clear()
    assert (tmp_path / "a.txt").read_bytes() == b"b"
