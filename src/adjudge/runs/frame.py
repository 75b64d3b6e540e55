"""Frame: a table of a run that becomes an Arrow, pandas or Polars table; pandas and Polars are imported only then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any

import pyarrow as pa

from adjudge.errors import ConfigError, RunError
from adjudge.stats.estimate import Estimate

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
