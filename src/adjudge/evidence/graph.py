"""The verifier graph: rules in the order their needs allow, evaluated over a batch into evidence columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.errors import ConfigError
from adjudge.evidence.rule import Finding, Layout, Mask, Rule, Slot
from adjudge.evidence.table import Evidence, Reasons
from adjudge.evidence.vocabulary import CRITICAL, ERROR, FAIL, NOT_APPLICABLE, PASS, WARNING

_WARNING, _CRITICAL = np.uint8(WARNING), np.uint8(CRITICAL)  # so that a choice of them is as small as the column
_ONLY: ContextVar[frozenset[str] | None] = ContextVar("only", default=None)


@contextmanager
def only_rules(codes: Iterable[str]) -> Iterator[None]:
    """Graphs made here have these rules alone: `verify` holds a run to the rules it was made with, not to newer ones."""
    token = _ONLY.set(frozenset(codes))
    try:
        yield
    finally:
        _ONLY.reset(token)


@dataclass(frozen=True)
class _Link:
    """Positions of a rule's atoms, and for each the position of an atom that it needs to have passed."""

    positions: NDArray[np.intp]
    needed: NDArray[np.intp]


class VerifierGraph:
    """Rules tied by what they need. The order in which they were registered changes nothing.

    The layout (which slot holds which rule's atom) is the order given by `rules` for our own protocols, which list them
    family by family; only the order of evaluation is derived from the needs.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        only = _ONLY.get()
        self.rules = tuple(rule for rule in rules if only is None or rule.code in only)
        self.layout = Layout.of([rule.table() for rule in self.rules])
        self._names = _names(self.rules)
        self._order = _topological(self.rules, self._names)
        self._starts = np.cumsum([0, *(len(rule.slots) for rule in self.rules)])
        self._links = [self._link(rule) for rule in self.rules]
        self._variant_codes = [
            np.array([self.layout.codes.index(code) for code in rule.codes], dtype=np.int16) for rule in self.rules
        ]

    def evaluate(self, batch: Any) -> Evidence:
        """Every rule over one batch; `batch.n` samples in, `layout.width` atoms a sample out."""
        shape = self.layout.width, batch.n
        code = np.empty(shape, dtype=np.int16)
        code[:] = self.layout.slot_code[:, None]
        outcome, severity = np.zeros(shape, dtype=np.uint8), np.zeros(shape, dtype=np.uint8)
        evidence = Evidence(self.layout, outcome, severity, np.empty(shape), code, Reasons(*shape))
        with np.errstate(all="ignore"):
            for index in self._order:
                slots = slice(int(self._starts[index]), int(self._starts[index + 1]))
                try:
                    self._apply(index, slots, batch, evidence)
                except Exception as error:  # noqa: BLE001 -- the instrument failed; the run goes on and the atom says so
                    outcome[slots], severity[slots], evidence.observed[slots] = ERROR, 0, np.nan
                    evidence.reasons.put_all(slots, f"the rule failed: {type(error).__name__}: {error}"[:300])
        return evidence

    def _apply(self, index: int, slots: slice, batch: Any, evidence: Evidence) -> None:
        """One rule: what it finds, then where it could not be applied, then which of its codes each atom carries."""
        rule, codes = self.rules[index], self._variant_codes[index]
        finding = rule.evaluate(batch)
        masks = [(condition.holds(batch), condition.otherwise) for condition in rule.conditions]
        _store(finding, slots, evidence)
        _name_cases(finding, rule, slots, evidence.reasons)
        self._block(index, evidence)
        _exempt(masks, slots, evidence)
        _break(finding, slots, evidence)
        if finding.variant is not None:
            evidence.code[slots] = codes[finding.variant]
        if finding.observed is not None:  # what is not a number neither passes nor fails: the instrument failed there
            nameless = np.isnan(evidence.observed[slots]) & (evidence.outcome[slots] <= FAIL)
            _replace(nameless, ERROR, "the measured quantity is not a number", slots, evidence)
        if rule.variants:
            failed = evidence.outcome[slots] == FAIL
            evidence.code[slots] = np.where(failed, evidence.code[slots], codes[0])

    def _block(self, index: int, evidence: Evidence) -> None:
        """Make atoms not_applicable where an atom they need did not pass, with that as the reason."""
        outcome = evidence.outcome
        for link in self._links[index]:
            missed = outcome[link.needed] != PASS
            if not missed.any():
                continue
            for position, target, unmet in zip(link.positions, link.needed, missed, strict=True):
                samples = np.flatnonzero(unmet & (outcome[position] != NOT_APPLICABLE))
                if not samples.size:
                    continue
                outcome[position, samples] = NOT_APPLICABLE
                evidence.severity[position, samples] = 0
                evidence.observed[position, samples] = np.nan
                handed_on = outcome[target, samples] == NOT_APPLICABLE
                evidence.reasons.copy(int(target), int(position), samples[handed_on])
                why = f"needs {self.layout.describe(int(target))}"
                evidence.reasons.put(int(position), samples[~handed_on], why)

    def _link(self, rule: Rule) -> list[_Link]:
        start = int(self._starts[self.rules.index(rule)])
        columns: list[list[tuple[int, int]]] = []
        for position, slot in enumerate(rule.slots):
            targets = [
                target
                for name in rule.needs
                for i in self._names[name]
                for target in self._matching(slot, i, by_code=name in self.rules[i].codes)
            ]
            for depth, target in enumerate(dict.fromkeys(targets)):
                if depth == len(columns):
                    columns.append([])
                columns[depth].append((start + position, target))
        return [_Link(*(np.array(positions) for positions in zip(*column, strict=True))) for column in columns]

    def _matching(self, slot: Slot, target: int, *, by_code: bool) -> list[int]:
        """The atoms of another rule that say something about what this slot reads.

        A rule that is needed by its own code and is about one field alone is meant whatever the slot reads.
        """
        start, slots = int(self._starts[target]), self.rules[target].slots
        one_field = by_code and len({other.field for other in slots}) == 1
        return [
            start + position
            for position, other in enumerate(slots)
            if (
                (other.field, other.step) in slot.reads
                if other.field is not None and not one_field
                else len(slots) == 1 or other.step == slot.step
            )
        ]


def _store(finding: Finding, slots: slice, evidence: Evidence) -> None:
    """Write one rule's finding into the columns; a finding of another shape than the rule's slots raises."""
    failed = finding.failed
    evidence.outcome[slots] = failed
    if failed.any():
        evidence.severity[slots] = np.where(finding.critical, _CRITICAL, _WARNING) * failed
        if finding.details:
            positions, samples_of_texts = np.array(list(finding.details)).T
            evidence.reasons.put_each(slots.start + positions, samples_of_texts, finding.details.values())
        for slot, samples, text in finding.shared:
            evidence.reasons.put(slots.start + slot, samples, text)
    evidence.observed[slots] = np.nan if finding.observed is None else finding.observed


def _name_cases(finding: Finding, rule: Rule, slots: slice, reasons: Reasons) -> None:
    """Say of every atom that another limit than the rule's first decided, which one."""
    if finding.case is None or not finding.case.any():
        return
    for number, case in enumerate(rule.cases, 1):
        for slot, decided in enumerate(finding.case == number):
            reasons.put(slots.start + slot, np.flatnonzero(decided), case.when)


