"""Rule: one check as data, evaluated over a whole batch at once.

Layout, read from the rule table alone, says which position of a sample's evidence holds which rule's atom.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.errors import ConfigError
from adjudge.evidence.vocabulary import Scope
from adjudge.plugins import plugin, plugin_names

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.int8]

GROUP = "adjudge.rules"
"""Rule sets, ours and a user's, enter by the same door: these entry points."""

_CODE = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Slot:
    """Where a rule leaves one atom: a field (or none) and a step; `reads` are the (field, step) cells it looks at.

    `when` says in words which moment a step is, where its number would mislead.
    """

    field: str | None
    step: int
    reads: tuple[tuple[str, int], ...] = ()
    when: str = ""


WHOLE_SAMPLE = (Slot(None, 0),)
"""One atom a sample, about no field of it alone."""


@dataclass(frozen=True)
class Limits:
    """Bounds on the measured quantity, one number for all slots or one per slot; None is no bound.

    A value strictly outside [low, high] fails, strictly outside [critical_low, critical_high] it fails critically.
    `by_span` says that the distance outside is counted in spans of the range, not in multiples of the limit.
    """

    low: Floats | float | None = None
    high: Floats | float | None = None
    critical_low: Floats | float | None = None
    critical_high: Floats | float | None = None
    by_span: bool = False

    def failed(self, observed: Floats) -> Mask:
        """Which values are strictly outside [low, high]."""
        return _outside(observed, self.low, self.high)

    def critical(self, observed: Floats) -> Mask:
        """Which values are strictly outside the critical bounds."""
        return _outside(observed, self.critical_low, self.critical_high)

    def at(self, slot: int) -> dict[str, float]:
        """The bounds of one slot, for the rule table and for messages."""
        bounds: dict[str, float] = {}
        for name in ("low", "high", "critical_low", "critical_high"):
            bound = getattr(self, name)
            if bound is not None:
                value = float(np.asarray(bound).reshape(-1)[slot] if np.ndim(bound) else bound)
                if np.isfinite(value):
                    bounds[name] = value
        if self.by_span:
            bounds["span"] = bounds["high"] - bounds["low"]
        return bounds


def _outside(observed: Floats, low: Floats | float | None, high: Floats | float | None) -> Mask:
    outside: Mask | None = None
    if high is not None:
        outside = observed > (high[:, None] if isinstance(high, np.ndarray) and high.ndim == 1 else high)
    if low is not None:
        below = observed < (low[:, None] if isinstance(low, np.ndarray) and low.ndim == 1 else low)
        outside = below if outside is None else outside | below
    return np.zeros(observed.shape, dtype=bool) if outside is None else outside


@dataclass(frozen=True)
class Condition:
    """Where a rule applies: a mask over (slots, samples), and the reason given where it is false."""

    holds: Callable[[Any], Mask]
    otherwise: str


@dataclass(frozen=True)
class Variant:
    """Another code that an atom of the same slot may carry instead (one atom, several ways to fail)."""

    code: str
    title: str
    failed: str


@dataclass(frozen=True)
class Case:
    """Another limit that decides some atoms of a rule: when it does, what it measures, and its own messages."""

    when: str
    limits: Limits
    passed: str
    failed: str
    unit: str = ""

    def table(self) -> dict[str, Any]:
        """The case as plain data, for rules.json."""
        texts = {"when": self.when, "passed": self.passed, "failed": self.failed, "unit": self.unit}
        return {**texts, **self.limits.at(0)}


