"""Input and output behind URLs: the bytes of a local run, errors a user can act on, no half run anywhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import adjudge
from adjudge.protocols.base import protocol
from adjudge.readers.sources import file_name, is_url

SMALL = (
    "from adjudge.engine import ranges, split\n"
    "if __name__ == '__main__':\n    ranges.RANGE_BYTES, split.ROWS_A_PARTITION = 1 << 18, 512\n"
)


@pytest.fixture
def data(tmp_path, store):
    """The example of flight, in a folder and in the bucket; gives the local flags."""
    config = protocol("flight").example(tmp_path / "data", 0)
    config["outputs"] = config["outputs"][:2]
    for path in (*config["outputs"], *config["reference"]):
        store.keys[f"data/{file_name(path)}"] = Path(path).read_bytes()
    return config


def flags(outputs, reference):
    return ["flight", "--task", "S1", "--outputs", *outputs, "--reference", *reference, "--quiet", "--no-report"]


REMOTE = flags(["bucket://data/outputs_*.jsonl"], ["bucket://data/reference.jsonl"])


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }


def by_name(inputs):
    return {item["name"]: item for item in inputs}


def stored(store, root):
    files = {key.removeprefix(root): value for key, value in store.keys.items() if key.startswith(root)}
    manifest = json.loads(files.pop("manifest.json"))
    return files, manifest


@pytest.mark.parametrize("workers", [[], ["--workers", "2"], ["--cluster", "local", "--workers", "2"]])
def test_a_remote_run_has_the_bytes_of_a_local_one(workers, data, store, cli, tmp_path):
    local = cli(*flags(data["outputs"], data["reference"]), "--out", "local", before=SMALL)
    assert local.returncode == 0, local.stderr
    done = cli(*REMOTE, "--out", "bucket://runs/one", *workers, before=SMALL)
    assert done.returncode == 0, done.stderr
    files, manifest = stored(store, "runs/one/")
    assert files == content(tmp_path / "local")
    of_local = json.loads((tmp_path / "local" / "manifest.json").read_bytes())
    assert by_name(manifest["inputs"]) == by_name(of_local["inputs"])
    put = [key for method, key, *_ in store.log if method == "PUT"]
    assert put[-1] == "runs/one/manifest.json"
    readers = {process for method, key, process, ranged in store.log if ranged and key.startswith("data/")}
    assert len(readers) >= 2 if workers else len(readers) == 1
    assert not list(tmp_path.glob("adjudge-*"))


def test_a_remote_run_is_read_back(data, store, cli, tmp_path):
    assert cli(*REMOTE, "--out", "bucket://runs/one").returncode == 0
    held = cli("verify", "bucket://runs/one")
    assert held.returncode == 0, held.stderr
    assert "bucket://runs/one holds" in held.stderr
    sample = cli("query", "bucket://runs/one", "select sample, model from samples limit 1", "--format", "csv")
    name, model = sample.stdout.splitlines()[1].split(",")
    shown = cli("explain", "bucket://runs/one", name, "--model", model)
    assert name in shown.stdout
    assert cli("gate", "bucket://runs/one", "--gate", f"{model}/eligibility_rate >= 0").returncode == 0
    store.keys["runs/one/metrics.json"] += b" "
    broken = cli("verify", "bucket://runs/one")
    assert broken.returncode == 1
    assert "metrics.json: its content is not the one in the manifest" in broken.stderr
    assert not list(tmp_path.glob("adjudge-*"))


def test_a_collection_reads_and_writes_remotely(store, cli, tmp_path):
    rows = [{"id": f"s{k}", "label": ("real", "fake")[k % 2]} for k in range(6)]
    store.keys["data/set.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (tmp_path / "mine.py").write_text("def answer(request):\n    return {'label': 'real'}\n")
    words = ["--dataset", "bucket://data/set.jsonl", "--subject", "python:mine:answer", "--output", "results.jsonl"]
    done = cli("collect", *words, "--metrics-output", "metrics.json", "--out", "bucket://runs/c", "--quiet")
    assert done.returncode == 0, done.stderr
    assert stored(store, "runs/c/")[0]["metrics.json"] == (tmp_path / "metrics.json").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if ":" in path.name) == []


def test_an_existing_run_is_replaced_only_by_force_and_whole(data, store, cli):
    assert cli(*REMOTE, "--out", "bucket://runs/one", "--limit", "3").returncode == 0
    first = dict(store.keys)
    again = cli(*REMOTE, "--out", "bucket://runs/one")
    assert again.returncode == 2
    assert "bucket://runs/one exists already" in again.stderr
    assert store.keys == first
    store.keys["runs/one/evidence/part-00009.parquet"] = b"of an older run"
    store.log.clear()
    assert cli(*REMOTE, "--out", "bucket://runs/one", "--force").returncode == 0
    files, _ = stored(store, "runs/one/")
    assert "evidence/part-00009.parquet" not in files
    assert files["samples.parquet"] != first["runs/one/samples.parquet"]
    changed = [(method, key) for method, key, *_ in store.log if method in {"PUT", "DELETE"}]
    assert changed[0] == ("DELETE", "runs/one/manifest.json")
    assert changed[-1] == ("PUT", "runs/one/manifest.json")


def test_force_does_not_replace_what_is_no_run(data, store, cli):
    store.keys["runs/thesis.tex"] = b"years of work"
    done = cli(*REMOTE, "--out", "bucket://runs", "--force")
    assert done.returncode == 2
    assert "is no run of adjudge" in done.stderr
    assert store.keys["runs/thesis.tex"] == b"years of work"


def test_a_run_that_cannot_be_uploaded_is_kept(data, store, cli, tmp_path):
    done = cli(*REMOTE, "--out", "bucket://full/one")
    assert done.returncode == 2
    assert "bucket://full/one: cannot be written: 507" in done.stderr
    kept = re.search(r"the run is kept in (\S+)", done.stderr)[1]
    adjudge.verify(kept)
    assert not [key for key in store.keys if key.startswith("full/")]


@pytest.mark.parametrize(
    "url, before, said",
    [
        ("bucket://data/none.jsonl", "", "bucket://data/none.jsonl: there is no such file."),
        ("bucket://data/none*.jsonl", "", "bucket://data/none*.jsonl: no file matches"),
        ("nosuch://data/x.jsonl", "", "Install the package that provides nosuch://"),
        (
            "s3://data/x.jsonl",
            "import sys; sys.modules['s3fs'] = None",
            "s3:// needs another package: Install s3fs to access S3",
        ),
        (
            "bucket://data/x.jsonl",
            "import sys; sys.modules['fsspec'] = None",
            "a URL needs fsspec: pip install 'adjudge[remote]'",
        ),
    ],
)
def test_what_cannot_be_read_is_said(url, before, said, data, cli):
    done = cli(*flags([url], data["reference"]), "--out", "run", "--workers", "2", before=before)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_store_that_does_not_answer_is_said(data, cli):
    words = flags(["bucket://data/x.jsonl"], data["reference"])
    done = cli(*words, "--out", "run", BUCKET_ADDRESS="127.0.0.1:9")
    assert done.returncode == 2
    assert "bucket://data/x.jsonl: cannot be read: [Errno" in done.stderr
    done = cli(*words, "--out", "bucket://runs/x", BUCKET_ADDRESS="127.0.0.1:9")
    assert done.returncode == 2
    assert "bucket://runs/x: cannot be written: [Errno" in done.stderr


@pytest.mark.parametrize("protocol", ["nosuch", "s3"])
def test_where_nothing_can_be_written_nothing_is_judged(protocol, data, cli, tmp_path):
    before = "import sys; sys.modules['s3fs'] = None"
    done = cli(*flags(data["outputs"], data["reference"]), "--out", f"{protocol}://runs/x", before=before)
    assert done.returncode == 2
    assert f"{protocol}://runs/x: " in done.stderr
    assert not list(tmp_path.glob("*run*"))


def test_a_folder_that_is_no_run_is_said(store, cli):
    done = cli("verify", "bucket://runs/none")
    assert done.returncode == 2
    assert "bucket://runs/none is not a run: it has no manifest.json" in done.stderr


def test_a_broken_line_in_a_range_is_named_by_its_url_and_line(data, store, cli):
    key = f"data/{file_name(data['outputs'][0])}"
    lines = store.keys[key].splitlines(keepends=True)
    lines[-2] = lines[-2][:40] + b"\n"
    store.keys[key] = b"".join(lines)
    words = flags([f"bucket://{key}"], data["reference"])
    for workers in ("1", "2"):
        done = cli(*words, "--out", "run", "--workers", workers, before=SMALL)
        assert done.returncode == 2
        assert f"bucket://{key}:{len(lines) - 1}: " in done.stderr


def test_a_file_that_changes_while_it_is_read_is_refused(data, store, package, monkeypatch, tmp_path):
    import fsspec

    monkeypatch.syspath_prepend(package)
    fsspec.register_implementation("bucket", "bucketfs.BucketFileSystem", clobber=True)
    monkeypatch.setenv("BUCKET_ADDRESS", f"127.0.0.1:{store.server_address[1]}")
    url = "bucket://data/reference.jsonl"
    config = {**data, "reference": [url]}
    from adjudge.engine.evaluate import Options, evaluate

    def change(rows, total):
        store.keys["data/reference.jsonl"] += b"\n"

    with pytest.raises(adjudge.InputError, match=r"reference\.jsonl: changed while it was being read"):
        evaluate(protocol("flight"), config, Options(out=tmp_path / "run", on_progress=change))
    run = adjudge.evaluate("flight", config, out="bucket://runs/two", report=False)
    assert run.samples.num_rows == adjudge.load_run("bucket://runs/two").samples.num_rows > 0


@pytest.mark.parametrize(
    "path, url, name",
    [
        ("s3://bucket/a/x.jsonl", True, "x.jsonl"),
        ("simplecache::s3://bucket/x.jsonl", True, "x.jsonl"),
        ("https://host/x.jsonl?signature=secret", True, "x.jsonl"),
        ("a/x.jsonl", False, "x.jsonl"),
        ("what?.jsonl", False, "what?.jsonl"),
        ("-", False, "-"),
        ("C:\\x", False, "C:\\x"),
        ("run::model", False, "run::model"),
    ],
)
def test_what_is_a_url(path, url, name):
    assert is_url(path) is url
    assert file_name(path) == name
