"""The anomaly plan: from a configuration to sequences, evidence of the contract, numbers, and the INVALID stamp."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from math import comb
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.errors import ConfigError, RunError
from adjudge.evidence.citations import pack_citations
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.registry import rule_sets
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, FAIL, NOT_APPLICABLE
from adjudge.protocols.anomaly.catalog import parse_catalog, read_catalog
from adjudge.protocols.anomaly.charts import charts
from adjudge.protocols.anomaly.code_files import scan_paths
from adjudge.protocols.anomaly.contract import (
    TITLES,
    Calibration,
    ContractBatch,
    calibrate,
    check_consecutive,
    check_scored_splits,
    elsewhere_checks,
    table_checks,
)
from adjudge.protocols.anomaly.controls import controls
from adjudge.protocols.anomaly.decide import Decisions, decide
from adjudge.protocols.anomaly.leakage import Check, not_applicable
from adjudge.protocols.anomaly.measure import (
    PRIMARY,
    Measures,
    hold_complete,
    minimum_magnitudes,
    negative_results,
    slices,
)
from adjudge.protocols.anomaly.splits import parse_splits, read_splits
from adjudge.protocols.anomaly.table import FILE, ScoreTable, load, read_scores
from adjudge.protocols.anomaly.words import TEST
from adjudge.protocols.base import Input, Judged, Measured, Named, Partition, Plan
from adjudge.provenance.canonical import digest, file_digest, pretty
from adjudge.provenance.manifest import InputFile

REPORT, CALIBRATION, PER_ATTACK, SPLITS_FILE, CATALOG_FILE = (
    "leakage_report.json",
    "calibration.json",
    "per_attack.csv",
    "splits.json",
    "catalog.json",
)
WATERMARK = "INVALID: the contract was violated; these numbers are no result"
_FEW = 10
_WORD = pa.dictionary(pa.int32(), pa.string())
_CHECKLIST = (
    ("code leakage check passes", ("code.clean",)),
    ("splits leakage check passes", ("split.disjoint", "split.covers", "split.no_shuffle")),
    ("no banned sensors in the feature list", ("feature.banned",)),
    ("threshold calibrated on validation, not test", ("threshold.clean_val_only",)),
    ("N-consecutive rule documented", ("decision.n_consecutive",)),
    ("bootstrap CIs reported", ("ci.bootstrap",)),
    ("worst-case attack disclosed", ("metrics.complete",)),
)


class AnomalyConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything that changes a number."""

    splits: Any
    scores: str | None = None
    data: str | None = None
    catalog: Any = None
    detector: str | None = None
    detector_options: dict[str, Any] = {}
    features: list[str] | None = None
    sources: dict[str, str] = {}
    imu_only: bool = False
    name: str | None = None
    target_fpr: float = 0.01
    n_consecutive: Any = 5
    threshold: float | None = None
    metrics: list[str] | None = None
    resamples: int = 2000
    level: float = 0.95
    seed: int = 0
    correlation_threshold: float = 0.9
    code: list[str] = []
    show_invalid: bool = False
    flight_column: str = "flight"
    time_column: str = "t"
    label_column: str = "label"
    target_column: str | None = None


