"""What a record keeps of a reply: everything, and no claim that nobody made."""

import json

import pytest

SUBJECT = """
ANSWERS = {"asked": 0}

def full(request):
    return {
        "prediction": "fake",
        "confidence": 0.9,
        "rationale": "six fingers",
        "models": {"agent": "a-1", "vision": "v-1", "structuring": None},
        "usage": {"tokens": 3},
        "timings": {"vision_llm_seconds": 0.25, "total_seconds": 0.5},
        "prompt_hashes": {"vision_system": "ab" * 32},
        "cache": {"hit": request["trial"] > 0, "age_seconds": 7},
        **{f"key_{n}": n for n in range(10)},
        "label": "not the label",
        "trial": "mine",
    }

def wrong_kinds(request):
    return {
        "prediction": "real",
        "timings": "fast",
        "models": ["a"],
        "tool_details": 3,
        "usage": object,
        "cache": True,
        "confidence": 0.5,
    }

def own_names(request):
    return {"verdict": "fake", "confidence": 0.7, "because": "it glows"}

def nothing(request):
    return {"error": "busy", "error_type": "refused", "queue": 12}

def number(request):
    return 17

def caching(request):
    import time
    time.sleep(0.3 if request["trial"] == 0 else 0.0)
    return {"prediction": "fake", "confidence": 0.9}

def told(request):
    return {"prediction": "fake", "model_asked": request["model"], "told": request["settings"]}
"""


@pytest.fixture
def collected(tmp_path, collect, dataset, results):
    """Collect with one of the subjects above and return its records in order."""
    (tmp_path / "mine.py").write_text(SUBJECT, encoding="utf-8")

    def run(name, *more, questions=("a",), code=0):
        data = dataset(questions)
        done = collect("--dataset", data, "--subject", f"python:mine:{name}", "--force", *more, code=code)
        return list(results("eval_results.jsonl").values()), done.stderr

    return run


def test_no_key_is_lost_and_none_of_ours_is_replaced(collected):
    (first, second), _ = collected("full", "--trials", 2)
    assert {key: first[key] for key in first if key.startswith("key_")} == {f"key_{n}": n for n in range(10)}
    assert (first["rationale"], first["models"]["vision"], first["usage"]) == ("six fingers", "v-1", {"tokens": 3})
    assert first["timings"]["vision_llm_seconds"] == 0.25
    assert first["timings"]["subject_total_seconds"] == 0.5
    assert first["timings"]["total_seconds"] != 0.5
    assert first["prompt_hashes"]["vision_system"] == "ab" * 32
    assert len(first["prompt_hashes"]["user"]) == 64
    assert (first["label"], first["trial"]) == ("real", 0)
    assert first["reply"] == {"label": "not the label", "trial": "mine"}
    assert [record["cache"]["hit"] for record in (first, second)] == [False, True]
    assert first["cache"]["age_seconds"] == 7


def test_values_of_another_kind_do_not_throw_the_answer_away(collected, command_line):
    (record,), said = collected("wrong_kinds")
    assert (record["prediction"], record["confidence"], record["error"]) == ("real", 0.5, None)
    assert {name: record["reply"][name] for name in ("timings", "models", "tool_details", "cache")} == {
        "timings": "fast",
        "models": ["a"],
        "tool_details": 3,
        "cache": True,
    }
    assert "object" in record["reply"]["usage"]
    assert record["cache"]["hit"] is None
    assert "1 answered" in said
    command_line("triage", "--results", "eval_results.jsonl", "--out", "run", "--no-report", "--quiet")


def test_an_answer_under_names_of_its_own_is_read(collected):
    (record,), _ = collected("own_names")
    assert (record["prediction"], record["confidence"], record["error"]) == ("fake", 0.7, None)
    assert (record["verdict"], record["because"]) == ("fake", "it glows")


def test_what_came_back_instead_of_an_answer_is_kept(collected):
    (record,), _ = collected("number", code=1)
    assert (
        record["error"]
        == "mine:number returned a int; expected a text, or an object with a `response` or a `prediction`"
    )
    assert record["returned"] == 17
    (record,), _ = collected("nothing", code=1)
    assert (record["error"], record["error_type"], record["queue"]) == ("busy", "refused", 12)


