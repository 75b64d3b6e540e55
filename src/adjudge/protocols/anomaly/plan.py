"""The anomaly plan: from a configuration to sequences, evidence of the contract, numbers, and the stamp on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.errors import ConfigError, InputError, RunError
from adjudge.evidence.table import Evidence
from adjudge.protocols.anomaly import samples as storage
from adjudge.protocols.anomaly.catalog import Catalog, parse_catalog, read_catalog
from adjudge.protocols.anomaly.checks import Check
from adjudge.protocols.anomaly.code_files import code_check, scan_paths
from adjudge.protocols.anomaly.config import parse
from adjudge.protocols.anomaly.contract import check_consecutive, check_scored_splits, elsewhere_checks, missing_reasons
from adjudge.protocols.anomaly.judge import Judgement, Scoring
from adjudge.protocols.anomaly.results import measured_of, per_attack_csv, result
from adjudge.protocols.anomaly.rows import parse_splits, read_splits
from adjudge.protocols.anomaly.stamp import Reproduction, recorded_reproduction
from adjudge.protocols.base import Input, Judged, Measured, Partition
from adjudge.protocols.common.plan import RulePlan
from adjudge.provenance.canonical import file_digest, pretty
from adjudge.provenance.manifest import InputFile

REPORT, CALIBRATION, PER_ATTACK = "leakage_report.json", "calibration.json", "per_attack.csv"
SPLITS_FILE, CATALOG_FILE = "splits.json", "catalog.json"
_FILES = ("scores", "data", "code", "no_scores")
"""Settings that change no number."""


class AnomalyPlan(RulePlan):
    """One configured evaluation of one or several detectors."""

    unread = ""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.settings = settings = parse(options)
        splits, catalog = settings.splits, settings.catalog
        self.splits = read_splits(Path(splits)) if isinstance(splits, str) else parse_splits(splits, "splits")
        self.catalog: Catalog | None = None
        if catalog is not None:
            self.catalog = read_catalog(Path(catalog)) if isinstance(catalog, str) else parse_catalog(catalog)
        content = None if self.catalog is None else self.catalog.content
        self.config = msgspec.to_builtins(settings) | {"splits": self.splits.content(), "catalog": content}
        n = check_consecutive(settings.n_consecutive)[1]
        if n < 1:
            raise ConfigError(f"n_consecutive is {n}, expected 1 or more")
        self.use_rules("anomaly", None)
        self.use_digests(without=_FILES, rules=self.rules, splits=self.splits.content())
        self.judgements: list[Judgement] = []
        self.reproduced: Reproduction | None = None

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
        code, code_record = Check.unknown("code.clean", "no code was given (--check-code)"), dict[str, Any]()
        if settings.code:
            scanned = scan_paths([Path(path) for path in settings.code])
            code, code_record = code_check(scanned), {"code": scanned.to_dict()}
        if settings.scores is not None:
            from adjudge.protocols.anomaly.scores import read_scores

            path, role = Path(settings.scores), "scores"
            table, notes = read_scores(path, self.splits, settings)
            record = {"declared": [list(pair) for pair in table.declared], "notes": notes}
            checks = [*check_scored_splits(table, self.splits, settings.overlap_bound), *elsewhere_checks()]
            scored = [Scoring(settings.judged()[0].label, table, [], checks, record)]
        else:
            from adjudge.protocols.anomaly.harness import score_flights

            path, role = Path(settings.data or ""), "data"
            scored = score_flights(settings, self.splits, self.catalog)
        for each in scored:
            self._use(replace(each, recorded=[*each.recorded, code], record=each.record | code_record))
        files = [path] if path.is_file() else sorted(item for item in path.rglob("*") if item.is_file())
        self.read = [
            InputFile(role=role, name=file.name, bytes=file.stat().st_size, sha256=file_digest(file)) for file in files
        ]
        if settings.no_scores:
            storage.write_partials(self.judgements, folder / storage.PARTIALS)
        else:
            storage.write_scores(self.judgements, folder / storage.SCORES)
        judged = storage.judged_samples(self.judgements, self.graph)
        if not judged.samples.num_rows:
            raise InputError(
                "has no row of a test flight, so that nothing can be judged.",
                file=str(path),
                hint="Are the ids of test_flights in --splits those of the column of flights?",
            )
        return iter([judged])

    def attach(self, folder: Path) -> list[str]:
        """The scores and the recorded checks of a run; what the record should say and does not."""
        if self.settings.no_scores:
            why = "so the numbers of metrics.json are not recomputable; the digests were checked"
            raise RunError(f"{storage.SCORES}: was not kept (--no-scores), {why}")
        reports = self._reports(folder)
        try:
            by_model = storage.load_scores(folder / storage.SCORES)
        except (OSError, pa.ArrowInvalid, KeyError) as error:
            raise RunError(f"{folder / storage.SCORES} cannot be used: {error}") from None
        self.reproduced = recorded_reproduction(folder)
        problems = []
        for model, tables in by_model.items():
            if model not in reports:
                raise RunError(f"{folder / REPORT}: says nothing of detector {model}")
            recorded, record = reports[model]
            if None not in tables:
                raise RunError(f"{folder / storage.SCORES}: holds no scores of detector {model} over the splits")
            table = tables.pop(None)
            table.declared = [(flight, split) for flight, split in record.get("declared") or ()]
            folds = [(str(fold), each) for fold, each in tables.items()]
            self._use(Scoring(model, table, folds, recorded, record))
            missing = missing_reasons(recorded, record, table, self.splits, self.settings)
            problems += [f"{REPORT}: {text}" for text in missing]
        if [item.name for item in self.judgements] != [item.label for item in self.settings.judged()]:
            problems.append(f"{storage.SCORES}: its detectors are not those of the configuration")
        return problems

    def recheck(self, samples: pa.Table, evidence: Evidence) -> list[str]:
        """Judge again from the scores of the run."""
        again = storage.judged_samples(self.judgements, self.graph)
        problems = [f"evidence: {text}" for text in again.evidence.differences(evidence)]
        if samples.num_rows != again.samples.num_rows:
            return [*problems, f"samples.parquet: the sequences are not those of {storage.SCORES}"]
        return problems + [
            f"samples.parquet: column {name} is not what {storage.SCORES} gives"
            for name in again.samples.column_names
            if samples.column(name).to_pylist() != again.samples.column(name).to_pylist()
        ]

    def reread(self, samples: pa.Table, outputs: pa.Table) -> list[str]:
        """There are no texts of a model, but the alarms in words."""
        same = outputs.column("response").to_pylist() == storage.alarms_in_words(samples).to_pylist()
        return [] if same else ["response is not the number of alarms in samples.parquet"]

    def partial(self, samples: pa.Table, evidence: Evidence, batch: Any = None) -> Any:
        """Nothing beyond the scores, which are at hand whole."""
        del samples, evidence, batch

    def finish(self, partials: Sequence[Any]) -> Measured:
        """Every number of every detector that kept the contract."""
        del partials
        attacks = () if self.catalog is None else self.catalog.attacks
        sizes = {attack.name: attack.sized_by for attack in attacks if attack.sized_by is not None}
        options: dict[str, Any] = {"several": self.several, "reproduced": self.reproduced, "sizes": sizes}
        results = [(judged, result(judged, self.settings, **options)) for judged in self.judgements]
        notes = [*self.splits.notes, *(() if self.catalog is None else self.catalog.notes)]
        return measured_of(results, sizes, several=self.several, notes=notes)

    def files(self, measured: Measured) -> dict[str, bytes]:
        """The files of the contract beside metrics.json."""
        tops = measured.top["detectors"] if self.several else {self.judgements[0].name: measured.top}
        reports = {
            item.name: {
                "checks": [check.to_dict() for check in item.checks.values()],
                "recorded": [check.to_dict() for check in item.recorded],
                "record": item.record,
            }
            for item in self.judgements
        }
        calibrations = {name: top["calibration"] for name, top in tops.items()}
        rows = [(name, row) for name, top in tops.items() for row in top.get("per_attack", ())]
        watermark = next((top["watermark"] for top in tops.values() if "watermark" in top), None)
        only = self.judgements[0].name
        return {
            REPORT: pretty({"detectors": reports} if self.several else reports[only]),
            CALIBRATION: pretty({"detectors": calibrations} if self.several else calibrations[only]),
            SPLITS_FILE: pretty(self.splits.content()),
            CATALOG_FILE: pretty(self._catalog_content()),
            PER_ATTACK: per_attack_csv(rows, watermark, several=self.several),
        }

    @property
    def several(self) -> bool:
        """Whether the configuration lists detectors, so that every name is prefixed with one."""
        return self.settings.detectors is not None

    def _catalog_content(self) -> dict[str, Any]:
        content: dict[str, Any] | None = self.config["catalog"]
        if content is not None:
            return content
        items = self.judgements[0].table.sequences
        listed = {(item.attack, item.magnitude, item.seed) for item in items if item.attack is not None}
        ordered = sorted(listed, key=lambda each: tuple(map(str, each)))
        return {"from_scores": [dict(zip(("attack", "magnitude", "seed"), each, strict=True)) for each in ordered]}

    def _reports(self, folder: Path) -> dict[str, tuple[list[Check], dict[str, Any]]]:
        try:
            report = msgspec.json.decode((folder / REPORT).read_bytes())
            each = report["detectors"] if self.several else {self.settings.judged()[0].label: report}
            return {
                name: ([Check.of(check) for check in content["recorded"]], content.get("record") or {})
                for name, content in each.items()
            }
        except (OSError, msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
            raise RunError(f"{folder / REPORT} cannot be used: {type(error).__name__}") from None

    def _use(self, scoring: Scoring) -> None:
        attacks = None if self.catalog is None else self.catalog.attacks
        self.judgements.append(Judgement.of(scoring, self.settings, attacks))


plan = AnomalyPlan
