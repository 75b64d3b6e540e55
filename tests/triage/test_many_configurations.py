"""Very many configurations: those beyond the first have every value of the others, and the notes say what they lack."""

import pytest

import adjudge
from adjudge.protocols.base import protocol
from adjudge.protocols.triage import summary

DETAILED = 2


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The example as it is judged, and with all but two configurations folded."""
    folder = tmp_path_factory.mktemp("folded")
    config = {**protocol("triage").example(folder / "data", 3), "resamples": 100}
    whole = adjudge.evaluate("triage", config, out=folder / "whole", report=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summary, "MOST_BLOCKS", DETAILED)
        folded = adjudge.evaluate("triage", config, out=folder / "folded", report=False)
        assert adjudge.verify(folded.path).problems == []
    return whole, folded


def by_name(run):
    return {(estimate["name"], estimate["slice"]): estimate for estimate in run.metrics["estimates"]}


def folded_names(runs):
    names = sorted(runs[0].metrics["configurations"])
    assert len(names) > DETAILED + 1
    return names[DETAILED:]


def test_every_configuration_has_its_estimates_with_the_values_that_it_has_unfolded(runs):
    whole, folded = map(by_name, runs)
    for name in folded_names(runs):
        where = {key for key in folded if name in key[1]}
        assert {"accuracy", "coverage", "ece", "aurc"} <= {key[0] for key in where}
        for key in where:
            assert folded[key]["n"] == whole[key]["n"], key
            value = whole[key]["value"]
            assert folded[key]["value"] == (value if value is None else pytest.approx(value, rel=1e-12)), key


def test_intervals_without_resampling_are_the_same_and_the_others_are_left_out_with_the_reason(runs):
    whole, folded = map(by_name, runs)
    kept = left = 0
    for name in folded_names(runs):
        for key in (key for key in folded if name in key[1]):
            ends = [[one[key]["low"], one[key]["high"]] for one in (whole, folded)]
            if folded[key]["low"] is not None:
                assert ends[0] == ends[1], key
                kept += 1
            elif ends[0][0] is not None:
                assert folded[key]["warnings"] or folded[key]["method"] != whole[key]["method"], key
                left += 1
    assert kept > 10
    assert left > 3


def test_what_is_not_folded_is_as_it_was(runs):
    whole, folded = runs
    first = sorted(whole.metrics["configurations"])[:DETAILED]
    assert sorted(folded.metrics["configurations"]) == first
    assert all(folded.metrics["configurations"][name] == whole.metrics["configurations"][name] for name in first)
    assert folded.metrics["buckets"] == whole.metrics["buckets"]
    assert folded.metrics["factors"] == whole.metrics["factors"]
    total = len(whole.metrics["configurations"])
    assert any(f"{DETAILED} of {total}" in note for note in folded.metrics["notes"])
    assert not any(f"{DETAILED} of {total}" in note for note in whole.metrics["notes"])
