"""What consistency lets `adjudge compare` pair: shipping and agreement, as the runs themselves have them."""

from __future__ import annotations

import json

import pytest

import adjudge
from adjudge.protocols.consistency.example import generate


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One set of pairs as generated, and with an auditor who follows the scholar."""
    folder = tmp_path_factory.mktemp("consistency")
    pairs = generate(folder / "data", seed=3, items=600)
    rows = [json.loads(line) for line in pairs.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["auditor"]["label"] = row["scholar"]["label"]
    meek = folder / "meek.jsonl"
    meek.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    files = {"before": pairs, "after": meek, "again": pairs}
    return {
        name: adjudge.evaluate("consistency", {"pairs": [str(path)], "resamples": 100}, out=folder / name, report=False)
        for name, path in files.items()
    }


def test_the_compared_rates_are_the_estimates_of_the_runs(runs):
    comparison = adjudge.compare(runs["before"].path, runs["after"].path)
    assert comparison.status == "COMPARABLE"
    found = {metric.name: metric for metric in comparison.pairs[0].metrics}
    assert list(found) == ["ship_rate", "percent_agreement"]
    for name, metric in found.items():
        for value, run in ((metric.a, "before"), (metric.b, "after")):
            assert value == pytest.approx(runs[run].metrics["metrics"][name]), name
    assert found["percent_agreement"].b == 1.0
    assert found["percent_agreement"].verdict == "better"


def test_a_copy_is_equivalent_and_nothing_flipped(runs):
    pair = adjudge.compare(runs["before"].path, runs["again"].path).pairs[0]
    assert pair.identical
    assert {metric.verdict for metric in pair.metrics} == {"equivalent"}
    assert (pair.flipped.lost, pair.flipped.gained) == (0, 0)
