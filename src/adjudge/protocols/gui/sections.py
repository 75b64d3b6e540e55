"""What a reader came for, as tables: where the agent misses, the clicks farthest off, and agents that know nothing.

Beside them what stops a run, and what must be known before its numbers are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from adjudge.errors import InputError
from adjudge.protocols.gui.config import GuiConfig
from adjudge.protocols.gui.counts import PLACE, Partial
from adjudge.protocols.gui.spaces import likely_spaces
from adjudge.readers.gui.model import SPACES
from adjudge.runs.section import Column, Section
from adjudge.stats.estimate import Estimate

_COMPARED = ("action_type_accuracy", "mean_episode_progress", "episode_success_rate", "success_by_types_only")


def gui_sections(
    whole: Partial,
    estimates: Mapping[str, Estimate],
    others: Mapping[str, Any],
    types: tuple[str, ...],
    config: GuiConfig,
) -> list[Section]:
    """All tables of a run, the most important first."""
    warnings = [
        Section("other_mode", "Read this first", ("",), (), place="first", empty=text)
        for text in other_mode(whole, som=config.dsl_mode == "som")
    ]
    tables = [_where_it_misses(whole, types), _farthest(whole, config), _baselines(estimates, others, config.model)]
    return [*warnings, *tables]


def _where_it_misses(whole: Partial, types: tuple[str, ...]) -> Section:
    """Steps by recorded type and what became of them; every step is in one column."""
    rows: list[tuple[Any, ...]] = []
    for kind in np.unique(whole.cell_kind).tolist():
        counts = whole.cells[whole.cell_kind == kind].sum(axis=0)
        n, right, full, missing, unparsed = (
            int(counts[PLACE[name]]) for name in ("n", "right", "full", "missing", "unparsed")
        )
        rows.append((types[kind], full / n, n, full, right - full, n - right - missing - unparsed, unparsed, missing))
    rows.sort(key=lambda row: (row[3] - row[2], row[0]))
    total = [sum(row[place] for row in rows) for place in range(2, 8)]
    rows.append(("all", total[1] / total[0], *total))
    lost = total[0] - total[1]
    return Section(
        "where_it_misses",
        f"Where the agent misses: {lost:,} of {total[0]:,} steps",
        (
            *("recorded", Column("fully correct", "%"), "steps", "correct"),
            *("off target", "wrong type", "unparsed", "missing"),
        ),
        rows,
        note="Every step once, by its recorded type; the type that loses most steps first. Off target: the type is right, the "
        "place or the argument is not.",
        place="first",
    )


def _farthest(whole: Partial, config: GuiConfig) -> Section:
    """The missed clicks, the farthest first."""
    return Section(
        "missed_clicks",
        "Missed clicks, the farthest first",
        ("step", "scenario", "target", "box", "point", "distance"),
        [(miss.sample, miss.scenario or "", miss.target, miss.box, miss.point, miss.distance) for miss in whole.misses],
        note=f"In the space {config.space}; distances are shares of the screen, a hit is within {config.click_radius:g}.",
        terminal=6,
        empty="No click with coordinates on both sides missed.",
    )


def _baselines(estimates: Mapping[str, Estimate], others: Mapping[str, Any], model: str) -> Section:
    """The agent beside two that know nothing."""
    majority = others["majority_type_agent"]
    agents = (("never acts", others["null_agent"]), (f"always says {majority['type']}", majority))
    return Section(
        "baselines",
        "Beside agents that know nothing",
        ("agent", *(Column(name.replace("_", " "), "%") for name in _COMPARED)),
        [
            (model, *(estimates[name] for name in _COMPARED)),
            *((name, *(numbers[metric] for metric in _COMPARED)) for name, numbers in agents),
        ],
        note="One never acts, so it is right where the recording waits or is done; one always says the most frequent type.",
    )


def refuse_no_match(whole: Partial, config: GuiConfig) -> None:
    """Stop when no prediction is for a recorded step."""
    missing = int(whole.cells[:, PLACE["missing"]].sum())
    if missing == int(whole.steps.sum()):
        raise InputError(
            f"no prediction is for a recorded step ({missing} steps, {whole.unmatched} predictions for other steps); "
            "are episode_id and step counted alike on both sides?",
            file=config.predictions[0],
        )


def refuse_other_space(whole: Partial, config: GuiConfig) -> None:
    """Stop when most coordinates of a file fit another space than the declared one."""
    for role, files, (pointing, *fits) in zip(
        ("episodes", "predictions"), (config.episodes, config.predictions), whole.fits.tolist(), strict=True
    ):
        other = {space: count for space, count in zip(SPACES, fits, strict=True) if space != config.space}
        if likely := likely_spaces(other, pointing):
            raise InputError(
                f"{max(other.values())} of {pointing} {role} with coordinates do not look like --space {config.space}; "
                f"they fit {likely}. Nothing was judged; give the space they are in.",
                file=files[0],
            )


def other_mode(whole: Partial, *, som: bool) -> list[str]:
    """A warning where most answers are of the mode that is not judged: their clicks cannot be right."""
    marks, points, every = (whole.count(name) for name in ("marks_only", "points_only", "pointing"))
    if not som and 2 * marks > every:
        what = f"{marks} of {every} predicted clicks name an element and no point"
        return [f"THE ANSWERS LOOK LIKE SOM: {what}; in coordinate mode they all miss (--dsl-mode som judges elements)"]
    if som and 2 * points > every:
        what = f"{points} of {every} predicted clicks have a point and name no element"
        return [
            f"THE ANSWERS LOOK LIKE COORDINATES: {what}; in SoM mode they all miss (--dsl-mode coord judges points)"
        ]
    return []


def notes_of(whole: Partial, broken: list[dict[str, Any]], *, som: bool) -> list[str]:
    """The notes of a run, the most important first."""
    notes = other_mode(whole, som=som)
    if whole.unmatched:
        first = ", ".join(whole.unmatched_names[:5])
        notes.append(f"{whole.unmatched} predictions are for no recorded step (first: {first})")
    if missing := whole.count("missing"):
        notes.append(f"{missing} steps have no prediction and count as wrong")
    if unparsed := whole.count("unparsed"):
        notes.append(f"{unparsed} predictions could not be parsed and count as wrong")
    if outside := whole.count("outside"):
        notes.append(f"{outside} predictions have coordinates outside the declared space; their steps fail")
    if whole.count("full") == whole.count("n") and whole.distances.size and not whole.distances.any():
        notes.append(
            "every prediction equals the recording to the last digit: is the recording given as the predictions?"
        )
    notes += [
        f"broken evaluator: in scenario {item['scenario']!r} an agent that never acts passes "
        f"{item['episodes_passed']} of {item['episodes']} episodes"
        for item in broken
    ]
    return notes
