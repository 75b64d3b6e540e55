"""samples.parquet of the check protocol: what is stored of a sample, and how a batch is restored from it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.protocols.check.batch import CheckBatch
from adjudge.protocols.check.compiled import WHOLE, Compiled
from adjudge.protocols.check.names import Name
from adjudge.protocols.check.rows import NAMES, STATUSES, TEXT_LIMIT, UNPARSED, OutputReader
from adjudge.protocols.check.sandbox import Sandbox
from adjudge.protocols.common.columns import coded, codes
from adjudge.readers.extract import METHODS

WHOLE_ANSWER = "answer_json"
"""The column of samples.parquet that holds the answer itself, where a schema reads it."""


def table(batch: CheckBatch, outputs: pa.Table, decided: Mapping[str, pa.Array], *, gold: bool) -> pa.Table:
    """The rows of one batch."""
    columns = {
        "sample": batch.columns["id"],
        "model": batch.columns["model"].dictionary_encode(),
        "status": coded(batch.status.astype(np.int8), STATUSES),
        **decided,
        "method": coded(np.asarray(outputs.column("method")).view(np.int8), METHODS),
        "start": outputs.column("start"),
        "end": outputs.column("end"),
        "repairs": outputs.column("repairs").cast(pa.string()).combine_chunks().dictionary_encode(),
        "has_gold": outputs.column("has_gold"),
        "mistyped": outputs.column("mistyped").cast(NAMES),
    }
    for name in stored(batch.compiled, gold=gold):
        columns[name.stored] = batch.columns[name.column]
    if batch.compiled.file.schema:
        columns[WHOLE_ANSWER] = batch.columns[WHOLE]
    return pa.table(columns)


def raw_outputs(outputs: pa.Table, files: tuple[str, ...]) -> pa.Table:
    """The raw responses, each cut at a bound, and the file and line that each stands on."""
    raw = outputs.select(["response", "characters", "file", "line"])
    file = raw.column("file").combine_chunks().cast(pa.int32())
    return raw.set_column(2, "file", pa.DictionaryArray.from_arrays(file, pa.array(files, pa.string())))


def stored(compiled: Compiled, *, gold: bool) -> list[Name]:
    """The names whose values are stored: all fields, all gold values where there is a reference, what else is read."""
    blocks = {*compiled.file.blocks, *(["gold"] if gold else [])}
    return [
        name
        for (block, *key), name in compiled.names.known.items()
        if (not key and block in compiled.file.fields)
        or (key and (block in blocks or (block == "previous" and name in compiled.read)))
    ]


def stored_columns(samples: pa.Table, compiled: Compiled) -> dict[str, pa.ChunkedArray]:
    """What a run stores for every name of a rule file, the run's own or another; nulls where it stores none of that type."""
    columns = {}
    for written, name in compiled.names.known.items():
        column = samples.column(name.stored) if name.stored in samples.column_names else None
        if column is not None and pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        fits = column is not None and (written[0] in compiled.file.blocks or column.type == name.arrow)
        columns[name.column] = column if fits else pa.chunked_array([pa.nulls(samples.num_rows, name.arrow)])
    return columns


def restore(samples: pa.Table, compiled: Compiled, sandbox: Sandbox) -> CheckBatch:
    """The batch as it was, from what is stored."""
    columns = stored_columns(samples, compiled)
    if compiled.file.schema:
        columns[WHOLE] = samples.column(WHOLE_ANSWER)
    return CheckBatch(compiled, sandbox, codes(samples, "status", STATUSES).astype(np.uint8), columns, samples)


def reread(samples: pa.Table, outputs: pa.Table, reader: OutputReader) -> list[str]:
    """Where the stored fields are not those of the stored texts."""
    whole = pc.fill_null(pc.less_equal(outputs.column("characters"), TEXT_LIMIT), False)
    rows = np.flatnonzero((codes(samples, "status", STATUSES) <= UNPARSED) & np.asarray(whole))
    again = reader.again(outputs.column("response").take(rows).to_pylist())
    stored_rows = samples.take(rows)
    names = {f"answer.{each.name}": f"c{place}" for place, each in enumerate(reader.compiled.fields)}
    names |= {WHOLE_ANSWER: WHOLE} if reader.compiled.file.schema else {}
    return [
        f"samples.parquet: {name} is not what the stored texts hold"
        for name, column in names.items()
        if stored_rows.column(name).to_pylist() != again.column(column).to_pylist()
    ]
