"""A comparison as Markdown, for a pull request: the sentence and the differences in sight, flipped samples folded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.report import numbers
from adjudge.report.markdown import escape, rows
from adjudge.report.sentence import by_metric, gap, place_value, sentence, unit_of
from adjudge.runs.names import pair_name

_FLIPS = 10
_MARK = {"better": "✅", "worse": "❌", "equivalent": "✅", "inconclusive": "⚠️"}


def markdown(comparison: Mapping[str, Any]) -> str:
    """The comparison, made from its JSON; one that was refused has its reasons and no numbers."""
    if not comparison["pairs"]:
        listed = "\n".join(f"- {escape(reason)}" for reason in comparison["reasons"])
        return (
            f"### adjudge: not comparable\n\n❌ There are no numbers, because these may not be compared:\n\n{listed}\n"
        )
    names = [escape(system["name"]) for system in comparison["systems"]]
    head = f"{names[1]} against {names[0]}" if len(names) == 2 else f"{len(names)} systems"
    status = comparison["status"].replace("_", " ").lower()
    blocks = [
        f"### adjudge: {escape(comparison['protocol'])} · {head}",
        f"**{status}** · {escape(sentence(comparison))}",
    ]
    blocks += [_ranking(item) for item in comparison["rankings"]]
    blocks.append(_differences(comparison))
    blocks.append("\n".join(f"> ⚠️ {escape(note)}  " for note in (*comparison["reasons"], *comparison["notes"])))
    blocks.append(_fold(comparison))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _ranking(ranking: Mapping[str, Any]) -> str:
    body = [
        [str(place["rank"]), escape(place["name"]), place_value(place, ranking), "".join(place["tie_groups"])]
        for place in ranking["places"]
    ]
    return rows(["rank", "system", escape(ranking["title"]), "tie group"], body, left=2)


def _differences(comparison: Mapping[str, Any]) -> str:
    """A row a metric: of one pair with its values and p, of several a column a pair."""
    pairs = comparison["pairs"]
    if len(pairs) == 1:
        return _tests(pairs[0])
    cells = by_metric(pairs, _title, lambda metric: f"{_MARK[metric['verdict']]} {gap(metric)}")
    body = [[title, *(cell or "–" for cell in row)] for title, row in cells.items()]
    return rows(["metric", *map(_pair_name, pairs)], body, left=1)


def _tests(pair: Mapping[str, Any]) -> str:
    body = [
        [
            f"{_MARK[metric['verdict']]} {metric['verdict']}",
            _title(metric),
            *(numbers.number(metric[side], unit=unit_of(metric)) for side in ("a", "b")),
            gap(metric),
            numbers.p_value(metric["p_holm"]),
            numbers.count(metric["n"]),
        ]
        for metric in pair["metrics"]
    ]
    names = [escape(pair[side]) for side in ("a", "b")]
    return rows(["verdict", "metric", *names, "difference", "p, Holm", "n"], body, left=2)


def _title(metric: Mapping[str, Any]) -> str:
    return escape(metric["title"]) + (f" where {escape(metric['slice'])}" if metric["slice"] else "")


def _pair_name(pair: Mapping[str, Any]) -> str:
    return escape(pair_name(pair["a"], pair["b"]))


def _fold(comparison: Mapping[str, Any]) -> str:
    parts = []
    several = len(comparison["pairs"]) > 1
    for pair in comparison["pairs"]:
        if several:
            parts += [f"**{_pair_name(pair)}**", _tests(pair)]
        flipped = pair["flipped"]
        for change in ("lost", "gained"):
            flips = [flip for flip in flipped["samples"] if flip["change"] == change]
            heading = f"**{numbers.count(len(flips))} {change} by {escape(pair['b'])} against {escape(pair['a'])}**"
            parts.append(f"{heading} on {escape(flipped['name'])}")
            if flips:
                parts.append(rows(["sample", "buckets", "why"], [_flip(flip) for flip in flips[:_FLIPS]], left=3))
    digests = [
        f"{escape(system['name'])}: "
        + ", ".join(
            f"{escape(name)} `{value[:16]}`" for name, value in system["digests"].items() if name != "report_data"
        )
        for system in comparison["systems"]
    ]
    parts.append("Digests  \n" + "  \n".join(digests))
    what = f"{'Every test, flipped' if several else 'Flipped'} samples and digests"
    return f"<details><summary>{what}</summary>\n\n" + "\n\n".join(parts) + "\n\n</details>"


def _flip(flip: Mapping[str, Any]) -> list[str]:
    name = escape(flip["sample"]) + (f" trial {escape(flip['trial'])}" if flip["trial"] is not None else "")
    messages = [f"{escape(item['message'])} `{item['rule']}`" for item in flip["evidence"] or ()]
    return [name, f"{flip['bucket_a']} → {flip['bucket_b']}", messages[0] if messages else ""]
