"""The atoms of a batch that did not pass, counted one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import CRITICAL, ERROR, FAIL, NOT_APPLICABLE, PASS

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

ATOM_KINDS = ("pass", "warning", "critical", "not_applicable", "error")
_KIND_OF_OUTCOME = np.zeros(1 + max(PASS, FAIL, NOT_APPLICABLE, ERROR), dtype=np.int64)
_KIND_OF_OUTCOME[[PASS, FAIL, NOT_APPLICABLE, ERROR]] = [
    ATOM_KINDS.index(kind) for kind in ("pass", "warning", "not_applicable", "error")
]


class RareAtoms:
    """The atoms of a batch that did not pass: few, so they are counted one by one and the rest by difference."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.n = evidence, evidence.n
        flat = np.flatnonzero(evidence.outcome != PASS)
        self.position, self.sample = np.divmod(flat, max(1, evidence.n))
        self.outcome = evidence.outcome.ravel()[flat]
        self.severity = evidence.severity.ravel()[flat]
        self.code = evidence.code.ravel()[flat]

    def atoms(self, model: Ints, n_models: int, families: Sequence[str]) -> NDArray[np.int32]:
        """(models, families, kinds): how many atoms are of each kind; rules of other families, a plugin's, are left out."""
        layout, width = self.evidence.layout, len(families) + 1
        places = {name: place for place, name in enumerate(families)}
        family = np.array([places.get(position.rule["family"], len(families)) for position in layout.positions])
        critical = (self.outcome == FAIL) & (self.severity == CRITICAL)
        kind = np.where(critical, ATOM_KINDS.index("critical"), _KIND_OF_OUTCOME[self.outcome])
        place = (model[self.sample] * width + family[self.position]) * len(ATOM_KINDS) + kind
        counts = np.bincount(place, minlength=n_models * width * len(ATOM_KINDS))
        counts = counts.reshape(n_models, width, len(ATOM_KINDS))
        atoms = np.bincount(model, minlength=n_models)[:, None] * np.bincount(family, minlength=width)
        counts[:, :, 0] = atoms - counts.sum(axis=2)
        return counts[:, : len(families)].astype(np.int32)

    def codes(self, model: Ints, n_models: int) -> NDArray[np.int32]:
        """(models, codes): how many atoms failed under each code."""
        failed, n_codes = self.outcome == FAIL, len(self.evidence.layout.codes)
        place = model[self.sample[failed]] * n_codes + self.code[failed]
        return np.bincount(place, minlength=n_models * n_codes).reshape(n_models, n_codes).astype(np.int32)

    def family(self, name: str) -> tuple[Mask, Mask]:
        """Per sample: whether an atom of the family passed or failed, and whether any failed."""
        rows = self.evidence.layout.positions_of(name)
        in_family = np.zeros(self.evidence.layout.width, dtype=bool)
        in_family[rows] = True
        of_family = in_family[self.position]
        others = np.bincount(self.sample[of_family], minlength=self.n)
        failed = np.zeros(self.n, dtype=bool)
        failed[self.sample[of_family & (self.outcome == FAIL)]] = True
        return failed | (others < rows.size), failed
