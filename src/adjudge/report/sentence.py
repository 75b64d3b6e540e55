"""A comparison in one sentence that somebody who decides can read; made from the comparison's JSON alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from adjudge.report import numbers
from adjudge.report.numbers import line
from adjudge.runs.names import pair_name
from adjudge.stats.estimate import SHARE, Estimate

R = TypeVar("R")
C = TypeVar("C")
_SMALLEST_P = 1e-300
FEW = 4
"""Up to so many metrics are told one by one; of more, how many are better and worse, and by how much the first of them."""
_TOLD = 3


def sentence(comparison: Mapping[str, Any], *, bare: bool = False) -> str:
    """The verdict on a comparison: every metric of two systems, or the ranking of more; one line for each pair alone.

    A `bare` one stands above the numbers and has none of them.
    """
    if not comparison.get("pairs"):
        return _ended("Not comparable: " + "; ".join(comparison["reasons"]))
    if comparison["rankings"]:
        clauses = [_ranking(comparison["rankings"][0], bare=bare)]
    elif len(comparison["pairs"]) > 1:
        return "\n".join(_pair(pair, comparison, bare=bare) for pair in comparison["pairs"])
    else:
        clauses = _clauses(comparison["pairs"][0], alone=comparison["tests"] == 1, bare=bare)
    return _ended(_opening(comparison) + "; ".join(clauses))


def _pair(pair: Mapping[str, Any], comparison: Mapping[str, Any], *, bare: bool) -> str:
    """One of several pairs that are told apart by more than the factor."""
    if not pair["identical"] and sum(not metric["slice"] for metric in pair["metrics"]) > FEW:
        clauses = [*_counted(pair, who="", told=1, bare=bare), *_latency_refused(pair)]
        return _ended(f"{pair_name(line(pair['a']), line(pair['b']))}, on {on_what(pair)}: {', '.join(clauses)}")
    systems = [system for name in (pair["a"], pair["b"]) for system in comparison["systems"] if system["name"] == name]
    opening = _opening({**comparison, "systems": systems, "n": pair["n"], "samples": pair.get("samples", pair["n"])})
    return _ended(opening + "; ".join(_clauses(pair, alone=comparison["tests"] == 1, bare=bare)))


def _clauses(pair: Mapping[str, Any], *, alone: bool, bare: bool) -> list[str]:
    """What is said of each metric of one pair (of a slice only where it is told apart), and of latency."""
    if pair["identical"]:
        clauses = ["the two are equivalent, for they hold the same answers and results"]
    else:
        whole = [metric for metric in pair["metrics"] if not metric["slice"]]
        told = [metric for metric in pair["metrics"] if not metric["slice"] or metric["verdict"] in {"better", "worse"}]
        if len(whole) > FEW:
            clauses = _counted(pair, who=f"{line(pair['b'])} is ", told=_TOLD, bare=bare)
        else:
            clauses = [_clause(metric, line(pair["b"]), alone=alone, bare=bare) for metric in told]
    return clauses + _latency_refused(pair)


def _latency_refused(pair: Mapping[str, Any]) -> list[str]:
    """Why latencies as a whole were not compared."""
    latency = pair["latency"]
    if latency is None or latency["why"] is None:
        return []
    refused = "latency is not comparable" if not latency["compared"] else "latency was compared by force"
    return [f"{refused}: {line(latency['why'])}"]


def _counted(pair: Mapping[str, Any], *, who: str, told: int, bare: bool) -> list[str]:
    """How many metrics are better, worse, equivalent and inconclusive; the first of the better and worse with their gaps."""
    whole = [metric for metric in pair["metrics"] if not metric["slice"]]
    clauses = []
    for verdict in ("better", "worse"):
        metrics = [metric for metric in whole if metric["verdict"] == verdict]
        if metrics:
            listed = ", ".join(line(metric["title"]) + ("" if bare else f" {gap(metric)}") for metric in metrics[:told])
            more = f" and {len(metrics) - told} more" if len(metrics) > told else ""
            clauses.append(f"{who}{verdict} on {len(metrics)} of {len(whole)} metrics ({listed}{more})")
    for verdict in ("equivalent", "inconclusive"):
        metrics = [metric for metric in whole if metric["verdict"] == verdict]
        if metrics:
            clauses.append(f"{len(metrics)} {'is' if len(metrics) == 1 else 'are'} {verdict}")
    sliced = [
        f"{line(metric['title'])} where {line(metric['slice'])}" + ("" if bare else f": {gap(metric)}")
        for metric in pair["metrics"]
        if metric["slice"] and metric["verdict"] == "worse"
    ]
    return clauses + ([f"worse within a slice: {'; '.join(sliced[:told])}"] if sliced else [])


def by_metric(
    pairs: Sequence[Mapping[str, Any]], row: Callable[[Mapping[str, Any]], R], cell: Callable[[Mapping[str, Any]], C]
) -> dict[R, list[C | None]]:
    """A table of several pairs: a row a metric, a cell a pair; None where a pair does not have the metric."""
    cells: dict[R, list[C | None]] = {}
    for place, pair in enumerate(pairs):
        for metric in pair["metrics"]:
            cells.setdefault(row(metric), [None] * len(pairs))[place] = cell(metric)
    return cells


def gap(metric: Mapping[str, Any], *, with_unit: bool = True) -> str:
    """The difference with its interval: `+4.2 points [1.1, 7.3]`; shares in percentage points."""
    difference = scaled(Estimate.from_dict(metric["difference"]), metric)
    if difference.value is None:
        return numbers.NOTHING
    unit = gap_unit(metric) if with_unit else ""
    return ("+" if difference.value > 0 else "") + numbers.estimate(difference, unit=unit)


def gap_unit(metric: Mapping[str, Any]) -> str:
    """The unit in which its difference is shown."""
    return "points" if is_share(metric) else str(metric["unit"])


def is_share(metric: Mapping[str, Any]) -> bool:
    """Whether it lies between 0 and 1 and is shown in percent."""
    return metric["kind"] in {"binary", "ratio"} or metric["unit"] == SHARE


def unit_of(metric: Mapping[str, Any]) -> str:
    """The unit in which its values are shown."""
    return SHARE if is_share(metric) else str(metric["unit"])


def scaled(estimate: Estimate, metric: Mapping[str, Any]) -> Estimate:
    """A share in percentage points, another number as it is."""
    return estimate.mapped(lambda share: share * 100.0) if is_share(metric) else estimate


def p_text(p: float | None, log10_p: float | None = None) -> str:
    """`p = 0.009`; below what a double carries, `p < 1e-300`, or the power of ten where it is known."""
    if p is None:
        return "p is not defined"
    if p < _SMALLEST_P and log10_p is None:
        return "p < 1e-300"
    return f"p = {numbers.p_value(p, log10_p)}"


def amount(value: float | None, metric: Mapping[str, Any]) -> str:
    """A margin or a detectable difference: `2 points`, `0.3 s`."""
    if is_share(metric) and value is not None:
        return numbers.number(value * 100.0, unit="points")
    return numbers.number(value, unit=metric["unit"])


def _clause(metric: Mapping[str, Any], name: str, *, alone: bool, bare: bool) -> str:
    title = line(metric["title"]) + (f" where {line(metric['slice'])}" if metric["slice"] else "")
    verdict = metric["verdict"]
    corrected = p_text(metric["p"], metric["log10_p"]) if alone else f"{p_text(metric['p_holm'])} after correction"
    if verdict == "equivalent":
        within = f"{title} is equivalent within {amount(metric['margin'], metric)}"
        return within if bare else f"{within} ({gap(metric)})"
    if verdict in {"better", "worse"}:
        phrase = metric["phrases"].get(verdict) if not metric["slice"] else None
        claim = f"{name} {line(phrase)}" if phrase else f"{name} is {verdict} on {title}"
        return claim if bare else f"{claim}: {gap(metric)}, {corrected}"
    if metric["difference"]["value"] is None:
        return f"{title} cannot be compared: {line(metric['why'] or 'there are no pairs')}"
    return f"{title} is inconclusive" + (": " if bare else f": {gap(metric)}, {corrected}; ") + _needed(metric)


def _needed(metric: Mapping[str, Any]) -> str:
    needs = metric["needs"]
    if needs is None:
        return line(metric["why"]) if metric["why"] else "no number of samples can be named that would settle it"
    here = numbers.count(metric["n"]) + (f" in {metric['clusters']} clusters" if metric["clusters"] else "")
    observed = needs["to_find"] == abs(metric["difference"]["value"])
    finding = "" if observed else f"finding {amount(needs['to_find'], metric)} "
    return f"{finding}needs about n = {_about(needs['n'])} (here {here})"


def _about(n: int) -> str:
    """A number of samples to two significant digits, upwards: more would be false precision."""
    step = 10 ** max(0, len(str(n)) - 2)
    return numbers.count(-(-n // step) * step)


def _ranking(ranking: Mapping[str, Any], *, bare: bool) -> str:
    places = ranking["places"]
    listed = ", ".join(
        " ".join(
            [line(place["name"]), *([] if bare else [place_value(place, ranking)]), f"({''.join(place['tie_groups'])})"]
        )
        for place in places
    )
    if len({letter for place in places for letter in place["tie_groups"]}) == 1:
        return f"by {line(ranking['title'])} no two are told apart: {listed}"
    return f"by {line(ranking['title'])}: {listed}; names that share a letter are not told apart"


def place_value(place: Mapping[str, Any], ranking: Mapping[str, Any]) -> str:
    """The value behind one place of a ranking."""
    return numbers.number(place["value"], unit=unit_of(ranking))


def _opening(comparison: Mapping[str, Any]) -> str:
    systems: Sequence[Mapping[str, Any]] = comparison["systems"]
    names = [line(system["name"]) for system in systems]
    who = f"{names[1]} against {names[0]}" if len(names) == 2 else f"{len(names)} systems"
    n = on_what(comparison)
    if comparison["status"] == "NOT_COMPARABLE":
        shared = n.replace(" samples", " shared samples")
        return f"{who}, forced although not comparable ({line('; '.join(comparison['reasons']))}), on {shared}: "
    if comparison["status"] == "COMPARABLE_ON_INTERSECTION":
        sizes = " and ".join(
            f"{numbers.count(system['n'])} of {name}" for system, name in zip(systems, names, strict=True)
        )
        return f"{who}, on the {n} that all share ({sizes}): "
    return f"{who}, on {n}: "


def on_what(counted: Mapping[str, Any]) -> str:
    """What n is made of: `60 samples × 3 trials`, and where not every trial has every sample, `170 records of 60 samples`."""
    n, samples = counted["n"], counted.get("samples", counted["n"])
    if samples in {0, n}:
        return f"{numbers.count(n)} samples"
    if n % samples == 0:
        return f"{numbers.count(samples)} samples × {n // samples} trials"
    return f"{numbers.count(n)} records of {numbers.count(samples)} samples"


def _ended(text: str) -> str:
    return text if text.endswith(".") else text + "."
