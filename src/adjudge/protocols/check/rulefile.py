"""The rule file as typed values: fields, rules, scores, gates, slices, self-tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.evidence.rule import Limits
from adjudge.protocols.check.declarations import FieldType, Path
from adjudge.protocols.check.document import Document
from adjudge.protocols.check.schema import Assertion
from adjudge.verdict.gates import Gate


@dataclass(frozen=True)
class Field:
    """One declared field of an answer. `places` is how many places of a path into a list have an atom of their own."""

    name: str
    path: Path
    type: FieldType
    unit: str = ""
    required: bool = True
    lenient: bool = False
    one_of: tuple[str | float | bool, ...] = ()
    range: Limits | None = None
    pattern: str = ""
    severity: str = "critical"
    places: int = 0
    title: str = ""


@dataclass(frozen=True)
class RuleText:
    """One rule as its author wrote it, before its expressions are checked; `severity` may be limits on what it observes."""

    code: str
    check: str = ""
    observed: str = ""
    when: str = ""
    severity: str | Limits = "critical"
    title: str = ""
    passed: str = ""
    failed: str = ""
    unit: str | None = None
    needs: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


@dataclass(frozen=True)
class SelfTest:
    """An answer with what must come of it: `fails` is exact."""

    number: int
    name: str
    row: Mapping[str, Any]
    gold: Mapping[str, Any]
    meta: Mapping[str, Any]
    input: Mapping[str, Any]
    previous: Mapping[str, Any]
    fails: tuple[str, ...]
    not_applicable: tuple[str, ...]


@dataclass(frozen=True)
class RuleFile:
    """A whole rule file."""

    document: Document
    name: str
    extract: str
    fields: dict[str, Field]
    blocks: dict[str, dict[str, FieldType]]
    """The declared keys of `meta` and `input`."""
    rules: dict[str, RuleText]
    schema: tuple[Assertion, ...] = ()
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    gates: tuple[Gate, ...] = ()
    slices: tuple[str, ...] = ()
    cluster: str = ""
    sequence: str = ""
    order: str = ""
    tests: tuple[SelfTest, ...] = ()

    def written(self, source: str) -> tuple[str, ...]:
        """A slice, cluster, sequence or order as a name that expressions may use."""
        block, dot, key = source.partition(".")
        return (block, key) if dot and block in self.blocks and source not in self.fields else (source,)

    @property
    def rated(self) -> tuple[str, ...]:
        """The rules that have a pass rate and may be named: those of the file, and those of its schema."""
        return tuple(dict.fromkeys((*self.rules, *(each.code for each in self.schema))))

    @property
    def schema_keys(self) -> list[str]:
        """The keys of an answer that the schema names."""
        return list(dict.fromkeys(str(each.steps[0]) for each in self.schema if each.steps))

    @property
    def beside(self) -> set[str]:
        """Keys of a record that is an answer itself, but that are no part of the answer unless the schema names them."""
        beside = {"id", "model", "error", *self.blocks} if self.extract == "none" else set[str]()
        return beside.difference(self.schema_keys)
