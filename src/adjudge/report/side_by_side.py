"""The data block of a comparison page: the comparison's own numbers, rendered, and the flipped samples of both sides.

It is made from the comparison as plain data (what `adjudge compare --json` prints) and from the runs behind it, which
give the evidence and answers of flipped samples and say how each run came to be. A refused comparison has no numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow.compute as pc

from adjudge.evidence.vocabulary import BUCKETS
from adjudge.report import numbers, view
from adjudge.report.compared import Side, compared
from adjudge.report.data import page_bytes, provenance
from adjudge.report.explore import PAGE_BYTES
from adjudge.report.html import EXPLORER, page, picture_bytes
from adjudge.report.samples import pictures, rendered, rows_of
from adjudge.report.sentence import amount, by_metric, gap, is_share, on_what, place_value, sentence, unit_of
from adjudge.runs.names import pair_name
from adjudge.runs.query import hold
from adjudge.runs.run import Run

SCHEMA = "adjudge-comparison/1"
FLIPS, PAIRS = 24, 40
_ASSETS = ("compare.css", "report.js", *EXPLORER, "differences.js", "compare.js")
_INSTRUMENT = {
    "config": "configuration",
    "constraint_library": "constraint library",
    "rules": "rule set",
    "schema": "schema",
    "dataset": "data set",
}


def render(comparison: Mapping[str, Any], sides: Sequence[Side]) -> bytes:
    """The page."""
    held = {system["name"] for system in comparison.get("systems", [])}
    sides = [side for side in sides if not held or side.name in held]
    shown = block(comparison, sides)
    if not comparison["pairs"]:
        return page("comparison.html.j2", shown, packed="")
    samples = compared(comparison, sides, PAGE_BYTES - page_bytes(shown))
    shown |= {"explore": samples.summary}
    parts = {"packed": samples.packed.decode()}
    bare = page("comparison.html.j2", shown, _ASSETS, **parts)
    if not samples.pictures:
        return bare
    opened: dict[str, str] = {}
    for run in {str(side.run.path): side.run for side in sides}.values():
        opened |= pictures(run, samples.pictures, picture_bytes(len(bare) + sum(map(len, opened.values()))))
    return page("comparison.html.j2", shown, _ASSETS, **parts, opened=opened)


def block(comparison: Mapping[str, Any], sides: Sequence[Side]) -> dict[str, Any]:
    """Everything the page shows, as plain JSON data."""
    pairs = _farthest(comparison["pairs"])
    by_name = {side.name: side for side in sides}
    each = max(1, FLIPS // max(1, len(pairs)))
    shown = {
        "schema": SCHEMA,
        "title": title(sides),
        "status": comparison["status"],
        "forced": comparison["forced"],
        "sentence": sentence(comparison, bare=bool(pairs)),
        "verdict": pairs[0]["verdict"] if len(pairs) == 1 else "none",
        "reasons": comparison["reasons"],
        "notes": [*_pairs_folded(len(comparison["pairs"])), *comparison.get("notes", [])],
        "same": _same(sides),
        "varied": [{"factor": name, "values": values} for name, values in comparison.get("varied", {}).items()],
        "settings": _settings(comparison) if pairs else [],
        "buckets": _buckets(sides) if pairs else None,
        "rankings": [_ranking(item) for item in comparison.get("rankings", [])],
        "overview": _overview(pairs),
        "pairs": [_pair(pair, by_name, each) for pair in pairs],
        "provenance": _provenance(sides),
    }
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(shown))
    return plain


def _farthest(pairs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The pairs that the page has room for, in their order: those that differ most by the first metric."""
    by_gap = sorted(range(len(pairs)), key=lambda place: -abs(pairs[place]["metrics"][0]["difference"]["value"] or 0.0))
    return [pairs[place] for place in sorted(by_gap[:PAIRS])]


def _pairs_folded(pairs: int) -> list[str]:
    if pairs <= PAIRS:
        return []
    listed = f"The page lists {PAIRS} of {numbers.count(pairs)} pairs, those that differ most by the first metric"
    return [f"{listed}; all are in `adjudge compare … --json`, and the flips of all in the table of samples"]


