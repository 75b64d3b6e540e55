"""Verify: every digest from the files, every atom and verdict from the stored values, every number from the tables.

A run that another version made is never called altered: what this version recomputes to the same value holds, what it
adds or words otherwise is said, and what it cannot recompute is listed. A run of this version from before a metric was declared
lacks that metric and nothing else. A damaged run gets a list of everything that is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.engine.differences import Difference, differences
from adjudge.engine.judges import replay
from adjudge.engine.matching import IdDigest, Matching
from adjudge.engine.metrics import Counted, citation_problems, column_problems, metrics_document, verdict_word
from adjudge.engine.runner import MOST_PARTIALS, made_by_another
from adjudge.errors import AdjudgeError, ConfigError, RunError
from adjudge.evidence.graph import only_rules
from adjudge.protocols.base import Measured, Plan, Protocol, protocol
from adjudge.provenance.canonical import pretty
from adjudge.runs.run import Run
from adjudge.runs.shapes import file_problems, shape_problems
from adjudge.runs.signature import SIGNATURE
from adjudge.runs.writer import CHARTS, INTAKE, MANIFEST, METRICS, REPORT, RULES, SAMPLES
from adjudge.verdict.gates import Gate

_WORDS = frozenset({"notes", "comparable", "declared", "factors", "headline", "dataset_columns", "sections"})
"""Keys of metrics.json that are words about its numbers; another version may choose others."""
ENGINE_KEYS = frozenset({"limit", "gates", "columns", "json_path"})
"""Keys of a manifest's configuration that are the engine's, not the protocol's."""

MOST_PROBLEMS = 20
"""Problems of one kind that are listed; a run with more of them is as wrong as one with twenty."""

FROM_INPUT = "that ids, models, answers and reference values are those of the input files, none left out or added"
SETTINGS = "that the settings, gates, seeds and limit of the manifest were chosen before the result was known"
ORIGIN = "when, with which command and in which environment the run was made"


@dataclass
class Verification:
    """What came of checking a run.

    `problems` are ways in which it does not hold. Where another version made it, `made_by` says which, `not_recomputed`
    is what this version computes otherwise or not at all, and `added` what it has beyond the run or says in other words
    and pictures. `checked` and `not_checked` say what was proven and what was not, with the flag that would prove it.
    """

    problems: list[str] = field(default_factory=list)
    made_by: str | None = None
    not_recomputed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    estimates: int = 0
    """Estimates that were recomputed."""

    @property
    def exit_code(self) -> int:
        """0 holds, 1 does not hold, 3 made by another version and not wholly recomputable here."""
        return 1 if self.problems else 3 if self.not_recomputed else 0

    def add(self, *problems: str) -> None:
        """Ways in which the run does not hold, each said once."""
        self.problems += [text for text in dict.fromkeys(problems) if text not in self.problems]

    def differ(self, *differences: str) -> None:
        """What was recomputed to another value, each said once."""
        kept = self.problems if self.made_by is None else self.not_recomputed
        kept += [text for text in dict.fromkeys(differences) if text not in kept]

    @contextmanager
    def part(self, what: str) -> Iterator[None]:
        """One part of the work: an error in it is a problem of the run, and the other parts go on."""
        try:
            yield
        except AdjudgeError as error:
            self.add(str(error))
        except OSError as error:
            self.add(f"{error.filename or what}: cannot be read: {error.strerror or error}")
        except Exception as error:  # a damaged run may break anything
            if isinstance(error, MemoryError):
                raise  # which is not its fault
            first = next(iter(str(error).splitlines()), "")
            self.add(f"{what}: is not as adjudge writes it ({type(error).__name__}: {first[:200]})")


PageCheck = Callable[[Run], tuple[list[str], list[str]]]
"""What is wrong with report.html, and what of it cannot be compared; the CLI wires the report room in."""


