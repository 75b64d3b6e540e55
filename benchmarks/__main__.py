"""`python -m benchmarks NAME …` runs benchmarks/NAME.py; without a name, the speed table of all jobs."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path


def names() -> list[str]:
    """Every module of this folder that is a benchmark; `flight_data` is a part of `flight`."""
    found = sorted(file.stem for file in Path(__file__).parent.glob("*.py") if not file.stem.startswith("_"))
    return [name for name in found if not any(name.startswith(f"{other}_") for other in found)]


def main(argv: list[str]) -> int:
    named = bool(argv) and not argv[0].startswith("-")
    if named and argv[0] not in names():
        print(f"benchmark {argv[0]!r} is not one of {', '.join(names())}", file=sys.stderr)
        return 2
    # One core: BLAS threads that wait do so by spinning, which counts as CPU seconds of whoever called last.
    for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    # As for a user: without its bytecode every process would compile the package anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    module = argv[0] if named else "_results"
    return int(importlib.import_module(f"benchmarks.{module}").main(argv[1:] if named else argv))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
