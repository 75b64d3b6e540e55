"""System: one model's rows of one run, the thing that is compared; and how `RUN::MODEL` names one.

A protocol that stores a model's trials as models of their own (so that atoms have ids of their own) names the system in
a column `configuration`; otherwise the system is the column `model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.comparisons.outcomes import plain
from adjudge.errors import ConfigError, RunError
from adjudge.provenance.canonical import digest
from adjudge.runs.run import Run

SEPARATOR = "::"
TRIAL, ITEM = "trial", "item"
FACTORS = ("model", "tools", "vision", "structuring", "prompt", "temperature")
"""The factors that one may ask for even where no run records them; any other recorded key is a factor too."""
SYSTEM_COLUMNS = ("configuration", "model")
_COLUMNS_OF = {"tools": ("tools", "use_tools", "mode"), "vision": ("vision",), "prompt": ("prompt", "prompts")}
_DIGEST_OF = {"prompt": "prompts"}
_LABELS = ("label", "gold")
_MOST_WORDS = 4


@dataclass
class System:
    """One model of one run, with the samples it was judged on."""

    run: Run
    model: str
    name: str = ""
    _cache: dict[str, pa.ChunkedArray] = field(default_factory=dict, repr=False)
    _where: tuple[Sequence[str], pa.Array] | None = field(default=None, repr=False)

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Its rows in samples.parquet."""
        return np.flatnonzero(pc.equal(_systems(self.run), self.model).to_numpy(zero_copy_only=False))

    @cached_property
    def keys(self) -> list[str]:
        """What pairs a row: the sample, and the trial where there are several."""
        samples = self.column("sample").to_pylist()
        if TRIAL in self.run.column_names:
            trials = self.column(TRIAL).to_pylist()
            return [f"{sample}\x1f{trial}" for sample, trial in zip(samples, trials, strict=True)]
        return [str(sample) for sample in samples]

    @cached_property
    def place(self) -> dict[str, int]:
        """Where each key stands among its rows."""
        places = {key: index for index, key in enumerate(self.keys)}
        if len(places) < len(self.keys):
            twice = next(key for index, key in enumerate(self.keys) if places[key] != index)
            raise RunError(f"{self.run.path}: sample {sample_of(twice)!r} of {self.model} stands there twice")
        return places

    @property
    def label_columns(self) -> list[str]:
        """The columns that belong to the data set and not to the model: what the protocol names, or label and gold."""
        named = self.run.metrics.get("dataset_columns")
        return [name for name in (_LABELS if named is None else named) if name in self.run.column_names]

    def column(self, name: str) -> pa.ChunkedArray:
        """One column of its rows."""
        if name not in self._cache:
            self._cache[name] = self.run.columns([name]).column(0).take(pa.array(self.rows))
        return self._cache[name]

    def table(self, names: Sequence[str], keys: Sequence[str]) -> pa.Table:
        """Some columns, one row for each key."""
        if self._where is None or self._where[0] is not keys:
            self._where = keys, pa.array([self.place[key] for key in keys], pa.int64())
        return pa.table({name: self.column(name).take(self._where[1]) for name in names})

    def items(self, keys: Sequence[str]) -> list[str]:
        """What each key is about, whatever its trial: the item where the run names it, else the sample."""
        if ITEM in self.run.column_names:
            return [str(item) for item in plain(self.table([ITEM], keys).column(0)).to_pylist()]
        return [sample_of(key) for key in keys]

    @cached_property
    def facts(self) -> dict[str, dict[str, Any]]:
        """What the run records of the system, by factor: `{"vision": {"models.vision": "v-2"}, …}`.

        What the protocol states, else columns and digests that say it; without either, the model is what it is called.
        """
        stated = self.run.metrics.get("factors", {}).get(self.model, {})
        facts = {name: value if isinstance(value, dict) else {name: value} for name, value in stated.items()}
        for name, columns in _COLUMNS_OF.items():
            if name not in facts:
                column = next((column for column in columns if column in self.run.column_names), None)
                value = self._words(column) if column else self.run.manifest.digests.get(_DIGEST_OF.get(name, ""))
                facts |= {} if value is None else {name: {name: value}}
        return {"model": {"model": self.model}, **facts}

    def factor(self, name: str) -> Any:
        """The value of a factor, of several facts all of them; None where the run does not record it."""
        facts = self.facts.get(name)
        return next(iter(facts.values())) if facts and len(facts) == 1 else facts

    def _words(self, column: str) -> str | None:
        words = {str(value) for value in plain(self.column(column)).unique().to_pylist() if value is not None}
        if len(words) > _MOST_WORDS:
            return f"{len(words)} of them, together {digest(sorted(words))[:16]}"
        return ", ".join(sorted(words)) or None

    def prompts(self, keys: Sequence[str]) -> pa.Array | None:
        """The prompt of each key, or None where the run says nothing by sample."""
        name = next((name for name in _COLUMNS_OF["prompt"] if name in self.run.column_names), None)
        return None if name is None else plain(self.table([name], keys).column(0))

    def describe(self) -> dict[str, Any]:
        """What was compared, for the record."""
        return {
            "name": self.name,
            "run": self.run.path.name,
            "model": self.model,
            "n": int(self.rows.size),
            "digests": dict(sorted(self.run.manifest.digests.items())),
            "factors": {name: self.factor(name) for name in self.facts},
        }


