"""Atoms as objects, rendered when somebody looks; and citations, a bitmap over the positions of a sample's evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import OUTCOMES, SEVERITIES, Outcome

NOT_ASKED = "not asked of this sample"
"""Why an atom is not applicable that another kind of sample of the same run has; it is none of this one's."""

_BOUNDS = ("low", "high", "critical_low", "critical_high", "span")


@dataclass(frozen=True)
class Atom:
    """What one rule found on one sample, with its id and its message."""

    id: str
    rule: str
    family: str
    title: str
    field: str | None
    step: int
    outcome: str
    severity: str
    scope: str
    observed: float | None
    limits: dict[str, float]
    why: str | None
    message: str
    position: int
    when: str = ""

    @property
    def failed(self) -> bool:
        """Whether the check was made and did not hold."""
        return self.outcome == "fail"


def atom_id(model: str, sample: str, rule: str, field: str | None, step: int) -> str:
    """The id of an atom, derived from what it is about: the same in every re-run, process and machine.

    Slashes, percent and @ signs inside a part are percent-encoded, so that an id has one reading.
    """
    parts = "/".join(quote(part, safe=" ()+,-._~:=|#") for part in (model, sample))
    return f"{parts}/{rule}/{'' if field is None else quote(field, safe=' ()+,-._~:=|#')}@{step}"


def atoms(evidence: Evidence, index: int, model: str, sample: str) -> Iterator[Atom]:
    """The atoms of one sample of a batch, in the order of the layout, but for those that are not asked of it."""
    layout = evidence.layout
    for position, place in enumerate(layout.positions):
        outcome = int(evidence.outcome[position, index])
        code = layout.codes[int(evidence.code[position, index])]
        observed = float(evidence.observed[position, index])
        value = None if np.isnan(observed) else observed
        why = evidence.reasons.at(position, index)
        if why == NOT_ASKED:
            continue
        slot = place.slot
        case = _case(place.rule, why)
        bounds = slot if case is None else case
        yield Atom(
            id=atom_id(model, sample, code, slot["field"], slot["step"]),
            rule=code,
            family=place.rule["family"],
            title=_variant(place.rule, code)["title"],
            field=slot["field"],
            step=slot["step"],
            outcome=OUTCOMES[outcome],
            severity=SEVERITIES[int(evidence.severity[position, index])],
            scope=place.rule["scope"],
            observed=value,
            limits={name: bounds[name] for name in _BOUNDS if name in bounds},
            why=why,
            message=_message(place.rule, code, slot, outcome, value, why),
            position=position,
            when=slot.get("when", ""),
        )


def _variant(rule: dict[str, Any], code: str) -> dict[str, Any]:
    return next((variant for variant in rule["variants"] if variant["code"] == code), rule)


def _case(rule: dict[str, Any], why: str | None) -> dict[str, Any] | None:
    """The case of the rule that decided an atom, where it was not the rule's first limit."""
    return next((case for case in rule.get("cases", ()) if case["when"] == why), None)


class _Blanks(dict[str, Any]):
    """Template values; a placeholder without a value stays readable instead of raising."""

    def __missing__(self, key: str) -> str:
        return "n/a"


def _message(
    rule: dict[str, Any], code: str, slot: dict[str, Any], outcome: int, observed: float | None, why: str | None
) -> str:
    if outcome == Outcome.NOT_APPLICABLE:
        return f"not applicable: {why}" if why else "not applicable"
    if outcome == Outcome.ERROR:
        return why or "the rule failed"
    case = _case(rule, why)
    texts = _variant(rule, code) if case is None else case
    template = (rule if case is None else case)["passed"] if outcome == Outcome.PASS else texts["failed"]
    bounds = {**slot, **(case or {})}
    values = _Blanks({key: plain(value) if isinstance(value, float) else value for key, value in bounds.items()})
    values["field"] = slot["field"] or "the sample"
    values["observed"] = "n/a" if observed is None else plain(observed)
    values["why"] = why or ""
    return str(template).format_map(values)


def plain(number: float) -> str:
    """A measured number in a message: at most six significant digits, never an exponent for everyday sizes."""
    text = f"{number:.6g}"
    return f"{number:.0f}" if "e+" in text and abs(number) < 1e15 else text


def pack_citations(cites: NDArray[np.bool_]) -> pa.Array:
    """Bit k of a sample's citations is the k-th atom of its evidence; `cites` is shaped (positions, samples)."""
    return citation_column(packed_bits(cites))


def packed_bits(cites: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Eight positions a byte, shaped (bytes, samples)."""
    width, n = cites.shape
    packed = np.zeros((-(-width // 8), n), dtype=np.uint8)
    for position, row in enumerate(cites.view(np.uint8)):  # np.packbits takes many times as long across rows
        packed[position // 8] |= row << np.uint8(position % 8)
    return packed


def citation_column(packed: NDArray[np.uint8]) -> pa.Array:
    """Citations that are packed already, shaped (bytes, samples)."""
    width, n = packed.shape
    offsets = pa.array(np.arange(0, (n + 1) * width, width, dtype=np.int32))
    return pa.Array.from_buffers(
        pa.binary(), n, [None, offsets.buffers()[1], pa.py_buffer(np.ascontiguousarray(packed.T))]
    )


def unpack_citations(packed: bytes, width: int) -> NDArray[np.intp]:
    """The positions that a sample's verdict cites."""
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), bitorder="little")[:width]
    return np.flatnonzero(bits)
