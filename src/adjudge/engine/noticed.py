"""What is noticed of a role while it is read: keys that nobody reads, characters that had to be replaced, decimal commas."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from adjudge.readers.blocks import Block
from adjudge.readers.keys import Keys, unread_keys

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
