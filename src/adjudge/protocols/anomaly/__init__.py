"""Protocol `anomaly`: a detector of attacks on sensor streams under a reviewer's contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.protocols.base import Plan, Protocol

if TYPE_CHECKING:
    from adjudge.evidence.atoms import Atom
    from adjudge.runs.run import Run


class Anomaly(Protocol):
    """The anomaly protocol, as it is registered."""

    name = "anomaly"
    version = "1"
    title = "A detector under a reviewer's contract"

    def plan(self, config: Mapping[str, Any]) -> Plan:
        """A plan from the options of `adjudge anomaly`."""
        from adjudge.protocols.anomaly.plan import AnomalyPlan

        return AnomalyPlan(config)

    def record(self, run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
        """One sequence with the atoms of the contract and of the detection."""
        del run, output
        kept = {key: value for key, value in row.items() if key not in {"part", "row", "cites"}}
        return kept | {"atoms": [{"id": atom.id, "outcome": atom.outcome, "message": atom.message} for atom in atoms]}

    def example(self, folder: Path, seed: int) -> dict[str, Any]:
        """A short version of the simulated flights, judged with the residual detector."""
        from adjudge.protocols.anomaly.simulate import write_example

        return write_example(folder, seed=seed, flights=16, seconds=40.0, rate=20.0) | {"resamples": 500}


PROTOCOL = Anomaly()
