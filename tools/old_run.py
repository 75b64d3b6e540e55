"""Make small runs of some protocols, to be kept as fixtures: later versions must still verify them.

    python tools/old_run.py tests/engine/old_runs [PROTOCOL …]

They go into a folder named by the version that made them; existing ones are never made anew.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import adjudge
from adjudge.protocols.base import protocol

SAMPLES = 12
PROTOCOLS = ("flight", "triage", "consistency", "score")


def main(folder: Path, protocols: Sequence[str]) -> None:
    """One run a protocol, from the first samples of its example."""
    target = folder.resolve() / version("adjudge")
    for name in protocols:
        if (target / name).exists():
            continue
        with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
            config = protocol(name).example(Path(), 1)
            if config is not None:
                adjudge.evaluate(name, {**config, "resamples": 200}, out=target / name, limit=SAMPLES, report=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or PROTOCOLS)
