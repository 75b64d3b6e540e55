"""What a name says: the split it belongs to, and whether it is a sensor that the contract bans."""

from __future__ import annotations

import re
from itertools import pairwise, product

TRAIN, VAL, TEST = "train", "val", "test"

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_CAPITALS = re.compile(r"([A-Z]{2,})([a-z])")
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

_FUSED_ALTITUDE = "barometric altitude is fused with GPS in the flight controller"
_FUSED_HEADING = "magnetic heading is fused with the IMU"
_ALTITUDES = ("alt", "altitude", "height", "hgt", "elevation")
_HEADINGS = ("heading", "hdg", "yaw")
_PAIRS = {
    **dict.fromkeys(product(("baro", "barometer", "barometric", "pressure"), _ALTITUDES), _FUSED_ALTITUDE),
    **dict.fromkeys(product(("mag", "magnetic", "magnetometer", "compass"), _HEADINGS), _FUSED_HEADING),
    ("ground", "truth"): "it is a label",
}
_SINGLE = {
    **dict.fromkeys(("derived", "deriv"), "it is derived from the target"),
    **dict.fromkeys(("fused", "fusion"), "it is the output of a fusion"),
    **dict.fromkeys(("filtered", "filt"), "it is the output of a filter"),
    **dict.fromkeys(("ekf", "ukf", "kalman"), "it is the output of a Kalman filter"),
    "gt": "it is a label",
}
_FUSED = {one + other: reason for (one, other), reason in _PAIRS.items()}


def words(name: str) -> tuple[str, ...]:
    """The words of a name: `X_testRaw2` has x, test, raw, 2."""
    return tuple(word.lower() for word in _WORD.findall(name))


def banned(name: str) -> str | None:
    """Why the contract bans a column of this name, or None; whole words count, so `magnitude` is no `mag`.

    `EKFstate` is known like `ekf_state`, and `BaroAltitude` like `alt_baro`.
    """
    for parts in (words(name), words(_CAPITALS.sub(r"\1_\2", name))):
        single = [_SINGLE.get(part) for part in parts]
        pairs = [_PAIRS.get((one, other)) or _PAIRS.get((other, one)) for one, other in pairwise(parts)]
        reason = next(filter(None, [*single, *pairs, *map(_FUSED.get, parts)]), None)
        if reason is not None:
            return reason
    return None


def splits_of(name: str) -> frozenset[str]:
    """The splits that a variable of this name holds rows of; empty when the name does not say."""
    parts = words(name)
    if _NOT_ROWS & set(parts):
        return frozenset()
    named = {_SPLIT_WORDS[part] for part in parts if part in _SPLIT_WORDS}
    if not named and _DATA_WORDS & set(parts):
        named = {_SHORT_WORDS[part] for part in parts if part in _SHORT_WORDS}
    return frozenset(named)


def is_threshold(name: str) -> bool:
    """Whether a variable of this name is one decision threshold (not a list of candidates, not a flag)."""
    parts = words(name)
    return bool(parts) and (
        parts[-1] in THRESHOLD_WORDS or (parts[0] in {"best", "opt", "optimal"} and bool(THRESHOLD_WORDS & set(parts)))
    )
