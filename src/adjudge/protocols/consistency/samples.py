"""samples.parquet of the consistency protocol: what is stored of an item, and how a batch is restored from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.protocols.common.columns import coded, codes, cut, texts_by_row
from adjudge.protocols.consistency import encoding
from adjudge.protocols.consistency.batch import TEXT_LIMIT, PairBatch, ReadBatch
from adjudge.protocols.consistency.policy import CITATIONS, LABELS
from adjudge.protocols.consistency.reasons import look_into

MODEL = "pair"
_ALWAYS = {
    *("sample", "model", "bucket", "verdict", "why", "cites", "status", "answered"),
    *("citations", "citations_out_of_scope", "claim"),
    *(f"{agent}_{name}" for agent in encoding.AGENTS for name in ("personal", "quotes", "seeding")),
}
"""Columns that have a value in every row; what has none costs a look at each."""
_TRUTHS = {"same_evidence": "same_evidence", "echoed": "constraints_echoed"}
"""What is true, false or not said of an item: in the batch, and as it is stored."""


def table(read: ReadBatch, flags: Sequence[str], decided_columns: Mapping[str, pa.Array]) -> pa.Table:
    """The rows of one batch; reasons stand here only where the labels differ, for the table of disagreements."""
    batch, n = read.batch, len(read.samples)
    differ = (batch.status == encoding.PAIRED) & (batch.scholar != batch.auditor)
    differ_column = pa.array(differ)
    columns: dict[str, pa.Array] = {
        "sample": read.samples,
        "model": coded(np.zeros(n, dtype=np.int8), (MODEL,)),
        **decided_columns,
        "status": coded(batch.status, encoding.STATUSES),
        "scholar": coded(batch.scholar, LABELS),
        "auditor": coded(batch.auditor, LABELS),
        **{name: _truth(raised) for name, raised in zip(flags, batch.flags, strict=True)},
        **{stored: _truth(getattr(batch, name)) for name, stored in _TRUTHS.items()},
        "citations": coded(batch.citations, CITATIONS),
        "citations_out_of_scope": pa.array(batch.out_of_scope),
        "claim": coded(batch.claim, encoding.CLAIMS),
        "answered": pa.array(batch.answered == 1),
        "note": pa.array([batch.notes.get(row) for row in range(n)] if batch.notes else [None] * n, pa.string()),
    }
    for side, name in enumerate(encoding.AGENTS):
        length = batch.reason_length[side]
        columns |= {
            f"{name}_reason": cut(
                pc.if_else(differ_column, read.reasons[side], pa.scalar(None, pa.string())), TEXT_LIMIT, "…"
            ),
            f"{name}_reason_length": pa.array(length, mask=length == encoding.ABSENT),
            f"{name}_personal": pa.array(batch.personal[side]),
            f"{name}_quotes": pa.array(batch.quotes[side] == 1),
            f"{name}_seeding": coded(batch.seeding[side], encoding.SEEDING),
            f"{name}_reducer": coded(read.reduced[side] - 1, ("strict_majority",)),
        }
    fields = [pa.field(name, column.type, nullable=name not in _ALWAYS) for name, column in columns.items()]
    return pa.table(columns, schema=pa.schema(fields))


def outputs(read: ReadBatch) -> pa.Table:
    """What the agents said, reasons masked, and the claim; each cut at a bound."""
    return pa.table(
        {
            "scholar_reason": cut(read.reasons[0], TEXT_LIMIT, "…"),
            "auditor_reason": cut(read.reasons[1], TEXT_LIMIT, "…"),
            "response": cut(read.claims, TEXT_LIMIT, "…"),
            "cited": read.cited[0],
            "cited_outside": read.cited[1],
        }
    )


def reread(samples: pa.Table, batch: PairBatch, outputs: pa.Table) -> list[str]:
    """Where what is stored of reasons and claims is not what the texts say; reasons that were masked or cut are left."""
    texts = [outputs.column(f"{name}_reason").combine_chunks() for name in encoding.AGENTS]
    texts = [side.cast(pa.string()) for side in texts]  # a column of nulls has no type
    differ = pa.array((batch.status == encoding.PAIRED) & (batch.scholar != batch.auditor))
    problems, whole = [], np.ones(batch.n, dtype=np.bool_)
    for side, name in enumerate(encoding.AGENTS):
        shown = pc.if_else(differ, texts[side], pa.scalar(None, pa.string()))
        if samples.column(f"{name}_reason").to_pylist() != shown.to_pylist():
            problems.append(f"{name}_reason in samples.parquet is not the one in outputs/")
        absent = texts[side].is_null().to_numpy(zero_copy_only=False)
        if (absent != (batch.reason_length[side] == encoding.ABSENT)).any():
            problems.append(f"{name}_reason_length in samples.parquet is not that of the reason")
        whole &= (batch.personal[side] == 0) & (batch.reason_length[side] <= TEXT_LIMIT)
    again = look_into([side.filter(pa.array(whole)) for side in texts], (batch.scholar[whole], batch.auditor[whole]))
    for name, stored, values in (
        ("reason_length", batch.reason_length, again.lengths),
        ("personal", batch.personal, again.personal),
        ("quotes", batch.quotes, again.quotes),
    ):
        if (stored[:, whole] != values).any():
            problems.append(f"{name} of an agent in samples.parquet is not what the reasons say")
    if "cited" in outputs.column_names and not _cites(batch, outputs):
        problems.append("citations in samples.parquet are not those in outputs/")
    claims = outputs.column("response").combine_chunks().cast(pa.string())
    if (batch.claim != encoding.claim_codes(claims)).any():
        problems.append("claim in samples.parquet is not what the texts say")
    return problems


def _cites(batch: PairBatch, outputs: pa.Table) -> bool:
    """Whether answers cite something where they should, and as much out of scope as is said."""
    cited, outside = (outputs.column(name).to_pylist() for name in ("cited", "cited_outside"))
    counts = [0 if ids is None else len(msgspec.json.decode(ids)) for ids in outside]
    cites = [ids is not None for ids in cited] == (batch.citations != 0).tolist()
    return cites and bool((np.minimum(batch.out_of_scope, encoding.LISTED) == counts).all())


def restore(samples: pa.Table, flags: Sequence[str]) -> PairBatch:
    """The batch as it was, from what is stored."""
    lengths = [samples.column(f"{name}_reason_length") for name in encoding.AGENTS]
    return PairBatch(
        status=codes(samples, "status", encoding.STATUSES),
        scholar=codes(samples, "scholar", LABELS),
        auditor=codes(samples, "auditor", LABELS),
        flags=np.stack([_small_truth(samples.column(name)) for name in flags]),
        **{name: _small_truth(samples.column(stored)) for name, stored in _TRUTHS.items()},
        citations=codes(samples, "citations", CITATIONS),
        out_of_scope=samples.column("citations_out_of_scope").to_numpy(),
        claim=codes(samples, "claim", encoding.CLAIMS),
        answered=_small_truth(samples.column("answered")),
        reason_length=np.stack([length.fill_null(encoding.ABSENT).to_numpy() for length in lengths]),
        personal=np.stack([samples.column(f"{name}_personal").to_numpy() for name in encoding.AGENTS]),
        quotes=np.stack([_small_truth(samples.column(f"{name}_quotes")) for name in encoding.AGENTS]),
        seeding=np.stack([codes(samples, f"{name}_seeding", encoding.SEEDING) for name in encoding.AGENTS]),
        notes=texts_by_row(samples.column("note")),
    )


def _truth(values: encoding.Small) -> pa.Array:
    absent = values == encoding.ABSENT
    return pa.array(values == 1, mask=absent if absent.any() else None)


def _small_truth(column: pa.ChunkedArray) -> encoding.Small:
    truths: encoding.Small = column.cast(pa.int8()).fill_null(encoding.ABSENT).to_numpy()
    return truths
