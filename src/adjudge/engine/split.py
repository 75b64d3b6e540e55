"""Cutting the input into partitions by hash of the key, in bounded memory.

Records go to 256 buckets by the first bits of a CRC of their id, held in memory until there are too many bytes, then
appended to files. A partition is a run of buckets; how many there are depends on the number of records alone, so the
order of the input, the number of workers and the number of files change nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from adjudge.errors import InputError
from adjudge.protocols.base import Input
from adjudge.provenance.manifest import InputFile
from adjudge.readers.records import records
from adjudge.readers.sources import open_source

BUCKETS = 256
ROWS_A_PARTITION = 16_384
BYTES_IN_MEMORY = 64 << 20


@dataclass(frozen=True)
class Row:
    """One record of an input: its JSON, and the file and line it came from."""

    file: int
    line: int
    text: bytes


@dataclass(frozen=True)
class Slice:
    """The records of one role in one partition: files to read, then bytes held in memory."""

    paths: tuple[Path, ...]
    held: tuple[bytes, ...]

    def rows(self) -> Iterator[Row]:
        """The records, in the order they were read."""
        for block in (*(path.read_bytes() for path in self.paths), *self.held):
            for record in block.split(b"\n")[:-1]:
                place, _, text = record.partition(b"\t")
                file, _, line = place.partition(b" ")
                yield Row(int(file), int(line), text)


@dataclass
class Split:
    """The whole input, cut. `groups` are all second parts of the keys (for flight, the models)."""

    roles: tuple[str, ...]
    partitions: list[dict[str, Slice]]
    groups: tuple[str, ...]
    files: tuple[str, ...]
    inputs: list[InputFile]
    rows: dict[str, int]


@dataclass
class _Buckets:
    """The buckets of one role."""

    folder: Path
    role: str
    held: list[list[bytes]] = field(default_factory=lambda: [[] for _ in range(BUCKETS)])
    spilled: set[int] = field(default_factory=set)
    rows: int = 0

    def path(self, bucket: int) -> Path:
        return self.folder / f"{self.role}-{bucket:03d}"

    def spill(self) -> None:
        for bucket, parts in enumerate(self.held):
            if parts:
                with self.path(bucket).open("ab") as stream:
                    stream.write(b"".join(parts))
                self.spilled.add(bucket)
                parts.clear()

    def slice(self, buckets: range) -> Slice:
        return Slice(
            tuple(self.path(bucket) for bucket in buckets if bucket in self.spilled),
            tuple(b"".join(self.held[bucket]) for bucket in buckets if self.held[bucket]),
        )


def split(
    inputs: Sequence[Input],
    folder: Path,
    *,
    limit: int | None = None,
    bytes_in_memory: int = BYTES_IN_MEMORY,
    progress: Callable[[int], None] | None = None,
) -> Split:
    """Read every input once and cut it. `limit` keeps the first records of each file of a role that is `limited`."""
    buckets = {item.role: _Buckets(folder, item.role) for item in inputs}
    groups: set[str] = set()
    names: list[str] = []
    read: list[InputFile] = []
    held = 0
    for item in inputs:
        own = buckets[item.role]
        for path in item.paths:
            number = len(names)
            names.append(path)
            with open_source(path) as source:
                count = 0
                for line, text in records(source):
                    if limit is not None and item.limited and count >= limit:
                        break
                    key, group = _key(item, path, line, text)
                    if group is not None:
                        groups.add(group)
                    record = b"%d %d\t%b\n" % (number, line, text)
                    own.held[zlib.crc32(key.encode()) * BUCKETS >> 32].append(record)
                    count += 1
                    held += len(record)
                    if held > bytes_in_memory:
                        for each in buckets.values():
                            each.spill()
                        held = 0
                        if progress is not None:
                            progress(count)
                own.rows += count
                while source.stream.read(1 << 20):
                    pass  # the digest is that of the whole file, also under a limit
                read.append(InputFile(role=item.role, name=Path(path).name, bytes=source.bytes, sha256=source.sha256))
    rows = {role: own.rows for role, own in buckets.items()}
    count = _partitions(max(rows.values(), default=0))
    step = BUCKETS // count
    return Split(
        roles=tuple(buckets),
        partitions=[
            {role: own.slice(range(index * step, (index + 1) * step)) for role, own in buckets.items()}
            for index in range(count)
        ],
        groups=tuple(sorted(groups)),
        files=tuple(names),
        inputs=read,
        rows=rows,
    )


def _partitions(rows: int) -> int:
    """How many partitions: a power of two that depends on the number of records alone."""
    count = 1
    while count < BUCKETS and rows > count * ROWS_A_PARTITION:
        count *= 2
    return count


def _key(item: Input, path: str, line: int, text: bytes) -> tuple[str, str | None]:
    try:
        return item.key(path, line, text)
    except msgspec.ValidationError as error:
        raise InputError(f"{error}; {item.expected}", file=path, line=line) from None
    except msgspec.DecodeError as error:
        raise InputError(f"is not JSON: {error}; {item.expected}", file=path, line=line) from None
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8: {error}", file=path, line=line) from None
    except RecursionError:
        raise InputError("is nested too deep to be read", file=path, line=line) from None
