"""The detector of the protocol's page."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "protocols" / "anomaly.md"


def test_own_detector_of_the_page_works(tmp_path, monkeypatch):
    import adjudge
    from adjudge.protocols.anomaly.example import write_example

    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "my_detector.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    config = write_example(tmp_path, flights=14, seconds=40.0, rate=10.0)
    run = adjudge.evaluate(
        "anomaly", {**config, "detector": "my_detector:Distance", "resamples": 500}, out=tmp_path / "run", report=False
    )
    assert run.metrics["valid"]
