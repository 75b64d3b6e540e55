"""The gui protocol's plan: from a configuration to judged batches, partials and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Input, Judged, Measured, Partition, Plan
from adjudge.protocols.common.plan import BatchPlan
from adjudge.protocols.gui import samples as columns
from adjudge.protocols.gui.batch import GuiBatch
from adjudge.protocols.gui.config import config_of
from adjudge.protocols.gui.counts import Partial, partial
from adjudge.protocols.gui.judge import decided
from adjudge.protocols.gui.metrics import finish
from adjudge.protocols.gui.rows import RowReader
from adjudge.protocols.gui.rules import GuiContext
from adjudge.readers.gui import formats
from adjudge.readers.gui.model import TYPES, Outcome


class GuiPlan(BatchPlan):
    """One configured evaluation of a GUI agent."""

    key_column = "episode"
    source = "the stored actions give"
    unread = f"beyond the actions in them, and where they were cut at {columns.TEXT_LIMIT:,} characters"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.settings = config = config_of(options)
        self.types = tuple(sorted({*TYPES, *config.types}))
        self.reader = RowReader(self.types, space=config.space, bbox=config.bbox)
        self.config = msgspec.to_builtins(config)
        self.use_rules("gui", GuiContext(config.dsl_mode == "som", config.click_radius, config.text), config.rules)
        unseen = ("episodes", "predictions", "outcomes", "config_path", "backend", "model", "about")
        self.use_digests(without=unseen, rules=self.rules, schema=[str(field) for field in columns.SCHEMA])

    def inputs(self) -> Sequence[Input]:
        """Episodes, predictions and outcomes, keyed by episode."""
        keys = {"episodes": formats.EPISODE_KEYS, "predictions": formats.PREDICTION_KEYS, "outcomes": Outcome}
        return [
            Input(role, paths, None, "", limited=role == "episodes", read=getattr(self.reader, role), keys=keys[role])
            for role in keys
            if (paths := tuple(getattr(self.settings, role)))
        ]

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of steps with their evidence and verdicts."""
        for steps in columns.GuiReader(self.settings, self.types).read(partition):
            evidence = self.graph.evaluate(steps.batch)
            table = columns.table(steps, decided(steps.batch, evidence))
            yield Judged(table, evidence, steps.outputs, steps.batch)

    def restore(self, samples: pa.Table) -> GuiBatch:
        """The steps as they were."""
        return columns.restore(samples, self.types, self.settings.space)

    def decided(self, batch: GuiBatch, evidence: Evidence) -> dict[str, pa.Array]:
        """Verdicts, buckets, citations and distances."""
        return decided(batch, evidence)

    def recheck(self, samples: pa.Table, evidence: Evidence) -> list[str]:
        """As in every plan, and whether each id is that of its episode and step."""
        steps = zip(samples.column("episode").to_pylist(), samples.column("step").to_pylist(), strict=True)
        renamed = samples.column("sample").to_pylist() != [f"{episode}#{step}" for episode, step in steps]
        wrong = [f"samples.parquet: sample is not what {self.source}"] if renamed else []
        if set(samples.column("model").to_pylist()) - {self.settings.model}:
            wrong.append("samples.parquet: model is not the one of the configuration")
        return super().recheck(samples, evidence) + wrong

    def reread(self, samples: pa.Table, outputs: pa.Table) -> list[str]:
        """Read every action out of its text again; one that was given in parts has no text."""
        return columns.reread(samples, outputs, self.reader)

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Partial:
        """What one batch adds to the numbers."""
        batch = self.restore(samples) if batch is None else batch
        return partial(samples, batch, evidence, som=self.settings.dsl_mode == "som")

    def finish(self, partials: Sequence[Any]) -> Measured:
        """The evaluation metrics, every estimate, baselines and charts."""
        return finish(partials, self.settings, self.types)


def plan(options: Mapping[str, Any]) -> Plan:
    """Episodes with predictions, or grounding records."""
    if "records" in options:
        from adjudge.protocols.gui.grounding_plan import GroundingPlan

        return GroundingPlan(options)
    return GuiPlan(options)
