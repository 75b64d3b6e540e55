"""The plan of a grounding run: from records to judged batches, partials and numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.evidence.atoms import pack_citations
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, Severity
from adjudge.protocols.base import Input, Judged, Measured, Named, Partition
from adjudge.protocols.common.columns import coded
from adjudge.protocols.common.plan import BatchPlan
from adjudge.protocols.gui.config import grounding_config_of
from adjudge.protocols.gui.grounding import COLUMNS, EXPECTED, FLAGS, GroundingBatch, GroundingContext, GroundingReader
from adjudge.protocols.gui.spaces import Mask
from adjudge.readers.blocks import tree_of
from adjudge.readers.gui.screenspot import GroundingRecord
from adjudge.readers.sources import refuse_many_slices
from adjudge.runs.section import Column, Section
from adjudge.stats import bootstrap
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import wilson

VERDICTS = ("hit", "missed", "no answer")
BATCH_ROWS = 32_768
LISTED = 20
_PREFIX = "slice:"


class Partial(NamedTuple):
    """What one batch adds: what the numbers need of every record, the first that were missed, and a digest of the ids."""

    records: pa.Table
    misses: list[tuple[str, str, str]]
    digest: bytes


class GroundingPlan(BatchPlan):
    """One configured evaluation of grounding."""

    source = "the stored answers give"
    unread = ""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.settings = grounding_config_of(options)
        self.config = msgspec.to_builtins(self.settings)
        self.use_rules("gui", GroundingContext(), self.settings.rules)
        self.use_digests(without=("records", "model"), rules=self.rules)

    def inputs(self) -> Sequence[Input]:
        """The records, keyed by id."""
        settings = self.settings
        reader = GroundingReader(settings.space, settings.bbox, tuple(settings.slices))
        keys = {**(tree_of(GroundingRecord) or {}), **dict.fromkeys(settings.slices)}
        return [Input("records", tuple(settings.records), None, EXPECTED, limited=True, read=reader.read, keys=keys)]

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Batches of records in the order of their ids."""
        rows = partition.tables["records"].sort_by("key").combine_chunks()
        keys = rows.column("key").to_pylist()
        again = next((place for place in range(1, len(keys)) if keys[place] == keys[place - 1]), None)
        if again is not None:
            first, second = sorted(
                (rows.column("file")[k].as_py(), rows.column("line")[k].as_py()) for k in (again - 1, again)
            )
            what = f"id {keys[again]!r} stands here a second time; first at line {first[1]}"
            raise InputError(what, file=partition.files[second[0]], line=second[1])
        for start in range(0, rows.num_rows, BATCH_ROWS):
            part = rows.slice(start, BATCH_ROWS)
            batch = self.restore(part)
            evidence = self.graph.evaluate(batch)
            model = coded(np.zeros(batch.n, dtype=np.int8), (self.settings.model,))
            table = pa.table(
                {"sample": part.column("key"), "model": model, **self.decided(batch, evidence)}
                | {name: part.column(name) for name in (*FLAGS, *COLUMNS)}
                | {f"{_PREFIX}{name}": part.column(f"{_PREFIX}{name}") for name in self.settings.slices}
            )
            yield Judged(table, evidence, pa.table({"response": pa.nulls(batch.n, pa.string())}), batch)

    def restore(self, samples: pa.Table) -> GroundingBatch:
        """The records as they were."""
        return GroundingBatch(self.settings.space, {name: samples.column(name).combine_chunks() for name in COLUMNS})

    def decided(self, batch: GroundingBatch, evidence: Evidence) -> dict[str, pa.Array]:
        """Verdict, bucket and citations: a record fails for what failed, and holds by all that was applied."""
        critical = evidence.failed(Severity.CRITICAL)
        passed = ~critical.any(axis=0)
        verdict = np.where(passed, 0, np.where(batch.answered, 1, 2))
        bucket = np.array([BUCKETS.index(name) for name in ("passed", "failed", "missing")])[verdict]
        return {
            "bucket": coded(bucket, BUCKETS),
            "verdict": coded(verdict, VERDICTS),
            "cites": pack_citations(critical | passed),
        }

    def reread(self, samples: pa.Table, outputs: pa.Table) -> list[str]:
        """The answers are points and boxes; there are no texts."""
        del samples
        texts = outputs.column("response")
        return [] if texts.null_count == len(texts) else ["there is a text where none can be"]

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Partial:
        """What one batch adds to the numbers."""
        del evidence
        batch = self.restore(samples) if batch is None else batch
        names = samples.column("sample").to_pylist()
        missed = np.flatnonzero(batch.answered & ~batch.hit)[:LISTED].tolist()
        answers = {"hit": batch.hit, "rank": batch.rank, "iou": batch.iou, "answered": batch.answered}
        answers["outside"] = batch.answered & ~batch.in_space
        kept = (*FLAGS, *(f"{_PREFIX}{key}" for key in self.settings.slices))
        return Partial(
            pa.table(answers | {name: samples.column(name) for name in kept}),
            misses=[(names[row], batch.boxes_of(row), batch.point_of(row)) for row in missed],
            digest=hashlib.sha256("\n".join(names).encode()).digest(),
        )

    def finish(self, partials: Sequence[Partial]) -> Measured:
        """Top-1 hit, oracle@k and mean IoU, of all records and by every slice."""
        records = pa.concat_tables([p.records for p in partials])
        every: dict[str, NDArray[Any]] = {
            name: records.column(name).to_numpy() for name in ("hit", "rank", "iou", "answered", "outside", *FLAGS)
        }
        n = records.num_rows
        named = self._estimates(every, np.ones(n, dtype=bool), "")
        for key in self.settings.slices:
            values = records.column(f"{_PREFIX}{key}").to_pylist()
            distinct = sorted({value for value in values if value is not None})
            refuse_many_slices(key, len(distinct))
            for value in distinct:
                named += self._estimates(every, np.array([other == value for other in values]), f"{key}={value}")
        missing = int(n - every["answered"].sum())
        whole = {name: estimate.value for name, where, estimate in named if not where}
        return Measured(
            estimates=named,
            metrics={"num_records": n, "missing_answers": missing, **whole},
            top={
                "space": self.settings.space,
                "bbox": self.settings.bbox,
                "comparable": [{"name": "top1_hit_rate", "column": "bucket", "equals": "passed", "kind": "binary"}],
                "dataset_columns": ["boxes"],
            },
            notes=_notes(every),
            sections=_sections(named, [miss for p in partials for miss in p.misses]),
            digests={"dataset": hashlib.sha256(b"".join(p.digest for p in partials)).hexdigest()},
        )

    def _estimates(self, every: Mapping[str, NDArray[Any]], chosen: Mask, where: str) -> list[Named]:
        n = int(chosen.sum())
        rank, ious = every["rank"][chosen], every["iou"][chosen]
        ious = ious[~np.isnan(ious)]
        estimates = {"top1_hit_rate": wilson(int(every["hit"][chosen].sum()), n)}
        for k in self.settings.k:
            estimates[f"oracle_at_{k}"] = (
                wilson(int(((rank >= 0) & (rank < k)).sum()), n)
                if every["ranked"][chosen].any()
                else Estimate.null("no record has candidates", method="wilson")
            )
        drawing: bootstrap.Drawing = {"seed": self.settings.seed, "resamples": self.settings.resamples}
        drawing["stream"] = f"gui/iou/{where or 'all'}"
        null = Estimate.null("no answer is a box", method="bootstrap")
        estimates["mean_iou"] = bootstrap.mean(ious, **drawing) if ious.size else null
        return [Named(name, where, estimate) for name, estimate in estimates.items()]


