"""`adjudge run`: any installed protocol from a configuration file."""

from __future__ import annotations

from typing import Any

import click

from adjudge.cli.common import RUN_FLAGS, configuration, evaluate_and_show, run_options


@click.command()
@click.argument("protocol")
@run_options
def run(protocol: str, **flags: Any) -> int:
    """Run PROTOCOL with the settings of --config; for protocols that have no command of their own."""
    run_flags = {key: flags.pop(key) for key in RUN_FLAGS}
    settings = configuration(flags.pop("config_file"), flags)
    return evaluate_and_show(protocol, settings, run_flags)