def verify(
    run: Run, *, on_progress: Callable[[int], None] | None = None, check_report: PageCheck | None = None
) -> Verification:
    """Recompute a run from its own tables, and hold every digest against its files."""
    result = Verification()
    altered, shapes = file_problems(run), shape_problems(run)
    result.add(*(f"{name}: {text}" for name, text in (*altered.items(), *shapes.items())))
    result.checked.append("the digest of every file against the manifest")
    result.not_checked += [
        f"{FROM_INPUT} (--inputs FILE …)",
        f"{SETTINGS}; {ORIGIN} (--expect SHA256, --key PUBLIC_KEY)",
    ]
    if (run.path / SIGNATURE).is_file():
        result.not_checked.append(f"whose signature {SIGNATURE} is (--key PUBLIC_KEY)")
    chosen = protocol(run.manifest.protocol)
    result.not_checked += [chosen.unproven] if chosen.unproven else []
    with result.part(MANIFEST):
        result.made_by = made_by_another(run.manifest, chosen)
    unreadable = [name for name in altered if name.endswith(".parquet")]
    if shapes or unreadable:
        what = ", ".join([*shapes, *unreadable][:3])
        result.not_checked.append(f"atoms, verdicts and numbers: {what} cannot be relied on")
    else:
        with result.part(f"{SAMPLES} and evidence"), np.errstate(all="ignore"):  # forged numbers may be of any size
            _recompute(run, chosen, result, on_progress)
        if check_report is not None:
            with result.part(REPORT):
                _page(run, check_report, result)
    return result


def _page(run: Run, check_report: PageCheck, result: Verification) -> None:
    listed = any(entry.path == REPORT for entry in run.manifest.files)
    if not listed:
        if "report_data" in run.manifest.digests:
            result.add(f"{MANIFEST}: digest report_data is that of a page, but the run has none")
        return
    problems, unchecked = check_report(run)
    result.differ(*problems)
    result.checked.append(f"that {REPORT} shows what the run holds")
    result.not_checked += unchecked


def _recompute(run: Run, chosen: Protocol, result: Verification, on_progress: Callable[[int], None] | None) -> None:
    plan = _plan(run, chosen, result)
    if plan is not None:
        result.add(*plan.attach(run.path))
    counted, partials, rows, ids = Counted(), list[Any](), 0, IdDigest()
    texts = _Texts()
    for part, batch, samples, evidence in run.numbered_batches():
        broken = column_problems(samples, evidence.n) or _place_problems(samples, part)
        result.add(*(f"{SAMPLES}: {text}" for text in broken or citation_problems(samples, evidence)))
        if broken:
            return
        ids.add(part, samples.column("sample" if plan is None else plan.key_column))
        counted.tally.add(samples, evidence)
        if plan is not None:
            for text in plan.recheck(samples, evidence):
                where = f"evidence/part-{part:05d}.parquet: " if text.startswith("evidence: ") else ""
                result.differ(where + text)
            texts.check(run, plan, part, batch, samples, result)
            partials.append(plan.partial(samples, evidence))
            if len(partials) > MOST_PARTIALS:
                partials = plan.folded(partials)
        rows += samples.num_rows
        if on_progress is not None:
            on_progress(rows)
        if len(result.problems) > MOST_PROBLEMS:
            return
    if not rows:
        raise RunError(f"{run.path} holds no samples")
    _, broken = counted.tally.closed(run.metrics["buckets"])
    result.add(*(f"{METRICS}: {text}" for text in broken))
    if plan is None:
        return
    result.checked += ["every atom, verdict and bucket, from the stored values", *texts.checked]
    result.not_checked += texts.not_checked
    if plan.adjudicator is not None and (run.agent is not None or result.made_by is None):
        problems, counted.judges, replayed = replay(run, plan, plan.adjudicator)
        result.differ(*problems)
        agent = plan.adjudicator.agent.name
        if replayed:
            result.checked.append(f"what agent {agent!r} came to, from the evidence and its transcripts")
        else:
            result.not_checked.append(f"what agent {agent!r} answered: it is code of its own and left no transcripts")
    _numbers(run, chosen, plan, plan.finish(partials), counted, result)
    _intake_ids(run, ids, result)


