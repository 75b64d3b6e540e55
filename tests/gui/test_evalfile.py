"""Evaluation files: every shape ever written is read, migrated and validated; nothing is invented or lost."""

from __future__ import annotations

import json

import jsonschema
import pytest

from adjudge.errors import InputError
from adjudge.protocols.gui.evalfile import aggregate, eval_json, load, metrics_of, migrate, numerator, problems, shape
from adjudge.protocols.gui.schemas import OPTIONAL, REQUIRED, schemas

SEVEN = {
    "num_episodes": 32,
    "num_steps": 224,
    "action_type_accuracy": 0.46875,
    "mean_coord_error": 0.0213,
    "coord_error_count": 20,
    "episode_success_rate": 0.0,
    "click_hit_rate": 0.85,
}
SIX = {
    "bbox_hit_rate": 0.9,
    "mean_episode_progress": 0.5,
    "mean_episode_step_score": 0.4,
    "weak_episode_success_rate": None,
    "state_success_rate": None,
    "element_accuracy": None,
}
TOP = {"config_path": "configs/dev.yaml", "backend": "qwen3"}
FULL = {**TOP, "dsl_mode": "coord", "metrics": {**SEVEN, **SIX}}
OLD = {**TOP, "metrics": SEVEN}
SOM_METRICS = {
    **SEVEN,
    **SIX,
    "mean_coord_error": None,
    "coord_error_count": 0,
    "click_hit_rate": None,
    "bbox_hit_rate": None,
    "element_accuracy": 0.75,
}
SOM = {**TOP, "dsl_mode": "som", "metrics": SOM_METRICS}
BARE = {"action_type_accuracy": 0.469, "click_hit_rate": 0.850}
NESTED = {**TOP, "metrics": {name: value for name, value in SEVEN.items() if name != "click_hit_rate"}}
SHAPES = {"full": FULL, "old": OLD, "som": SOM, "bare": BARE, "nested": NESTED}


def with_metrics(**changed):
    return {**FULL, "metrics": {**FULL["metrics"], **changed}}


def valid_by_schema(document):
    return not list(jsonschema.Draft202012Validator(schemas()["gui-eval"]).iter_errors(document))


@pytest.mark.parametrize(
    "name, expected", [("full", "v1.0"), ("old", "v1.0"), ("som", "v1.0"), ("bare", "bare"), ("nested", "nested")]
)
def test_every_shape_is_read(tmp_path, name, expected):
    path = tmp_path / "eval.json"
    path.write_text(json.dumps(SHAPES[name]))
    document = load(str(path))
    assert shape(document) == expected
    assert problems(document) == []
    assert metrics_of(document)["action_type_accuracy"] == pytest.approx(0.469, abs=0.001)


@pytest.mark.parametrize("name", SHAPES)
def test_migration_gives_v1_and_keeps_every_number(name):
    before = json.dumps(SHAPES[name])
    found = migrate(SHAPES[name])
    assert json.dumps(SHAPES[name]) == before
    assert shape(found) == "v1.0"
    assert found["schema_version"] == "1.0"
    assert found["dsl_mode"] == SHAPES[name].get("dsl_mode", "coord")
    assert problems(found) == []
    assert valid_by_schema(found)
    old = metrics_of(SHAPES[name])
    assert {key: found["metrics"][key] for key in old} == old
    assert migrate(found) == found


def test_what_a_legacy_file_lacks_is_null_with_a_note():
    found = migrate(BARE)
    assert (found["config_path"], found["backend"]) == ("unknown", "unknown")
    assert found["metrics"]["num_steps"] is None
    assert "metrics.num_steps is not in the file" in found["migration_notes"]
    assert "migration_notes" not in migrate(FULL)
    assert migrate(NESTED)["metrics"]["click_hit_rate"] is None
    assert migrate(NESTED)["migration_notes"] == ["metrics.click_hit_rate is not in the file"]


def test_unknown_keys_survive_migration_and_aggregation():
    extra = {"extra_metric": 0.5, "extra_table": {"a": [1, None]}}
    for document in ({**BARE, **extra}, {**NESTED, "metrics": {**NESTED["metrics"], **extra}, "site": "lab"}):
        found = migrate(document)
        assert found["metrics"]["extra_metric"] == 0.5
        assert found["metrics"]["extra_table"] == {"a": [1, None]}
        joined = aggregate([("x", document), ("y", FULL)])
        assert joined["metrics"]["extra_metric"]["mean"] == 0.5
        assert joined["metrics"]["extra_metric"]["weighted_mean"] is None
        assert joined["not_averaged"]["extra_table"] == {"x": {"a": [1, None]}}
    assert found["site"] == "lab"


