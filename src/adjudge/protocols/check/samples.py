"""samples.parquet of the check protocol: what is stored of a sample, and how a batch is restored from it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.protocols.check.batch import CheckBatch, ReadBatch, mistyped_rows
from adjudge.protocols.check.compiled import WHOLE, Compiled, column_type
from adjudge.protocols.check.names import Name
from adjudge.protocols.check.rows import NAMES, STATUSES, TEXT_LIMIT, UNPARSED, OutputReader
from adjudge.protocols.check.sandbox import Sandbox
from adjudge.protocols.common.columns import coded, codes
from adjudge.readers.extract import METHODS

WHOLE_ANSWER = "answer_json"
"""The column of samples.parquet that holds the answer itself, where a schema reads it."""
_BLOCKS = {"number": pa.float64(), "boolean": pa.bool_(), "date": pa.date32()}


def table(read: ReadBatch, decided: Mapping[str, pa.Array], compiled: Compiled, *, gold: bool) -> pa.Table:
    """The rows of one batch."""
    batch, outputs = read.batch, read.outputs
    models = np.tile(np.arange(len(read.groups), dtype=np.int32), batch.n // len(read.groups))
    columns = {
        "sample": read.samples,
        "model": pa.DictionaryArray.from_arrays(pa.array(models), pa.array(read.groups, pa.string())),
        "status": coded(batch.status.astype(np.int8), STATUSES),
        **decided,
        "method": coded(np.asarray(outputs.column("method")).view(np.int8), METHODS),
        "start": outputs.column("start"),
        "end": outputs.column("end"),
        "repairs": outputs.column("repairs").cast(pa.string()).combine_chunks().dictionary_encode(),
        "has_gold": pa.array(read.has_gold),
        "mistyped": outputs.column("mistyped").cast(NAMES),
    }
    for name in stored(compiled, gold=gold):
        columns[stored_name(name)] = batch.columns[name.column]
    if compiled.file.schema:
        columns[WHOLE_ANSWER] = batch.columns[WHOLE]
    return pa.table(columns)


def outputs(read: ReadBatch, files: tuple[str, ...]) -> pa.Table:
    """The raw responses, each cut at a bound, and the file and line that each stands on."""
    indices = read.outputs.column("file").combine_chunks()
    return pa.table(
        {
            "response": read.outputs.column("response"),
            "characters": read.outputs.column("characters"),
            "file": pa.DictionaryArray.from_arrays(indices.cast(pa.int32()), pa.array(list(files), pa.string())),
            "line": read.outputs.column("line"),
        }
    )


def stored(compiled: Compiled, *, gold: bool) -> list[Name]:
    """The names whose values are stored: all fields, all gold values where there is a reference, what else is read."""
    read = {name.written for name in compiled.read}
    return [
        name
        for written, name in compiled.names.known.items()
        if (len(written) == 1 and written[0] in compiled.file.fields)
        or (len(written) == 2 and (written[0] in {"meta", "input"} or (written[0] == "gold" and gold)))
        or (len(written) == 2 and written[0] == "previous" and written in read)
    ]


def stored_name(name: Name) -> str:
    """The column of samples.parquet that holds the values of a name."""
    return f"answer.{name.written[0]}" if len(name.written) == 1 else ".".join(name.written)


def restore(samples: pa.Table, compiled: Compiled, sandbox: Sandbox, *, gold: bool) -> CheckBatch:
    """The batch as it was, from what is stored."""
    n = samples.num_rows
    known = {name.written: stored_name(name) for name in stored(compiled, gold=gold)}
    columns: dict[str, pa.ChunkedArray] = {}
    for written, name in compiled.names.known.items():
        if written in known:
            columns[name.column] = samples.column(known[written])
        elif written in {("id",), ("model",)}:
            columns[name.column] = samples.column("sample" if written == ("id",) else "model").cast(pa.string())
        else:
            field = compiled.file.fields.get(written[-1])
            kind = column_type(field).arrow if field is not None else _BLOCKS.get(name.kind, pa.string())
            columns[name.column] = pa.chunked_array([pa.nulls(n, kind)])
    if compiled.file.schema:
        columns[WHOLE] = samples.column(WHOLE_ANSWER)
    return CheckBatch(
        compiled=compiled,
        sandbox=sandbox,
        n=n,
        status=codes(samples, "status", STATUSES).astype(np.uint8),
        columns=columns,
        mistyped=mistyped_rows(samples)[0],
    )


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
