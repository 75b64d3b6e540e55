"""A file that is written from front to back, with its size and digest taken on the way."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

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
