"""The raw texts of a run read again, to show that its stored answers are what they say."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.protocols.flight.fields import ANSWERED, FIELDS, STATUSES, Task, from_lists
from adjudge.protocols.flight.rows import NO_METHOD, TEXT_LIMIT, OutputReader, without_echoes
from adjudge.readers.blocks import block_of
from adjudge.readers.extract import METHODS

_COMPARED = ("start", "end", "candidates", "extra_keys", "completeness")


def differences(task: Task, samples: pa.Table, outputs: pa.Table, *, repairs: bool) -> list[str]:
    """Stored columns that are not what the texts give. A text that was cut at the bound cannot be read again."""
    whole = pc.less_equal(outputs.column("characters").fill_null(0), TEXT_LIMIT)
    lengths = pc.utf8_length(outputs.column("response"))
    if pc.any(pc.not_equal(lengths, outputs.column("characters")).filter(whole)).as_py():
        return ["characters are not those of the texts"]
    has_text = pc.and_(whole, outputs.column("response").is_valid())
    problems = _without_text(samples.filter(pc.and_(whole, outputs.column("response").is_null())))
    samples, texts = samples.filter(has_text), outputs.column("response").filter(has_text).to_pylist()
    if not texts:
        return problems
    lines = ((row, msgspec.json.encode({"id": row, "response": text})) for row, text in enumerate(texts, 1))
    reader = OutputReader([task], repairs=repairs)
    read = without_echoes(reader.read(block_of(lines)), from_lists(samples.column("shown")), task, reader)
    expected = {name: read.column(name).to_pylist() for name in _COMPARED}
    words = {**dict(enumerate(METHODS)), NO_METHOD: None}
    expected["method"] = [words[code] for code in read.column("method").to_pylist()]
    expected["repairs"] = read.column("repairs").cast(pa.string()).to_pylist()
    problems += [
        f"{name} in samples.parquet is not what the texts give"
        for name, values in expected.items()
        if samples.column(name).to_pylist() != values
    ]
    stored, again = (from_lists(table.column("answer"))[:, : task.steps * len(FIELDS)] for table in (samples, read))
    if not np.array_equal(stored, again, equal_nan=True):
        problems.append("answer in samples.parquet is not what the texts give")
    status = [STATUSES[code] for code in read.column("status").to_pylist()]
    # An error beside the text is not kept with it: it may have made an errored one of any text without an answer.
    kept = [
        stored == given or (stored == "errored" and given != STATUSES[ANSWERED])
        for stored, given in zip(samples.column("status").to_pylist(), status, strict=True)
    ]
    return problems if all(kept) else [*problems, "status in samples.parquet is not what the texts give"]


def _without_text(samples: pa.Table) -> list[str]:
    """A sample without a text has no answer."""
    words = set(samples.column("status").to_pylist())
    return ["a sample without a text has an answer"] if words - {"errored", "missing"} else []
