"""`adjudge flight`: what is printed where, and one clear message for every mistake."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from adjudge.protocols.flight.fields import FIELDS


def test_people_read_stderr_and_json_is_the_bytes_of_metrics(adjudge_cli, flags, run, tmp_path):
    done = adjudge_cli("flight", *flags, "--out", tmp_path / "run", "--json")
    assert done.returncode == 0
    assert done.stdout == (tmp_path / "run" / "metrics.json").read_text(encoding="utf-8")
    assert done.stdout == (run / "metrics.json").read_text(encoding="utf-8")
    assert done.stderr == ""
    quiet = adjudge_cli("flight", *flags, "--out", tmp_path / "quiet", "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("", "")
    loud = adjudge_cli("flight", *flags, "--out", tmp_path / "loud")
    assert loud.stdout == ""
    assert "falcon-a" in loud.stderr
    assert str(tmp_path / "loud") in loud.stderr


def test_a_configuration_file_with_flags_on_top(adjudge_cli, data, tmp_path):
    settings = {
        "task": "M1",
        "outputs": [str(p) for p in data.outputs.values()],
        "reference": [str(data.reference)],
        "top-k": 2,
    }
    (tmp_path / "c.yaml").write_text(json.dumps(settings))
    done = adjudge_cli("flight", "--config", tmp_path / "c.yaml", "--task", "S1", "--out", tmp_path / "run", "--quiet")
    assert done.returncode == 0, done.stderr
    config = json.loads((tmp_path / "run" / "manifest.json").read_text())["config"]
    assert (config["task"], config["top_k"]) == ("S1", 2)


def test_a_gate_that_fails_exits_1_and_one_that_passes_0(adjudge_cli, flags, tmp_path):
    good = adjudge_cli("flight", *flags, "--out", tmp_path / "a", "--gate", "falcon-a/answer_rate >= 0.5", "--json")
    bad = adjudge_cli(
        "flight", *flags, "--out", tmp_path / "b", "--gate", "magpie-h/eligibility_rate.low >= 0.999", "--json"
    )
    unknown = adjudge_cli("flight", *flags, "--out", tmp_path / "c", "--gate", "falcon-a/nonsense >= 0", "--json")
    assert (good.returncode, bad.returncode, unknown.returncode) == (0, 1, 1)
    (outcome,) = json.loads(bad.stdout)["gates"].values()
    assert (outcome["outcome"], outcome["on"], outcome["bound"]) == ("fail", "low", 0.999)
    (outcome,) = json.loads(unknown.stdout)["gates"].values()
    assert (outcome["outcome"], outcome["why"]) == ("unknown", "there is no estimate 'falcon-a/nonsense'")


BAD = {
    "missing file": (lambda t: ["--outputs", f"{t}/nowhere.jsonl"], "nowhere.jsonl: there is no such file"),
    "empty file": (lambda t: ["--outputs", t / "empty.jsonl"], "empty.jsonl: is empty; expected one record a line"),
    "bad JSON": (lambda t: ["--outputs", t / "bad.jsonl"], "bad.jsonl:3: is not JSON: "),
    "no id": (lambda t: ["--outputs", t / "noid.jsonl"], "noid.jsonl:1: the record has no `id`; an output line is"),
    "unknown task": (lambda _: ["--task", "X9"], "task 'X9' is not one of S1, M1, M3"),
    "no matching ids": (lambda t: ["--outputs", t / "foreign.jsonl"], "no id of the outputs stands in the reference. The outputs have 'zz', the reference"),
    "duplicate ids": (lambda t: ["--outputs", t / "twice.jsonl"], "twice.jsonl:2: id 'F01-0001' of model 'm' stands here a second time; first at"),
    "response is a number": (lambda t: ["--outputs", t / "number.jsonl"], "number.jsonl:1: `response` is a whole number, expected text; `response` is the model's raw text"),
    "unknown library": (lambda _: ["--library", "no/such"], "no/such: there is no such constraint library"),
    "library with an unknown field": (lambda t: ["--library", t / "field.yaml"], "fields: 'Rol (deg)' is not one of the 19 fields. Did you mean 'Roll (deg)'?"),
    "library with an inverted range": (lambda t: ["--library", t / "range.yaml"], "fields: 'Roll (deg)': range [90, -90] is empty or inverted"),
    "library with an unknown key": (lambda t: ["--library", t / "key.yaml"], "Object contains unknown field `jmp`"),
    "library that is no YAML": (lambda t: ["--library", t / "broken.yaml"], "broken.yaml:2: is not YAML"),
    "unknown rule set": (lambda _: ["--rules", "nothing"], "there is no rule set 'nothing' (installed: "),
    "no workers": (lambda _: ["--workers", "0"], "workers is 0, expected 1 or more"),
    "bad gate": (lambda _: ["--gate", "eligibility"], "gate 'eligibility' is not of the form"),
    "deep line": (lambda t: ["--outputs", t / "deep.jsonl"], "deep.jsonl:1: is nested too deep to be read"),
}  # fmt: skip


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory, adjudge_cli):
    folder = tmp_path_factory.mktemp("bad")
    library = adjudge_cli("flight", "library", "show").stdout
    roll = "  Roll (deg): {range: [-90, 90], jump: 20}"
    assert roll in library
    files = {
        "empty.jsonl": "",
        "bad.jsonl": '{"id": 1, "response": ""}\n\n{"id": 2, "response": \n',
        "noid.jsonl": '{"response": ""}\n',
        "foreign.jsonl": '{"id": "zz", "response": "", "model": "m"}\n',
        "twice.jsonl": '{"id": "F01-0001", "response": "", "model": "m"}\n' * 2,
        "number.jsonl": '{"id": "F01-0001", "response": 5, "model": "m"}\n',
        "deep.jsonl": '{"id": "x", "response": "", "more": ' + "[" * 100_000 + "]" * 100_000 + "}\n",
        "field.yaml": library.replace("  Roll (deg)", "  Rol (deg)"),
        "range.yaml": library.replace(roll, "  Roll (deg): {range: [90, -90], jump: 20}"),
        "key.yaml": library.replace(roll, "  Roll (deg): {range: [-90, 90], jmp: 20}"),
        "broken.yaml": "a: [1,\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("mistake", BAD)
def test_bad_input_exits_2_with_one_clear_message_and_nothing_written(adjudge_cli, data, bad_files, tmp_path, mistake):
    make, message = BAD[mistake]
    words = {"--task": ["S1"], "--outputs": [data.outputs["falcon-a"]], "--reference": [data.reference]}
    given = make(bad_files)
    words |= {given[0]: given[1:]}
    done = adjudge_cli(
        "flight", *(part for flag, values in words.items() for part in (flag, *values)), "--out", tmp_path / "run"
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("adjudge: ")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_or_unwritable_output_folder_is_refused(adjudge_cli, flags, run, tmp_path):
    done = adjudge_cli("flight", *flags, "--out", run)
    assert done.returncode == 2
    assert "exists already; choose another --out, or --force" in done.stderr
    (tmp_path / "file").write_text("")
    done = adjudge_cli("flight", *flags, "--out", tmp_path / "file" / "run")
    assert done.returncode == 2
    assert "cannot write to" in done.stderr


def test_no_arguments_print_the_help(adjudge_cli):
    done = adjudge_cli("flight")
    assert done.returncode == 2
    assert "adjudge flight generate --out example" in done.stdout


def test_the_example_of_the_help_works_as_pasted(adjudge_cli, tmp_path):
    text = adjudge_cli("flight", "--help").stdout.replace("\\\n", "")
    lines = [
        line.strip()
        for line in text.splitlines()
        if line.strip().startswith("adjudge flight ") and "--out example" in line
    ]
    assert len(lines) == 2
    for line in lines:
        words = line.removeprefix("adjudge ").replace("example/outputs_*.jsonl", "$").split()
        files = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.glob("example/outputs_*.jsonl"))
        words = [word for w in words for word in (files if w == "$" else [w])]
        done = adjudge_cli(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "example" / "run" / "metrics.json").is_file()


def test_standard_input_is_an_input(adjudge_cli, data, run, tmp_path):
    text = "".join(path.read_text(encoding="utf-8") for path in data.outputs.values())
    done = adjudge_cli(
        "flight",
        "--task",
        "S1",
        "--outputs",
        "-",
        "--reference",
        data.reference,
        "--out",
        tmp_path / "run",
        "--json",
        stdin=text,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (run / "metrics.json").read_text(encoding="utf-8")


def test_fifty_megabytes_and_a_hundred_thousand_levels_do_not_bring_the_run_down(
    adjudge_cli, data, tmp_path, write_lines
):
    rows = [
        {"id": "F01-0001", "model": "m", "response": "x" * 50_000_000},
        {"id": "F01-0002", "model": "m", "response": '{"a":' * 100_000},
        {"id": "F01-0003", "model": "m", "response": "[" * 100_000},
    ]
    outputs = write_lines(tmp_path / "big.jsonl", rows)
    done = adjudge_cli(
        "flight",
        "--task",
        "S1",
        "--outputs",
        outputs,
        "--reference",
        data.reference,
        "--out",
        tmp_path / "run",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["buckets"]["m"]["unparsed"] == 3
    shown = adjudge_cli("explain", tmp_path / "run", "F01-0001")
    assert shown.returncode == 0
    assert "over the limit" in shown.stdout
    assert len(shown.stdout) < 200_000


def test_ctrl_c_leaves_no_half_run_and_exits_130(data, tmp_path):
    state = dict.fromkeys(FIELDS, 1.0)
    line = json.dumps({"response": json.dumps(state), "model": "m"})[1:]
    with (tmp_path / "many.jsonl").open("w") as stream:
        stream.writelines(f'{{"id": "s{k}", {line}\n' for k in range(400_000))
    words = [
        "flight",
        "--task",
        "S1",
        "--outputs",
        str(tmp_path / "many.jsonl"),
        "--out",
        str(tmp_path / "out" / "run"),
        "--workers",
        "2",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", "from adjudge.cli.main import run; run()", *words], stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("out/.run*/.scratch/*")):  # while it still reads, so that most is to come
        assert time.monotonic() < deadline, "the evaluation never began"
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; nothing was written" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["many.jsonl"]


def test_library_check_prints_a_version_of_the_content(adjudge_cli, tmp_path):
    text = adjudge_cli("flight", "library", "show").stdout
    (tmp_path / "mine.yaml").write_text(text)
    built_in = adjudge_cli("flight", "library", "check").stdout
    assert adjudge_cli("flight", "library", "check", tmp_path / "mine.yaml").stdout == built_in
    (tmp_path / "mine.yaml").write_text(text.replace("jump: 67}", "jump: 68}", 1))
    assert adjudge_cli("flight", "library", "check", tmp_path / "mine.yaml").stdout != built_in
    assert "+kinematics" in adjudge_cli("flight", "library", "show", "ga-light/1+kinematics").stdout
