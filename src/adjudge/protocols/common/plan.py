"""What plans and records of several protocols have in common.

A plan over rules has checked options, the graph of rules, digests, and the recheck of a run against its own columns. Charts
are Vega-Lite specifications in a package's folder vega, JSON with holes that a protocol fills with its rows.

Records have citations as ids, atoms as plain data, and how a verdict came about: everything is read from what the run keeps;
nobody is asked again. A run of a version that kept nothing is organised anew from its evidence, by the rules.
"""

from __future__ import annotations

import difflib
import re
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from adjudge.agents import agent_of
from adjudge.agents.options import AgentOptions
from adjudge.errors import ConfigError
from adjudge.evidence.atoms import Atom, unpack_citations
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.rule import rule_sets
from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Plan
from adjudge.provenance.canonical import digest
from adjudge.runs.run import Run
from adjudge.verdict.adjudicator import (
    AGENT_TABLE,
    Adjudicator,
    StoredReason,
    stored_item_atoms,
    stored_reasons,
    stored_statuses,
)
from adjudge.verdict.agent import RULES, Item, RuleBasedAgent, atoms_of, checklist_of

FEWEST_RESAMPLES, MOST_RESAMPLES = 100, 100_000
MOST_BINS = 1000

Config = TypeVar("Config", bound=msgspec.Struct)


