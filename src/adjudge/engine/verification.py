"""Verification: what came of checking a run, and what only a file, a digest or a key beside it can prove."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from adjudge.errors import AdjudgeError

MOST_PROBLEMS = 20
"""Problems of one kind that are listed; a run with more of them is as wrong as one with twenty."""

FROM_INPUT = "that ids, models, answers and reference values are those of the input files, none left out or added"
SETTINGS = "that the settings, gates, seeds and limit of the manifest were chosen before the result was known"
ORIGIN = "when, with which command and in which environment the run was made"


@dataclass
class Verification:
    """What came of checking a run.

    `problems` are ways in which it does not hold. Where another version made it, `made_by` says which, `not_recomputed`
    is what this version computes otherwise or not at all, and `added` what it has beyond the run or says in other words
    and pictures. `checked` and `not_checked` say what was proven and what was not, with the flag that would prove it.
    """

    problems: list[str] = field(default_factory=list)
    made_by: str | None = None
    not_recomputed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    estimates: int = 0
    """Estimates that were recomputed."""

    @property
    def exit_code(self) -> int:
        """0 holds, 1 does not hold, 3 made by another version and not wholly recomputable here."""
        return 1 if self.problems else 3 if self.not_recomputed else 0

    def add(self, *problems: str) -> None:
        """Ways in which the run does not hold, each said once."""
        self.problems += [text for text in dict.fromkeys(problems) if text not in self.problems]

    def differ(self, what: str) -> None:
        """Something was recomputed to another value."""
        kept = self.problems if self.made_by is None else self.not_recomputed
        if what not in kept:
            kept.append(what)

    @contextmanager
    def part(self, what: str) -> Iterator[None]:
        """One part of the work: an error in it is a problem of the run, and the other parts go on."""
        try:
            yield
        except AdjudgeError as error:
            self.add(str(error))
        except OSError as error:
            self.add(f"{error.filename or what}: cannot be read: {error.strerror or error}")
        except Exception as error:  # a damaged run may break anything
            if isinstance(error, MemoryError):
                raise  # which is not its fault
            first = next(iter(str(error).splitlines()), "")
            self.add(f"{what}: is not as adjudge writes it ({type(error).__name__}: {first[:200]})")
