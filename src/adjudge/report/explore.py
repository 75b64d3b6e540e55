"""The samples of a run for the explorer on its page: columns, packed with gzip, unpacked by the browser itself.

Words stand as codes, numbers to nine digits, long texts and lists are cut; messages of atoms are rendered by the page from the
rule table, as `explain` does. Where there are too many samples, the worst and a part drawn at random are shown: drawn by a hash
of a seed and their id, so that the same run shows the same ones on every machine, whatever the order of its rows. All models
of a sample are shown together, unless there are too many of them.
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
from adjudge.report.samples import BADNESS, agent_columns, agent_of, panel_columns, panels_of
from adjudge.report.view import system_column
from adjudge.runs.query import Picked, as_table, hold, picked
from adjudge.runs.run import Run
from adjudge.runs.section import Panel

CHARACTERS = 4000
_ITEMS, _DIGITS = 64, 9
_LARGEST = 22  # the highest power of ten that a double holds exactly


def plain(column: pa.ChunkedArray) -> dict[str, Any]:
    """A column as `words` and `codes` (−1 for null), or as `values`."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind) or pa.types.is_string(kind):
        return _words(column)
    if pa.types.is_floating(kind):
        return {"values": rounded(_floats(column)).tolist()}  # NaN is written as null
    if pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type) and kind.list_size <= _ITEMS:
        return {"values": _rows(column.combine_chunks(), kind.list_size)}
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return {"values": [None] * len(column)}
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return {"values": column.to_pylist()}
    return {"values": [_short(value) for value in column.to_pylist()]}


def listed(values: Sequence[Any]) -> dict[str, Any]:
    """Plain values as a column: words as codes where there is nothing else."""
    if any(not isinstance(value, str | None) for value in values):
        return {"values": list(values)}
    words: dict[str, int] = {}
    codes = [-1 if value is None else words.setdefault(value, len(words)) for value in values]
    return {"words": list(words), "codes": codes}


def rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers to nine significant digits, so that they are short as text; what is not finite is NaN."""
    out = np.where(np.isfinite(values), values, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.floor(np.log10(np.abs(out)))
    for exponent in np.unique(exponents[np.isfinite(exponents)]):
        decimals = int(_DIGITS - 1 - exponent)
        if abs(decimals) <= _LARGEST:
            here = exponents == exponent
            out[here] = np.round(out[here], decimals)
    return out


def _words(column: pa.ChunkedArray) -> dict[str, Any]:
    """Each word once, in the order in which they come; long ones cut."""
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    words = encoded.dictionary
    cut = pc.binary_join_element_wise(pc.utf8_slice_codeunits(words, 0, CHARACTERS), " …", "")
    words = pc.if_else(pc.greater(pc.utf8_length(words), CHARACTERS), cut, words)
    return {"words": words.to_pylist(), "codes": encoded.indices.fill_null(-1).to_pylist()}


def _floats(column: pa.ChunkedArray | pa.Array) -> NDArray[np.float64]:
    values: NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


def _rows(lists: pa.Array, width: int) -> list[list[float] | None]:
    """Lists of one length; null stays null."""
    rows = rounded(_floats(lists.fill_null([None] * width).flatten())).reshape(-1, width).tolist()
    return [row if valid else None for row, valid in zip(rows, lists.is_valid().to_pylist(), strict=True)]


def _short(value: Any) -> Any:
    """A value as the page shows it: long texts cut, long lists not at all."""
    if isinstance(value, str):
        return value if len(value) <= CHARACTERS else value[:CHARACTERS] + " …"
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None
    if isinstance(value, list):
        return [_short(item) for item in value] if len(value) <= _ITEMS else f"{len(value)} values"
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    return value if isinstance(value, int | bool | None) else str(value)


_TOGETHER = 20  # with more models than this, one sample of all of them would fill the page


class Chosen(NamedTuple):
    """The rows to show: by partition, and how many are there for being bad, how many by chance."""

    rows: dict[int, NDArray[np.int64]] | None
    """Row numbers by partition, ascending; None where all are shown."""
    worst: int
    drawn: int
    seed: int


def chosen(run: Run, most: int, also: Sequence[tuple[int, int]] = ()) -> Chosen:
    """All rows where they are at most `most`; otherwise half of that from the worst samples, half from random others.

    `also` are rows, by partition and number, that belong to the worst whatever their rank.
    """
    seed = int(run.manifest.seeds.get("seed", 0))
    if run.samples_count <= most:
        return Chosen(None, 0, 0, seed)
    part, row, rank, draw = _ranked(run, seed)
    asked = np.isin(place_of(part, row), [place_of(*place) for place in also])
    rank = np.where(asked, rank + rank.max() + 1.0, rank)
    order = np.argsort(draw, kind="stable")
    part, row, rank, draw = part[order], row[order], rank[order], draw[order]
    group = np.concatenate([[0], np.cumsum(draw[1:] != draw[:-1])])  # the rows of one sample, in the order of the draw
    badness = np.maximum.reduceat(rank, np.flatnonzero(np.diff(group, prepend=-1)))
    worst = np.argsort(-badness[group], kind="stable")[: most // 2]
    others = np.ones(rank.size, dtype=bool)
    others[worst] = False
    drawn = np.flatnonzero(others)[: most - worst.size]
    shown = np.concatenate([worst, drawn])
    parts = {int(number): np.sort(row[shown][part[shown] == number]) for number in np.unique(part[shown])}
    return Chosen(parts, int(worst.size), int(drawn.size), seed)


def place_of(part: Any, row: Any) -> Any:
    """Partition and number of a row as one number."""
    return part * (1 << 32) + row


def mixed(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Numbers spread at random over 64 bits, in another way for every seed: the finaliser of SplitMix64 (Steele 2014)."""
    mix = numbers + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mix = (mix ^ (mix >> np.uint64(shift))) * np.uint64(factor)
    return mix ^ (mix >> np.uint64(31))