@dataclass
class Finding:
    """What a check that is more than limits returns, each array shaped (slots, samples).

    `details` say why single atoms failed; `shared` are (slot, samples, text) for atoms with the same text. `errors` are
    (slot, samples, text) where the rule could not be evaluated: those atoms are errors wherever the rule applies. `case` is
    the number of the rule's case that decided, counted from 1; 0 where the rule's own limits did.
    """

    failed: Mask
    critical: Mask
    observed: Floats | None = None
    variant: Codes | None = None
    case: Codes | None = None
    details: Mapping[tuple[int, int], str] = field(default_factory=dict)
    shared: Sequence[tuple[int, NDArray[np.intp], str]] = ()
    errors: Sequence[tuple[int, NDArray[np.intp], str]] = ()


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One check with a stable code. Either `quantity` and `limits`, or a `check` of its own.

    Where neither `scope` nor `slots` are given, it leaves one atom about the sample as a whole.
    `quantity` maps a batch to an array (slots, samples); `limits` may depend on the batch. `needs` names rule codes or
    families whose atoms on the cells this rule reads must have passed, otherwise the atom is not_applicable.
    `nominal` are limits for the rule table where the real ones depend on the batch or on a check of its own. Where more
    than one limit can decide, each further one is a case, and the atom says which.
    Message templates may use {observed}, {field}, {step}, {unit}, {low}, {high}, {critical_low}, {critical_high}.
    """

    code: str
    title: str
    passed: str
    failed: str
    scope: Scope = Scope.SAMPLE
    slots: tuple[Slot, ...] = WHOLE_SAMPLE
    needs: tuple[str, ...] = ()
    unit: str | tuple[str, ...] = ""
    quantity: Callable[[Any], Floats] | None = None
    limits: Limits | None = None
    batch_limits: Callable[[Any], Limits] | None = None
    nominal: Limits | None = None
    check: Callable[[Any], Finding] | None = None
    conditions: tuple[Condition, ...] = ()
    variants: tuple[Variant, ...] = ()
    cases: tuple[Case, ...] = ()

    def __post_init__(self) -> None:
        for code in (self.code, *(variant.code for variant in self.variants)):
            if not _CODE.fullmatch(code):
                raise ConfigError(f"rule code {code!r} is not of the form family.rule (lower case, digits, _)")
        if not self.slots:
            raise ConfigError(f"rule {self.code} has no slots, so it would never leave evidence")
        if (self.check is None) == (self.quantity is None):
            raise ConfigError(f"rule {self.code} must have either a quantity with limits or a check")
        if self.quantity is not None and (self.limits is None) == (self.batch_limits is None):
            raise ConfigError(f"rule {self.code} must have either limits or batch_limits beside its quantity")

    @property
    def family(self) -> str:
        """The verifier this rule belongs to."""
        return self.code.partition(".")[0]

    @property
    def codes(self) -> tuple[str, ...]:
        """Every code an atom of this rule may carry; the first when it passes."""
        return (self.code, *(variant.code for variant in self.variants))

    def evaluate(self, batch: Any) -> Finding:
        """The rule over one batch, before applicability."""
        if self.check is not None:
            return self.check(batch)
        assert self.quantity is not None  # noqa: S101 -- held by __post_init__, told to the type checker
        observed = self.quantity(batch)
        limits = self.limits if self.batch_limits is None else self.batch_limits(batch)
        assert limits is not None  # noqa: S101 -- as above
        failed = limits.failed(observed)
        return Finding(failed, limits.critical(observed) & failed if failed.any() else failed, observed)

    def unit_at(self, slot: int) -> str:
        """The unit of the measured quantity at one slot."""
        return self.unit if isinstance(self.unit, str) else self.unit[slot]

    def table(self) -> dict[str, Any]:
        """The rule as plain data, for rules.json: enough to render every message without this code."""
        bounds = self.limits or self.nominal
        return {
            "code": self.code,
            "family": self.family,
            "title": self.title,
            "scope": str(self.scope),
            "needs": list(self.needs),
            "variants": [{"code": v.code, "title": v.title, "failed": v.failed} for v in self.variants],
            "passed": self.passed,
            "failed": self.failed,
            "applies": [condition.otherwise for condition in self.conditions],
            **({"cases": [case.table() for case in self.cases]} if self.cases else {}),
            "slots": [
                {
                    "field": slot.field,
                    "step": slot.step,
                    "unit": self.unit_at(position),
                    **({"when": slot.when} if slot.when else {}),
                    **(bounds.at(position) if bounds is not None else {}),
                }
                for position, slot in enumerate(self.slots)
            ],
        }


@dataclass(frozen=True)
class RuleSet:
    """A named set of rules for one protocol, found through the entry-point group `adjudge.rules`.

    `build` receives the protocol's own context (for flight: the task and the constraint library). A change of what the
    rules find changes the `version`, so that older runs are not taken for altered ones.
    """

    name: str
    protocol: str
    build: Callable[[Any], Sequence[Rule]]
    version: str = "1"


def rule_sets(protocol: str, names: tuple[str, ...]) -> list[RuleSet]:
    """The named rule sets of a protocol, its own first, then the added ones by name, each once."""
    chosen: list[RuleSet] = []
    for name in dict.fromkeys((protocol, *sorted(names))):
        entry = plugin(GROUP, name)
        if entry is None:
            known = ", ".join(plugin_names(GROUP)) or "none"
            raise ConfigError(
                f"there is no rule set {name!r} (installed: {known}); rule sets are entry points of {GROUP}"
            )
        rules = entry.load()
        if not isinstance(rules, RuleSet):
            raise ConfigError(f"entry point {name!r} of {GROUP} is a {type(rules).__name__}, expected a RuleSet")
        if rules.protocol != protocol:
            raise ConfigError(f"rule set {name!r} is for protocol {rules.protocol!r}, not {protocol!r}")
        chosen.append(rules)
    return chosen


@dataclass(frozen=True)
class Position:
    """One place in a sample's evidence: the rule it belongs to, and its field, step, unit and bounds."""

    rule: dict[str, Any]
    slot: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Layout:
    """Every sample of a run has the same positions, so rule, field and step are known from the position."""

    rules: tuple[dict[str, Any], ...]
    positions: tuple[Position, ...]
    codes: tuple[str, ...]
    fields: tuple[str, ...]
    slot_code: NDArray[np.int16]
    slot_field: NDArray[np.int16]
    slot_step: NDArray[np.uint8]

    @classmethod
    def of(cls, rules: Sequence[dict[str, Any]]) -> Layout:
        """The layout of a rule table (the entries of rules.json)."""
        codes = [entry["code"] for rule in rules for entry in (rule, *rule["variants"])]
        positions = [Position(rule, slot) for rule in rules for slot in rule["slots"]]
        fields = list(dict.fromkeys(p.slot["field"] for p in positions if p.slot["field"] is not None))
        where = {name: index for index, name in enumerate(fields)}
        return cls(
            rules=tuple(rules),
            positions=tuple(positions),
            codes=tuple(codes),
            fields=tuple(fields),
            slot_code=np.array([codes.index(p.rule["code"]) for p in positions], dtype=np.int16),
            slot_field=np.array([where.get(p.slot["field"], -1) for p in positions], dtype=np.int16),
            slot_step=np.array([p.slot["step"] for p in positions], dtype=np.uint8),
        )

    @property
    def width(self) -> int:
        """Atoms a sample."""
        return len(self.positions)

    def families(self) -> tuple[str, ...]:
        """The verifiers, in the order of the rule table."""
        return tuple(dict.fromkeys(rule["family"] for rule in self.rules))

    def positions_of(self, *names: str) -> NDArray[np.intp]:
        """The positions whose rule code or family is one of `names`."""
        return np.flatnonzero(
            [place.rule["family"] in names or place.rule["code"] in names for place in self.positions]
        )

    def describe(self, position: int) -> str:
        """A position in words: the rule, and the field it is about."""
        place = self.positions[position]
        field = place.slot["field"]
        return str(place.rule["code"]) + ("" if field is None else f" on {field}")


def as_slice(positions: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """Neighbouring positions as a slice, which costs no copy."""
    neighbours = positions.size and positions[-1] - positions[0] + 1 == positions.size
    return slice(int(positions[0]), int(positions[-1]) + 1) if neighbours else positions
