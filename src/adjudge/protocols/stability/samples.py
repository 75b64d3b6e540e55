"""samples.parquet of the stability protocol: what is stored of a gold item, and how a batch is restored from it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from adjudge.protocols.common.columns import floats
from adjudge.protocols.stability import text
from adjudge.protocols.stability.batch import COUNTS, FLAGS, SHARES, StabilityBatch

TEXT_LIMIT = 2000


def table(batch: StabilityBatch, names: list[str], decided: Mapping[str, pa.Array]) -> pa.Table:
    """The rows of one batch."""
    return pa.table(
        {
            "sample": pa.array(names, pa.string()),
            "model": pa.array(["runs"] * batch.n).dictionary_encode(),
            **decided,
            **{name: pa.array(values) for name, values in (batch.flags | batch.counts).items()},
            **{name: pa.array(values, from_pandas=True) for name, values in batch.shares.items()},
        }
    )


def outputs(claims: list[list[str]]) -> pa.Table:
    """The claims of every item's runs, each cut at a bound."""
    texts = [[claim[:TEXT_LIMIT] for claim in answers] for answers in claims]
    return pa.table({"claims": pa.array(texts, pa.list_(pa.string()))})


def reread(batch: StabilityBatch, outputs: pa.Table) -> list[str]:
    """Where stored measures are not those of the claims; an item with a claim that was cut is left."""
    claims = outputs.column("claims").to_pylist()
    if any(answers is None or None in answers for answers in claims):
        return ["there are items without claims"]
    whole = [row for row, answers in enumerate(claims) if all(len(claim) < TEXT_LIMIT for claim in answers)]
    again = {
        "runs": (batch.counts["runs"], [len(answers) for answers in claims]),
        "refusals": (batch.counts["refusals"], [answers.count(text.REFUSAL) for answers in claims]),
        "ned50": (batch.shares["ned50"][whole], [text.edit_distance_median(claims[row]) for row in whole]),
        "iaa": (batch.shares["iaa"][whole], [text.exact_agreement(claims[row]) for row in whole]),
    }
    return [
        f"{name} in samples.parquet is not that of the claims"
        for name, (stored, measured) in again.items()
        if not np.array_equal(stored, np.array(measured, dtype=np.float64), equal_nan=True)
    ]


def restore(samples: pa.Table) -> StabilityBatch:
    """The batch as it was, from what is stored; runs of an earlier version did not count the scope of citations."""
    known, nothing = set(samples.column_names), np.zeros(samples.num_rows, dtype=np.int64)
    return StabilityBatch(
        {name: samples.column(name).to_numpy() if name in known else nothing for name in COUNTS},
        {name: floats(samples, name) for name in SHARES},
        {name: samples.column(name).to_numpy() for name in FLAGS},
    )
