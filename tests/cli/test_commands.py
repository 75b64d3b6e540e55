"""verify, export, query, schema, run, demo: each through the command line."""

import hashlib
import json
import shutil
import subprocess

import jsonschema
import pytest

import adjudge
from adjudge.protocols.base import names


def test_verify_passes_and_fails_with_exit_1(adjudge_cli, run, tmp_path):
    done = adjudge_cli("verify", run)
    assert done.returncode == 0
    assert "holds" in done.stderr
    outcome = json.loads(adjudge_cli("verify", run, "--json").stdout)
    assert outcome.pop("checked")
    assert outcome.pop("not_checked")
    assert outcome == {
        "run": str(run),
        "holds": True,
        "problems": [],
        "made_by": None,
        "not_recomputed": [],
        "added": [],
    }
    import shutil

    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "metrics.json").write_text((copy / "metrics.json").read_text().replace('"n": 21', '"n": 22', 1))
    done = adjudge_cli("verify", copy)
    assert done.returncode == 1
    assert "metrics.json" in done.stderr


def test_exported_records_fit_their_schema_and_the_run(adjudge_cli, run):
    lines = adjudge_cli("export", run, "--records", "jsonl").stdout.splitlines()
    loaded = adjudge.load_run(run)
    assert len(lines) == loaded.metrics["buckets"]["all"]["n"]
    schema = json.loads(adjudge_cli("schema", "record").stdout)
    validator = jsonschema.Draft202012Validator(schema)
    for line in lines:
        record = json.loads(line)
        validator.validate(record)
        assert len({atom["id"] for atom in record["evidence_pack"]["atoms"]}) == loaded.layout.width
    first = json.loads(lines[0])
    assert loaded.record(first["sample_id"], first["model_name"]) == first
    one = adjudge_cli(
        "export", run, "--records", "jsonl", "--sample", first["sample_id"], "--model", first["model_name"]
    )
    assert json.loads(one.stdout) == first


def test_the_schemas_describe_the_files(adjudge_cli, run):
    listed = adjudge_cli("schema").stdout.split()
    assert {"manifest", "metrics", "evidence", "record", "sample", "output", "model-confidence"} <= set(listed)
    for name in ("manifest", "metrics"):
        schema = json.loads(adjudge_cli("schema", name).stdout)
        jsonschema.Draft202012Validator(schema).validate(json.loads((run / f"{name}.json").read_text()))
    for name in listed:
        jsonschema.Draft202012Validator.check_schema(json.loads(adjudge_cli("schema", name).stdout))
    assert adjudge_cli("schema", "nothing").returncode == 2


def test_query_answers_over_the_views(adjudge_cli, run):
    loaded = adjudge.load_run(run)
    done = adjudge_cli(
        "query", run, "select outcome, count(*) as n from evidence group by 1 order by 1", "--format", "csv"
    )
    counts = dict(line.split(",") for line in done.stdout.splitlines()[1:])
    assert sum(map(int, counts.values())) == loaded.layout.width * loaded.metrics["buckets"]["all"]["n"]
    assert set(counts) == {"pass", "fail", "not_applicable"}
    table = adjudge_cli("query", run, "select model, count(*) as n from samples group by 1 order by 1")
    assert table.stdout.splitlines()[0].split() == ["model", "n"]
    rows = adjudge_cli("query", run, "select code from rules order by 1 limit 1", "--format", "json")
    assert json.loads(rows.stdout) == [{"code": "cross_field_consistency.altitude_consistency"}]


@pytest.mark.parametrize(
    "sql",
    [
        "select * from nowhere",
        "drop view samples; select 1/",
        "copy samples to '/tmp/x.csv'",
        "select * from read_csv('/etc/passwd')",
    ],
)
def test_query_refuses_what_is_wrong_or_leaves_the_run(adjudge_cli, run, sql):
    done = adjudge_cli("query", run, sql)
    assert done.returncode == 2
    assert "the query failed" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_demo_seed_changes_the_numbers_and_verify_still_passes(adjudge_cli, tmp_path):
    for seed in ("0", "7"):
        done = adjudge_cli("demo", "--out", tmp_path / seed, "--seed", seed, "--protocol", "flight")
        assert done.returncode == 0, done.stderr
        assert adjudge_cli("verify", tmp_path / seed / "flight" / "run").returncode == 0
    values = [json.loads((tmp_path / seed / "flight/run/metrics.json").read_text())["metrics"] for seed in ("0", "7")]
    rate = "magpie-h/eligibility_rate"
    assert values[0][rate] != values[1][rate]
    assert values[0]["falcon-a/total_score"] != values[1]["falcon-a/total_score"]


