from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "protocols" / "consistency.md"


def test_every_command_of_the_page_prints_what_the_page_shows(tmp_path):
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shown = 0
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env={**os.environ, "PATH": programs}, capture_output=True,
                text=True, check=False,
            )  # fmt: skip
            assert done.stdout == expected, command + done.stderr
            shown += 1
    assert shown >= 8
