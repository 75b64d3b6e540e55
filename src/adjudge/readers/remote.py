"""Files behind a URL (`s3://…`, `gs://…`, `file://…`), through fsspec and the user's own filesystem package.

fsspec opens whatever protocol some installed package provides. Each package raises errors of its own kinds; they all
become one that names the URL.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

from adjudge.errors import AdjudgeError, InputError

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
