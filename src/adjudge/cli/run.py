"""`adjudge run`, and the commands of protocols that another package has installed without one of their own."""

from __future__ import annotations

from typing import Any

import click

from adjudge.cli.common import RUN_FLAGS, Spread, configuration, evaluate_and_show, run_options, settings_and_run_flags
from adjudge.errors import ConfigError


@click.command()
@click.argument("protocol")
@run_options
def run(protocol: str, **flags: Any) -> int:
    """Run PROTOCOL with the settings of --config; for protocols that have no command of their own."""
    run_flags = {key: flags.pop(key) for key in RUN_FLAGS}
    settings = configuration(flags.pop("config_file"), flags)
    return evaluate_and_show(protocol, settings, run_flags)


def command(name: str) -> click.Command:
    """`adjudge NAME --ROLE FILE … [--set KEY=VALUE …]`, with a flag for each role of its files."""
    from adjudge.protocols.base import protocol

    chosen = protocol(name)
    roles = tuple(chosen.roles())

    @click.pass_context
    def callback(ctx: click.Context, /, settings: tuple[str, ...], **flags: Any) -> int:
        named = dict(map(_setting, settings))
        options, run_flags = settings_and_run_flags(ctx, flags | named, needs=roles if not flags["config_file"] else ())
        return evaluate_and_show(name, options, run_flags)

    for role in reversed(roles):
        callback = click.option(f"--{role.replace('_', '-')}", role, multiple=True, help=f"Files of {role}.")(callback)
    callback = click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the protocol (YAML); repeat."
    )(run_options(callback))
    spread = tuple(f"--{role.replace('_', '-')}" for role in roles)
    return click.command(name, cls=Spread, spread=spread, help=f"{chosen.title}.")(callback)


def _setting(text: str) -> tuple[str, Any]:
    import yaml

    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {text!r} is not of the form KEY=VALUE")
    try:
        return key.strip().replace("-", "_"), yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {text!r}: the value is not YAML: {error}") from None