def title(sides: Sequence[Side]) -> str:
    """What is compared, in one line."""
    protocols = " and ".join(dict.fromkeys(side.run.manifest.protocol for side in sides))
    names = [side.name for side in sides]
    return f"{protocols} · " + (f"{names[1]} against {names[0]}" if len(names) == 2 else f"{len(names)} systems")


def _same(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """What must be the same for a comparison to be valid, and whether it is."""
    rows = [("protocol", [f"{side.run.manifest.protocol} {side.run.manifest.protocol_version}" for side in sides])]
    rows += [
        (words, [side.run.manifest.digests.get(key, "")[:16] for side in sides])
        for key, words in _INSTRUMENT.items()
        if any(key in side.run.manifest.digests for side in sides)
    ]
    return [{"what": what, "same": len(set(values)) == 1, "values": values} for what, values in rows]


def _settings(comparison: Mapping[str, Any]) -> list[dict[str, str]]:
    margins = [f"{name} {numbers.number(value)}" for name, value in comparison["margins"].items()]
    if comparison["margin"] is not None:
        margins.insert(0, numbers.number(comparison["margin"]))
    return [
        {"label": "shared", "text": on_what(comparison)},
        {"label": "tests", "text": numbers.count(comparison["tests"])},
        {"label": "alpha over all tests", "text": numbers.number(comparison["alpha"])},
        {"label": "margin", "text": ", ".join(margins) or "none: nothing can be called equivalent"},
        {"label": "seed, resamples", "text": f"{comparison['seed']}, {numbers.count(comparison['resamples'])}"},
    ]


def _buckets(sides: Sequence[Side]) -> dict[str, Any]:
    """Where the samples of each system ended, over all that it was judged on."""
    rows = {}
    for side in sides:
        column = view.system_column(side.run)
        table = side.run.columns([column, "bucket"])
        of_system = table.filter(pc.equal(table.column(column).cast("string"), side.model))
        counts = Counter(of_system.column("bucket").cast("string").to_pylist())
        rows[side.name] = {**{name: counts[name] for name in BUCKETS}, "n": of_system.num_rows}
    return view.bucket_block(rows)


def _overview(pairs: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Several pairs in one table: a row a metric, a column a pair."""
    if len(pairs) < 2:
        return None
    rows = by_metric(
        pairs,
        lambda metric: (metric["title"], metric["slice"]),
        lambda metric: {"verdict": metric["verdict"], "text": gap(metric)},
    )
    return {
        "pairs": [pair_name(pair["a"], pair["b"]) for pair in pairs],
        "rows": [{"label": title, "slice": slice_, "cells": cells} for (title, slice_), cells in rows.items()],
    }


def _ranking(ranking: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "title": ranking["title"],
        "places": [
            {**place, "text": place_value(place, ranking), "letters": view.letters(place)}
            for place in ranking["places"]
        ],
    }


def _pair(pair: Mapping[str, Any], sides: Mapping[str, Side], each: int) -> dict[str, Any]:
    whole = [metric for metric in pair["metrics"] if not metric["slice"]]
    shared = _nice(max((_reach(metric) for metric in pair["metrics"] if is_share(metric)), default=0.0))
    metrics = [_metric(metric, pair, shared) for metric in pair["metrics"]]
    return {
        "a": pair["a"],
        "b": pair["b"],
        "n": pair["n"],
        "verdict": pair["verdict"],
        "identical": pair["identical"],
        "metrics": metrics[: len(whole)],
        "slices": metrics[len(whole) :],
        "latency": pair["latency"],
        "flipped": _flipped(pair, sides, each),
    }


def _metric(metric: Mapping[str, Any], pair: Mapping[str, Any], shared: float) -> dict[str, Any]:
    difference = metric["difference"]
    end = shared if is_share(metric) else _nice(_reach(metric))
    counts = metric["discordant"]
    tests = "; ".join(f"{test['method']}: p {numbers.p_value(test['p'], test['log10_p'])}" for test in metric["tests"])
    if counts is not None:
        only = [f"only {pair[side]} {numbers.count(counts[f'only_{side}'])}" for side in ("a", "b")]
        tests = "; ".join([*only, tests])
    return {
        "name": metric["name"],
        "label": metric["title"],
        "slice": metric["slice"],
        "verdict": metric["verdict"],
        "better": "higher is better" if metric["higher_is_better"] else "lower is better",
        "n": metric["n"],
        "left_out": metric["left_out"],
        "a": metric["a"],
        "b": metric["b"],
        "a_text": numbers.number(metric["a"], unit=unit_of(metric)),
        "b_text": numbers.number(metric["b"], unit=unit_of(metric)),
        **{name: difference[name] for name in ("value", "low", "high")},
        "text": gap(metric),
        "note": difference["why"] or f"n = {numbers.count(metric['n'])}, {difference['method']}",
        "why": metric["why"],
        "warnings": [] if pair["identical"] else difference["warnings"],
        "margin": metric["margin"],
        "p": metric["p"],
        "p_text": numbers.p_value(metric["p"], metric["log10_p"]),
        "p_holm": metric["p_holm"],
        "p_holm_text": numbers.p_value(metric["p_holm"]),
        "tests": tests,
        "detectable": metric["detectable"]["value"],
        "detectable_text": amount(metric["detectable"]["value"], metric),
        "scale": {"end": end, "low_text": f"−{amount(end, metric)}", "high_text": f"+{amount(end, metric)}"},
    }


def _reach(metric: Mapping[str, Any]) -> float:
    """How far from zero a metric's interval and margin go."""
    difference = metric["difference"]
    ends = [difference[name] for name in ("value", "low", "high")] + [metric["margin"]]
    return max((abs(end) for end in ends if end is not None), default=0.0)


def _nice(reach: float) -> float:
    """The end of a scale: 1, 2 or 5 times a power of ten, at or above what it must hold."""
    if reach <= 0.0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(reach))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= reach * (1.0 - 1e-12))


