"""The functions and classes of the front door; `import adjudge` loads none of this before it is asked for."""

from __future__ import annotations

import difflib
import html
import itertools
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from adjudge.comparisons.comparison import Comparison as ComparisonData
from adjudge.comparisons.comparison import compare as compare_runs
from adjudge.engine import evaluate as engine
from adjudge.engine.from_logs import as_runs
from adjudge.engine.metrics import introduce
from adjudge.engine.prove import prove
from adjudge.engine.remote import Copy
from adjudge.engine.verify import Verification
from adjudge.errors import ConfigError, OutputError, RunError, VerificationFailed
from adjudge.plugins import plugin
from adjudge.protocols.base import protocol as installed_protocol
from adjudge.readers import memory
from adjudge.readers.sources import is_url
from adjudge.runs.query import as_table
from adjudge.runs.run import Frame, rows_as_table
from adjudge.runs.run import Run as RunFolder
from adjudge.stats.estimate import Estimate
from adjudge.verdict.gates import Gate

_GATES = pa.schema(
    [
        *((name, pa.string()) for name in ("name", "metric", "op")),
        ("bound", pa.float64()),
        ("on", pa.string()),
        ("observed", pa.float64()),
        *((name, pa.string()) for name in ("outcome", "why")),
    ]
)
_NUMBERS = itertools.count(1)
"""Runs in temporary folders are numbered, so that a comparison can call them `triage-1` and `triage-2`."""
_EVIDENCE = "select sample, model, rule, field, step, outcome, severity, observed, why from evidence"


