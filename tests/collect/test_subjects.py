"""Python callables, programs and earlier results as subjects."""

import json
import sys
import textwrap
import time

import pytest

from adjudge.cli.collect import subject_of
from adjudge.errors import ConfigError

MINE = textwrap.dedent(
    """
    import asyncio, random, time

    def answer(request):
        word = request["sample"]["text"].split()[0]
        if word == "raise":
            raise ValueError("cannot see it")
        if word == "hang":
            time.sleep(30)
        if word == "exit":
            raise SystemExit(4)
        if word == "number":
            return 7
        if word == "odd":
            return {"verdict": "fake"}
        if word == "empty":
            return {}
        if word == "fail":
            return {"error": "declined", "error_type": "refused"}
        if word == "keys":
            return ",".join(sorted(request["sample"]) + sorted(request))
        draw = random.Random(f"{request['id']} {request['trial']} {request['use_tools']}").random()
        return {"prediction": "fake" if draw < 0.5 else "real", "confidence": round(draw, 3),
                "timings": {"vision_llm_seconds": 0.5}, "tool_details": [{"tool": "look", "seconds": 0.1}]}

    async def slowly(request):
        await asyncio.sleep(0.2)
        return '{"prediction": "uncertain"}'

    class Asked:
        async def __call__(self, request):
            return "called"

    asked = Asked()
    number = 3
    """
)


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")


def test_a_callable_answers_and_every_failure_is_a_record(mine, collect, dataset, results):
    questions = ["plain", "raise", "hang", "exit", "number", "odd", "empty", "fail", "keys"]
    data = dataset(questions)
    collect("--dataset", data, "--subject", "python:mine:answer", "--output", "results.jsonl", "--timeout", 1)
    found = {q: results()[f"s{n:05d}", "mine:answer", False, 0] for n, q in enumerate(questions)}
    assert {q: r["error_type"] for q, r in found.items()} == {
        **dict.fromkeys(("plain", "keys", "odd")),
        **dict.fromkeys(("raise", "exit", "number", "empty"), "invalid"),
        "hang": "timeout",
        "fail": "refused",
    }
    assert found["raise"]["error"] == "mine:answer raised ValueError: cannot see it"
    assert found["plain"]["timings"]["vision_llm_seconds"] == 0.5
    assert found["plain"]["tool_usage"] == ["look"]
    shown = "id,text," + "id,image_path,mode,model,prompt,sample,seed,settings,temperature,trial,use_tools"
    assert found["keys"]["response"] == shown, "a subject must not see label or meta"


def test_modes_and_trials_are_all_asked_and_trials_differ(mine, collect, dataset, results):
    data = dataset(["plain"] * 8)
    arguments = ("--dataset", data, "--subject", "python:mine:answer", "--modes", "tools,no-tools", "--trials", 3)
    collect(*arguments, "--output", "results.jsonl")
    found = results()
    assert sorted(found) == [
        (f"s{n:05d}", "mine:answer", mode, t) for n in range(8) for mode in (False, True) for t in range(3)
    ]
    assert (
        len({tuple(found[f"s{n:05d}", "mine:answer", True, t]["confidence"] for n in range(8)) for t in range(3)}) == 3
    )
    collect(*arguments, "--output", "again.jsonl", "--workers", 1)
    again = results("again.jsonl")
    assert {key: record["confidence"] for key, record in again.items()} == {
        key: record["confidence"] for key, record in found.items()
    }


def test_an_async_callable_runs_in_parallel(mine, collect, dataset, results):
    data = dataset(["plain"] * 40)
    start = time.perf_counter()
    collect("--dataset", data, "--subject", "python:mine:slowly", "--output", "results.jsonl", "--workers", 40)
    assert time.perf_counter() - start < 40 * 0.2 / 2
    assert {r["prediction"] for r in results().values()} == {"uncertain"}
    collect("--dataset", data, "--subject", "x=python:mine:asked", "--output", "asked.jsonl")
    assert {r["response"] for r in results("asked.jsonl").values()} == {"called"}


