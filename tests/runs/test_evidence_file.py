"""Evidence files: what Arrow and DuckDB read of them is the evidence table, atom by atom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.evidence.layout import Layout
from adjudge.evidence.table import Evidence, Reasons
from adjudge.runs import evidence_file
from adjudge.runs.evidence_file import EvidenceFile


def layout_of(slots: list[tuple[str | None, int]]) -> Layout:
    """Rules of some slots each, the first with a variant."""
    rules: list[dict[str, Any]] = []
    for index, slot in enumerate(slots):
        variants = [{"code": "first.other"}] if index == 0 else []
        own = [{"field": slot[0], "step": slot[1]}] * (1 + index % 2)
        rules.append({"code": f"rule.r{index}", "family": "rule", "variants": variants, "slots": own})
    return Layout.of(rules)


def evidence_of(layout: Layout, n: int, rng: np.random.Generator, mixed: float) -> Evidence:
    """Positions that are constant, and, in part, positions that are not."""
    shape = (layout.width, n)

    def codes(count: int, kind: Any) -> Any:
        found = np.repeat(rng.integers(0, count, (layout.width, 1)), n, axis=1)
        rows = rng.random(layout.width) < mixed
        found[rows] = rng.integers(0, count, (int(rows.sum()), n))
        return found.astype(kind)

    code = np.repeat(layout.slot_code[:, None], n, axis=1)
    code[0, rng.random(n) < mixed] = 1
    observed = np.where(codes(2, bool), np.nan, rng.normal(size=shape))
    reasons = Reasons(*shape)
    for position in np.flatnonzero(rng.random(layout.width) < mixed).tolist():
        for text in ("too warm", "zu warm, 40 °C"):
            reasons.put(position, np.flatnonzero(rng.random(n) < 0.5), text)
    return Evidence(layout, codes(4, np.uint8), codes(3, np.uint8), observed, code, reasons)


def plain(table: pa.Table) -> pa.Table:
    """Words as texts, whatever the dictionary."""
    kinds = [pa.string() if pa.types.is_dictionary(field.type) else field.type for field in table.schema]
    return pa.table({name: table.column(name).cast(kind) for name, kind in zip(table.column_names, kinds, strict=True)})


SLOTS = st.lists(st.tuples(st.sampled_from([None, "altitude", "speed"]), st.integers(0, 3)), min_size=1, max_size=6)


@given(SLOTS, st.lists(st.integers(0, 60), max_size=3), st.sampled_from([0, 0.5, 1]), st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_as_arrow_reads_it(
    tmp_path_factory: pytest.TempPathFactory,
    slots: list[tuple[str | None, int]],
    sizes: list[int],
    mixed: float,
    seed: int,
) -> None:
    """Every row group is the table of its batch, with Arrow's own types."""
    rng = np.random.default_rng(seed)
    layout = layout_of(slots)
    batches = [evidence_of(layout, n, rng, mixed) for n in sizes]
    firsts = np.cumsum([0, *sizes]).tolist()
    path = tmp_path_factory.mktemp("evidence") / "part.parquet"
    with path.open("wb") as stream:
        file = EvidenceFile(stream)
        for first, batch in zip(firsts, batches, strict=False):
            file.add(batch, first)
        file.close()
    found = pq.ParquetFile(path)
    assert found.num_row_groups == len(batches)
    for index, (first, batch) in enumerate(zip(firsts, batches, strict=False)):
        expected, table = batch.to_arrow(first), found.read_row_group(index)
        assert table.schema.equals(expected.schema)
        assert plain(table).equals(plain(expected))
        again = Evidence.from_arrow(table, layout)
        assert batch.differences(again) == []
        assert [again.reasons.at(0, k) for k in range(batch.n)] == [batch.reasons.at(0, k) for k in range(batch.n)]


def test_as_duckdb_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts, sums and one sample, with `observed` on several pages."""
    monkeypatch.setattr(evidence_file, "PAGE_VALUES", 5000)
    layout = layout_of([("altitude", 0), (None, 0), ("speed", 2)])
    batches = [evidence_of(layout, 3001, np.random.default_rng(seed), 0.5) for seed in (1, 2)]
    path = tmp_path / "part.parquet"
    with path.open("wb") as stream:
        file = EvidenceFile(stream)
        file.add(batches[0], 0)
        file.add(batches[1], 3001)
        file.close()
    expected = pa.concat_tables([plain(batches[0].to_arrow(0)), plain(batches[1].to_arrow(3001))])
    with duckdb.connect() as connection:
        connection.register("expected", expected)
        every = "select * from {} order by all"
        first, second = (connection.sql(every.format(name)).fetchall() for name in ("expected", f"'{path}'"))
        one = connection.sql(f"select count(*) from '{path}' where sample = 4000").fetchall()  # noqa: S608 -- our own path
    assert len(first) == 6002 * layout.width
    assert second == first
    assert one == [(layout.width,)]
