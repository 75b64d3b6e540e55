"""`adjudge describe`: what a file is, its keys, which command reads it, and what would be ignored."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING, Any

import click

from adjudge.cli.common import print_json, say

if TYPE_CHECKING:
    from adjudge.protocols.base import Role
    from adjudge.readers.describe import Description

_KEYS = 40  # listed
_NEAR = 3


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--column", "columns", multiple=True, metavar="OURS=THEIRS", help="What a key is called in the file.")
@click.option("--json-path", metavar="$.KEY", help="Where the records sit inside one JSON object.")
@click.option("--json", "as_json", is_flag=True, help="Print the description as JSON on stdout.")
def describe(files: tuple[str, ...], columns: tuple[str, ...], json_path: str | None, as_json: bool) -> int:
    """Say what FILES are: format, records, keys with types and examples, the command that reads them, ignored keys."""
    from adjudge.readers.describe import describe as look
    from adjudge.readers.records import columns_of, shape_of

    documents = []
    for path in files:
        title = None if columns or json_path else _log_title(path)
        if title is not None and not as_json:
            say(
                f"{path}: {title}\n\nRead by  adjudge score {path}\n         adjudge score --list {path} says what is in it\n",
                err=False,
            )
            continue
        shape = shape_of("", json_path, columns_of(list(columns)))
        description = look(path, shape)
        shape.refuse_unseen(path)
        readers = _readers(description)
        if as_json:
            documents.append(_document(description, readers))
        else:
            say(_text(description, readers), err=False)
    if as_json:
        print_json(documents)
    return 0


def _log_title(path: str) -> str | None:
    """Which tool's log a file is; None for any other file."""
    from adjudge.errors import InputError
    from adjudge.readers.logs.formats import RECORDS, header_of

    try:
        log = header_of(path)
    except InputError:
        return None
    return None if log is None or log.format == RECORDS else log.title


def _readers(description: Description) -> list[dict[str, Any]]:
    """The roles that could read the file, best first: what they need and is missing, and what they would ignore."""
    from adjudge.protocols.base import names, protocol
    from adjudge.readers.blocks import Keys, unread_keys

    chosen = []
    for name in names():
        for role, reads in protocol(name).roles().items():
            keys = Keys.of(reads.keys)
            ignored = unread_keys(description.samples, keys) if keys is not None else {}
            chosen.append(
                {
                    "protocol": name,
                    "role": role,
                    "command": reads.command.replace("FILE", description.path),
                    "missing": [" or ".join(each) for each in _missing(description, reads)],
                    "columns": _columns(description, reads),
                    "ignored": dict(sorted(ignored.items())),
                    "read": sum("." not in key and key not in ignored for key in description.keys),
                }
            )

    def rank(reader: dict[str, Any]) -> tuple[Any, ...]:
        missing, named = len(reader["missing"]), len(reader["columns"])
        return missing - named, missing, -reader["read"], reader["protocol"], reader["role"]

    return sorted(chosen, key=rank)


def _missing(description: Description, reads: Role) -> list[tuple[str, ...]]:
    return [each for each in reads.needs if description.keys.keys().isdisjoint(each)]


def _percent(count: int, description: Description) -> str:
    from adjudge.report import numbers

    return numbers.number(count / description.looked, unit="%")


def _document(description: Description, readers: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "file": description.path,
        "format": description.format,
        "bytes": description.size,
        "records": description.records,
        "looked_at": description.looked,
        "keys": [
            {"key": key.name, "records": key.count, "types": dict(key.types), "example": key.example}
            for key in description.keys.values()
        ],
        "no_objects": description.other,
        "lists_of_objects": description.inside,
        "read_by": [
            {key: value for key, value in each.items() if key != "columns"} for each in readers if not each["missing"]
        ],
    }


def _text(description: Description, readers: list[dict[str, Any]]) -> str:
    from adjudge.report.numbers import WIDTH, count, line, size, table

    n = count(description.records)
    if description.other == description.looked:
        return (
            f"{description.path}: text, {n} lines, {size(description.size)}\n\nNo command reads this: a record "
            "is a JSON object a line, an object of a JSON list, a row of a CSV file with a header or of a Parquet file.\n"
        )
    looked = "" if description.looked == description.records else f", {count(description.looked)} looked at"
    blocks = [f"{description.path}: {description.format}, {n} records{looked}, {size(description.size)}"]
    if description.other:
        at, text = description.first_other
        blocks.append(
            f"{count(description.other)} of them are no JSON objects, the first on line {at}: {line(text, 40)}"
        )
    cells = [
        [line(key.name, 40), _percent(key.count, description), "/".join(sorted(key.types)), line(key.example, 40)]
        for key in list(description.keys.values())[:_KEYS]
    ]
    if cells:
        more = len(description.keys) - _KEYS
        blocks.append(
            table(["key", "in", "type", "example"], cells, left=4) + (f"\n… and {more} more keys" if more > 0 else "")
        )
    blocks += [
        f"{count(objects)} objects stand under {line(path, 60)}: --json-path '$.{line(path, 60)}' reads them as records"
        for path, objects in description.inside.items()
        if description.records == 1
    ]
    fitting = [each for each in readers if not each["missing"]]
    for each in fitting[:_NEAR]:
        names = ", ".join(f"{line(key, 40)} ({_percent(rows, description)})" for key, rows in each["ignored"].items())
        ignored = textwrap.fill(
            f"ignored: {names or 'nothing'}", WIDTH, initial_indent=" " * 9, subsequent_indent=" " * 11
        )
        blocks.append(f"Read by  {each['command']}\n{ignored}")
    if not fitting:
        near = [
            f"adjudge {each['protocol']} ({each['role']}) misses {', '.join(each['missing'])}{_perhaps(each)}"
            for each in readers[:_NEAR]
        ]
        blocks.append("No command reads this as it is (--column OURS=THEIRS names a key):\n  " + "\n  ".join(near))
        blocks.append(
            f"Rules of your own can judge it: adjudge check init {shlex.quote(description.path)} -o rules.yaml"
        )
    return "\n\n".join(blocks) + "\n"


def _columns(description: Description, reads: Role) -> dict[str, str]:
    """The keys of the file that may be meant where one is missing."""
    names = [name for name in description.keys if "." not in name]
    columns: dict[str, str] = {}
    for alternatives in _missing(description, reads):
        for ours in alternatives:
            if (theirs := reads.meant(ours, names)) is not None:
                columns[ours] = theirs
                break
    return columns


def _perhaps(reader: dict[str, Any]) -> str:
    """The flags that may do, as a whole command where nothing else is missing."""
    from adjudge.report.numbers import line

    flags = " ".join(f"--column {ours}={shlex.quote(line(theirs, 40))}" for ours, theirs in reader["columns"].items())
    whole = len(reader["columns"]) == len(reader["missing"])
    return f"; perhaps {reader['command']} {flags}" if whole else f"; perhaps {flags}" if flags else ""
