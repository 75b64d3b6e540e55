"""Protocol `gui`: a GUI agent's actions along recorded episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.protocols.base import Plan, Protocol

if TYPE_CHECKING:
    from adjudge.evidence.atoms import Atom
    from adjudge.runs.run import Run


class Gui(Protocol):
    """The gui protocol, as it is registered."""

    name = "gui"
    version = "1"
    title = "A GUI agent's actions along recorded episodes"

    def plan(self, config: Mapping[str, Any]) -> Plan:
        """A plan from the options of `adjudge gui`."""
        from adjudge.protocols.gui.plan import GuiPlan

        return GuiPlan(config)

    def record(self, run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
        """One step as an object."""
        from adjudge.protocols.gui.record import record

        return record(run, row, atoms, output)

    def example(self, folder: Path, seed: int) -> dict[str, Any]:
        """Example episodes and four agents; the one that clicks off target is judged."""
        from adjudge.protocols.gui.generate import example

        return example(folder, seed)

    def schemas(self) -> dict[str, dict[str, Any]]:
        """The evaluation file, episodes, predictions and outcomes."""
        from adjudge.protocols.gui.schema import schemas

        return schemas()


PROTOCOL = Gui()
