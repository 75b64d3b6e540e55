"""Protocol `flight`: a model's prediction of the next flight state, against physics and safety."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.protocols.base import Plan, Protocol

if TYPE_CHECKING:
    from adjudge.evidence.atoms import Atom
    from adjudge.runs.run import Run


class Flight(Protocol):
    """The flight protocol, as it is registered."""

    name = "flight"
    version = "1"
    title = "Flight-state predictions against physics and safety"

    def plan(self, config: Mapping[str, Any]) -> Plan:
        """A plan from the options of `adjudge flight`."""
        from adjudge.protocols.flight.plan import FlightPlan

        return FlightPlan(config)

    def record(self, run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
        """One sample in the shape that `adjudge schema record` publishes."""
        from adjudge.protocols.flight.record import record

        return record(run, row, atoms, output)

    def example(self, folder: Path, seed: int) -> dict[str, Any]:
        """Simulated flights and five models; the library compares altitudes with the shown offset and spares the ground."""
        from adjudge.protocols.flight.example import example

        return example(folder, seed)

    def schemas(self) -> dict[str, dict[str, Any]]:
        """Sample, output, record and the confidence prior."""
        from adjudge.protocols.flight.schemas import schemas

        return schemas()


PROTOCOL = Flight()
