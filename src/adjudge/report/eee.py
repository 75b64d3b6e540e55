"""Every-Eval-Ever 0.3: a run as records that other tools collect, one aggregate and one file of instances a model.

The aggregate holds every estimate that has a value, with its interval; those without one are named with the reason. The
instances hold one line a sample. Times are the run's own, so that the same run gives the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from adjudge.errors import OutputError
from adjudge.report import view
from adjudge.runs.run import Run
from adjudge.stats.estimate import Estimate

VERSION = "0.3.0"
ABOUT = ("organization", "relationship", "developer", "deployment_type", "model_availability")
DEPLOYMENTS = ("self_deployed", "externally_managed", "unknown")
AVAILABLE = ("open_weights", "closed_weights", "unknown")
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
# What a run keeps of the input and of the truth, by protocol; any other protocol's are what it calls its data set.
_INPUT = {"flight": ("shown",), "gui": ("episode", "step", "scenario", "platform"), "anomaly": ("flight", "seed")}
_REFERENCE = {
    "gui": ("type", "x", "y", "end_x", "end_y", "element", "argument"),
    "anomaly": ("attack", "magnitude"),
    "stability": ("answerable",),
    "consistency": (),
}
_DATASET = ("label", "gold")
_SAID = ("said_type", "said_x", "said_y", "said_end_x", "said_end_y", "said_element", "said_argument")


def write(run: Run, folder: Path, about: Mapping[str, str] | None = None) -> list[Path]:
    """Write the records of a run into a folder that appears when it is whole; the paths of the aggregates."""
    if folder.exists():
        raise OutputError(f"{folder} exists already; choose another folder")
    part = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.part"
    try:
        part.mkdir(parents=True)
        names = _fill(run, part, about or {})
        part.rename(folder)
    except OSError as error:
        raise OutputError(f"cannot write {folder}: {error.strerror}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return [folder / name for name in names]


def _fill(run: Run, folder: Path, about: Mapping[str, str]) -> list[str]:
    names = _places(run, about)
    rows = dict.fromkeys(names, 0)
    for name in names.values():
        (folder / name).parent.mkdir(parents=True)
    with ExitStack() as stack:
        sinks: dict[str, BinaryIO] = {
            system: stack.enter_context((folder / f"{name}_samples.jsonl").open("wb")) for system, name in names.items()
        }
        for system, line in _instances(run):
            sinks[system].write(msgspec.json.encode(line) + b"\n")
            rows[system] += 1
    for system, name in names.items():
        path = folder / f"{name}_samples.jsonl"
        with path.open("rb") as stream:
            checksum = hashlib.file_digest(stream, "sha256").hexdigest()
        document = aggregate(run, system, about) | {
            "detailed_evaluation_results": {
                "format": "jsonl",
                "file_path": f"{name}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": checksum,
                "total_rows": rows[system],
            }
        }
        (folder / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
    return [f"{name}.json" for name in names.values()]


def aggregate(run: Run, system: str, about: Mapping[str, str]) -> dict[str, Any]:
    """The aggregate record of one model."""
    systems = _systems(run)
    estimates = {key: item for key, item in run.estimates.items() if _owner(key[1], systems) == system}
    developer = {"developer": about["developer"]} if "developer" in about else {}
    details = {key: about.get(key, "unknown") for key in ("deployment_type", "model_availability")}
    manifest = run.manifest
    return {
        "schema_version": VERSION,
        "evaluation_id": _evaluation_id(run, system),
        "evaluation_timestamp": manifest.timestamp,
        "retrieved_timestamp": _epoch(run),
        "source_metadata": {
            "source_name": f"adjudge {manifest.protocol} {manifest.protocol_version}",
            "source_type": "evaluation_run",
            "source_organization_name": about.get("organization", "unknown"),
            "evaluator_relationship": about.get("relationship", "other"),
            "additional_details": {
                f"no value: {name}" + (f" [{where}]" if where else ""): item.why or "no reason given"
                for (name, where), item in estimates.items()
                if item.value is None
            },
        },
        "model_info": {"name": system, "id": system, **developer, "additional_details": details},
        "eval_library": {
            "name": "adjudge",
            "version": manifest.environment.get("adjudge", "unknown"),
            "additional_details": {name: value for name, value in manifest.digests.items() if name != "report_data"},
        },
        "evaluation_results": [
            _result(run, system, name, where, item)
            for (name, where), item in estimates.items()
            if item.value is not None
        ],
    }


def whole_run(run: Run) -> int:
    """How many estimates are about several models at once, and so stand in no record."""
    systems = _systems(run)
    return sum(_owner(where, systems) is None for _, where in run.estimates)


def _result(run: Run, system: str, name: str, where: str, item: Estimate) -> dict[str, Any]:
    manifest, metric = run.manifest, run.metric(name)
    rest = "" if where.partition("=")[2] == system else where
    uncertainty: dict[str, Any] = {"num_samples": item.n}
    details = {"n": str(item.n), "method": item.method, **({"slice": where} if where else {})}
    if item.low is not None and item.high is not None:
        uncertainty["confidence_interval"] = {
            "lower": item.low,
            "upper": item.high,
            "confidence_level": item.level,
            "method": item.method,
        }
    else:  # an interval with one end is no confidence_interval there
        details |= {end: repr(value) for end, value in (("low", item.low), ("high", item.high)) if value is not None}
    if item.warnings:
        details["warnings"] = "; ".join(item.warnings)
    return {
        "evaluation_result_id": f"{manifest.protocol}.{name}" + (f"/{where}" if where else ""),
        "evaluation_name": view.task_name(run) + (f", {rest}" if rest else ""),
        "source_data": {
            "dataset_name": ", ".join(file.name for file in manifest.inputs) or manifest.protocol,
            "source_type": "other",
            "additional_details": {file.name: file.sha256 for file in manifest.inputs},
        },
        "metric_config": {
            "metric_id": f"{manifest.protocol}.{name}",
            "metric_name": metric.title,
            "lower_is_better": metric.better == "lower",
            "score_type": "continuous",
            "min_score": "-Infinity" if metric.low is None else metric.low,
            "max_score": "Infinity" if metric.high is None else metric.high,
        },
        "score_details": {"score": item.value, "uncertainty": uncertainty, "details": details},
    }


def _instances(run: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every sample with the system it belongs to."""
    column = view.system_column(run)
    shown = {system: _evaluation_id(run, system) for system in _systems(run)}
    for part, batch, samples, _ in run.numbered_batches():
        outputs = run.outputs(part, batch)
        texts = [] if outputs is None else outputs.to_pylist()
        for row, output in zip(samples.to_pylist(), texts, strict=True):
            system = str(row[column])
            yield system, _instance(run, row, output, system, shown[system])