@dataclass
class _Texts:
    """The raw texts of a run, read again batch by batch where the protocol can do so."""

    checked: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)

    def check(self, run: Run, plan: Plan, part: int, batch: int, samples: pa.Table, result: Verification) -> None:
        """Hold the stored values of a batch against the texts they were read from."""
        outputs = run.outputs(part, batch)
        name = f"outputs/part-{part:05d}.parquet"
        if (
            outputs is None
            or "row" not in outputs.column_names
            or not outputs.column("row").equals(samples.column("row"))
        ):
            result.add(f"{name}: its rows are not those of {SAMPLES}")
            return
        try:
            again = plan.reread(samples, outputs)
        except KeyError as error:  # a column
            if result.made_by is None:
                result.add(f"{name}: {error.args[0]}")
                return
            again = None  # which texts are kept belongs to the version
        if again is not None:
            self.checked = ["that the stored answers are what the raw texts in outputs/ say"]
            result.differ(*(f"{name}: {text}" for text in again))
        if plan.unread or again is None:
            what = plan.unread or "which this version does not read"
            self.not_checked = [f"the raw texts in outputs/, {what} (--inputs FILE …)"]


def _place_problems(samples: pa.Table, part: int) -> list[str]:
    """Rows that do not say truly where their evidence stands."""
    if not {"part", "row"} <= set(samples.column_names):
        return ["samples have no columns 'part' and 'row'"]
    row = samples.column("row").to_numpy()
    expected = np.arange(row[0], row[0] + len(row)) if len(row) else row
    wrong = (samples.column("part").to_numpy() != part).any() or (row != expected).any()
    return ["the rows are not in the order of the evidence"] if wrong else []


def _plan(run: Run, chosen: Protocol, result: Verification) -> Plan | None:
    """The plan that made the run, with the rules it had; None where this version cannot make it."""
    stored = msgspec.json.decode((run.path / RULES).read_bytes())["rules"]
    config = {key: value for key, value in run.manifest.config.items() if key not in ENGINE_KEYS}
    codes = [rule["code"] for rule in stored]
    try:
        with nullcontext() if result.made_by is None else only_rules(codes):
            plan = chosen.plan(config)
    except ConfigError as error:
        if result.made_by is None:
            raise
        result.not_recomputed.append(f"all numbers: this version does not take the run's configuration: {error}")
        return None
    tables = msgspec.json.decode(msgspec.json.encode(plan.rules))
    if stored == tables:
        return plan
    if result.made_by is None:
        result.add(f"{RULES}: the rules are not those that the configuration gives with this version")
        return plan if [_places(rule) for rule in stored] == [_places(rule) for rule in tables] else None
    ours = {rule["code"]: rule for rule in tables}
    changed = [rule["code"] for rule in stored if ours.get(rule["code"]) != rule]
    what = ", ".join(changed[:MOST_PROBLEMS]) or "their order"
    result.not_recomputed.append(f"atoms, verdicts and numbers: this version has other rules ({what})")
    return None


def _places(rule: dict[str, Any]) -> list[Any]:
    """Where a rule leaves its atoms: tables of other places cannot be compared."""
    return [rule["code"], *([slot["field"], slot["step"]] for slot in rule["slots"])]


def _numbers(
    run: Run, chosen: Protocol, plan: Plan, measured: Measured, counted: Counted, result: Verification
) -> None:
    """Hold metrics.json, charts, further files and the manifest against what the tables give."""
    intake = _intake(run)
    if intake is not None:
        counted.matching = Matching.from_dict(intake)
    gates = [Gate.parse(text) for text in run.manifest.config.get("gates") or ()]
    document, broken = metrics_document(chosen, plan, measured, counted, (*plan.default_gates(), *gates))
    result.estimates = len(document["estimates"])
    result.add(*(f"{METRICS}: {text}" for text in broken))
    stored, again = ((run.path / METRICS).read_bytes(), pretty(document))
    old, new = msgspec.json.decode(stored), msgspec.json.decode(again)
    grown = result.made_by is not None or bool(_metrics_of(new) - _metrics_of(old))
    if stored != again:
        for difference in differences(old, new, MOST_PROBLEMS):
            _place(difference, result, additions=grown)
        if not grown and not result.problems:
            result.add(f"{METRICS}: is not written as this version writes it")
    _charts(run, pretty(measured.charts), result, additions=grown)
    for name, content in plan.files(measured).items():
        if not (run.path / name).is_file() or (run.path / name).read_bytes() != content:
            result.differ(f"{name}: is not what the tables give")
    result.checked.append(f"every number, gate{'' if result.made_by else ', chart, note'} and section, from the tables")
    if result.made_by is not None:
        result.not_checked.append("notes, charts and words, which belong to the version that made the run")
    _manifest(run, plan, measured, {**document, "intake_notes": (intake or {}).get("notes") or ()}, result)


