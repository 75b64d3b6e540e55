"""A small flight data set, generated once."""

import pytest

from adjudge.protocols.flight.generate import generate


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return generate(tmp_path_factory.mktemp("flight"), seed=3, task="S1", flights=4, seconds=12)


@pytest.fixture(scope="session")
def config(data):
    return {"task": "S1", "outputs": [str(p) for p in data.outputs.values()], "reference": [str(data.reference)]}
