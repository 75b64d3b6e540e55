"""A folder in the layout of the original method goes through one command: all models, all tasks, states from the question."""

import json

import pytest
from click.testing import CliRunner

import adjudge
from adjudge.cli.main import main
from adjudge.errors import ConfigError, InputError
from adjudge.protocols.flight.fields import model_named_in, task_named_in
from adjudge.protocols.flight.generate import generate, generate_original
from adjudge.protocols.flight.original import find_original
from adjudge.protocols.flight.plan import FlightPlan
from adjudge.report.latex import latex


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("original")
    generate_original(made, seed=2, models=("falcon-a", "magpie-h", "parrot-p"))
    return made


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "run"
    done = CliRunner().invoke(
        main, ["flight", "import-original", str(folder), "--out", str(out), "--no-report"], standalone_mode=False
    )
    assert done.return_value == 0, done.stderr
    assert "All models on all tasks" in done.stderr
    return adjudge.load_run(out)


def test_every_model_and_task_is_judged_with_jump_atoms(run):
    assert run.metrics["tasks"] == ["S1", "M1", "M3"]
    assert set(run.metrics["buckets"]) == {"all", "falcon-a", "magpie-h", "parrot-p"}
    rows = run.samples.select(["task", "shown_from", "has_reference", "status"]).to_pylist()
    assert {row["shown_from"] for row in rows} == {"question"}
    assert all(row["has_reference"] for row in rows)
    applied = run.samples.to_arrow().column("task").value_counts().to_pylist()
    assert {item["values"] for item in applied} == {"S1", "M1", "M3"}
    for sample in ("S1/1", "M1/1", "M3/505"):
        record = run.record(sample, "falcon-a")
        jumps = [atom for atom in record["evidence_pack"]["atoms"] if atom["type"] == "jump_dynamics"]
        assert all(atom["pass"] is not None for atom in jumps)
        assert record["task_id"] == sample[:2]
        alone = FlightPlan({"task": sample[:2], "outputs": ["o"], "reference": ["r"]})
        assert len(record["evidence_pack"]["atoms"]) == alone.graph.layout.width
    adjudge.verify(run)


def test_m3_is_paired_with_line_504_and_on(run, folder):
    lines = (folder / "flight_3window_samples.jsonl").read_text().splitlines()
    gold = json.loads(lines[504])["T+1"]["Roll (deg)"]
    row = next(row for row in run.samples.to_pylist() if row["sample"] == "M3/505")
    assert [row["gold"][9], row["gold"][9 + 19], row["gold"][9 + 38]] == gold


def test_summaries_by_task_profiles_across_tasks_and_one_table(run):
    assert set(run.metrics["task_summaries"]) == {"S1", "M1", "M3"}
    profile = next(item for item in run.metrics["model_profiles"] if item["model_name"] == "falcon-a")
    assert set(profile["tasks"]) == {"S1", "M1", "M3"}
    scores = profile["confidence_prior"]["confidence_m"]
    assert all(isinstance(scores[f"{task}_score"], float) for task in ("S1", "M1", "M3"))
    tables = {section["name"]: section for section in run.metrics["sections"]}
    assert len(tables["comprehensive"]["rows"]) == 9
    assert len(tables["confidence_prior"]["rows"]) >= 3
    text = latex([run])
    for name in ("comprehensive", "main-S1", "main-M3", "compact-M1", "confidence_prior"):
        assert rf"\label{{tab:adjudge-{name}}}" in text


def test_the_same_tasks_alone_give_the_same_numbers(run, folder, tmp_path):
    """What a run of several tasks says of one of them is what a run of that task alone says."""
    found = find_original(folder)
    config = found.config()
    for task in ("S1", "M3"):
        outputs = [path for path in config["outputs"] if f"_{task}_" in path]
        reference = [path for path in config["reference"] if ("3window" in path) == (task != "S1")]
        alone = {**config, "task": task, "outputs": outputs, "reference": reference, "confidence": None}
        single = adjudge.evaluate("flight", alone, report=False, out=tmp_path / task)
        for (name, where), estimate in single.estimates.items():
            if where.startswith("model=") and estimate.method != "counted":
                assert run.estimates[name, f"{where}/{task}"].value == estimate.value, (name, where)


def test_order_of_files_and_workers_change_nothing(run, folder, tmp_path):
    config = find_original(folder).config()
    turned = {**config, "outputs": config["outputs"][::-1], "reference": config["reference"][::-1]}
    again = adjudge.evaluate("flight", turned, report=False, out=tmp_path / "again", workers=2)
    assert (again.path / "metrics.json").read_bytes() == (run.path / "metrics.json").read_bytes()


def test_tasks_are_told_by_task_id_or_file_name(tmp_path, write_lines):
    paths = {task: generate(tmp_path / task, seed=1, task=task, flights=2, seconds=12) for task in ("S1", "M1")}
    lines = []
    for task, made in paths.items():
        rows = [json.loads(line) for line in made.outputs["falcon-a"].read_text().splitlines()]
        lines += [{**row, "task_id": task} for row in rows]
    mixed = write_lines(tmp_path / "mixed.jsonl", lines)
    reference = [str(made.reference) for made in paths.values()]
    config = {"task": "S1,M1", "outputs": [mixed], "reference": reference}
    run = adjudge.evaluate("flight", config, report=False, out=tmp_path / "run")
    assert run.metrics["buckets"]["falcon-a"]["n"] == len(lines)
    assert run.metrics["buckets"]["falcon-a"]["missing"] == 0
    untold = write_lines(
        tmp_path / "untold.jsonl", [{key: row[key] for key in row if key != "task_id"} for row in lines]
    )
    with pytest.raises(InputError, match="do not say their task"):
        adjudge.evaluate("flight", {**config, "outputs": [untold]}, report=False, out=tmp_path / "x")


@pytest.mark.parametrize(
    "path, task, model",
    [
        ("a/gpt-4_S1_test_results_2025.jsonl", "S1", "gpt-4"),
        ("results/M3/2025/claude/x.jsonl", "M3", "x"),
        ("results/M3_2025/claude/x.jsonl", "M3", "claude"),
        ("outputs_falcon.jsonl", None, "outputs_falcon"),
        ("data/S10/BM3.jsonl", None, "BM3"),
    ],
)
def test_tasks_and_models_are_read_from_names(path, task, model):
    assert (task_named_in(path), model_named_in(path)) == (task, model)


def test_a_folder_without_outputs_or_reference_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no outputs found"):
        find_original(tmp_path)
    (tmp_path / "m_S1_test_results_1.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match="no reference found"):
        find_original(tmp_path)
    (tmp_path / "flight_3window_samples.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match="outputs of S1 but no reference"):
        find_original(tmp_path)