def _ranked(
    run: Run, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.uint64]]:
    """Place, badness and random number of every row; rows of one sample share the number, where they go together."""
    together = len(run.metrics.get("buckets") or ()) <= _TOGETHER
    key = "s.sample" if together else "s.sample || '/' || s.model"
    table = as_table(
        run,
        "with failed as (select part, sample as row, sum(if(severity = 'CRITICAL', 1000, 1)) as weight "  # noqa: S608 -- words of our own
        "from atoms where outcome = 'fail' group by part, sample) "
        "select s.part::bigint as part, s.row::bigint as row, "
        f"(coalesce(weight, 0) + {BADNESS} * 1e9)::double as rank, "
        f"{key} as key from samples s left join failed using (part, row)",
        threads=1,
    )
    part, row, rank = (np.array(table.column(name)) for name in ("part", "row", "rank"))
    hashes = map(zlib.crc32, table.column("key").cast(pa.binary()).to_pylist())
    draw = mixed(np.fromiter(hashes, np.uint64, table.num_rows), seed)
    order = np.lexsort((row, part))  # what SQL gives has no order of its own
    return part[order], row[order], rank[order], draw[order]


SAMPLES = 20_000
PAGE_BYTES = 20_000_000
PACKED_BYTES = 16_000_000  # what fits into a page of PAGE_BYTES as base64, beside everything else
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


def explorer(run: Run, also: Sequence[tuple[int, int]] = (), room: int = PACKED_BYTES) -> Explorer:
    """All samples up to a number and to the `room` in bytes; otherwise the worst, and others drawn at random.

    The rows `also`, by partition and number, are among them, and stay with the run, so that nobody reads them again.
    """
    return fitted(lambda most: block(run, chosen(run, most, also), also), min(SAMPLES, _fitting(run, room)), room)


def fitted(make: Callable[[int], dict[str, Any]], most: int, room: int) -> Explorer:
    """What `make` gives of at most so many samples; of fewer, until it fits into the room."""
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
        "system": system_column(run),
        **({} if choice.rows is None else {"worst": choice.worst, "drawn": choice.drawn, "seed": choice.seed}),
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
    n = 0
    for batch in batches:
        agents = run.side_table("agent", batch.part)
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
    shown = {"c": code, "e": severity, "o": observed, "w": why}  # NaN of what was observed is written as null
    for position in range(width):
        wrong = np.flatnonzero(outcome[position] == FAIL)
        absent = np.flatnonzero(outcome[position] >= NOT_APPLICABLE)
        failed.append({"s": wrong.tolist(), **{key: value[position, wrong].tolist() for key, value in shown.items()}})
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
    """Columns of few words to filter by, those first that the run's estimates are sliced by; others have words, not letters."""
    measured = {part.partition("=")[0] for _, where in run.estimates for part in where.split(", ") if "=" in part}

    def is_measured(name: str) -> bool:
        return name.rpartition(":")[2].rpartition(".")[2] in measured

    names = [
        name
        for name, column in columns.items()
        if name not in _NO_SLICES and not name.startswith(("@", "rule.", "answer.", "gold."))
        if 2 <= len(column.get("words", ())) <= min(_SLICES, n // 2)
        if (not is_measured(name)) < max(map(len, column["words"])) <= _WORD
    ]
    return sorted(names, key=is_measured, reverse=True)