def _flipped(pair: Mapping[str, Any], sides: Mapping[str, Side], each: int) -> dict[str, Any]:
    flipped = pair["flipped"]
    ways = []
    for change, counted in (("lost", flipped["lost"]), ("gained", flipped["gained"])):
        shown = [flip for flip in flipped["samples"] if flip["change"] == change][:each]
        both = [_found(sides[pair[key]], shown) for key in ("a", "b")]
        ways.append(
            {
                "change": change,
                "count": counted,
                "rows": [
                    {
                        "sample": flip["sample"],
                        "trial": flip["trial"],
                        "fails": flip["fails"],
                        "sides": [side_rows[place] for side_rows in both],
                    }
                    for place, flip in enumerate(shown)
                ],
            }
        )
    return {"name": view.words(flipped["name"]), "ways": ways}


def _found(side: Side, flips: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
    """The rows of one system behind flipped samples, rendered; None where the run no longer holds one."""
    column = view.system_column(side.run)
    rows = {
        (row["sample"], _trial(row.get("trial"))): row
        for row in rows_of(side.run, [flip["sample"] for flip in flips])
        if str(row[column]) == side.model
    }
    rows_of_flips = [rows.get((flip["sample"], _trial(flip["trial"]))) for flip in flips]
    hold(side.run, [(row["part"], row["row"]) for row in rows_of_flips if row is not None])
    return [None if row is None else {"name": side.name, **rendered(side.run, row)} for row in rows_of_flips]


def _trial(value: Any) -> str | None:
    return None if value is None else str(value)


def _provenance(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """How each run came to be; systems of one run share it."""
    runs: dict[str, tuple[Run, list[str]]] = {}
    for side in sides:
        runs.setdefault(str(side.run.path.resolve()), (side.run, []))[1].append(side.name)
    return [{"name": run.path.name, "systems": names, **provenance(run)} for run, names in runs.values()]