BAD = [
    (with_metrics(action_type_accuracy=1.5), "action_type_accuracy is 1.5, expected 0 to 1"),
    (with_metrics(action_type_accuracy=None), "action_type_accuracy is null"),
    (with_metrics(num_steps=-1), "num_steps is -1"),
    (with_metrics(num_steps=22.5), "num_steps is 22.5, expected a whole number"),
    (with_metrics(num_steps=True), "num_steps is true"),
    (with_metrics(mean_coord_error=-0.1), "mean_coord_error is -0.1, expected 0 or more"),
    (with_metrics(bbox_hit_rate="high"), 'bbox_hit_rate is "high"'),
    ({**FULL, "dsl_mode": "marks"}, 'dsl_mode is "marks"'),
    ({**FULL, "backend": 3}, "backend is 3, expected a string"),
    ({**FULL, "schema_version": "2.0"}, 'schema_version is "2.0"'),
]
ONLY_OURS = [
    (with_metrics(click_hit_rate=0.85, coord_error_count=19), "click_hit_rate is 0.85 over 19"),
    (with_metrics(coord_error_count=0), "although coord_error_count is 0"),
    (with_metrics(click_hit_rate=None), "click_hit_rate is null although"),
    (with_metrics(element_accuracy=0.5), "expected null in coordinate mode"),
    ({**SOM, "metrics": {**SOM_METRICS, "bbox_hit_rate": 0.5}}, "expected null in SoM mode"),
    (with_metrics(episode_success_rate=0.01), "episode_success_rate is 0.01 over 32"),
]


@pytest.mark.parametrize("document, words", BAD + ONLY_OURS)
def test_impossible_files_are_named(document, words):
    assert any(words in problem for problem in problems(document))


@pytest.mark.parametrize("document", [document for document, _ in BAD])
def test_the_published_schema_refuses_what_a_schema_can_see(document):
    assert not valid_by_schema(document)


@pytest.mark.parametrize("document", [FULL, OLD, SOM, *(document for document, _ in ONLY_OURS)])
def test_the_published_schema_accepts_the_rest(document):
    assert valid_by_schema(document)


@pytest.mark.parametrize(
    "rate, n, k",
    [(0.85, 19, None), (16 / 19, 19, 16), (0.842, 19, 16), (0.469, 224, 105), (0.85, 20, 17), (0.0, 7, 0), (1.0, 7, 7)],
)
def test_a_rate_is_a_whole_number_over_its_n(rate, n, k):
    assert numerator(rate, n) == k
    document = with_metrics(click_hit_rate=rate, coord_error_count=n)
    assert bool(problems(document)) == (k is None)


@pytest.mark.parametrize("document", [[], 3, {"a": 1}, {"metrics": 3}])
def test_what_is_no_evaluation_is_refused(tmp_path, document):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"x\.json"):
        load(str(path))


def minimal_reader(text):
    """A reader of the first days: it knows the seven metrics and nothing else."""
    document = json.loads(text)
    assert isinstance(document["config_path"], str)
    assert isinstance(document["backend"], str)
    metrics = document["metrics"]
    for name in ("num_episodes", "num_steps", "coord_error_count"):
        assert type(metrics[name]) is int
    for name in ("action_type_accuracy", "episode_success_rate"):
        assert 0.0 <= metrics[name] <= 1.0
    return {name: metrics[name] for name in REQUIRED}


def test_a_file_written_now_is_read_by_a_minimal_old_reader(judge):
    run = judge(
        {"a": [{"type": "click", "x": 0.5, "y": 0.5}, {"type": "done"}]},
        {"a": ["CLICK(x=0.53, y=0.54)", "WAIT()"]},
        config_path="c.yaml",
        backend="dummy",
        about={"device": "cpu", "memory_gb": 8.0},
    )
    text = eval_json(run)
    assert minimal_reader(text) == {
        "num_episodes": 1,
        "num_steps": 2,
        "action_type_accuracy": 0.5,
        "mean_coord_error": pytest.approx(0.05),
        "coord_error_count": 1,
        "episode_success_rate": 0.0,
        "click_hit_rate": 1.0,
    }
    document = json.loads(text)
    assert set(OPTIONAL) <= document["metrics"].keys()
    assert valid_by_schema(document)
    assert problems(document) == []
    assert (document["device"], document["memory_gb"]) == ("cpu", 8.0)
    assert document["eval_timestamp"] == run.manifest.timestamp
    assert document["metrics"]["metrics_by_action_type"]["click"]["num_steps"] == 1
    assert "eval_timestamp" not in run.metrics


