"""Diff: which verdicts of a run another rule file would turn, judged from what the run stores."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import ConfigError
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.vocabulary import BUCKETS, OUTCOMES
from adjudge.protocols.check.batch import CheckBatch
from adjudge.protocols.check.compiled import compiled
from adjudge.protocols.check.document import load
from adjudge.protocols.check.judge import bucket_codes, rule_outcomes
from adjudge.protocols.check.reading import rule_file
from adjudge.protocols.check.rows import STATUSES, TEXT_LIMIT, UNPARSED, OutputReader
from adjudge.protocols.check.rules import build
from adjudge.protocols.check.samples import stored_columns
from adjudge.protocols.check.sandbox import Sandbox
from adjudge.protocols.common.columns import codes
from adjudge.provenance.canonical import digest
from adjudge.runs.run import Run
from adjudge.verdict.agent import rule_verdicts


@dataclass
class Difference:
    """How the new file would judge the samples of a run."""

    samples: int = 0
    turned: list[tuple[str, str, str, str]] = field(default_factory=list)
    rules: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    left_out: int = 0
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        turned = [dict(zip(("sample", "model", "old", "new"), each, strict=True)) for each in self.turned]
        rules = [
            {"rule": rule, "old": old, "new": new, "samples": count}
            for (rule, old, new), count in sorted(self.rules.items())
        ]
        return {**vars(self), "turned": turned, "rules": rules}

    def text(self, limit: int) -> str:
        """The same for people."""
        ways = Counter((old, new) for *_, old, new in self.turned)
        lines = [f"{len(self.turned):,} of {self.samples:,} samples would end elsewhere"]
        lines += [f"  {old} → {new}: {count:,}" for (old, new), count in sorted(ways.items())]
        lines += [f"rules added: {', '.join(self.added)}"] if self.added else []
        lines += [f"rules removed: {', '.join(self.removed)}"] if self.removed else []
        lines += [
            f"  {rule}: {old} → {new} on {count:,} samples" for (rule, old, new), count in sorted(self.rules.items())
        ]
        lines += [f"  {model}/{sample}: {old} → {new}" for sample, model, old, new in self.turned[:limit]]
        if len(self.turned) > limit:
            lines.append(f"  and {len(self.turned) - limit:,} more (--limit, --json)")
        if self.left_out:
            lines.append(f"{self.left_out:,} samples were not judged: their text is stored only in part")
        return "\n".join([*lines, *self.notes])


def difference(old: Path, new: Path, run: Run) -> Difference:
    """Judge the stored answers of a run by a new rule file; the old one must be the one that made the run."""
    before, after = load(old), load(new)
    if run.manifest.protocol != "check":
        raise ConfigError(f"{run.path} is a run of protocol {run.manifest.protocol}, not of check")
    if run.manifest.digests.get("rule_file") != digest(before.content):
        raise ConfigError(f"{run.path} was judged by another rule file than {old}: their contents differ")
    sandbox = Sandbox()
    new_rules = compiled(rule_file(after), sandbox)
    graph = VerifierGraph(build(new_rules))
    changes = Difference()
    old_codes, new_codes = set(rule_file(before).rated), set(new_rules.file.rated)
    changes.added, changes.removed = sorted(new_codes - old_codes), sorted(old_codes - new_codes)
    blocks = [".".join(name.written) for name in new_rules.read if len(name.written) == 2]
    if absent := [name for name in blocks if name not in run.column_names]:
        changes.notes = [f"the run does not store {', '.join(absent)}: rules over them are not applicable here"]
    reader = OutputReader(new_rules, repairs=bool(run.manifest.config.get("repairs", True)), by_line=False)
    counts: Counter[int] = Counter()
    for part, samples, evidence in run.batches():
        outputs = run.outputs(part, counts[part])
        counts[part] += 1
        if outputs is None:
            raise ConfigError(f"{run.path} stores no outputs to judge again")
        batch, judged = _batch(samples, outputs, reader, sandbox)
        again = graph.evaluate(batch)
        buckets = bucket_codes(batch, again, rule_verdicts(again).eligible)
        stored = codes(samples, "bucket", BUCKETS)
        changes.samples += int(judged.sum())
        changes.left_out += int((~judged).sum())
        names, models = samples.column("sample").to_pylist(), samples.column("model").to_pylist()
        for row in np.flatnonzero((buckets != stored) & judged).tolist():
            changes.turned.append((names[row], models[row], BUCKETS[stored[row]], BUCKETS[buckets[row]]))
        before_outcomes, after_outcomes = (rule_outcomes(each, new_rules) for each in (evidence, again))
        for code in before_outcomes.keys() & after_outcomes.keys():
            turned = (before_outcomes[code] != after_outcomes[code]) & judged
            pairs = zip(before_outcomes[code][turned].tolist(), after_outcomes[code][turned].tolist(), strict=True)
            changes.rules.update((code, OUTCOMES[before], OUTCOMES[after]) for before, after in pairs)
    changes.turned.sort()
    return changes


def _batch(
    samples: pa.Table, outputs: pa.Table, reader: OutputReader, sandbox: Sandbox
) -> tuple[CheckBatch, NDArray[np.bool_]]:
    """The stored texts read with the new fields; gold, meta and input as the run stores them. And which rows are whole."""
    read = reader.again(outputs.column("response").to_pylist())
    columns = stored_columns(samples, reader.compiled) | {name: read.column(name) for name in read.column_names}
    before = codes(samples, "status", STATUSES).astype(np.uint8)
    status = np.where(before > UNPARSED, before, np.asarray(read.column("status")))  # a call that failed stays so
    batch = CheckBatch(reader.compiled, sandbox, status.astype(np.uint8), columns, read)
    whole: NDArray[np.bool_] = pc.fill_null(outputs.column("characters"), 0).to_numpy() <= TEXT_LIMIT
    return batch, whole
