"""Protocol `consistency`: how far two validators of the same answers agree, and what ships."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.protocols.base import Plan, Protocol

if TYPE_CHECKING:
    from adjudge.evidence.atoms import Atom
    from adjudge.runs.run import Run


class Consistency(Protocol):
    """The consistency protocol, as it is registered."""

    name = "consistency"
    version = "1"
    title = "Agreement of two validators, and what ships"

    def plan(self, config: Mapping[str, Any]) -> Plan:
        """A plan from the options of `adjudge consistency`: pairs with a policy, or raters of any label space."""
        from adjudge.protocols.consistency.plan import PairPlan, configured

        settings = configured(config)
        if settings.raters or settings.labels is not None:
            from adjudge.protocols.consistency.raters_plan import RatersPlan

            return RatersPlan(settings)
        return PairPlan(settings)

    def record(self, run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
        """One item with its labels, its final and its atoms."""
        from adjudge.protocols.consistency.record import record

        del run
        return record(row, atoms, output)

    def example(self, folder: Path, seed: int) -> dict[str, Any]:
        """Pairs of a Scholar and an Auditor over invented questions."""
        from adjudge.protocols.consistency.generate import generate

        return {"pairs": [str(generate(folder, seed=seed, force=True).pairs)], "policy": "refusal-aware"}


PROTOCOL = Consistency()
