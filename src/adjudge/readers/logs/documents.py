"""JSON of other tools' logs as typed values: tolerant of unknown keys, strict about what is read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from adjudge.errors import InputError
from adjudge.readers.characters import mended
from adjudge.readers.settings import in_words
from adjudge.readers.sources import open_source, whole

T = TypeVar("T")


def decoded(data: bytes, kind: type[T], path: str, member: str | None = None) -> T:
    """A value of a type; NaN and Infinity as Python writes them, and halves of a surrogate pair as U+FFFD, are read too."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.ValidationError, UnicodeError, RecursionError) as error:
        if isinstance(error, msgspec.ValidationError) or not (b"NaN" in data or b"Infinity" in data):
            raise _refused(error, path, member) from None
    except msgspec.DecodeError as error:
        data, what = mended(data)
        if not (what or b"NaN" in data or b"Infinity" in data):
            raise _refused(error, path, member) from None
    try:
        return msgspec.convert(json.loads(data), kind)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise _refused(error, path, member) from None


def decoded_file(path: str, kind: type[T], check: Callable[[bytes], None] | None = None) -> T:
    """A whole file as one value; `check` may refuse its bytes first."""
    with open_source(path) as source:
        data = whole(source).removeprefix(b"\xef\xbb\xbf")
    if check is not None:
        check(data)
    return decoded(data, kind, path)


def lines_of(path: str) -> Iterator[tuple[int, bytes]]:
    """(number, JSON) of every line that is not blank."""
    with open_source(path) as source:
        for number, line in enumerate(source.stream, 1):
            text = line.removeprefix(b"\xef\xbb\xbf").strip()
            if text:
                yield number, text


def decoded_lines(path: str, kind: type[T]) -> Iterator[tuple[int, T]]:
    """(number, value) of every line."""
    decoder = msgspec.json.Decoder(kind)
    for number, text in lines_of(path):
        try:
            yield number, decoder.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            try:
                yield number, decoded(text, kind, path)
            except InputError as error:
                raise InputError(error.what, file=path, line=number) from None


def beside(path: str, name: str, kind: type[T]) -> T | None:
    """A file of another name in the same folder, None where there is none."""
    file = Path(path).parent / name
    return decoded_file(str(file), kind) if file.is_file() else None


def _refused(error: Exception, path: str, member: str | None) -> InputError:
    where = "" if member is None else f"member {member!r} "
    what = "is not of the expected shape: " if isinstance(error, msgspec.ValidationError) else "is not JSON: "
    return InputError(f"{where}{what}{in_words(error)}", file=path)


def number_of(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
