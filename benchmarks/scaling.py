"""Time and memory as the input grows: flight S1 and consistency at 10,000 records, ten times as many, and so on.

`python -m benchmarks scaling --most 1000000`. Each size is a process of its own, read to written, start-up included; the
least CPU of `--repeat` counts. From a million on, time must be linear (ten times the CPU of the tenth) and memory nearly
flat (at most half more than the tenth). `chart` draws the rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks._process import cost
from benchmarks._rows import Bound, Results, Row, markdown
from benchmarks.consistency import write_pairs
from benchmarks.flight import PROGRAM
from benchmarks.flight import command as flight_command

LEAST, MOST = 10_000, 1_000_000
LINEAR, FLAT = 0.85, 1.5
NAME = "scaling, "
_FONT = "Arial, Helvetica, Liberation Sans, sans-serif"


def flight(folder: Path, records: int) -> list[str]:
    """Write the files; the command that judges them."""
    step = [sys.executable, "-m", "benchmarks.flight"]
    subprocess.run([*step, "data", "S1", str(records), str(folder)], check=True)
    return flight_command("S1", folder / "outputs-S1.jsonl", folder / "reference-S1.jsonl", folder / "run")


def consistency(folder: Path, records: int) -> list[str]:
    """Write the file; the command that judges it."""
    write_pairs(folder / "pairs.jsonl", records, 0)
    files = ["--pairs", str(folder / "pairs.jsonl"), "--out", str(folder / "run")]
    return [sys.executable, "-c", PROGRAM, "consistency", *files, "--no-report", "--force", "--quiet"]


WHAT: dict[str, tuple[str, Callable[[Path, int], list[str]]]] = {
    "flight S1": ("samples", flight),
    "consistency": ("pairs", consistency),
}


def curve(name: str, most: int, repeat: int) -> Results:
    """A row for each size, and what memory grew by between the last two."""
    unit, prepare = WHAT[name]
    rows: list[Row] = []
    size = LEAST
    while size <= most:
        with tempfile.TemporaryDirectory(prefix="adjudge-scaling-") as folder:
            command = prepare(Path(folder), size)
            best = min((cost(command, codes=(0, 1)) for _ in range(repeat)), key=lambda one: one.cpu)
        if not rows:
            rows.append(Row(NAME + name, size, unit, best.cpu, best.peak_mb))
        else:
            against, ratio = f"{size // 10:,} {unit}, times 10", 10 * rows[-1].cpu_seconds / best.cpu
            held = size >= MOST  # below, start-up hides what a record costs
            target, met = (f"≥ {LINEAR:g}× (linear)", ratio >= LINEAR) if held else (None, None)
            rows.append(
                Row(NAME + name, size, unit, best.cpu, best.peak_mb, against, ratio, target=target, met=met),
            )
        size *= 10
    if most < MOST:  # the first sizes wait in memory as a whole
        return Results(tuple(rows))
    grown = (rows[-1].peak_mb or 0.0) / (rows[-2].peak_mb or 1.0)
    what = f"{NAME}{name}, memory of {rows[-1].size:,} {unit} over that of a tenth"
    return Results(tuple(rows), (Bound(what, grown, f"at most {FLAT:g}", grown <= FLAT),))


def table(rows: Sequence[Row]) -> str:
    """The rows of the curves as a Markdown table with the cost of one record."""
    lines = ["| what | records | CPU s | µs a record | peak MB |", "|---|---:|---:|---:|---:|"]
    for row in rows:
        each = row.cpu_seconds / row.size * 1e6
        cells = (f"{row.size:,}", f"{row.cpu_seconds:.3g}", f"{each:.1f}", f"{row.peak_mb:,.0f}")
        lines.append(f"| {row.name.removeprefix(NAME)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def of(rows: Sequence[Row]) -> list[Row]:
    """The rows of the curves among others."""
    return [row for row in rows if row.name.startswith(NAME)]


def chart(rows: Sequence[Row]) -> str:
    """SVG: CPU seconds over records, both logarithmic, with a line of slope 1 for each; memory beneath."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(specification(rows), allowed_base_urls=[]))


def specification(rows: Sequence[Row]) -> dict[str, Any]:
    """The chart in Vega-Lite. The dashed line goes through the largest size: what time would be without any start-up."""
    points: list[dict[str, Any]] = [
        {"what": row.name.removeprefix(NAME), "n": row.size, "cpu": row.cpu_seconds, "mb": row.peak_mb} for row in rows
    ]
    ideal = []
    for what in dict.fromkeys(point["what"] for point in points):
        own = [point for point in points if point["what"] == what]
        end = max(own, key=lambda point: point["n"])
        ideal += [{"what": what, "n": point["n"], "cpu": end["cpu"] * point["n"] / end["n"]} for point in own]
    sizes = sorted({point["n"] for point in points})
    across = {"field": "n", "type": "quantitative", "scale": {"type": "log"}, "axis": {"values": sizes, "format": ",d"}}
    names = list(dict.fromkeys(point["what"] for point in points))
    colour = {
        "field": "what",
        "type": "nominal",
        "title": None,
        "scale": {"domain": names, "range": ["#0072B2", "#D55E00"]},
        "legend": {"orient": "top", "symbolType": "stroke"},
    }

    def up(field: str, title: str, **scale: Any) -> dict[str, Any]:
        return {"field": field, "type": "quantitative", "title": title, "scale": scale}

    seconds = up("cpu", "CPU seconds", type="log") | {"axis": {"values": [0.1, 1, 10, 100, 1000], "format": "~g"}}
    lines = {
        "data": {"values": points},
        "mark": {"type": "line", "point": {"size": 50}},
        "encoding": {"x": {**across, "title": None}, "y": seconds, "color": colour},
    }
    slope = {
        "data": {"values": ideal},
        "mark": {"type": "line", "strokeDash": [4, 4], "opacity": 0.6},
        "encoding": {"x": {**across, "title": None}, "y": seconds, "color": colour},
    }
    memory = {
        "data": {"values": points},
        "width": 420,
        "height": 120,
        "mark": {"type": "line", "point": {"size": 50}},
        "encoding": {"x": {**across, "title": "records"}, "y": up("mb", "peak MB", zero=True), "color": colour},
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "config": {"font": _FONT},
        "title": {"text": "Read to written, one process", "subtitle": "dashed: slope 1 through the largest size"},
        "vconcat": [{"width": 420, "height": 240, "layer": [slope, lines]}, memory],
    }


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scaling", description=__doc__)
    parser.add_argument("what", nargs="*", metavar="WHAT", help=", ".join(WHAT))
    parser.add_argument("--most", type=int, default=MOST, help="the largest number of records (1,000,000)")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the curves")
    given = parser.parse_args(argv)
    if unknown := set(given.what) - set(WHAT):
        parser.error(f"{', '.join(sorted(unknown))} is not one of {', '.join(WHAT)}")
    results = sum((curve(name, given.most, given.repeat) for name in given.what or WHAT), Results())
    print(markdown(results.rows), "", table(results.rows), "", *results.bounds, sep="\n")
    if given.json is not None:
        given.json.write_text(json.dumps(results.document(), indent=2) + "\n", encoding="utf-8")
    if given.svg is not None:
        given.svg.write_text(chart(results.rows), encoding="utf-8")
    return 0 if results.good else 1
