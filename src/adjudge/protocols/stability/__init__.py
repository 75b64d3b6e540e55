"""Semantic stability, the second half of `consistency`: are answers the same under seed and prompt jitter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.protocols.base import Plan, Protocol

if TYPE_CHECKING:
    from adjudge.evidence.atoms import Atom
    from adjudge.runs.run import Run


class Stability(Protocol):
    """The stability protocol, as it is registered."""

    name = "stability"
    version = "1"
    title = "Answers under seed and prompt jitter"

    def plan(self, config: Mapping[str, Any]) -> Plan:
        """A plan from the options of `adjudge consistency stability`."""
        from adjudge.protocols.stability.plan import StabilityPlan

        return StabilityPlan(config)

    def record(self, run: Run, row: dict[str, Any], atoms: Sequence[Atom], output: dict[str, Any]) -> dict[str, Any]:
        """One gold item with its measures and its atoms."""
        from adjudge.evidence.citations import unpack_citations

        del run
        cited = set(unpack_citations(row["cites"], len(atoms)).tolist())
        shown = {key: value for key, value in row.items() if key not in {"part", "row", "cites", "sample", "model"}}
        return {
            "qid": row["sample"],
            **shown,
            "claims": output["claims"],
            "cites": [atom.id for atom in atoms if atom.position in cited],
            "atoms": [{"id": atom.id, "outcome": atom.outcome, "message": atom.message} for atom in atoms],
        }

    def example(self, folder: Path, seed: int) -> dict[str, Any]:
        """Gold questions and five runs of each."""
        from adjudge.protocols.stability.generate import generate

        files = generate(folder, seed=seed, force=True)
        return {"gold": [str(files.gold)], "runs": [str(files.runs)]}


PROTOCOL = Stability()
