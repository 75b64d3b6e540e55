"""Plugins: what installed packages, ours among them, register by name in an entry-point group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it takes a twentieth of a second to be imported
    from importlib.metadata import EntryPoint


def plugin(group: str, name: str) -> EntryPoint | None:
    """The entry point of that name.

    Where several packages register the name, the one first on the path counts, and of those in one folder the first by
    name; the order in which a folder lists its files must not decide.
    """
    from importlib.metadata import entry_points

    registered = list(entry_points(group=group, name=name))  # in the order of the path
    packages: list[Any] = [
        entry.dist for entry in registered
    ]  # never None where the entry point was found in a package
    folders = [str(package.locate_file("")) for package in packages]
    ranks = [(folders.index(folder), package.name) for folder, package in zip(folders, packages, strict=True)]
    return registered[ranks.index(min(ranks))] if registered else None


def plugin_names(group: str) -> list[str]:
    """The names that are registered in a group, sorted."""
    from importlib.metadata import entry_points

    return sorted(entry_points(group=group).names)
