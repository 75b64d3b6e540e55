"""`adjudge leakage`: split, column and code leak checks."""

from __future__ import annotations

from pathlib import Path

import click

from adjudge.cli.common import PATH, print_json, say


@click.command()
@click.option("--splits", type=PATH, help="splits.json: train, val and test flights.")
@click.option("--data", type=PATH, help="CSV, Parquet or a folder: one row a time step.")
@click.option("--check-code", type=PATH, multiple=True, help="A file or folder of code; repeat.")
@click.option("--correlation-threshold", type=click.FloatRange(0, 1), default=0.9, show_default=True)
@click.option("--flight-column", default="flight", show_default=True)
@click.option("--time-column", default="t", show_default=True)
@click.option("--label-column", default="label", show_default=True)
@click.option("--target-column", help="The column that a feature must not be derived from.")
@click.option("--imu-only", is_flag=True, help="Declare roll, pitch and yaw as made from the IMU alone.")
@click.option("--declare", multiple=True, metavar="COLUMN=SOURCE", help="The source of another feature; repeat.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on stdout.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def leakage(
    splits: Path | None,
    data: Path | None,
    check_code: tuple[Path, ...],
    correlation_threshold: float,
    flight_column: str,
    time_column: str,
    label_column: str,
    target_column: str | None,
    imu_only: bool,
    declare: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> int:
    """Look for leaks in splits, in columns and in code; any of the three. A leak exits with 3.

    \b
    Example:
      adjudge leakage --splits splits.json --data features.csv --check-code src/
    """
    from adjudge.errors import ConfigError
    from adjudge.protocols.anomaly.flights import Columns
    from adjudge.protocols.anomaly.leakage_report import look

    if splits is None and data is None and not check_code:
        raise click.UsageError("nothing to check: give --splits, --data or --check-code")
    for text in declare:
        if "=" not in text:
            raise ConfigError(f"--declare {text!r} is not of the form COLUMN=SOURCE")
    report = look(
        splits=splits,
        data=data,
        code=list(check_code),
        columns=Columns(flight_column, time_column, label_column, target_column),
        threshold=correlation_threshold,
        sources=dict(text.split("=", 1) for text in declare),
        imu_only=imu_only,
    )
    if as_json:
        print_json(report.to_dict())
    elif not quiet:
        for line in report.lines():
            say(line)
    return 3 if report.leaks else 0
