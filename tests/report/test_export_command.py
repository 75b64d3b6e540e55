"""`adjudge export --eee` and `adjudge schema eee-…` through the command line."""

import io
import json
import signal
import sys

import jsonschema
import pytest

from adjudge.cli.main import run as console


def command(*words):
    """The console script in this process: exit code, standard output, standard error."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["adjudge", *map(str, words)])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setattr(signal, "signal", lambda *_: None)
        with pytest.raises(SystemExit) as stopped:
            console()
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return stopped.value.code, *texts


def test_the_records_fit_the_schema_that_is_printed(flight_run, tmp_path):
    about = ("--about", "organization=us", "--about", "relationship=first_party")
    code, out, said = command("export", flight_run.path, "--eee", tmp_path / "eee", *about)
    assert (code, out) == (0, "")
    assert "eee: 5 models" in said
    schema = json.loads(command("schema", "eee-aggregate")[1])
    for path in (tmp_path / "eee").rglob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.validate(document, schema)
        assert document["source_metadata"]["source_organization_name"] == "us"
    code, _, said = command("export", flight_run.path, "--eee", tmp_path / "eee")
    assert code == 2
    assert "exists already" in said


@pytest.mark.parametrize(
    "words, expected",
    [
        ((), "say what to export"),
        (("--eee", "x", "--records", "jsonl"), "say what to export"),
        (("--eee", "x", "--model", "falcon-a"), "leave out"),
        (("--eee", "x", "--about", "organization"), "is not of the form KEY=VALUE"),
        (("--eee", "x", "--about", "colour=red"), "organization, relationship, developer, deployment_type"),
        (("--eee", "x", "--about", "relationship=friend"), "first_party, third_party"),
    ],
)
def test_bad_flags_are_2_and_write_nothing(flight_run, tmp_path, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    code, _, said = command("export", flight_run.path, *words)
    assert code == 2
    assert expected in said
    assert list(tmp_path.iterdir()) == []
