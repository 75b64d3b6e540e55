"""A gui run: the same to the byte whatever the order and the workers, recomputed by verify, and refused when altered."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adjudge
from adjudge.engine.evaluate import Options, evaluate
from adjudge.engine.verify import verify
from adjudge.protocols.base import protocol
from adjudge.protocols.gui.example import AGENTS, example, generate
from adjudge.provenance.canonical import file_digest, pretty
from adjudge.runs.run import Run

FILES = ("metrics.json", "samples.parquet", "evidence/part-00000.parquet", "outputs/part-00000.parquet", "charts.json")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gui-example")
    generate(folder, seed=3)
    return folder


def config(data, agent="broken_syntax", **more):
    return {
        "episodes": [str(data / "episodes.jsonl")],
        "predictions": [str(data / f"predictions_{agent}.jsonl")],
        "outcomes": [str(data / f"outcomes_{agent}.jsonl")],
        "space": "normalized",
        "bbox": "xyxy",
        "resamples": 100,
        **more,
    }


def run_of(settings, out, **options):
    return Run(evaluate(protocol("gui"), settings, Options(out=out, **options)))


def test_row_order_files_and_workers_change_nothing(data, tmp_path):
    first = run_of(config(data), tmp_path / "first")
    shuffled = dict(config(data))
    for role in ("episodes", "predictions", "outcomes"):
        text = Path(shuffled[role][0]).read_text(encoding="utf-8").splitlines(keepends=True)
        np.random.default_rng(5).shuffle(text)
        half = len(text) // 2
        names = [tmp_path / f"{role}-{k}.jsonl" for k in (0, 1)]
        for path, part in zip(names, (text[:half], text[half:]), strict=True):
            path.write_text("".join(part), encoding="utf-8")
        shuffled[role] = [str(path) for path in names]
    second = run_of(shuffled, tmp_path / "second", workers=2)
    for name in FILES:
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes(), name
    assert verify(first).problems == []
    assert verify(second).problems == []


def rewrite(run, name, change):
    """Alter a table and rewrite the digest that the manifest holds of it, as a careful forger would."""
    path = run.path / name
    groups = pq.ParquetFile(path)
    tables = [change(groups.read_row_group(k)) for k in range(groups.num_row_groups)]
    with pq.ParquetWriter(path, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=max(1, table.num_rows))
    manifest = json.loads((run.path / "manifest.json").read_text())
    for entry in manifest["files"]:
        if entry["path"] == name:
            entry["bytes"], entry["sha256"] = path.stat().st_size, file_digest(path)
    (run.path / "manifest.json").write_bytes(pretty(manifest))
    return Run(run.path)


def set_column(table, name, values):
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(name), pa.array(values, table.schema.field(name).type))


TAMPERING = [
    ("samples.parquet", lambda t: set_column(t, "said_x", [0.5] * t.num_rows)),
    ("samples.parquet", lambda t: set_column(t, "distance", [0.0] * t.num_rows)),
    ("samples.parquet", lambda t: set_column(t, "outcome", [True] * t.num_rows)),
    ("samples.parquet", lambda t: set_column(t, "said_argument", ["forged"] * t.num_rows)),
    ("evidence/part-00000.parquet", lambda t: set_column(t, "observed", np.zeros(t.num_rows).tolist())),
]


@pytest.mark.parametrize("name, change", TAMPERING)
def test_an_altered_run_does_not_hold_even_with_new_digests(data, tmp_path, name, change):
    run = run_of(config(data, "off_target"), tmp_path / "run")
    assert verify(run).problems == []
    assert verify(rewrite(run, name, change)).problems != []


def test_a_changed_number_is_named(data, tmp_path):
    run = run_of(config(data), tmp_path / "run")
    path = run.path / "metrics.json"
    document = json.loads(path.read_text())
    document["metrics"]["click_hit_rate"] = 1.0 if document["metrics"]["click_hit_rate"] != 1.0 else 0.5
    path.write_bytes(pretty(document))
    found = verify(run).problems
    assert any("metrics.click_hit_rate is" in problem for problem in found)
    assert any("its content is not the one in the manifest" in problem for problem in found)


def test_the_agents_differ_as_they_are_named(data, tmp_path):
    found = {agent: run_of(config(data, agent), tmp_path / agent).metrics["metrics"] for agent in AGENTS}
    careful = found["careful"]
    assert careful["episode_success_rate"] > 0.5
    assert found["off_target"]["action_type_accuracy"] > 0.85
    assert found["off_target"]["click_hit_rate"] < 0.5 < careful["click_hit_rate"]
    assert found["stops_early"]["missing_steps"] > 20
    assert [found[agent]["missing_steps"] for agent in AGENTS if agent != "stops_early"] == [0, 0, 0]
    assert found["broken_syntax"]["unparsed_steps"] > 10
    assert found["broken_syntax"]["out_of_space_steps"] > 0
    assert careful["unparsed_steps"] == 0


def test_som_mode(data, tmp_path):
    settings = config(data, dsl_mode="som")
    settings["predictions"] = [str(data / "predictions_careful_som.jsonl")]
    run = run_of(settings, tmp_path / "som")
    found = run.metrics["metrics"]
    assert found["element_accuracy"] > 0.8
    assert found["weak_episode_success_rate"] > 0.5
    assert [found[n] for n in ("mean_coord_error", "click_hit_rate", "bbox_hit_rate", "coord_error_count")] == [
        None
    ] * 3 + [0]
    assert verify(run).problems == []


def test_examples_are_seeded(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        example(tmp_path / name, seed)
    texts = {name: (tmp_path / name / "predictions_careful.jsonl").read_bytes() for name in "abc"}
    assert texts["a"] == texts["b"] != texts["c"]


def test_records_cite_their_evidence(data, tmp_path):
    run_of(config(data), tmp_path / "run")
    run = adjudge.load_run(tmp_path / "run")
    record = run.record("login-00#0")
    ids = {atom["id"] for atom in record["evidence"]}
    assert record["cites"]
    assert set(record["cites"]) <= ids
    assert {atom["rule"] for atom in record["evidence"]} >= {
        *("gui.action_type", "gui.click_hit", "gui.bbox_hit", "gui.element", "gui.text", "gui.key", "gui.milestone"),
        "gui.space",
    }
    assert sum(1 for _ in run.records()) == run.metrics["metrics"]["num_steps"]


def test_the_command_line(data, tmp_path, command):
    flags = ["--space", "normalized", "--bbox", "xyxy", "--backend", "qwen3", "--device", "cuda", "--no-report"]
    files = ["--episodes", data / "episodes.jsonl", "--predictions", data / "predictions_careful.jsonl"]
    done = command("gui", *files, *flags, "--types", "zoom,pan", "--out", tmp_path / "run", "--json")
    assert done.return_value == 0, done.exception
    assert done.stdout_bytes == (tmp_path / "run" / "metrics.json").read_bytes()
    assert json.loads(done.stdout)["backend"] == "qwen3"
    exported = command("export", tmp_path / "run", "--eval-json", "--about", "gpu_model=T4")
    document = json.loads(exported.stdout)
    assert (document["device"], document["gpu_model"], document["backend"]) == ("cuda", "T4", "qwen3")
    limited = command("gui", *files, *flags, "--limit", 3, "--out", tmp_path / "few", "--json")
    assert json.loads(limited.stdout)["metrics"]["num_episodes"] == 3
    missing = command("gui", *files, "--bbox", "xyxy")
    assert "--space is missing" in str(missing.exception)
    assert (
        command(
            "gui", *files, *flags, "--out", tmp_path / "gate", "--gate", "click_hit_rate >= 1.1", "--quiet"
        ).return_value
        == 1
    )
