"""`export --eee` against the schemas of Every-Eval-Ever itself, taken from its package (requirements/schemas.txt)."""

import importlib.metadata
import json

import jsonschema
import pytest

from adjudge.report import eee

FILES = {"aggregate": "eval.schema.json", "instance": "instance_level_eval.schema.json"}


@pytest.fixture(scope="module")
def upstream():
    try:
        files = importlib.metadata.files("every_eval_ever") or ()
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("every_eval_ever is not installed (make test installs it from requirements/schemas.txt)")
    found = {path.name: path for path in files if path.parent.name == "schemas"}
    schemas = {kind: json.loads(found[name].read_text(encoding="utf-8")) for kind, name in FILES.items()}
    assert all(schema["version"] == eee.VERSION for schema in schemas.values())
    return {kind: jsonschema.Draft7Validator(schema) for kind, schema in schemas.items()}


@pytest.mark.parametrize("name", ["anomaly", "consistency", "flight", "gui", "score", "stability", "triage"])
def test_the_export_of_every_protocol_fits(upstream, demo, tmp_path, name):
    for path in eee.write(demo[name], tmp_path / "eee"):
        document = json.loads(path.read_text(encoding="utf-8"))
        upstream["aggregate"].validate(document)
        samples = tmp_path / "eee" / document["detailed_evaluation_results"]["file_path"]
        assert samples == path.with_name(f"{path.stem}_samples.jsonl")
        for line in samples.read_text(encoding="utf-8").splitlines()[:200]:
            upstream["instance"].validate(json.loads(line))
