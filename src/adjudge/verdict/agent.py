"""The evaluator agent: who makes the checklist, organises the evidence and decides; and the rule-based reference, also over columns.

An agent never scores by feeling: what it answers is checked (`deliberation.py`), stored in the run and replayed from there. The
checklist is made once, before any sample is judged.

Failures are grouped by rule and field, the worst group first. A group is worse where one of its atoms is CRITICAL, then by
how far over its limit its worst atom is; ties stand in the order of rule codes, then of fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adjudge.errors import CitationRefused, ConfigError
from adjudge.evidence.atoms import Atom
from adjudge.evidence.rule import Layout, as_slice
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import CRITICAL, FAIL, PASS, Severity
from adjudge.plugins import plugin, plugin_names

ELIGIBLE, INELIGIBLE = "eligible", "ineligible"
DECISIONS = (ELIGIBLE, INELIGIBLE)
RULES = "rules"
GROUP = "adjudge.agents"
STATUSES = ("pass", "fail", "unknown")
"""What came of an item; `unknown` means that no atom of its rules could be applied."""
_PASSED, _FAILED, _UNKNOWN = range(3)


@dataclass(frozen=True)
class Item:
    """One line of the checklist, bound to the rules that decide it."""

    item_id: str
    title: str
    rules: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"item_id": self.item_id, "title": self.title, "rules": list(self.rules)}


class ItemStatus(NamedTuple):
    """How one item came out on one sample, and the ids of the atoms it rests on."""

    status: str
    evidence_ids: tuple[str, ...]


CheckedItems = Sequence[tuple[Item, ItemStatus]]
"""The checklist of one sample, every item with how it came out."""


def checklist_of(rules: Sequence[dict[str, Any]]) -> list[Item]:
    """One item for every rule code of the rule table, in its order; codes that share their atoms have an item each."""
    entries = [entry for rule in rules for entry in (rule, *rule["variants"])]
    return [Item(f"CHECK_{number:03d}", entry["title"], (entry["code"],)) for number, entry in enumerate(entries, 1)]


def check_checklist(items: Sequence[Item], rules: Sequence[dict[str, Any]], agent: str) -> None:
    """Refuse a checklist that is empty, names an item twice or a rule that does not exist, or leaves a rule out."""
    codes = [entry["code"] for rule in rules for entry in (rule, *rule["variants"])]
    names = [item.item_id for item in items]
    covered = {code for item in items for code in item.rules}
    problems = (
        (not items, "is empty"),
        (len(set(names)) < len(names), "names an item twice"),
        (any(not item.rules for item in items), "has an item that is bound to no rule"),
        (bool(covered - set(codes)), f"names rules that do not exist: {', '.join(sorted(covered - set(codes))[:3])}"),
        (bool(set(codes) - covered), f"leaves out rules: {', '.join(sorted(set(codes) - covered)[:3])}"),
    )
    for wrong, what in problems:
        if wrong:
            raise CitationRefused(f"the checklist of agent {agent!r} {what}")


def atoms_of(item: Item, atoms: Sequence[Atom], rules: Sequence[dict[str, Any]]) -> list[Atom]:
    """The atoms that an item rests on.

    A code that shares its atoms has none of its own where another variant, or the pass, stands in its place: then it
    rests on those of them that passed.
    """
    bound = [atom for atom in atoms if atom.rule in item.rules]
    if bound:
        return bound
    together = {entry["code"]: rule["code"] for rule in rules for entry in (rule, *rule["variants"])}
    families = {together[code] for code in item.rules}
    return [atom for atom in atoms if together[atom.rule] in families and atom.outcome == "pass"]


def status_of(bound: Sequence[Atom]) -> str:
    """An item fails where one of its atoms did, and passes where one passed."""
    if any(atom.failed for atom in bound):
        return "fail"
    return "pass" if any(atom.outcome == "pass" for atom in bound) else "unknown"


@dataclass(frozen=True)
class Attribution:
    """One reason of a verdict in the agent's words: the ids of the atoms it rests on, their severity, perhaps a quote."""

    reason: str
    cites: tuple[str, ...]
    severity: str
    quote: str | None = None


@dataclass(frozen=True)
class Judgement:
    """What an agent answers about one sample; `cites` are ids of atoms, the worst reason stands first."""

    decision: str
    cites: tuple[str, ...]
    attribution: tuple[Attribution, ...] = ()
    quotes: tuple[str, ...] = ()


@dataclass
class Verdicts:
    """The verdicts of a batch: `eligible` per sample, `cites` shaped (positions, samples)."""

    eligible: NDArray[np.bool_]
    cites: NDArray[np.bool_]


