"""Is the judge any good? Its verdicts against the rules' and against people's, by the statistics of agreement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from adjudge.errors import ConfigError, InputError
from adjudge.provenance.canonical import digest, pretty
from adjudge.readers.records import records
from adjudge.readers.sources import open_source
from adjudge.runs.run import Run
from adjudge.runs.writer import VALIDATION
from adjudge.stats.agreement import cohen_kappa, pair_counts, percent_agreement
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import wilson
from adjudge.verdict.agent import DECISIONS, ELIGIBLE, RULES, rule_verdicts
from adjudge.verdict.deliberation import AGENT

_SCHEMA = "adjudge-validation/1"
_SAME = ("model", "prompt_sha256", "checklist_sha256")


class _Label(msgspec.Struct):
    id: str | int
    verdict: str
    model: str | None = None


def identity(agent: Mapping[str, Any]) -> dict[str, Any]:
    """What a validation must be about, from agent.json: the model, the prompt, the checklist."""
    told = {name: agent[name] for name in ("agent", "model", "language_model")}
    return {**told, "prompt_sha256": agent.get("prompt_sha256"), "checklist_sha256": digest(agent["checklist"])}


def read_labels(path: Path) -> list[_Label]:
    """People's verdicts: a line a sample with `id`, `verdict`, and `model` where several answered."""
    labels = []
    with open_source(str(path)) as source:
        for number, text in records(source):
            try:
                label = msgspec.json.decode(text, type=_Label)
            except msgspec.DecodeError:
                what = 'is no label; expected {"id": …, "verdict": "eligible" or "ineligible"}'
                raise InputError(what, file=str(path), line=number) from None
            if label.verdict not in DECISIONS:
                what = f"verdict is {label.verdict!r}, expected one of {', '.join(DECISIONS)}"
                raise InputError(what, file=str(path), line=number)
            labels.append(label)
    return labels


def validation_of(run: Run, labels: Sequence[_Label] = (), source: str | None = None) -> dict[str, Any]:
    """The validation as plain data: agreement with the rules, with people where there are labels, and over votes."""
    if run.agent is None or run.agent["agent"] == RULES:
        raise ConfigError(f"{run.path}: the rules judged this run; there is no other agent to validate")
    rows = list(_decided(run))
    if not rows:
        raise ConfigError(f"{run.path}: no answer of the judge passed the checks, so there is nothing to validate")
    by_sample: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_sample.setdefault(row["sample"], []).append(row)
    pairs: list[tuple[bool, bool]] = []
    unmatched = 0
    for label in labels:
        matched = [row for row in by_sample.get(str(label.id), ()) if label.model in {None, row["model"]}]
        unmatched += not matched
        pairs += [(label.verdict == ELIGIBLE, row["eligible"]) for row in matched]
    if labels and not pairs:
        raise ConfigError(f"{source}: none of its {len(labels)} labels is about a sample that the judge decided")
    people = {"source": source, "labels": len(labels), "unmatched": unmatched, **_agreement(pairs)} if labels else None
    voted = [row["votes"] for row in rows if len(row["votes"]) > 1]
    flips = sum(len(set(votes)) > 1 for votes in voted)
    return {
        "schema": _SCHEMA,
        **identity(run.agent),
        "samples": len(rows),
        "rules": _agreement([(row["rules"], row["eligible"]) for row in rows]),
        "people": people,
        "flip_rate": None if not voted else wilson(flips, len(voted)).to_dict(),
        "labels": [msgspec.to_builtins(label) for label in labels],
    }


def _decided(run: Run) -> Iterator[dict[str, Any]]:
    """The samples whose verdict is the judge's, with the rules' own beside it."""
    part, table = -1, None
    for number, samples, evidence in run.batches():
        if number != part:
            part, table = number, run.side_table("agent", number)
        assert table is not None  # noqa: S101 -- `validation_of` has refused runs without an agent
        eligible = rule_verdicts(evidence).eligible.tolist()
        names = samples.select(["sample", "model", "verdict"]).to_pylist()
        rows = table.select(["decided_by", "votes"]).take(samples.column("row")).to_pylist()
        for name, rules, row in zip(names, eligible, rows, strict=True):
            if row["decided_by"] == AGENT:
                yield {**name, "rules": rules, "eligible": name["verdict"] == ELIGIBLE, "votes": row["votes"] or ()}


def _agreement(pairs: Sequence[tuple[bool, bool]]) -> dict[str, Any]:
    """Percent agreement, κ and the confusion of (theirs, the judge's), eligible first."""
    theirs, judge = (np.array([not value for value in column], dtype=np.int64) for column in zip(*pairs, strict=True))
    matrix = pair_counts(theirs, judge, 2)
    return {
        "n": len(pairs),
        "percent_agreement": percent_agreement(matrix).to_dict(),
        "kappa": cohen_kappa(matrix).to_dict(),
        "confusion": matrix.tolist(),
    }


def validated_kappa(validation: Mapping[str, Any]) -> tuple[str, Estimate]:
    """Against whom a validation counts, and its κ: people where there are labels, otherwise the rules."""
    against = "people" if validation.get("people") else "rules"
    return against, Estimate.from_dict(validation[against]["kappa"])


def read_validation(path: Path) -> dict[str, Any]:
    """A validation file."""
    try:
        validation: dict[str, Any] = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.DecodeError:
        validation = {}
    if validation.get("schema") != _SCHEMA:
        raise ConfigError(f"{path}: is no validation (`adjudge agent validate RUN` makes one)")
    return validation


def refuse_unvalidated(judge: Mapping[str, Any], validation: Mapping[str, Any] | None, least: float) -> str:
    """Refuse gates on verdicts of a language model without a validation of the same judge; otherwise say which."""
    name = judge["agent"]
    if validation is None:
        raise ConfigError(
            f"gates on verdicts of {name} are refused without a validation of the same model, prompt and checklist; "
            "judge labelled samples with it and run `adjudge agent validate RUN --reference LABELS`"
        )
    other = [key for key in _SAME if validation.get(key) != judge[key]]
    if other:
        raise ConfigError(f"the validation is about another {other[0]}, so gates on verdicts of {name} are refused")
    against, kappa = validated_kappa(validation)
    if kappa.low is None or kappa.low < least:
        low = "null" if kappa.low is None else f"{kappa.low:.3f}"
        raise ConfigError(
            f"gates on verdicts of {name} are refused: its κ with {against} has a low end of {low}, expected {least:g} or more"
        )
    return f"{name} is validated against {against}: κ {kappa.value:.3f}, low end {kappa.low:.3f}, n {kappa.n}"


def stored_again(run: Run) -> bool:
    """Whether the validation that a run keeps is what its tables and the labels in it give."""
    stored = read_validation(run.path / VALIDATION)
    labels = [msgspec.convert(label, _Label) for label in stored["labels"]]
    source = (stored.get("people") or {}).get("source")
    return pretty(validation_of(run, labels, source)) == (run.path / VALIDATION).read_bytes()
