"""Parts of an evaluation alone: extractor, rules over a batch, Parquet writer.

`python -m benchmarks parts extractor|rules|writer`. Each is timed in one process after a call that warms up, in CPU
seconds, by turns with a baseline that does the same to the same data, or to a slice of it: `json.loads` of the
objects that the texts hold, one msgspec Struct per atom, and a line of JSON per atom. Without a name, all of them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

import adjudge
from adjudge.evidence.atoms import atoms
from adjudge.protocols.flight.fields import FIELDS, TASKS
from adjudge.protocols.flight.plan import FlightPlan
from adjudge.protocols.flight.samples import restore
from adjudge.protocols.flight.values import answer_decoder
from adjudge.readers.extract import Extraction, Extractor
from adjudge.runs.writer import PartWriter
from benchmarks import flight_data, flight_objects
from benchmarks._rows import Results, Row, by_turns, markdown

SAMPLES = 16_384
LEAST = {"extractor": 1.0, "rules": 15.0, "writer": 15.0}
SLICE = 1000


def extractor(samples: int = SAMPLES, repeat: int = 5) -> Row:
    """The texts of flight answers through the extractor, against json.loads of the objects in them."""
    texts = _texts(samples)
    extract = Extractor(FIELDS, decoder=answer_decoder(TASKS["S1"])).extract
    turns = by_turns(lambda: list(map(extract, texts)), lambda: [_parsed(text) for text in texts], repeat)
    found, parsed = turns.found
    equal = all(_value(one) == other for one, other in zip(found, parsed, strict=True))
    against = "json.loads of the same objects"
    return _row("extractor", "extractor", samples, "texts", turns.seconds, against, turns.ratio, equal)


def _texts(samples: int) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="adjudge-parts-") as folder:
        outputs, _ = flight_data.write("S1", samples, Path(folder))
        with outputs.open("rb") as lines:
            return [msgspec.json.decode(line)["response"] for line in lines]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text[text.find("{") : text.rfind("}") + 1])
    except ValueError:
        return None


def _value(found: Extraction) -> Any:
    return msgspec.to_builtins(found.value) if found.typed else found.value


def rules(samples: int = SAMPLES, repeat: int = 5) -> Row:
    """All rules of S1 over one batch, against one Struct per atom."""
    with tempfile.TemporaryDirectory(prefix="adjudge-parts-") as folder:
        plan, run = _judged(Path(folder), samples)
        _, table, stored = next(run.batches())
        batch, *_ = restore(table, stored, TASKS["S1"])
    few = min(SLICE, batch.n)
    # A loop gets its samples as objects; making them is not timed.
    states = [[float(batch.answer[0, k, i]) for k in range(len(FIELDS))] for i in range(few)]
    shown = [[float(batch.shown[k, i]) for k in range(len(FIELDS))] for i in range(few)]
    answers = [
        dict(zip(FIELDS, state, strict=True)) if batch.status[i] == 0 else None for i, state in enumerate(states)
    ]
    judge = flight_objects.evidence
    turns = by_turns(
        lambda: plan.graph.evaluate(dataclasses.replace(batch)),
        lambda: [judge(str(i), answers[i], states[i], shown[i]) for i in range(few)],
        repeat,
    )
    evidence, records = turns.found
    equal = all(_same(list(atoms(evidence, i, "", str(i))), records[i]) for i in range(few))
    ratio = turns.ratio * batch.n / few
    size = batch.n * plan.graph.layout.width
    return _row("rules", "rule evaluation", size, "atoms", turns.seconds, "a Struct per atom, on a slice", ratio, equal)


def _same(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    def found(some: Sequence[Any]) -> list[tuple[str, str, str, str]]:
        return sorted((atom.rule, atom.field or "", atom.outcome, atom.severity) for atom in some)

    return found(ours) == found(theirs)


def writer(samples: int = SAMPLES, repeat: int = 5) -> Row:
    """The evidence of one batch into Parquet, against a line of JSON for each atom."""
    with tempfile.TemporaryDirectory(prefix="adjudge-parts-") as name:
        folder = Path(name)
        _, run = _judged(folder, samples)
        _, first, evidence = next(run.batches())
        judged = first.drop_columns(["part", "row"])
        outputs = pq.ParquetFile(run.path / "outputs" / "part-00000.parquet").read_row_group(0).drop_columns(["row"])
        for part in ("evidence", "outputs"):
            (folder / part).mkdir()
        few = evidence.to_arrow(0).filter(_first(evidence.n)).to_pylist()

        def columns() -> None:
            part = PartWriter(folder, 0)
            part.add(judged, evidence, outputs)
            part.close()

        def lines() -> None:
            with (folder / "atoms.jsonl").open("w", encoding="utf-8") as stream:
                stream.writelines(json.dumps(atom) + "\n" for atom in few)

        turns = by_turns(columns, lines, repeat)
        stored = pq.read_table(folder / "evidence" / "part-00000.parquet").filter(_first(evidence.n)).to_pylist()
        with (folder / "atoms.jsonl").open(encoding="utf-8") as stream:
            equal = stored == [json.loads(line) for line in stream]
    size = evidence.n * evidence.layout.width
    ratio = turns.ratio * size / len(few)
    return _row(
        "writer", "Parquet writer", size, "atoms", turns.seconds, "a JSON line per atom, on a slice", ratio, equal
    )


def _first(n: int) -> Any:
    import pyarrow.compute as pc

    return pc.field("sample") < min(SLICE, n)


def _judged(folder: Path, samples: int) -> tuple[FlightPlan, adjudge.Run]:
    outputs, reference = flight_data.write("S1", samples, folder / "data")
    config = {"task": "S1", "outputs": [str(outputs)], "reference": [str(reference)]}
    run = adjudge.evaluate("flight", config, out=folder / "run", report=False)
    return FlightPlan(config), run


def _row(key: str, name: str, size: int, unit: str, seconds: float, against: str, ratio: float, equal: bool) -> Row:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)
    least = LEAST[key]
    return Row(name, size, unit, seconds, peak, against, ratio, equal, f"≥ {least:g}×", ratio >= least)


PARTS: dict[str, Callable[[int, int], Row]] = {
    "extractor": extractor,
    "rules": rules,
    "writer": writer,
}


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks parts", description=__doc__)
    parser.add_argument("part", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--samples", type=int, default=SAMPLES, help="at most one batch, 16,384")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    given = parser.parse_args(argv)
    if unknown := set(given.part) - set(PARTS):
        parser.error(f"{', '.join(sorted(unknown))} is not one of {', '.join(PARTS)}")
    results = Results(tuple(PARTS[name](given.samples, given.repeat) for name in given.part or PARTS))
    print(markdown(results.rows))
    if given.json is not None:
        given.json.write_text(json.dumps(results.document(), indent=2) + "\n", encoding="utf-8")
    return 0 if results.good else 1
