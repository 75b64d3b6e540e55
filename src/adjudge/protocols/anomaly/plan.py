"""The anomaly plan: from a configuration to sequences, evidence of the contract, numbers, and the INVALID stamp."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.errors import ConfigError, RunError
from adjudge.evidence.citations import pack_citations
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import FAIL, NOT_APPLICABLE
from adjudge.protocols.anomaly import partials, reproduce
from adjudge.protocols.anomaly.catalog import parse_catalog, read_catalog
from adjudge.protocols.anomaly.code_files import scan_paths
from adjudge.protocols.anomaly.contract import ContractBatch, check_consecutive, check_scored_splits, elsewhere_checks
from adjudge.protocols.anomaly.judgement import Judgement
from adjudge.protocols.anomaly.leakage import Check, not_applicable
from adjudge.protocols.anomaly.recorded import missing_reasons
from adjudge.protocols.anomaly.results import HEADLINE, UNITS, Result, per_attack_csv, result
from adjudge.protocols.anomaly.settings import parse
from adjudge.protocols.anomaly.splits import parse_splits, read_splits
from adjudge.protocols.anomaly.table import FILE, Part, ScoreTable, load, read_scores, write
from adjudge.protocols.base import Input, Judged, Measured, Partition
from adjudge.protocols.common.columns import WORD
from adjudge.protocols.common.plan import RulePlan
from adjudge.provenance.canonical import file_digest, pretty
from adjudge.provenance.manifest import InputFile

REPORT, CALIBRATION, PER_ATTACK, SPLITS_FILE, CATALOG_FILE = (
    "leakage_report.json",
    "calibration.json",
    "per_attack.csv",
    "splits.json",
    "catalog.json",
)
_COUNTS = ("tp", "fp", "fn", "tn", "attacked", "detected")


class AnomalyPlan(RulePlan):
    """One configured evaluation of one or several detectors."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.settings = settings = parse(options)
        splits = settings.splits
        self.splits = read_splits(Path(splits)) if isinstance(splits, str) else parse_splits(splits, "splits")
        self.catalog = None
        if settings.catalog is not None:
            listed = settings.catalog
            self.catalog = read_catalog(Path(listed)) if isinstance(listed, str) else parse_catalog(listed)
        self.config = msgspec.to_builtins(settings) | {
            "splits": self.splits.content(),
            "catalog": None if self.catalog is None else self.catalog.content,
        }
        n = check_consecutive(settings.n_consecutive)[1]
        if n < 1:
            raise ConfigError(f"n_consecutive is {n}, expected 1 or more")
        self.use_rules("anomaly", None)
        unseen = ("scores", "data", "code", "no_scores")
        self.use_digests(without=unseen, rules=self.rules, splits=self.splits.content())
        self.several = settings.detectors is not None
        self.judgements: list[Judgement] = []
        self.reproduced: bool | None = None

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
            path, role = Path(settings.scores), "scores"
            table = read_scores(path, self.splits, settings.columns())
            record: dict[str, Any] = {"declared": [list(pair) for pair in table.declared]}
            checks = [*check_scored_splits(table, self.splits), *elsewhere_checks(), self._code_check(record)]
            self._use(settings.judged()[0].label, table, checks, record, [])
        else:
            from adjudge.protocols.anomaly.harness import score_flights

            path, role = Path(settings.data or ""), "data"
            code: dict[str, Any] = {}
            scanned = self._code_check(code)
            for made in score_flights(settings, self.splits, self.catalog):
                self._use(made.name, made.table, [*made.checks, scanned], made.record | code, made.folds)
        if path.is_file():
            self.read = [InputFile(role=role, name=path.name, bytes=path.stat().st_size, sha256=file_digest(path))]
        if settings.no_scores:
            partials.write(self.judgements, folder / partials.FILE)
        else:
            write(self._parts(), folder / FILE)
        return iter([self._judged()])

    def attach(self, folder: Path) -> list[str]:
        """The scores and the recorded checks of a run; what the record should say and does not."""
        if self.settings.no_scores:
            raise RunError(
                f"{FILE}: was not kept (--no-scores), so the numbers of metrics.json are not recomputable; "
                "the digests were checked"
            )
        reports = self._reports(folder)
        try:
            parts = load(folder / FILE)
        except (OSError, pa.ArrowInvalid, KeyError) as error:
            raise RunError(f"{folder / FILE} cannot be used: {error}") from None
        self.reproduced = reproduce.outcome(folder)
        problems = []
        for model in dict.fromkeys(part.model for part in parts):
            if model not in reports:
                raise RunError(f"{folder / REPORT}: says nothing of detector {model}")
            recorded, record = reports[model]
            of_model = [part for part in parts if part.model == model]
            table = next((part.table for part in of_model if part.fold is None), None)
            if table is None:
                raise RunError(f"{folder / FILE}: holds no scores of detector {model} over the splits")
            table.declared = [(flight, split) for flight, split in record.get("declared") or ()]
            folds = [(part.fold, part.table) for part in of_model if part.fold is not None]
            self._use(model, table, recorded, record, folds)
            problems += [
                f"{REPORT}: {text}" for text in missing_reasons(recorded, record, table, self.splits, self.settings)
            ]
        if [item.name for item in self.judgements] != [item.label for item in self.settings.judged()]:
            problems.append(f"{FILE}: its detectors are not those of the configuration")
        return problems

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

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Any:
        """Nothing beyond the scores, which are at hand whole."""
        del samples, evidence, batch

    def finish(self, partials: Sequence[Any]) -> Measured:
        """Every number of every detector that kept the contract."""
        del partials
        attacks = () if self.catalog is None else self.catalog.attacks
        sizes = {attack.name: attack.sized_by for attack in attacks if attack.sized_by is not None}
        options: dict[str, Any] = {"several": self.several, "reproduced": self.reproduced, "sizes": sizes}
        results = [(item, result(item, self.settings, **options)) for item in self.judgements]
        counts = {item.name: item.buckets() for item in self.judgements}
        total = {key: sum(each[key] for each in counts.values()) for key in next(iter(counts.values()))}
        notes = [*self.splits.notes]
        for item, each in results:
            notes += [f"{item.name}: {text}" if self.several else text for text in each.notes]
        return Measured(
            [estimate for _, each in results for estimate in each.estimates],
            {**counts, "all": total},
            self._metrics(results),
            self._top(results),
            [chart for _, each in results for chart in each.charts],
            list(dict.fromkeys(notes)),
        )

    def files(self, measured: Measured) -> dict[str, bytes]:
        """The files of the contract beside metrics.json."""
        tops = measured.top["detectors"] if self.several else {self.judgements[0].name: measured.top}
        reports, calibrations, rows = {}, {}, []
        for item in self.judgements:
            top = tops[item.name]
            reports[item.name] = {
                "checks": [check.to_dict() for check in item.checks.values()],
                "recorded": [check.to_dict() for check in item.recorded],
                "record": item.record,
            }
            fpr = measured.metrics.get(f"{item.name}/fpr" if self.several else "fpr")
            calibrations[item.name] = top["calibration"] | {"n_consecutive": item.n_consecutive, "test_fpr": fpr}
            rows += [(item.name if self.several else None, row) for row in top.get("per_attack", ())]
        watermark = next((top["watermark"] for top in tops.values() if "watermark" in top), None)
        only = self.judgements[0].name
        return {
            REPORT: pretty({"detectors": reports} if self.several else reports[only]),
            CALIBRATION: pretty({"detectors": calibrations} if self.several else calibrations[only]),
            SPLITS_FILE: pretty(self.splits.content()),
            CATALOG_FILE: pretty(self._catalog_content()),
            PER_ATTACK: per_attack_csv(rows, watermark),
        }

    def _metrics(self, results: Sequence[tuple[Judgement, Result]]) -> dict[str, Any]:
        if not self.several:
            return results[0][1].metrics
        return {f"{item.name}/{name}": value for item, each in results for name, value in each.metrics.items()}

    def _top(self, results: Sequence[tuple[Judgement, Result]]) -> dict[str, Any]:
        shown = {"headline": list(HEADLINE), "units": UNITS} if any(each.estimates for _, each in results) else {}
        if not self.several:
            return results[0][1].top | shown
        valid = all(each.top["valid"] for _, each in results)
        return {
            "valid": valid,
            "stamp": "VALID" if valid else "INVALID",
            "violations": [
                {"model": item.name, **violation} for item, each in results for violation in each.top["violations"]
            ],
            "detectors": {item.name: each.top for item, each in results},
            **shown,
        }

    def _parts(self) -> Iterator[Part]:
        for item in self.judgements:
            yield Part(item.name, None, item.table)
            for name, table in item.folds:
                yield Part(item.name, name, table)

    def _catalog_content(self) -> dict[str, Any]:
        content: dict[str, Any] | None = self.config["catalog"]
        if content is not None:
            return content
        items = self.judgements[0].table.sequences
        listed = {(item.attack, item.magnitude, item.seed) for item in items if item.attack is not None}
        return {
            "from_scores": [
                {"attack": attack, "magnitude": size, "seed": seed}
                for attack, size, seed in sorted(listed, key=lambda item: tuple(map(str, item)))
            ]
        }

    def _reports(self, folder: Path) -> dict[str, tuple[list[Check], dict[str, Any]]]:
        try:
            report = msgspec.json.decode((folder / REPORT).read_bytes())
            each = report["detectors"] if self.several else {self.settings.judged()[0].label: report}
            return {
                name: (
                    [
                        Check(
                            c["code"], c["outcome"], c["reasons"], c["notes"], c["severity"] == "WARNING", c["observed"]
                        )
                        for c in content["recorded"]
                    ],
                    content.get("record") or {},
                )
                for name, content in each.items()
            }
        except (OSError, msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
            raise RunError(f"{folder / REPORT} cannot be used: {type(error).__name__}") from None

    def _use(
        self,
        name: str,
        table: ScoreTable,
        recorded: list[Check],
        record: dict[str, Any],
        folds: list[tuple[str, ScoreTable]],
    ) -> None:
        attacks = None if self.catalog is None else [(a.name, a.magnitude, a.seed) for a in self.catalog.attacks]
        self.judgements.append(Judgement.of(name, table, recorded, record, self.settings, attacks, folds))

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
        """All sequences of test, those of one sequence side by side by detector."""
        every = self.judgements
        sizes = [item.test.size for item in every]
        model = np.repeat(np.arange(len(every)), sizes)
        # Detectors run over the same sequences, so the place in the run's order is the place in each table.
        place = np.concatenate([np.arange(size) for size in sizes])
        order = np.lexsort((model, place))
        parts = [item.decisions.take(item.test) for item in every]

        def column(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])[order]

        attacked, events = column("attacked"), column("events")
        batch = ContractBatch(
            n=int(order.size),
            checks=[item.checks for item in every],
            model=model[order],
            broken=np.array([item.broken for item in every])[model[order]],
            attacked=attacked,
            alarmed=np.where(attacked, column("detected"), events > 0),
            latency=column("latency_ms"),
            events=events.astype(np.float64),
        )
        evidence = self.graph.evaluate(batch)
        detections = evidence.layout.positions_of("detection")
        cites = evidence.outcome == FAIL
        cites[detections] = evidence.outcome[detections] != NOT_APPLICABLE
        items = [every[m].table.sequences[every[m].test[k]] for m, k in zip(model[order], place[order], strict=True)]
        buckets = [name for item in every for name in item.bucket_names()]
        verdicts = [name for item in every for name in item.verdicts()]

        def words(values: list[Any]) -> pa.Array:
            return pa.array(values, pa.string()).cast(WORD)

        samples = pa.table(
            {
                "sample": pa.array([item.id for item in items], pa.string()),
                "model": words([every[m].name for m in model[order]]),
                "bucket": words([buckets[k] for k in order]),
                "verdict": words([verdicts[k] for k in order]),
                "cites": pack_citations(cites),
                "flight": words([item.flight for item in items]),
                "attack": words([item.attack for item in items]),
                "magnitude": pa.array([item.magnitude for item in items], pa.float64()),
                "seed": pa.array([item.seed for item in items], pa.int64()),
                **{name: pa.array(column(name)) for name in _COUNTS},
                "latency_ms": pa.array(batch.latency, from_pandas=True),
                **{name: pa.array(column(name)) for name in ("events", "true_events", "hours")},
            }
        )
        outputs = pa.table({"response": pa.array([f"{count} alarms" for count in events], pa.string())})
        return Judged(samples, evidence, outputs)


plan = AnomalyPlan
