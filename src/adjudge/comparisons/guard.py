"""The comparability guard: whether runs may be compared at all, decided from what they contain.

Same protocol, configuration, schema, constraint library and rules; same data, or enough of it shared with equal
labels; one factor varied; for latency, one known cache state. Every reason against is collected, not only the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import PurePath
from typing import Any, Literal

import msgspec
import numpy as np

from adjudge.comparisons.outcomes import equal_rows, holds, near, plain
from adjudge.comparisons.systems import FACTORS, System, sample_of
from adjudge.errors import ConfigError

Status = Literal["COMPARABLE", "COMPARABLE_ON_INTERSECTION", "NOT_COMPARABLE"]
SHARED_AT_LEAST = 0.5
LATENCY, CACHE = "latency_seconds", "cache"
INSTRUMENT = {  # the digests of what samples are judged with, in words
    "config": "configuration",
    "constraint_library": "constraint library",
    "rules": "rule set",
    "schema": "schema",
}
_MODELS, _AGENT = "models.", "models.agent"
_NAMED_DIFFERENCES = 5
_CACHE_WORDS = {"true": "hit", "hit": "hit", "false": "miss", "miss": "miss"}


@dataclass
class Guard:
    """What the guard found. `keys` are the samples that every system has, sorted."""

    status: Status
    keys: list[str]
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    varied: dict[str, list[Any]] = field(default_factory=dict)


def examine(systems: Sequence[System], *, factor: str | None = None) -> Guard:
    """Hold the systems against each other."""
    factor = None if factor is None else named_factor(systems, factor)
    reasons, notes = [*_same_instrument(systems), *_same_conditions(systems)], []
    keys, partial, data_reasons, data_notes = _same_data(systems)
    varied, factor_reasons, factor_notes = _one_factor(systems, factor, keys)
    reasons += data_reasons + factor_reasons
    notes += data_notes + factor_notes
    status: Status = "COMPARABLE_ON_INTERSECTION" if partial else "COMPARABLE"
    return Guard("NOT_COMPARABLE" if reasons else status, keys, reasons, notes, varied)


def grouped(systems: Sequence[System], factor: str | None) -> list[list[System]]:
    """The systems of one run in groups that differ in the factor alone.

    Without a factor, or where no group has two, all are one group, and the guard says what is wrong with it.
    """
    if factor is None or len(systems) == 2 or any(system.run is not systems[0].run for system in systems):
        return [list(systems)]
    groups: list[list[System]] = []
    for system in systems:
        for group in groups:
            # Prompts may belong to a mode; the guard holds them sample by sample.
            if all(_differing_facts(other, system)[0] <= {factor, "prompt"} for other in group):
                group.append(system)
                break
        else:
            groups.append([system])
    return [group for group in groups if len(group) > 1] or [list(systems)]


def combined(guards: Sequence[Guard]) -> Guard:
    """What several guards found, as one: the worst status, every reason once, the samples of any."""
    if len(guards) == 1:
        return guards[0]
    worst: tuple[Status, ...] = ("NOT_COMPARABLE", "COMPARABLE_ON_INTERSECTION", "COMPARABLE")
    varied: dict[str, list[Any]] = {}
    for guard in guards:
        for name, values in guard.varied.items():
            varied[name] = [*varied.get(name, []), *values]
    return Guard(
        min((guard.status for guard in guards), key=worst.index),
        sorted({key for guard in guards for key in guard.keys}),
        list(dict.fromkeys(reason for guard in guards for reason in guard.reasons)),
        list(dict.fromkeys(note for guard in guards for note in guard.notes)),
        varied,
    )


def latency_refused(first: System, second: System, keys: Sequence[str]) -> str | None:
    """Why the latencies of two systems cannot be compared, or None when they can."""
    states = {system.name: cache_state(system, keys) for system in (first, second)}
    wording = {
        "hit": "{} was cached",
        "miss": "{} was not cached",
        "mixed": "{} mixes cached and uncached answers",
        "unknown": "the cache state of {} is unknown",
    }
    if set(states.values()) in ({"hit"}, {"miss"}):
        return None
    return ", ".join(wording[state].format(name) for name, state in states.items())


def cache_state(system: System, keys: Sequence[str]) -> str:
    """hit, miss, mixed or unknown, of the answers that were timed; one of unknown state makes the whole unknown."""
    if CACHE not in system.run.column_names:
        return "unknown"
    rows = system.table([CACHE], keys).column(0)
    if LATENCY in system.run.column_names:
        rows = rows.filter(system.table([LATENCY], keys).column(0).is_valid())
    states = set(_states(plain(rows).unique()))
    if len(states) == 1:
        return states.pop()
    return "unknown" if "unknown" in states or not states else "mixed"


def in_state(column: Any, state: str) -> Any:
    """Which rows of a cache column say that the cache was in a state: `hit` or `miss`."""
    return np.array([word == state for word in _states(plain(column))], dtype=bool)


def _states(words: Any) -> list[str]:
    return [_CACHE_WORDS.get(str(word).lower(), "unknown") for word in words.to_pylist()]


def _same_instrument(systems: Sequence[System]) -> list[str]:
    """Protocol, version, and the digests of what the samples were judged with."""
    reasons = []
    for first, second in combinations(systems, 2):
        if first.run is second.run or first.run.path == second.run.path:
            continue
        a, b = first.run.manifest, second.run.manifest
        pair = f"{first.name} and {second.name}"
        if a.protocol != b.protocol:
            reasons.append(f"{pair} were judged by different protocols: {a.protocol} and {b.protocol}")
            continue
        if a.protocol_version != b.protocol_version:
            reasons.append(
                f"{pair} were judged by different versions of {a.protocol}: {a.protocol_version} and {b.protocol_version}"
            )
        differing = [words for key, words in INSTRUMENT.items() if a.digests.get(key) != b.digests.get(key)]
        if differing:
            changes = _rules_of_one(first, second) if differing == [INSTRUMENT["rules"]] else ""
            changes = changes or _changes(first, second)
            reasons.append(f"{pair} differ in {', '.join(differing)}" + (f" ({changes})" if changes else ""))
    return reasons


def _same_conditions(systems: Sequence[System]) -> list[str]:
    """Facts by task that a protocol lists as `conditions` of its models: version, scorers, prompts must be the same."""
    reasons = []
    for first, second in combinations(systems, 2):
        a, b = (system.run.metrics.get("conditions", {}).get(system.model, {}) for system in (first, second))
        for task in sorted(a.keys() & b.keys()):
            facts = sorted({*a[task], *b[task]})
            changes = [change for fact in facts for change in _walk(fact, a[task].get(fact), b[task].get(fact))]
            if changes:
                what = f"{task}: " if task else ""
                pair = f"{first.name} and {second.name}"
                reasons.append(f"{pair} were made under different conditions ({what}{_first_few(changes)})")
    return reasons


def _rules_of_one(first: System, second: System) -> str:
    """The rules that one of two runs alone has, each with what it is about."""
    rules = [{(at.rule["code"], at.slot["field"]) for at in system.run.layout.positions} for system in (first, second)]
    return "; ".join(
        f"{system.name} alone has {', '.join(f'{code} of {field}' if field else code for code, field in alone)}"
        for system, alone in ((first, sorted(rules[0] - rules[1])), (second, sorted(rules[1] - rules[0])))
        if alone
    )


def _changes(first: System, second: System) -> str:
    """The settings that differ, as `name: A's value, B's value`; input files and gates change no judgement."""
    inputs = {item.name for system in (first, second) for item in system.run.manifest.inputs}
    a, b = first.run.manifest.config, second.run.manifest.config
    keys = [key for key in sorted({*a, *b} - {"gates"}) if not any(_is_input(side.get(key), inputs) for side in (a, b))]
    return _first_few([change for key in keys for change in _walk(key, a.get(key), b.get(key))])


def _first_few(changes: list[str]) -> str:
    """The first few of some changes, and how many more there are."""
    rest = len(changes) - _NAMED_DIFFERENCES
    return "; ".join(changes[:_NAMED_DIFFERENCES] + ([f"and {rest} more"] if rest > 0 else []))


def _is_input(value: Any, inputs: set[str]) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and PurePath(name).name in inputs for name in names)


def _walk(path: str, a: Any, b: Any) -> Iterator[str]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted({*a, *b}, key=str):
            yield from _walk(f"{path}.{key}", a.get(key), b.get(key))
    elif a != b:
        yield f"{path}: {_brief(a)}, {_brief(b)}"


def _brief(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _same_data(systems: Sequence[System]) -> tuple[list[str], bool, list[str], list[str]]:
    """The keys that all share, whether that is only a part, the reasons against, and notes."""
    keys = sorted(set.intersection(*(set(system.place) for system in systems)))
    reasons: list[str] = []
    notes: list[str] = []
    partial = any(len(system.place) != len(keys) for system in systems)
    for first, second in combinations(systems, 2):
        pair = f"{first.name} and {second.name}"
        common = keys if len(systems) == 2 else sorted(set(first.place) & set(second.place))
        sizes = len(first.place), len(second.place)
        if not common:
            reasons.append(f"{pair} share no sample: they were judged on different data")
            continue
        if len(common) < SHARED_AT_LEAST * max(sizes):
            reasons.append(
                f"{pair} were judged on different data: {len(common)} samples are shared, "
                f"of {sizes[0]} and {sizes[1]}; at least half of both are needed"
            )
        reasons += _labels(first, second, common, whole=len(common) == sizes[0] == sizes[1])
    if partial and keys and not reasons:
        sizes_of_all = " and ".join(f"{len(system.place)} of {system.name}" for system in systems)
        notes.append(f"everything is recomputed on the {len(keys)} samples that all share, of {sizes_of_all}")
    if not keys and not reasons:
        reasons.append("no sample is shared by all")
    return keys, partial, reasons, notes


def _labels(first: System, second: System, keys: Sequence[str], *, whole: bool) -> list[str]:
    """A reason when shared samples carry different labels, or when nothing shows that they carry the same."""
    names = first.label_columns
    pair = f"{first.name} and {second.name}"
    if set(names) != set(second.label_columns):
        return [f"{pair} store different columns of the data set: {names} and {second.label_columns}"]
    digests = [system.run.manifest.digests.get("dataset") for system in (first, second)]
    if not names:
        if first.run is second.run or (whole and digests[0] == digests[1]):
            return []
        return [
            f"{pair} have different data set digests, and store no labels by which the shared samples could be held"
        ]
    a, b = first.table(names, keys), second.table(names, keys)
    same = np.all([equal_rows(a.column(name), b.column(name)) for name in names], axis=0)
    silent = np.any([_says_nothing(system, names, keys) for system in (first, second)], axis=0)
    different = np.flatnonzero(~same & ~silent)
    if not different.size:
        return []
    where = f"{different.size} of {len(keys)} shared samples, first {sample_of(keys[int(different[0])])!r}"
    return [f"{pair} carry different labels ({', '.join(names)}) on {where}"]


def _says_nothing(system: System, names: Sequence[str], keys: Sequence[str]) -> Any:
    """Which samples are missing, so that the run has none of their labels: they may be those of the other side."""
    rows = system.table([*names, "bucket"], keys)
    return np.all(
        [holds(rows.column("bucket"), "missing"), *(rows.column(name).is_null().to_numpy() for name in names)], axis=0
    )


def named_factor(systems: Sequence[System], name: str) -> str:
    """The factor that a name stands for, which may also be that of a fact (`models.vision`); an unknown one is a ConfigError."""
    known = list(dict.fromkeys([*FACTORS, *(factor for system in systems for factor in system.facts)]))
    facts = {fact: factor for system in systems for factor, facts in system.facts.items() for fact in facts}
    if name in known or name in facts:
        return name if name in known else facts[name]
    raise ConfigError(f"factor {name!r} is not one of {', '.join(known)}{near(name, [*known, *facts])}")


def _one_factor(
    systems: Sequence[System], factor: str | None, keys: Sequence[str]
) -> tuple[dict[str, list[Any]], list[str], list[str]]:
    """The factors that vary, the reasons against, and what is not recorded."""
    compared = [_differing(*pair, keys) for pair in combinations(systems, 2)]
    differing = {name for names, _ in compared for name in names}
    unknown = {name for _, names in compared for name in names}
    varied = {name: _values(systems, name) for name in _ordered(systems) if name in differing}
    reasons: list[str] = []
    notes = [
        f"{name} is recorded for some of the runs only, so nothing shows that it was the same"
        for name in _ordered(systems)
        if name in unknown
    ]
    if factor is not None:
        if factor not in varied:
            known = all(factor in system.facts for system in systems)
            notes.append(
                f"{factor} was to be compared, but {'is the same in all runs' if known else 'the runs do not record it'}"
            )
        reasons += [
            f"{name} varies too ({_listed(values)}), but only {factor} was to vary"
            for name, values in varied.items()
            if name != factor
        ]
    else:
        if "prompt" in varied:
            reasons.append("the prompts differ; where prompts are what is compared, say --factor prompt")
        others = [name for name in varied if name != "prompt"]
        if len(others) > 1:
            reasons.append(
                "more than one factor varies, so a difference has no one cause: "
                + "; ".join(f"{name} ({_listed(varied[name])})" for name in others)
            )
    return varied, reasons, notes


def _ordered(systems: Sequence[System]) -> list[str]:
    """Every factor that some system records, those that are asked for most first."""
    recorded = {name for system in systems for name in system.facts}
    return [*(name for name in FACTORS if name in recorded), *sorted(recorded - set(FACTORS))]


def _differing(first: System, second: System, keys: Sequence[str]) -> tuple[set[str], set[str]]:
    """The factors in which two systems differ, prompts sample by sample, and those that only one of them records."""
    differing, unknown = _differing_facts(first, second)
    same_prompts = _same_prompts(first, second, keys)
    if same_prompts is not None:
        unknown = unknown - {"prompt"}
        differing = differing - {"prompt"} if same_prompts else differing | {"prompt"}
    return differing, unknown - differing


def _differing_facts(first: System, second: System) -> tuple[set[str], set[str]]:
    """The factors of which two systems record different facts, and those that only one of them records.

    A key that one record of `models` or `run_config` has and the other lacks is a difference, for both were recorded. Between
    two modes it belongs to the mode: without tools there is no limit on their rounds. A model that looks at the pictures itself
    is one model, though it is recorded as agent and as vision.
    """
    differing: set[str] = set()
    unknown: set[str] = set()
    modes = first.facts.get("tools") != second.facts.get("tools")
    flat = [
        {fact: value for facts in system.facts.values() for fact, value in facts.items()} for system in (first, second)
    ]
    sources = [{fact.partition(".")[0] for fact in facts if "." in fact} for facts in flat]
    agents = [facts.get(_AGENT) for facts in flat]
    for name in first.facts.keys() | second.facts.keys():
        for fact in first.facts.get(name, {}).keys() | second.facts.get(name, {}).keys():
            values = [facts.get(fact) for facts in flat]
            absent = [fact not in facts for facts in flat]
            if True not in absent:
                itself = fact.startswith(_MODELS) and values == agents
                differing |= {name} if values[0] != values[1] and not (itself and fact != _AGENT) else set()
            elif fact.partition(".")[0] not in sources[absent.index(True)]:
                unknown.add(name)
            elif not modes:
                differing.add(name)
    return differing, unknown


def _values(systems: Sequence[System], name: str) -> list[Any]:
    """What each system records of a factor: of several facts the first in which they differ."""
    facts = [system.facts.get(name, {}) for system in systems]
    names = list(dict.fromkeys(fact for each in facts for fact in each))
    fact = next((fact for fact in names if len({str(each.get(fact)) for each in facts}) > 1), None)
    return [each.get(fact) if fact else system.factor(name) for each, system in zip(facts, systems, strict=True)]


def _same_prompts(first: System, second: System, keys: Sequence[str]) -> bool | None:
    """Whether the samples that both have were asked with the same prompts; None where a run has none by sample.

    What only one of two modes has, such as the prompt of the agent that calls the tools, is part of the mode.
    """
    a, b = (system.prompts(keys) for system in (first, second))
    if a is None or b is None:
        return None
    modes = first.facts.get("tools") != second.facts.get("tools")
    return all(
        one is None or other is None or _same_prompt(one, other, modes=modes)
        for one, other in dict.fromkeys(zip(a.to_pylist(), b.to_pylist(), strict=True))
    )


def _same_prompt(one: str, other: str, *, modes: bool) -> bool:
    if one == other:
        return True
    a, b = _components(one), _components(other)
    shared = a.keys() & b.keys()
    if not modes and a.keys() != b.keys():
        return False
    return bool(shared) and all(a[name] == b[name] for name in shared)


def _components(text: str) -> dict[str, Any]:
    """The prompts by component, where a run stores them so."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(_brief(value) for value in values)
