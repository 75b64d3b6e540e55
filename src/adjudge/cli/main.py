"""`adjudge`: the group of commands; each is imported only when it is called."""

from __future__ import annotations

import importlib
from typing import Any

import click

from adjudge.cli.start import run
from adjudge.errors import AdjudgeError
from adjudge.plugins import plugin, plugin_names

__all__ = ["main", "run"]
GROUP = "adjudge.commands"
PROTOCOLS = "adjudge.protocols"
PLUGIN = "a protocol of an installed package"
_OWN = {
    "agent": "is the agent that judged a run any good?",
    "collect": "run a system under test over a data set and write its outputs",
    "compare": "compare runs, only where that is valid: better, worse, equivalent, inconclusive",
    "demo": "run every protocol on generated examples",
    "describe": "say what a file is, and which command reads it",
    "explain": "print the verdict on one sample with its evidence",
    "export": "write a run's records as JSON Lines",
    "gate": "hold a run to gates, or to a baseline",
    "leakage": "look for leaks in splits, columns and code",
    "query": "SQL over a run's tables",
    "report": "write a run as a page, Markdown, LaTeX, CSV or figures",
    "run": "run any installed protocol from a configuration file",
    "schema": "print the JSON Schemas of what adjudge reads and writes",
    "sign": "sign a run with an SSH key",
    "view": "open a run's page in the browser",
    "verify": "recompute every number of a run from its tables",
}
_PROTOCOLS = {
    "anomaly": "judge a detector of attacks on sensor streams, without leaks",
    "check": "judge any structured output by rules of your own",
    "consistency": "judge two validators of the same answers",
    "flight": "judge predictions of the next flight state",
    "gui": "judge a GUI agent's actions along recorded episodes",
    "score": "judge any evaluation that left a score per sample: logs of other tools, tables",
    "triage": "judge a classifier that may say uncertain",
}


class _Commands(click.Group):
    """Commands by name: our own from this package, others from the entry-point group `adjudge.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted({*_OWN, *plugin_names(GROUP), *_installed()})

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error over a run that does not hold is that of the run."""
        words = list(ctx.args)
        try:
            return super().invoke(ctx)
        except (AdjudgeError, MemoryError, click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if getattr(error, "errno", None) is None:  # else it is an error of the machine
                from adjudge.cli.intact import refuse_forged

                refuse_forged(words, error)
            raise

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name in _OWN:
            module = importlib.import_module(f"adjudge.cli.{cmd_name}")
            command: click.Command = getattr(module, cmd_name)
            return command
        entry = plugin(GROUP, cmd_name)
        if entry is None and cmd_name in _installed():
            return importlib.import_module("adjudge.cli.run").command(cmd_name)  # type: ignore[no-any-return]
        return None if entry is None else entry.load()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in --help, without importing any command."""
        names = self.list_commands(ctx)
        protocols = [(name, _PROTOCOLS.get(name, PLUGIN)) for name in names if name not in _OWN]
        with formatter.section("Protocols"):
            formatter.write_dl(protocols)
        with formatter.section("Commands"):
            formatter.write_dl([(name, _OWN[name]) for name in names if name in _OWN])


def _installed() -> set[str]:
    """The protocols of other packages; one without a command of its own has one made for it."""
    entries = ((name, plugin(PROTOCOLS, name)) for name in plugin_names(PROTOCOLS))
    return {name for name, entry in entries if entry is not None and not entry.value.startswith("adjudge.protocols.")}


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="adjudge", prog_name="adjudge")
@click.option("--debug", is_flag=True, expose_value=False, help="Before the command: show where an error comes from.")
def main() -> None:
    """Turn outputs you already have into verdicts that anyone can check.

    \b
    Exit codes: 0 passed, or no gates · 1 a gate failed or a run does not hold · 2 usage or bad input ·
    3 not comparable, a leak found, or the protocol was violated · 4 adjudge or the machine failed (a full
    disk, no memory, a bug) · 130, 143 interrupted · 141 nobody reads the output any more.
    """