def _metrics_of(document: dict[str, Any]) -> set[str]:
    """The metrics that a document names as declared or has estimates of."""
    return {*document.get("declared", ()), *(estimate["name"] for estimate in document["estimates"])}


def _charts(run: Run, drawn: bytes, result: Verification, *, additions: bool) -> None:
    """Hold charts.json against what the tables give; another version may draw otherwise, a new metric only more."""
    stored = (run.path / CHARTS).read_bytes()
    if stored == drawn:
        return
    if result.made_by is not None:
        result.added.append(f"{CHARTS}: drawn in another way")
        return
    changes = differences(msgspec.json.decode(stored), msgspec.json.decode(drawn), 1)
    if additions and all(change.added for change in changes):
        result.added += [f"{CHARTS}: {change.path}" for change in changes]
    else:
        result.differ(f"{CHARTS}: the charts are not those that the tables give")


def _manifest(run: Run, plan: Plan, measured: Measured, document: dict[str, Any], result: Verification) -> None:
    """Hold what the manifest repeats against what it repeats."""
    manifest, digests = run.manifest, {**plan.digests, **measured.digests}
    for name, value in digests.items():
        if name == "schema" and manifest.protocol_version != document["protocol_version"]:
            continue  # which columns are stored belongs to the version
        if manifest.digests.get(name) != value:
            result.differ(f"{MANIFEST}: digest {name} is not that of the content")
    if manifest.verdict != verdict_word(document["pass"]):
        result.differ(f"{MANIFEST}: the verdict is {manifest.verdict!r}, recomputed {verdict_word(document['pass'])!r}")
    if result.made_by is not None:
        return
    unknown = sorted(manifest.digests.keys() - digests.keys() - {"report_data"})
    result.add(*(f"{MANIFEST}: digest {name} is of nothing in the run" for name in unknown))
    if manifest.seeds != {"seed": int(plan.config.get("seed", 0))}:
        result.add(f"{MANIFEST}: the seeds are not those of the configuration")
    notes = [*document["notes"], *document["intake_notes"]]
    if manifest.notes != notes and not (result.added and set(manifest.notes) <= set(notes)):
        result.add(f"{MANIFEST}: the notes are not those that the tables give")
    result.checked.append("the verdict, seeds, notes and digests in the manifest")


def _intake(run: Run) -> dict[str, Any] | None:
    path = run.path / INTAKE
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Any]) if path.is_file() else None


def _intake_ids(run: Run, ids: IdDigest, result: Verification) -> None:
    """Hold the ids of the samples against the digest of the input's ids that was taken while reading."""
    digest = (_intake(run) or {}).get("ids_sha256")
    if digest is None:
        result.not_checked.append(f"{INTAKE}: the run has no digest of the ids of its input")
    elif digest != ids.hexdigest():
        result.add(f"{SAMPLES}: its ids are not those that were read ({INTAKE}, ids_sha256)")
    else:
        result.checked.append(f"that the ids of the samples are those in {INTAKE}, none left out or added")


def _place(difference: Difference, result: Verification, *, additions: bool) -> None:
    """A number that differs is a problem, or in a run of another version one that is not recomputed.

    With `additions`, what only this version has is said and no problem: the run is of another version or lacks a metric.
    """
    if result.made_by is not None and difference.path in {"protocol_version", "digests.schema"}:
        return  # `made_by` says it: which columns are stored belongs to the version
    worded = result.made_by is not None and re.split(r"[.\[]", difference.path)[0] in _WORDS
    if worded or (additions and difference.added):
        result.added.append(difference.path)
    else:
        result.differ(f"{METRICS}: {difference.words}")
