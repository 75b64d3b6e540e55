"""Evidence: the atoms of a batch as columns, in memory and as an Arrow table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import RunError
from adjudge.evidence.rule import Layout
from adjudge.evidence.vocabulary import NOT_APPLICABLE, OUTCOMES, PASS, SEVERITIES, Outcome, Severity

BOUNDS = ("low", "high", "critical_low", "critical_high")
_LARGEST, _SMALLEST, _NEAR = 2.0**24, 2.0**-126, 2.0**-23
_ROUNDED = {b"observed": b"every digit where an atom did not pass; 24 significant bits where it passed"}
SCHEMA = pa.schema(
    [
        pa.field("sample", pa.uint32(), nullable=False),
        pa.field("rule", pa.dictionary(pa.int16(), pa.string()), nullable=False),
        pa.field("field", pa.dictionary(pa.int16(), pa.string())),
        pa.field("step", pa.uint8(), nullable=False),
        pa.field("outcome", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("severity", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("observed", pa.float64()),
        pa.field("why", pa.dictionary(pa.int32(), pa.string())),
    ],
    metadata=_ROUNDED,
)


class Reasons:
    """Why an atom is not applicable, or in what way a value is no value: texts, held once each."""

    def __init__(self, width: int, n: int) -> None:
        self.shape = (width, n)
        self.texts: list[str] = []
        self._index: dict[str, int] = {}
        self._codes: NDArray[np.int32] | None = None

    @classmethod
    def of(cls, codes: NDArray[np.int32], texts: Sequence[str]) -> Reasons:
        """Reasons from the index of each atom's text, −1 for none."""
        reasons = cls(*codes.shape)
        reasons.texts, reasons._codes = list(texts), codes
        reasons._index = {text: index for index, text in enumerate(texts)}
        return reasons

    @property
    def codes(self) -> NDArray[np.int32] | None:
        """The index into `texts` of each atom, −1 for none; None when no atom has a reason."""
        return self._codes

    def put(self, position: int, samples: NDArray[np.intp], text: str) -> None:
        """Give some atoms of one position the same reason."""
        if samples.size:
            self._writable()[position, samples] = self._code(text)

    def put_each(self, positions: NDArray[np.intp], samples: NDArray[np.intp], texts: Iterable[str]) -> None:
        """Give some atoms a reason each."""
        self._writable()[positions, samples] = [self._code(text) for text in texts]

    def put_all(self, positions: slice, text: str) -> None:
        """Give all atoms of some positions the same reason."""
        self._writable()[positions] = self._code(text)

    def copy(self, source: int, target: int, samples: NDArray[np.intp]) -> None:
        """Hand a reason on to an atom that depends on another."""
        if samples.size:
            codes = self._writable()
            codes[target, samples] = codes[source, samples]

    def at(self, position: int, sample: int) -> str | None:
        """The reason of one atom."""
        code = -1 if self._codes is None else int(self._codes[position, sample])
        return None if code < 0 else self.texts[code]

    def given(self) -> NDArray[np.bool_]:
        """Which atoms have a reason."""
        return np.zeros(self.shape, dtype=np.bool_) if self._codes is None else self._codes >= 0

    def differ(self, other: Reasons) -> NDArray[np.bool_]:
        """Which atoms have another reason in another batch of the same shape."""
        if self._codes is None and other._codes is None:
            return np.zeros(self.shape, dtype=np.bool_)
        numbers = {text: number for number, text in enumerate(dict.fromkeys([*self.texts, *other.texts]))}
        differ: NDArray[np.bool_] = self._numbered(numbers) != other._numbered(numbers)
        return differ

    def _numbered(self, numbers: Mapping[str, int]) -> NDArray[np.int64]:
        of_code = np.array([*(numbers[text] for text in self.texts), -1], dtype=np.int64)
        return of_code[np.full(self.shape, -1) if self._codes is None else self._codes]

    def _writable(self) -> NDArray[np.int32]:
        if self._codes is None:
            self._codes = np.full(self.shape, -1, dtype=np.int32)
        return self._codes

    def _code(self, text: str) -> int:
        if text not in self._index:
            self._index[text] = len(self.texts)
            self.texts.append(text)
        return self._index[text]


