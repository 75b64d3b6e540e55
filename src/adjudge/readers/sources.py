"""Opening an input: plain, gzip or zstandard, a file, a URL or standard input, with its digest taken on the way."""

from __future__ import annotations

import difflib
import hashlib
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from adjudge.errors import InputError
from adjudge.readers.bounds import beyond, bound
from adjudge.readers.remote import is_url, open_url

_BLOCK = 1 << 20
_UNPACKED_FREELY = 1 << 28
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class _Tally(io.RawIOBase):
    """A raw stream that counts and hashes what is read from it."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._hash = hashlib.sha256()
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        got = cast("io.BufferedIOBase", self._raw).readinto(view)
        self._hash.update(view[:got])
        self.count += got
        return got

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


class Source:
    """An open input: `stream` gives the decompressed bytes; `bytes` and `sha256` are those of the file, once read.

    `decimal_commas` counts cells of CSV such as `0,5` that are read as `0.5`; while it is None they are left as they are.
    """

    def __init__(self, name: str, tally: _Tally, stream: io.BufferedReader[Any], *, compressed: bool) -> None:
        self.name, self._tally, self.stream, self.compressed = name, tally, stream, compressed
        self.decimal_commas: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes of the file read so far."""
        return self._tally.count

    @property
    def sha256(self) -> str:
        """Digest of the file as far as it was read."""
        return self._tally.hexdigest()


def whole(source: Source) -> bytes:
    """All of the decompressed bytes of an input, where they are not too many; memory is taken as they come."""
    most = bound("document_mb") << 20
    data = io.BytesIO()
    while piece := source.stream.read(_BLOCK):
        data.write(piece)
        if data.tell() > most:
            raise InputError(f"is too large to be read whole; {beyond('document_mb')}", file=source.name)
    return data.getvalue()


@contextmanager
def open_source(path: str) -> Iterator[Source]:
    """Open a path, a URL, or standard input for `-`; whether it is compressed is told by content, not by name."""
    raw = _open_raw(path)
    tally = _Tally(raw)
    stream: io.BufferedReader[Any] = io.BufferedReader(tally, _BLOCK)
    try:
        head = stream.peek(4)[:4]
        compressed = head.startswith(_GZIP) or head == _ZSTD
        if compressed:
            codec = "zstd" if head == _ZSTD else "gzip"
            unpacked = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), codec)
            stream = io.BufferedReader(_Unpacked(unpacked, path, tally), _BLOCK)
        yield Source(path, tally, stream, compressed=compressed)
    finally:
        if raw is not sys.stdin.buffer:
            raw.close()


class _Unpacked(io.RawIOBase):
    """A decompressing stream whose errors name the file."""

    def __init__(self, stream: pa.NativeFile, name: str, tally: _Tally) -> None:
        self._stream, self._name, self._tally, self._size = stream, name, tally, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        try:
            data = self._stream.read(len(view))
        except OSError as error:
            raise InputError(f"cannot be decompressed: {error}", file=self._name) from None
        self._size += len(data)
        if self._size > _UNPACKED_FREELY and self._size > bound("expansion") * self._tally.count:
            raise InputError(f"unpacks to far more than its size; {beyond('expansion')}", file=self._name)
        if self._size > bound("unpacked_gb") << 30:
            raise InputError(f"unpacks to too much; {beyond('unpacked_gb')}", file=self._name)
        view[: len(data)] = data
        return len(data)


def _open_raw(path: str) -> BinaryIO:
    if path == "-":
        return sys.stdin.buffer
    if is_url(path):
        return open_url(path)
    try:
        return Path(path).open("rb", buffering=0)  # read through a buffer of our own
    except FileNotFoundError:
        raise InputError("there is no such file.", file=path, hint=_nearby(path)) from None
    except IsADirectoryError:
        raise InputError("is a folder, expected a file", file=path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from None


def _nearby(path: str) -> str | None:
    folder = Path(path).parent
    if not folder.is_dir():
        return f"The folder {folder} does not exist."
    names = [entry.name for entry in folder.iterdir()]
    close = difflib.get_close_matches(Path(path).name, names, n=1)
    return f"Did you mean {folder / close[0]}?" if close else None
