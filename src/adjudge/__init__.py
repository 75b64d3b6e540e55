"""adjudge: verdicts that anyone can check.

The front door: `evaluate` runs a protocol over files, `load_run` opens what it left, `verify` recomputes it, `compare`
holds runs against each other. Nothing else is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.errors import (
    AdjudgeError,
    CitationRefused,
    ConfigError,
    InputError,
    NotComparable,
    OutputError,
    ProtocolViolation,
    RunError,
    StatsError,
    VerificationFailed,
)

if TYPE_CHECKING:
    from adjudge.comparisons.comparison import Comparison
    from adjudge.engine.verify import Verification
    from adjudge.runs.run import Run
    from adjudge.stats.estimate import Estimate

__all__ = [
    "AdjudgeError",
    "CitationRefused",
    "ConfigError",
    "Estimate",
    "InputError",
    "NotComparable",
    "OutputError",
    "ProtocolViolation",
    "Run",
    "RunError",
    "StatsError",
    "VerificationFailed",
    "compare",
    "evaluate",
    "load_run",
    "verify",
]


def compare(*runs: str | Path | Run, **options: Any) -> Comparison:
    """Compare runs, or models named `RUN::MODEL`, on the samples they share; the first is what the others are held against.

    Options: metrics, slices, factor, margin, margins, alpha, seed, resamples, model, model_a, model_b, evidence, and
    force. Raises NotComparable with every reason where the comparison is not valid and not forced.
    """
    from adjudge.comparisons.comparison import compare as hold

    return hold(*runs, **options)


def evaluate(
    protocol: str,
    config: dict[str, Any],
    *,
    out: str | Path | None = None,
    workers: int = 1,
    cluster: str | None = None,
    limit: int | None = None,
    force: bool = False,
    gates: Sequence[str] = (),
    report: bool = True,
) -> Run:
    """Run a protocol over files and return the run it left; `config` holds what the protocol's flags hold.

    `report` says whether report.html is drawn into the run, which takes a second or two. Files and `out` may be URLs.
    """
    from adjudge.engine import evaluate as engine
    from adjudge.engine.remote import Place
    from adjudge.protocols import base
    from adjudge.verdict.gates import Gate

    place = Place(out, force=force)
    options = engine.Options(
        out=place.folder,
        workers=workers,
        cluster=cluster,
        limit=limit,
        force=force,
        gates=tuple(Gate.parse(text) for text in gates),
        report=_report if report else None,
    )
    run = load_run(engine.evaluate(base.protocol(protocol), config, options))
    place.settle()
    run.home = place
    return run


def load_run(path: str | Path) -> Run:
    """Open a run directory; nothing is read before it is asked for. A run behind a URL is copied down first."""
    from adjudge.engine.metrics import metrics_of
    from adjudge.protocols.base import protocol
    from adjudge.readers.remote import is_url
    from adjudge.runs.run import Run

    if isinstance(path, str) and is_url(path):
        from adjudge.engine.remote import Copy

        copy = Copy(path)
        run = Run(copy.folder)
        run.home = copy
    else:
        run = Run(Path(path))
    chosen = protocol(run.manifest.protocol)
    run.recorder, run.declarations = chosen.record, partial(metrics_of, chosen)
    return run


def _report(folder: Path) -> tuple[bytes, str]:
    from adjudge.report.html import write

    return write(load_run(folder))


def verify(run: Run | str | Path) -> Verification:
    """Recompute a run from its own tables; raises VerificationFailed with every difference when it does not hold.

    Of a run that another version made, the result says what was not recomputed.
    """
    from adjudge.engine.verify import verify as recompute
    from adjudge.report.html import check
    from adjudge.runs.run import Run

    result = recompute(run if isinstance(run, Run) else load_run(run), check_report=check)
    if result.problems:
        raise VerificationFailed(result.problems)
    return result


def __getattr__(name: str) -> Any:
    """Classes of the public API, imported when they are asked for."""
    if name == "Estimate":
        from adjudge.stats.estimate import Estimate

        return Estimate
    if name == "Run":
        from adjudge.runs.run import Run

        return Run
    raise AttributeError(f"module 'adjudge' has no attribute {name!r}")