def _exempt(masks: Sequence[tuple[Mask, str]], slots: slice, evidence: Evidence) -> None:
    """Take back the atoms where the rule's own conditions do not hold."""
    outcome = evidence.outcome[slots]
    for holds, otherwise in masks:
        exempt = ~np.broadcast_to(holds, outcome.shape) & (outcome != NOT_APPLICABLE)
        _replace(exempt, NOT_APPLICABLE, otherwise, slots, evidence)


def _break(finding: Finding, slots: slice, evidence: Evidence) -> None:
    """Make errors of the atoms on which the rule could not be evaluated, where it applies at all."""
    for slot, samples, text in finding.errors:
        position = slots.start + slot
        broken = samples[evidence.outcome[position, samples] <= FAIL]
        evidence.outcome[position, broken] = ERROR
        evidence.severity[position, broken] = 0
        evidence.observed[position, broken] = np.nan
        evidence.reasons.put(position, broken, text)


def _replace(atoms: Mask, outcome: int, why: str, slots: slice, evidence: Evidence) -> None:
    """Give some atoms of a rule another outcome, with its reason; they have no severity and measured nothing."""
    if not atoms.any():
        return
    evidence.outcome[slots][atoms] = outcome
    evidence.severity[slots][atoms] = 0
    evidence.observed[slots][atoms] = np.nan
    for position in np.flatnonzero(atoms.any(axis=1)):
        evidence.reasons.put(slots.start + int(position), np.flatnonzero(atoms[position]), why)


def _names(rules: Sequence[Rule]) -> dict[str, tuple[int, ...]]:
    """Rule codes and families, each with the rules it stands for."""
    names: dict[str, tuple[int, ...]] = {}
    for index, rule in enumerate(rules):
        for code in rule.codes:
            if code in names:
                raise ConfigError(f"rule {code} is registered twice")
            names[code] = (index,)
    for index, rule in enumerate(rules):
        names[rule.family] = (*names.get(rule.family, ()), index)
    return names


def _topological(rules: Sequence[Rule], names: dict[str, tuple[int, ...]]) -> list[int]:
    """An order in which every rule comes after all it needs; a cycle or an unknown name is a ConfigError."""
    needs: list[set[int]] = []
    for index, rule in enumerate(rules):
        for name in rule.needs:
            if name not in names:
                raise ConfigError(f"rule {rule.code} needs {name!r}, which is no rule and no family of this rule set")
        needs.append({i for name in rule.needs for i in names[name]} - {index})
        if rule.code in rule.needs:
            raise ConfigError(f"rule {rule.code} needs itself")
    order: list[int] = []
    waiting = set(range(len(rules)))
    while waiting:
        ready = sorted((i for i in waiting if not needs[i] & waiting), key=lambda i: rules[i].code)
        if not ready:
            cycle = ", ".join(sorted(rules[i].code for i in waiting))
            raise ConfigError(f"rules need each other in a circle: {cycle}")
        order.extend(ready)
        waiting.difference_update(ready)
    return order
