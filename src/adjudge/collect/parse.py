"""The verdict in an answer: taken as the subject said it, never guessed; the protocol says what the words mean."""

from __future__ import annotations

from typing import Any

from adjudge.collect.request import Reply
from adjudge.readers.extract import Extractor

_VERDICT = ("prediction", "verdict")
_REASON = ("rationale", "reason")
_extractor = Extractor((*_VERDICT, "confidence"))


def parsed(reply: Reply) -> dict[str, Any]:
    """`prediction`, `confidence`, `rationale` where there is one, and under `parse` how they were found or why not."""
    if reply.prediction is not None:
        return {"prediction": reply.prediction, "confidence": reply.confidence, "parse": {"method": "given"}}
    if reply.response is None:
        return {"prediction": None, "confidence": None, "parse": None}
    extracted = _extractor.extract(reply.response)
    if extracted.error:
        return {"prediction": None, "confidence": None, "parse": {"method": None, "error": extracted.error}}
    answer: dict[str, Any] = extracted.value
    word = next((answer[name] for name in _VERDICT if isinstance(answer.get(name), str)), None)
    confidence = answer.get("confidence")
    usable = isinstance(confidence, int | float | str) and not isinstance(confidence, bool)
    how: dict[str, Any] = {"method": extracted.method}
    if extracted.repairs:
        how["repairs"] = list(extracted.repairs)
    if word is None:
        how["error"] = "the object has no prediction that is a text"
    reason = next((answer[name] for name in _REASON if isinstance(answer.get(name), str)), None)
    rationale = {} if reason is None else {"rationale": reason}
    return {"prediction": word, "confidence": confidence if usable else None, **rationale, "parse": how}
