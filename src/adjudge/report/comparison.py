"""A comparison for the terminal: the sentence, the table behind it, and the samples that flipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from adjudge.report import numbers
from adjudge.report.sentence import amount, gap, place_value, sentence
from adjudge.report.table import WIDTH, table
from adjudge.report.untrusted import line

_FLIPS_SHOWN = 10


def text(comparison: Mapping[str, Any]) -> str:
    """The comparison, made from its JSON."""
    parts = [f"{comparison['status']} · {comparison['protocol']}", fill(sentence(comparison), WIDTH)]
    pairs = comparison["pairs"]
    parts += [_ranking(ranking) for ranking in comparison["rankings"]]
    parts += [_table(pair, named=len(pairs) > 1) for pair in pairs]
    parts += [_flipped(pair) for pair in pairs] if len(pairs) == 1 else [_flips_counted(pairs)]
    parts.append("\n".join(fill(f"Note: {note}", WIDTH) for note in _notes(comparison)))
    return "\n\n".join(part for part in parts if part)


def _notes(comparison: Mapping[str, Any]) -> list[str]:
    notes = [line(note) for note in comparison["notes"]]
    for pair in comparison["pairs"]:
        for metric in pair["metrics"]:
            if metric["left_out"] and len(comparison["pairs"]) == 1:
                notes.append(
                    f"{line(metric['name'])}: {numbers.count(metric['left_out'])} samples are left out because "
                    f"{line(pair['a'])} or {line(pair['b'])} has no value there"
                )
            if not pair["identical"]:
                notes += [f"{line(metric['name'])}: {warning}" for warning in metric["difference"]["warnings"]]
    return list(dict.fromkeys(notes))


def _ranking(ranking: Mapping[str, Any]) -> str:
    rows = [
        (str(place["rank"]), line(place["name"]), place_value(place, ranking), " ".join(place["tie_groups"]))
        for place in ranking["places"]
    ]
    return table(("rank", "system", line(ranking["metric"]), "tie groups"), rows, left=2)


def _table(pair: Mapping[str, Any], *, named: bool) -> str:
    a, b = line(pair["a"]), line(pair["b"])
    rows = []
    for metric in pair["metrics"]:
        percent = metric["kind"] == "binary"
        found = metric["detectable"]["value"]
        rows.append(
            (
                line(metric["name"]) + (f" [{line(metric['slice'])}]" if metric["slice"] else ""),
                metric["verdict"],
                numbers.count(metric["n"]),
                *(numbers.number(metric[side], percent=percent, unit=metric["unit"]) for side in ("a", "b")),
                gap(metric),
                _p(metric),
                numbers.p_value(metric["p_holm"]),
                numbers.p_value(metric["p_bh"]),
                numbers.NOTHING if found is None else amount(found, metric),
            )
        )
    head = (
        f"{b} against {a}" if named else "metric",
        "verdict",
        "n",
        a,
        b,
        "difference",
        "p",
        "Holm",
        "BH",
        "could find",
    )
    return table(head, rows, left=2)


def _flips_counted(pairs: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            f"{line(pair['b'])} against {line(pair['a'])}",
            numbers.count(pair["flipped"]["lost"]),
            numbers.count(pair["flipped"]["gained"]),
        )
        for pair in pairs
    ]
    return table((f"flipped on {line(pairs[0]['flipped']['name'])}", "lost", "gained"), rows)


def _p(metric: Mapping[str, Any]) -> str:
    shown = numbers.p_value(metric["p"], metric["log10_p"])
    if metric["log10_p"] is not None and metric["log10_p"] < -300:
        return f"{shown} (log10 p = {metric['log10_p']:.3f})"
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
    said = [f"{item['rule']}: {item['message']}" for item in flip["evidence"] or ()]
    why = said[0] + (f" (+{len(said) - 1} more)" if len(said) > 1 else "") if said else "no failed atom"
    if flip["evidence"] is None:
        why = "evidence not read (--evidence N)"
    return f"  {flip['change']:<6}  {name}  {flip['bucket_a']} → {flip['bucket_b']}  {line(why, 70)}"
