"""A file that knows its digest."""

from __future__ import annotations

from pathlib import Path

from adjudge.provenance.canonical import file_digest
from adjudge.runs.tables import NewFile


def test_size_and_digest_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_bytes(b"what stood here before" * 100)
    with NewFile(path) as file:
        for piece in (b"", b"a", b"xyz" * 300_000, b"end"):
            assert file.write(piece) == len(piece)
    assert path.read_bytes() == b"a" + b"xyz" * 300_000 + b"end"
    listed = file.listed("evidence/it")
    assert (listed.path, listed.bytes, listed.sha256) == ("evidence/it", path.stat().st_size, file_digest(path))
