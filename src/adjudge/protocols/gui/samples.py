"""samples.parquet of the gui protocol: what is stored of a step, and how a batch is restored from it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.protocols.common.columns import WORD, coded, codes, floats
from adjudge.protocols.gui.batch import STATUSES, GuiBatch, ReadBatch, places_in
from adjudge.protocols.gui.rows import POINTS, RowReader
from adjudge.readers.gui.model import Milestone
from adjudge.runs.writer import SAMPLES

TEXT_LIMIT = 65_536
_SAID = tuple(f"said_{name}" for name in POINTS)
_milestones = msgspec.json.Decoder(list[Milestone])

SCHEMA = pa.schema(
    [
        ("sample", pa.string()),
        ("model", WORD),
        ("episode", WORD),
        ("step", pa.int64()),
        ("scenario", WORD),
        ("platform", WORD),
        ("status", WORD),
        ("bucket", WORD),
        ("verdict", WORD),
        ("cites", pa.binary()),
        ("type", WORD),
        ("said_type", WORD),
        *((name, pa.float64()) for name in (*POINTS, *_SAID)),
        ("screen_width", pa.float64()),
        ("screen_height", pa.float64()),
        ("boxes", pa.list_(pa.float64())),
        ("element", pa.string()),
        ("said_element", pa.string()),
        ("argument", pa.string()),
        ("said_argument", pa.string()),
        ("distance", pa.float64()),
        ("milestones", pa.string()),
        ("self_report", pa.bool_()),
        ("outcome", pa.bool_()),
    ]
)


def table(read: ReadBatch, decided: Mapping[str, pa.Array], model: str) -> pa.Table:
    """The rows of one batch."""
    batch, n = read.batch, read.batch.n
    row = pa.array(read.row)
    steps = pa.array(read.steps)
    return pa.Table.from_arrays(
        [
            pc.binary_join_element_wise(read.episodes.take(row), steps.cast(pa.string()), "#"),
            coded(np.zeros(n), [model], np.int32),
            pa.DictionaryArray.from_arrays(row, read.episodes),
            steps,
            _spread(read.scenarios, row),
            _spread(read.platforms, row),
            coded(batch.status, STATUSES, np.int32),
            *(decided[name] for name in ("bucket", "verdict", "cites")),
            coded(batch.kind, batch.types, np.int32),
            batch.words.dictionary_encode(),
            *(pa.array(column, from_pandas=True) for column in (*batch.target, *batch.point, *batch.screen)),
            _boxes(batch),
            *(batch.element, batch.said_element, batch.argument, batch.said_argument),
            decided["distance"],
            _milestone_texts(batch),
            read.self_reports,
            read.outcomes.take(row),
        ],
        schema=SCHEMA,
    )


def outputs(read: ReadBatch) -> pa.Table:
    """The raw texts, each cut at a bound (a structured action stands in the samples already), and the screenshots' names."""
    characters = pc.utf8_length(read.texts)
    long = pc.max(characters).as_py() or 0
    texts = read.texts if long <= TEXT_LIMIT else pc.utf8_slice_codeunits(read.texts, 0, TEXT_LIMIT)
    return pa.table(
        {
            "response": texts,
            "characters": characters.cast(pa.int64()),
            "screenshot": read.screenshots.dictionary_encode(),
        }
    )


def restore(samples: pa.Table, types: tuple[str, ...], space: str) -> GuiBatch:
    """The batch as it was, from what is stored."""
    boxes = samples.column("boxes").combine_chunks()
    counts = boxes.value_lengths().fill_null(0).to_numpy(zero_copy_only=False) // 4
    flat = np.asarray(boxes.flatten().to_numpy(zero_copy_only=False), dtype=float)
    milestones = {
        index: _milestones.decode(text)
        for index, text in enumerate(samples.column("milestones").to_pylist())
        if text is not None
    }
    words = _strings(samples, "said_type")
    return GuiBatch(
        types=types,
        space=space,
        status=codes(samples, "status", STATUSES).astype(np.uint8),
        kind=places_in(types, _strings(samples, "type")),
        said=places_in(types, words),
        words=words,
        target=np.stack([floats(samples, name) for name in POINTS]),
        point=np.stack([floats(samples, name) for name in _SAID]),
        screen=np.stack([floats(samples, name) for name in ("screen_width", "screen_height")]),
        boxes=flat.reshape(-1, 4),
        box_row=np.repeat(np.arange(samples.num_rows), counts),
        element=_strings(samples, "element"),
        said_element=_strings(samples, "said_element"),
        argument=_strings(samples, "argument"),
        said_argument=_strings(samples, "said_argument"),
        milestones=milestones,
    )


def reread(samples: pa.Table, outputs: pa.Table, reader: RowReader) -> list[str]:
    """Where stored actions are not those that the texts spell; a text that was cut is left."""
    texts, characters = outputs.column("response"), outputs.column("characters")
    whole = pc.less_equal(characters, TEXT_LIMIT).fill_null(False)
    if pc.any(pc.not_equal(pc.utf8_length(texts), characters).filter(whole)).as_py():
        return ["characters are not those of the texts"]
    stored = samples.filter(whole)
    again = reader.spoken(texts.filter(whole).to_pylist())
    problems = []
    if set(samples.filter(texts.is_valid()).column("status").to_pylist()) & {"missing"}:
        problems.append("a step without a prediction has a text")
    for name, spoken in {"said_type": "type", "said_argument": "argument", "said_element": "element"}.items():
        if stored.column(name).cast(pa.string()).to_pylist() != again.column(spoken).to_pylist():
            problems.append(f"{name} in {SAMPLES} is not what the texts say")
    points = (floats(stored, f"said_{name}") for name in POINTS)
    if not all(
        np.array_equal(point, again.column(name).to_numpy(), equal_nan=True)
        for name, point in zip(POINTS, points, strict=True)
    ):
        problems.append(f"said_x, said_y, said_end_x or said_end_y in {SAMPLES} is not what the texts say")
    return problems


def words(samples: pa.Table, name: str) -> tuple[list[str | None], NDArray[np.int64]]:
    """The words of a dictionary column, None last, and the place of each row's word."""
    column = samples.column(name).combine_chunks()
    listed = column.dictionary.to_pylist()
    return [*listed, None], column.indices.fill_null(len(listed)).to_numpy().astype(np.int64)


def _boxes(batch: GuiBatch) -> pa.ListArray:
    """The boxes of each step, end to end; null where it has none."""
    counts = np.bincount(batch.box_row, minlength=batch.n)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32) * 4
    mask = pa.array(counts == 0)
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(np.ascontiguousarray(batch.boxes).ravel()), mask=mask
    )


def _spread(values: pa.StringArray, row: pa.Array) -> pa.DictionaryArray:
    """One word an episode, spread over its steps."""
    by_episode = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(by_episode.indices.take(row), by_episode.dictionary)


def _milestone_texts(batch: GuiBatch) -> pa.StringArray:
    texts: list[str | None] = [None] * batch.n
    for index, wanted in batch.milestones.items():
        texts[index] = msgspec.json.encode(wanted).decode()
    return pa.array(texts, pa.string()) if batch.milestones else pa.nulls(batch.n, pa.string())


def _strings(samples: pa.Table, name: str) -> pa.StringArray:
    return samples.column(name).combine_chunks().cast(pa.string())
