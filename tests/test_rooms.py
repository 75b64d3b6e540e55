"""The import table of the design, and the front door."""

import ast
import importlib
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import adjudge
import adjudge.extend

SOURCE = Path(adjudge.__file__).parent
LOWER = {"errors", "plugins"}
LOWER |= {"stats", "evidence", "provenance", "verdict", "runs", "readers", "collect", "agents"}
# Room → what it may import. `protocols.base` is the interface that the engine drives, `protocols.common` what several
# protocols do alike.
TABLE = {
    "errors": set(),
    "plugins": set(),
    "stats": {"errors"},
    "evidence": {"plugins", "errors"},
    "provenance": {"errors"},
    "verdict": {"plugins", "evidence", "stats", "errors"},
    "runs": {"provenance", "evidence", "stats", "errors"},
    "readers": {"errors"},
    "collect": {"readers", "runs", "provenance", "errors"},
    "agents": {"plugins", "verdict", "evidence", "collect", "readers", "runs", "provenance", "stats", "errors"},
    "protocols.base": LOWER,
    "protocols.common": LOWER | {"protocols.base"},
    "engine": LOWER | {"protocols.base"},
    "comparisons": {"runs", "stats", "provenance", "errors"},
    "report": {"runs", "stats", "evidence", "errors"},
}


def room(module):
    """The room of a module, a protocol being a room of its own."""
    parts = module.split(".")[1:]
    if parts[:1] == ["protocols"]:
        return ".".join(parts[:2]) if len(parts) > 1 else "protocols"
    return parts[0] if parts else ""


@cache
def modules():
    paths = {
        ".".join(("adjudge", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in sorted(SOURCE.rglob("*.py"))
    }
    return [(name, ast.parse(path.read_text(encoding="utf-8"))) for name, path in paths.items()]


def imports(name, tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "adjudge")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative imports hide the room"
            if node.module == "adjudge":
                yield from (f"adjudge.{alias.name}" for alias in node.names)
            elif node.module and node.module.startswith("adjudge."):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def allowed(own):
    if own in TABLE:
        return TABLE[own]
    if own.startswith("protocols."):
        return LOWER | {"protocols.base", "protocols.common"}
    return None  # cli and the front door may import everything


def forbidden(named_trees):
    """Every import that the table does not allow, in words."""
    for name, tree in named_trees:
        own = room(name)
        may = allowed(own)
        if may is not None:
            yield from (f"{name} imports {other}" for other in imports(name, tree) if room(other) not in may | {own})


def test_no_room_imports_what_the_table_forbids():
    assert list(forbidden(modules())) == []


@pytest.mark.parametrize(
    "module, statement, imported",
    [
        ("adjudge.stats.x", "from adjudge.runs.run import Run", "adjudge.runs.run.Run"),
        ("adjudge.evidence.x", "import adjudge.stats.estimate", "adjudge.stats.estimate"),
        ("adjudge.protocols.flight.x", "from adjudge.protocols.gui import rules", "adjudge.protocols.gui.rules"),
        ("adjudge.report.x", "def f():\n    from adjudge.engine.verify import verify", "adjudge.engine.verify.verify"),
        ("adjudge.readers.x", "from adjudge import evaluate", "adjudge.evaluate"),
    ],
)
def test_a_forbidden_import_is_found_by_the_same_check(module, statement, imported):
    assert list(forbidden([(module, ast.parse(statement))])) == [f"{module} imports {imported}"]


def test_a_room_may_import_itself_and_what_the_table_allows():
    own = ast.parse("from adjudge.stats.exact import mean_of\nfrom adjudge.errors import StatsError")
    every = ast.parse("from adjudge.engine.verify import verify")
    assert list(forbidden([("adjudge.stats.x", own), ("adjudge.cli.x", every)])) == []


def test_every_room_stands_in_the_table():
    rooms = {room(name) for name, _ in modules()} - {"", "__main__", "api", "extend", "cli", "protocols"}
    assert {name for name in rooms if allowed(name) is None} == set()


@pytest.mark.parametrize("door", [adjudge, adjudge.extend])
def test_exported_names_are_all_and_sorted(door):
    assert door.__all__ == sorted(door.__all__, key=lambda name: (not name.isupper(), name))
    for name in door.__all__:
        assert getattr(door, name) is not None
    public = {name for name in vars(door) if not name.startswith("_")}
    submodules = {path.stem for path in SOURCE.iterdir()}
    assert public - submodules - {"annotations", "Any", "TYPE_CHECKING"} <= set(door.__all__)


def test_no_name_of_the_front_door_is_hidden_by_a_module():
    assert set(adjudge.__all__).isdisjoint(path.stem for path in SOURCE.iterdir())


def test_an_unknown_name_of_the_front_door_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        adjudge.nothing  # noqa: B018


def test_importing_the_front_door_and_help_load_nothing_heavy():
    code = (
        "import sys, adjudge, adjudge.cli.main; from click.testing import CliRunner;"
        "assert CliRunner().invoke(adjudge.cli.main.main, ['--help']).exit_code == 0;"
        "print([m for m in ('numpy', 'pyarrow', 'scipy', 'duckdb', 'msgspec', 'rich', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_module_imports():
    for name, _ in modules():
        assert importlib.import_module(name) is not None