@dataclass
class Evidence:
    """All atoms of a batch: arrays shaped (positions, samples). `observed` is NaN where nothing was measured.

    `rounded` says that it was read from a run, where `observed` is as `as_stored` makes it.
    """

    layout: Layout
    outcome: NDArray[np.uint8]
    severity: NDArray[np.uint8]
    observed: NDArray[np.float64]
    code: NDArray[np.int16]
    reasons: Reasons
    rounded: bool = False

    @property
    def n(self) -> int:
        """Samples in the batch."""
        return int(self.outcome.shape[1])

    def failed(self, severity: Severity | None = None) -> NDArray[np.bool_]:
        """Which atoms failed, at one severity or at any."""
        failed: NDArray[np.bool_] = self.outcome == int(Outcome.FAIL)
        return failed if severity is None else failed & (self.severity == int(severity))

    def only(self, sample: int) -> Evidence:
        """The atoms of one sample."""
        one = slice(sample, sample + 1)
        codes, reasons = self.reasons.codes, Reasons(self.layout.width, 1)
        if codes is not None:
            reasons = Reasons.of(codes[:, one].copy(), self.reasons.texts)
        names = ("outcome", "severity", "observed", "code")
        return replace(self, reasons=reasons, **{name: getattr(self, name)[:, one].copy() for name in names})

    def as_stored(self) -> Evidence:
        """The same with 24 significant bits (7 digits) of what was observed where an atom passed.

        Nothing else changes: every digit stays where an atom did not pass, where a limit is so near that the number could come to
        stand on its other side, and of numbers from 2^24 on or too small for 32 bits.
        """
        observed = self.observed.copy()
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for row, outcome, bounds in zip(observed, self.outcome, _bounds(self.layout), strict=True):
                size = np.abs(row)
                passed = (outcome == PASS) & (size < _LARGEST) & (size >= _SMALLEST)
                for bound in bounds:
                    passed &= np.abs(row - bound) > abs(bound) * _NEAR
                np.copyto(row, row.astype(np.float32), where=passed)
        return replace(self, observed=observed)

    def to_arrow(self, first_sample: int) -> pa.Table:
        """The evidence table: by position, then sample. Rule, field and step come from the layout."""
        width, n = self.outcome.shape
        rule, field, step, no_reason = _constant_columns(self.layout, n)
        if (self.code != self.layout.slot_code[:, None]).any():
            rule = _dictionary(self.code.ravel(), self.layout.codes, pa.int16())
        codes = self.reasons.codes
        sample = np.arange(first_sample, first_sample + n, dtype=np.uint32)
        return pa.Table.from_arrays(
            [
                pa.array(np.tile(sample, width)),
                rule,
                field,
                step,
                _dictionary(self.outcome.view(np.int8).ravel(), OUTCOMES, pa.int8()),
                _dictionary(self.severity.view(np.int8).ravel(), SEVERITIES, pa.int8()),
                without_nan(self.as_stored().observed.ravel()),
                no_reason if codes is None else _dictionary(codes.ravel(), self.reasons.texts, pa.int32()),
            ],
            schema=SCHEMA,
        )

    @classmethod
    def from_arrow(cls, table: pa.Table, layout: Layout) -> Evidence:
        """The columns that `to_arrow` wrote; raises RunError when the rows are not those of the layout."""
        width = layout.width
        n, rest = divmod(table.num_rows, width)
        if rest:
            raise RunError(f"evidence has {table.num_rows} rows, which is no multiple of the {width} atoms a sample")
        table = table.combine_chunks()
        sample = _numbers(table, "sample").reshape(width, n)
        step = _numbers(table, "step").reshape(width, n)
        field = _codes(table, "field", layout.fields).reshape(width, n)
        if (
            (n and (sample != np.arange(sample[0, 0], sample[0, 0] + n)).any())
            or (step != layout.slot_step[:, None]).any()
            or (field != layout.slot_field[:, None]).any()
        ):
            raise RunError("evidence rows are not in the order of the rule table")
        return cls._of_columns(table, layout, n)

    @classmethod
    def picked(cls, table: pa.Table, layout: Layout, samples: NDArray[np.integer[Any]]) -> Evidence:
        """Some samples, by their places, of what `to_arrow` wrote; the columns that the layout knows need not be there."""
        n, rest = divmod(table.num_rows, layout.width)
        if rest or (samples.size and samples.max() >= n):
            raise RunError(f"evidence has {table.num_rows} rows, where {layout.width} atoms a sample were expected")
        atoms = (np.arange(layout.width)[:, None] * n + samples).ravel()
        chosen = table if samples.size == n else table.take(pa.array(atoms))
        return cls._of_columns(chosen.combine_chunks(), layout, samples.size)

    @classmethod
    def _of_columns(cls, table: pa.Table, layout: Layout, n: int) -> Evidence:
        width = layout.width
        reasons = Reasons(width, n)
        why = table.column("why").combine_chunks()
        if why.null_count < len(why):
            codes = why.indices.fill_null(-1).to_numpy().reshape(width, n).copy()
            reasons = Reasons.of(codes, why.dictionary.to_pylist())
        return cls(
            layout,
            _codes(table, "outcome", OUTCOMES).reshape(width, n).astype(np.uint8),
            _codes(table, "severity", SEVERITIES).reshape(width, n).astype(np.uint8),
            table.column("observed").combine_chunks().to_numpy(zero_copy_only=False).reshape(width, n),
            _codes(table, "rule", layout.codes).reshape(width, n).astype(np.int16),
            reasons,
            rounded=_ROUNDED.items() <= (table.schema.metadata or {}).items(),
        )

    def differences(self, other: Evidence) -> list[str]:
        """Where two evaluations of the same samples disagree, in words; empty when they are the same."""
        texts = []
        for name in ("outcome", "severity", "code"):
            texts += self._where(name, getattr(self, name) != getattr(other, name))
        observed = self.as_stored().observed if other.rounded else self.observed
        same = (observed == other.observed) | (np.isnan(observed) & np.isnan(other.observed))
        texts += self._where("observed", ~same)
        # Why a text could not be read stands in no column, so a reason that is only stored is one of a failed atom.
        kept = self.reasons.given() | (self.outcome == PASS) | (self.outcome == NOT_APPLICABLE)
        return texts + self._where("reason", self.reasons.differ(other.reasons) & kept)

    def _where(self, name: str, different: NDArray[np.bool_]) -> list[str]:
        if not different.any():
            return []
        position, sample = (int(i) for i in np.argwhere(different)[0])
        return [
            f"{name} differs on {int(different.sum())} atoms, first sample {sample}, {self.layout.describe(position)}"
        ]


