"""Run: a finished run directory, loaded lazily and never written to.

Its tables are frames, which become Arrow, pandas or Polars tables; pandas and Polars are imported only then.
"""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adjudge.errors import ConfigError, RunError
from adjudge.evidence.atoms import Atom, atoms
from adjudge.evidence.rule import Layout
from adjudge.evidence.table import Evidence
from adjudge.provenance.canonical import file_digest
from adjudge.provenance.manifest import SCHEMA_VERSION, Manifest
from adjudge.runs.section import Panel
from adjudge.runs.writer import AGENT, CHARTS, MANIFEST, METRICS, RULES, SAMPLES, VALIDATION
from adjudge.stats.estimate import Estimate, Metric, declaration

_TEXTS = pa.list_(pa.string())
ESTIMATES = pa.schema(
    [
        *((name, pa.string()) for name in ("name", "slice")),
        *((name, pa.float64()) for name in ("value", "low", "high", "level")),
        ("n", pa.int64()),
        ("method", pa.string()),
        ("seed", pa.int64()),
        ("why", pa.string()),
        ("warnings", _TEXTS),
    ]
)


class Frame:
    """A table that is read when it is asked for. Every attribute of a pyarrow Table is there too (`num_rows`, `column` …)."""

    def __init__(self, read: Callable[[], pa.Table]) -> None:
        self._read = read
        self._table: pa.Table | None = None

    def to_arrow(self) -> pa.Table:
        """As a pyarrow Table."""
        if self._table is None:
            self._table = self._read()
        return self._table

    def to_pandas(self) -> Any:
        """As a pandas DataFrame."""
        _installed("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """As a Polars DataFrame."""
        return _installed("polars").from_arrow(self.to_arrow())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.to_arrow(), name)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow C stream, by which other libraries take the table without a copy."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def __repr__(self) -> str:
        return repr(self.to_arrow())


class Estimates(Frame, Mapping[tuple[str, str], Estimate]):
    """The estimates of a run: a table, and a mapping from (name, slice) to `Estimate`."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        super().__init__(lambda: rows_as_table("estimates", rows, ESTIMATES))
        self._rows = rows

    @cached_property
    def _by_key(self) -> dict[tuple[str, str], Estimate]:
        return {(item["name"], item["slice"]): Estimate.from_dict(item) for item in self._rows}

    def __getitem__(self, key: tuple[str, str]) -> Estimate:
        return self._by_key[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    __hash__ = None  # type: ignore[assignment]


def _installed(package: str) -> Any:
    """A package of the user's own; adjudge does not need it."""
    try:
        return import_module(package)
    except ImportError:
        raise ConfigError(
            f"{package} is not installed (pip install {package}); to_arrow() needs nothing more"
        ) from None


def rows_as_table(name: str, rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows of a run's JSON as a table; rows that adjudge does not write are a RunError."""
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise RunError(f"the {name} of the run are not what adjudge writes: {error}") from None


_NO_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)
Recorder = Callable[["Run", dict[str, Any], Sequence[Atom], dict[str, Any]], dict[str, Any]]


def _meant(path: Path) -> str:
    """What lies beside a path that is not there, and is called nearly so."""
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    close = difflib.get_close_matches(path.name, [entry.name for entry in beside], n=1)
    return f"; did you mean {path.with_name(close[0])}?" if close and not path.exists() else ""


class Run:
    """One evaluation's directory. Tables are read when asked for; `record` needs the protocol's view of a sample."""

    def __init__(self, path: Path, recorder: Recorder | None = None) -> None:
        self.path = path
        self.recorder = recorder
        self.declarations: Callable[[], Sequence[Metric]] = tuple
        """The installed protocol's metrics, for runs that do not hold their own."""
        self.panels: Callable[[Run], Sequence[Panel]] = lambda _: ()
        """What the installed protocol shows of an opened sample."""
        self.home: object = None
        """What removes the folder when nobody needs it, where it is a copy."""
        self.held: dict[tuple[int, int], tuple[dict[str, Any], Evidence, dict[str, Any] | None]] = {}
        """Rows that are asked for again, by partition and number, with their evidence and output."""
        self._side_tables: dict[str, tuple[int, pa.Table | None]] = {}
        self._evidence_group: tuple[int, int, pa.Table] | None = None
        if not path.is_dir():
            hint = "; a run on remote storage must be copied to a folder first" if ":/" in str(path) else _meant(path)
            what = (
                "it is a file (adjudge score judges logs)"
                if path.is_file()
                else "there is no such folder, and no such log"
            )
            raise RunError(f"{path} is not a run: {what}{hint}")
        if not (path / MANIFEST).is_file():
            raise RunError(f"{path} is not a run: it has no {MANIFEST}")
        for inside in (*path.glob("*"), *path.glob("*/*")):  # who reads a pipe or a device waits for ever
            if inside.exists() and not inside.is_file() and not inside.is_dir():
                name = inside.relative_to(path).as_posix()
                raise RunError(f"{path} is not a run: {name} is a pipe or a device, expected a file")
        if self.manifest.schema_version.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
            raise RunError(
                f"{path} has schema version {self.manifest.schema_version}; this version reads {SCHEMA_VERSION}"
            )

    @cached_property
    def manifest(self) -> Manifest:
        """manifest.json."""
        try:
            return msgspec.json.decode((self.path / MANIFEST).read_bytes(), type=Manifest)
        except _NO_JSON as error:
            raise RunError(f"{self.path / MANIFEST}: is not the manifest of a run: {error}") from None

    @property
    def digest(self) -> str:
        """SHA-256 of manifest.json, which stands for the whole run."""
        return file_digest(self.path / MANIFEST)

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """metrics.json."""
        document: dict[str, Any] = self._json(METRICS)
        return document

    @cached_property
    def charts(self) -> list[dict[str, Any]]:
        """charts.json: Vega-Lite specifications."""
        specifications: list[dict[str, Any]] = self._json(CHARTS)
        return specifications

    @cached_property
    def layout(self) -> Layout:
        """Positions of the evidence, from rules.json."""
        return Layout.of(self._json(RULES)["rules"])

    @cached_property
    def samples(self) -> Frame:
        """samples.parquet, whole."""
        return Frame(lambda: open_parquet(self.path / SAMPLES).read())

    @cached_property
    def samples_count(self) -> int:
        """How many samples there are."""
        return int(open_parquet(self.path / SAMPLES).metadata.num_rows)

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The columns of samples.parquet."""
        return tuple(open_parquet(self.path / SAMPLES).schema_arrow.names)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Some columns of samples.parquet; the others are not read."""
        return open_parquet(self.path / SAMPLES).read(columns=list(names))

    @cached_property
    def estimates(self) -> Estimates:
        """Every estimate, as a table and by (name, slice)."""
        return Estimates(self.metrics["estimates"])

    def metric(self, name: str) -> Metric:
        """What an estimate of this name is; without a declaration it has neither unit nor range nor direction."""
        declared = self.metrics.get("declared")
        if isinstance(declared, dict) and isinstance(declared.get(name), dict):
            try:
                return msgspec.convert({**declared[name], "name": name}, Metric)
            except (msgspec.ValidationError, ValueError) as error:
                raise RunError(f"{self.path / METRICS}: `declared`: {name}: {error}") from None
        return declaration(self._installed, name) or Metric(name).named(name)

    @cached_property
    def _installed(self) -> Sequence[Metric]:
        return self.declarations()

    def parts(self) -> Iterator[tuple[int, Path]]:
        """The partitions and their evidence files."""
        for path in sorted((self.path / "evidence").glob("part-*.parquet")):
            yield int(path.stem.removeprefix("part-")), path

    def batches(self) -> Iterator[tuple[int, pa.Table, Evidence]]:
        """(partition, samples, evidence) batch by batch, as they were written."""
        for part, _, samples, evidence in self.numbered_batches():
            yield part, samples, evidence

    def numbered_batches(self) -> Iterator[tuple[int, int, pa.Table, Evidence]]:
        """(partition, number of the batch in it, samples, evidence) batch by batch; `outputs` has the raw outputs of one."""
        samples = open_parquet(self.path / SAMPLES)
        group = 0
        for part, path in self.parts():
            file = open_parquet(path)
            for index in range(file.num_row_groups):
                if group >= samples.num_row_groups:
                    raise RunError(f"{self.path / SAMPLES} has fewer batches than the evidence")
                evidence = Evidence.from_arrow(file.read_row_group(index), self.layout)
                yield part, index, samples.read_row_group(group), evidence
                group += 1
        if group != samples.num_row_groups:
            raise RunError(f"{self.path / SAMPLES} has more batches than the evidence")

    def find(self, sample: str, model: str | None = None) -> list[dict[str, Any]]:
        """The rows of one sample id, of all models or one; an unknown id is a RunError that suggests a close one."""
        path = self.path / SAMPLES
        rows = self._in_its_partition(sample)
        if not rows:  # cut by something else, such as the episode of a step
            rows = pq.read_table(path, filters=pc.field("sample") == sample).to_pylist()
        if not rows:
            known = [
                str(name) for name in pq.read_table(path, columns=["sample"]).column(0).unique().to_pylist()[:20_000]
            ]
            close = difflib.get_close_matches(sample, known, n=3)
            hint = f" Did you mean {', '.join(close)}?" if close else f" The first is {known[0]}." if known else ""
            raise RunError(f"{self.path} has no sample {sample!r}.{hint}")
        chosen = [row for row in rows if model in {None, row["model"]}]
        if not chosen:
            raise RunError(f"sample {sample!r} has no model {model!r}; it has {', '.join(r['model'] for r in rows)}")
        return chosen

    def _in_its_partition(self, sample: str) -> list[dict[str, Any]]:
        """The rows of a sample in the partition that the hash of its id names; nothing where the run is cut otherwise."""
        file = open_parquet(self.path / SAMPLES)
        part = (zlib.crc32(sample.encode()) >> 24) * sum(1 for _ in self.parts()) >> 8
        rows: list[dict[str, Any]] = []
        for index in _groups_with(file, "part", part):
            here = pc.equal(file.read_row_group(index, columns=["sample"]).column(0), sample)
            if pc.any(here).as_py():
                rows += file.read_row_group(index).filter(here).to_pylist()
        return rows

    def evidence_of(self, part: int, row: int) -> Evidence:
        """The evidence of one sample, reading only the row group that holds it."""
        if (part, row) in self.held:
            return self.held[part, row][1]
        file = open_parquet(self.path / "evidence" / f"part-{part:05d}.parquet")
        for index in _groups_with(file, "sample", row):
            if self._evidence_group is None or self._evidence_group[:2] != (part, index):
                self._evidence_group = part, index, file.read_row_group(index)
            table = self._evidence_group[2]
            atoms_of_row = table.filter(pc.equal(table.column("sample"), row))
            if atoms_of_row.num_rows:
                return Evidence.from_arrow(atoms_of_row, self.layout)
        raise RunError(f"{self.path} has no evidence for row {row} of partition {part}")

    def atoms(self, row: dict[str, Any]) -> list[Atom]:
        """The atoms of a row of `samples`, rendered."""
        return list(atoms(self.evidence_of(row["part"], row["row"]), 0, row["model"], row["sample"]))

    def output(self, part: int, row: int) -> dict[str, Any]:
        """The raw output of one sample, as far as the run keeps it."""
        outputs = self.held.get((part, row))
        if outputs is not None and outputs[2] is not None:
            return outputs[2]
        path = self.path / "outputs" / f"part-{part:05d}.parquet"
        rows = pq.read_table(path, filters=pc.field("row") == row).to_pylist()
        if len(rows) != 1:
            raise RunError(f"{path} has no output for row {row}")
        output: dict[str, Any] = rows[0]
        return output

    def outputs(self, part: int, batch: int) -> pa.Table | None:
        """The raw outputs of one batch of a partition; None where there is no such batch."""
        file = open_parquet(self.path / "outputs" / f"part-{part:05d}.parquet")
        return file.read_row_group(batch) if batch < file.num_row_groups else None

    @cached_property
    def agent(self) -> dict[str, Any] | None:
        """agent.json: who judged, and the checklist; None where no agent did, or an older version made the run."""
        return self._json(AGENT) if (self.path / AGENT).is_file() else None

    @cached_property
    def validation(self) -> dict[str, Any] | None:
        """validation.json: how far the judge agrees with rules and people; None where nobody validated it."""
        return self._json(VALIDATION) if (self.path / VALIDATION).is_file() else None

    def side_table(self, kind: str, part: int) -> pa.Table | None:
        """A further table of one partition (`agent`, `transcripts`); None where there is none. The last of a kind stays."""
        if self._side_tables.get(kind, (-1, None))[0] != part:
            path = self.path / kind / f"part-{part:05d}.parquet"
            self._side_tables[kind] = part, open_parquet(path).read() if path.is_file() else None
        return self._side_tables[kind][1]

    def agent_row(self, row: dict[str, Any]) -> dict[str, Any] | None:
        """How the verdict on a row of `samples` came about; None where an older version made the run."""
        table = self.side_table("agent", row["part"])
        return None if table is None else table.slice(row["row"], 1).to_pylist()[0]

    def record(self, sample: str, model: str | None = None) -> dict[str, Any]:
        """One sample as an object (the shape is the protocol's); with several models, name one."""
        rows = self.find(sample, model)
        if len(rows) > 1:
            raise RunError(
                f"sample {sample!r} has {len(rows)} models: name one of {', '.join(r['model'] for r in rows)}"
            )
        row = rows[0]
        return self._record(row, self.atoms(row), self.output(row["part"], row["row"]))

    def records(self) -> Iterator[dict[str, Any]]:
        """Every sample as an object, in the order of the run."""
        for part, batch, samples, evidence in self.numbered_batches():
            outputs = self.outputs(part, batch)
            if outputs is None:
                raise RunError(f"{self.path} has no outputs for batch {batch} of partition {part}")
            for index, (row, output) in enumerate(zip(samples.to_pylist(), outputs.to_pylist(), strict=True)):
                yield self._record(row, list(atoms(evidence, index, row["model"], row["sample"])), output)

    def _record(self, row: dict[str, Any], atoms_of_row: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
        if self.recorder is None:
            raise RunError("this run was opened without a record view; use adjudge.load_run")
        return self.recorder(self, row, atoms_of_row, output)

    def _json(self, name: str) -> Any:
        try:
            return msgspec.json.decode((self.path / name).read_bytes())
        except FileNotFoundError:
            raise RunError(f"{self.path} is incomplete: {name} is missing") from None
        except _NO_JSON as error:
            raise RunError(f"{self.path / name}: {error}") from None


def open_parquet(path: Path) -> pq.ParquetFile:
    """A Parquet file of a run; RunError where it is missing or not readable."""
    try:
        return pq.ParquetFile(path)
    except FileNotFoundError:
        raise RunError(f"the run is incomplete: {path} is missing") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path} is not readable: {error}") from None


def _groups_with(file: pq.ParquetFile, column: str, value: int) -> Iterator[int]:
    """The row groups that may have a value in a column, by its bounds; one without bounds may have any."""
    place = file.schema_arrow.get_field_index(column)
    for index in range(file.num_row_groups):
        bounds = file.metadata.row_group(index).column(place).statistics
        if bounds is None or not bounds.has_min_max or bounds.min <= value <= bounds.max:
            yield index
