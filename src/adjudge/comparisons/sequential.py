"""A gate that may be looked at again and again: paired yes-or-no outcomes against a baseline, counted over all looks.

The state file holds the counts and which items were counted, and how: an item counts once, however often it is looked at and
however it comes out later, which is told.
Of an item that was tried several times the side that won more of its attempts wins: one coin an item.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import msgspec
import numpy as np

from adjudge.comparisons.baseline import stored
from adjudge.comparisons.guard import examine
from adjudge.comparisons.outcomes import Outcome, chosen
from adjudge.comparisons.systems import System, select
from adjudge.errors import ConfigError, NotComparable
from adjudge.stats.paired import PRIOR, Sequential, paired_test

SCHEMA = "adjudge-sequential/1"
_DIGITS = 16  # of the digest of an item
_SIGNS = {1.0: "+", -1.0: "-", 0.0: "="}


class State(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The file: what was counted so far, under which α, and short digests of the items, each with who won it."""

    schema: str = SCHEMA
    protocol: str
    metric: str
    baseline: str
    alpha: float
    prior: float = PRIOR
    looks: int = 0
    wins: int = 0
    losses: int = 0
    ties: int = 0
    seen: list[str] = []


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One look: how many items were new, how many came out otherwise than counted, and what all looks together say."""

    new: int
    otherwise: int
    known: int
    state: State
    test: Sequential


def read_state(path: Path) -> State | None:
    """The state of earlier looks; None where there was none. Another file, or counts that do not add up, are a ConfigError."""
    if not path.exists():
        return None
    state: State = stored(path, State, SCHEMA, "is no state of a sequential gate: {}")
    counts = state.wins, state.losses, state.ties
    if min(*counts, state.looks) < 0 or sum(counts) != len(set(state.seen)) or len(set(state.seen)) < len(state.seen):
        raise ConfigError(f"{path}: its counts are not those of its {len(state.seen):,} items: begin with a new file")
    return state


def look(candidate: str, baseline: str, state: State | None, *, alpha: float | None = None) -> Look:
    """Count the items that were not counted before; raises NotComparable where the two may not be compared."""
    first, second = select([baseline, candidate])
    guard = examine([first, second])
    if guard.reasons:
        raise NotComparable(guard.reasons)
    outcome = _outcome(first, second)
    manifest = first.run.manifest
    now = state or State(
        protocol=manifest.protocol,
        metric=outcome.name,
        baseline=_digest_of(first, outcome),
        alpha=0.05 if alpha is None else alpha,
    )
    _refuse_other(now, first, outcome, alpha)
    new, otherwise = _count(now, first, second, outcome, guard.keys)
    now.looks += 1
    test = paired_test(now.wins, now.losses, alpha=now.alpha, prior=now.prior)
    return Look(new=new, otherwise=otherwise, known=len(now.seen) - new, state=now, test=test)


def _outcome(first: System, second: System) -> Outcome:
    outcomes, _ = chosen([first.run, second.run], [])
    binary = next((outcome for outcome in outcomes if outcome.kind == "binary" and not outcome.where), None)
    if binary is None:
        raise NotComparable(
            ["the runs declare no yes-or-no outcome alike, which a sequential gate needs (--pass-at gives one)"]
        )
    return binary


def _digest_of(baseline: System, outcome: Outcome) -> str:
    """What the baseline is: what it was judged with, and the outcome of every sample; whether it has a page is the same."""
    digests = sorted((name, value) for name, value in baseline.run.manifest.digests.items() if name != "report_data")
    keys = sorted(baseline.place)
    values = outcome.values(baseline.table(sorted(outcome.columns()), keys)).tolist()
    content = [baseline.model, digests, keys, [None if math.isnan(value) else value for value in values]]
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:32]


def _refuse_other(state: State, baseline: System, outcome: Outcome, alpha: float | None) -> None:
    """Counts of another baseline, metric or α are not to be added to."""
    manifest = baseline.run.manifest
    for what, kept, now in (
        ("protocol", state.protocol, manifest.protocol),
        ("metric", state.metric, outcome.name),
        ("baseline", state.baseline, _digest_of(baseline, outcome)),
        ("alpha", state.alpha, state.alpha if alpha is None else alpha),
    ):
        if kept != now:
            raise ConfigError(f"the state file counts another {what} ({kept}, now {now}): begin with a new file")


def _count(state: State, first: System, second: System, outcome: Outcome, keys: list[str]) -> tuple[int, int]:
    """Add the new items to the counts; how many they are, and how many of the others came out otherwise."""
    a, b = (system.table(sorted(outcome.columns()), keys) for system in (first, second))
    gain = outcome.values(b) - outcome.values(a)
    net: dict[str, float] = {}
    for item, difference in zip(first.items(keys), gain.tolist(), strict=True):
        if not np.isnan(difference):
            net[item] = net.get(item, 0.0) + difference
    seen, before, otherwise = {text[:_DIGITS]: text[_DIGITS:] for text in state.seen}, len(state.seen), 0
    for item in sorted(net):
        digest, sign = hashlib.sha256(item.encode()).hexdigest()[:_DIGITS], _SIGNS[float(np.sign(net[item]))]
        if digest in seen:
            otherwise += seen[digest] not in {"", sign}
            continue
        seen[digest] = sign
        state.seen.append(digest + sign)
        state.wins += sign == "+"
        state.losses += sign == "-"
        state.ties += sign == "="
    return len(state.seen) - before, otherwise
