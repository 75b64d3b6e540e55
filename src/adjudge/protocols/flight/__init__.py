"""Protocol `flight`: a model's prediction of the next flight state, against physics and safety."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


PROTOCOL = Flight()
