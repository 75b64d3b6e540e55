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
from adjudge.evidence.layout import Layout
from adjudge.evidence.rule import Finding, Mask, Rule, Slot
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
    """Slots of a rule, and for each the slot (in the whole layout) that it needs to have passed."""

    own: NDArray[np.intp]
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

    def slots_of(self, name: str) -> NDArray[np.intp]:
        """The positions of all atoms of a rule code or a family."""
        positions = [np.arange(self._starts[i], self._starts[i + 1]) for i in self._names.get(name, ())]
        return np.concatenate(positions) if positions else np.zeros(0, dtype=np.intp)

    def evaluate(self, batch: Any) -> Evidence:
        """Every rule over one batch; `batch.n` samples in, `layout.width` atoms a sample out."""
        n, width = batch.n, self.layout.width
        outcome = np.zeros((width, n), dtype=np.uint8)
        severity = np.zeros((width, n), dtype=np.uint8)
        observed = np.empty((width, n))  # every rule fills its own slots
        code = np.empty((width, n), dtype=np.int16)
        code[:] = self.layout.slot_code[:, None]
        reasons = Reasons(width, n)
        with np.errstate(all="ignore"):
            for index in self._order:
                rule = self.rules[index]
                own = slice(int(self._starts[index]), int(self._starts[index + 1]))
                try:
                    finding = rule.evaluate(batch)
                    masks = [(condition.holds(batch), condition.otherwise) for condition in rule.conditions]
                    _store(finding, own, outcome, severity, observed, reasons)
                    self._block(index, outcome, severity, observed, reasons)
                    _exempt(masks, own, outcome, severity, observed, reasons)
                    _break(finding, own, outcome, severity, observed, reasons)
                except Exception as error:  # noqa: BLE001 -- the instrument failed; the run goes on and the atom says so
                    outcome[own] = ERROR
                    severity[own] = 0
                    observed[own] = np.nan
                    reasons.put_all(own, f"the rule failed: {type(error).__name__}: {error}"[:300])
                    continue
                if finding.variant is not None:
                    code[own] = self._variant_codes[index][finding.variant]
                if finding.observed is not None:
                    _refuse_nan(own, outcome, severity, observed, reasons)
                if rule.variants:
                    code[own] = np.where(outcome[own] == FAIL, code[own], self._variant_codes[index][0])
        return Evidence(self.layout, outcome, severity, observed, code, reasons)

    def _block(
        self,
        index: int,
        outcome: NDArray[np.uint8],
        severity: NDArray[np.uint8],
        observed: NDArray[np.float64],
        reasons: Reasons,
    ) -> None:
        """Make atoms not_applicable where an atom they need did not pass, with that as the reason."""
        for link in self._links[index]:
            missed = outcome[link.needed] != PASS
            if not missed.any():
                continue
            for position, target, unmet in zip(link.own, link.needed, missed, strict=True):
                samples = np.flatnonzero(unmet & (outcome[position] != NOT_APPLICABLE))
                if not samples.size:
                    continue
                outcome[position, samples] = NOT_APPLICABLE
                severity[position, samples] = 0
                observed[position, samples] = np.nan
                root = samples[outcome[target, samples] == NOT_APPLICABLE]
                reasons.copy(int(target), int(position), root)
                direct = samples[outcome[target, samples] != NOT_APPLICABLE]
                reasons.put(int(position), direct, f"needs {self.layout.describe(int(target))}")

    def _link(self, rule: Rule) -> list[_Link]:
        start = int(self._starts[self.rules.index(rule)])
        columns: list[list[tuple[int, int]]] = []
        for position, slot in enumerate(rule.slots):
            targets = [target for name in rule.needs for i in self._names[name] for target in self._matching(slot, i)]
            for depth, target in enumerate(dict.fromkeys(targets)):
                if depth == len(columns):
                    columns.append([])
                columns[depth].append((start + position, target))
        return [
            _Link(np.array([own for own, _ in column]), np.array([needed for _, needed in column]))
            for column in columns
        ]

    def _matching(self, slot: Slot, target: int) -> list[int]:
        """The atoms of another rule that say something about what this slot reads."""
        start = int(self._starts[target])
        whole_sample = len(self.rules[target].slots) == 1
        return [
            start + position
            for position, other in enumerate(self.rules[target].slots)
            if (
                (other.field, other.step) in slot.reads
                if other.field is not None
                else whole_sample or other.step == slot.step
            )
        ]


def _store(
    finding: Finding,
    own: slice,
    outcome: NDArray[np.uint8],
    severity: NDArray[np.uint8],
    observed: NDArray[np.float64],
    reasons: Reasons,
) -> None:
    """Write one rule's finding into the columns; a finding of another shape than the rule's slots raises."""
    failed = finding.failed
    outcome[own] = failed
    if failed.any():
        severity[own] = np.where(finding.critical, _CRITICAL, _WARNING) * failed
        for (slot, sample), text in finding.details.items():
            reasons.put(own.start + slot, np.array([sample]), text)
        for slot, samples, text in finding.shared:
            reasons.put(own.start + slot, samples, text)
    observed[own] = np.nan if finding.observed is None else finding.observed


def _exempt(
    masks: Sequence[tuple[Mask, str]],
    own: slice,
    outcome: NDArray[np.uint8],
    severity: NDArray[np.uint8],
    observed: NDArray[np.float64],
    reasons: Reasons,
) -> None:
    """Take back the atoms where the rule's own conditions do not hold."""
    for holds, otherwise in masks:
        away = ~np.broadcast_to(holds, outcome[own].shape) & (outcome[own] != NOT_APPLICABLE)
        if away.any():
            outcome[own][away] = NOT_APPLICABLE
            severity[own][away] = 0
            observed[own][away] = np.nan
            for position in np.flatnonzero(away.any(axis=1)):
                reasons.put(own.start + int(position), np.flatnonzero(away[position]), otherwise)


def _break(
    finding: Finding,
    own: slice,
    outcome: NDArray[np.uint8],
    severity: NDArray[np.uint8],
    observed: NDArray[np.float64],
    reasons: Reasons,
) -> None:
    """Make errors of the atoms on which the rule could not be evaluated, where it applies at all."""
    for slot, samples, text in finding.errors:
        position = own.start + slot
        broken = samples[outcome[position, samples] <= FAIL]
        outcome[position, broken] = ERROR
        severity[position, broken] = 0
        observed[position, broken] = np.nan
        reasons.put(position, broken, text)


def _refuse_nan(
    own: slice,
    outcome: NDArray[np.uint8],
    severity: NDArray[np.uint8],
    observed: NDArray[np.float64],
    reasons: Reasons,
) -> None:
    """A quantity that is not a number neither passes nor fails: the instrument failed there."""
    nameless = np.isnan(observed[own]) & (outcome[own] <= FAIL)
    if nameless.any():
        outcome[own][nameless] = ERROR
        severity[own][nameless] = 0
        for position in np.flatnonzero(nameless.any(axis=1)):
            samples = np.flatnonzero(nameless[position])
            reasons.put(own.start + int(position), samples, "the measured quantity is not a number")


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
