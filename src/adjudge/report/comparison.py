"""A comparison for the terminal: the sentence, the table behind it, and the samples that flipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from adjudge.report import numbers
from adjudge.report.numbers import WIDTH, line, table
from adjudge.report.sentence import FEW, amount, by_metric, gap, gap_unit, place_value, sentence, unit_of
from adjudge.runs.names import pair_name, short_names

_FLIPS_SHOWN, _NAME = 10, 24
_FOLDED = "Every test with its p values, n and what n could have found: --json, or -o FILE.html"


def text(comparison: Mapping[str, Any]) -> str:
    """The comparison, made from its JSON; one that was refused has its reasons alone."""
    if not comparison["pairs"]:
        return f"{comparison['status']}\n\n{_wrapped(sentence(comparison))}"
    parts = [f"{comparison['status']} · {comparison['protocol']}"]
    parts += [_wrapped(paragraph) for paragraph in sentence(comparison).split("\n")]
    parts += [_wrapped(f"What varies: {line(name)}: {_values(values)}") for name, values in varied(comparison)]
    pairs = comparison["pairs"]
    parts += [_ranking(ranking) for ranking in comparison["rankings"]]
    few = len({metric["name"] for metric in pairs[0]["metrics"]}) <= FEW
    if len(pairs) == 1:
        parts += [_table(pairs[0], few=few), _tests(pairs[0]) if few else _FOLDED, _flipped(pairs[0])]
    else:
        parts += [_all_pairs(pairs), _FOLDED, _flips_counted(pairs)]
    parts.append("\n".join(_wrapped(f"Note: {note}") for note in _notes(comparison)))
    return "\n\n".join(part for part in parts if part)


def varied(comparison: Mapping[str, Any]) -> list[tuple[str, list[Any]]]:
    """The factors that vary, where the names of the systems do not tell."""
    told = len({system["model"] for system in comparison["systems"]}) > 1
    return [] if told else list(comparison["varied"].items())


def _values(values: Sequence[Any]) -> str:
    return ", ".join(dict.fromkeys(line(str(value), 60) for value in values))


def _notes(comparison: Mapping[str, Any]) -> list[str]:
    notes = [line(note) for note in comparison["notes"]]
    names_of: dict[str, list[str]] = {}
    for pair in comparison["pairs"]:
        for metric in pair["metrics"]:
            warnings = [] if pair["identical"] else list(metric["difference"]["warnings"])
            if metric["left_out"] and len(comparison["pairs"]) == 1:
                left_out = numbers.count(metric["left_out"])
                warnings.append(f"{left_out} samples are left out, where one of the two has no value")
            for warning in warnings:
                names_of.setdefault(warning, []).append(_name(metric))
    return notes + [f"{', '.join(dict.fromkeys(names))}: {warning}" for warning, names in names_of.items()]


def _name(metric: Mapping[str, Any]) -> str:
    return line(metric["name"]) + (f" [{line(metric['slice'])}]" if metric["slice"] else "")


def _ranking(ranking: Mapping[str, Any]) -> str:
    rows = [
        (str(place["rank"]), line(place["name"]), place_value(place, ranking), " ".join(place["tie_groups"]))
        for place in ranking["places"]
    ]
    return table(("rank", "system", line(ranking["metric"]), "tie groups"), rows, left=2)


def _table(pair: Mapping[str, Any], *, few: bool) -> str:
    """A row a metric; of few metrics with everything that is known of them."""
    rows = []
    for metric in pair["metrics"]:
        values = (numbers.number(metric[side], unit=unit_of(metric)) for side in ("a", "b"))
        row = [_name(metric), metric["verdict"], *values, gap(metric), numbers.p_value(metric["p_holm"])]
        if few:
            could_find = amount(metric["detectable"]["value"], metric)
            row += [_p(metric), numbers.p_value(metric["p_bh"]), numbers.count(metric["n"]), could_find]
        rows.append(row)
    names = short_names([line(pair[side]) for side in ("a", "b")], _NAME)
    head = ["metric", "verdict", *names.values(), "difference", "p, Holm"]
    return table([*head, "p", "BH", "n", "could find"] if few else head, rows, left=2)


def _tests(pair: Mapping[str, Any]) -> str:
    """The discordant counts of every yes-or-no metric and all tests on them; the first test is the one that decides."""
    lines = []
    for metric in pair["metrics"]:
        counts = metric["discordant"]
        if counts is None or not metric["n"]:
            continue
        tests = ", ".join(f"{test['method']} {_p(test)}" for test in metric["tests"])
        only = f"only {line(pair['a'])} {numbers.count(counts['only_a'])}, only {line(pair['b'])} {numbers.count(counts['only_b'])}"
        lines.append(_wrapped(f"Tests on {_name(metric)}: {only}; {tests}"))
    return "\n".join(lines)


def _all_pairs(pairs: Sequence[Mapping[str, Any]]) -> str:
    """One table: a row a metric, a column a pair."""
    cells = by_metric(
        pairs,
        lambda metric: ", ".join(filter(None, [_name(metric), gap_unit(metric)])),
        lambda metric: f"{metric['verdict']} {gap(metric, with_unit=False)}",
    )
    body = [[name, *(cell or numbers.NOTHING for cell in row)] for name, row in cells.items()]
    return table(["metric", *map(_pair_name, pairs)], body)


def _pair_name(pair: Mapping[str, Any]) -> str:
    return pair_name(line(pair["a"]), line(pair["b"]))


def _flips_counted(pairs: Sequence[Mapping[str, Any]]) -> str:
    rows = [(_pair_name(pair), *(numbers.count(pair["flipped"][way]) for way in ("lost", "gained"))) for pair in pairs]
    return table((f"flipped on {line(pairs[0]['flipped']['name'])}", "lost", "gained"), rows)


def _p(tested: Mapping[str, Any]) -> str:
    shown = numbers.p_value(tested["p"], tested["log10_p"])
    if tested["log10_p"] is not None and tested["log10_p"] < -300:
        return f"{shown} (log10 p = {tested['log10_p']:.3f})"
    return shown


def _flipped(pair: Mapping[str, Any]) -> str:
    flipped = pair["flipped"]
    what = line(flipped["name"])
    if not flipped["samples"]:
        return f"Nothing flipped on {what}."
    lost, gained = numbers.count(flipped["lost"]), numbers.count(flipped["gained"])
    lines = [f"Flipped on {what}: {lost} lost and {gained} gained by {line(pair['b'])}"]
    lines += [_flip(flip) for flip in flipped["samples"][:_FLIPS_SHOWN]]
    rest = len(flipped["samples"]) - _FLIPS_SHOWN
    if rest > 0:
        lines.append(f"  … and {numbers.count(rest)} more (--json has all)")
    return "\n".join(lines)


def _flip(flip: Mapping[str, Any]) -> str:
    name = line(flip["sample"]) + (f" trial {line(flip['trial'])}" if flip["trial"] is not None else "")
    messages = [f"{item['rule']}: {item['message']}" for item in flip["evidence"] or ()]
    why = messages[0] + (f" (+{len(messages) - 1} more)" if len(messages) > 1 else "") if messages else "no failed atom"
    if flip["evidence"] is None:
        why = "evidence not read (--evidence N)"
    return f"  {flip['change']:<6}  {name}  {flip['bucket_a']} → {flip['bucket_b']}  {line(why, 70)}"


def _wrapped(words: str) -> str:
    return fill(words, WIDTH, break_on_hyphens=False, break_long_words=False)
