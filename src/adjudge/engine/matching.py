"""How far the roles of the input are about the same samples, and what is noticed of a role while it is read.

Noticed are keys that nobody reads, characters that had to be replaced, and decimal commas.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adjudge.protocols.base import Named
from adjudge.provenance.canonical import bytes_of, order_of
from adjudge.readers.blocks import Block, Keys, unread_keys
from adjudge.stats.estimate import Estimate, Metric, count, share

LITTLE = 0.5
"""A smaller share of ids in every role than this is a warning."""

METRICS: tuple[Metric, ...] = (
    share("matched", "matched ids", formula="ids that every role has ÷ all ids", interval="none: counted"),
    count("only_in_*", "ids only in {}", formula="ids that no other role has", interval="none: counted"),
)
"""What the engine measures itself, for every protocol alike."""

_METHOD = "counted"


class IdDigest:
    """A digest of the ids of some records, in whatever order and however often they stand there: a hash a partition."""

    def __init__(self) -> None:
        self._of_part: dict[int, bytes] = {}
        self._part = -1
        self._ids: list[pa.Array] = []
        self._closed: pa.Array | None = None

    def add(self, part: int, ids: pa.ChunkedArray) -> None:
        """Some ids of a partition; partitions come one after the other."""
        if part != self._part:
            self.close()
            self._part = part
        self._ids.append(_ascending(ids.cast(pa.string())))

    def close(self) -> None:
        """No more ids of this partition come."""
        ids = self._ids[0] if len(self._ids) == 1 else _ascending(pa.chunked_array(self._ids, pa.string()))
        if len(ids):
            lengths, texts = bytes_of(ids)
            digest = hashlib.sha256(lengths.tobytes())
            digest.update(texts)
            self._of_part[self._part] = digest.digest()
            self._closed = ids
        self._ids = []

    def add_like(self, part: int, columns: Iterable[pa.ChunkedArray], other: IdDigest) -> None:
        """All ids of a partition; where they are the last that the other closed, its digest is theirs."""
        different = pc.unique(pa.chunked_array([chunk for ids in columns for chunk in ids.chunks], pa.string()))
        closed, other._closed = other._closed, None
        same = closed is not None and len(closed) == len(different)
        if same and other._part == part and pc.all(pc.is_in(different, value_set=closed)).as_py():
            self._of_part[part] = other._of_part[part]
        else:
            self.add(part, pa.chunked_array([different]))

    def merge(self, other: IdDigest) -> None:
        """Add the ids of other partitions."""
        other.close()
        self._of_part |= other._of_part

    def hexdigest(self) -> str:
        """One digest of all ids."""
        self.close()
        return hashlib.sha256(b"".join(self._of_part[part] for part in sorted(self._of_part))).hexdigest()


def _ascending(ids: pa.ChunkedArray) -> pa.Array:
    """The different ids in their order, which most protocols have them in already."""
    together = ids.chunk(0) if ids.num_chunks == 1 else ids.combine_chunks()
    before, after = together.slice(0, max(len(together) - 1, 0)), together.slice(1)
    if not together.null_count and pc.all(pc.less(before, after)).as_py():
        return together
    different = pc.unique(together)
    return different.take(pa.array(order_of(different)))


@dataclass
class Matching:
    """Ids over all partitions: how many there are, in every role, and in one role alone."""

    ids: int = 0
    matched: int = 0
    of_role: Counter[str] = field(default_factory=Counter)
    only_in: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, keys: Mapping[str, pa.ChunkedArray], limited: Sequence[str]) -> Matching:
        """The ids of one partition; under a limit, those of the limited roles alone."""
        matching = cls()
        if len(keys) < 2:
            return matching
        by_role = {role: pc.unique(column) for role, column in keys.items()}
        if limited:
            kept = pc.unique(pa.chunked_array([by_role[role] for role in limited if role in by_role], pa.string()))
            by_role = {role: ids.filter(pc.is_in(ids, value_set=kept)) for role, ids in by_role.items()}
        everything = pa.chunked_array(list(by_role.values()), pa.string()).value_counts()
        roles_of_id = everything.field("counts").to_numpy()
        matching.ids = len(roles_of_id)
        matching.matched = int((roles_of_id == len(by_role)).sum())
        alone = everything.field("values").filter(pc.equal(everything.field("counts"), 1))
        for role, ids in by_role.items():
            matching.of_role[role] = len(ids)
            matching.only_in[role] = pc.sum(pc.is_in(ids, value_set=alone)).as_py() or 0
        return matching

    def merge(self, other: Matching) -> None:
        """Add the ids of another partition."""
        self.ids += other.ids
        self.matched += other.matched
        self.of_role.update(other.of_role)
        self.only_in.update(other.only_in)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for the run."""
        return {
            "ids": self.ids,
            "matched": self.matched,
            "roles": {
                role: {"ids": self.of_role[role], "only_in": self.only_in[role]} for role in sorted(self.of_role)
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Matching:
        """The counts that `to_dict` wrote."""
        roles = data["roles"]
        return cls(
            int(data["ids"]),
            int(data["matched"]),
            Counter({role: int(counts["ids"]) for role, counts in roles.items()}),
            Counter({role: int(counts["only_in"]) for role, counts in roles.items()}),
        )

    def estimates(self) -> list[Named]:
        """`matched`, the share of ids that every role has, and `only_in_ROLE`, ids that one role alone has."""
        if not self.ids:
            return []
        share = Estimate(value=self.matched / self.ids, n=self.ids, method=_METHOD)
        return [
            Named("matched", "", share),
            *(
                Named(f"only_in_{role}", "", Estimate(value=float(count), n=self.ids, method=_METHOD))
                for role, count in sorted(self.only_in.items())
            ),
        ]

    def notes(self) -> list[str]:
        """A warning where the roles have little in common."""
        if not self.ids or self.matched / self.ids >= LITTLE:
            return []
        roles = " and ".join(f"{self.of_role[role]:,} in {role}" for role in sorted(self.of_role))
        none = "no id stands" if not self.matched else f"only {self.matched:,} of {self.ids:,} ids stand"
        return [f"{none} in every role of the input ({roles}): are these files about the same samples?"]


FIRST, EVERY = 10_000, 100
"""Keys are looked at in the first records of each file, and in every so many after them."""

_NAMED = 12  # keys in a note
_LINES = 5


@dataclass
class Noticed:
    """Counts over the records of a role."""

    unread: Counter[str] = field(default_factory=Counter)
    looked: int = 0
    records: int = 0
    mended: list[tuple[str, int, str]] = field(default_factory=list)
    decimal_commas: int = 0

    def notice(self, block: Block, before: int, keys: Keys | None) -> None:
        """Look at a block; `before` are the records of its file that came earlier."""
        self.records += len(block)
        self.mended += [(block.path, line, what) for line, what in sorted(block.mended.items())]
        if keys is None:
            return
        first = min(max(0, FIRST - before), len(block))  # rows that are all looked at
        records = block.some_records([*range(first), *range(first + -(before + first) % EVERY, len(block), EVERY)])
        self.looked += len(records)
        self.unread += unread_keys(records, keys)

    def add(self, other: Noticed) -> None:
        """What was noticed elsewhere of the same role."""
        self.unread += other.unread
        self.looked += other.looked
        self.records += other.records
        self.mended += other.mended
        self.decimal_commas += other.decimal_commas

    def notes(self, role: str) -> list[str]:
        """What a user should know of the role's files."""
        return [*self._unread_note(role), *self._mended_note(role), *self._commas_note(role)]

    def _unread_note(self, role: str) -> list[str]:
        if not self.unread:
            return []
        ranked = sorted(self.unread.items(), key=lambda item: (-item[1], item[0]))
        words = [f"`{name}` ({_share(count, self.looked)})" for name, count in ranked[:_NAMED]]
        more = f" and {len(ranked) - _NAMED} more" if len(ranked) > _NAMED else ""
        counted = "" if self.looked == self.records else f" {self.looked:,} of {self.records:,}"
        how = f": the first {FIRST:,} of each file and every {EVERY}th after" if counted else ""
        return [
            f"{role}: keys that nothing reads: {', '.join(words)}{more}, by their share of the{counted} records{how}"
        ]

    def _mended_note(self, role: str) -> list[str]:
        if not self.mended:
            return []
        kinds = sorted({what for _, _, what in self.mended})
        places = ", ".join(f"{Path(path).name}:{line}" for path, line, _ in sorted(self.mended)[:_LINES])
        more = f" and {len(self.mended) - _LINES:,} more" if len(self.mended) > _LINES else ""
        lines = "1 line" if len(self.mended) == 1 else f"{len(self.mended):,} lines"
        return [f"{role}: {lines} held {' or '.join(kinds)}, replaced or escaped: {places}{more}"]

    def _commas_note(self, role: str) -> list[str]:
        if not self.decimal_commas:
            return []
        return [
            f"{role}: {self.decimal_commas:,} numbers with a decimal comma are read with a point; commas separate no cells there"
        ]


def _share(count: int, total: int) -> str:
    share = 100 * count / total
    return f"{share:.0f} %" if share >= 1 or not count else "under 1 %"
