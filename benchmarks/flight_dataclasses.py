"""Another yardstick: the same evaluator with a dataclass per atom, its records written by the standard library's json."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import flight_objects


def run(outputs: Path, reference: Path, records: Path) -> int:
    """Judge every line of the outputs and write one JSON record a line; the number of samples."""
    for name in ("Meta", "Atom", "Record"):
        fields = [field.name for field in msgspec.structs.fields(getattr(flight_objects, name))]
        setattr(flight_objects, name, dataclasses.make_dataclass(name, fields))
    return flight_objects.run(outputs, reference, records, _encode)


def _encode(record: Any) -> bytes:
    return json.dumps(dataclasses.asdict(record)).encode()
