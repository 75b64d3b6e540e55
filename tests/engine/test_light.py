"""A process of our own does not load what Arrow would load by the way."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import pyarrow as pa
from adjudge.engine.light import without_pandas
from adjudge.protocols.base import protocol
with without_pandas({code}):
    assert pa.array(["a", None], pa.string()).null_count == 1
    assert pa.array([True, False]).to_numpy(zero_copy_only=False).tolist() == [True, False]
    assert ("pandas" in sys.modules) == {imported}
import pandas
assert pa.table({{"a": [1, None]}}).to_pandas().shape == (2, 1)
assert pa.Table.from_pandas(pandas.DataFrame({{"a": [1.0, float("nan")]}})).column("a").null_count == 1
"""


def run(code: str, *, imported: bool) -> None:
    program = PROGRAM.format(code=code, imported=imported)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_pandas_is_not_loaded_by_the_way_and_is_there_afterwards() -> None:
    run("protocol('consistency')", imported=False)


def test_pandas_is_left_to_others() -> None:
    """A protocol that is not ours may use it."""
    run("object()", imported=True)
