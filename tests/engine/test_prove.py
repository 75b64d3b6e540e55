"""What a run alone cannot prove is said, and proven by the input files, a published digest or a key."""

import json
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adjudge
from adjudge.engine.prove import prove
from adjudge.engine.verify import ENGINE_KEYS, FROM_INPUT, SETTINGS
from adjudge.protocols.base import names, protocol
from adjudge.provenance.canonical import file_digest
from adjudge.report.html import check
from adjudge.runs.signature import SIGNATURE, sign, signature_problem

OURS = [name for name in names() if type(protocol(name)).__module__.startswith("adjudge.")]


def small(name, folder):
    """A protocol's example, and the files it reads."""
    config = protocol(name).example(folder, 3)
    return {**config, **({} if name == "anomaly" else {"resamples": 100})}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(run, its input files) of every protocol, made once."""
    runs = {}

    def of(name):
        if name not in runs:
            folder = tmp_path_factory.mktemp(name)
            config = small(name, folder / "data")
            plan = protocol(name).plan(config)
            run = adjudge.evaluate(name, config, out=folder / "run", report=False)
            paths = [path for item in plan.inputs() for path in item.paths]
            runs[name] = run.path, paths or list((folder / "data").iterdir())
        return runs[name]

    return of


def rewrite_digests(path):
    manifest = json.loads((path / "manifest.json").read_text())
    for entry in manifest["files"]:
        entry |= {"bytes": (path / entry["path"]).stat().st_size, "sha256": file_digest(path / entry["path"])}
    (path / "manifest.json").write_text(json.dumps(manifest))


def starts(texts, what):
    return any(text.startswith(what) for text in texts)


@pytest.mark.parametrize("name", OURS)
def test_a_run_alone_leaves_the_input_and_the_settings_unproven(made, name):
    result = prove(adjudge.load_run(made(name)[0]))
    assert result.problems == []
    assert starts(result.not_checked, FROM_INPUT)
    assert starts(result.not_checked, SETTINGS)
    assert "every atom, verdict and bucket, from the stored values" in result.checked


@pytest.mark.parametrize("name", OURS)
def test_the_inputs_are_judged_again_and_give_the_same_bytes(made, name, tmp_path):
    run, inputs = made(name)
    moved = [shutil.copy(path, tmp_path / f"{place}-{path.name}") for place, path in enumerate(map(Path, inputs))]
    result = prove(adjudge.load_run(run), inputs=moved)
    assert result.problems == []
    if name == "anomaly":
        assert starts(result.not_checked, "that these files give this run")
        return
    assert "that judging the given files again gives this run, byte for byte" in result.checked
    assert not starts(result.not_checked, FROM_INPUT)
    assert not starts(result.not_checked, "the raw texts")


def test_another_input_is_named(made, tmp_path):
    run, inputs = made("flight")
    other = tmp_path / "outputs.jsonl"
    other.write_text(Path(inputs[0]).read_text() + "\n")
    result = prove(adjudge.load_run(run), inputs=[other, *map(Path, inputs[1:])])
    assert any("no given file has its digest" in text for text in result.problems)
    assert starts(result.not_checked, str(other))


def test_samples_left_out_with_every_number_made_to_fit_are_found_by_the_inputs(made, tmp_path):
    """A run of fewer records with the manifest's inputs of the whole: nothing in the run contradicts it."""
    run, inputs = made("flight")
    config = {key: value for key, value in adjudge.load_run(run).manifest.config.items() if key not in ENGINE_KEYS}
    path = adjudge.evaluate("flight", config, out=tmp_path / "forged", limit=2, report=False).path
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["config"]["limit"] = None
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert prove(adjudge.load_run(path)).problems == []
    result = prove(adjudge.load_run(path), inputs=[Path(path) for path in inputs])
    assert "samples.parquet: is not what the inputs give" in result.problems