def test_aggregate_gives_plain_means_and_weighted_ones():
    small = with_metrics(num_steps=100, action_type_accuracy=1.0, coord_error_count=1, click_hit_rate=0.0)
    large = with_metrics(num_steps=300, action_type_accuracy=0.5, coord_error_count=3, click_hit_rate=1.0)
    joined = aggregate([("small", small), ("large", large), ("som", SOM), ("bare", {"action_type_accuracy": 0.0})])
    accuracy = joined["metrics"]["action_type_accuracy"]
    # SoM has 105 of 224 right; the bare file has no n and is in the plain mean only.
    assert accuracy["weighted_mean"] == pytest.approx((100 + 150 + 105) / (100 + 300 + 224))
    assert accuracy["mean"] == pytest.approx((1.0 + 0.5 + 0.46875 + 0.0) / 4)
    assert (accuracy["n"], accuracy["files_without_weight"], accuracy["null_files"]) == (624, 1, 0)
    hits = joined["metrics"]["click_hit_rate"]
    assert (hits["weighted_mean"], hits["mean"], hits["null_files"]) == (0.75, 0.5, 2)
    assert joined["mean_action_accuracy"] == accuracy["mean"]
    assert joined["weighted_action_accuracy"] == accuracy["weighted_mean"]
    assert (joined["mean_click_hit_rate"], joined["weighted_click_hit_rate"]) == (0.5, 0.75)
    assert (joined["mean_episode_success"], joined["weighted_episode_success"]) == (0.0, 0.0)
    assert joined["metrics"]["state_success_rate"]["weighted_mean"] is None
    assert joined["metrics"]["num_steps"] == {"sum": 624, "files": 3, "null_files": 1}
    assert "2 of 4 files have no click_hit_rate; they are in no mean of it" in joined["notes"]
    assert any("1 files with action_type_accuracy have no num_steps" in note for note in joined["notes"])


def test_a_sentinel_is_valid_noted_and_in_no_mean(tmp_path, command):
    old = with_metrics(bbox_hit_rate=-1.0, click_hit_rate=-1, coord_error_count=0, mean_coord_error=None)
    assert problems(old) == []
    assert valid_by_schema(old)
    joined = aggregate([("old", old), ("new", FULL)])
    assert joined["metrics"]["bbox_hit_rate"]["mean"] == 0.9
    assert joined["mean_click_hit_rate"] == 0.85
    assert "old: bbox_hit_rate is −1, which stands for no value; it is in no mean" in joined["notes"]
    (tmp_path / "old.json").write_text(json.dumps(old))
    assert "bbox_hit_rate is −1" in command("gui", "validate", tmp_path / "old.json").stdout
    assert problems(with_metrics(num_steps=-1)), "a count has no sentinel"
    assert problems(with_metrics(bbox_hit_rate=-0.5))


@pytest.mark.parametrize(
    "rate, n, possible", [(0.47, 224, True), (0.469, 224, True), (0.468, 224, False), (0.85, 19, False)]
)
def test_a_rate_of_two_digits_is_compatible_with_its_n(rate, n, possible):
    document = with_metrics(action_type_accuracy=rate, num_steps=n)
    assert bool(problems(document)) is not possible


ODD = {
    "empty.json": ('{"metrics": {}}', "metrics has none of"),
    "list.json": ("[1]", "is a JSON list"),
    "mode.json": (json.dumps({**FULL, "dsl_mode": ["coord"]}), 'dsl_mode is ["coord"], expected coord or som'),
    "nan.json": (
        '{"metrics": {"action_type_accuracy": NaN}}',
        "NaN is no JSON number; a metric without a value is null",
    ),
    "other.json": ('{"a": 1}', "is no evaluation"),
    "null_count.json": (json.dumps(with_metrics(coord_error_count=None)), "coord_error_count is null"),
}


def test_validate_goes_on_after_what_is_no_evaluation_and_ends_with_a_table(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for name, (text, _) in ODD.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(FULL).encode())
    result = command("gui", "validate", *ODD, "absent.json", "bom.json")
    assert result.return_value == 2
    for name, (_, words) in ODD.items():
        assert any(line.startswith(f"{name}: ") and words in line for line in result.stdout.splitlines()), name
    table = result.stdout.splitlines()[-8:]
    assert [line.split()[1] for line in table] == ["INVALID"] * 7 + ["valid"]


@pytest.mark.parametrize("name", SHAPES)
def test_strict_asks_for_all_that_v1_requires(name):
    missing = problems(SHAPES[name], strict=True)
    assert bool(missing) is (name in {"bare", "nested"})
    if name == "bare":
        assert "num_steps is missing" in missing
        assert "config_path is null, expected a string" in missing


def test_commands(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for name, document in SHAPES.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "bad.json").write_text(json.dumps(ONLY_OURS[0][0]))
    good = command("gui", "validate", *(f"{name}.json" for name in SHAPES))
    assert good.return_value == 0
    assert "bare.json: of an older shape" in good.stdout
    bad = command("gui", "validate", "full.json", "bad.json")
    assert bad.return_value == 2
    assert "16/19 = 0.8421" in bad.stdout
    untouched = (tmp_path / "bare.json").read_bytes()
    moved = command("gui", "migrate", "bare.json", "-o", "new.json")
    assert moved.return_value == 0
    assert "metrics.num_steps is not in the file" in moved.stderr
    assert (tmp_path / "bare.json").read_bytes() == untouched
    assert json.loads((tmp_path / "new.json").read_text())["metrics"]["click_hit_rate"] == 0.85
    refused = command("gui", "migrate", "bare.json", "-o", "bare.json")
    assert "stays untouched" in str(refused.exception)
    joined = command("gui", "aggregate", "full.json", "bare.json")
    assert json.loads(joined.stdout)["files"] == ["full", "bare"]
    printed = command("schema", "gui-eval")
    assert json.loads(printed.stdout) == schemas()["gui-eval"]
