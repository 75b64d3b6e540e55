"""How much of anything is read before a file is refused: stated in one place, each with the name by which it is raised.

`--max NAME=NUMBER` (or the environment variable ADJUDGE_MAX_NAME, which workers inherit) raises or lowers a bound.
"""

from __future__ import annotations

import os

from adjudge.errors import ConfigError

BOUNDS = {
    "line_mb": (64, "megabytes of one record, and so of one answer"),
    "document_mb": (2048, "megabytes of a file that is read whole: a JSON list or document, Parquet"),
    "unpacked_gb": (256, "gigabytes that a compressed file may unpack to"),
    "expansion": (1000, "times its size that a compressed file may unpack to, beyond the first 256 MB"),
    "blank_lines": (1_000_000, "blank lines in a row"),
    "models": (10_000, "models, or configurations and trials, in one run"),
    "raters": (1_000, "raters in one run, each a column of its samples"),
    "slices": (2_000, "values of a key that a run is sliced by"),
}
"""Every bound of the input: its number, and what it counts."""

_PREFIX = "ADJUDGE_MAX_"


def bound(name: str) -> int:
    """A bound: what the user said, or the one above."""
    text = os.environ.get(_PREFIX + name.upper())
    return BOUNDS[name][0] if text is None else _number(name, text)


def raise_bounds(settings: tuple[str, ...]) -> None:
    """Take over what the user says, as NAME=NUMBER each, for this process and its workers."""
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in BOUNDS:
            raise ConfigError(f"--max {setting!r}: there is no bound {name!r}; there are {', '.join(BOUNDS)}")
        os.environ[_PREFIX + name.upper()] = str(_number(name, text))


def refuse_many_slices(key: str, values: int) -> None:
    """A key with nearly as many values as there are records, such as an id, is none to slice by."""
    if values > bound("slices"):
        raise ConfigError(f"--slice {key}: the records have {values:,} values of it; {beyond('slices')}")


def beyond(name: str) -> str:
    """How a message ends that a bound was passed."""
    number, what = bound(name), BOUNDS[name][1]
    return f"at most {number:,} {what} (--max {name}=NUMBER raises it)"


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 10**12:
        raise ConfigError(f"--max {name}={text}: expected a whole number above 0")
    return int(text)
