"""What a name says: the split it belongs to, and whether it is a sensor that the contract bans."""

from __future__ import annotations

import re

TRAIN, VAL, TEST = "train", "val", "test"

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_SPLIT_WORDS = {
    **dict.fromkeys(("train", "training", "trn"), TRAIN),
    **dict.fromkeys(("val", "validation"), VAL),
    **dict.fromkeys(("test", "testing", "tst", "holdout"), TEST),
}
# Short words mean a split only beside a data word: `valid` and `te` mean other things on their own.
_SHORT_WORDS = {"valid": VAL, "dev": VAL, "tr": TRAIN, "te": TEST, "eval": VAL}
_DATA_WORDS = frozenset({"x", "y", "df", "set", "flights"})
# A name with one of these is a number, a switch or a tool, not rows of a split.
_NOT_ROWS = frozenset((
    "size", "sizes", "frac", "fraction", "ratio", "n", "num", "count", "counts", "seed", "flag", "is", "has",
    "len", "length", "time", "times", "step", "steps", "epoch", "epochs", "case", "cases", "suite", "mode",
    "kwargs", "params", "fn", "func", "name", "names", "accuracy", "acc", "loss", "error", "dir", "folder",
    "model", "models", "scaler", "pct", "percent", "start", "end", "shape", "dtype", "every", "interval",
    "class", "callback", "callbacks",
))  # fmt: skip
THRESHOLD_WORDS = frozenset({"threshold", "thresh", "thr", "cutoff", "tau"})

BANNED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("baro", "alt"), "barometric altitude is fused with GPS in the flight controller"),
    (("barometric", "altitude"), "barometric altitude is fused with GPS in the flight controller"),
    (("mag", "heading"), "magnetic heading is fused with the IMU"),
    (("magnetic", "heading"), "magnetic heading is fused with the IMU"),
    (("derived",), "it is derived from the target"),
    (("fused",), "it is the output of a fusion"),
    (("filtered",), "it is the output of a filter"),
    (("ekf",), "it is the output of a Kalman filter"),
    (("ground", "truth"), "it is a label"),
    (("groundtruth",), "it is a label"),
    (("gt",), "it is a label"),
)


def words(name: str) -> tuple[str, ...]:
    """The words of a name: `X_testRaw2` has x, test, raw, 2."""
    return tuple(word.lower() for word in _WORD.findall(name))


def banned(name: str) -> str | None:
    """Why the contract bans a column of this name, or None; whole words count, so `magnitude` is no `mag`."""
    parts = words(name)
    for pattern, reason in BANNED:
        width = len(pattern)
        if any(parts[start : start + width] == pattern for start in range(len(parts) - width + 1)):
            return reason
    return None


def splits_of(name: str) -> frozenset[str]:
    """The splits that a variable of this name holds rows of; empty when the name does not say."""
    parts = words(name)
    if _NOT_ROWS & set(parts):
        return frozenset()
    found = {_SPLIT_WORDS[part] for part in parts if part in _SPLIT_WORDS}
    if not found and _DATA_WORDS & set(parts):
        found = {_SHORT_WORDS[part] for part in parts if part in _SHORT_WORDS}
    return frozenset(found)


def is_threshold(name: str) -> bool:
    """Whether a variable of this name is one decision threshold (not a list of candidates, not a flag)."""
    parts = words(name)
    return bool(parts) and (
        parts[-1] in THRESHOLD_WORDS or (parts[0] in {"best", "opt", "optimal"} and bool(THRESHOLD_WORDS & set(parts)))
    )
