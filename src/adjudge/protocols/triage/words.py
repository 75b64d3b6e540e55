"""The declared words: which verdicts mean which class, and which labels there are."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import NamedTuple

from adjudge.errors import ConfigError, InputError

UNCERTAIN = "uncertain"
_FAKE = (
    "ai",
    "ai-generated",
    "ai generated",
    "ai_generated",
    "artificial",
    "deepfake",
    "doctored",
    "edited",
    "fabricated",
    "forged",
    "generated",
    "manipulated",
    "synthetic",
    "tampered",
)
_REAL = ("authentic", "genuine", "natural")


class Classes(NamedTuple):
    """The two class names; the positive one is what triage looks for."""

    positive: str = "fake"
    negative: str = "real"


def verdict_words(classes: Classes, extra: Mapping[str, str]) -> dict[str, str]:
    """Every word that is understood, in lower case, with what it means: a class or `uncertain`.

    The synonyms of fake and real belong to these class names; renamed classes start with their own names alone.
    """
    meanings = (*classes, UNCERTAIN)
    if len({name.strip().casefold() for name in meanings}) < 3 or not all(name.strip() for name in classes):
        raise ConfigError(
            f"the classes {classes.positive!r} and {classes.negative!r} must be two names, and not {UNCERTAIN!r}"
        )
    words = {name.casefold(): name for name in meanings}
    if classes == Classes():
        words |= dict.fromkeys(_FAKE, classes.positive) | dict.fromkeys(_REAL, classes.negative)
    for word, meaning in extra.items():
        if meaning not in meanings:
            raise ConfigError(f"word {word!r} means {meaning!r}, which is not one of {', '.join(meanings)}")
        words[normal(word)] = meaning
    return words


def normal(word: str) -> str:
    """A word as the table holds it."""
    return " ".join(word.split()).casefold()


def check_label(label: str, classes: Classes, *, strip: bool, file: str, line: int) -> str:
    """The label if it is one of the classes; otherwise an error that names the line, and what may have been meant."""
    if label in classes:
        return label
    known = {name.casefold(): name for name in classes}
    near = known.get(label.strip().casefold())
    if near is not None and strip:
        return near
    close = [near] if near else [known[word] for word in difflib.get_close_matches(normal(label), known, n=1)]
    hint = f"Did you mean {close[0]!r}?" if close else None
    if near is not None:
        hint = f"{hint} (--strip-labels accepts it)"
    raise InputError(
        f"label {label!r} is not one of {', '.join(classes)}."
        + ("" if close else " Other class names are declared with --positive and --negative."),
        file=file,
        line=line,
        hint=hint,
    )
