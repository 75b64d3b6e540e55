"""A plan over rules: checked options, the graph of rules, digests, and the recheck of a run against its own columns.

Charts are Vega-Lite specifications in a package's folder vega, JSON with holes that a protocol fills with its rows.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from adjudge.errors import ConfigError
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.rule import rule_sets
from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Plan
from adjudge.provenance.canonical import digest

FEWEST_RESAMPLES, MOST_RESAMPLES = 100, 100_000
MOST_BINS = 1000

Config = TypeVar("Config", bound=msgspec.Struct)


def configured(protocol: str, options: Mapping[str, Any], kind: type[Config]) -> Config:
    """The options as a protocol's typed configuration; what does not fit is a ConfigError."""
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
