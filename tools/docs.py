"""The documentation's commands and generated pages: run and compared by a test, written again by `make docs`.

A block that opens with ```console holds commands after `$ ` and their output, both streams together; one that opens with
```python FILE or ```yaml FILE is written to that file first. The blocks of a page run in order in one fresh folder. Generated pages (the CLI and rule references) are rendered from the code.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
_REFERENCE = re.compile(r"(<!-- reference of (\w+): [^>]*-->).*?(<!-- /reference -->)", re.DOTALL)
_IMPORTS = re.compile(r"(<!-- imports: [^>]*-->).*?(<!-- /imports -->)", re.DOTALL)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_BLOCK = re.compile(r"^```(?:console|(?:python|yaml) (?P<file>\S+))\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Every page with commands."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(block: str) -> Iterator[tuple[str, str]]:
    """(command, expected output) of one block; a command goes on after a backslash."""
    command: list[str] = []
    output: list[str] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            if command:
                yield "\n".join(command), "\n".join(output)
            command, output = [line[2:]], []
        elif command and command[-1].endswith("\\"):
            command.append(line)
        else:
            output.append(line)
    if command:
        yield "\n".join(command), "\n".join(output)


def run(command: str, folder: Path) -> str:
    """What a command prints, without trailing blanks; an exit code that is not 0 stands on a last line."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S602 -- the documentation is a shell session
        command,
        shell=True,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"},
    )
    printed = _DIGEST.sub("sha256:…", done.stdout)  # of a manifest, which has the time in it
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    return "\n".join([*lines, f"(exit {done.returncode})"] if done.returncode else lines)