def test_a_program_answers_from_a_pool_and_its_failures_are_records(program, collect, dataset, results):
    questions = ["plain", "crash", "hang", "garbage", "twice", "other", *(["plain"] * 30)]
    data = dataset(questions)
    collect(
        *("--dataset", data, "--subject", f"p={program}", "--output", "results.jsonl", "--timeout", 1),
        *("--modes", "tools,no-tools", "--workers", 4),
    )
    found = results()
    assert len(found) == 2 * len(questions)
    kinds = {q: found[f"s{n:05d}", "p", False, 0]["error_type"] for n, q in enumerate(questions)}
    assert kinds == {
        "plain": None,
        "crash": "invalid",
        "hang": "timeout",
        "garbage": "invalid",
        "twice": None,
        "other": "invalid",
    }
    assert "no memory left" in found["s00001", "p", False, 0]["error"]
    assert "ended with code 3" in found["s00001", "p", False, 0]["error"]
    plain = [found[f"s{n:05d}", "p", mode, 0] for n in range(6, 36) for mode in (True, False)]
    assert [r["prediction"] for r in plain] == ["fake", "real"] * 30
    assert all("['id', 'text']" in r["response"] for r in plain)
    # Four at a time, and one more for each copy that had to be replaced, and no process a question.
    assert len({r["response"].split()[1] for r in plain}) <= 4 + 6


def test_earlier_results_are_replayed_and_their_latencies_stand_apart(program, collect, dataset, results):
    data = dataset(["plain", "crash", "slow"])
    collect("--dataset", data, "--subject", f"p={program}", "--output", "old.jsonl", "--trials", 2)
    old = results("old.jsonl")
    collect("--dataset", data, "--subject", "file:old.jsonl", "--output", "results.jsonl", "--trials", 3)
    found = results()
    for key, record in old.items():
        again = found[key]
        assert (again["prediction"], again["error"], again["response"]) == (
            record["prediction"],
            record["error"],
            record["response"],
        )
        assert again["latency_seconds"] is None
        assert again["cache"]["hit"] is True
        assert again["cache"]["recorded"]["latency_seconds"] == record["latency_seconds"]
    assert "has no record of id 's00000', no-tools, trial 2" in found["s00000", "p", False, 2]["error"]


@pytest.mark.parametrize(
    "text, words",
    [
        ("mine:answer", "is not one of python:module:callable"),
        ("python:mine", "is not of the form module:callable"),
        ("python:no_such_module_here:x", "there is no module 'no_such_module_here'"),
        ("python:json:nothing", "module json has no 'nothing'"),
        ("python:json:__name__", "is a str, expected a callable"),
        ("cmd:", "names no program"),
        ("cmd:'", "cannot be read"),
        ("cmd:no-such-program-here", "there is no program"),
        ("openai:m", "needs --base-url"),
        ("openai:", "names no model"),
    ],
)
def test_a_wrong_subject_says_what_is_wrong(text, words):
    with pytest.raises(ConfigError, match=words):
        subject_of(text)


def test_a_wrong_address_is_refused_without_being_shown():
    with pytest.raises(ConfigError, match="not an http or https address") as caught:
        subject_of("openai:m", base_url="ftp://me:hunter2hunter2@host/")
    assert "hunter2" not in str(caught.value)


def test_without_httpx_the_error_names_the_install_command(tmp_path, collect, dataset, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    done = collect(
        *("--dataset", dataset(["a"]), "--subject", "openai:m", "--base-url", "http://127.0.0.1:9/v1"),
        *("--output", "results.jsonl"),
        code=2,
    )
    assert "pip install 'adjudge[collect]'" in done.stderr
    assert not (tmp_path / "results.jsonl").exists()


def test_tools_without_a_tool_are_refused_before_anything_is_asked(collect, dataset):
    done = collect(
        *("--dataset", dataset(["a"]), "--subject", "openai:m", "--base-url", "http://127.0.0.1:9/v1"),
        *("--output", "results.jsonl", "--modes", "tools"),
        code=2,
    )
    assert "needs --tool module:function" in done.stderr


def test_a_replayed_file_with_two_models_must_name_one(tmp_path, write_lines):
    rows = [{"id": "a", "model": name, "response": name} for name in ("x", "y")]
    path = write_lines(tmp_path / "two.jsonl", rows)
    with pytest.raises(ConfigError, match=r"holds 2 models; say which: file:.*#MODEL, with one of x, y"):
        subject_of(f"file:{path}")
    assert subject_of(f"file:{path}#y").model == "y"
    assert json.loads(subject_of(f"file:{path}#y")._rows["a", False, 0])["response"] == "y"
