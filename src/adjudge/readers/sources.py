"""Opening an input: plain, gzip or zstandard, a file, a URL or standard input, with its digest taken on the way.

How much of anything is read before a file is refused stands here: `--max NAME=NUMBER` (or the environment variable
ADJUDGE_MAX_NAME, which workers inherit) raises or lowers a bound. Files behind a URL (`s3://…`, `gs://…`, `file://…`) come
through fsspec and the user's own filesystem package, whose errors all become one that names the URL.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from adjudge.errors import AdjudgeError, ConfigError, InputError

BOUNDS = {
    "line_mb": (64, "megabytes of one record, and so of one answer"),
    "document_mb": (2048, "megabytes of a file that is read whole: a JSON list or document, Parquet"),
    "unpacked_gb": (256, "gigabytes that a compressed file may unpack to"),
    "expansion": (1000, "times its size that a compressed file may unpack to, beyond the first 256 MB"),
    "blank_lines": (1_000_000, "blank lines in a row"),
    "models": (10_000, "models, or configurations and trials, in one run"),
    "raters": (10_000, "raters in one run, each a column of its samples"),
    "slices": (2_000, "values of a key that a run is sliced by"),
}
"""Every bound of the input: its number, and what it counts."""

_PREFIX = "ADJUDGE_MAX_"


def bound(name: str) -> int:
    """A bound: what the user said, or the one above."""
    text = os.environ.get(_PREFIX + name.upper())
    return BOUNDS[name][0] if text is None else _number(name, text)


def raise_bounds(settings: tuple[str, ...]) -> None:
    """Take over what the user says, as NAME=NUMBER each, for this process and its workers."""
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in BOUNDS:
            raise ConfigError(f"--max {setting!r}: there is no bound {name!r}; there are {', '.join(BOUNDS)}")
        os.environ[_PREFIX + name.upper()] = str(_number(name, text))


def refuse_many_slices(key: str, values: int) -> None:
    """A key with nearly as many values as there are records, such as an id, is none to slice by."""
    if values > bound("slices"):
        raise ConfigError(f"--slice {key}: the records have {values:,} values of it; {beyond('slices')}")


def beyond(name: str) -> str:
    """How a message ends that a bound was passed."""
    number, what = bound(name), BOUNDS[name][1]
    return f"at most {number:,} {what} (--max {name}=NUMBER raises it)"


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 10**12:
        raise ConfigError(f"--max {name}={text}: expected a whole number above 0")
    return int(text)


_URL = re.compile(r"[A-Za-z][\w+.-]*(::[A-Za-z][\w+.-]*)*://")
_VERSIONS = ("ETag", "etag", "version", "mtime", "LastModified", "last_modified", "updated")
"""Under these names packages say which content a path has now."""


def is_url(path: object) -> bool:
    """Whether a path is a URL and not a place in the local file system."""
    return isinstance(path, str) and _URL.match(path) is not None


def file_name(path: str) -> str:
    """The last part of a path; of a URL without its query, which may hold a signature."""
    return Path(path.partition("?")[0] if is_url(path) else path).name


def located(url: str) -> tuple[Any, str]:
    """The filesystem of a URL and the path in it; an InputError says what to install where either is missing."""
    try:
        fsspec: Any = import_module("fsspec")
    except ImportError:
        raise InputError("a URL needs fsspec: pip install 'adjudge[remote]'", file=url) from None
    protocol = url.partition("://")[0].rpartition("::")[2]
    try:
        system_and_path: tuple[Any, str] = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise InputError(f"{protocol}:// needs another package: {error}", file=url) from None
    except ValueError as error:
        hint = f"Install the package that provides {protocol}://, such as s3fs for s3://."
        raise InputError(f"cannot be opened: {error}.", file=url, hint=hint) from None
    except Exception as error:  # noqa: BLE001 -- packages raise kinds of their own, as for missing credentials
        raise InputError(f"cannot be opened: {said(error)}", file=url) from None
    return system_and_path


@contextmanager
def reading(url: str) -> Iterator[None]:
    """Turns what a filesystem raises while it reads into an InputError."""
    try:
        yield
    except AdjudgeError:
        raise
    except FileNotFoundError:
        raise InputError("there is no such file.", file=url) from None
    except IsADirectoryError:
        raise InputError("is a folder, expected a file", file=url) from None
    except Exception as error:  # noqa: BLE001 -- as in `located`
        raise InputError(f"cannot be read: {said(error)}", file=url) from None


def said(error: Exception) -> str:
    """The first line of an error's message, or its kind where it has none."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def open_url(url: str, *, block: int | None = None) -> BinaryIO:
    """A file for reading; `block` is how many bytes are fetched at a time."""
    system, path = located(url)
    with reading(url):
        options = {} if block is None else {"block_size": block}
        return cast("BinaryIO", _Remote(system.open(path, "rb", **options), url))


