"""Protocol and Plan: what a protocol must say so that the engine can run, verify and report it.

A protocol turns options into a Plan. A plan is rebuilt from its configuration alone, in every worker and again when a
run is verified; so everything that changes a number stands in `config`.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import ConfigError
from adjudge.evidence.atoms import Atom
from adjudge.evidence.table import Evidence
from adjudge.plugins import plugin, plugin_names
from adjudge.provenance.manifest import InputFile
from adjudge.readers.blocks import Block
from adjudge.runs.run import Run
from adjudge.runs.section import Panel, Section, published
from adjudge.stats.estimate import Estimate, Metric
from adjudge.verdict.adjudicator import Adjudicator
from adjudge.verdict.gates import Gate

GROUP = "adjudge.protocols"
_WORD = re.compile(r"\W|_")


@dataclass(frozen=True)
class Input:
    """One role of input: its files, and how its records are read.

    `key(path, line, json)` gives the sample id and the group (for flight, the model) or None; it may raise msgspec
    errors, to which `expected` is added. A role with `read` instead becomes columns at once: a table with a row for
    every record of the block (or several), its id in the column `key` and its group, if it has any, in `group`; records
    that must be judged together have the same value in a column `cut`.
    `keys` tells which keys of a record are read: the struct it is decoded into, or a tree of names; the others are
    named in the run's notes. `limited` roles are cut by --limit; roles that are `matched` should have the same ids.
    `tables(path, file, limit)` instead reads a local file that is no file of records, such as a zip, into such tables.
    """

    role: str
    paths: tuple[str, ...]
    key: Callable[[str, int, bytes], tuple[str, str | None]] | None
    expected: str
    limited: bool = False
    read: Callable[[Block], pa.Table] | None = None
    keys: Any = None
    matched: bool = True
    tables: Callable[[str, int, int | None], Iterator[pa.Table]] | None = None
    in_order: bool = False
    """Whether a record's place in its file counts, so that a file is read from front to back by one process."""


@dataclass(frozen=True)
class Partition:
    """One partition of the input: the records of every role, and what is known of the whole.

    `tables` are what `Input.read` made of the records, in the order of the input, with the `slot` of each (`provenance/texts.py`);
    records of a slot are never in two partitions. Roles without it are in `rows`, each
    record as (index of its file, line, JSON).
    """

    rows: Mapping[str, Iterable[tuple[int, int, bytes]]]
    groups: tuple[str, ...]
    files: tuple[str, ...]
    limited: bool = False
    tables: Mapping[str, pa.Table] = field(default_factory=dict)


class Judged(NamedTuple):
    """One batch, judged: a row a sample, its evidence, and the raw outputs that `explain` shows.

    `batch` is what the rules read, so that `partial` need not restore it from the samples. `tables` are further tables
    of the run by name, whose column `row` counts the samples of the batch.
    """

    samples: pa.Table
    evidence: Evidence
    outputs: pa.Table
    batch: Any = None
    tables: Mapping[str, pa.Table] = {}


class Named(NamedTuple):
    """An estimate with its name and the slice it is about."""

    name: str
    slice: str
    estimate: Estimate


@dataclass
class Measured:
    """All numbers of a run. `top` are the keys that the protocol documents at the top level of metrics.json.

    `buckets` may be left out: the engine has counted them, of all samples and, unless all are of `one_model`, of every
    model. `sections` are tables that
    every report shows beside the estimates. `files` are further files of
    the run by name, such as a table for people; like the numbers they follow from its tables.
    """

    estimates: list[Named]
    buckets: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float | int | None] = field(default_factory=dict)
    top: dict[str, Any] = field(default_factory=dict)
    charts: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    one_model: bool = False

    def put_first(self, kind: str) -> None:
        """Put the estimates of slices such as `model=…` before all others; they become the flat metrics."""
        first = [named for named in self.estimates if named.slice.startswith(f"{kind}=")]
        self.estimates = first + [named for named in self.estimates if not named.slice.startswith(f"{kind}=")]
        self.metrics = {f"{where.removeprefix(f'{kind}=')}/{name}": estimate.value for name, where, estimate in first}


