"""splits.json: which flights train, calibrate and test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from adjudge.errors import InputError
from adjudge.protocols.anomaly.rows import normal_id
from adjudge.protocols.anomaly.words import TEST, TRAIN, VAL

SPLITS = (TRAIN, VAL, TEST)


@dataclass(frozen=True)
class Splits:
    """Normal flight ids by split, as listed; `notes` says which aliases were accepted."""

    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def of(self, split: str) -> tuple[str, ...]:
        """The flights of one split."""
        found: tuple[str, ...] = getattr(self, split)
        return found

    def content(self) -> dict[str, list[str]]:
        """As it stands in the run, under the documented keys."""
        return {f"{split}_flights": list(self.of(split)) for split in SPLITS}


def read_splits(path: Path) -> Splits:
    """The splits of a file; a missing or unknown key is an error that says which."""
    try:
        data = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except msgspec.DecodeError as error:
        raise InputError(f"is not JSON: {error}", file=str(path)) from None
    return parse_splits(data, str(path))


def parse_splits(data: object, where: str) -> Splits:
    """Splits from decoded JSON."""
    if not isinstance(data, dict):
        raise InputError(
            f"expected an object with train_flights, val_flights, test_flights, found {type(data).__name__}", file=where
        )
    found: dict[str, tuple[str, ...]] = {}
    notes = []
    known = set()
    for split in SPLITS:
        keys = [key for key in (f"{split}_flights", split, f"{split}_ids") if key in data]
        if not keys:
            raise InputError(
                f"has no key '{split}_flights' (it has {', '.join(map(str, data)) or 'none'}).",
                file=where,
                hint=f"'{split}' and '{split}_ids' are accepted too.",
            )
        if len(keys) > 1:
            raise InputError(f"has both {keys[0]!r} and {keys[1]!r}; keep one", file=where)
        known.add(keys[0])
        if keys[0] != f"{split}_flights":
            notes.append(f"{keys[0]!r} was read as '{split}_flights'")
        ids = data[keys[0]]
        if not isinstance(ids, list) or not all(isinstance(item, str | int | float) for item in ids):
            raise InputError(f"{keys[0]!r} is no list of flight ids", file=where)
        found[split] = tuple(normal_id(item) for item in ids)
    return Splits(found[TRAIN], found[VAL], found[TEST], tuple(notes))
