"""Members of a zip read into memory, bounded and checked; nothing is ever extracted to disk.

Deflate is the standard library's. It lists members of method 93 (Zstandard) but does not read them, so their bytes
are taken from behind the local header and go through PyArrow's stream.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, Self

import pyarrow as pa

from adjudge.errors import InputError

ZSTANDARD = 93
MOST_BYTES = 1 << 31
"""Of one member, unpacked."""
MOST_RATIO = 300
"""Unpacked to packed bytes, looked at from `RATIO_FROM` on: logs are repetitive, but not that repetitive."""
RATIO_FROM = 1 << 26
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")
_SIGNATURE = b"PK\x03\x04"


class Archive:
    """An open zip. Of members with the same name the last counts."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._stream: BinaryIO = Path(path).open("rb")  # noqa: SIM115 -- closed with the archive
        try:
            self._zip = zipfile.ZipFile(self._stream)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            self._stream.close()
            what = f"is a zip whose directory cannot be read ({error}): truncated, or still being written"
            raise InputError(what, file=path) from None
        self.members = {info.filename: info for info in self._zip.infolist()}
        for name in self.members:
            if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or name[1:2] == ":":
                self.close()
                raise InputError(f"member {name[:80]!r} points outside the log; nothing of it is read", file=path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
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
        if info.flag_bits & 1:
            raise self._refused(name, "is encrypted")
        try:
            data = self._zstandard(info) if info.compress_type == ZSTANDARD else self._deflate(info)
        except (zipfile.BadZipFile, NotImplementedError, zlib.error, EOFError, OSError, pa.ArrowInvalid) as error:
            raise self._refused(name, f"cannot be unpacked: {error}") from None
        if len(data) != size:
            raise self._refused(name, f"unpacks to {len(data):,} bytes where the directory says {size:,}")
        return data

    def _deflate(self, info: zipfile.ZipInfo) -> bytes:
        with self._zip.open(info) as stream:
            return stream.read(info.file_size + 1)

    def _zstandard(self, info: zipfile.ZipInfo) -> bytes:
        self._stream.seek(info.header_offset)
        header = self._stream.read(_LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size or not header.startswith(_SIGNATURE):
            raise zipfile.BadZipFile("there is no local header where the directory says")
        *_, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        self._stream.seek(name_length + extra_length, 1)
        packed = self._stream.read(info.compress_size)
        if len(packed) < info.compress_size:
            raise zipfile.BadZipFile("the file ends before the member does")
        if not info.file_size:
            return b""
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            data: bytes = stream.read(info.file_size + 1)
        if zlib.crc32(data) != info.CRC:
            raise zipfile.BadZipFile("its checksum is wrong")
        return data

    def _refused(self, name: str, what: str) -> InputError:
        return InputError(f"member {name[:80]!r} {what}", file=self.path)
