"""Jittered prompts: the same question with other white space, punctuation, words or order, and the way back.

Every jitter is a list of edits [start, removed, inserted] on the original text, from left to right, so that the
original follows from the jittered text and its record.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from adjudge.errors import ConfigError

Edit = tuple[int, str, str]

_GAP = re.compile(r"(?<=\S)\s+(?=\S)")
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_SENTENCE = re.compile(r"\S[^.!?]*[.!?]*")
_SPACES = ("  ", "\t", "\n", "   ")
_SIGNS = (",", ";", " -", "...")
_SYNONYMS = (
    ("please", "kindly"), ("show", "display"), ("say", "state"), ("tell", "inform"), ("give", "provide"),
    ("big", "large"), ("small", "little"), ("begin", "start"), ("end", "finish"), ("answer", "reply"),
    ("help", "assist"), ("need", "require"), ("buy", "purchase"), ("about", "regarding"), ("many", "numerous"),
    ("explain", "clarify"), ("list", "enumerate"), ("use", "employ"), ("make", "create"), ("find", "locate"),
    ("get", "obtain"), ("important", "significant"), ("quick", "fast"), ("fix", "repair"), ("allowed", "permitted"),
    ("which", "what"), ("maximum", "largest"), ("minimum", "smallest"), ("near", "close to"), ("also", "too"),
)  # fmt: skip
_SYNONYM = {word: other for pair in _SYNONYMS for word, other in (pair, pair[::-1])}


def jitter(text: str, kind: str, seed: str) -> list[Edit]:
    """The edits of one kind of jitter; empty where the text offers none of it (one word has no order)."""
    if kind not in KINDS:
        raise ConfigError(f"jitter {kind!r} is not one of {', '.join(KINDS)}")
    return KINDS[kind](text, random.Random(f"{kind}/{seed}"))  # noqa: S311 -- a reproducible choice, no secret


def apply(text: str, edits: Sequence[Edit]) -> str:
    """The jittered text."""
    parts, at = [], 0
    for start, removed, inserted in edits:
        if text[start : start + len(removed)] != removed:
            raise ConfigError(f"the record does not fit the text: {removed!r} does not stand at {start}")
        parts += [text[at:start], inserted]
        at = start + len(removed)
    return "".join([*parts, text[at:]])


def jittered(gold: Iterable[dict[str, Any]], kinds: Sequence[str], seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """A record for every question, kind and seed; `question` is null where the text offers nothing to change."""
    for item, kind, seed in product(gold, kinds, seeds):
        edits = jitter(item["question"], kind, f"{seed}/{item['qid']}")
        changed = bool(edits) or kind == CONTROL
        question = apply(item["question"], edits) if changed else None
        yield {"qid": item["qid"], "jitter": kind, "seed": seed, "question": question, "edits": edits}


def _some(matches: Sequence[re.Match[str]], count: int, rng: random.Random) -> list[re.Match[str]]:
    """So many of the matches, from left to right."""
    return sorted(rng.sample(matches, count), key=lambda match: match.start())


def _ws(text: str, rng: random.Random) -> list[Edit]:
    gaps = list(_GAP.finditer(text))
    if not gaps:
        return [(len(text), "", rng.choice(_SPACES))]
    return [
        (match.start(), match[0], rng.choice([space for space in _SPACES if space != match[0]]))
        for match in _some(gaps, max(1, len(gaps) // 4), rng)
    ]


def _punct(text: str, rng: random.Random) -> list[Edit]:
    gaps = list(_GAP.finditer(text))
    if not gaps:
        return [(len(text), "", rng.choice("!?."))]
    return [(gap.start(), "", rng.choice(_SIGNS)) for gap in _some(gaps, max(1, len(gaps) // 6), rng)]


def _syn(text: str, rng: random.Random) -> list[Edit]:
    known = [match for match in _WORD.finditer(text) if match[0].casefold() in _SYNONYM]
    if not known:
        return []
    chosen = _some(known, rng.randint(1, len(known)), rng)
    return [(match.start(), match[0], _cased(_SYNONYM[match[0].casefold()], match[0])) for match in chosen]


def _order(text: str, rng: random.Random) -> list[Edit]:
    for pattern in (_SENTENCE, _WORD):
        pieces = [(match.start(), match[0].rstrip()) for match in pattern.finditer(text)]
        if len({piece for _, piece in pieces}) < 2:
            continue
        places = list(range(len(pieces)))
        while True:
            rng.shuffle(places)
            edits = [
                (start, piece, pieces[other][1])
                for (start, piece), other in zip(pieces, places, strict=True)
                if piece != pieces[other][1]
            ]
            if edits:
                return edits
    return []


def _cased(word: str, like: str) -> str:
    return word.upper() if like.isupper() and len(like) > 1 else word.capitalize() if like[0].isupper() else word


CONTROL = "none"
"""The jitter that changes nothing, against which the others are seen."""
KINDS: dict[str, Callable[[str, random.Random], list[Edit]]] = {
    CONTROL: lambda _text, _rng: [],
    "ws": _ws,
    "punct": _punct,
    "syn": _syn,
    "order": _order,
}