def models_of(run: Run) -> list[str]:
    """The models of a run, sorted."""
    return sorted(str(model) for model in _systems(run).unique().to_pylist())


def _systems(run: Run) -> pa.Array:
    name = next(name for name in SYSTEM_COLUMNS if name in run.column_names)
    return plain(run.columns([name]).column(0))


def select(
    specs: Sequence[str | Path | Run],
    *,
    model: str | None = None,
    model_a: str | None = None,
    model_b: str | None = None,
) -> list[System]:
    """The systems that the arguments name: runs, `RUN::MODEL`, or one run whose models are compared with each other."""
    named = [_parse(spec) for spec in specs]
    wanted = [model_a, model_b, *([None] * len(named))][: max(len(named), 2)]
    if len(named) == 1 and named[0][1] is None:
        run = named[0][0]
        if model is not None:
            raise ConfigError(
                "--model names one model, but one run alone is compared with itself: give --model-a and -b"
            )
        if model_a is not None and model_b is not None:
            systems = [System(run, _known(run, name)) for name in (model_a, model_b)]
        elif model_a is not None or model_b is not None:
            raise ConfigError("with one run, --model-a and --model-b go together")
        else:
            systems = [System(run, name) for name in models_of(run)]
    else:
        if (model_a is not None or model_b is not None) and len(named) != 2:
            raise ConfigError("--model-a and --model-b are for two runs; write RUN::MODEL for more")
        systems = [
            System(run, _only(run, named_model or side or model))
            for (run, named_model), side in zip(named, wanted, strict=False)
        ]
    if len(systems) < 2:
        raise ConfigError(
            f"there is nothing to compare {systems[0].model} of {systems[0].run.path} with: give a second run, "
            "or a run with several models"
        )
    _name(systems)
    return systems


def sample_of(key: str) -> str:
    """The sample of a key."""
    return key.partition("\x1f")[0]


def trial_of(key: str) -> str | None:
    """The trial of a key, where the run has trials."""
    return key.partition("\x1f")[2] or None


def _parse(spec: str | Path | Run) -> tuple[Run, str | None]:
    if isinstance(spec, Run):
        return spec, None
    text = str(spec)
    if Path(text).is_dir() or SEPARATOR not in text:
        return Run(Path(text)), None
    path, _, model = text.rpartition(SEPARATOR)
    run = Run(Path(path))
    return run, _known(run, model)


def _known(run: Run, model: str) -> str:
    models = models_of(run)
    if model not in models:
        raise ConfigError(f"{run.path} has no model {model!r}; it has {', '.join(models)}")
    return model


def _only(run: Run, model: str | None) -> str:
    if model is not None:
        return _known(run, model)
    models = models_of(run)
    if len(models) != 1:
        raise ConfigError(
            f"{run.path} has {len(models)} models ({', '.join(models)}): name one, as in {run.path}::{models[0]}"
            if models
            else f"{run.path} has no samples"
        )
    return models[0]


def _name(systems: Sequence[System]) -> None:
    """The shortest names that tell the systems apart: model, run, both, or a number."""
    choices = (
        [system.model for system in systems],
        [system.run.path.name for system in systems],
        [f"{system.run.path.name}{SEPARATOR}{system.model}" for system in systems],
        [f"{system.run.path}{SEPARATOR}{system.model}" for system in systems],
        [f"{system.run.path.name} ({index})" for index, system in enumerate(systems, 1)],
    )
    names = next(names for names in choices if len(set(names)) == len(names))
    for system, name in zip(systems, names, strict=True):
        system.name = name