class Plan(ABC):
    """One configured evaluation."""

    config: dict[str, Any]
    rules: list[dict[str, Any]]
    digests: dict[str, str]
    read: Sequence[InputFile] = ()
    key_column: str = "sample"
    """The column of the samples that holds the ids of the input's records."""
    derived: Sequence[str] = ()
    """Settings that were found from the input: an evaluation of the same files finds them again."""
    unread: str = "which no number follows from"
    """What of the raw texts of a run `reread` holds nothing against, after "the raw texts in outputs/, "; empty for nothing."""
    adjudicator: Adjudicator | None = None
    """Where an agent decides: with it the engine checks, stores and replays what the agent answered."""

    def default_gates(self) -> Sequence[Gate]:
        """The bounds that hold without being asked for; they follow from the configuration."""
        return ()

    @abstractmethod
    def inputs(self) -> Sequence[Input]:
        """What is read."""

    @abstractmethod
    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Samples of one partition in the order of (id, model), batch by batch."""

    def whole(self, folder: Path) -> Iterator[Judged] | None:
        """Judge everything at once where the input is no set of records; further tables go into the run's folder.

        None, as here, lets the engine split `inputs()` and call `judge`.
        """
        return None

    def attach(self, folder: Path) -> list[str]:
        """Before a run is recomputed, read the tables that `whole` left there; what is wrong with them, in words."""
        return []

    def files(self, measured: Measured) -> dict[str, bytes]:
        """Further files of the run that follow from its tables and numbers; verification compares every byte."""
        return measured.files

    def asked(self, samples: pa.Table) -> NDArray[np.bool_]:
        """Which samples an agent is asked about; all, unless a protocol has samples without an answer."""
        return np.ones(samples.num_rows, dtype=bool)

    @abstractmethod
    def recheck(self, samples: pa.Table, evidence: Evidence) -> list[str]:
        """Judge again from the run's own columns; every difference in words."""

    def reread(self, samples: pa.Table, outputs: pa.Table) -> list[str] | None:
        """Read the raw texts of a batch again; every difference from the stored values in words.

        None, as here, says that the values cannot be read from what the run keeps of the texts. `unread` says what of the
        texts nothing is held against.
        """
        return None

    @abstractmethod
    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Any:
        """What one batch adds to the numbers; without the `batch` that was judged it is restored from the samples."""

    def folded(self, partials: Sequence[Any]) -> list[Any]:
        """Fewer partials, of which the same numbers come to the last bit; the engine asks where they become many.

        As they are, as here, is right where partials take little memory.
        """
        return list(partials)

    @abstractmethod
    def finish(self, partials: Sequence[Any]) -> Measured:
        """All numbers, from the partials in order."""


@dataclass(frozen=True)
class Role:
    """What a role's records look like, for `describe`: the keys that are read, those without which it is none of them.

    `needs` are sets of alternatives, one of each must be there. `command` is what reads such a FILE. `likely` are what
    others call a key, in lower case: --column is proposed with them.
    """

    keys: Any
    needs: tuple[tuple[str, ...], ...]
    command: str
    likely: Mapping[str, Collection[str]] = field(default_factory=dict)

    def meant(self, key: str, names: Iterable[str]) -> str | None:
        """The name under which a file has a key, if one alone may be it: another word for it, or one that holds it."""
        alike = [name for name in names if key in _WORD.split(name.lower()) or name.lower() in self.likely.get(key, ())]
        return alike[0] if len(alike) == 1 else None


