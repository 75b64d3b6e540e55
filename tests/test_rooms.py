"""The import table of the design, and the front door."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import adjudge

SOURCE = Path(adjudge.__file__).parent
LOWER = {"errors", "plugins"}
LOWER |= {"stats", "evidence", "provenance", "verdict", "runs", "readers", "collect"}
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


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(("adjudge", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        yield name, ast.parse(path.read_text(encoding="utf-8"))


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


def test_no_room_imports_what_the_table_forbids():
    wrong = []
    for name, tree in modules():
        own = room(name)
        may = allowed(own)
        if may is None:
            continue
        wrong += [f"{name} imports {other}" for other in imports(name, tree) if room(other) not in may | {own}]
    assert wrong == []


def test_the_table_would_catch_a_forbidden_import():
    tree = ast.parse("from adjudge.runs.run import Run")
    assert [room(other) for other in imports("adjudge.stats.x", tree)] == ["runs"]
    assert "runs" not in TABLE["stats"]


def test_exported_names_are_all_and_sorted():
    assert adjudge.__all__ == sorted(adjudge.__all__)
    for name in adjudge.__all__:
        assert getattr(adjudge, name) is not None
    public = {name for name in vars(adjudge) if not name.startswith("_")}
    submodules = {path.stem for path in SOURCE.iterdir()}
    assert public - submodules - {"annotations", "Any", "Path", "Sequence", "TYPE_CHECKING", "partial"} <= set(
        adjudge.__all__
    )


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
