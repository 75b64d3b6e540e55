"""What stops a gui run, and what a reader must know before its numbers."""

from __future__ import annotations

from typing import Any

from adjudge.errors import InputError
from adjudge.protocols.gui.config import GuiConfig
from adjudge.protocols.gui.counts import PLACE, Partial
from adjudge.readers.gui.model import SPACES

FEWEST_OUTSIDE = 2


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
    for role, files, (given, *fits) in zip(
        ("episodes", "predictions"), (config.episodes, config.predictions), whole.fits.tolist(), strict=True
    ):
        other = {space: count for space, count in zip(SPACES, fits, strict=True) if space != config.space}
        most = max(other.values())
        if most >= FEWEST_OUTSIDE and 2 * most > given:
            likely = " or ".join(space for space, count in other.items() if count == most)
            raise InputError(
                f"{most} of {given} {role} with coordinates do not look like --space {config.space}; they fit {likely}. "
                f"Nothing was judged; give the space they are in.",
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