class AnomalyPlan(Plan):
    """One configured evaluation of a detector."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        try:
            self.settings = settings = msgspec.convert(dict(options), AnomalyConfig)
        except msgspec.ValidationError as error:
            raise ConfigError(f"anomaly: {error}") from None
        _check(settings)
        given = settings.splits
        self.splits = read_splits(Path(given)) if isinstance(given, str) else parse_splits(given, "splits")
        self.catalog = None
        if settings.catalog is not None:
            listed = settings.catalog
            self.catalog = read_catalog(Path(listed)) if isinstance(listed, str) else parse_catalog(listed)
        self.config = msgspec.to_builtins(settings) | {
            "splits": self.splits.content(),
            "catalog": None if self.catalog is None else self.catalog.content,
        }
        self.consecutive, self.n = check_consecutive(settings.n_consecutive)
        if self.n < 1:
            raise ConfigError(f"n_consecutive is {self.n}, expected 1 or more")
        self.graph = VerifierGraph([rule for rules in rule_sets("anomaly", ()) for rule in rules.build(None)])
        self.rules = [rule.table() for rule in self.graph.rules]
        unseen = {"scores", "data", "code"}
        self.digests = {
            "config": digest({key: value for key, value in self.config.items() if key not in unseen}),
            "rules": digest(self.rules),
            "splits": digest(self.splits.content()),
        }
        self.model = settings.name or settings.detector or Path(settings.scores or "scores").name.partition(".")[0]
        self._table: ScoreTable | None = None

    def inputs(self) -> Sequence[Input]:
        """Nothing that the engine would split: flights are read whole."""
        return ()

    def judge(self, partition: Partition) -> Iterator[Judged]:
        """Not used; `whole` judges."""
        del partition
        return iter(())

    def whole(self, folder: Path) -> Iterator[Judged]:
        """Read or make the scores, keep them in the run, and judge every sequence of test."""
        settings = self.settings
        if settings.scores is not None:
            path = Path(settings.scores)
            table = read_scores(
                path, self.splits, flight=settings.flight_column, time=settings.time_column, label=settings.label_column
            )
            recorded = [*check_scored_splits(table, self.splits), *elsewhere_checks()]
            extra: dict[str, Any] = {}
            files = [("scores", path)]
        else:
            from adjudge.protocols.anomaly.harness import score_flights

            made = score_flights(settings, self.splits, self.catalog)
            table, recorded, extra = made.table, made.checks, made.record
            files = [("data", Path(settings.data or ""))]
        recorded.append(self._code_check(extra))
        self.read = [
            InputFile(role=role, name=path.name, bytes=path.stat().st_size, sha256=file_digest(path))
            for role, path in files
            if path.is_file()
        ]
        table.write(folder / FILE)
        self._use(table, recorded, extra)
        return iter([self._judged()])

    def attach(self, folder: Path) -> list[str]:
        """The scores and the recorded checks of a run."""
        try:
            report = msgspec.json.decode((folder / REPORT).read_bytes())
            recorded = [
                Check(c["code"], c["outcome"], c["reasons"], c["notes"], c["severity"] == "WARNING", c["observed"])
                for c in report["recorded"]
            ]
        except (OSError, msgspec.DecodeError, KeyError, TypeError) as error:
            raise RunError(f"{folder / REPORT} cannot be used: {type(error).__name__}") from None
        try:
            self._use(load(folder / FILE), recorded, report.get("record") or {})
        except (OSError, pa.ArrowInvalid, KeyError) as error:
            raise RunError(f"{folder / FILE} cannot be used: {error}") from None
        return []

    def recheck(self, samples: pa.Table, evidence: Evidence) -> list[str]:
        """Judge again from the scores of the run."""
        again = self._judged()
        problems = [f"evidence: {text}" for text in again.evidence.differences(evidence)]
        stored = samples.drop_columns(["part", "row"])
        if stored.num_rows != again.samples.num_rows:
            return [*problems, "samples.parquet: the sequences are not those of scores.parquet"]
        differ = (
            name
            for name in again.samples.column_names
            if stored.column(name).to_pylist() != again.samples.column(name).to_pylist()
        )
        return problems + [f"samples.parquet: column {name} is not what scores.parquet gives" for name in differ]

    def partial(self, samples: pa.Table, evidence: Evidence) -> Any:
        """Nothing beyond the scores, which are at hand whole."""
        del samples, evidence

    def finish(self, partials: Sequence[Any]) -> Measured:
        """Every number, or none of them where the contract was violated."""
        del partials
        settings, table, decisions = self.settings, self.table, self.decisions
        failed = [check for check in self.checks.values() if check.leak]
        stamp = "INVALID" if failed else "VALID"
        test = np.array(table.of(TEST), dtype=np.intp)
        buckets = self._buckets(test)
        notes = [*self.splits.notes, *self._few_flights(test)]
        top: dict[str, Any] = {
            "valid": not failed,
            "stamp": stamp,
            "violations": [{"code": check.code, "reasons": check.reasons} for check in failed],
            "calibration": self.calibration.to_dict(),
            "checklist": self._checklist(),
        }
        if failed and not settings.show_invalid:
            notes.append("the contract was violated: the metrics are withheld (--show-invalid shows them, watermarked)")
            return Measured([], buckets, {}, top, [], notes)
        measures = Measures(
            table,
            decisions,
            threshold=self.calibration.threshold,
            seed=settings.seed,
            resamples=settings.resamples,
            level=settings.level,
        )
        estimates = measures.slice("", test)
        rows = []
        for where, attack, magnitude, chosen in slices(table):
            found = measures.slice(where, chosen)
            estimates += found
            rows.append(_row(attack, magnitude, chosen, found, decisions))
        smallest = minimum_magnitudes(table, decisions)
        ranked = sorted(
            (row for row in rows if row["magnitude"] is None and row["recall"] is not None),
            key=lambda row: (row["recall"], row["attack"]),
        )
        worst, best = (ranked[0]["attack"], ranked[-1]["attack"]) if ranked else (None, None)
        metrics = _flat(estimates, decisions, test)
        for name in (settings.metrics and [name for name in PRIMARY if name not in settings.metrics]) or ():
            metrics.pop(name, None)
        top |= {
            "per_attack": rows,
            "worst_attack": worst,
            "best_attack": best,
            "min_detectable_magnitude": smallest,
            "negative_results": negative_results(rows, smallest),
            "controls": controls(
                table, estimates[0].estimate, seed=settings.seed, resamples=settings.resamples, level=settings.level
            ),
        }
        notes += [
            f"control {item['name']} failed: {item['why']}" for item in top["controls"] if item["outcome"] == "fail"
        ]
        if failed:
            top["watermark"] = WATERMARK
            notes.insert(0, WATERMARK)
        else:
            hold_complete(top, metrics, rows)
        pictures = charts(
            table,
            decisions,
            rows,
            worst,
            self.calibration.threshold,
            seed=settings.seed,
            resamples=settings.resamples,
            watermark=WATERMARK if failed else None,
        )
        return Measured(estimates, buckets, metrics, top, pictures, notes)

    def files(self, measured: Measured) -> dict[str, bytes]:
        """The files of the contract beside metrics.json."""
        report = {
            "checks": [check.to_dict() for check in self.checks.values()],
            "recorded": [check.to_dict() for check in self.recorded],
            "record": self.record,
        }
        catalog = self.config["catalog"]
        if catalog is None:
            listed = {(s.attack, s.magnitude, s.seed) for s in self.table.sequences if s.attack is not None}
            catalog = {
                "from_scores": [
                    {"attack": attack, "magnitude": size, "seed": seed}
                    for attack, size, seed in sorted(listed, key=lambda item: tuple(map(str, item)))
                ]
            }
        return {
            REPORT: pretty(report),
            CALIBRATION: pretty(
                measured.top["calibration"] | {"n_consecutive": self.n, "test_fpr": measured.metrics.get("fpr")}
            ),
            SPLITS_FILE: pretty(self.splits.content()),
            CATALOG_FILE: pretty(catalog),
            PER_ATTACK: _csv(measured.top.get("per_attack", []), measured.top.get("watermark")),
        }

    @property
    def table(self) -> ScoreTable:
        """The scores, once read."""
        if self._table is None:
            raise RunError("the scores of the run have not been read")
        return self._table

    def _use(self, table: ScoreTable, recorded: list[Check], record: dict[str, Any]) -> None:
        settings = self.settings
        self._table, self.recorded, self.record = table, recorded, record
        self.calibration: Calibration = calibrate(table, settings.target_fpr, settings.threshold)
        left_out = [name for name in PRIMARY if settings.metrics is not None and name not in settings.metrics]
        made = table_checks(table, self.calibration, self.consecutive, settings.resamples, left_out)
        found = {check.code: check for check in (*recorded, *made)}
        self.checks = {code: found.get(code) or not_applicable(code, "not checked") for code in TITLES}
        self.decisions: Decisions = decide(table, self.calibration.threshold, self.n)

    def _code_check(self, record: dict[str, Any]) -> Check:
        if not self.settings.code:
            return not_applicable("code.clean", "no code was given (--check-code)")
        report = scan_paths([Path(path) for path in self.settings.code])
        check = Check("code.clean", notes=report.unread)
        for leak in report.leaks:
            check.fail(f"{leak.place}: {leak.code}: {leak.why}")
        record["code_files"] = report.files
        return check

    def _judged(self) -> Judged:
        test = np.array(self.table.of(TEST), dtype=np.intp)
        part = self.decisions.take(test)
        alarmed = np.where(part.attacked, part.detected, part.events > 0)
        batch = ContractBatch(
            n=test.size,
            checks=self.checks,
            attacked=part.attacked,
            alarmed=alarmed,
            latency=part.latency_ms,
            events=part.events.astype(np.float64),
        )
        evidence = self.graph.evaluate(batch)
        valid = not any(check.leak for check in self.checks.values())
        good = np.where(part.attacked, part.detected, part.events == 0)
        own = evidence.layout.positions_of("detection")
        cites = evidence.outcome == FAIL
        cites[own] = evidence.outcome[own] != NOT_APPLICABLE
        words = {True: ("detected", "quiet"), False: ("missed", "false_alarm")}
        verdicts = [
            words[bool(g)][0 if a else 1] if valid else "invalid" for g, a in zip(good, part.attacked, strict=True)
        ]
        items = [self.table.sequences[index] for index in test]
        samples = pa.table(
            {
                "sample": pa.array([item.id for item in items], pa.string()),
                "model": pa.array([self.model] * test.size, pa.string()).cast(_WORD),
                "bucket": pa.array(["passed" if g else "failed" for g in good], pa.string()).cast(_WORD),
                "verdict": pa.array(verdicts, pa.string()).cast(_WORD),
                "cites": pack_citations(cites),
                "flight": pa.array([item.flight for item in items], pa.string()).cast(_WORD),
                "attack": pa.array([item.attack for item in items], pa.string()).cast(_WORD),
                "magnitude": pa.array([item.magnitude for item in items], pa.float64()),
                "seed": pa.array([item.seed for item in items], pa.int64()),
                **{name: pa.array(getattr(part, name)) for name in ("tp", "fp", "fn", "tn", "attacked", "detected")},
                "latency_ms": pa.array(part.latency_ms, from_pandas=True),
                **{name: pa.array(getattr(part, name)) for name in ("events", "true_events", "hours")},
            }
        )
        outputs = pa.table({"response": pa.array([f"{count} alarms" for count in part.events], pa.string())})
        return Judged(samples, evidence, outputs)

    def _buckets(self, test: np.ndarray[Any, np.dtype[np.intp]]) -> dict[str, Any]:
        part = self.decisions.take(test)
        good = int(np.where(part.attacked, part.detected, part.events == 0).sum())
        counts = dict.fromkeys(BUCKETS, 0) | {"passed": good, "failed": int(test.size) - good}
        return {name: counts | {"n": int(test.size)} for name in (self.model, "all")}

    def _few_flights(self, test: np.ndarray[Any, np.dtype[np.intp]]) -> list[str]:
        m = len({self.table.sequences[index].flight for index in test})
        if m >= _FEW:
            return []
        draws = comb(2 * m - 1, m) if m else 0
        text = f"only {m} test flights: the flight bootstrap has {draws} distinct resamples, so intervals are rough"
        return [text]

    def _checklist(self) -> list[dict[str, Any]]:
        lines = []
        for text, codes in _CHECKLIST:
            outcomes = {self.checks[code].outcome for code in codes}
            outcome = "fail" if "fail" in outcomes else "unknown" if outcomes == {"not_applicable"} else "pass"
            lines.append({"line": text, "outcome": outcome, "atoms": list(codes)})
        lines.append({"line": "one-command reproduction tested", "outcome": "unknown", "atoms": []})
        return lines


def _flat(estimates: Sequence[Named], decisions: Decisions, test: np.ndarray[Any, np.dtype[np.intp]]) -> dict[str, Any]:
    """The flat metrics over all of test; latency is one table of its own."""
    flat: dict[str, Any] = {"detection_latency_ms": {}}
    for name, where, estimate in estimates:
        if where:
            continue
        group, _, last = name.partition(".")
        if last:
            flat[group][last] = estimate.value
        else:
            flat[name] = estimate.value
    part = decisions.take(test)
    return flat | {name: int(getattr(part, name).sum()) for name in ("tp", "tn", "fp", "fn")}


def _row(
    attack: str,
    magnitude: float | None,
    chosen: np.ndarray[Any, np.dtype[np.intp]],
    found: Sequence[Named],
    decisions: Decisions,
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "attack": attack,
        "magnitude": magnitude,
        "sequences": int(decisions.attacked[chosen].sum()),
    }
    for name, _, estimate in found:
        row[name] = estimate.value
        if name in {"auroc", "recall", "recall_at_1pct_fpr"}:
            row[f"{name}_low"], row[f"{name}_high"] = estimate.low, estimate.high
    return row


def _csv(rows: Sequence[dict[str, Any]], watermark: str | None) -> bytes:
    text = io.StringIO()
    if watermark:
        text.write(f"# {watermark}\n")
    writer = csv.writer(text, lineterminator="\n")
    names = list(rows[0]) if rows else ["attack", "magnitude", "sequences"]
    writer.writerow(names)
    for row in rows:
        writer.writerow(
            ["" if row[name] is None else repr(v) if isinstance(v := row[name], float) else v for name in names]
        )
    return text.getvalue().encode()


def _check(settings: AnomalyConfig) -> None:
    if (settings.scores is None) == (settings.data is None):
        raise ConfigError("give either --scores (the detector ran elsewhere) or data with a detector (--config)")
    if not 0 < settings.target_fpr < 1:
        raise ConfigError(f"target_fpr is {settings.target_fpr}, expected a share between 0 and 1 (0.01 is 1 %)")
    if settings.resamples < 1:
        raise ConfigError(f"resamples is {settings.resamples}, expected 1 or more")
    if settings.data is not None and (settings.detector is None or settings.catalog is None):
        raise ConfigError("data needs a detector and a catalog (adjudge anomaly init writes a configuration)")
    if settings.metrics is not None and (unknown := set(settings.metrics) - set(PRIMARY)):
        raise ConfigError(f"metrics: {', '.join(sorted(unknown))} is none of {', '.join(PRIMARY)}")
