"""Members of a zip read into memory, bounded and checked; nothing is ever extracted to disk.

The standard library reads the directory. It would not unpack members of method 93 (Zstandard), so the bytes of every member
are taken from behind its local header: zlib unpacks deflate, PyArrow's stream Zstandard.
"""

from __future__ import annotations

import functools
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Self

import pyarrow as pa

from adjudge.errors import InputError

ZSTANDARD = 93
MOST_BYTES = 1 << 31
"""Of one member, unpacked."""
MOST_RATIO = 300
"""Unpacked to packed bytes, of a member and of all that are read, from `RATIO_FROM` on: logs are not that repetitive."""
RATIO_FROM = 1 << 26
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")
_SIGNATURE = b"PK\x03\x04"
_ENCRYPTED = 1
_NO_HEADER = -15  # zlib's word for deflate without a header of its own


class Archive:
    """An open zip. Of members with the same name the last counts."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._stream: BinaryIO = Path(path).open("rb")  # noqa: SIM115 -- closed with the archive
        try:
            status = os.fstat(self._stream.fileno())
            self._most_together = max(MOST_RATIO * status.st_size, RATIO_FROM)
            self._together = 0
            self.members = _directory(path, status.st_size, status.st_mtime_ns)
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def read(self, name: str) -> bytes:
        """The unpacked bytes of a member; one that is too large, damaged or packed in another way is refused by name."""
        info = self.members[name]
        size, packed = info.file_size, info.compress_size
        if size > MOST_BYTES:
            raise self._refused(name, f"unpacks to {size:,} bytes, more than the {MOST_BYTES:,} that are read")
        if size > RATIO_FROM and size > MOST_RATIO * max(packed, 1):
            raise self._refused(name, f"unpacks to {size:,} bytes from {packed:,}: more than {MOST_RATIO} times")
        self._together += size
        if self._together > self._most_together:
            what = f"and those before it unpack to {self._together:,} bytes, more than the {self._most_together:,} of such a zip"
            raise self._refused(name, what)
        if info.flag_bits & _ENCRYPTED:
            raise self._refused(name, "is encrypted")
        try:
            data = self._unpacked(info)
        except (zipfile.BadZipFile, zlib.error, OSError, pa.ArrowInvalid) as error:
            raise self._refused(name, f"cannot be unpacked: {error}") from None
        if len(data) != size:
            raise self._refused(name, f"unpacks to {len(data):,} bytes where the directory says {size:,}")
        if zlib.crc32(data) != info.CRC:
            raise self._refused(name, "cannot be unpacked: its checksum is wrong")
        return data

    def _unpacked(self, info: zipfile.ZipInfo) -> bytes:
        """The bytes of a member, at most one more than the directory says."""
        packed = self._packed(info)
        if info.compress_type == zipfile.ZIP_STORED:
            return packed
        if info.compress_type == zipfile.ZIP_DEFLATED:
            return zlib.decompressobj(_NO_HEADER).decompress(packed, info.file_size + 1)
        if info.compress_type != ZSTANDARD:
            raise zipfile.BadZipFile(f"it is packed by method {info.compress_type}, which is not read")
        if not info.file_size:
            return b""
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            data: bytes = stream.read(info.file_size + 1)
        return data

    def _packed(self, info: zipfile.ZipInfo) -> bytes:
        self._stream.seek(info.header_offset)
        header = self._stream.read(_LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size or not header.startswith(_SIGNATURE):
            raise zipfile.BadZipFile("there is no local header where the directory says")
        *_, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        self._stream.seek(name_length + extra_length, os.SEEK_CUR)
        packed = self._stream.read(info.compress_size)
        if len(packed) < info.compress_size:
            raise zipfile.BadZipFile("the file ends before the member does")
        return packed

    def _refused(self, name: str, what: str) -> InputError:
        return InputError(f"member {name[:80]!r} {what}", file=self.path)


@functools.lru_cache(maxsize=1)
def _directory(path: str, size: int, changed: int) -> Mapping[str, zipfile.ZipInfo]:
    """The members by name, kept for the next opening of a file of the same size and time; refused where one points outside."""
    del size, changed
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error):
        what = "is a zip whose directory, at its end, cannot be read: truncated, or still being written."
        raise InputError(what, file=path, hint="Copy it again, or wait until its evaluation has ended.") from None
    for name in members:
        if name.startswith(("/", "\\")) or name[1:2] == ":" or ".." in name.replace("\\", "/").split("/"):
            raise InputError(f"member {name[:80]!r} points outside the log; nothing of it is read", file=path)
    return members