def test_a_collected_and_a_resumed_file_are_equal_but_for_times(collected, collect, tmp_path, results):
    data = ("--dataset", "data.jsonl", "--subject", "python:mine:full", "--trials", 2, "--tools", "both")
    collected("full", *data[4:], questions=("a", "b", "c"))
    whole = results("eval_results.jsonl")
    lines = (tmp_path / "eval_results.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "begun.jsonl").write_text("".join(lines[:5]) + lines[5][:40], encoding="utf-8")
    collect(*data, "--output", "begun.jsonl", "--resume")

    def timeless(record):
        return {key: value for key, value in record.items() if key not in {"timings", "latency_seconds", "timestamp"}}

    resumed = results("begun.jsonl")
    assert resumed.keys() == whole.keys()
    assert {key: timeless(record) for key, record in resumed.items()} == {
        key: timeless(record) for key, record in whole.items()
    }


def test_an_unknown_cache_is_null_and_a_sudden_answer_is_noted(collected, command_line):
    records, said = collected("caching", "--trials", 3, "--workers", 1, questions=("a", "b"))
    assert {record["cache"]["hit"] for record in records} == {None}
    flagged = [record["trial"] for record in records if record["cache"].get("possibly")]
    assert len(flagged) == 4
    assert "4 answers came ten times faster than another to the same question" in said
    for name in ("one", "two"):
        command_line("triage", "--results", "eval_results.jsonl", "--out", name, "--no-report", "--quiet")
    refused = command_line("compare", "one", "two", "--metric", "latency_seconds", code=3).stderr
    assert "the cache state of" in refused


def test_the_summary_uses_the_words_of_triage(tmp_path, collect, dataset):
    (tmp_path / "words.py").write_text(
        "def answer(request):\n"
        "    word = request['sample']['text']\n"
        "    if word == 'error':\n"
        "        raise ValueError(word)\n"
        "    return word if word == 'prose' else {'prediction': word}\n",
        encoding="utf-8",
    )
    data = dataset(["fake", "AI-generated", " Real ", "uncertain", "no idea", "prose", "error"])
    said = collect("--dataset", data, "--subject", "python:words:answer").stderr
    assert "7 records written to eval_results.jsonl: 3 answered, 1 abstained, 2 unparsed, 1 errored;" in said


def test_the_methods_flags_go_from_a_data_set_to_metrics(tmp_path, collect, dataset, results):
    (tmp_path / "mine.py").write_text(SUBJECT, encoding="utf-8")
    collect(
        *(
            "--dataset",
            dataset(["a", "b"]),
            "--subject",
            "python:mine:told",
            "--models",
            "hawk,wren",
            "--tools",
            "both",
        ),
        *("--temperature", "0.0", "--trials", 2, "--num-workers", 2, "--vision-model", "iris", "--max-iterations", 5),
        *("--reasoning-effort", "low", "--structuring-model", "form", "--disable-tool-cache"),
        *("--output", "r.jsonl", "--metrics-output", "m.json"),
    )
    records = results("r.jsonl")
    assert {(model, tools) for _, model, tools, _ in records} == {
        (model, tools) for model in ("hawk", "wren") for tools in (True, False)
    }
    told = {
        "vision_model": "iris",
        "structuring_model": "form",
        "max_iterations": 5,
        "reasoning_effort": "low",
        "tool_cache": False,
    }
    assert all(record["told"] == told and record["model_asked"] == record["model"] for record in records.values())
    assert all(told.items() <= record["run_config"].items() for record in records.values())
    metrics = json.loads((tmp_path / "m.json").read_text())
    assert sorted(metrics["configurations"]) == ["hawk|no-tools", "hawk|tools", "wren|no-tools", "wren|tools"]


@pytest.mark.parametrize("words, modes", [("on", {True}), ("off", {False}), ("both", {True, False}), ("tools", {True})])
def test_modes_in_the_words_of_the_method(tmp_path, collect, dataset, results, words, modes):
    (tmp_path / "mine.py").write_text(SUBJECT, encoding="utf-8")
    collect("--dataset", dataset(["a"]), "--subject", "python:mine:told", "--tools", words)
    assert {tools for _, _, tools, _ in results("eval_results.jsonl")} == modes
