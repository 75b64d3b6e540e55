"""Every way to alter a run is found, or listed under "not checked"; nothing stands in between, and nothing breaks.

The whole table takes minutes (`python tests/tampering/table.py`); here every way meets one protocol, and every protocol some ways.
ADJUDGE_TAMPERING=all takes all of it.
"""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path

import pytest

from tampering import table
from tampering.ways import PAGES, WAYS

PROTOCOLS = table.protocols()
ALL = os.environ.get("ADJUDGE_TAMPERING") == "all"


def pairs():
    for place, way in enumerate(way for way in WAYS if way not in PAGES):
        chosen = PROTOCOLS if ALL else [PROTOCOLS[(place + zlib.crc32(way.name.encode())) % len(PROTOCOLS)]]
        for name in chosen:
            yield pytest.param(name, way, id=f"{name}-{way.name}")


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    runs = {}

    def of(name, *, report=False):
        if (name, report) not in runs:
            runs[name, report] = table.honest_run(name, tmp_path_factory.mktemp(name), report=report)
        return runs[name, report]

    return of


def test_there_are_eighty_ways_with_names_of_their_own():
    assert len({way.name for way in WAYS}) == len(WAYS) >= 80
    text = (Path(__file__).parents[2] / "docs" / "trust.md").read_text(encoding="utf-8")
    assert f"alters runs in {len(WAYS)} ways" in text
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| 0 \| 0 \|$", text, re.MULTILINE)
    assert [name for name, *_ in rows] == PROTOCOLS
    assert all(80 <= int(ways) == int(found) + int(listed) <= len(WAYS) for _, ways, found, listed in rows)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_an_honest_run_holds(honest, name):
    result = table.prove(table.adjudge.load_run(honest(name)))
    assert (result.problems, result.not_recomputed) == ([], [])


@pytest.mark.parametrize("name, way", list(pairs()))
def test_a_way_is_found_or_listed(honest, tmp_path, name, way):
    word, text, by_digest = table.outcome(honest(name), way, tmp_path)
    assert word in {table.FOUND, table.LISTED, table.INAPPLICABLE}, text
    assert word == table.INAPPLICABLE or by_digest, "a published digest finds every way"


@pytest.mark.parametrize("way", PAGES, ids=lambda way: way.name)
def test_a_page_that_was_altered_is_found_or_listed(honest, tmp_path, way):
    word, text, by_digest = table.outcome(honest("consistency", report=True), way, tmp_path)
    assert word in {table.FOUND, table.LISTED}, text
    assert by_digest
