"""Probes of a fitted detector: seeds, state across calls, what it learned from validation, and whether it looks ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from adjudge.evidence.rule import Floats
from adjudge.protocols.anomaly.checks import Check
from adjudge.protocols.anomaly.rows import Flight
from adjudge.protocols.anomaly.trial import Trial

_SAME = 1e-9
_CUTS = (0.25, 0.5, 0.75)


def probe(trial: Trial, first: Floats, flights: Sequence[Flight], refits: Sequence[Callable[[], Trial]]) -> list[Check]:
    """What scores reveal: `first` are those of the first flight before any other was scored.

    `refits` make the detector again, fitted without validation flights and with them; without refits two checks are unknown.
    """
    flight = flights[0]
    checks = [*_learned(trial, first, flight, refits), _state(trial, first, flight), _causal(trial, flights)]
    # A detector whose scores change from call to call fails every later comparison for the same reason.
    for place, check in enumerate(checks):
        if check.leak:
            why = f"not told: {check.code} failed"
            checks[place + 1 :] = [Check.unknown(later.code, why) for later in checks[place + 1 :]]
            break
    return checks


def _learned(trial: Trial, first: Floats, flight: Flight, refits: Sequence[Callable[[], Trial]]) -> list[Check]:
    seeds, train_only = Check("seeds.recorded"), Check("detector.train_only")
    if not refits:
        why = "refit_check is off"
        return [Check.unknown(seeds.code, why), Check.unknown(train_only.code, why)]
    without, again = refits
    alone = without().score(flight, flight.id)
    if _same(first, alone):
        return [seeds, train_only]
    if not _same(first, again().score(flight, flight.id)):
        seeds.fail(
            f"{trial.name}, made and fitted again with the same seeds, scores flight {flight.id} differently: "
            "it draws numbers from a seed that is not recorded"
        )
        return [seeds, train_only]
    apart = (
        f"fitted without the validation flights it scores {flight.id} differently, by up to {_apart(first, alone):.3g}"
    )
    if trial.early_stopping:
        train_only.notes.append(f"{trial.name} declares early stopping on validation; {apart}")
    else:
        train_only.fail(
            f"{trial.name} learns from validation: {apart} (`early_stopping = True` declares early stopping)"
        )
    return [seeds, train_only]


def _state(trial: Trial, first: Floats, flight: Flight) -> Check:
    check = Check("scaler.train_normal_only")
    if not _same(first, trial.score(flight, flight.id)):
        check.fail(
            f"{trial.name} scores flight {flight.id} differently after it has seen test: "
            "it was fitted again there, not once on train"
        )
    return check


def _causal(trial: Trial, flights: Sequence[Flight]) -> Check:
    """Scores of the first rows of a flight must not change with the rows that follow."""
    check = Check("detector.causal")
    if not trial.causal:
        check.notes.append(f"{trial.name} declares that it sees whole flights (`causal = False`): it is judged offline")
        return check
    for flight in flights:
        whole = trial.score(flight, flight.id)
        for rows in sorted({*(int(cut * flight.n) for cut in _CUTS), flight.n - 1} - {0}):
            if not _same(whole[:rows], trial.score(flight, flight.id, rows)):
                check.fail(
                    f"{trial.name} scores the first {rows} rows of flight {flight.id} differently when the "
                    f"{flight.n - rows} rows after them are there: it looks ahead, or scales on the flight it scores "
                    "(`causal = False` declares it, to be judged offline)"
                )
                break
    return check


def _same(a: Floats, b: Floats) -> bool:
    """Equal but for the rounding of sums that threads add up in another order."""
    return bool(np.allclose(a, b, rtol=_SAME, atol=_SAME * float(np.abs(a).max(initial=0.0))))


def _apart(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).max(initial=0.0))