def rendered(page: Path) -> str:
    """The page with every output as it is now."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:

        def again(match: re.Match[str]) -> str:
            if match["file"]:
                (Path(name) / match["file"]).write_text(match["text"], encoding="utf-8")
                return match[0]
            parts = []
            for command, expected in commands(match["text"]):
                found = run(command, Path(name))
                if expected.strip() == "…":
                    found = "…"  # the command runs, its output is not shown
                parts.append(f"$ {command}\n" + (f"{found}\n" if found else ""))
            return "```console\n" + "".join(parts) + "```"

        text = _IMPORTS.sub(lambda match: f"{match[1]}\n{import_table()}{match[2]}", text)
        text = _REFERENCE.sub(lambda match: f"{match[1]}\n{protocol_reference(match[2])}{match[3]}", text)
        return _BLOCK.sub(again, text)


def protocol_reference(name: str) -> str:
    """Every flag, input key and metric of one protocol, for the end of its page."""
    import click

    from adjudge.cli.common import run_options
    from adjudge.plugins import plugin
    from adjudge.protocols.base import protocol

    chosen, entry = protocol(name), plugin("adjudge.commands", name)
    command = click.Command(name) if entry is None else entry.load()
    shared = {option.name for option in run_options(click.Command("x", callback=lambda: None)).params}
    own = [item for item in command.params if isinstance(item, click.Option) and item.name not in shared]
    flags = [
        [
            "`" + " / ".join((*item.opts, *item.secondary_opts)) + (f" {item.metavar}" if item.metavar else "") + "`",
            item.help or "",
        ]
        for item in own
    ]
    roles = chosen.roles().items()
    keys = [[role, f"`{key}`", kind] for role, about in roles for key, kind in _keys_of(about.keys).items()]
    metrics = [
        [f"`{metric.name}`", metric.unit or "–", metric.better or "–", metric.formula] for metric in chosen.metrics()
    ]
    tables = (
        ("Flags", ["flag", "meaning"], flags, "Those that every protocol has stand in [the command line](../cli.md)."),
        (
            "Keys",
            ["role", "key", "type"],
            keys,
            "Keys of other names are ignored, and named in the notes of the run.",
        ),
        (
            "Metrics",
            ["metric", "unit", "better", "is"],
            metrics,
            "Ranges, intervals and when each is null: [metrics](../metrics.md).",
        ),
    )
    parts = []
    for title, head, rows, more in tables:
        if rows:
            lines = [
                "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
                for row in (head, ["---"] * len(head), *rows)
            ]
            parts.append("\n".join([f"### {title} of `{name}`", "", *lines, "", more, ""]))
    return "\n" + "\n".join(parts) + "\n"


def _keys_of(keys: object, prefix: str = "") -> dict[str, str]:
    """Keys of a struct, or of a tree of names, with their types in words; nested ones after a dot."""
    import msgspec

    if isinstance(keys, dict):
        found: dict[str, str] = {}
        for name, inner in keys.items():
            found[prefix + str(name)] = "object" if inner else "any"
        return found
    if not (isinstance(keys, type) and issubclass(keys, msgspec.Struct)):
        return {}
    return {field.encode_name: _in_words(field.type) for field in msgspec.structs.fields(keys)}


def _in_words(kind: object) -> str:
    """A type as a reader of JSON calls it."""
    words = {
        "str": "text",
        "int": "whole number",
        "float": "number",
        "bool": "true or false",
        "None": "null",
        "NoneType": "null",
    }
    text = (
        getattr(kind, "__name__", None) if isinstance(kind, type) and not getattr(kind, "__args__", None) else str(kind)
    )
    text = re.sub(r"(?:typing|msgspec|adjudge)(?:\.\w+)*\.", "", str(text)).replace("Any", "any").replace("Raw", "any")
    text = re.sub(r"Annotated\[([^\[\],]+), Meta\([^)]*\)\]", r"\1", text)
    text = re.sub(r"Optional\[(.*)\]", r"\1 | None", text)
    text = re.sub(r"\b(str|int|float|bool|NoneType|None)\b", lambda match: words[match[1]], text)
    text = re.sub(r"\b[A-Z]\w+\b", "object", text)
    return text.replace("dict[", "table[").replace(" | ", " or ")


def import_table() -> str:
    """What each room may import, from the table that tests/test_rooms.py holds the code to."""
    rooms = runpy.run_path(str(ROOT / "tests" / "test_rooms.py"))
    lower = rooms["LOWER"]
    protocols = {"protocols.X": lower | {"protocols.base", "protocols.common"}, "cli, api, extend": {"everything"}}
    lines = ["| room | may import |", "|---|---|"]
    for room, may in {**rooms["TABLE"], **protocols}.items():
        shown = ["all of the lower rooms", *sorted(may - lower)] if lower <= may else sorted(may)
        lines.append(f"| {room} | {', '.join(shown) or '–'} |")
    return "\n".join(["The lower rooms are " + ", ".join(sorted(lower)) + ".", "", *lines]) + "\n"


def cli_reference() -> str:
    """docs/cli.md: the help of every command."""
    import click

    from adjudge.cli.main import PLUGIN, main

    parts = ["# Command line\n\nGenerated from the commands; `make docs` writes it again.\n"]

    def walk(command: click.Command, words: list[str]) -> None:
        context = click.Context(command, info_name=" ".join(words), max_content_width=100, terminal_width=100)
        lines = command.get_help(context).rstrip().splitlines()
        text = "\n".join(line for line in lines if PLUGIN not in line)  # which packages are installed here is no matter
        parts.append(f"## `{' '.join(words)}`\n\n```text\n{text}\n```\n")
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                if child is not None and _ours(child):
                    walk(child, [*words, name])

    walk(main, ["adjudge"])
    return "\n".join(parts)


def _ours(command: object) -> bool:
    callback = getattr(command, "callback", None)
    if callback is None:
        return True
    return callback.__module__.startswith("adjudge.") and "<locals>" not in callback.__qualname__  # made for a plugin


def rule_reference() -> str:
    """docs/rules.md: every rule of our protocols."""
    from adjudge.protocols.base import names, protocol
    from adjudge.protocols.flight.config import load
    from adjudge.protocols.flight.fields import TASKS
    from adjudge.protocols.flight.rules import FlightContext, build

    flight = build(FlightContext(TASKS["M3"], load("ga-light/1+kinematics").library))
    tables = {"flight (task M3, library ga-light/1+kinematics)": [rule.table() for rule in flight]}
    for name in names():
        chosen = protocol(name)
        if name != "flight" and type(chosen).__module__.startswith("adjudge."):
            with tempfile.TemporaryDirectory() as folder:
                config = chosen.example(Path(folder), 0)
                if config is not None:
                    tables[f"{name} (its example)"] = chosen.plan(config).rules
    lines = [
        "# Rules",
        "",
        "Generated from the rule tables; `make docs` writes it again. Atoms are those of one sample.",
    ]
    for title, rules in tables.items():
        lines += ["", f"## {title}", "", "| code | title | scope | needs | atoms |", "|---|---|---|---|---|"]
        for rule in rules:
            needs = ", ".join(rule["needs"]) or "–"
            lines.append(f"| `{rule['code']}` | {rule['title']} | {rule['scope']} | {needs} | {len(rule['slots'])} |")
            lines += [
                f"| `{variant['code']}` | {variant['title']} (shares the atoms above) | {rule['scope']} | {needs} | – |"
                for variant in rule["variants"]
            ]
    return "\n".join(lines) + "\n"


def metric_reference() -> str:
    """docs/metrics.md: every metric of our protocols, and those of every run."""
    from adjudge.engine.matching import METRICS
    from adjudge.protocols.base import names, protocol

    lines = [
        "# Metrics",
        "",
        "Generated from the declarations (`METRICS` in each protocol's `metrics.py`); `make docs` writes it again. A `*` in a",
        "name stands for what the run has there: a class, a rule family, a role. A unit of % is a share between 0 and 1 that is",
        "shown in percent. *better* is the direction in which it improves; a dash is neither. **Bold** metrics are shown first.",
    ]
    tables = {name: protocol(name) for name in names()}
    ours = {name: chosen.metrics() for name, chosen in tables.items() if chosen.package.startswith("adjudge.")}
    for title, metrics in {**ours, "every run": METRICS}.items():
        lines += ["", f"## {title}", "", "| metric | unit | range | better | is | interval | null |"]
        lines.append("|---|---|---|---|---|---|---|")
        for metric in metrics:
            ends = [
                "−∞" if metric.low is None else f"{metric.low:g}",
                "∞" if metric.high is None else f"{metric.high:g}",
            ]
            name = f"**`{metric.name}`**" if metric.headline else f"`{metric.name}`"
            cells = [name, metric.unit or "–", " to ".join(ends).replace("-", "−"), metric.better or "–"]
            cells += [metric.formula, metric.interval, metric.null or "never"]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def function_reference() -> str:
    """docs/check-functions.md: every function that a rule of protocol check may call, with an example and its result."""
    import duckdb

    from adjudge.protocols.check import functions

    connection = duckdb.connect(config={"threads": 1})
    lines = [
        "# Functions of check rules",
        "",
        "Generated from the allow-list of [protocol check](protocols/check.md); `make docs` runs every example and writes it again.",
        "What is not listed is refused by name. Beside these there are comparisons, `and`, `or`, `not`, `between`, `in`, `is null`,",
        "`case when`, `coalesce`, `[x for x in list if …]`, `list[1]`, `object.part`, and casts (`x::int`) to "
        + ", ".join(f"`{name}`" for name in sorted(functions.CAST_TYPES))
        + ".",
    ]
    for title, group in functions.GROUPS.items():
        lines += ["", f"## {title}", "", "| function | example | gives |", "|---|---|---|"]
        for name, example in group.items():
            (value,) = connection.execute(f"SELECT ({example})::VARCHAR").fetchone() or ("",)
            size = f" (a constant size of at most {functions.MOST_SIZE:,})" if name in functions.SIZED else ""
            cells = [f"`{name}`{size}", f"`{example}`", f"`{value}`"]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


GENERATED = {
    "docs/cli.md": cli_reference,
    "docs/rules.md": rule_reference,
    "docs/metrics.md": metric_reference,
    "docs/check-functions.md": function_reference,
}


def main() -> None:
    """Write every page again."""
    for name, make in GENERATED.items():
        (ROOT / name).write_text(make(), encoding="utf-8")
    wanted = sys.argv[1:]
    for page in pages():
        if not wanted or any(str(page).endswith(name) for name in wanted):
            page.write_text(rendered(page), encoding="utf-8")


if __name__ == "__main__":
    main()
