"""Entry points by name: which package counts, how a user's is found, what an unknown one says."""

import importlib.metadata
import sys

import pytest

from adjudge.errors import ConfigError
from adjudge.evidence.rule import rule_sets
from adjudge.plugins import plugin, plugin_names

GROUP = "adjudge.rules"


def install(folder, package, value, name="mine"):
    """A package as pip leaves it, with a module and one entry point."""
    info = folder / f"{package}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[console_scripts]\n{name} = nowhere:main\n\n[{GROUP}]\n{name} = {value}\n")


@pytest.mark.parametrize("group", ["adjudge.protocols", "adjudge.commands", GROUP])
def test_our_own_are_found_by_name(group):
    assert {"anomaly", "consistency", "flight", "gui", "triage"} <= set(plugin_names(group))
    for name in plugin_names(group):
        entry = plugin(group, name)
        assert (entry.group, entry.name) == (group, name)
        assert entry.load() is not None
    assert plugin(group, "no such name") is None


def test_a_users_package_is_found_when_it_is_on_the_path(tmp_path, monkeypatch):
    install(tmp_path, "users_rules", "users_rules_module:Inner.RULES")
    (tmp_path / "users_rules_module.py").write_text("class Inner:\n    RULES = [7]\n")
    assert plugin(GROUP, "mine") is None
    monkeypatch.syspath_prepend(str(tmp_path))
    assert plugin(GROUP, "mine").load() == [7]
    assert "mine" in plugin_names(GROUP)
    sys.modules.pop("users_rules_module")


@pytest.mark.parametrize("listed", [["bee", "ant"], ["ant", "bee"]])
def test_of_two_packages_in_one_folder_the_first_by_name_counts(tmp_path, monkeypatch, listed):
    for package in ("ant", "bee"):
        install(tmp_path, package, f"{package}:RULES")
    names = [f"{package}-1.2.dist-info" for package in listed]
    finder, others = importlib.metadata.FastPath, importlib.metadata.FastPath.children
    monkeypatch.setattr(finder, "children", lambda self: names if self.root == str(tmp_path) else others(self))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert plugin(GROUP, "mine").value == "ant:RULES"
    assert plugin_names(GROUP).count("mine") == 1


def test_of_two_packages_in_two_folders_the_first_on_the_path_counts(tmp_path, monkeypatch):
    for folder, package in (("later", "ant"), ("first", "bee")):
        install(tmp_path / folder, package, f"{package}:RULES")
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    assert plugin(GROUP, "mine").value == "bee:RULES"
    install(tmp_path / "first", "zoo", "zoo:RULES", name="flight")
    importlib.invalidate_caches()
    assert plugin(GROUP, "flight").value == "zoo:RULES"


def test_a_rule_set_that_is_not_installed_is_named_with_those_that_are():
    with pytest.raises(ConfigError, match=r"there is no rule set 'nobody' \(installed: .*flight, .*triage\)"):
        rule_sets("flight", ("nobody",))