class Text(str):
    """Text that a notebook or a prompt shows as it is written, line by line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Run(RunFolder):
    """One evaluation. Tables are read when they are asked for; nothing of a run is ever changed.

    `estimates`, `samples`, `evidence`, `gates` and `notes` are tables (`to_arrow`, `to_pandas`, `to_polars`);
    `run["accuracy", "hawk-1|tools"]` is one estimate.
    """

    @cached_property
    def evidence(self) -> Frame:
        """Every atom with its sample and model. A large run has very many; `query` reads only what is asked for."""
        return Frame(lambda: as_table(self, _EVIDENCE))

    @cached_property
    def gates(self) -> Frame:
        """Every gate with its bound and its outcome."""
        rows = [{"name": name, **gate} for name, gate in self.metrics["gates"].items()]
        return Frame(lambda: rows_as_table("gates", rows, _GATES))

    @cached_property
    def notes(self) -> Frame:
        """What to read before the numbers."""
        from adjudge.report.view import warnings

        return Frame(lambda: pa.table({"note": pa.array(warnings(self), pa.string())}))

    @property
    def passed(self) -> bool | None:
        """Whether every gate passed; None for a run without gates."""
        outcome: bool | None = self.metrics["pass"]
        return outcome

    def __getitem__(self, key: str | tuple[str, str]) -> Estimate:
        """One estimate by name, or by name and slice (`hawk-1|tools` for `configuration=hawk-1|tools`)."""
        name, where = (key, None) if isinstance(key, str) else key
        slices = [slice_ for known, slice_ in self.estimates if known == name]
        if not slices:
            close = difflib.get_close_matches(name, {known for known, _ in self.estimates}, n=3)
            hint = f"; did you mean {', '.join(close)}?" if close else ""
            raise RunError(f"{self.path} has no estimate {name!r}{hint}")
        wanted = [slice_ for slice_ in slices if where is None or where in {slice_, slice_.partition("=")[2]}]
        if where is None and "" in wanted:
            wanted = [""]
        if len(wanted) != 1:
            shown = ", ".join(repr(slice_.partition("=")[2] or slice_) for slice_ in slices[:8])
            what = "stands for several slices" if where is None else f"has no slice {where!r}"
            raise RunError(f"{name} {what}; name one of {shown}{', …' if len(slices) > 8 else ''}")
        return self.estimates[name, wanted[0]]

    def query(self, sql: str) -> Frame:
        """What one SELECT over `samples`, `evidence`, `outputs`, `rules` and `estimates` gives (DuckDB)."""
        table = as_table(self, sql)
        return Frame(lambda: table)

    def explain(self, sample: str, model: str | None = None) -> Text:
        """The verdict on one sample with the evidence it rests on."""
        from adjudge.report.explain import explain

        return Text(explain(self, sample, model))

    def report(self, path: str | Path | None = None, *, chart: str | None = None) -> Text:
        """The summary; with a path also that file: a page, Markdown, LaTeX, CSV or a chart, by its ending."""
        from adjudge.report.render import ENDINGS, render

        if path is not None:
            kind = Path(path).suffix.removeprefix(".").lower()
            if kind not in ENDINGS:
                raise ConfigError(f"{path}: the ending names no format; expected one of {', '.join(ENDINGS)}")
            from adjudge.runs.tables import write_whole

            write_whole(Path(path), render([self], kind, chart))
        return Text(render([self], "txt").decode().rstrip("\n"))

    def save(self, path: str | Path) -> Run:
        """Copy the run to a folder that is not there yet, and return the copy."""
        target = Path(path)
        if target.exists():
            raise OutputError(f"{target} exists already; choose another folder")
        part = target.with_name(f".{target.name}.part")
        try:
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(self.path, part)
            part.rename(target)
        except OSError as error:
            raise OutputError(f"cannot write {target}: {error.strerror}") from None
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return load_run(target)

    def __repr__(self) -> str:
        from adjudge.report import view

        headline = view.headline(self)
        cells = [
            f"{headline.title(name)} {headline.text(headline.slices[0], name)}"
            for name in headline.names[:3]
            if headline.slices
        ]
        where = f"{view.label(headline.slices[0])}: " if headline.slices and headline.slices[0] else ""
        gates = {True: "every gate passed", False: "not every gate passed", None: "no gates"}[self.passed]
        count = len(self.notes)
        noted = f"{count} note{'' if count == 1 else 's'}" if count else "no notes"
        return "\n".join([view.title(self), where + ", ".join(cells), f"{gates} · {noted} · {self.path}"])

    def _repr_html_(self) -> str:
        from adjudge.report import view

        tables = [view.bucket_table(self), view.headline(self).table()]
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes.column("note").to_pylist())
        return (
            f"<p><b>{html.escape(view.title(self))}</b></p>"
            + "".join(_html_table(head, rows) for head, rows in tables if rows)
            + (f"<ul>{notes}</ul>" if notes else "")
        )


class Comparison(ComparisonData, frozen=True, kw_only=True):
    """The result of `compare`; printed, it is what `adjudge compare` says."""

    def __str__(self) -> str:
        from adjudge.report.comparison import text

        return text(self.to_dict())

    __repr__ = __str__


def evaluate(  # noqa: PLR0913 -- what the flags of every protocol are on the command line
    protocol: str,
    config: Mapping[str, Any] | None = None,
    *,
    out: str | Path | None = None,
    workers: int = 1,
    cluster: str | None = None,
    limit: int | None = None,
    force: bool = False,
    gates: Sequence[str] | str = (),
    report: bool | None = None,
    **options: Any,
) -> Run:
    """Judge outputs with a protocol and return the run: `evaluate("triage", results="r.jsonl", seed=1)`.

    `options` are the protocol's flags with `_` for `-`; `config` holds settings as a configuration file does, and options
    win. Files are names, paths or URLs, or the data itself: a list of dicts, an Arrow table, a pandas or Polars frame.
    Without `out` the run lives in a temporary folder, as long as the `Run` does; `run.save` keeps it. `report` says
    whether report.html is drawn into the run, which takes a second or two; by default where `out` is given.
    """
    from adjudge.cli.common import made_at, report_writer

    chosen = installed_protocol(protocol)
    bounds = [gates] if isinstance(gates, str) else gates
    home = None if out is not None else _Temporary()
    destination = made_at(home.path / f"{protocol}-{next(_NUMBERS)}" if home is not None else out, force=force)
    has_data = any(map(_has_data, options.values()))
    data = tempfile.TemporaryDirectory(prefix="adjudge-input-") if has_data else nullcontext("")
    with destination as folder, data as inputs:
        settings = {**(config or {}), **_settings(protocol, options, Path(inputs))}
        path = engine.evaluate(
            chosen,
            settings,
            engine.Options(
                out=folder,
                workers=workers,
                cluster=cluster,
                limit=limit,
                force=force,
                gates=tuple(Gate.parse(text) for text in bounds),
                report=report_writer if report or (report is None and out is not None) else None,
            ),
        )
    run = load_run(path)
    run.home = home or destination
    return run


def load_run(path: str | Path) -> Run:
    """Open a run directory; nothing is read before it is asked for. A run behind a URL is copied down first."""
    if isinstance(path, str) and is_url(path):
        copy = Copy(path)
        run = Run(copy.folder)
        run.home = copy
    else:
        run = Run(Path(path))
    introduce(run)
    return run


def compare(*runs: str | Path | RunFolder, **options: Any) -> Comparison:
    """Compare runs, or models named `RUN::MODEL`, on the samples they share; the first is what the others are held against.

    Options: metrics, slices, factor, margin, margins, alpha, seed, resamples, model, model_a, model_b, evidence, and
    force. Raises NotComparable with every reason where the comparison is not valid and not forced. Logs of other tools
    are judged first, as `evaluate("score", …)` does.
    """
    with as_runs([str(run) for run in runs if not isinstance(run, RunFolder)]) as words:
        named = iter(words)
        result = compare_runs(*(run if isinstance(run, RunFolder) else next(named) for run in runs), **options)
    return Comparison(**{name: getattr(result, name) for name in result.__struct_fields__})


def verify(
    run: RunFolder | str | Path,
    *,
    inputs: Sequence[str | Path] = (),
    expect: str | None = None,
    key: str | Path | None = None,
) -> Verification:
    """Recompute a run from its own tables; raises VerificationFailed with every difference when it does not hold.

    The result lists what was checked and what was not. The input files, the digest that was printed with the run and the
    public key of who signed it prove more. Of a run that another version made, it says what was not recomputed.
    """
    from adjudge.report.html import check

    result = prove(
        run if isinstance(run, RunFolder) else load_run(run),
        inputs=[Path(path) for path in inputs],
        expect=expect,
        key=None if key is None else Path(key),
        check_report=check,
    )
    if result.problems:
        raise VerificationFailed(result.problems)
    return result


class _Temporary:
    """A folder that is removed with this object, at the latest when the process ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="adjudge-run-"))
        weakref.finalize(self, shutil.rmtree, str(self.path), True)


