"""A file that is written from front to back, with its size and digest taken on the way."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import TracebackType
from typing import Self

from adjudge.provenance.manifest import RunFile

_BUFFER = 1 << 18


class NewFile:
    """A new file; what stood there before is gone."""

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, 0
        self._stream = path.open("wb", buffering=_BUFFER)
        self._hash = hashlib.sha256()

    def write(self, data: bytes | memoryview) -> int:
        """Append bytes."""
        self._hash.update(data)
        self.size += len(data)
        return self._stream.write(data)

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._stream.close()

    def listed(self, name: str) -> RunFile:
        """How the manifest lists it."""
        return RunFile(path=name, bytes=self.size, sha256=self._hash.hexdigest())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
