"""Reading the input once, into columns, cut into partitions by hash of the key.

Every role's records become a table as they are read; the tables go through a spool, so memory is bounded. Where other
processes work, large files of JSON Lines are read in ranges. How many partitions there are depends on the number of
records alone, so the order of the input, the number of workers and the number of files change nothing.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.blocks import blocks, blocks_of_range
from adjudge.engine.light import without_pandas
from adjudge.engine.plans import Recipe, plan_of
from adjudge.engine.remote import blocks_of_url
from adjudge.engine.runner import Runner
from adjudge.engine.spool import BUCKETS, NONE, Piece, Room, Spool, together
from adjudge.errors import InputError
from adjudge.loops import available
from adjudge.protocols.base import Block, Input
from adjudge.provenance.canonical import file_digest
from adjudge.provenance.manifest import InputFile
from adjudge.readers import remote
from adjudge.readers.records import is_json_lines
from adjudge.readers.scan import WORTH_IT, crc32
from adjudge.readers.sources import open_source

ROWS_A_PARTITION = 32_768
RANGE_BYTES = 1 << 26


@dataclass(frozen=True)
class Part:
    """The records of one role in one partition: some buckets of all pieces."""

    pieces: tuple[Piece, ...]
    low: int
    high: int
    raw: bool

    def table(self) -> pa.Table:
        """The records as columns, in the order of the input, each in many chunks."""
        return together([piece.rows(self.low, self.high) for piece in self.pieces])

    def rows(self) -> Iterator[tuple[int, int, bytes]]:
        """(file, line, JSON) of records that were kept as they are."""
        table = self.table()
        return zip(*(table.column(name).to_pylist() for name in ("file", "line", "text")), strict=True)


@dataclass
class Split:
    """The whole input, cut. `groups` are all second parts of the keys (for flight, the models)."""

    partitions: list[dict[str, Part]] = field(default_factory=list)
    groups: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    inputs: list[InputFile] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    stamps: dict[str, tuple[int, int | str]] = field(default_factory=dict)

    def check_unchanged(self) -> None:
        """Refuse a result whose input changed while it was read."""
        for path, stamp in self.stamps.items():
            if _stamp(path) != stamp:
                raise InputError("changed while it was being read; run again", file=path)


def split(
    inputs: Sequence[Input], folder: Path, runner: Runner, recipe: Recipe | None = None, *, limit: int | None = None
) -> Split:
    """Read every input once and cut it. `limit` keeps the first records of each file of a role that is `limited`.

    Without the recipe of its plan an input is read in this process.
    """
    paths = [(item, path) for item in inputs for path in item.paths]
    found = Split(files=tuple(path for _, path in paths), stamps={path: _stamp(path) for _, path in paths})
    fast = available() and sum(size for size, _ in found.stamps.values()) >= WORTH_IT
    spools = {item.role: Spool(folder, item.role, None if runner.shared else Room()) for item in inputs}
    groups: set[str] = set()
    cuts = [
        _ranges(path) if runner.shared and recipe is not None and not (item.limited and limit) else []
        for item, path in paths
    ]
    jobs = [
        Range(recipe, item.role, path, number, *edges, folder)
        for number, ((item, path), ranges) in enumerate(zip(paths, cuts, strict=True))
        for edges in ranges
        if recipe is not None
    ]
    # The ranges of all files in one queue, so that no worker waits for the end of a file.
    taken = runner.map(read_range, jobs)
    for number, ((item, path), ranges) in enumerate(zip(paths, cuts, strict=True)):
        if ranges:
            digest, count = _in_ranges(itertools.islice(taken, len(ranges)), path, spools[item.role], groups)
        else:
            most = limit if item.limited else None
            digest, count = _at_once(item, path, number, spools[item.role], groups, fast=fast, limit=most)
        found.inputs.append(InputFile(role=item.role, name=remote.file_name(path), bytes=count, sha256=digest))
    for spool in spools.values():
        spool.close()
    found.rows = {role: spool.rows for role, spool in spools.items()}
    count = _partitions(max(found.rows.values(), default=0))
    raw = {item.role: item.read is None for item in inputs}
    for part in range(count):
        low, high = part * BUCKETS // count, (part + 1) * BUCKETS // count
        found.partitions.append(
            {role: Part(tuple(spool.pieces), low, high, raw[role]) for role, spool in spools.items()}
        )
    found.groups = tuple(sorted(groups))
    return found


def _at_once(
    item: Input, path: str, number: int, spool: Spool, groups: set[str], *, fast: bool, limit: int | None
) -> tuple[str, int]:
    """One file from front to back; its digest and size."""
    with open_source(path) as source:
        for block in blocks(source, number, fast=fast, limit=limit):
            groups |= _take(item, block, spool)
        while source.stream.read(1 << 20):
            pass  # the digest is that of the whole file, also under a limit
        return source.sha256, source.bytes


@dataclass(frozen=True)
class Range:
    """Some lines of a large file, for another process."""

    recipe: Recipe
    role: str
    path: str
    file: int
    start: int
    end: int
    folder: Path


@dataclass(frozen=True)
class Taken:
    """What became of a range; its lines still count from 1."""

    pieces: list[Piece]
    rows: int
    lines: int
    groups: set[str]


@without_pandas()
def read_range(job: Range) -> Taken:
    """Read the lines of a range into a file of the scratch folder."""
    item = next(item for item in plan_of(job.recipe).inputs() if item.role == job.role)
    spool = Spool(job.folder, f"{job.role}-{job.file}-{job.start}", file_piece=RANGE_BYTES)
    groups: set[str] = set()
    lines = 0
    of_range = blocks_of_url if remote.is_url(job.path) else blocks_of_range
    for block, count in of_range(job.path, job.file, job.start, job.end):
        groups |= _take(item, block, spool)
        lines += count
    spool.close()
    return Taken(spool.pieces, spool.rows, lines, groups)


def _in_ranges(ranges: Iterable[Taken], path: str, spool: Spool, groups: set[str]) -> tuple[str, int]:
    """One file, read by other processes; its digest, taken here meanwhile, and its size."""
    lines = 0
    with ThreadPoolExecutor(1) as beside:
        digest = beside.submit(_digest, path)
        try:
            for taken in ranges:
                spool.pieces += [replace(piece, first_line=lines) for piece in taken.pieces]
                spool.rows += taken.rows
                groups |= taken.groups
                lines += taken.lines
        except InputError as error:
            if error.line is None:
                raise
            raise InputError(error.what, file=error.file, line=error.line + lines, hint=error.hint) from None
        return digest.result(), _stamp(path)[0]


def _digest(path: str) -> str:
    if not remote.is_url(path):
        return file_digest(Path(path))
    with open_source(path) as source:
        while source.stream.read(1 << 20):
            pass
        return source.sha256


def _ranges(path: str) -> list[tuple[int, int]]:
    """Where a large plain file of JSON Lines can be cut; none where it cannot, or is small."""
    size = _stamp(path)[0]
    if path == "-" or size < 2 * RANGE_BYTES:
        return []
    with open_source(path) as source:
        if source.compressed or not is_json_lines(source):
            return []
    edges = [0]
    with remote.open_url(path, block=1 << 16) if remote.is_url(path) else Path(path).open("rb") as stream:
        while edges[-1] + RANGE_BYTES < size:
            stream.seek(edges[-1] + RANGE_BYTES)
            stream.readline()
            edges.append(stream.tell())
    return list(zip(edges, [*edges[1:], size], strict=True))


def _take(item: Input, block: Block, spool: Spool) -> set[str]:
    """Put the records of a block into the spool; the groups that were seen."""
    table = _kept(item, block) if item.read is None else item.read(block)
    keys = table.column("key").combine_chunks()
    bucket = (crc32(keys, fast=block.fast) >> 24).astype(np.int16)
    if keys.null_count:
        bucket[keys.is_null().to_numpy(zero_copy_only=False)] = NONE
    spool.add(table, bucket)
    if "group" not in table.column_names:
        return set()
    return set(pc.unique(table.column("group")).drop_null().to_pylist())


def _kept(item: Input, block: Block) -> pa.Table:
    """Records as they are, beside their keys."""
    key, path = item.key, block.path
    assert key is not None  # noqa: S101 -- a role has a key or reads columns
    texts: list[bytes] = []

    def keep(line: int, text: bytes) -> tuple[str, str | None]:
        texts.append(text)
        return key(path, line, text)

    keys = block.each(range(len(block)), keep, item.expected)
    return pa.table(
        {
            "key": pa.array([name for name, _ in keys], pa.string()),
            "group": pa.array([group for _, group in keys], pa.string()),
            "file": pa.array(np.full(len(keys), block.file, dtype=np.int32)),
            "line": pa.array(block.lines),
            "text": pa.array(texts, pa.binary()),
        }
    )


def _stamp(path: str) -> tuple[int, int | str]:
    if remote.is_url(path):
        return remote.stamp(path)
    try:
        found = os.stat(path)  # noqa: PTH116 -- the same call for a path that is gone
    except OSError:
        return (0, -1)
    return found.st_size, found.st_mtime_ns


def _partitions(rows: int) -> int:
    """How many partitions: a power of two that depends on the number of records alone."""
    count = 1
    while count < BUCKETS and rows > count * ROWS_A_PARTITION:
        count *= 2
    return count