def _settings(protocol: str, options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Keyword options as the protocol's settings: flags by the name of their setting, data written to files."""
    names, several = _flags(protocol)
    settings: dict[str, Any] = {}
    for flag, value in options.items():
        name = names.get(flag, flag)
        if name in settings:
            raise ConfigError(f"{flag} and {name} are the same setting")
        plain = _without_data(value, folder, flag)
        settings[name] = [plain] if name in several and not isinstance(plain, list | dict) else plain
    return settings


def _flags(protocol: str) -> tuple[dict[str, str], set[str]]:
    """The settings behind the flags of a protocol's command, and those that take several values."""
    import click

    entry = plugin("adjudge.commands", protocol)
    command = None if entry is None else entry.load()
    if not isinstance(command, click.Command):
        return {}, set()
    options = [option for option in command.params if isinstance(option, click.Option) and option.name]
    names = {word.lstrip("-").replace("-", "_"): str(option.name) for option in options for word in option.opts}
    return names, {str(option.name) for option in options if option.multiple}


def _has_data(value: Any) -> bool:
    """Whether a value is a table in memory, or holds one."""
    return memory.is_data(value) or (isinstance(value, list | tuple) and any(map(_has_data, value)))


def _without_data(value: Any, folder: Path, name: str) -> Any:
    """A value with paths as text and tables as the names of files that hold them."""
    if memory.is_data(value):
        numbered = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
        unique = next(word for word in numbered if not any(folder.glob(f"{word}.*")))
        return str(memory.write(value, folder, unique))
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [_without_data(item, folder, name) for item in value]
    return value


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [
        "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
        for tag, row in (("th", head), *(("td", r) for r in rows))
    ]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
