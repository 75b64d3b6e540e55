"""What the work does to its process."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import pyarrow as pa
from adjudge.engine.work import spare_pandas
spare_pandas()
assert pa.array(["a", None], pa.string()).null_count == 1
assert "pandas" not in sys.modules
import pandas
assert pa.table({"a": [1, None]}).to_pandas().shape == (2, 1)
assert pa.Table.from_pandas(pandas.DataFrame({"a": [1.0, float("nan")]})).column("a").null_count == 1
"""


def test_arrow_does_not_import_pandas_by_itself_and_still_can() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
