"""Very many models: every one has its estimates, the first alone stand in sections and charts, and a note says so."""

import pytest

import adjudge
from adjudge.protocols.base import protocol
from adjudge.protocols.check import metrics

DETAILED = 2


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The example as it is judged, and with one of its models folded."""
    folder = tmp_path_factory.mktemp("folded")
    config = {**protocol("check").example(folder / "data", 3), "resamples": 100}
    whole = adjudge.evaluate("check", config, out=folder / "whole", report=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "MOST_DETAILED", DETAILED)
        folded = adjudge.evaluate("check", config, out=folder / "folded", report=False)
        assert adjudge.verify(folded.path).problems == []
    return whole, folded


def test_every_model_has_the_estimates_that_it_has_unfolded(runs):
    whole, folded = ({(e["name"], e["slice"]): e for e in run.metrics["estimates"]} for run in runs)
    assert {key[1] for key in folded} == {key[1] for key in whole}
    shared = 0
    for key, estimate in folded.items():
        assert (estimate["value"], estimate["n"]) == (whole[key]["value"], whole[key]["n"]), key
        if [estimate["low"], estimate["high"]] != [whole[key]["low"], whole[key]["high"]]:
            assert "bootstrap" in estimate["method"], key  # with the random numbers that all models share
            shared += 1
    assert shared < len(folded) / 2
    assert runs[0].metrics["buckets"] == runs[1].metrics["buckets"]
    assert runs[0].metrics["metrics"] == runs[1].metrics["metrics"]


def test_sections_and_charts_show_the_first_and_a_note_says_so(runs):
    models = sorted(set(runs[0].metrics["buckets"]) - {"all"})
    note = f"show the first {DETAILED} of {len(models)} models by name"
    assert [any(note in text for text in run.metrics["notes"]) for run in runs] == [False, True]
    last = models[-1]
    assert [last in repr(run.metrics["sections"]) for run in runs] == [True, False]
    assert [last in repr(run.charts) for run in runs] == [True, False]
