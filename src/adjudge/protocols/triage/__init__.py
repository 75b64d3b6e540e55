"""Protocol `triage`: a classifier that may say "uncertain"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.protocols.base import Plan, Protocol

if TYPE_CHECKING:
    from adjudge.evidence.atoms import Atom
    from adjudge.runs.run import Run


class Triage(Protocol):
    """The triage protocol, as it is registered."""

    name = "triage"
    version = "1"
    title = "Triage: real, fake or uncertain"

    def plan(self, config: Mapping[str, Any]) -> Plan:
        """A plan from the options of `adjudge triage`."""
        from adjudge.protocols.triage.plan import TriagePlan

        return TriagePlan(config)

    def record(self, run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
        """One sample in the shape that `adjudge schema` publishes."""
        from adjudge.protocols.triage.record import record

        return record(run, row, atoms, output)

    def example(self, folder: Path, seed: int) -> dict[str, Any]:
        """Two models, with and without tools, three trials."""
        from adjudge.protocols.triage.generate import generate

        return generate(folder, seed=seed, force=True).config()

    def schemas(self) -> dict[str, dict[str, Any]]:
        """What the protocol reads and exports."""
        from adjudge.protocols.triage.record import schemas

        return schemas()


PROTOCOL = Triage()