def configured(protocol: str, options: Mapping[str, Any], kind: type[Config]) -> Config:
    """The options as a protocol's typed configuration; what does not fit is a ConfigError."""
    known = kind.__struct_fields__
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else f"It has {', '.join(known)}."
            raise ConfigError(f"{protocol} has no setting {name!r}. {hint}")
    try:
        return msgspec.convert(dict(options), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{protocol}: {error}") from None


def check_choices(config: msgspec.Struct, allowed: Mapping[str, Sequence[str]]) -> None:
    """Refuse a setting that is none of the words allowed for it."""
    for name, words in allowed.items():
        value = getattr(config, name)
        if value not in words:
            raise ConfigError(f"{name} is {value!r}, expected one of {', '.join(words)}")


def check_resamples(resamples: int) -> None:
    """Refuse so few resamples that an interval means nothing, and so many that memory does not hold them."""
    if not FEWEST_RESAMPLES <= resamples <= MOST_RESAMPLES:
        raise ConfigError(f"resamples is {resamples}, expected {FEWEST_RESAMPLES} to {MOST_RESAMPLES:,}")


def check_bins(bins: int) -> None:
    """Refuse no bins, and so many that each holds nothing; a configuration may come with a run from elsewhere."""
    if not 1 <= bins <= MOST_BINS:
        raise ConfigError(f"bins is {bins}, expected 1 to {MOST_BINS:,}")


class RulePlan(Plan):
    """A plan that judges by a graph of rules."""

    graph: VerifierGraph

    def use_rules(self, protocol: str, context: Any, names: Sequence[str] = ()) -> None:
        """Build the protocol's rules, and those of the named rule sets of installed packages."""
        sets = rule_sets(protocol, tuple(names))
        self.graph = VerifierGraph([rule for rules in sets for rule in rules.build(context)])
        self.rules = [rule.table() for rule in self.graph.rules]

    def use_agent(self, name: str, options: AgentOptions | None, *, seed: int, task: str, top: int) -> None:
        """Who judges, with a checklist over the rules in use; the rules themselves unless another agent is named."""
        agent = RuleBasedAgent() if name == RULES else agent_of(name, options, seed=seed)
        self.adjudicator = Adjudicator(agent, self.rules, task=task, top=top)

    def use_digests(self, *, without: Collection[str], **contents: Any) -> None:
        """Digests of the configuration, `without` the settings that change no number, and of further contents."""
        settings = {key: value for key, value in self.config.items() if key not in without}
        self.digests = {name: digest(content) for name, content in {"config": settings, **contents}.items()}


class BatchPlan(RulePlan):
    """A plan whose samples store all that its rules read, so that every verdict can be made again from them."""

    source: str
    """What the verdicts follow from, as it ends a sentence: "the stored actions give"."""

    @abstractmethod
    def restore(self, samples: pa.Table) -> Any:
        """The batch as it was, from the stored columns."""

    @abstractmethod
    def decided(self, batch: Any, evidence: Evidence) -> Mapping[str, pa.Array]:
        """The columns of samples.parquet that follow from the batch and its evidence, by name."""

    def decided_again(self, batch: Any, evidence: Evidence, samples: pa.Table) -> Mapping[str, pa.Array]:
        """The same of a stored batch; where an agent decides, from the verdicts that the samples keep."""
        del samples
        return self.decided(batch, evidence)

    def recheck(self, samples: pa.Table, evidence: Evidence) -> list[str]:
        """Judge again from the stored columns, and compare everything that follows from them."""
        batch = self.restore(samples)
        again = self.graph.evaluate(batch)
        return [f"evidence: {difference}" for difference in again.differences(evidence)] + [
            f"samples.parquet: {name} is not what {self.source}"
            for name, values in self.decided_again(batch, again, samples).items()
            if samples.column(name).to_pylist() != values.to_pylist()
        ]


SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

Spec = dict[str, Any]

_HOLE = re.compile(r"\$(\w+)")


def chart(package: str, template: str, /, name: str = "", **values: Any) -> Spec:
    """A chart of a run, with the name by which `report --chart` knows it (that of its file where none is given)."""
    return {"name": name or template, "spec": {"$schema": SCHEMA, **filled(package, template, **values)}}


def filled(package: str, template: str, /, **values: Any) -> Spec:
    """A specification, or a part of one, in which `"$key"` became the value of the key, and `… $key …` a text with it.

    A layer with `"if": "$key"` is left out where the value is empty.
    """
    spec: Spec = _fill(_read(package, template), values)
    return spec


@cache
def _read(package: str, template: str) -> Spec:
    return msgspec.json.decode((files(package) / "vega" / f"{template}.json").read_bytes(), type=Spec)


def _fill(part: Any, values: dict[str, Any]) -> Any:
    if isinstance(part, dict):
        return {key: _fill(item, values) for key, item in part.items() if key != "if"}
    if isinstance(part, list):
        kept = (item for item in part if not isinstance(item, dict) or _fill(item.get("if", True), values))
        return [_fill(item, values) for item in kept]
    if not isinstance(part, str) or "$" not in part:
        return part
    hole = _HOLE.fullmatch(part)
    return Template(part).substitute(values) if hole is None else values[hole[1]]


OF_ATOM = ("id", "rule", "field", "outcome", "severity", "observed", "message")
"""What a record says of an atom, where its protocol asks for nothing else."""


def cited(row: Mapping[str, Any], atoms: Sequence[Atom]) -> list[str]:
    """The ids of the atoms that a row's verdict rests on."""
    positions = set(unpack_citations(row["cites"], len(atoms)).tolist())
    return [atom.id for atom in atoms if atom.position in positions]


def plain_atoms(atoms: Sequence[Atom], keys: Sequence[str] = OF_ATOM) -> list[dict[str, Any]]:
    """Atoms as plain data, with these keys."""
    return [{key: getattr(atom, key) for key in keys} for atom in atoms]


def picked(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Some columns of a row."""
    return {name: row[name] for name in names}


def other_columns(row: Mapping[str, Any], *shown: str) -> dict[str, Any]:
    """The columns of a row beside those `shown` elsewhere and its place in the run's tables."""
    return {name: value for name, value in row.items() if name not in {"part", "row", "cites", *shown}}


def agent_output(run: Run, row: dict[str, Any], atoms: Sequence[Atom]) -> dict[str, Any]:
    """The part of a record that the agent is answerable for."""
    stored = run.agent_row(row) or _anew(run, row)
    items = _items(run)
    bound = stored_item_atoms(stored, atoms) or [atoms_of(item, atoms, run.layout.rules) for item in items]
    quotes = zip(stored["quotes"] or (), stored["quotes_verified"] or (), strict=True)
    return {
        "checklist": [
            {
                "item_id": item.item_id,
                "constraint_id": ", ".join(item.rules),
                "title": item.title,
                "status": status,
                "evidence_ids": [atom.id for atom in item_atoms],
            }
            for item, status, item_atoms in zip(items, stored_statuses(stored), bound, strict=True)
        ],
        "adjudication": row["verdict"],
        "decided_by": stored["decided_by"],
        "cites": cited(row, atoms),
        "attribution": [_reason(reason) for reason in stored_reasons(stored, atoms)],
        "quotes": [{"text": text, "verified": verified} for text, verified in quotes],
        "votes": list(stored["votes"] or ()),
        "refused": list(stored["refused"] or ()),
    }


def _items(run: Run) -> list[Item]:
    if run.agent is None:
        return checklist_of(run.layout.rules)
    return [Item(item["item_id"], item["title"], tuple(item["rules"])) for item in run.agent["checklist"]]


def _anew(run: Run, row: dict[str, Any]) -> dict[str, Any]:
    """How the rules organise a sample."""
    rules = Adjudicator(RuleBasedAgent(), run.layout.rules, task="", top=run.manifest.config.get("top_k", 5))
    tables = rules.judge_by_rules(run.evidence_of(row["part"], row["row"])).tables
    stored: dict[str, Any] = tables[AGENT_TABLE].to_pylist()[0]
    return stored


def _reason(reason: StoredReason) -> dict[str, Any]:
    words = {} if reason.words is None else {"words": reason.words}
    quote = {} if reason.quote is None else {"quote": reason.quote, "quote_verified": reason.verified}
    return {
        "rank": reason.rank,
        "reason": reason.worst.message,
        **words,
        **quote,
        "rule": reason.worst.rule,
        "field": reason.worst.field,
        "severity": reason.severity,
        "count": len(reason.atoms),
        "evidence_ids": [atom.id for atom in reason.atoms],
    }