@lru_cache(maxsize=4)
def _bounds(layout: Layout) -> list[list[float]]:
    """Every limit that may decide the atoms of a position, by position."""
    return [
        [
            float(limits[name])
            for limits in (position.slot, *position.rule.get("cases", ()))
            for name in BOUNDS
            if limits.get(name) is not None
        ]
        for position in layout.positions
    ]


@lru_cache(maxsize=4)
def _constant_columns(layout: Layout, n: int) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    """The rule, field and step columns, and that of no reason anywhere: equal for every batch of one size."""
    return (
        _dictionary(np.repeat(layout.slot_code, n), layout.codes, pa.int16()),
        _dictionary(np.repeat(layout.slot_field, n), layout.fields, pa.int16()),
        pa.array(np.repeat(layout.slot_step, n)),
        _dictionary(np.full(layout.width * n, -1, dtype=np.int32), (), pa.int32()),
    )


def _dictionary(codes: NDArray[Any], words: Sequence[str], index: pa.DataType) -> pa.DictionaryArray:
    """Words by their codes; null where a code is negative."""
    absent = codes < 0 if codes.size and codes.min() < 0 else None
    return pa.DictionaryArray.from_arrays(pa.array(codes, type=index, mask=absent), pa.array(list(words), pa.string()))


def without_nan(values: NDArray[np.float64]) -> pa.Array:
    """Numbers, null where one is NaN; Arrow's own `from_pandas` takes five times as long."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    measured = np.packbits(~np.isnan(values), bitorder="little")
    return pa.Array.from_buffers(pa.float64(), values.size, [pa.py_buffer(measured), pa.py_buffer(values)])


def _numbers(table: pa.Table, name: str) -> NDArray[Any]:
    numbers: NDArray[Any] = table.column(name).combine_chunks().to_numpy()
    return numbers


def _codes(table: pa.Table, name: str, words: Sequence[str]) -> NDArray[np.int16]:
    """A dictionary column as indices into `words`, −1 for null; a word that is not there is a RunError."""
    column = table.column(name).combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    where = {word: index for index, word in enumerate(words)}
    try:
        translate = np.array([where[word] for word in column.dictionary.to_pylist()] + [-1], dtype=np.int16)
    except KeyError as error:
        raise RunError(f"evidence column {name} holds {error.args[0]!r}, which the rule table does not know") from None
    codes: NDArray[np.int16] = translate[column.indices.fill_null(len(translate) - 1).to_numpy()]
    return codes
