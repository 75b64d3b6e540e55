"""The samples of a run for the explorer on its page: columns, packed with gzip, unpacked by the browser itself.

Messages of atoms are not stored: the page renders them from the rule table, as `explain` does.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.evidence.atoms import NOT_ASKED
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import FAIL, NOT_APPLICABLE
from adjudge.report.chosen import Chosen, chosen
from adjudge.report.columns import listed, plain
from adjudge.report.opened import agent_columns, agent_of, panel_columns, panels_of
from adjudge.runs.panel import Panel
from adjudge.runs.pick import Picked, hold, picked
from adjudge.runs.run import Run

SAMPLES = 20_000
PAGE_BYTES = 20_000_000
_PACKED_BYTES = 16_000_000  # what fits into a page of PAGE_BYTES as base64, beside everything else
_FEWEST, _TRIED = 500, 1000
_LEVEL = 4  # a third of the time of level 6, and a tenth more bytes
_SLICES, _WORD = 40, 40
_NO_SLICES = frozenset(
    {"sample", "model", "bucket", "verdict", "response", "explanation", "error", "repairs", "method", "input_hash"}
)
_OUTCOMES = np.frombuffer(b"pfne", dtype=np.uint8)
_UNSHOWN = frozenset({"part", "row", "cites", "file", "line"})
_NUMBERS = ("n", "total", "worst", "drawn", "seed", "flipped", "flipped_shown")
_RULE_KEYS = ("code", "family", "title", "passed", "failed", "variants", "cases", "slots")


class Explorer(NamedTuple):
    """The samples that a page shows: how many and which, the digest of their data, and the data as it stands in the page."""

    summary: dict[str, Any]
    packed: bytes
    pictures: list[str]
    """Names of the pictures that panels show, in the order of the samples."""


def explorer(run: Run, also: Sequence[tuple[int, int]] = (), room: int | None = None) -> Explorer:
    """All samples up to a number and to the `room` in bytes; otherwise the worst, and others drawn at random.

    The rows `also`, by partition and number, are among them, and stay with the run, so that nobody reads them again.
    """
    room = _PACKED_BYTES if room is None else room
    return fitted(lambda most: block(run, chosen(run, most, also), also), min(SAMPLES, _fitting(run, room)), room)


def fitted(make: Callable[[int], dict[str, Any]], most: int, room: int | None = None) -> Explorer:
    """What `make` gives of at most so many samples; of fewer, until it fits into the room."""
    room = _PACKED_BYTES if room is None else room
    while True:
        page = make(most)
        data = msgspec.json.encode(page)
        compressed = packed(data)
        if len(compressed) <= room or most <= _FEWEST:
            numbers = {name: page[name] for name in _NUMBERS if name in page}
            pictures = [name for samples in page.get("runs", [page]) for name in _pictures(samples)]
            return Explorer({**numbers, "sha256": hashlib.sha256(data).hexdigest()}, compressed, pictures)
        most = max(_FEWEST, int(page["n"] * 0.95 * room / len(compressed)))


def _pictures(samples: Mapping[str, Any]) -> list[str]:
    columns: list[str] = []
    for panel in samples["panels"]:
        columns += panel["columns"].values() if panel["kind"] == "picture" else [panel["options"].get("behind")]
    words = [samples["columns"][column].get("words", ()) for column in columns if column in samples["columns"]]
    return [name for names in words for name in names]


def _fitting(run: Run, room: int) -> int:
    """About how many samples fit into the room: what the second half of the first ones adds tells the size of one."""
    if run.samples_count <= _TRIED:
        return SAMPLES
    part = next(part for part, _ in run.parts())
    (few, small), (more, large) = (
        (tried["n"], len(packed(msgspec.json.encode(tried))))
        for tried in (block(run, Chosen({part: np.arange(count)}, 0, 0, 0)) for count in (_TRIED // 2, _TRIED))
    )
    if more == few or large == small:  # the first partition is small
        return int(0.9 * room * more / large)
    each = (large - small) / (more - few)
    return int(0.96 * (room - (large - each * more)) / each)


def packed(data: bytes) -> bytes:
    """Data as it stands in the page."""
    return base64.b64encode(gzip.compress(data, _LEVEL, mtime=0))


def unpacked_digest(data: bytes) -> str:
    """SHA-256 of what a page has packed; an empty text where it cannot be unpacked."""
    try:
        return hashlib.sha256(gzip.decompress(base64.b64decode(data, validate=True))).hexdigest()
    except (ValueError, OSError, EOFError, zlib.error):
        return ""


def block(run: Run, choice: Chosen, also: Sequence[tuple[int, int]] = ()) -> dict[str, Any]:
    """The chosen samples as plain data; those named in `also` stay with the run."""
    batches = list(picked(run, choice.rows))
    hold(run, also, batches)
    table = _table(batches)
    n, panels = table.num_rows, panels_of(run)
    columns = {name: plain(table.column(name)) for name in table.column_names if name not in _UNSHOWN}
    columns |= _computed(run, panels, batches)
    return {
        "n": n,
        "total": run.samples_count,
        **_parts(choice),
        "columns": columns,
        "slices": _slices(run, columns, n),
        **_atoms([batch.evidence for batch in batches], run.layout.width),
        "not_asked": NOT_ASKED,
        "codes": list(run.layout.codes),
        "rules": [{key: rule[key] for key in _RULE_KEYS if key in rule} for rule in run.layout.rules],
        "panels": [panel.to_dict() for panel in panels],
        "agent": agent_of(run),
        "gravest": list(run.metrics.get("gravest") or ()),
    }


def _parts(choice: Chosen) -> dict[str, int]:
    """How many samples are shown for being bad and how many by chance; nothing where all are shown."""
    return {} if choice.rows is None else {"worst": choice.worst, "drawn": choice.drawn, "seed": choice.seed}


def _table(batches: Sequence[Picked]) -> pa.Table:
    """Samples and outputs side by side; null where a batch has no outputs."""
    samples = pa.concat_tables([batch.samples for batch in batches])
    texts = [
        pa.table({"row": pa.nulls(batch.samples.num_rows, pa.uint32())}) if batch.outputs is None else batch.outputs
        for batch in batches
    ]
    outputs = pa.concat_tables(texts, promote_options="default")
    for name in outputs.column_names:
        if name not in samples.column_names:
            samples = samples.append_column(name, outputs.column(name))
        elif name not in _UNSHOWN:  # a text that stands in both is whole in the outputs
            both = [column.cast(pa.string()) for column in (outputs.column(name), samples.column(name))]
            samples = samples.set_column(samples.column_names.index(name), name, pc.coalesce(*both))
    return samples


def _computed(run: Run, panels: Sequence[Panel], batches: Sequence[Picked]) -> dict[str, Any]:
    """Columns for the page alone: what panels compute, and how verdicts came about; null where a batch has none."""
    columns: dict[str, list[Any]] = {}
    part, agents, n = -1, None, 0
    for batch in batches:
        if batch.part != part:
            part, agents = batch.part, run.side_table("agent", batch.part)
        of_batch = panel_columns(run, panels, batch.samples, batch.outputs) | agent_columns(batch.samples, agents)
        for name, values in of_batch.items():
            columns.setdefault(name, [None] * n).extend(values)
        n += batch.samples.num_rows
        for column in columns.values():
            column.extend([None] * (n - len(column)))
    return {name: listed(values) for name, values in columns.items()}


def _atoms(batches: Sequence[Evidence], width: int) -> dict[str, Any]:
    """Outcomes as a text a position, failed and unchecked atoms as columns, their reasons once."""
    reasons: dict[str, int] = {}
    why = _joined([_numbered(batch, reasons) for batch in batches], width)
    outcome, severity, observed, code = (
        _joined([getattr(batch, name) for batch in batches], width)
        for name in ("outcome", "severity", "observed", "code")
    )
    failed, unchecked = [], []
    for position in range(width):
        wrong = np.flatnonzero(outcome[position] == FAIL)
        absent = np.flatnonzero(outcome[position] >= NOT_APPLICABLE)
        failed.append(
            {
                "s": wrong.tolist(),
                "c": code[position, wrong].tolist(),
                "e": severity[position, wrong].tolist(),
                "o": observed[position, wrong].tolist(),  # NaN is written as null
                "w": why[position, wrong].tolist(),
            }
        )
        unchecked.append({"s": absent.tolist(), "w": why[position, absent].tolist()})
    outcomes = [_OUTCOMES[row].tobytes().decode() for row in outcome]
    return {"outcomes": outcomes, "failed": failed, "unchecked": unchecked, "reasons": list(reasons)}


def _numbered(batch: Evidence, reasons: dict[str, int]) -> NDArray[np.int64]:
    """The number of every atom's reason among those of all batches, −1 for none."""
    if batch.reasons.codes is None:
        return np.full(batch.outcome.shape, -1)
    numbers = [reasons.setdefault(text, len(reasons)) for text in batch.reasons.texts]
    translated: NDArray[np.int64] = np.array([*numbers, -1], dtype=np.int64)[batch.reasons.codes]
    return translated


def _joined(arrays: Sequence[NDArray[Any]], width: int) -> NDArray[Any]:
    return np.concatenate(arrays, axis=1) if arrays else np.empty((width, 0), dtype=np.int8)


def _slices(run: Run, columns: Mapping[str, Mapping[str, Any]], n: int) -> list[str]:
    """Columns of few words to filter by, those first that the run's estimates are sliced by."""
    measured = {part.partition("=")[0] for _, where in run.estimates for part in where.split(", ") if "=" in part}
    names = [
        name
        for name, column in columns.items()
        if name not in _NO_SLICES and not name.startswith(("@", "rule.", "answer.", "gold."))
        if 2 <= len(column.get("words", ())) <= min(_SLICES, n // 2)
        if max(map(len, column["words"])) <= _WORD
    ]
    return sorted(names, key=lambda name: name.rpartition(":")[2].rpartition(".")[2] not in measured)
