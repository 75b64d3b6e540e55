"""`adjudge schema`: the JSON Schemas of what adjudge reads and writes."""

from __future__ import annotations

import click

from adjudge.cli.common import print_json
from adjudge.errors import ConfigError


@click.command()
@click.argument("name", required=False)
def schema(name: str | None) -> int:
    """Print the JSON Schema NAME, or the names there are."""
    from adjudge.protocols.base import names, protocol
    from adjudge.runs.section import published, schemas

    known = schemas() | published("adjudge.report")
    for each in sorted(names(), key=lambda each: each != "flight"):
        for title, body in protocol(each).schemas().items():
            # `record` is flight's; where another protocol has one too, its name goes before it.
            known[title if title not in known else f"{each}-{title}"] = body
    if name is None:
        for each in sorted(known):
            click.echo(each)
        return 0
    if name not in known:
        raise ConfigError(f"there is no schema {name!r}; there are {', '.join(sorted(known))}")
    print_json(known[name])
    return 0
