"""What a record says of a reply: nothing that a subject returned is lost, nothing is claimed that nobody knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.collect.subject import Reply, Unanswered
from adjudge.readers.extract import Extractor

SUDDEN = 10.0
"""A repeated question that is answered so many times faster may have been answered by a cache that nobody told us of."""

_VERDICT = ("prediction", "verdict")
_REASON = ("rationale", "reason")
_extractor = Extractor((*_VERDICT, "confidence"))


def answer_keys(reply: Reply | None, *, labelled: bool) -> dict[str, Any]:
    """What of a record the subject said; where the sample has a label, the verdict in it."""
    content = reply or Reply()
    return {
        "response": content.response,
        **(verdict_keys(content) if labelled else {}),
        **({} if content.rationale is None else {"rationale": content.rationale}),
        "models": content.models,
        "usage": content.usage,
        "finish_reason": content.finish_reason,
        "tool_usage": [use.tool for use in content.tool_details],
        "tool_details": msgspec.to_builtins(content.tool_details),
    }


def verdict_keys(reply: Reply) -> dict[str, Any]:
    """As the subject said it, never guessed: `prediction`, `confidence`, `rationale` where there is one, and under `parse` how they were found or why not."""
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


def cache_hit(reply: Reply | None) -> bool | None:
    """Whether a cache of the subject's own answered, as it says itself; None where it says nothing."""
    hit = None if reply is None or reply.cache is None else reply.cache.get("hit")
    return hit if isinstance(hit, bool) else None


def with_the_rest(record: dict[str, Any], reply: Reply | None, failed: Unanswered | None) -> dict[str, Any]:
    """The record with every further key of the reply; one whose name the record uses itself stands under `reply`."""
    returned = failed.returned if failed is not None else None
    more = dict(returned) if isinstance(returned, Mapping) else {} if returned is None else {"returned": returned}
    if failed is not None:
        more = {key: value for key, value in more.items() if key not in {"error", "error_type"}}
    if reply is not None:
        more |= reply.more
        record["cache"] = {**(reply.cache or {}), **record["cache"]}
        hashes = record["prompt_hashes"]
        others = {name: text for name, text in reply.prompt_hashes.items() if hashes.get(name) not in {None, text}}
        record["prompt_hashes"] = {**hashes, **reply.prompt_hashes, **{name: hashes[name] for name in others}}
        more |= {"prompt_hashes": others} if others else {}
    free = {name: value for name, value in more.items() if name not in record and name != "reply"}
    clashing = {name: value for name, value in more.items() if name not in free}
    return {**record, **free, **({"reply": clashing} if clashing else {})}


def answered_or_errored(record: Mapping[str, Any]) -> str:
    """The bucket of a record where no protocol says what its words mean."""
    return "answered" if record["error"] is None else "errored"
