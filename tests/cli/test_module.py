"""`python -m adjudge` is the command."""

import subprocess
import sys


def test_the_module_is_the_command() -> None:
    ended = subprocess.run([sys.executable, "-m", "adjudge", "--help"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert "Usage: adjudge" in ended.stdout
