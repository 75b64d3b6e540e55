"""`adjudge leakage`: split, column and code leak checks."""

from __future__ import annotations

from typing import Any

import click

from adjudge.cli.common import PATH, options, pairs, print_json, say
from adjudge.errors import ConfigError


def read_sensors(path: str | None) -> dict[str, str]:
    """A file that says what columns are: YOUR_COLUMN: what it is, such as alt_b: baro_alt."""
    if path is None:
        return {}
    from adjudge.readers.settings import text_of, yaml_of

    content = yaml_of(text_of(path), path)
    if not isinstance(content, dict) or not all(isinstance(text, str) for pair in content.items() for text in pair):
        raise ConfigError(f"{path}: expected a table of COLUMN: SENSOR, such as alt_b: baro_alt")
    return content


reading_options = options(
    click.option("--flight-column", help="[flight]"),
    click.option("--time-column", help="[t]"),
    click.option("--time-unit", type=click.Choice(["s", "ms", "us", "ns"]), help="[s; guessed with a note]"),
    click.option("--label-column", help="[label]"),
    click.option("--target-column", help="The column that a feature must not be derived from."),
    click.option("--feature", "features", multiple=True, help="Read these feature columns alone; repeat."),
    click.option("--fill", type=click.Choice(["forward"]), help="Blank cells get the value before them."),
    click.option("--sensors", type=click.Path(), help="YAML or JSON: what your columns are (alt_b: baro_alt)."),
)
"""The flags that say how a table of flights is read."""


@click.command()
@click.option("--splits", type=PATH, help="splits.json: train, val and test flights.")
@click.option("--data", type=PATH, help="CSV, Parquet or a folder: one row a time step.")
@click.option("--check-code", type=PATH, multiple=True, help="A file or folder of code; repeat.")
@click.option("--correlation-threshold", type=click.FloatRange(0, 1), default=0.9, show_default=True)
@click.option(
    "--overlap-bound",
    type=click.FloatRange(0, 1),
    default=0.01,
    help="Share of a flight's rows in another split [0.01].",
)
@click.option("--column", "columns", multiple=True, metavar="OURS=THEIRS", help="What a column is called in your file.")
@reading_options
@click.option("--imu-only", is_flag=True, help="Declare roll, pitch and yaw as made from the IMU alone.")
@click.option("--declare", multiple=True, metavar="COLUMN=SOURCE", help="The source of another feature; repeat.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def leakage(**flags: Any) -> int:
    """Look for leaks in splits, in columns and in code; any of the three. A leak exits with 3.

    \b
    Example:
      adjudge leakage --splits splits.json --data features.csv --check-code src/
    """
    from adjudge.protocols.anomaly.leakage import look
    from adjudge.protocols.anomaly.rows import DataOptions

    splits, data, code = flags["splits"], flags["data"], list(flags["check_code"])
    if splits is None and data is None and not code:
        raise click.UsageError("nothing to check: give --splits, --data or --check-code")
    known = {name: flags[name] for name in DataOptions.__struct_fields__ if flags.get(name) is not None}
    options = DataOptions(
        **known
        | {
            "features": list(flags["features"]) or None,
            "rename": pairs("--column", flags["columns"], "OURS=THEIRS"),
            "sources": pairs("--declare", flags["declare"], "COLUMN=SOURCE"),
            "sensors": read_sensors(flags["sensors"]),
        }
    )
    report = look(splits=splits, data=data, code=code, options=options)
    if flags["as_json"]:
        print_json(report.to_dict())
    elif not flags["quiet"]:
        for line in report.lines():
            say(line)
    return 3 if report.leaks else 0
