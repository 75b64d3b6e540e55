"""The folder that the original method's users have: which files of it are outputs, references and priors, and of which task.

Outputs are `<model>_<task>_test_results_*.jsonl`, or lie as `<task>…/<model>/*.jsonl`; `next_second_pairs.jsonl` is the
reference of S1, `flight_3window_samples.jsonl` that of M1 and M3; `confidence….json` holds priors. Files have no ids that
could be trusted: output i belongs to line i of the reference, and in M3 to line 504 + i.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge.errors import ConfigError
from adjudge.protocols.flight.fields import TASKS, task_named_in
from adjudge.protocols.flight.priors import read_priors

REFERENCES = {"next_second_pairs.jsonl": ("S1",), "flight_3window_samples.jsonl": ("M1", "M3")}
OFFSETS = {"M3": 504}
"""How many lines of the reference come before the first that belongs to a task's outputs."""

_OUTPUTS = re.compile(r".+_(?:S1|M1|M3)_test_results.*\.jsonl")


@dataclass(frozen=True)
class Original:
    """What a folder holds."""

    outputs: tuple[Path, ...]
    references: tuple[Path, ...]
    confidence: tuple[Path, ...]
    tasks: tuple[str, ...]
    left_out: tuple[Path, ...]

    def config(self, *, offset: int = OFFSETS["M3"]) -> dict[str, Any]:
        """The settings that judge it."""
        settings: dict[str, Any] = {
            "task": ",".join(self.tasks),
            "outputs": [str(path) for path in self.outputs],
            "reference": [str(path) for path in self.references],
            "match": "line",
            "offset": {"M3": offset},
        }
        if self.confidence:
            settings["confidence"] = read_priors([str(path) for path in self.confidence], self.tasks)
        return settings


def find_original(folder: Path) -> Original:
    """Sort the files of a folder and all below it."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such folder")
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in {".jsonl", ".json"})
    references = [path for path in files if path.name in REFERENCES]
    outputs = [path for path in files if path not in references and _is_outputs(path, folder)]
    confidence = [path for path in files if path.suffix == ".json" and "confidence" in path.name.lower()]
    if not outputs:
        raise ConfigError(
            f"{folder}: no outputs found; expected files like `MODEL_S1_test_results_….jsonl`, or `S1…/MODEL/….jsonl`"
        )
    if not references:
        raise ConfigError(f"{folder}: no reference found; expected {' or '.join(REFERENCES)}")
    tasks = tuple(name for name in TASKS if name in {task_named_in(str(path.relative_to(folder))) for path in outputs})
    known = {task for path in references for task in REFERENCES[path.name]}
    unknown = [task for task in tasks if task not in known]
    if unknown:
        names = [name for name, of in REFERENCES.items() if unknown[0] in of]
        raise ConfigError(f"{folder}: there are outputs of {unknown[0]} but no reference for it ({names[0]})")
    used = {*references, *outputs, *confidence}
    needed = [path for path in references if any(task in tasks for task in REFERENCES[path.name])]
    return Original(
        tuple(outputs), tuple(needed), tuple(confidence), tasks, tuple(path for path in files if path not in used)
    )


def _is_outputs(path: Path, folder: Path) -> bool:
    """By its name, or by standing in a model's folder below that of a task."""
    if path.suffix != ".jsonl":
        return False
    if _OUTPUTS.fullmatch(path.name):
        return True
    above = path.relative_to(folder).parts[:-1]
    return len(above) > 1 and task_named_in(above[-2]) is not None