def fetch(url: str, start: int, end: int) -> bytes:
    """Some bytes of a file."""
    system, path = located(url)
    with reading(url):
        content: bytes = system.cat_file(path, start=start, end=end)
        return content


def stamp(url: str) -> tuple[int, str]:
    """The size of a file (0 where it is not told) and what tells this content from another."""
    system, path = located(url)
    with reading(url):
        system.invalidate_cache()
        details = system.info(path)
    version = next((str(details[name]) for name in _VERSIONS if details.get(name) is not None), "")
    return int(details.get("size") or 0), version


def matching(url: str) -> list[str]:
    """The files that a URL with `*`, `?` or `[…]` names, sorted; the URL itself where it has none of them."""
    if not re.search(r"[*\[]", url):
        return [url]
    system, path = located(url)
    with reading(url):
        urls = sorted(system.unstrip_protocol(name) for name in system.glob(path))
    if not urls:
        raise InputError("no file matches", file=url)
    return urls


class _Remote(io.RawIOBase):
    """An open remote file whose errors name it."""

    def __init__(self, file: Any, url: str) -> None:
        self._file, self._url = file, url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def readinto(self, buffer: Any) -> int:
        with reading(self._url):
            view = memoryview(buffer)
            data = self._file.read(len(view))
            view[: len(data)] = data
            return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with reading(self._url):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


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


def refuse_expansion(name: str, packed: int, unpacked: int) -> None:
    """Refuse an input of so many bytes that becomes so many more."""
    if unpacked > _UNPACKED_FREELY and unpacked > bound("expansion") * packed:
        raise InputError(f"unpacks to far more than its size; {beyond('expansion')}", file=name)


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
        refuse_expansion(self._name, self._tally.count, self._size)
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


BOM, JSON_LINES = b"\xef\xbb\xbf", "JSON Lines"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_DELIMITERS = ",;\t"


def format_of(source: Source) -> str:
    """What kind of file a source is, in words, told by content where the name does not say.

    A file of no known kind counts as JSON Lines, whose reader then names the line that it cannot read.
    """
    head = source.stream.peek(1 << 16)
    if head[:4] == b"PAR1":
        return "Parquet"
    if head[:2] in _UTF_16:
        hint = f"iconv -f UTF-16 -t UTF-8 {source.name} > again"
        raise InputError(f"is UTF-16 text, expected UTF-8 ({hint})", file=source.name)
    text = head.removeprefix(BOM).lstrip()
    line = text.partition(b"\n")[0].strip()
    if text[:1] == b"[":
        return "a JSON list"
    if text[:1] == b"{":  # a first line that is no whole value is the beginning of an indented document
        begun = line == b"{" or (not line.endswith(b"}") and len(line) < 200)
        return "one JSON document" if b"\n" in head and begun else JSON_LINES
    named = source.name.lower().removesuffix(".gz").removesuffix(".zst").endswith((".csv", ".tsv"))
    return "CSV" if text and (named or _looks_like_csv(head)) else JSON_LINES


def _looks_like_csv(head: bytes) -> bool:
    header = head.removeprefix(BOM).partition(b"\n")[0].decode("utf-8", "replace").strip()
    names = [name.strip().strip('"') for name in header.split(delimiter_of(header))]
    return len(names) > 1 and all(
        name and name.replace("_", "").replace(".", "").replace(" ", "").isalnum() for name in names
    )


def delimiter_of(header: str) -> str:
    """What separates the names of a header: the sign that most often does."""
    return max(_DELIMITERS, key=header.count)