class EvaluatorAgent(ABC):
    """Who reads the evidence and decides. Only `adjudicate` must be written; a language model may stand behind it."""

    name: str
    model = RULES
    temperature = 0.0
    language_model = False
    """Whether a gate on its verdicts needs a validation."""

    def about(self) -> dict[str, Any]:
        """Who judges, for agent.json."""
        told = {name: getattr(self, name) for name in ("model", "language_model", "temperature")}
        return {"agent": self.name, **told}

    def begin(self, inputs: Sequence[str]) -> None:  # noqa: B027 -- most agents need none
        """Get to know the digests of the input, before anything is judged or replayed."""

    def attach(self, document: dict[str, Any]) -> None:  # noqa: B027 -- most agents need none
        """Get to know the agent.json of a run that is verified."""

    def check_budget(self, samples: int) -> None:  # noqa: B027 -- most agents cost nothing
        """Refuse to judge so many samples, where that would cost too much."""

    def checklist(self, rules: Sequence[dict[str, Any]], task: str) -> Sequence[Item]:
        """What will be looked at, once a run: items that together cover every rule of the rule table."""
        del task
        return checklist_of(rules)

    def organize(
        self, items: Sequence[Item], atoms: Sequence[Atom], rules: Sequence[dict[str, Any]]
    ) -> Sequence[ItemStatus]:
        """How every item came out on one sample, with the atoms it rests on."""
        atoms_of_items = [atoms_of(item, atoms, rules) for item in items]
        return [ItemStatus(status_of(bound), tuple(atom.id for atom in bound)) for bound in atoms_of_items]

    @abstractmethod
    def adjudicate(
        self, items: CheckedItems, atoms: Sequence[Atom], answer: str | None, refusal: str | None = None
    ) -> Judgement:
        """The verdict on one sample. It is asked a second time where its first answer was refused, with the reason."""


class RuleBasedAgent(EvaluatorAgent):
    """The reference: ineligible if any CRITICAL atom failed, citing all of those; otherwise eligible, citing all atoms."""

    name = RULES

    def adjudicate(
        self, items: CheckedItems, atoms: Sequence[Atom], answer: str | None, refusal: str | None = None
    ) -> Judgement:
        """The verdict on one sample."""
        del items, answer, refusal
        critical = tuple(atom.id for atom in atoms if atom.failed and atom.severity == "CRITICAL")
        return Judgement(INELIGIBLE, critical) if critical else Judgement(ELIGIBLE, tuple(atom.id for atom in atoms))


def rule_verdicts(evidence: Evidence) -> Verdicts:
    """The rules' own verdicts on a batch: what the reference agent says, over columns."""
    critical = evidence.failed(Severity.CRITICAL)
    eligible: NDArray[np.bool_] = np.logical_not(critical.any(axis=0))
    return Verdicts(eligible, critical | eligible)


def plugin_agent(name: str) -> EvaluatorAgent:
    """An agent that a package registers in the entry-point group `adjudge.agents`."""
    entry = plugin(GROUP, name)
    if entry is None:
        known = ", ".join(
            sorted({RULES, "llm:MODEL", "replay:RUN", "null:eligible", "null:random", *plugin_names(GROUP)})
        )
        raise ConfigError(f"there is no evaluator agent {name!r} (there are: {known})")
    value = entry.load()()
    if not isinstance(value, EvaluatorAgent):
        raise ConfigError(f"entry point {name!r} of {GROUP} makes a {type(value).__name__}, expected an EvaluatorAgent")
    return value


class Organizer:
    """Status of every item over columns: for each item the positions of its rules, and the codes it answers for."""

    def __init__(self, items: Sequence[Item], rules: Sequence[dict[str, Any]]) -> None:
        starts = np.cumsum([0, *(len(rule["slots"]) for rule in rules)])
        codes = [entry["code"] for rule in rules for entry in (rule, *rule["variants"])]
        of_rules = [{entry["code"] for entry in (rule, *rule["variants"])} for rule in rules]
        self._places = []
        for item in items:
            touched = [place for place, of_rule in enumerate(of_rules) if not of_rule.isdisjoint(item.rules)]
            positions = np.concatenate([np.arange(starts[place], starts[place + 1]) for place in touched])
            shared = any(rules[place]["variants"] for place in touched)
            answers_for = np.array([codes.index(code) for code in item.rules]) if shared else None
            self._places.append((as_slice(positions), answers_for))

    def statuses(self, evidence: Evidence) -> NDArray[np.uint8]:
        """Places in STATUSES, shaped (items, samples)."""
        statuses = np.empty((len(self._places), evidence.n), dtype=np.uint8)
        passed, failed = evidence.outcome == PASS, evidence.outcome == FAIL
        for row, (positions, answers_for) in zip(statuses, self._places, strict=True):
            failed_here = failed[positions]
            if answers_for is not None and failed_here.any():
                failed_here = failed_here & np.isin(evidence.code[positions], answers_for)
            row[:] = np.where(
                failed_here.any(axis=0), _FAILED, np.where(passed[positions].any(axis=0), _PASSED, _UNKNOWN)
            )
        return statuses


