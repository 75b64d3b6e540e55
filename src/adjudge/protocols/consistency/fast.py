"""Rows read many at once: codes and texts from the columns of `readers.scan`, for all rows that are as expected.

Whatever is not (votes, labels that are none, lists of anything but ids, constraints that are echoed in other words)
makes a row odd, and the ordinary way reads it.
"""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.protocols.consistency import batch as b
from adjudge.protocols.consistency import tables
from adjudge.protocols.consistency.ordinary import IN, NONE, OUT, UNVERIFIABLE
from adjudge.protocols.consistency.policy import LABELS
from adjudge.readers import scan as s

_NOT_SAID = (s.ABSENT, s.NULL)
_TEXT = (*_NOT_SAID, s.TEXT, s.ESCAPED)
_AGENT = {
    "label": (s.TEXT,),
    "reason": _TEXT,
    "votes": _NOT_SAID,
    "model": _TEXT,
    "temperature": (*_NOT_SAID, s.INTEGER, s.REAL),
    "seed": (*_NOT_SAID, s.INTEGER),
    "evidence_digest": _TEXT,
}
_CLAIM, _CITED, _ECHO = (("answer_json", name) for name in ("claim", "citations", "constraints_echo"))
_KNOWN, _GIVEN = ("retrieved_ids",), ("constraints",)
_FLAGS = {"provenance": ("flags", "provenance_violation"), "constraints": ("flags", "constraints_mismatch")}
_LIST, _OBJECT = (*_NOT_SAID, s.ARRAY), (*_NOT_SAID, s.OBJECT)
_ANSWER: dict[s.Path, tuple[int, ...]] = {
    ("answer_json",): _OBJECT,
    ("flags",): _OBJECT,
    _CLAIM: _TEXT,
    _CITED: _LIST,
    _KNOWN: _LIST,
    **dict.fromkeys(_FLAGS.values(), (*_NOT_SAID, s.TRUE, s.FALSE)),
}
_PARTS: dict[str, dict[str, s.Path]] = {
    "pairs": {"scholar": ("scholar",), "auditor": ("auditor",)},
    "scholar": {"scholar": ()},
    "auditor": {"auditor": ()},
    "answers": {},
}
_EXACT = 2.0**53
_MOST_IDS = 1024  # in one list; a longer one is left to the ordinary way
_TRUTH = np.full(s.ARRAY + 1, b.ABSENT, dtype=np.int8)
_TRUTH[s.TRUE], _TRUTH[s.FALSE] = 1, 0


@functools.cache
def wanted(role: str) -> s.Wanted:
    """The paths that are read of a role's rows."""
    return s.Wanted([*_expected(role), *((_ECHO, _GIVEN) if _answers(role) else ())])


@functools.cache
def _allowed(role: str) -> NDArray[np.bool_]:
    return wanted(role).allowed(_expected(role))


def _expected(role: str) -> dict[s.Path, tuple[int, ...]]:
    """What may stand at the paths of a role's rows for them to be read here."""
    kinds: dict[s.Path, tuple[int, ...]] = {("qid",): (s.TEXT, s.ESCAPED, s.INTEGER)}
    for at in _PARTS[role].values():
        kinds |= {at: (s.OBJECT,)} | {(*at, name): own for name, own in _AGENT.items()}
    return kinds | _ANSWER if _answers(role) else kinds


def columns(role: str, found: s.Scanned) -> pa.Table:
    """The table of all rows; those that are odd, more now than before, hold nothing that counts."""
    n = found.odd.size
    codes = tables.blank(n)
    found.expect_all(_allowed(role))
    found.odd |= np.abs(found.numbers("qid")) >= _EXACT
    for name, at in _PARTS[role].items():
        _agent(found, at, codes[name])
    if _answers(role):
        _answer(found, codes["answer"])
    texts: dict[str, pa.Array] = {}
    for name, at in _PARTS[role].items():
        texts[f"{name}_reason"] = found.texts(*at, "reason")
        if _said(found, *at, "evidence_digest").any():
            texts[f"{name}_digest"] = found.texts(*at, "evidence_digest")
    if _answers(role):
        texts["claim"] = claims = found.texts(*_CLAIM)
        refusal = pc.equal(claims, b.REFUSAL).fill_null(False).to_numpy(zero_copy_only=False)
        codes["answer"]["claim"] = np.where(
            refusal, b.REFUSAL_CLAIM, np.where(_said(found, *_CLAIM), b.OTHER_CLAIM, b.NO_CLAIM)
        )
    return tables.table(_keys(found), codes, texts)


def _answers(role: str) -> bool:
    return role in {"pairs", "answers"}


def _said(found: s.Scanned, *path: str | int) -> NDArray[np.bool_]:
    said: NDArray[np.bool_] = found.kinds(*path) > s.NULL
    return said


def _keys(found: s.Scanned) -> pa.StringArray:
    keys = found.texts("qid")
    numbers = found.kinds("qid") == s.INTEGER
    if not numbers.any():
        return keys
    written = pa.array(np.where(found.odd, 0, found.numbers("qid")).astype(np.int64)).cast(pa.string())
    return pc.if_else(pa.array(numbers), written, keys)


def _agent(found: s.Scanned, at: s.Path, codes: tables.Codes) -> None:
    codes["label"] = label = found.words(*at, "label", among=LABELS)
    found.odd |= label < 0
    temperature, seed = _said(found, *at, "temperature"), _said(found, *at, "seed")
    model = _said(found, *at, "model") | temperature | seed
    if model.any():
        stable = (temperature & (found.numbers(*at, "temperature") == 0)) | seed
        codes["seeding"] = np.where(model, np.where(stable, b.STABLE, b.UNSTABLE), b.NOT_A_MODEL)


def _answer(found: s.Scanned, codes: tables.Codes) -> None:
    from adjudge.protocols.consistency import _kernels

    codes["answered"] = _said(found, "answer_json") | _said(found, "flags")
    for name, path in _FLAGS.items():
        codes[name] = _TRUTH[found.kinds(*path)]
    given = _said(found, *_GIVEN)
    if given.any():
        same = np.empty(given.size, dtype=np.bool_)
        _kernels.same_rows(found.data, *found.spans(*_GIVEN), *found.spans(*_ECHO), same)
        found.odd |= given & ~(same & (found.kinds(*_GIVEN) == found.kinds(*_ECHO)))
        codes["echoed"] = np.where(given, 1, b.ABSENT)
    cited, outside = np.empty(given.size, dtype=np.int32), np.empty(given.size, dtype=np.int32)
    spans = (*_list(found, _CITED), *_list(found, _KNOWN))
    room = (np.empty(_MOST_IDS, dtype=np.uintp) for _ in range(4))
    _kernels.citation_rows(found.data, *spans, cited, outside, found.odd, *room)
    codes["citations"] = np.where(
        cited == 0, NONE, np.where(~_said(found, *_KNOWN), UNVERIFIABLE, np.where(outside > 0, OUT, IN))
    )
    codes["out_of_scope"] = outside


def _list(found: s.Scanned, path: s.Path) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Where a list stands; an empty span for none."""
    first, last = found.spans(*path)
    return first, np.where(found.kinds(*path) == s.ARRAY, last, first)
