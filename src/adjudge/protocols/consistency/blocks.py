"""From a block of records to the table of a role: the fast way where rows are as expected, the ordinary way otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.errors import InputError
from adjudge.protocols.consistency import batch as b
from adjudge.protocols.consistency import fast, ordinary, tables
from adjudge.protocols.consistency import rows as r
from adjudge.protocols.consistency.policy import LABELS
from adjudge.readers.blocks import Block
from adjudge.readers.scan import scan


class BlockReader:
    """Reads the rows of one role. A row that cannot be used is an error, or, with `skip_bad`, a row with a note."""

    def __init__(self, role: str, *, skip_bad: bool) -> None:
        self.role, self.skip_bad = role, skip_bad
        self._wanted = fast.wanted(role)
        self._decode = r.decoder(role).decode

    def read(self, block: Block) -> pa.Table:
        """A row for every record, in order."""
        found = scan(self._wanted, block.data, block.starts, block.ends, fast=block.fast)
        if found.odd.all():
            table = self._ordinary(block, range(len(block)))
        else:
            table = fast.columns(self.role, found)
            odd = np.flatnonzero(found.odd)
            if odd.size:
                place = np.arange(len(block))
                place[odd] = len(block) + np.arange(odd.size)
                table = tables.together(table, self._ordinary(block, odd.tolist())).take(place)
        table = table.append_column("file", pa.array(np.full(len(block), block.file, dtype=np.int32)))
        table = table.append_column("line", pa.array(block.lines))
        return tables.mark_compiled(table) if block.fast else table

    def _ordinary(self, block: Block, places: Sequence[int]) -> pa.Table:
        """Some rows, one by one."""
        data = memoryview(block.data)
        keys: list[str] = []
        rows: list[r.PairRow] = []
        notes: list[str | None] = []
        unreadable: list[int] = []
        for place in places:
            text = bytes(data[block.starts[place] : block.ends[place]])
            try:
                row = self._decode(text)
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                what: str | None = r.what_is_wrong(text, self.role, error)
                unreadable.append(len(rows))
                rows.append(ordinary.NO_PAIR)
                keys.append(r.key_or_bad(text))
            else:
                what = self._without_label(row)
                rows.append(ordinary.as_pair(self.role, row))
                keys.append(row.qid if row.qid.__class__ is str else str(row.qid))
            if what is not None and not self.skip_bad:
                raise InputError(what, file=block.path, line=int(block.lines[place]), hint=r.SKIP_HINT)
            notes.append(what)
        codes, texts = ordinary.columns(rows)
        codes["status"][unreadable] = b.BAD_ROW
        return tables.table(pa.array(keys, pa.string()), codes, texts | {"note": pa.array(notes, pa.string())})

    def _without_label(self, row: r.PairRow | r.AgentRow | r.AnswerRow) -> str | None:
        """What is wrong with a row in which an agent says neither a label nor votes."""
        if isinstance(row, r.PairRow):
            agents: tuple[tuple[str, r.Agent], ...] = (("scholar", row.scholar), ("auditor", row.auditor))
        else:
            agents = ((self.role, row),) if isinstance(row, r.AgentRow) else ()
        for name, agent in agents:
            if agent.label is None and not agent.votes:
                return f"{name} has no label; expected one of {', '.join(LABELS)} (or `votes`)"
        return None
