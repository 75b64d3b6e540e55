"""The reference evaluator and the sample strategies, loaded by path because test folders are not packages."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _load(name: str) -> ModuleType:
    """Load a neighbour of this file once, under its plain name, so that neighbours can import each other."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """The oracle: `reference.evaluate(task, answer, shown, gold)`."""
    _load("reference_atoms")
    return _load("reference_evaluator")


@pytest.fixture(scope="session")
def strategies() -> ModuleType:
    """Random flight samples: `data.draw(strategies.cases("M3"))` in a test with `@given(data=st.data())`."""
    _load("reference_atoms")
    return _load("strategies")


@pytest.fixture(scope="session")
def summaries() -> ModuleType:
    """The oracle of what is said of tasks and models: `summaries.summary(records)`."""
    _load("reference_atoms")
    _load("reference_evaluator")
    return _load("reference_summary")