def test_ids_that_were_read_are_bound_by_their_digest(made, tmp_path):
    run = shutil.copytree(made("flight")[0], tmp_path / "run")
    table = pq.read_table(run / "samples.parquet")
    names = table.column("sample").to_pylist()
    names = [f"{name}x" if name == names[0] else name for name in names]
    table = table.set_column(table.column_names.index("sample"), "sample", pa.array(names))
    pq.write_table(table, run / "samples.parquet", row_group_size=table.num_rows)
    rewrite_digests(run)
    assert any("ids_sha256" in text for text in prove(adjudge.load_run(run)).problems)


@pytest.mark.parametrize("spelled", ["{}", "sha256:{}", " {} "])
def test_the_digest_that_was_printed_proves_the_settings(made, spelled):
    run = adjudge.load_run(made("triage")[0])
    result = prove(run, expect=spelled.format(run.digest))
    assert result.problems == []
    assert not starts(result.not_checked, SETTINGS)


def test_another_digest_does_not_hold_and_no_digest_is_refused(made):
    run = adjudge.load_run(made("triage")[0])
    (problem,) = prove(run, expect="0" * 64).problems
    assert run.digest in problem
    with pytest.raises(adjudge.ConfigError, match="is no SHA-256"):
        prove(run, expect="abc")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ours", "theirs"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    return folder


def test_a_signed_run_verifies_in_another_folder_with_the_public_key_alone(made, keys, tmp_path):
    here = shutil.copytree(made("flight")[0], tmp_path / "here")
    sign(adjudge.load_run(here), keys / "ours")
    there = shutil.copytree(here, tmp_path / "clone" / "run")
    public = shutil.copy(keys / "ours.pub", tmp_path / "clone" / "key.pub")
    result = prove(adjudge.load_run(there), key=Path(public))
    assert result.problems == []
    assert not starts(result.not_checked, SETTINGS)
    assert not starts(result.not_checked, "whose signature")
    signers = tmp_path / "allowed_signers"
    signers.write_text(f"somebody@example.org {Path(public).read_text()}")
    assert prove(adjudge.load_run(there), key=signers).problems == []


