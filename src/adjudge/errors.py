"""The one exception tree.

AdjudgeError
├── InputError          a file the user gave cannot be used: names file, line, what was found, what to do  (exit 2)
├── ConfigError         a flag, a configuration, a library or a rule set is wrong                          (exit 2)
├── OutputError         the result cannot be written where it was asked for                                (exit 2)
├── RunError            a run directory is missing, incomplete or of an unknown schema                     (exit 2)
│   └── VerificationFailed   a run was recomputed and does not hold                                        (exit 1)
├── CitationRefused     a verdict cites nothing, or cites what does not exist or does not support it       (exit 2)
├── InstrumentError     the machine or adjudge failed, not the user: a worker died …                        (exit 4)
├── PromiseBroken       a protocol's results break what the engine promises (a bug of the protocol)         (exit 4)
├── StatsError          a statistic was asked of data it is not defined for by contract (unknown label …)  (exit 2)
├── ProtocolViolation   the protocol's contract was violated; the result is INVALID                        (exit 3)
└── NotComparable       two runs cannot be compared; carries every reason                                  (exit 3)
"""

from __future__ import annotations

from functools import partial


class AdjudgeError(Exception):
    """Something a user can act on; its text is the whole message and `exit_code` what the CLI returns."""

    exit_code = 2


class InputError(AdjudgeError):
    """A file the user gave cannot be used."""

    def __init__(self, what: str, *, file: str | None = None, line: int | None = None, hint: str | None = None) -> None:
        self.what, self.file, self.line, self.hint = what, file, line, hint
        place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(place + what + (f" {hint}" if hint else ""))

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process boundaries; the keyword arguments must come along.
        return (partial(type(self), self.what, file=self.file, line=self.line, hint=self.hint), ())


class ConfigError(AdjudgeError):
    """A flag, a configuration, a constraint library or a rule set is wrong."""


class OutputError(AdjudgeError):
    """The result cannot be written where it was asked for."""


class RunError(AdjudgeError):
    """A run directory is missing, incomplete or of an unknown schema."""


class VerificationFailed(RunError):
    """A run was recomputed and does not hold; `problems` lists every difference."""

    exit_code = 1

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class CitationRefused(AdjudgeError):
    """A verdict cites no evidence, or evidence that does not exist or does not support it."""


class PromiseBroken(AdjudgeError):
    """A protocol's results break what the engine promises of every run; nothing is written."""

    exit_code = 4

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("the protocol's results cannot be written: " + "; ".join(problems))

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.problems,))


class InstrumentError(AdjudgeError):
    """The machine or adjudge itself failed, whatever the input is."""

    exit_code = 4


class StatsError(AdjudgeError):
    """A statistic was asked of data that its contract excludes, such as a label outside the label space."""


class ProtocolViolation(AdjudgeError):
    """The protocol's contract was violated, so the result is INVALID."""

    exit_code = 3


class NotComparable(AdjudgeError):
    """Two runs cannot be compared; `reasons` lists every one."""

    exit_code = 3

    def __init__(self, reasons: list[str]) -> None:
        self.reasons = reasons
        super().__init__("not comparable: " + "; ".join(reasons))
