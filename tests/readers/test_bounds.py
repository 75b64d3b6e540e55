"""Every bound of the input ends in a sentence that names it, and can be raised."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import adjudge
from adjudge.cli.main import main
from adjudge.errors import ConfigError, InputError
from adjudge.protocols.base import protocol
from adjudge.readers.blocks import blocks
from adjudge.readers.records import AS_IT_IS, records
from adjudge.readers.settings import text_of, yaml_of
from adjudge.readers.sources import BOUNDS, bound, open_source, raise_bounds

FORMATS = (Path(__file__).parent.parent.parent / "docs" / "formats.md").read_text()


def read(path, limit=None):
    with open_source(str(path)) as source:
        return [json.loads(record) for block in blocks(source, 0, AS_IT_IS, limit=limit) for record in block.records()]


@pytest.fixture
def lower(monkeypatch):
    return lambda name, number: monkeypatch.setenv(f"ADJUDGE_MAX_{name.upper()}", str(number))


def test_a_line_that_does_not_end(tmp_path, lower):
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": 1}\n{"id": "' + "x" * (3 << 20) + '"}\n')
    assert len(read(path)) == 2
    lower("line_mb", 1)
    with pytest.raises(InputError, match=r"a line is too long; at most 1 megabytes .*--max line_mb=NUMBER"):
        read(path)


def test_a_document_that_is_too_large(tmp_path, lower):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"id": "x" * 1000}] * 2000))
    assert len(read(path)) == 2000
    lower("document_mb", 1)
    with pytest.raises(InputError, match="is too large to be read whole; at most 1 megabytes"):
        read(path)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_small_file_that_unpacks_to_gigabytes_is_refused_early(tmp_path, codec):
    path = tmp_path / "bomb.jsonl"
    line = b'{"id": "a"}' + b" " * 1_000_000 + b"\n"
    if codec == "gzip":
        with gzip.open(path, "wb", 9) as file:
            for _ in range(600):
                file.write(line)
    else:
        with pa.OSFile(str(path), "wb") as raw, pa.CompressedOutputStream(raw, "zstd") as file:
            for _ in range(600):
                file.write(line)
    assert path.stat().st_size < 1 << 20
    code = (
        "import resource, sys\nfrom pathlib import Path\nsys.path.insert(0, sys.argv[2])\n"
        "from test_bounds import read\nfrom adjudge.errors import InputError\n"
        "try:\n    read(Path(sys.argv[1]))\nexcept InputError as error:\n    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    words = [sys.executable, "-c", code, path, str(__file__).rpartition("/")[0]]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    message, megabytes = done.stdout.strip().splitlines()
    if codec == "zstd":
        assert "unpacks to far more than its size; at most 1,000 times" in message
    else:
        assert "unpacks to far more" in message or path.stat().st_size * 1000 > 600 << 20
    assert int(megabytes) < 1000


def test_blank_lines(tmp_path, lower):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"id": 1}\n' + b"\n" * (5 << 20) + b'{"id": 2}\n')
    lower("blank_lines", 10_000_000)
    assert len(read(path)) == 2
    lower("blank_lines", 1_000_000)
    with pytest.raises(InputError, match="has only blank lines here; at most 1,000,000 blank lines in a row"):
        read(path)


@pytest.mark.parametrize("spelled", ["[" * 5000 + "]" * 5000, '{"id": ' * 3000 + "1" + "}" * 3000])
def test_json_that_is_too_deep(tmp_path, spelled):
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": "a", "x": ' + spelled + "}\n")
    done = CliRunner().invoke(
        main, ["consistency", "--pairs", str(path), "--out", str(tmp_path / "run")], standalone_mode=False
    )
    assert isinstance(done.exception, InputError)
    assert "x.jsonl:1: " in str(done.exception)


@pytest.mark.parametrize(
    "text, words",
    [
        ("[" * 60 + "]" * 60, "nested deeper than 50 levels"),
        ("a: &a [x, x]\n" + "\n".join(f"b{k}: [{', '.join(['*a'] * 9)}]" for k in range(9)), "over 50 aliases"),
        ("a: [", "is not YAML"),
        ("a: \x00", "is not YAML"),
    ],
)
def test_yaml_that_is_endless(tmp_path, text, words):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        yaml_of(text_of(path), path)


def test_more_models_than_a_run_takes(tmp_path, lower):
    config = protocol("flight").example(tmp_path / "data", 1)
    lower("models", 2)
    words = ["flight", "--task", "S1", *(word for path in config["outputs"] for word in ("--outputs", path))]
    done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "run"), "--limit", "3"], standalone_mode=False)
    assert "the input names 5 models; at most 2 models" in str(done.exception)
    done = CliRunner().invoke(
        main,
        [*words, "--out", str(tmp_path / "run"), "--limit", "3", "--max", "models=9", "--no-report"],
        standalone_mode=False,
    )
    assert done.exception is None


@pytest.mark.parametrize("protocol_name", ["triage", "score"])
def test_a_key_with_more_values_than_a_run_is_sliced_by(tmp_path, lower, protocol_name):
    answers = {"triage": {"prediction": "real"}, "score": {"score": 1.0}}[protocol_name]
    records = [{"id": f"s{k}", "label": "real", "meta": {"source": f"v{k}"}, **answers} for k in range(4)]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    role = {
        "triage": {"results": [[str(tmp_path / "records.jsonl")]]},
        "score": {"logs": [str(tmp_path / "records.jsonl")]},
    }
    config = {**role[protocol_name], "slices": ["meta.source"]}
    lower("slices", 3)
    with pytest.raises(ConfigError, match="the records have 4 values of it; at most 3 values"):
        adjudge.evaluate(protocol_name, config, out=tmp_path / "run", report=False)
    assert not (tmp_path / "run").exists()
    lower("slices", 4)
    assert adjudge.evaluate(protocol_name, config, out=tmp_path / "run", report=False).path.exists()


@pytest.mark.parametrize(
    "protocol_name, name", [("triage", "bins"), ("triage", "resamples"), ("flight", "resamples"), ("gui", "resamples")]
)
def test_settings_of_a_received_manifest_are_bounded(tmp_path, name, protocol_name):
    config = protocol(protocol_name).example(tmp_path / "data", 1)
    with pytest.raises(ConfigError, match=f"{name} is 1000000000, expected 1"):
        protocol(protocol_name).plan({**config, name: 10**9})


def test_a_corrupt_parquet_file_is_named_with_its_record(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": [f"{k:06d}" for k in range(20_000)]}), path, compression="none", row_group_size=5000)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 400] = bytes(400)
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match=r"x\.parquet: (cannot be read after record|is not readable)"):
        read(path)


def _rows_of_one_text(path, rows, size):
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * size])
    pq.write_table(pa.table({"id": [str(k) for k in range(rows)], "text": text}), path, compression="zstd")


def test_one_long_text_in_every_row_of_a_parquet_file_is_refused_before_it_takes_memory(tmp_path):
    path = tmp_path / "bomb.parquet"
    _rows_of_one_text(path, 2000, 16 << 20)  # 32 GB of texts in a few KB
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30,) * 2)\n"
        "from adjudge.cli.start import run; run()"
    )
    command = [
        sys.executable,
        "-c",
        program,
        "score",
        str(path),
        "--column",
        "score=text",
        "--out",
        str(tmp_path / "run"),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "unpacks to far more than its size; at most 1,000 times its size" in ended.stderr
    assert not (tmp_path / "run").exists()


def test_long_texts_of_a_parquet_file_are_read_whole(tmp_path):
    path = tmp_path / "x.parquet"
    _rows_of_one_text(path, 10, 20_000_000)
    assert {(len(row["text"]), row["text"][:1]) for row in read(path, limit=10)} == {(20_000_000, "x")}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_that_stands_twice(tmp_path, kind):
    path = tmp_path / f"x.{kind}"
    if kind == "csv":
        path.write_text("id,label,label\n1,a,b\n")
    else:
        pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"]), path)
    with pytest.raises(InputError, match="stands twice"):
        read(path)


def test_bytes_that_are_no_characters_in_a_csv_are_replaced_and_noted(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes("id,label\n1,caf\xe9\n2,plain\n".encode("latin-1"))
    with open_source(str(path)) as source:
        (block,) = blocks(source, 0, AS_IT_IS)
    assert json.loads(block.records()[0])["label"] == "caf\ufffd"
    assert list(block.mended) == [2]


@pytest.mark.parametrize("sign, point", [(";", "."), ("\t", "."), (",", ",")])
def test_decimal_commas_are_read_where_no_comma_separates_cells(tmp_path, sign, point):
    path = tmp_path / "x.csv"
    cells = ["0,5", "-1,25", "1,5e-3", "1.234,5", "1,2,3", "a 0,5", "7"]
    rows = [f'{number}{sign}"{cell}"' for number, cell in enumerate(cells)]
    path.write_text("\n".join([f"id{sign}score", *rows]))
    with open_source(str(path)) as source:
        (block,) = blocks(source, 0, AS_IT_IS)
        assert source.decimal_commas == (3 if point == "." else 0)
    scores = [json.loads(record)["score"] for record in block.records()]
    assert scores == [cell.replace(",", point) for cell in cells[:3]] + cells[3:]
    with open_source(str(path)) as source:  # a prompt is not rewritten
        assert [json.loads(record)["score"] for _, record in records(source)] == cells


def test_utf_16_is_told(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,label\n1,a\n", encoding="utf-16")
    with pytest.raises(InputError, match="is UTF-16 text, expected UTF-8"):
        read(path)


@pytest.mark.parametrize("setting", ["speed=1", "models", "models=", "models=-1", "models=x", "models=0", "models=1e9"])
def test_a_bound_that_is_none(setting):
    with pytest.raises(ConfigError, match="--max"):
        raise_bounds((setting,))


def test_every_bound_has_words(lower):
    for name, (number, what) in BOUNDS.items():
        assert bound(name) == number > 0
        assert f"| `{name}` | {number:,} | {what} |" in FORMATS
