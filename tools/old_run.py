"""Make small runs of three protocols, to be kept as fixtures: later versions must still verify them.

    python tools/old_run.py tests/engine/old_runs

A folder named by the version that made them is added; existing ones are never made anew.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import adjudge
from adjudge.protocols.base import protocol

SAMPLES = 12
PROTOCOLS = ("flight", "triage", "consistency")


def main(folder: Path) -> None:
    """One run a protocol, from the first samples of its example."""
    target = folder.resolve() / version("adjudge")
    for name in PROTOCOLS:
        with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
            config = protocol(name).example(Path(), 1)
            if config is not None:
                adjudge.evaluate(name, {**config, "resamples": 200}, out=target / name, limit=SAMPLES, report=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