def _notes(every: Mapping[str, NDArray[Any]]) -> list[str]:
    n = every["hit"].size
    texts = {
        "clipped": "records have a box that reaches beyond the screen; it was clipped",
        "by_position": "records have no id and are named by their position",
        "outside": "answers lie outside the declared space and miss",
    }
    notes = [f"{int(every[name].sum())} of {n} {what}" for name, what in texts.items() if every[name].any()]
    without = int(n - every["answered"].sum())
    return [*notes, f"{without} of {n} records have no answer and count as missed"] if without else notes


def _sections(named: Sequence[Named], misses: Sequence[tuple[str, str, str]]) -> list[Section]:
    hits = [(where, estimate) for name, where, estimate in named if name == "top1_hit_rate" and where]
    hits.sort(key=lambda item: (item[1].value or 0.0, item[0]))
    rows = [(where.partition("=")[0], where.partition("=")[2], estimate.n, estimate) for where, estimate in hits]
    return [
        Section(
            "where_it_misses",
            "Where grounding misses, the lowest hit rate first",
            ("by", "value", "records", Column("top-1 hit rate", "%")),
            rows,
            place="first",
            empty="No record has a value of the slices.",
        ),
        Section(
            "missed_records",
            "Missed records",
            ("record", "box", "point"),
            sorted(misses)[:LISTED],
            note="The first by name; samples.parquet has all.",
            terminal=5,
            empty="Every answer hits.",
        ),
    ]
