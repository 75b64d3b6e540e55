"""New files: one with its size and digest taken on the way, and one that is whole or absent."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from adjudge.errors import OutputError
from adjudge.provenance.manifest import RunFile

_BUFFER = 1 << 18


class NewFile(io.RawIOBase):
    """A new file; what stood there before is gone."""

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, 0
        self._stream = path.open("wb", buffering=_BUFFER)
        self._hash = hashlib.sha256()

    def writable(self) -> bool:
        """It is there to be written."""
        return True

    def write(self, data: Any) -> int:
        """Append bytes."""
        self._hash.update(data)
        self.size += len(data)
        return self._stream.write(data)

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._stream.close()
        super().close()

    def listed(self, name: str) -> RunFile:
        """How the manifest lists it."""
        return RunFile(path=name, bytes=self.size, sha256=self._hash.hexdigest())


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file that appears, or replaces another, when it is whole and on the disk; a device or a pipe is written to."""
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as stream:
                yield stream
            return
        place = path.resolve()
        part = place.with_name(f".{secrets.token_hex(8)}.part")
        try:
            with part.open("xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in place when it is whole."""
    with whole_file(path) as stream:
        stream.write(data)