def test_one_changed_byte_anywhere_in_a_signed_run_is_found_and_named(made, keys, tmp_path):
    run = shutil.copytree(made("flight")[0], tmp_path / "run")
    sign(adjudge.load_run(run), keys / "ours")
    files = sorted(path for path in run.rglob("*") if path.is_file())
    assert len(files) > 7
    for path in files:
        data = path.read_bytes()
        for place in (0, len(data) // 2, len(data) - 2):
            changed = bytearray(data)
            changed[place] ^= 1
            path.write_bytes(bytes(changed))
            name = path.relative_to(run).as_posix()
            try:
                problems = prove(adjudge.load_run(run), key=keys / "ours.pub").problems
            except adjudge.AdjudgeError as error:
                problems = [str(error)]
            assert any(name in text for text in problems), (name, place, problems)
        path.write_bytes(data)
    assert prove(adjudge.load_run(run), key=keys / "ours.pub").problems == []


@pytest.mark.parametrize("name", [name for name in OURS if name != "flight"])
def test_one_changed_byte_in_a_signed_run_of_any_protocol_is_found_and_named(made, keys, tmp_path, name):
    run = shutil.copytree(made(name)[0], tmp_path / "run")
    sign(adjudge.load_run(run), keys / "ours")
    assert prove(adjudge.load_run(run), key=keys / "ours.pub").problems == []
    for path in (run / "manifest.json", run / SIGNATURE, min((run / "evidence").iterdir())):
        data = path.read_bytes()
        changed = bytearray(data)
        changed[len(data) * 2 // 3] ^= 1
        path.write_bytes(bytes(changed))
        try:
            problems = prove(adjudge.load_run(run), key=keys / "ours.pub").problems
        except adjudge.AdjudgeError as error:
            problems = [str(error)]
        assert any(path.relative_to(run).as_posix() in text for text in problems), problems
        path.write_bytes(data)


def test_every_byte_of_a_signature_counts(made, keys, tmp_path):
    run = adjudge.load_run(shutil.copytree(made("consistency")[0], tmp_path / "run"))
    data = sign(run, keys / "ours").read_bytes()
    ends = [place for place, sign in enumerate(data) if sign == ord("\n")]
    for place in {*ends, *range(0, len(data), 10)}:
        for bit in (1, 0x20, 0x80):
            changed = bytearray(data)
            changed[place] ^= bit
            (run.path / SIGNATURE).write_bytes(bytes(changed))
            assert str(signature_problem(run, keys / "ours.pub")).startswith(SIGNATURE), (place, bit)
    (run.path / SIGNATURE).write_bytes(data)
    assert signature_problem(run, keys / "ours.pub") is None


def test_another_key_no_signature_and_no_key_are_told_apart(made, keys, tmp_path):
    run = shutil.copytree(made("flight")[0], tmp_path / "run")
    loaded = adjudge.load_run(run)
    assert prove(loaded, key=keys / "ours.pub").problems == [f"{SIGNATURE}: the run is not signed"]
    sign(loaded, keys / "ours")
    assert starts(prove(loaded).not_checked, "whose signature")
    (problem,) = prove(loaded, key=keys / "theirs.pub").problems
    assert problem.startswith(f"{SIGNATURE}: is not the signature of manifest.json by ")
    with pytest.raises(adjudge.ConfigError, match="has no SSH public key"):
        prove(loaded, key=run / "manifest.json")
    with pytest.raises(adjudge.ConfigError, match="there is no such key"):
        sign(loaded, keys / "nobody")


def test_a_signature_made_for_something_else_does_not_count(made, keys, tmp_path):
    run = shutil.copytree(made("flight")[0], tmp_path / "run")
    words = ["ssh-keygen", "-Y", "sign", "-q", "-f", keys / "ours", "-n", "git", run / "manifest.json"]
    subprocess.run(words, check=True, capture_output=True)
    assert (run / SIGNATURE).is_file()
    assert len(prove(adjudge.load_run(run), key=keys / "ours.pub").problems) == 1


def test_a_text_of_outputs_that_was_replaced_is_found_where_answers_are_read_again(made, tmp_path):
    run = shutil.copytree(made("flight")[0], tmp_path / "run")
    path = run / "outputs" / "part-00000.parquet"
    file = pq.ParquetFile(path)
    groups = [file.read_row_group(place) for place in range(file.num_row_groups)]
    texts = groups[0].column("response").to_pylist()
    row = next(place for place, text in enumerate(texts) if text and '"Roll (deg)": ' in text)
    texts[row] = texts[row].replace('"Roll (deg)": ', '"Roll (deg)": 1')
    groups[0] = groups[0].set_column(1, "response", pa.array(texts))
    groups[0] = groups[0].set_column(
        2, "characters", pa.array([None if t is None else len(t) for t in texts], pa.int64())
    )
    with pq.ParquetWriter(path, groups[0].schema) as writer:
        for group in groups:
            writer.write_table(group)
    rewrite_digests(run)
    found = prove(adjudge.load_run(run)).problems
    assert "outputs/part-00000.parquet: answer in samples.parquet is not what the texts give" in found


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda m: m.update(verdict="pass"), "the verdict is 'pass'"),
        (lambda m: m["seeds"].update(seed=5), "the seeds are not"),
        (lambda m: m["notes"].append("all is well"), "the notes are not"),
        (lambda m: m["digests"].update(more="0" * 64), "digest more is of nothing"),
        (lambda m: m["digests"].update(report_data="0" * 64), "is that of a page, but the run has none"),
    ],
)
def test_what_the_manifest_repeats_is_held_against_it(made, tmp_path, change, words):
    run = shutil.copytree(made("flight")[0], tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    change(manifest)
    (run / "manifest.json").write_text(json.dumps(manifest))
    problems = prove(adjudge.load_run(run), check_report=check).problems
    assert any(words in text for text in problems), problems
