"""What a batch adds to the numbers: exact counts, a few names, and the rows of the table of disagreements."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import OUTCOMES, Outcome
from adjudge.protocols.common.columns import codes, known
from adjudge.protocols.consistency import encoding
from adjudge.protocols.consistency.batch import PairBatch
from adjudge.protocols.consistency.judge import VERDICTS
from adjudge.protocols.consistency.policy import CITATIONS, LABELS, REJECT
from adjudge.stats.agreement import pair_counts

LISTED = 1000
EXAMPLES = 5
_VALID, _ABSTAIN, _NOT_IN_CONTEXT = (LABELS.index(name) for name in ("VALID", "ABSTAIN", "NOT_IN_CONTEXT"))
_REJECT = VERDICTS.index(REJECT)
_OUT = CITATIONS.index("out_of_scope")
FIXES = ("hard_flags", "template_or_schema_drift", "retriever_recall")
"""What to repair first, in this order."""


@dataclass
class Partial:
    """Counts of one batch, or of many added up.

    `agreed_*` are about items that both call VALID: counts by why, and (item, why, what is wrong) of the rejected ones.
    `rows` are the disagreements, with the place among FIXES of what each is about.
    """

    confusion: NDArray[np.int64]
    finals: NDArray[np.int64]
    status: NDArray[np.int64]
    counts: dict[str, int]
    outcomes: NDArray[np.int64]
    codes: Counter[str]
    examples: dict[str, list[str]]
    agreed_finals: NDArray[np.int64]
    agreed_rejected: list[tuple[str, str, str]]
    listed: dict[str, list[tuple[str, str]]]
    rows: pa.Table
    digests: list[bytes] = field(default_factory=list)

    @property
    def n(self) -> int:
        """Items that both labelled."""
        return int(self.confusion.sum())


def partial(samples: pa.Table, batch: PairBatch, evidence: Evidence, reasons: Sequence[str]) -> Partial:
    """The counts of one batch, whose finals stand in the samples."""
    status, scholar, auditor = batch.status, batch.scholar, batch.auditor
    final, why = codes(samples, "verdict", VERDICTS), codes(samples, "why", reasons)
    flagged, outside = batch.hard_flag, batch.citations >= _OUT
    paired = status == encoding.PAIRED
    shipped = paired & (final != _REJECT)
    agreed = paired & (scholar == _VALID) & (auditor == _VALID)
    masks = {
        "either_abstains": paired & ((scholar == _ABSTAIN) | (auditor == _ABSTAIN)),
        "scholar_abstains": paired & (scholar == _ABSTAIN),
        "auditor_abstains": paired & (auditor == _ABSTAIN),
        "shipped": shipped,
        "shipped_with_red_flag": shipped & flagged,
        "shipped_with_bad_citations": shipped & outside,
        "agreed_valid": agreed,
        "agreed_valid_rejected_by_red_flag": agreed & ~shipped & flagged,
        "agreed_valid_rejected_by_citations": agreed & ~shipped & ~flagged & outside,
        "without_answer": paired & (batch.answered != 1),
        "with_flags": paired & (batch.flags != encoding.ABSENT).any(axis=0),
        "votes_reduced": paired & (known(samples, "scholar_reducer") | known(samples, "auditor_reducer")),
    }
    names = samples.column("sample")
    failed = evidence.outcome == Outcome.FAIL
    by_code = np.bincount(evidence.code[failed].astype(np.int64), minlength=len(evidence.layout.codes))
    fixes = {
        "hard_flags": paired & flagged,
        "template_or_schema_drift": failed[evidence.layout.positions_of("refusal", "constraints")].any(axis=0),
        "retriever_recall": paired & (outside | ((scholar == _NOT_IN_CONTEXT) != (auditor == _NOT_IN_CONTEXT))),
    }
    first_fix = np.select([fixes[name] for name in FIXES], range(len(FIXES)), len(FIXES))
    dangerous = masks["agreed_valid_rejected_by_red_flag"]
    return Partial(
        confusion=pair_counts(scholar[paired].astype(np.int64), auditor[paired].astype(np.int64), len(LABELS)),
        finals=np.bincount(why.astype(np.int64), minlength=len(reasons)),
        status=np.bincount(status.astype(np.int64), minlength=len(encoding.STATUSES)),
        counts={name: int(mask.sum()) for name, mask in (masks | fixes).items()}
        | {"bad_rows": sum(note.count("\n") + 1 for note in batch.notes.values())},
        outcomes=np.array(
            [[np.count_nonzero(atoms == code) for code in range(len(OUTCOMES))] for atoms in evidence.outcome]
        ),
        codes=Counter(dict(zip(evidence.layout.codes, by_code.tolist(), strict=True))),
        examples={
            name: [names[index].as_py() for index in np.flatnonzero(mask)[:EXAMPLES].tolist()]
            for name, mask in {**fixes, "dangerous": dangerous}.items()
        },
        agreed_finals=np.bincount(why[agreed].astype(np.int64), minlength=len(reasons)),
        agreed_rejected=_rejected(samples, evidence, np.flatnonzero(agreed & ~shipped)),
        listed={name: _listed(samples, status == code) for code, name in enumerate(encoding.STATUSES) if code},
        rows=_rows(samples, np.flatnonzero(paired & (scholar != auditor)), first_fix),
        digests=[_digest(names)],
    )


def _rejected(samples: pa.Table, evidence: Evidence, places: NDArray[np.intp]) -> list[tuple[str, str, str]]:
    """(item, why, what failed) of the first few items; the worst rules come first in the evidence."""
    names, why = samples.column("sample"), samples.column("why")
    failed = evidence.outcome == Outcome.FAIL
    rejected = []
    for place in places[:LISTED].tolist():
        codes_failed = [evidence.layout.codes[code] for code in evidence.code[failed[:, place], place].tolist()]
        rejected.append((names[place].as_py(), why[place].as_py(), ", ".join(dict.fromkeys(codes_failed))))
    return rejected


def merge(partials: Sequence[Partial]) -> Partial:
    """The counts of all batches."""
    first = partials[0]
    return Partial(
        confusion=np.sum([p.confusion for p in partials], axis=0),
        finals=np.sum([p.finals for p in partials], axis=0),
        status=np.sum([p.status for p in partials], axis=0),
        counts={name: sum(p.counts[name] for p in partials) for name in first.counts},
        outcomes=np.sum([p.outcomes for p in partials], axis=0),
        codes=sum((p.codes for p in partials), Counter()),
        examples={name: sorted(x for p in partials for x in p.examples[name])[:EXAMPLES] for name in first.examples},
        agreed_finals=np.sum([p.agreed_finals for p in partials], axis=0),
        agreed_rejected=sorted(x for p in partials for x in p.agreed_rejected)[:LISTED],
        listed={name: sorted(x for p in partials for x in p.listed[name])[:LISTED] for name in first.listed},
        rows=pa.concat_tables([p.rows for p in partials]).sort_by("sample"),
        digests=[digest for p in partials for digest in p.digests],
    )


def dataset_digest(digests: Sequence[bytes]) -> str:
    """One digest of the items, from those of the batches in order."""
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _digest(names: pa.ChunkedArray) -> bytes:
    column = names.combine_chunks()
    _, places, data = column.buffers()
    edges = np.frombuffer(places, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    total = hashlib.sha256(np.diff(edges).tobytes())
    total.update(memoryview(data or b"")[edges[0] : edges[-1]])
    return total.digest()


def _listed(samples: pa.Table, mask: NDArray[np.bool_]) -> list[tuple[str, str]]:
    places = np.flatnonzero(mask)[:LISTED].tolist()
    names, notes = samples.column("sample"), samples.column("note")
    return [(names[index].as_py(), notes[index].as_py() or "") for index in places]


_COLUMNS = ("sample", "scholar", "auditor", "verdict", "why", "scholar_reason", "auditor_reason")


def _rows(samples: pa.Table, places: NDArray[np.intp], first_fix: NDArray[np.int64]) -> pa.Table:
    """What the table of disagreements says of some items, and the place among FIXES of each."""
    chosen = samples.select(_COLUMNS).take(pa.array(places))
    chosen = chosen.cast(pa.schema([(name, pa.string()) for name in _COLUMNS]))
    return chosen.append_column("fix", pa.array(first_fix[places], pa.int8()))
