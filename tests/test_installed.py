"""What is installed, against the library that knows all ways to be installed."""

import importlib.metadata
import subprocess
import sys

import pytest

from adjudge import installed
from adjudge.installed import entries, entry, version

GROUPS = ("adjudge.protocols", "adjudge.commands", "adjudge.rules")


def test_versions_are_those_that_the_packages_name():
    names = {distribution.metadata["Name"] for distribution in importlib.metadata.distributions()}
    assert {"adjudge", "numpy", "pyarrow", "scikit-learn"} <= names
    assert {name: version(name) for name in names} == {name: importlib.metadata.version(name) for name in names}
    assert version("scikit_learn") == version("Scikit-Learn") == importlib.metadata.version("scikit-learn")
    assert version("there-is-no-such-package") is None


@pytest.mark.parametrize("group", GROUPS)
def test_entry_points_are_those_of_the_group(group):
    known = {own.name: own for own in importlib.metadata.entry_points(group=group)}
    assert {own.name: own.value for own in entries(group)} == {name: own.value for name, own in known.items()}
    for name, own in known.items():
        found = entry(group, name)
        assert (found.name, found.value) == (name, own.value)
        assert found.load() is own.load()
    assert entry(group, "no such name") is None


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package on the path, as pip would leave it."""
    folder = tmp_path / "Users_Rules-1.2+local.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: users.rules\nVersion: 1.2+local\n")
    (tmp_path / "users_rules.py").write_text("class inner:\n    RULES = [7]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_what_a_package_may_write_in_its_entry_points(package):
    (package / "entry_points.txt").write_text(
        "# by hand\n[console_scripts]\nmine = users_rules:main\n\n"
        "[adjudge.rules]\n; none = nowhere:at_all\nmine=users_rules:inner.RULES [extra]\n  spaced  =  users_rules \n"
    )
    assert version("users-rules") == importlib.metadata.version("users-rules") == "1.2+local"
    assert entry("adjudge.rules", "mine").load() == [7]
    assert entry("adjudge.rules", "spaced").load().__name__ == "users_rules"
    assert entry("adjudge.rules", "none") is entry("adjudge.commands", "mine") is None


def test_what_is_installed_in_another_way_is_found_too(package, tmp_path):
    """A folder of the older kind, which `importlib.metadata` reads."""
    older = package.rename(tmp_path / "users_rules.egg-info")
    (older / "METADATA").rename(older / "PKG-INFO")
    (older / "entry_points.txt").write_text("[adjudge.rules]\nmine = users_rules:inner\n")
    assert entry("adjudge.rules", "mine").load().RULES == [7]
    assert version("users.rules") == "1.2+local"


def test_a_command_starts_without_the_large_library():
    program = (
        "import sys\nfrom adjudge.cli import main\nassert main.main.get_command(None, 'flight') is not None\n"
        "sys.exit('importlib.metadata' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    assert installed.version("adjudge")
