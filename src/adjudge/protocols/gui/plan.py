"""The gui protocol's plan: from a configuration to judged batches, partials and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.errors import ConfigError
from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Input, Judged, Measured, Partition
from adjudge.protocols.common.plan import BatchPlan, check_choices, check_resamples, configured
from adjudge.protocols.gui import samples as columns
from adjudge.protocols.gui.batch import GuiBatch
from adjudge.protocols.gui.measure import finish
from adjudge.protocols.gui.partials import Partial, partial
from adjudge.protocols.gui.read import GuiReader, ReadBatch
from adjudge.protocols.gui.rows import RowReader
from adjudge.protocols.gui.rules import GuiContext
from adjudge.readers.gui import formats
from adjudge.readers.gui.model import BOXES, SPACES, TYPES, Outcome
from adjudge.verdict.agent import RuleBasedAgent, check_citations

BATCH_ROWS = 32768
MODES = ("coord", "som")
# What the exported evaluation JSON says about the run, and no number depends on.
ABOUT = ("eval_timestamp", "training_timestamp", "checkpoint_path", "device", "gpu_model", "memory_gb")


class GuiConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything that changes a number."""

    episodes: list[str]
    predictions: list[str]
    space: str
    bbox: str
    outcomes: list[str] = []
    dsl_mode: str = "coord"
    click_radius: float = 0.05
    text: str = "exact"
    types: list[str] = []
    unmatched: str = "refuse"
    config_path: str = "unknown"
    backend: str = "unknown"
    model: str = ""
    about: dict[str, str | float] = {}
    rules: list[str] = []
    seed: int = 0
    resamples: int = 2000


class GuiPlan(BatchPlan):
    """One configured evaluation of a GUI agent."""

    source = "the stored actions give"

    def __init__(self, options: Mapping[str, Any]) -> None:
        config = configured("gui", options, GuiConfig)
        _check(config)
        config.model = config.model or config.backend
        config.types = sorted({name.strip().lower() for name in config.types if name.strip()})
        self.settings = config
        self.types = tuple(sorted({*TYPES, *config.types}))
        self.config = msgspec.to_builtins(config)
        self.use_rules("gui", GuiContext(config.dsl_mode == "som", config.click_radius, config.text), config.rules)
        unseen = ("episodes", "predictions", "outcomes", "config_path", "backend", "model", "about")
        self.use_digests(without=unseen, rules=self.rules, schema=[str(field) for field in columns.SCHEMA])
        self.agent = RuleBasedAgent()

    def inputs(self) -> Sequence[Input]:
        """Episodes, predictions and outcomes, keyed by episode."""
        settings = self.settings
        reader = RowReader(self.types, space=settings.space, bbox=settings.bbox)
        keys = {"episodes": formats.EPISODE_KEYS, "predictions": formats.PREDICTION_KEYS, "outcomes": Outcome}
        return [
            Input(role, paths, None, "", limited=role == "episodes", read=getattr(reader, role), keys=keys[role])
            for role in keys
            if (paths := tuple(getattr(settings, role)))
        ]

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of steps with their evidence and verdicts."""
        settings = self.settings
        reader = GuiReader(self.types, space=settings.space, unmatched=settings.unmatched, batch_rows=BATCH_ROWS)
        for read in reader.read(partition):
            evidence = self.graph.evaluate(read.batch)
            n = read.batch.n
            models = [settings.model] * n
            names = _Names(read)
            verdicts = self.agent.adjudicate_batch(evidence, models, names)
            check_citations(verdicts, evidence, self.agent, models, names)
            table = columns.table(read, verdicts, settings.model)
            yield Judged(table, evidence, columns.outputs(read), read.batch)

    def restore(self, samples: pa.Table) -> GuiBatch:
        """The steps as they were."""
        return columns.restore(samples, self.types, self.settings.space)

    def decided(self, batch: GuiBatch, evidence: Evidence) -> dict[str, pa.Array]:
        """Verdicts, buckets, citations and distances."""
        return columns.decided(batch, self.agent.adjudicate_batch(evidence, (), ()))

    def recheck(self, samples: pa.Table, evidence: Evidence) -> list[str]:
        """As in every plan, and whether each id is that of its episode and step."""
        steps = zip(samples.column("episode").to_pylist(), samples.column("step").to_pylist(), strict=True)
        renamed = samples.column("sample").to_pylist() != [f"{episode}#{step}" for episode, step in steps]
        wrong = [f"samples.parquet: sample is not what {self.source}"] if renamed else []
        return super().recheck(samples, evidence) + wrong

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Partial:
        """What one batch adds to the numbers."""
        batch = self.restore(samples) if batch is None else batch
        return partial(samples, batch, evidence, som=self.settings.dsl_mode == "som")

    def finish(self, partials: Sequence[Any]) -> Measured:
        """The evaluation metrics, every estimate, baselines and charts."""
        return finish(partials, self.settings, self.types)


class _Names(Sequence[str]):
    """Sample ids, made only when one is asked for."""

    def __init__(self, read: ReadBatch) -> None:
        self._read = read

    def __len__(self) -> int:
        return self._read.batch.n

    def __getitem__(self, index: Any) -> Any:
        return f"{self._read.episodes[int(self._read.row[index])].as_py()}#{self._read.steps[index]}"


def _check(config: GuiConfig) -> None:
    for role in ("episodes", "predictions"):
        if not getattr(config, role):
            raise ConfigError(f"no {role} were given (--{role} FILE …)")
    check_choices(
        config,
        {
            "space": SPACES,
            "bbox": BOXES,
            "dsl_mode": MODES,
            "text": ("exact", "normalized"),
            "unmatched": ("refuse", "report"),
        },
    )
    if not 0 < config.click_radius <= 1:
        raise ConfigError(f"click_radius is {config.click_radius:g}, expected a share of the screen in (0, 1]")
    unknown = sorted(config.about.keys() - set(ABOUT))
    if unknown:
        raise ConfigError(f"about has {unknown[0]!r}, expected some of {', '.join(ABOUT)}")
    check_resamples(config.resamples)


plan = GuiPlan
