"""Evidence files: what Arrow and DuckDB read of them is the evidence, atom by atom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.evidence.rule import Layout
from adjudge.evidence.table import SCHEMA, Evidence, Reasons
from adjudge.evidence.vocabulary import NOT_APPLICABLE, OUTCOMES, PASS, SEVERITIES, Outcome
from adjudge.runs.tables import TableFile

TEXTS = ("too warm", "zu warm, 40 °C")


def layout_of(slots: list[tuple[str | None, int]]) -> Layout:
    """Rules of some slots each, the first with a variant."""
    rules: list[dict[str, Any]] = []
    for index, slot in enumerate(slots):
        variants = [{"code": "first.other"}] if index == 0 else []
        places = [{"field": slot[0], "step": slot[1]}] * (1 + index % 2)
        rules.append({"code": f"rule.r{index}", "family": "rule", "variants": variants, "slots": places})
    return Layout.of(rules)


def evidence_of(layout: Layout, n: int, rng: np.random.Generator, mixed: float) -> Evidence:
    """Positions that are constant, and, in part, positions that are not."""
    shape = (layout.width, n)

    def codes(count: int, kind: Any) -> Any:
        drawn = np.repeat(rng.integers(0, count, (layout.width, 1)), n, axis=1)
        rows = rng.random(layout.width) < mixed
        drawn[rows] = rng.integers(0, count, (int(rows.sum()), n))
        return drawn.astype(kind)

    code = np.repeat(layout.slot_code[:, None], n, axis=1)
    code[0, rng.random(n) < mixed] = 1
    observed = np.where(codes(2, bool), np.nan, rng.normal(size=shape))
    reasons = Reasons(*shape)
    for position in np.flatnonzero(rng.random(layout.width) < mixed).tolist():
        for text in TEXTS:
            reasons.put(position, np.flatnonzero(rng.random(n) < 0.5), text)
    return Evidence(layout, codes(4, np.uint8), codes(3, np.uint8), observed, code, reasons)


def rows_of(evidence: Evidence, first: int) -> list[tuple[Any, ...]]:
    """The rows that a file must have, one atom after another."""
    layout, rows = evidence.layout, []
    for position, place in enumerate(layout.positions):
        for sample in range(evidence.n):
            value = float(evidence.observed[position, sample])
            rows.append(
                (
                    first + sample,
                    layout.codes[evidence.code[position, sample]],
                    place.slot["field"],
                    place.slot["step"],
                    OUTCOMES[evidence.outcome[position, sample]],
                    SEVERITIES[evidence.severity[position, sample]],
                    None if np.isnan(value) else value,
                    evidence.reasons.at(position, sample),
                )
            )
    return rows


def write(path: Path, batches: list[Evidence]) -> list[int]:
    """Write batches one after another; the row that each begins with."""
    file = TableFile(path, SCHEMA)
    firsts = np.cumsum([0, *(batch.n for batch in batches)]).tolist()[: len(batches)]
    for first, batch in zip(firsts, batches, strict=True):
        file.add(batch.to_arrow(first))
    file.close()
    return firsts


SLOTS = st.lists(st.tuples(st.sampled_from([None, "altitude", "speed"]), st.integers(0, 3)), min_size=1, max_size=6)


@given(SLOTS, st.lists(st.integers(0, 30), max_size=3), st.sampled_from([0, 0.5, 1]), st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_every_row_group_is_the_evidence_of_its_batch(
    tmp_path_factory: pytest.TempPathFactory,
    slots: list[tuple[str | None, int]],
    sizes: list[int],
    mixed: float,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    layout = layout_of(slots)
    batches = [evidence_of(layout, n, rng, mixed) for n in sizes]
    path = tmp_path_factory.mktemp("evidence") / "part.parquet"
    firsts = write(path, batches)
    file = pq.ParquetFile(path)
    assert file.schema_arrow.equals(SCHEMA)
    assert file.num_row_groups == len(batches)
    for index, (first, batch) in enumerate(zip(firsts, batches, strict=True)):
        table = file.read_row_group(index)
        assert [tuple(row.values()) for row in table.to_pylist()] == rows_of(batch.as_stored(), first)
        again = Evidence.from_arrow(table, layout)
        assert batch.differences(again) == []
        bounds = file.metadata.row_group(index).column(0).statistics
        if batch.n:
            assert (bounds.min, bounds.max) == (first, first + batch.n - 1)


def test_duckdb_reads_the_same_atoms_from_many_pages(tmp_path: Path) -> None:
    layout = layout_of([("altitude", 0), (None, 0), ("speed", 2)])
    batches = [evidence_of(layout, 30_001, np.random.default_rng(seed), 0.5) for seed in (1, 2)]
    path = tmp_path / "part.parquet"
    firsts = write(path, batches)
    expected = [row for first, batch in zip(firsts, batches, strict=True) for row in rows_of(batch.as_stored(), first)]
    with duckdb.connect() as connection:
        found = connection.sql(f"select * from '{path}'").fetchall()  # noqa: S608 -- our own path, here and below
        one = connection.sql(f"select count(*) from '{path}' where sample = 40000").fetchall()  # noqa: S608
    assert found == expected
    assert one == [(layout.width,)]


def test_numbers_that_are_not_doubles_are_converted() -> None:
    layout = layout_of([(None, 0)])
    evidence = evidence_of(layout, 3, np.random.default_rng(0), 0)
    evidence.observed = np.array([[1.5, np.nan, 2.5]], dtype=np.float32)  # type: ignore[assignment]
    assert evidence.to_arrow(0).column("observed").to_pylist() == [1.5, None, 2.5]


def test_a_batch_takes_few_bytes(tmp_path: Path) -> None:
    """Columns that follow from the position, and outcomes that mostly are one, cost next to nothing."""
    layout = layout_of([("altitude", step) for step in range(3)] * 10)
    evidence = evidence_of(layout, 8192, np.random.default_rng(0), 0)
    write(tmp_path / "part.parquet", [evidence])
    group = pq.ParquetFile(tmp_path / "part.parquet").metadata.row_group(0)
    sizes = {group.column(i).path_in_schema: group.column(i).total_compressed_size for i in range(group.num_columns)}
    del sizes["observed"]
    assert sum(sizes.values()) < 0.05 * evidence.outcome.size


def test_the_constant_columns_are_made_once_for_batches_of_one_size() -> None:
    layout = layout_of([("altitude", 0), (None, 1)])
    first, second = (evidence_of(layout, 5, np.random.default_rng(seed), 0).to_arrow(0) for seed in (0, 1))
    for name in ("field", "step"):
        buffers = [table.column(name).chunk(0).buffers() for table in (first, second)]
        assert [b.address for b in buffers[0] if b is not None] == [b.address for b in buffers[1] if b is not None]


BOUNDED = Layout.of(
    [
        {
            "code": "rule.bounded",
            "family": "rule",
            "variants": [],
            "slots": [{"field": None, "step": 0, "low": -0.1, "high": 0.1}],
            "cases": [{"when": "warm", "high": 1 / 3}],
        }
    ]
)


def observed_as(outcome: int, *values: float) -> Evidence:
    shape = (1, len(values))
    zeros = np.zeros(shape, dtype=np.uint8)
    code = np.zeros(shape, dtype=np.int16)
    return Evidence(BOUNDED, zeros + np.uint8(outcome), zeros, np.array([values], dtype=float), code, Reasons(*shape))


@pytest.mark.parametrize(
    "outcome, value, stored",
    [
        (PASS, 0.0123456789012345, 0.012345679104328156),
        (PASS, -0.0123456789012345, -0.012345679104328156),
        (Outcome.FAIL, 0.0123456789012345, 0.0123456789012345),
        (Outcome.ERROR, 0.0123456789012345, 0.0123456789012345),
        (NOT_APPLICABLE, 0.0123456789012345, 0.0123456789012345),
        (PASS, 0.1, 0.1),  # a limit: with 24 bits it would be over it
        (PASS, np.nextafter(0.1, 0), np.nextafter(0.1, 0)),
        (PASS, -0.1, -0.1),
        (PASS, 1 / 3, 1 / 3),  # the limit of a case
        (PASS, 16777217.0, 16777217.0),
        (PASS, 1.7e9 + 0.123456, 1.7e9 + 0.123456),
        (PASS, 1e300, 1e300),
        (PASS, 1e-300, 1e-300),
        (PASS, 0.0, 0.0),
        (PASS, float("inf"), float("inf")),
        (PASS, 47.25, 47.25),
    ],
)
def test_of_what_an_atom_that_passed_observed_24_bits_are_stored(outcome: int, value: float, stored: float) -> None:
    assert observed_as(outcome, value).to_arrow(0).column("observed").to_pylist() == [stored]


@given(st.lists(st.floats(allow_infinity=False) | st.sampled_from([0.1, -0.1, 1 / 3]), min_size=1, max_size=9))
def test_what_is_stored_stands_on_the_same_side_of_every_limit_within_seven_digits(values: list[float]) -> None:
    evidence = observed_as(PASS, *values)
    stored = evidence.as_stored()
    before, after = evidence.observed[0], stored.observed[0]
    for bound in (-0.1, 0.1, 1 / 3):
        assert ((before <= bound) == (after <= bound)).all()
        assert ((before < bound) == (after < bound)).all()
    np.testing.assert_allclose(after, before, rtol=2.0**-24, atol=0)
    np.testing.assert_array_equal(stored.as_stored().observed[0], after)


def test_a_digit_that_was_altered_is_a_difference_and_an_older_run_has_them_all(tmp_path: Path) -> None:
    evidence = observed_as(PASS, 0.0123456789012345)
    table = evidence.to_arrow(0)
    assert evidence.differences(Evidence.from_arrow(table, BOUNDED)) == []
    all_digits = table.set_column(6, SCHEMA.field("observed"), [[0.0123456789012345]])
    assert evidence.differences(Evidence.from_arrow(all_digits, BOUNDED)) != []
    older = all_digits.replace_schema_metadata(None)
    assert evidence.differences(Evidence.from_arrow(older, BOUNDED)) == []
    write(tmp_path / "part.parquet", [evidence])
    assert pq.read_schema(tmp_path / "part.parquet").metadata[b"observed"].startswith(b"every digit where")
