"""A small evaluation, and what may be seen where its run should be."""

import pytest

import adjudge
from adjudge.protocols.flight.generate import generate


@pytest.fixture(scope="session")
def config(tmp_path_factory):
    data = generate(tmp_path_factory.mktemp("data"), seed=1, task="S1", flights=2, seconds=5)
    outputs = [str(path) for path in data.outputs.values()][:2]
    return {"task": "S1", "outputs": outputs, "reference": [str(data.reference)], "resamples": 100}


@pytest.fixture(scope="session")
def state():
    """What is at the place of a run: None, or the `limit` of a run that holds to the byte; anything else is a failure."""

    def seen(path):
        if not path.exists() or not any(path.iterdir()):
            return None
        adjudge.verify(path)
        return adjudge.load_run(path).manifest.config["limit"]

    return seen