def test_a_users_package_adds_a_protocol_and_a_rule_without_touching_ours(
    adjudge_cli, run, flags, tmp_path, write_lines
):
    assert {"flight", "echo"} <= set(names())
    rows = [{"id": k, "asked": "a", "said": "a" if k % 2 else "b"} for k in range(10)]
    path = write_lines(tmp_path / "rows.jsonl", rows)
    (tmp_path / "c.yaml").write_text(json.dumps({"file": path}))
    done = adjudge_cli(
        "run",
        "echo",
        "--config",
        tmp_path / "c.yaml",
        "--out",
        tmp_path / "echo",
        "--json",
        "--gate",
        "echo_rate >= 0.5",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"] == {"echo_rate": 0.5}
    assert adjudge_cli("verify", tmp_path / "echo").returncode == 0
    done = adjudge_cli("flight", *flags, "--rules", "night-flight", "--out", tmp_path / "night", "--quiet")
    assert done.returncode == 0, done.stderr
    night = adjudge.load_run(tmp_path / "night")
    assert night.layout.width == adjudge.load_run(run).layout.width + 1
    assert night.manifest.digests["rules"] != adjudge.load_run(run).manifest.digests["rules"]
    asked = "select distinct why from evidence where rule = 'night.minimum_altitude' and outcome = 'not_applicable'"
    reasons = adjudge_cli("query", tmp_path / "night", asked).stdout
    assert "needs safety_constraint.extreme_speed" in reasons
    adjudge.verify(night)


@pytest.mark.parametrize(
    "words",
    [("gate", "RUN"), ("report", "RUN"), ("compare", "RUN"), ("export", "RUN", "--records", "jsonl"), ("sign", "RUN")],
    ids=lambda words: words[0],
)
def test_a_run_whose_files_were_altered_is_refused_unless_that_is_asked_for(adjudge_cli, run, tmp_path, words):
    copy = shutil.copytree(run, tmp_path / "run")
    metrics = json.loads((copy / "metrics.json").read_text())
    metrics["estimates"][0]["value"] = 0.99
    (copy / "metrics.json").write_text(json.dumps(metrics))
    (tmp_path / "key").write_text("no key")
    words = [str(copy) if word == "RUN" else word for word in words]
    words += ["--key", tmp_path / "key"] if words[0] == "sign" else []
    done = adjudge_cli(*words)
    assert done.returncode == 2
    assert "metrics.json: its content is not the one in the manifest" in done.stderr
    assert done.stdout == ""
    if words[0] != "sign":
        assert adjudge_cli(*words, "--unverified").returncode in {0, 1}


def test_a_signature_and_the_printed_digest_are_checked_by_verify(adjudge_cli, run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    done = adjudge_cli("sign", copy, "--key", key)
    assert done.returncode == 0
    digest = done.stderr.strip().rpartition("sha256:")[2]
    assert adjudge_cli("verify", copy, "--key", f"{key}.pub", "--expect", digest, "--quiet").returncode == 0
    assert adjudge_cli("verify", run, "--key", f"{key}.pub", "--quiet").returncode == 1
    assert adjudge_cli("verify", copy, "--expect", "f" * 64, "--quiet").returncode == 1


def test_the_in_toto_statement_names_every_file_and_gate(adjudge_cli, run):
    statement = json.loads(adjudge_cli("export", run, "--in-toto").stdout)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    manifest = json.loads((run / "manifest.json").read_text())
    digests = {entry["name"]: entry["digest"]["sha256"] for entry in statement["subject"]}
    assert digests.pop("manifest.json") == hashlib.sha256((run / "manifest.json").read_bytes()).hexdigest()
    assert digests == {entry["path"]: entry["sha256"] for entry in manifest["files"]}
    gates = json.loads((run / "metrics.json").read_text())["gates"]
    predicate = statement["predicate"]
    assert {*predicate["passedTests"], *predicate["failedTests"]} == set(gates)
    assert predicate["result"] == ("WARNED" if not gates else "FAILED" if predicate["failedTests"] else "PASSED")
