"""From a file to blocks of records: lines of JSON with their line numbers, whatever the file's format.

The type that a role's records are decoded into tells which keys of the input nobody reads.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedIOBase
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import inspect
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.readers.characters import mended
from adjudge.readers.records import AS_IT_IS, Shape, records
from adjudge.readers.settings import in_words
from adjudge.readers.sources import BOM, JSON_LINES, Source, beyond, bound, format_of

T = TypeVar("T")

BLOCK_BYTES = 1 << 21
_BLOCK_ROWS = 2048
_NEWLINE, _OPENS, _CLOSES = b"\n{}"


@dataclass
class Block:
    """Some records of one file: `data` has a record a line, and `lines` says where in the file each of them stands.

    `mended` are the lines whose characters had to be replaced before they could be read, and what was replaced.
    """

    path: str
    file: int
    data: bytes
    lines: NDArray[np.int64]
    mended: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    def records(self) -> list[bytes]:
        """The JSON of every record."""
        return self.data.split(b"\n") if len(self.lines) else []

    def some_records(self, rows: Sequence[int]) -> list[bytes]:
        """The JSON of some records."""
        place = np.array(rows, dtype=np.intp)
        edges = np.concatenate([[-1], self.breaks, [len(self.data)]])
        return [
            self.data[low + 1 : high]
            for low, high in zip(edges[place].tolist(), edges[place + 1].tolist(), strict=True)
        ]

    @cached_property
    def breaks(self) -> NDArray[np.int64]:
        """Where a line ends and another begins."""
        return np.flatnonzero(np.frombuffer(self.data, dtype=np.uint8) == _NEWLINE)

    @cached_property
    def longest(self) -> int:
        """The bytes of the longest record."""
        return int(np.diff(self.breaks, prepend=-1, append=len(self.data)).max()) - 1

    @cached_property
    def is_objects(self) -> bool:
        """Whether every line is one object, and none goes over two lines, as far as their first and last bytes tell."""
        letters, breaks = np.frombuffer(self.data, dtype=np.uint8), self.breaks
        return (
            self.data[:1] == b"{"
            and self.data[-1:] == b"}"
            and len(breaks) == len(self) - 1
            and bool((letters[breaks - 1] == _CLOSES).all() and (letters[breaks + 1] == _OPENS).all())
        )

    def _replace(self, records: list[bytes]) -> None:
        """Put other bytes in the place of the records."""
        self.data = b"\n".join(records)
        for name in ("breaks", "longest"):
            vars(self).pop(name, None)

    def decode(
        self,
        decoder: msgspec.json.Decoder[T],
        expected: str,
        loose: Callable[[int, bytes], T] | None = None,
        unreadable: Callable[[bytes, Exception], T] | None = None,
    ) -> list[T]:
        """Every record as the decoder's type.

        A record of another shape goes to `loose(line, json)`, which reads it in another way or raises. One that nobody
        can read is an InputError with its line, to which `expected` is added; or what `unreadable(json, error)` gives.
        """
        if self.is_objects:  # so the decoder cannot see more or fewer records than we do
            try:
                rows = decoder.decode_lines(self.data)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                pass  # read line by line, to name the line or to read it in another way
            else:
                if len(rows) == len(self):
                    return rows

        def read(line: int, record: bytes) -> T:
            try:
                return decoder.decode(record)
            except msgspec.ValidationError:
                if loose is None:
                    raise
                return loose(line, record)

        return self.each(read, expected, unreadable)

    def each(
        self,
        read: Callable[[int, bytes], T],
        expected: str,
        unreadable: Callable[[bytes, Exception], T] | None = None,
    ) -> list[T]:
        """What `read(line, json)` makes of every record; for one that it cannot read, an InputError or `unreadable`."""
        records = self.records()
        rows = []
        for place, line in enumerate(self.lines.tolist()):
            try:
                rows.append(self._read(read, line, place, records))
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                if unreadable is None:
                    raise InputError(what_is_wrong(error, expected), file=self.path, line=line) from None
                rows.append(unreadable(records[place], error))
        if self.mended:
            self._replace(records)
        return rows

    def _read(self, read: Callable[[int, bytes], T], line: int, place: int, records: list[bytes]) -> T:
        """One record; where its characters have to be mended for it, it is so in `records` too."""
        try:
            return read(line, records[place])
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeError):
            again, what = mended(records[place])
            if not what:
                raise
            records[place], self.mended[line] = again, what
            return read(line, again)


def what_is_wrong(error: Exception, expected: str) -> str:
    """Why a record cannot be read, in words."""
    if isinstance(error, RecursionError):
        return "is nested too deep to be read"
    more = f"; {expected}" if expected else ""
    return f"{'' if isinstance(error, msgspec.ValidationError) else 'is not JSON: '}{in_words(error)}{more}"


def blocks(source: Source, file: int, shape: Shape, *, limit: int | None = None) -> Iterator[Block]:
    """The records of a source in order, at most `limit`; blank lines are none. A source without any is refused."""
    if shape is AS_IT_IS and format_of(source) == JSON_LINES:
        pieces: Iterator[Block] = (block for block, _ in blocks_of_lines(source.stream, source.name, file, first=True))
    else:
        pieces = _rewritten(source, file, shape)
    left, empty = limit, True
    for block in pieces:
        empty = empty and not len(block)
        kept = block if left is None or len(block) <= left else _first(block, left)
        if len(kept):
            yield kept
        if left is not None:
            left -= len(kept)
            if left == 0:
                return
    if empty:
        raise InputError("is empty; expected one record a line", file=source.name)


def blocks_of_lines(stream: BufferedIOBase, path: str, file: int, *, first: bool) -> Iterator[tuple[Block, int]]:
    """Blocks of JSON Lines, each with the number of its lines; they count from 1. `first`: the file begins here."""
    line, blank = 1, 0
    buffer = memoryview(bytearray(BLOCK_BYTES))
    while size := stream.readinto(buffer):
        if buffer[size - 1] == _NEWLINE:
            data = bytes(buffer[: size - 1])
        else:  # up to the end of its last line, however long
            data = b"".join([buffer[:size], _rest_of_line(stream, path, line)])
        if first and line == 1:
            data = data.removeprefix(BOM)
        block, count = _of_lines(path, file, data, line)
        blank = 0 if len(block) else blank + count
        if blank > bound("blank_lines"):
            raise InputError(f"has only blank lines here; {beyond('blank_lines')}", file=path, line=line)
        yield block, count
        line += count


def _rest_of_line(stream: BufferedIOBase, path: str, line: int) -> bytes:
    """What is left of a line; one that does not end is refused."""
    most = bound("line_mb") << 20
    rest = stream.readline(most)
    if len(rest) == most and not rest.endswith(b"\n"):
        what = f"here or soon after, a line is too long; {beyond('line_mb')}. Is this one record a line?"
        raise InputError(what, file=path, line=line)
    return rest.removesuffix(b"\n")


def _of_lines(path: str, file: int, data: bytes, line: int) -> tuple[Block, int]:
    """A block of whole lines, of which blank ones are no records; and how many lines it has."""
    block = Block(path, file, data, np.zeros(0, dtype=np.int64))
    count = len(block.breaks) + 1
    block.lines = lines = np.arange(line, line + count)
    if not block.is_objects:
        texts = [text.strip(b" \t\r") for text in data.split(b"\n")]
        kept = [place for place, text in enumerate(texts) if text]
        block = Block(path, file, b"\n".join([texts[place] for place in kept]), lines[kept])
    return _in_utf8(block), count


def _in_utf8(block: Block) -> Block:
    """The block with every character that is none replaced: a reader that skips what it does not want would not notice."""
    edges = pa.py_buffer(np.array([0, len(block.data)], dtype=np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, edges, pa.py_buffer(block.data)]).validate(full=True)
    except pa.ArrowInvalid:
        texts = block.records()
        for place, text in enumerate(texts):
            try:
                text.decode()
            except UnicodeDecodeError:
                texts[place], block.mended[int(block.lines[place])] = mended(text)
        return Block(block.path, block.file, b"\n".join(texts), block.lines, block.mended)
    return block


def _rewritten(source: Source, file: int, shape: Shape) -> Iterator[Block]:
    """Any other format, record by record as JSON."""
    source.decimal_commas = 0
    rows = records(source, shape)
    while block_rows := list(itertools.islice(rows, _BLOCK_ROWS)):
        yield _in_utf8(block_of(block_rows, source.name, file))


def block_of(rows: Iterable[tuple[int, bytes]], path: str = "", file: int = 0) -> Block:
    """Records that are at hand as a block."""
    rows = list(rows)
    lines: NDArray[Any] = np.array([line for line, _ in rows], dtype=np.int64)
    return Block(path, file, b"\n".join([record for _, record in rows]), lines)


def _first(block: Block, rows: int) -> Block:
    return Block(block.path, block.file, b"\n".join(block.records()[:rows]), block.lines[:rows], block.mended)


KeyTree = Mapping[str, Any]
"""The keys that are read; the value is the tree of a nested object, or None where all of it is read."""

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])


def tree_of(kind: Any) -> KeyTree | None:
    """The keys that decoding into a type reads; None where the type takes any keys."""
    return kind if isinstance(kind, Mapping) else _tree(inspect.type_info(kind))


def merged(*trees: KeyTree | None) -> KeyTree | None:
    """The keys that any of some types read, where each record is one of them."""
    known: dict[str, Any] = {}
    for tree in trees:
        if tree is None:
            return None
        for name, inner in tree.items():
            known[name] = merged(known[name], inner) if name in known else inner
    return known


@dataclass(frozen=True)
class Keys:
    """The keys that are read, and a decoder that takes no others: for records that have no others it is quick."""

    tree: KeyTree
    strict: msgspec.json.Decoder[Any]

    @classmethod
    def of(cls, kind: Any) -> Keys | None:
        """The keys of a type or a tree; None where any key is read."""
        tree = tree_of(kind)
        return None if tree is None else cls(tree, msgspec.json.Decoder(_strict(tree)))


def unread_keys(records: Sequence[bytes], keys: Keys) -> Counter[str]:
    """In how many records each key stands that nobody reads, nested ones with dots; null is nothing to read."""
    counts: Counter[str] = Counter()
    try:
        keys.strict.decode_lines(b"\n".join(records))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        known = keys.tree  # somewhere there is another key, or a value of another kind
    else:
        return counts
    for record in records:
        unread: set[str] = set()
        try:
            _look(record, known, "", unread)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue  # whoever reads the record says what is wrong with it
        counts.update(unread)
    return counts


def _look(text: bytes, known: KeyTree, prefix: str, unread: set[str]) -> None:
    """Note the unread keys of the objects in a JSON text; what nobody asks for in them is passed over."""
    if text[:1] == b"[":
        for item in _LIST.decode(text):
            _look(bytes(item), known, prefix, unread)
    elif text[:1] == b"{":
        values = _OBJECT.decode(text)
        for name, value in values.items():
            if name not in known:
                if bytes(value) != b"null":
                    unread.add(prefix + name)
            elif (nested := known[name]) is not None:
                _look(bytes(value), nested, f"{prefix}{name}.", unread)


def _strict(tree: KeyTree) -> Any:
    """A struct of these keys alone, nested ones too; their values are passed over."""
    fields: list[tuple[str, Any, Any]] = []
    for place, inner in enumerate(tree.values()):
        if inner is None:
            fields.append((f"f{place}", msgspec.Raw, msgspec.Raw(b"")))
        else:
            nested = _strict(inner)
            fields.append((f"f{place}", nested | list[nested] | None, None))  # type: ignore[valid-type]
    names = {f"f{place}": name for place, name in enumerate(tree)}
    return msgspec.defstruct("Strict", fields, rename=names, forbid_unknown_fields=True, gc=False)


def _tree(kind: inspect.Type) -> KeyTree | None:
    if isinstance(kind, inspect.StructType):
        return {field.encode_name: _tree(field.type) for field in kind.fields}
    if isinstance(kind, inspect.UnionType):
        trees = [_tree(one) for one in kind.types if isinstance(one, inspect.StructType | inspect.ListType)]
        return merged(*trees) if trees else None
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return _tree(kind.item_type)
    return None
