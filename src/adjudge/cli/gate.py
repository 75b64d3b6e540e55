"""`adjudge gate`: hold a run to bounds, or to a committed baseline, and say it in the words of CI."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adjudge.cli.common import PATH, numbers, place, say, write_file
from adjudge.cli.intact import open_intact, unverified_option
from adjudge.cli.logs import logs_as_runs
from adjudge.errors import ConfigError, NotComparable
from adjudge.report.junit import Case, junit
from adjudge.report.numbers import estimate, number, point
from adjudge.verdict.gates import Gate, judge, refuse_unfailing

if TYPE_CHECKING:
    from adjudge.comparisons.baseline import Regression
    from adjudge.runs.run import Run

_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


@click.command()
@click.argument("run", type=place, metavar="RUN_OR_LOG", callback=logs_as_runs)
@click.option("--gates", "file", type=PATH, help="YAML file: a list of gates.")
@click.option("--gate", "texts", multiple=True, metavar="'METRIC[.low|.high] >= X'", help="A bound to hold; repeat.")
@click.option("--baseline", type=PATH, help="Fail where the run is worse than this baseline.")
@click.option(
    "--margin",
    "margins",
    multiple=True,
    metavar="[NAME=]X",
    help="How much worse than the baseline is tolerated; repeat.",
)
@click.option("--write-baseline", "target", type=PATH, help="Write this run's baseline, to commit.")
@click.option("--metric", "metrics", multiple=True, help="Estimates in the baseline [the headline ones]; repeat.")
@click.option(
    "--sequential",
    type=PATH,
    metavar="STATE",
    help="Count pairs with --against over all looks, in this file; valid at any.",
)
@click.option("--against", type=place, callback=logs_as_runs, help="The run or log that --sequential pairs with.")
@click.option("--alpha", type=float, help="Chance of a false alarm of --sequential over all looks [0.05].")
@click.option("--junit", "junit_file", type=PATH, help="Write JUnit XML.")
@click.option("--sarif", type=PATH, help="Write SARIF 2.1.0.")
@click.option("--validation", type=PATH, help="Of the language model that judged, where the run has none.")
@click.option("--min-kappa", type=float, default=0.6, show_default=True, help="The least κ.low of a validation.")
@unverified_option
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def gate(  # noqa: PLR0913 -- click hands every flag over by its name
    run: str | Path,
    file: Path | None,
    texts: tuple[str, ...],
    baseline: Path | None,
    margins: tuple[str, ...],
    target: Path | None,
    metrics: tuple[str, ...],
    sequential: Path | None,
    against: str | Path | None,
    alpha: float | None,
    junit_file: Path | None,
    sarif: Path | None,
    validation: Path | None,
    min_kappa: float,
    unverified: bool,
    quiet: bool,
) -> int:
    """Hold a RUN to gates, or to a baseline. Exit code 0 passed, 1 failed, 2 bad input, 3 not comparable.

    Without --gates, --gate and --baseline the gates are the protocol's own and those that the run was made with. Where
    there are none, nothing is held and the exit code is 0.

    \b
    Examples:
      adjudge gate runs/a --gate 'falcon-a/eligibility_rate.low >= 0.8'
      adjudge gate runs/a --write-baseline baseline.json
      adjudge gate a.eval --baseline baseline.json
      adjudge gate today.eval --against main.eval --sequential state.json
      adjudge gate runs/b --baseline baseline.json --margin eligibility_rate=0.01 --junit junit.xml
    """
    from adjudge.comparisons import baseline as base
    from adjudge.report import view
    from adjudge.report.markdown import markdown

    if (sequential is None) != (against is None) or (alpha is not None and sequential is None):
        raise ConfigError("--sequential STATE and --against RUN_OR_LOG go together, --alpha with them")
    loaded = open_intact(run, unverified=unverified)
    if target is not None:
        write_file(target, base.write(base.baseline_of(loaded, metrics)))
        if not quiet:
            say(f"{target}: the baseline of {run}")
        if not (file or texts or baseline):
            return 0
    wanted = [*_from_file(file), *(Gate.parse(text) for text in texts)]
    refuse_unfailing(wanted, loaded.metric)
    asked = wanted or baseline is not None
    if asked or loaded.metrics["gates"]:
        _require_validation(loaded, validation, min_kappa, quiet=quiet)
    outcomes = judge(wanted, view.gate_names(loaded))[0] if asked else loaded.metrics["gates"]

    def write_junit(cases: Sequence[Case]) -> None:
        if junit_file is not None:
            name, timestamp = f"adjudge.{loaded.manifest.protocol}", loaded.manifest.timestamp
            write_file(junit_file, junit(cases, name=name, timestamp=timestamp))

    worse_by = numbers("--margin", margins, "X or NAME=X")
    try:
        regressions = [] if baseline is None else base.hold(loaded, base.read(baseline), worse_by)
    except NotComparable as error:
        write_junit([Case("baseline", "comparable", "error", str(error))])
        raise
    looked = [] if sequential is None else [_look(run, against, sequential, alpha)]
    cases = [*_cases(loaded, outcomes, regressions), *_instrument(loaded), *looked]
    write_junit(cases)
    if sarif is not None:
        from adjudge.report.sarif import sarif as log

        write_file(sarif, log(loaded))
    if os.environ.get(_STEP_SUMMARY):
        with Path(os.environ[_STEP_SUMMARY]).open("a", encoding="utf-8") as stream:
            stream.write(markdown(loaded, gates=outcomes) + _table(regressions, loaded))
    if not quiet:
        if not outcomes and baseline is None and sequential is None:
            say(
                f"no gates: {loaded.manifest.protocol} has none of its own and the run was made without, so nothing is "
                "held to a bound (--gate, --gates FILE or --baseline FILE)",
            )
        _say(cases)
    return 0 if all(case.kind == "pass" for case in cases if case.suite != "instrument") else 1


def _require_validation(run: Run, path: Path | None, least: float, *, quiet: bool) -> None:
    """Gates on verdicts of a language model need a validation of the same judge."""
    if run.agent is None or not run.agent["language_model"]:
        return
    from adjudge.agents.validation import identity, read_validation, refuse_unvalidated

    validation = run.validation if path is None else read_validation(path)
    words = refuse_unvalidated(identity(run.agent), validation, least)
    if not quiet:
        say(words)


def _look(run: str | Path, against: str | Path | None, path: Path, alpha: float | None) -> Case:
    """One look of the sequential gate; the state file is written when it was counted."""
    from adjudge.comparisons.baseline import write
    from adjudge.comparisons.sequential import look, read_state

    outcome = look(str(run), str(against), read_state(path), alpha=alpha)
    write_file(path, write(outcome.state))
    state, test = outcome.state, outcome.test
    e_value = number(test.e_value) if test.e_value < 1e12 else "over 10¹²"
    name = (
        f"{state.metric}: {test.outcome}, with {state.wins} items won and {state.losses} lost in "
        f"{state.looks} {'look' if state.looks == 1 else 'looks'} ({outcome.new} items are new); E = {e_value}, decided at {number(1 / state.alpha)}"
    )
    told = [] if outcome.new else ["every item was counted before, so this look says nothing of the candidate"]
    if outcome.otherwise:
        told.append(
            f"{outcome.otherwise} items that were counted came out otherwise now, as of another candidate: "
            "adjudge compare --fail-on-worse holds two candidates against each other"
        )
    return Case("sequential", name, "failure" if test.outcome == "worse" else "pass", "; ".join(told))


def _say(cases: Sequence[Case]) -> None:
    """Print what failed, then every gate, then how many checks hold."""
    marks = {"pass": "pass", "failure": "FAIL", "error": "UNKNOWN"}
    for case in cases:
        if case.kind != "pass" or case.suite in {"gates", "sequential"}:
            message = f": {case.message}" if case.message else ""
            say(f"{marks[case.kind]:<8} {case.suite}: {case.name}{message}")
    passing = sum(case.kind == "pass" for case in cases)
    say(f"{passing} of {len(cases)} checks hold")


def _from_file(path: Path | None) -> list[Gate]:
    if path is None:
        return []
    from adjudge.readers.settings import text_of, yaml_of

    loaded = yaml_of(text_of(path), path)
    listed = loaded.get("gates") if isinstance(loaded, dict) else loaded
    if not isinstance(listed, list) or not listed or not all(isinstance(item, str) for item in listed):
        raise ConfigError(
            f"{path}: expected a list of gates such as `- model/metric.low >= 0.9`, alone or under `gates:`"
        )
    return [Gate.parse(item) for item in listed]


def _cases(run: Run, outcomes: dict[str, Any], regressions: Sequence[Regression]) -> Iterator[Case]:
    """The gates, and the estimates that were held against the baseline."""
    from adjudge.report import view

    kinds = {"pass": "pass", "fail": "failure", "unknown": "error"}
    for name, item in outcomes.items():
        message = "" if item["outcome"] == "pass" else view.gate_observed(run, item)
        yield Case("gates", name, kinds[item["outcome"]], message)
    for regression in regressions:
        unit = run.metric(regression.name).unit
        now, before = (point(each, unit=unit) for each in (regression.now, regression.before))
        difference, margin = estimate(regression.difference, unit=unit), number(regression.margin, unit=unit)
        sentence = f"{regression.why}: {now}, was {before}, difference {difference}, margin {margin}"
        yield Case("baseline", f"{view.label(regression.slice)}/{regression.name}", kinds[regression.outcome], sentence)


def _instrument(run: Run) -> list[Case]:
    """A case for every rule that broke; one that passes where none did."""
    from adjudge.report.data import failure_modes

    broken: Counter[str] = Counter()
    for row in failure_modes(run)["rows"]:
        broken[row["rule"]] += row["broken"]
    failed = {rule: f"the rule failed on {count} atoms" for rule, count in broken.items() if count}
    cases = [Case("instrument", rule, "error", message) for rule, message in failed.items()]
    return cases or [Case("instrument", "every rule could be evaluated", "pass")]


def _table(regressions: Sequence[Regression], run: Run) -> str:
    """The estimates held against the baseline, for a job summary."""
    from adjudge.report import view
    from adjudge.report.markdown import MARK, escape, rows

    if not regressions:
        return ""
    body = []
    for regression in regressions:
        metric = run.metric(regression.name)
        words = [
            f"{MARK[regression.outcome]} {escape(regression.why)}",
            escape(view.label(regression.slice)),
            escape(metric.title),
        ]
        shown = [point(regression.before, unit=metric.unit)]
        shown += [estimate(each, unit=metric.unit) for each in (regression.now, regression.difference)]
        body.append([*words, *shown, number(regression.margin, unit=metric.unit)])
    head = ["against the baseline", "", "estimate", "was", "is", "difference", "margin"]
    return f"\n{rows(head, body, left=3)}\n"
