"""`adjudge anomaly`: judge a detector of attacks on sensor streams under the reviewer's contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from adjudge.cli.common import (
    PATH,
    RUN_FLAGS,
    configuration,
    evaluate_and_show,
    pairs,
    print_json,
    report_writer,
    run_options,
    say,
    settings_and_run_flags,
)
from adjudge.cli.leakage import read_sensors, reading_options
from adjudge.errors import ConfigError


@click.group(invoke_without_command=True)
@click.option("--scores", help="CSV or Parquet: flight, t, score, label; where known split, attack, magnitude, seed.")
@click.option("--data", help="Flights, CSV, Parquet or a folder: flight, t, feature columns; with --detector.")
@click.option("--splits", help="splits.json: train_flights, val_flights, test_flights.")
@click.option("--catalog", help="catalog.json: the attacks that are injected, or that the scores were made under.")
@click.option(
    "--detector",
    "detectors",
    multiple=True,
    help="residual, random, pyod:NAME, sklearn:NAME or module:Class; repeat for several.",
)
@click.option("--target-fpr", type=float, help="False positive rate of the threshold on clean validation [0.01].")
@click.option("--n-consecutive", type=int, help="Exceedances in a row that raise an alarm [5].")
@click.option("--threshold", type=float, help="A threshold from outside: violates the contract.")
@click.option("--resamples", type=int, help="Flight resamples of every interval [2000].")
@click.option("--check-code", "code", multiple=True, help="Code to scan for leaks; repeat.")
@click.option("--name", help="Name of the detector in the report.")
@click.option("--show-invalid", is_flag=True, default=None, help="Show the numbers of an INVALID run, watermarked.")
@reading_options
@click.option("--shift-column", help="A condition of whole flights: false alarms under those that validation lacks.")
@click.option("--leave-one-flight-out", is_flag=True, default=None, help="Also judge every flight as test once.")
@click.option("--no-scores", is_flag=True, default=None, help="Keep partials in place of scores; nothing to verify.")
@run_options
@click.pass_context
def anomaly(ctx: click.Context, /, **flags: Any) -> int | None:
    """Judge a detector of attacks on sensor streams, without leaks. An INVALID result exits with 3.

    \b
    Example:
      adjudge anomaly --scores scores.csv --splits splits.json --out run
    """
    if ctx.invoked_subcommand is not None:
        return None
    sensors, columns = flags.pop("sensors"), flags.pop("columns")
    settings, run_flags = settings_and_run_flags(ctx, flags, needs=("splits",))
    if run_flags["limit"] is not None or "limit" in settings:
        raise ConfigError("--limit would cut flights short: leave flights out of splits.json instead")
    listed = settings.pop("columns", {})
    settings["rename"] = {**(listed if isinstance(listed, dict) else {}), **settings.get("rename", {})}
    settings["rename"] |= pairs("--column", columns, "OURS=THEIRS")
    if sensors is not None or isinstance(settings.get("sensors"), str):
        settings["sensors"] = read_sensors(sensors or settings["sensors"])
    wanted = flags["detectors"]
    if wanted:
        # Options and name in the file belong to the file's own detector.
        named = flags["name"] is not None and len(wanted) == 1
        for key in ("detector", "detectors", "detector_options", *(() if named else ("name",))):
            settings.pop(key, None)
        settings |= {"detector": wanted[0]} if len(wanted) == 1 else {"detectors": list(wanted)}
    return _evaluate(settings, run_flags)


def _evaluate(settings: dict[str, Any], run_flags: dict[str, Any]) -> int:
    from adjudge.protocols.anomaly.catalog import MANY, read_catalog
    from adjudge.runs.run import Run

    file = settings.get("catalog")
    if not run_flags["quiet"] and isinstance(file, str):
        read = read_catalog(Path(file))
        if len(read.attacks) >= MANY:  # before hours are spent on them
            say(f"{file}: {read.notes[0]}")
    folders: list[Path] = []
    code = evaluate_and_show("anomaly", settings, run_flags, on_run=folders.append)
    metrics = Run(folders[0]).metrics
    if metrics["valid"]:
        return code
    for item in metrics["violations"]:
        who = f" ({item['model']})" if "model" in item else ""
        for reason in item["reasons"]:
            say(f"INVALID by {item['code']}{who}: {reason}")
    return 3


@anomaly.command()
@click.option("--data", type=PATH, required=True, help="Clean flights: CSV, Parquet or a folder.")
@click.option("--catalog", type=PATH, required=True, help="attacks/catalog.json.")
@click.option("--splits", type=PATH, help="Inject into the test flights of splits.json alone.")
@click.option("-o", "--output", type=PATH, required=True, help="Parquet file of attacked flights.")
@click.option("--flight-column", default="flight", show_default=True)
@click.option("--time-column", default="t", show_default=True)
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
def inject(
    data: Path, catalog: Path, splits: Path | None, output: Path, flight_column: str, time_column: str, force: bool
) -> int:
    """Write attacked copies of clean flights, with labels, for use elsewhere."""
    from adjudge.protocols.anomaly.attacks import write_attacked
    from adjudge.protocols.anomaly.catalog import read_catalog
    from adjudge.protocols.anomaly.rows import DataOptions, read_flights, read_splits

    flights = read_flights(data, DataOptions(flight_column=flight_column, time_column=time_column)).flights
    if splits is not None:
        chosen = set(read_splits(splits).test)
        flights = [flight for flight in flights if flight.id in chosen]
    attacks = read_catalog(catalog).attacks
    count = write_attacked(flights, attacks, output, force=force)
    say(f"{count} attacked sequences of {len(flights)} flights in {output}")
    return 0


@anomaly.group()
def catalog() -> None:
    """Show or check a catalog of attacks."""


@catalog.command("show")
@click.argument("file", required=False, type=PATH)
def catalog_show(file: Path | None) -> int:
    """Print every attack that a catalog unfolds to; without a file, an example catalog to copy."""
    from adjudge.protocols.anomaly.catalog import EXAMPLE, read_catalog

    if file is None:
        print_json(EXAMPLE)
        return 0
    for attack in read_catalog(file).attacks:
        values = ", ".join(f"{key}={value}" for key, value in attack.parameters.items())
        length = "to the end" if attack.duration_s is None else f"{attack.duration_s:g} s"
        say(f"{attack.name}: {values}; seed {attack.seed}; {length}", err=False)
    return 0


@catalog.command("check")
@click.argument("file", type=PATH)
def catalog_check(file: Path) -> int:
    """Check a catalog and count what it unfolds to."""
    from adjudge.protocols.anomaly.catalog import read_catalog

    read = read_catalog(file)
    names = {attack.name for attack in read.attacks}
    say(f"{file}: {len(names)} attacks, {len(read.attacks)} with all parameters and seeds", err=False)
    return 0


@anomaly.command()
@click.option("--out", type=PATH, required=True, help="Folder for flights, splits, catalog, eval.yaml.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--flights", type=click.IntRange(6), default=30, show_default=True)
@click.option("--seconds", type=float, default=60.0, show_default=True)
@click.option("--rate", type=float, default=100.0, show_default=True, help="Samples a second.")
def init(out: Path, seed: int, flights: int, seconds: float, rate: float) -> int:
    """Write simulated flights and a commented eval.yaml that judges a detector on them; edit it for your own."""
    from adjudge.errors import OutputError
    from adjudge.protocols.anomaly.example import write_example

    target = out / "eval.yaml"
    if target.exists():
        raise OutputError(f"{target} exists already; choose another --out")
    config = write_example(out, seed=seed, flights=flights, seconds=seconds, rate=rate)
    target.write_text(_EVAL.format(**config), encoding="utf-8")
    say(f"{target} is written; next: adjudge anomaly --config {target} --out run")
    return 0


_EVAL = """\
# What is judged. Every path is taken from the folder in which adjudge runs.
data: {data}        # CSV, Parquet or a folder: flight, t, feature columns
splits: {splits}     # train_flights, val_flights, test_flights
catalog: {catalog}   # attacks that are injected into copies of the test flights
detector: {detector}  # residual, random, pyod:IForest, sklearn:IsolationForest, or module:Class of yours
# detectors: [residual, random]   # several in one run, in place of detector
# leave_one_flight_out: true      # every flight is test once; scaler and threshold fitted again
# shift_column: wind              # a condition of whole flights; false alarms under those that validation lacks
# The decision, fixed before test.
target_fpr: 0.01      # the threshold is exceeded by at most this share of clean validation scores
n_consecutive: 5      # 3 high sensitivity, 5 balanced, 10 high specificity
# Intervals: resamples of flights.
resamples: 2000
seed: {seed}
"""


@anomaly.command()
@click.argument("run", type=PATH)
@click.option("--tolerance", type=float, default=0.02, show_default=True, help="Largest relative difference.")
@click.option("--root", type=PATH, help="The folder in which the run's data (and detector) lie now.")
@click.option("--trust-code", is_flag=True, help="Import and run a detector of somebody's own that the run names.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def reproduce(run: Path, tolerance: float, root: Path | None, trust_code: bool, quiet: bool) -> int:
    """Run a RUN again from its recorded configuration and hold every headline metric to it; a difference exits 1.

    Data are looked for under --root, where the command runs, and in every folder above the run. Flights, detector sources,
    parameters and package versions are held against the recorded ones. The outcome is kept in the run:
    reproduction.json, and the last line of its checklist. A detector that is no part of adjudge, PyOD or scikit-learn is a
    program; it is imported with --trust-code alone.
    """
    return 0 if _reproduced(run, tolerance, root, trust_code=trust_code, quiet=quiet) else 1


def _reproduced(run: Path, tolerance: float, root: Path | None, *, trust_code: bool, quiet: bool) -> bool:
    """Whether a run could be made again; what differs is said, and the outcome kept in the run."""
    import sys
    import tempfile

    import adjudge
    from adjudge.engine.verify import ENGINE_KEYS
    from adjudge.protocols.anomaly.detectors import code_of
    from adjudge.protocols.anomaly.stamp import changes, differences, keep, located, records

    first = adjudge.load_run(run)
    if first.manifest.protocol != "anomaly":
        raise ConfigError(f"{run} is a run of {first.manifest.protocol}, not of anomaly")
    kept = {key: value for key, value in first.manifest.config.items() if key not in ENGINE_KEYS}
    bases = [*([root] if root is not None else []), Path.cwd(), *run.resolve().parents]
    config, base = located(kept, first.manifest.inputs, bases)
    if str(base) not in sys.path:
        sys.path.insert(0, str(base))
    entries = [config.get("detector"), *(config.get("detectors") or ())]
    names = [entry["detector"] if isinstance(entry, dict) else entry for entry in entries if entry is not None]
    for name, file in code_of(names).items():
        if not trust_code:
            code = f"code that would be imported from {file}"
            raise ConfigError(f"{run} names the detector {name}, {code}; read it, then --trust-code")
        say(f"runs {name} from {file}")
    if not first.metrics["valid"]:
        raise ConfigError(f"{run} is INVALID: it has no result that could be reproduced")
    with tempfile.TemporaryDirectory() as folder:
        again = adjudge.evaluate("anomaly", config, out=Path(folder) / "again", report=False)
        rows = differences(first.metrics, again.metrics, tolerance)
        both = zip(records(run), records(again.path), strict=True)
        changed = list(dict.fromkeys(item for pair in both for item in changes(*pair)))
    only = config.get("scores") is not None
    holds = keep(run, rows, changed, tolerance, report_writer, evaluation_only=only)
    if only and not quiet:
        say("note the detector ran elsewhere: its scores were read again, so this reproduces the evaluation only")
    for item in changed:
        say(f"{'FAIL' if item.fails else 'note'} {item.text}")
    for row in rows:
        if row.holds is False or not quiet:
            say(f"{ {True: 'ok  ', False: 'FAIL', None: 'n/a '}[row.holds] } {row.name}: {row.text}")
    if not holds and all(row.holds is not False for row in rows) and not changed:
        say("FAIL no headline metric is a number, so nothing was reproduced")
    return holds


@anomaly.command()
@click.option(
    "--config", "config_file", type=click.Path(), required=True, help="The evaluation (adjudge anomaly init)."
)
@click.option("--check-code", "code", multiple=True, help="Code to scan for leaks; repeat.")
@click.option("--out", type=PATH, required=True, help="Run directory.")
@click.option("--force", is_flag=True, help="Replace an existing run at --out.")
@click.option("--trust-code", is_flag=True, help="Import the detector of your own once more for the reproduction.")
def checklist(config_file: str, code: tuple[str, ...], out: Path, force: bool, trust_code: bool) -> int:
    """Evaluate, scan the code, reproduce, and print the reviewer's checklist.

    Exits 0 when every line passes, 1 when one is open or failed, 3 when the result is INVALID.
    """
    from adjudge.report.contracts import contracts
    from adjudge.runs.run import Run

    settings = configuration(config_file, {"code": code})
    flags = {**dict.fromkeys(RUN_FLAGS), "out": out, "force": force, "gates": (), "quiet": True, "report": True}
    exit_code = _evaluate(settings, flags)
    if exit_code == 0:
        _reproduced(out, 0.02, None, trust_code=trust_code, quiet=True)
    named = [(f"{item['name']}: " if item["name"] else "", item) for item in contracts(Run(out))]
    lines = [(name, line) for name, item in named for line in item["checklist"]]
    for name, line in lines:
        command = f" ({line['closed_by']})" if line["closed_by"] else ""
        say(f"{line['outcome']:<8}{name}{line['line']}{command}", err=False)
    for name, item in named:
        say(f"{name}{item['sentence']}", err=False)
    return exit_code or (0 if all(line["outcome"] == "pass" for _, line in lines) else 1)