class Protocol(ABC):
    """The value that ties together a reader, rules, an adjudication policy, measures, charts and default gates.

    A change of what it computes changes the `version`, so that older runs are not taken for altered ones. `unproven` is
    what none of its runs can prove, as `verify` lists it.
    """

    name: str
    version: str
    title: str
    unproven: str = ""

    @property
    def package(self) -> str:
        """The package it stands in, where prompts of its own may lie."""
        module = sys.modules[type(self).__module__]
        return module.__name__ if hasattr(module, "__path__") else module.__package__ or ""

    def roles(self) -> Mapping[str, Role]:
        """The kinds of records it reads, by role."""
        return {}

    def metrics(self) -> Sequence[Metric]:
        """What its estimates are: title, unit, range and direction; one that is not declared is shown plainly."""
        return ()

    @abstractmethod
    def plan(self, config: Mapping[str, Any]) -> Plan:
        """A plan from a whole or partial configuration; a wrong one is a ConfigError."""

    def record(self, run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
        """One sample as an object, for `export --records` and `run.record`."""
        raise ConfigError(f"protocol {self.name} has no record view")

    def panels(self, run: Run) -> Sequence[Panel]:
        """What a page shows of an opened sample, beside its evidence and its answer."""
        del run
        return ()

    def example(self, folder: Path, seed: int) -> dict[str, Any] | None:
        """Write the protocol's example data into a folder and return the configuration that judges it, for the demo."""
        return None

    def schemas(self) -> dict[str, dict[str, Any]]:
        """JSON Schemas of what the protocol reads and writes, by name, for `adjudge schema`."""
        return {}


class Packaged(Protocol):
    """A protocol whose parts are modules of one package, each imported when it is asked for.

    `plan.plan(config)`, and where there are such: `metrics.METRICS`, `record.record`, `record.panels` or `panels.panels`,
    `example.example`, `schemas.schemas` (else the folder json_schemas), `rows.ROLES`.
    """

    def __init__(self, package: str, *, version: str, title: str, unproven: str = "") -> None:
        self._package, self.version, self.title, self.unproven = package, version, title, unproven
        self.name = package.rpartition(".")[2]

    @property
    def package(self) -> str:
        """The package of its parts."""
        return self._package

    def plan(self, config: Mapping[str, Any]) -> Plan:
        """The package's plan."""
        plan: Plan = self._part("plan").plan(config)
        return plan

    def roles(self) -> Mapping[str, Role]:
        """The package's roles."""
        parts = (self._part(name, optional=True) for name in ("rows", "roles"))
        return next((part.ROLES for part in parts if hasattr(part, "ROLES")), {})

    def metrics(self) -> Sequence[Metric]:
        """The package's metrics."""
        part = self._part("metrics", optional=True)
        return () if part is None else part.METRICS

    def record(self, run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
        """The package's record view."""
        view: dict[str, Any] = self._part("record").record(run, row, atoms, output)
        return view

    def panels(self, run: Run) -> Sequence[Panel]:
        """The package's panels."""
        parts = (self._part(name, optional=True) for name in ("record", "panels"))
        return next((part.panels(run) for part in parts if hasattr(part, "panels")), ())

    def example(self, folder: Path, seed: int) -> dict[str, Any] | None:
        """The package's example."""
        config: dict[str, Any] = self._part("example").example(folder, seed)
        return config

    def schemas(self) -> dict[str, dict[str, Any]]:
        """The schemas in the package's folder json_schemas, or what its module says."""
        part = self._part("schemas", optional=True)
        return published(self.package) if part is None else part.schemas()

    def _part(self, name: str, *, optional: bool = False) -> Any:
        if optional and find_spec(f"{self.package}.{name}") is None:
            return None
        return import_module(f"{self.package}.{name}")


def protocol(name: str) -> Protocol:
    """A protocol by name, ours or a user's, from the entry-point group `adjudge.protocols`."""
    entry = plugin(GROUP, name)
    if entry is None:
        raise ConfigError(f"there is no protocol {name!r} (installed: {', '.join(names()) or 'none'})")
    try:
        value = entry.load()
    except Exception as error:
        raise ConfigError(
            f"protocol {name!r} cannot be loaded from {entry.value}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(value, Protocol):
        raise ConfigError(f"entry point {name!r} of {GROUP} is a {type(value).__name__}, expected a Protocol")
    return value


def names() -> tuple[str, ...]:
    """The installed protocols."""
    return tuple(plugin_names(GROUP))
