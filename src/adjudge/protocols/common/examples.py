"""Example data, written as JSON Lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from adjudge.errors import OutputError


def write_examples(
    folder: Path, files: Mapping[str, Iterable[Any]], *, force: bool, otherwise: str = "--force replaces it"
) -> list[Path]:
    """Write the rows of each file; one that exists is replaced by `force` alone, `otherwise` says what to do."""
    paths = [folder / name for name in files]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, rows in zip(paths, files.values(), strict=True):
            if path.exists() and not force:
                raise OutputError(f"{path} exists already; {otherwise}")
            path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from None
    return paths
