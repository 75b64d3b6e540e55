"""An evaluation does not load what Arrow would load by the way, and nobody else is kept from it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import types
import pyarrow as pa
from adjudge.engine.light import without_pandas

SOURCE = '''
def lists():
    assert pa.array(["a", None], pa.string()).null_count == 1

def frame():
    import pandas
    return pandas.DataFrame({"a": [1.0]})
'''
module = types.ModuleType("%(asker)s")
module.pa = pa
exec(SOURCE, module.__dict__)
with without_pandas():
    module.lists()
    assert ("pandas" in sys.modules) == %(imported)s
    if %(imported)s:
        assert module.frame().shape == (1, 1)
import pandas
assert pa.table({"a": [1, None]}).to_pandas().shape == (2, 1)
assert pa.Table.from_pandas(pandas.DataFrame({"a": [1.0, float("nan")]})).column("a").null_count == 1
"""


@pytest.mark.parametrize("asker, imported", [("adjudge.protocols.flight.read", False), ("rules_of_a_user", True)])
def test_pandas_is_not_loaded_by_the_way_but_for_those_who_want_it(asker: str, imported: bool) -> None:
    program = PROGRAM % {"asker": asker, "imported": imported}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