_BOUNDS = ("low", "high", "span")
_NEAR = 1e6  # beyond it nothing has that many digits
_DIGITS = 9  # 0.004 over 0.002 and 0.6 over 0.3 are alike, whatever rounding made of them


@dataclass(frozen=True)
class Reasons:
    """The groups of a batch, sample by sample and rank by rank.

    `sample`, `worst` (the position of the worst atom) and `size` have one entry a group; `atoms` holds the positions of
    all groups, one group after the other.
    """

    sample: NDArray[np.int64]
    worst: NDArray[np.int16]
    size: NDArray[np.int16]
    atoms: NDArray[np.int16]


def reasons_of(evidence: Evidence, top: int) -> Reasons:
    """The `top` worst groups of every sample."""
    position, sample = np.nonzero(evidence.outcome == FAIL)
    layout = evidence.layout
    code, field = evidence.code[position, sample], layout.slot_field[position]
    critical = evidence.severity[position, sample] == CRITICAL
    over = _over_limit(evidence, position, sample)
    order = np.lexsort((position, -over, ~critical, field, code, sample))
    key = np.stack([sample, code, field])[:, order]
    first = np.ones(order.size, dtype=bool)
    first[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
    group = np.cumsum(first) - 1
    worst = order[first]  # the worst atom of a group stands first in it
    highest = np.maximum.reduceat(over[order], np.flatnonzero(first)) if worst.size else over[:0]
    first_of_field, of_code = _first_position(layout)[position[worst]], _alphabetical(layout)[code[worst]]
    by_rank = np.lexsort((first_of_field, of_code, -highest, ~critical[worst], sample[worst]))
    ranked = sample[worst][by_rank]
    chosen = by_rank[np.arange(ranked.size) - np.searchsorted(ranked, ranked) < top]
    place = np.full(worst.size, -1)
    place[chosen] = np.arange(chosen.size)
    kept = order[place[group] >= 0]
    places = place[group][place[group] >= 0]
    return Reasons(
        sample=sample[worst][chosen],
        worst=position[worst][chosen].astype(np.int16),
        size=np.bincount(places, minlength=chosen.size).astype(np.int16),
        atoms=position[kept][np.lexsort((position[kept], places))].astype(np.int16),
    )


def _over_limit(evidence: Evidence, position: NDArray[np.intp], sample: NDArray[np.intp]) -> NDArray[np.float64]:
    """How far over the limit that decided it each atom is, as a multiple of the limit; infinite without a measurement.

    In spans of the range where the rule says so, or where the limit is 0 and has no multiples.
    """
    observed = evidence.observed[position, sample]
    bounds = _bounds(evidence, position, sample)
    low, high = bounds["low"], bounds["high"]
    with np.errstate(all="ignore"):
        limit = np.where(observed > high, high, low)
        inside = np.isnan(limit) | ((limit == high) & (observed <= limit)) | ((limit == low) & (observed >= limit))
        unit = np.where(np.isnan(bounds["span"]), np.abs(limit), bounds["span"])
        unit = np.where((unit == 0.0) & ~np.isnan(high - low), high - low, unit)
        excess = np.where(inside, 0.0, np.abs(observed - limit) / np.where(unit == 0.0, 1.0, unit))
        rounded = np.where(excess < _NEAR, np.round(excess, _DIGITS), excess)
    return np.where(np.isnan(observed), np.inf, rounded)


def _bounds(evidence: Evidence, position: NDArray[np.intp], sample: NDArray[np.intp]) -> dict[str, NDArray[np.float64]]:
    """The limits of every atom by name: those of its position, or of the case of the rule that its reason names."""
    places, reasons = evidence.layout.positions, evidence.reasons
    bounds = {name: np.array([float(place.slot.get(name, np.nan)) for place in places])[position] for name in _BOUNDS}
    if reasons.codes is None:
        return bounds
    for number, place in enumerate(places):
        for case in place.rule.get("cases", ()):
            if case["when"] not in reasons.texts:
                continue
            decided = (position == number) & (reasons.codes[position, sample] == reasons.texts.index(case["when"]))
            for name in _BOUNDS:
                bounds[name][decided] = case.get(name, np.nan)
    return bounds


def _alphabetical(layout: Layout) -> NDArray[np.int64]:
    """The place of every rule code among all of them in alphabetical order."""
    return np.argsort(np.argsort(np.array(layout.codes)))


def _first_position(layout: Layout) -> NDArray[np.int64]:
    """For every position, the first one that is about the same field."""
    _, first, number = np.unique(layout.slot_field, return_index=True, return_inverse=True)
    return first[number]
