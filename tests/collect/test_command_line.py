"""`adjudge collect`: what it refuses before it asks, data sets, and the triage metrics straight away."""

import json

import pytest

from adjudge.collect.dataset import Dataset
from adjudge.errors import InputError

SEEDED = """
import random
def answer(request):
    draw = random.Random(f"{request['seed']} {request['id']} {request['use_tools']}")
    if draw.random() < 0.2:
        return {"prediction": "uncertain", "confidence": 0.5}
    return {"prediction": draw.choice(["real", "fake"]), "confidence": round(draw.uniform(0.5, 1), 2)}
"""


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((), "--dataset is missing"),
        (("--modes", "maybe"), "'maybe' is not one of tools, no-tools"),
        (("--modes", "both,on"), "each once"),
        (("--models", "a,b", "--subject", "cmd:cat"), "the models of one --subject"),
        (("--disable-tool-cache", "--cache", "store"), "contradict each other"),
        (("--trials", 0), "--trials is 0, expected 1 or more"),
        (("--timeout", 0), "--timeout is 0"),
        (("--temperature", "warm"), "neither a number nor none"),
        (("--prompt", "nothing"), "neither a .j2 file nor a protocol"),
        (("--retry-errors",), "goes with --resume"),
        (("--limit", 0), "--limit is 0"),
        (("--subject", "cmd:cat"), "two subjects are called 'cat'"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_asked(collect, dataset, arguments, words, tmp_path):
    base = ("--dataset", dataset(["a"]), "--subject", "cmd:cat", "--output", "out.jsonl") if arguments else ()
    assert words in collect(*base, *arguments, code=2).stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_models_without_a_subject_are_those_of_the_server(collect, dataset, results):
    server = ("--base-url", "http://127.0.0.1:9/v1", "--retries", 0)
    collect("--dataset", dataset(["a"]), "--models", "one,two", *server, "--output", "results.jsonl", code=1)
    assert {model for _, model, _, _ in results()} == {"one", "two"}


def test_a_configuration_file_gives_what_flags_do_not(collect, dataset, results, tmp_path, program):
    dataset(["plain", "plain"])
    (tmp_path / "c.yaml").write_text(
        f"dataset: data.jsonl\nsubject: 'p={program}'\noutput: results.jsonl\ntrials: 2\nmodes: tools\n",
        encoding="utf-8",
    )
    collect("--config", "c.yaml", "--trials", 1)
    assert sorted(results()) == [("s00000", "p", True, 0), ("s00001", "p", True, 0)]
    (tmp_path / "c.yaml").write_text("datasets: data.jsonl\n", encoding="utf-8")
    assert "there is no setting 'datasets'" in collect("--config", "c.yaml", code=2).stderr


def test_the_metrics_of_triage_follow_straight_away(collect, dataset, results, tmp_path):
    (tmp_path / "seeded.py").write_text(SEEDED, encoding="utf-8")
    data = dataset([f"q{n}" for n in range(30)])
    collect(
        *("--dataset", data, "--subject", "mine=python:seeded:answer", "--modes", "tools,no-tools", "--trials", 3),
        *("--seed", 4, "--output", "results.jsonl", "--metrics-output", "metrics.json", "--out", "run"),
    )
    metrics = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
    assert (tmp_path / "metrics.json").read_bytes() == (tmp_path / "run" / "metrics.json").read_bytes()
    assert set(metrics["configurations"]) == {"mine|tools", "mine|no-tools"}
    found = results()
    for mode, name in ((True, "mine|tools"), (False, "mine|no-tools")):
        for trial in range(3):
            records = [r for (_, _, m, t), r in found.items() if (m, t) == (mode, trial)]
            right = sum(r["prediction"] == r["label"] for r in records)
            assert metrics["configurations"][name]["per_trial"][str(trial)]["accuracy"] == right / 30
    assert (
        "exists already"
        in collect(
            *("--dataset", data, "--subject", "mine=python:seeded:answer", "--output", "other.jsonl"),
            *("--metrics-output", "metrics.json"),
            code=2,
        ).stderr
    )


def test_shuffle_and_limit_draw_a_sample(tmp_path, write_lines):
    path = write_lines(tmp_path / "d.jsonl", [{"id": n} for n in range(100)])
    plain = [sample.id for sample in Dataset(path, limit=10)]
    assert plain == [str(n) for n in range(10)]
    drawn = [sample.id for sample in Dataset(path, limit=10, shuffle=True, seed=1)]
    assert drawn != plain
    assert len(set(drawn)) == 10
    assert drawn == [sample.id for sample in Dataset(path, limit=10, shuffle=True, seed=1)]
    assert drawn != [sample.id for sample in Dataset(path, limit=10, shuffle=True, seed=2)]


@pytest.mark.parametrize(
    "rows, words",
    [
        ([{"id": "a"}, {"id": "a"}], ":2: id 'a' stands here a second time; first at line 1"),
        ([{"id": 1}, {"id": "1"}], ":2: id '1' stands here a second time"),
        ([{"id": "a"}, {"name": "b"}], ":2: .*missing required field `id`"),
        ([{"id": "a"}, "{not json"], ":2: is not JSON"),
        ([{"id": None}], ":1: .*expected a record with a text or a number"),
        ([], "is empty"),
    ],
)
def test_a_wrong_data_set_names_the_line(tmp_path, write_lines, rows, words):
    with pytest.raises(InputError, match=words):
        Dataset(write_lines(tmp_path / "d.jsonl", rows))


def test_flight_tasks_are_asked_with_the_shipped_template_and_judged(collect, results, tmp_path):
    from adjudge import evaluate
    from adjudge.protocols.flight.generate import generate

    (tmp_path / "same.py").write_text(
        "import json\ndef answer(request):\n"
        "    assert request['prompt']['system'].startswith('You predict how a light aircraft flies on.')\n"
        "    return json.dumps(request['sample']['current_state'])\n",
        encoding="utf-8",
    )
    data = generate(tmp_path / "flight", seed=3, task="S1", flights=2, seconds=6)
    collect(
        *("--dataset", data.tasks, "--subject", "same=python:same:answer", "--prompt", "flight"),
        *("--output", "results.jsonl"),
    )
    found = results()
    assert {record["error"] for record in found.values()} == {None}
    assert not any("prediction" in record for record in found.values()), "a flight answer has no verdict to parse"
    run = evaluate(
        "flight",
        {"task": "S1", "outputs": ["results.jsonl"], "reference": [str(data.reference)], "resamples": 100},
        out=tmp_path / "run",
        report=False,
    )
    buckets = run.metrics["buckets"]["same"]
    assert buckets["passed"] + buckets["failed"] == len(found)