def _instance(
    run: Run, row: Mapping[str, Any], output: Mapping[str, Any], system: str, evaluation_id: str
) -> dict[str, Any]:
    protocol = run.manifest.protocol
    raw = _json({"sample": row["sample"], **_columns(row, _INPUT.get(protocol, ()))})
    wanted = _REFERENCE.get(protocol, tuple(run.metrics.get("dataset_columns") or _DATASET))
    known = _columns(row, wanted)
    reference = [_json(value) for value in ([known] if len(wanted) > 1 else known.values())]
    passed = row["bucket"] == "passed"
    metadata = {"bucket": str(row["bucket"]), "verdict": str(row["verdict"])}
    if row.get("trial") is not None:
        metadata["trial"] = str(row["trial"])
    return {
        "schema_version": f"instance_level_eval_{VERSION}",
        "evaluation_id": evaluation_id,
        "model_id": system,
        "evaluation_name": view.task_name(run),
        "sample_id": str(row["sample"]),
        "sample_hash": hashlib.sha256((raw + "".join(reference)).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": raw, "reference": reference},
        "output": {"raw": _texts(output)},
        "answer_attribution": _attribution(row, output),
        "evaluation": {"score": 1.0 if passed else 0.0, "is_correct": passed},
        "metadata": metadata,
    }


def _texts(output: Mapping[str, Any]) -> list[str]:
    """The responses as the run keeps them; none where there is none."""
    kept = output.get("response", output.get("claims"))
    if kept is None:
        return []
    return [str(text) for text in kept if text is not None] if isinstance(kept, list) else [str(kept)]


def _attribution(row: Mapping[str, Any], output: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What was taken out of the response, and how; empty where nothing could be read."""
    text, start, end = output.get("response"), row.get("start"), row.get("end")
    if isinstance(text, str) and isinstance(start, int) and isinstance(end, int) and 0 <= start < end:
        value, method = text[start:end], f"JSON extractor, {row.get('method')}"
    elif row.get("said_type") is not None:
        value, method = _json(_columns(row, _SAID)), "action language"
    elif isinstance(row.get("answer"), str):
        value, method = str(row["answer"]), "label"
    else:
        return []
    place = {"turn_idx": 0, "source": "output.raw"}
    return [place | {"extracted_value": value, "extraction_method": method, "is_terminal": True}]


def _columns(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: row[name] for name in names if row.get(name) is not None}


def _json(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _systems(run: Run) -> list[str]:
    return sorted(str(name) for name in run.columns([view.system_column(run)]).column(0).unique().to_pylist())


def _owner(where: str, systems: Sequence[str]) -> str | None:
    """The system that a slice is about: `model=a`, `trial=a|0`, `slice=a,source=b`; with one system, always that."""
    if len(systems) == 1:
        return systems[0]
    value = where.partition("=")[2]
    owners = [system for system in systems if value == system or value.startswith((f"{system}|", f"{system},"))]
    return max(owners, key=len) if owners else None


def _evaluation_id(run: Run, system: str) -> str:
    return f"{view.task_name(run)}/{system}/{_epoch(run)}"


def _epoch(run: Run) -> str:
    """The run's time in seconds since 1970, as the format wants it."""
    return str(int(datetime.fromisoformat(run.manifest.timestamp).timestamp()))


def _places(run: Run, about: Mapping[str, str]) -> dict[str, str]:
    """Where the files of each system stand, without their endings: data/BENCHMARK/DEVELOPER/MODEL/UUID, as the format wants.

    The UUID follows from the run and the system, so that the same run gives the same names.
    """
    benchmark, developer = (_plain(text) for text in (view.task_name(run), about.get("developer", "unknown")))
    places = {}
    for system, name in _file_names(_systems(run)).items():
        content = hashlib.sha256(f"{run.manifest.timestamp}/{_evaluation_id(run, system)}/{name}".encode()).digest()
        places[system] = f"data/{benchmark}/{developer}/{name}/{uuid.UUID(bytes=content[:16], version=4)}"
    return places


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text).strip("._")[:100] or "model"


def _file_names(systems: Sequence[str]) -> dict[str, str]:
    """A file name for each system: its own signs where a file can have them, a number where two would be the same."""
    names: dict[str, str] = {}
    for system in systems:
        plain = _plain(system)
        used_names = {name.lower() for name in names.values()}
        candidates = (plain, *(f"{plain}-{number}" for number in range(2, len(systems) + 2)))
        names[system] = next(name for name in candidates if name.lower() not in used_names)
    return names
