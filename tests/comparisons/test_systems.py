"""How arguments name systems, and what they are called."""

from __future__ import annotations

import pytest

from adjudge.comparisons.systems import select
from adjudge.errors import ConfigError, RunError

FEW = [True, False, True]


@pytest.fixture
def runs(make_run, tmp_path):
    make_run("one", {"m1": FEW})
    make_run("other", {"m1": FEW})
    make_run("two", {"m1": FEW, "m2": FEW})
    make_run("three", {"m1": FEW, "m2": FEW, "m3": FEW})
    return tmp_path


@pytest.mark.parametrize(
    "specs, options, found",
    [
        pytest.param(
            ["one", "other"], {}, [("one", "m1", "one"), ("other", "m1", "other")], id="two runs of one model"
        ),
        pytest.param(["one", "two::m2"], {}, [("one", "m1", "m1"), ("two", "m2", "m2")], id="run::model"),
        pytest.param(["two"], {}, [("two", "m1", "m1"), ("two", "m2", "m2")], id="one run, two models"),
        pytest.param(
            ["three"], {"model_a": "m3", "model_b": "m1"}, [("three", "m3", "m3"), ("three", "m1", "m1")], id="a, b"
        ),
        pytest.param(["one", "three"], {"model_b": "m2"}, [("one", "m1", "m1"), ("three", "m2", "m2")], id="b"),
        pytest.param(["two", "three"], {"model": "m2"}, [("two", "m2", "two"), ("three", "m2", "three")], id="model"),
        pytest.param(
            ["two::m1", "two::m2", "one::m1"],
            {},
            [("two", "m1", "two::m1"), ("two", "m2", "two::m2"), ("one", "m1", "one::m1")],
            id="neither model nor run alone",
        ),
        pytest.param(["one", "one"], {}, [("one", "m1", "one (1)"), ("one", "m1", "one (2)")], id="the same twice"),
    ],
)
def test_arguments_name_systems(runs, specs, options, found):
    systems = select([f"{runs}/{spec}" for spec in specs], **options)
    assert [(system.run.path.name, system.model, system.name) for system in systems] == found


@pytest.mark.parametrize(
    "specs, options, said",
    [
        pytest.param(["one"], {}, "nothing to compare m1", id="one run, one model"),
        pytest.param(["one", "two"], {}, r"has 2 models \(m1, m2\): name one, as in .*two::m1", id="several models"),
        pytest.param(["one", "two::m9"], {}, "has no model 'm9'; it has m1, m2", id="unknown model"),
        pytest.param(["two"], {"model": "m1"}, "give --model-a and -b", id="one run, one model named"),
        pytest.param(["two"], {"model_a": "m1"}, "go together", id="half a pair"),
        pytest.param(["one", "two::m1", "two::m2"], {"model_a": "m1"}, "are for two runs", id="three runs"),
    ],
)
def test_what_does_not_name_two_systems(runs, specs, options, said):
    with pytest.raises(ConfigError, match=said):
        select([f"{runs}/{spec}" for spec in specs], **options)


def test_a_folder_that_is_no_run(runs):
    with pytest.raises(RunError, match="no such folder"):
        select([runs / "one", runs / "nowhere"])


def test_a_sample_that_stands_twice(make_run):
    system = select([make_run("twice", {"m1": FEW, "m2": FEW}, ids=["x", "y", "x"])])[0]
    with pytest.raises(RunError, match="'x' of m1 stands there twice"):
        _ = system.place
