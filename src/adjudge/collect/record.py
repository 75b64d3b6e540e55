"""What a record says of a reply: nothing that a subject returned is lost, nothing is claimed that nobody knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.collect.parse import parsed
from adjudge.collect.request import Reply, Unanswered

SUDDEN = 10.0
"""A repeated question that is answered so many times faster may have been answered by a cache that nobody told us of."""

ANSWERED, ERRORED = "answered", "errored"
FirstAnswers = dict[tuple[str, str, bool], float]


def said(reply: Reply | None, *, labelled: bool) -> dict[str, Any]:
    """What the subject said; where the sample has a label, the verdict in it."""
    content = reply or Reply()
    return {
        "response": content.response,
        **(parsed(content) if labelled else {}),
        **({} if content.rationale is None else {"rationale": content.rationale}),
        "models": content.models,
        "usage": content.usage,
        "finish_reason": content.finish_reason,
        "tool_usage": [use.tool for use in content.tool_details],
        "tool_details": msgspec.to_builtins(content.tool_details),
    }


def cache_hit(reply: Reply | None) -> bool | None:
    """Whether a cache of the subject's own answered, as it says itself; None where it says nothing."""
    hit = None if reply is None or reply.cache is None else reply.cache.get("hit")
    return hit if isinstance(hit, bool) else None


def measured_times(of_subject: Mapping[str, float | None], total: float) -> dict[str, float | None]:
    """The times that the subject measured, and the total that we did; its own total stands beside ours."""
    times = {"subject_total_seconds" if name == "total_seconds" else name: value for name, value in of_subject.items()}
    return {**times, "total_seconds": total}


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
        other_hashes = {
            name: text for name, text in reply.prompt_hashes.items() if hashes.get(name) not in {None, text}
        }
        record["prompt_hashes"] = {**hashes, **reply.prompt_hashes, **{name: hashes[name] for name in other_hashes}}
        more |= {"prompt_hashes": other_hashes} if other_hashes else {}
    free = {name: value for name, value in more.items() if name not in record and name != "reply"}
    clashing = {name: value for name, value in more.items() if name not in free}
    return {**record, **free, **({"reply": clashing} if clashing else {})}


def answered_or_errored(record: Mapping[str, Any]) -> str:
    """The bucket of a record where no protocol says what its words mean."""
    return ANSWERED if record["error"] is None else ERRORED


class Latencies:
    """How long the first answer to each question took, so that a suspiciously quick repetition is noticed."""

    def __init__(self, earlier: FirstAnswers) -> None:
        self._first = dict(earlier)

    def is_sudden(self, record: Mapping[str, Any]) -> bool:
        """Whether the same question, in an earlier trial, took many times as long; the slowest is remembered."""
        key = (record["id"], record["model"], record["use_tools"])
        seconds = float(record["latency_seconds"])
        slowest = self._first.get(key)
        self._first[key] = seconds if slowest is None else max(slowest, seconds)
        return slowest is not None and seconds * SUDDEN <= slowest
