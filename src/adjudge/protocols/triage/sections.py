"""The tables that reports show beside a triage run's estimates: what people look for and no single number says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from adjudge.protocols.base import Named
from adjudge.protocols.triage.batch import ANSWERS, COMPONENTS
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.counts import Partial
from adjudge.protocols.triage.latency import QUANTILES, WHOLE, in_words, times_by_cache
from adjudge.protocols.triage.samples import answers
from adjudge.runs.section import Cell, Column, Section
from adjudge.stats import exact
from adjudge.stats.estimate import Estimate

_VALUES_SHOWN, _FEW = 3, 3
Block = Mapping[str, Any]


def sections(
    whole: Partial, configurations: Mapping[str, Block], estimates: Sequence[Named], config: TriageConfig
) -> list[Section]:
    """Every table that has a row, in the order of the report."""
    of = {(named.slice.removeprefix("configuration="), named.name): named.estimate for named in estimates}
    tables = [
        _short(configurations, of, config),
        *_operating_point(configurations, config),
        _both_readings(configurations, of, config),
        _prevalence(configurations, config),
        _confusion(whole, config),
        _trials(configurations, of, config),
        *_latency(configurations),
        _facts(configurations),
        _provenance(configurations),
        _every_mean(configurations),
    ]
    return [table for table in tables if table is not None and table.rows]


def _short(
    configurations: Mapping[str, Block], of: Mapping[tuple[str, str], Estimate], config: TriageConfig
) -> Section:
    p, n = config.classes()
    columns = {
        "right": "accuracy",
        "coverage": "coverage",
        "right where it answers": "accuracy_answered",
        f"{p}s that slip": f"{p}_slip_rate",
        f"{n}s flagged": f"{n}_false_flag_rate",
    }
    return Section(
        name="in_short",
        title="In short",
        note=f"Shares of all samples with 95 % intervals; {p}s that slip are of all {p}s, {n}s flagged of all {n}s.",
        columns=["configuration", *(Column(title, "%") for title in columns)],
        rows=[[name, *(of.get((name, metric)) for metric in columns.values())] for name in configurations],
        place="first",
        terminal=0,
    )


def _both_readings(
    configurations: Mapping[str, Block], of: Mapping[tuple[str, str], Estimate], config: TriageConfig
) -> Section:
    p, n = config.classes()
    readings = {
        "right": ("accuracy", "accuracy_answered", False),
        f"{p}s caught": (f"{p}_catch_rate", f"recall_{p}", False),
        f"{p}s that slip": (f"{p}_slip_rate", f"recall_{p}", True),
        f"{n}s passed": (f"{n}_pass_rate", f"recall_{n}", False),
        f"{n}s flagged": (f"{n}_false_flag_rate", f"recall_{n}", True),
        "balanced accuracy": ("balanced_accuracy_all", "balanced_accuracy", False),
    }
    rows: list[Sequence[Cell]] = []
    for name in configurations:
        for title, (over_all, answered, is_rest) in readings.items():
            among = of.get((name, answered))
            among = _rest(among) if is_rest else among
            rows.append([name, title, of.get((name, over_all)), among, of.get((name, "coverage"))])
    return Section(
        name="readings",
        title="Every rate in both readings",
        note="Over all samples an abstention, an error and a missing answer count as no answer; among the answered they are left out.",
        columns=[
            "configuration",
            "rate",
            *(Column(title, "%") for title in ("over all", "among answered", "coverage")),
        ],
        rows=rows,
        terminal=12 if len(configurations) < _FEW else 0,
    )


def _rest(share: Estimate | None) -> Estimate | None:
    """What is missing to 1 of an estimated share."""
    if share is None or share.value is None:
        return share
    low, high = (None if end is None else 1.0 - end for end in (share.high, share.low))
    return msgspec.structs.replace(share, value=1.0 - share.value, low=low, high=high)


def _operating_point(configurations: Mapping[str, Block], config: TriageConfig) -> Iterator[Section]:
    """The threshold of each configuration and what it makes of the test: means over the trials, then each trial."""
    if config.operating is None:
        return
    p, _ = config.classes()
    by_cost = config.costs is not None
    guaranteed = Column("cost a sample") if by_cost else Column("risk, at most", "%")
    target = "" if config.target_risk is None else f", for a target of {100 * config.target_risk:g} %"
    rows: list[Sequence[Cell]] = []
    for name, block in configurations.items():
        point, trials = config.operating.get(name) or {}, list(block["per_trial"].values())
        applied = [values["operating_point"] for values in trials]
        if applied[0]["threshold"] is None:
            rows.append([name, *[None] * 8, applied[0]["why"]])
            continue
        answered, kept = (sum(values["answered"] for values in part) for part in (trials, applied))
        rows.append(
            [
                name,
                applied[0]["threshold"],
                _mean([values["cost"] for values in applied]) if by_cost else point.get("bound"),
                _mean([values["error_answered"]["value"] for values in applied]),
                _mean([1.0 - values["accuracy_answered"] if values["answered"] else None for values in trials]),
                _mean([values[f"{p}_slip_rate"]["value"] for values in applied]),
                _mean([values[f"{p}_slip_rate"] for values in trials]),
                _mean([values["coverage"]["value"] for values in applied]),
                _mean([values["coverage"] for values in trials]),
                f"{answered - kept:,} of {answered:,} answers to review",
            ]
        )
    kind = "the least expected cost" if by_cost else f"{config.risk} rate under a target"
    yield Section(
        name="operating_point",
        title=f"Operating point: {kind}",
        note=f"Answer at the threshold and above; it was chosen on the calibration files alone{target}. The risk there is at most "
        "this, with 95 % confidence; beside it what was observed in these files, and before, without a threshold.",
        columns=[
            *("configuration", "threshold", guaranteed, Column("error", "%"), Column("before", "%")),
            *(Column(f"{p} slips", "%"), Column("before", "%"), Column("coverage", "%"), Column("before", "%")),
            "what changes",
        ],
        rows=rows,
    )
    several = any(len(block["per_trial"]) > 1 for block in configurations.values())
    keys = ("error_answered", f"{p}_slip_rate", "coverage")
    yield Section(
        name="operating_point_trials",
        title="Operating point, trial by trial",
        columns=[
            *("configuration", "trial", "threshold"),
            *(Column(title, "%") for title in ("error", f"{p} slip rate", "coverage")),
        ],
        rows=[
            [name, int(trial), point["threshold"], *(_estimate(point.get(key)) for key in keys)]
            for name, block in configurations.items()
            for trial, point in ((trial, values["operating_point"]) for trial, values in block["per_trial"].items())
        ],
        place="more" if several else "results",
        terminal=0 if several else 12,
    )


def _prevalence(configurations: Mapping[str, Block], config: TriageConfig) -> Section | None:
    if config.prevalence is None:
        return None
    share = f"{100 * config.prevalence:g} %"
    keys = [f"precision_{label}{reading}" for label in config.classes() for reading in ("", "_at_prevalence")]
    titles = [f"{label}, {where}" for label in config.classes() for where in ("these files", f"at {share}")]
    return Section(
        name="prevalence",
        title=f"Precision where {share} of the samples are {config.positive}",
        note="By Bayes' rule from the two recalls among the answered, the mean over trials; beside it the precision in these files.",
        columns=["configuration", *(Column(title, "%") for title in titles)],
        rows=[
            [name, *(_mean([values[key] for values in block["per_trial"].values()]) for key in keys)]
            for name, block in configurations.items()
        ],
    )


def _confusion(whole: Partial, config: TriageConfig) -> Section:
    classes = config.classes()
    rows: list[Sequence[Cell]] = []
    for name in sorted(whole.configurations):
        counts = whole.blocks[name, "", ""].total().reshape(2, ANSWERS)
        rows += [[name, label, *row.tolist(), int(row.sum())] for label, row in zip(classes, counts, strict=True)]
    return Section(
        name="confusion_table",
        title="Three-way confusion",
        note="Records by label and what was answered, over all trials.",
        columns=["configuration", "label", *answers(classes), "n"],
        rows=rows,
    )


def _trials(
    configurations: Mapping[str, Block], of: Mapping[tuple[str, str], Estimate], config: TriageConfig
) -> Section:
    metrics = {
        "accuracy": "accuracy",
        "coverage": "coverage",
        f"{config.positive} slips": f"{config.positive}_slip_rate",
    }
    rows = [
        [
            *(name, block["summary"]["trials"], of.get((name, "flip_rate"))),
            *(block["summary"][kind][metric] for metric in metrics.values() for kind in ("mean", "std")),
        ]
        for name, block in configurations.items()
        if block["summary"]["trials"] > 1
    ]
    return Section(
        name="trials",
        title="Over the trials: mean and standard deviation",
        note="The flip rate is the share of samples whose answer is not the same in all trials.",
        columns=[
            *("configuration", "trials", Column("flip rate", "%")),
            *(Column(title, "%") for metric in metrics for title in (metric, "sd")),
        ],
        rows=rows,
        terminal=6,
    )


def _every_mean(configurations: Mapping[str, Block]) -> Section:
    rows = [
        [name, metric.replace("_", " "), mean, block["summary"]["std"][metric]]
        for name, block in configurations.items()
        if block["summary"]["trials"] > 1
        for metric, mean in block["summary"]["mean"].items()
    ]
    return Section(
        name="means",
        title="Every mean over the trials",
        columns=["configuration", "metric", "mean", "sd"],
        rows=rows,
        place="more",
    )


def _latency(configurations: Mapping[str, Block]) -> Iterator[Section]:
    """The total time of each cache state, and the components below it."""
    legend = (
        "Seconds. p95 is the smallest time that 95 % of the records did not exceed (quantile type 1). A hit was answered out of a "
        "cache, a miss was not; where a record does not say, its state is unknown, and such latencies are not compared."
    )
    numbers = ["n", *(f"{name}, s" for name in ("mean", *(f"p{share}" for share in QUANTILES)))]
    rows: dict[bool, list[Sequence[Cell]]] = {True: [], False: []}
    for name, state, times in times_by_cache(configurations):
        whole = next((part for part in WHOLE if times[part]["n"]), None)
        for part in COMPONENTS:
            if times[part]["n"]:
                values = [times[part][key] for key in ("n", "mean", *(f"p{share}" for share in QUANTILES))]
                rows[part == whole].append([name, state, in_words(part), *values])
    head = ["configuration", "cache", "time", *numbers]
    yield Section(
        name="latency", title="Latency by cache state", note=legend, columns=head, rows=rows[True], terminal=8
    )
    yield Section(
        name="latency_components",
        title="Latency by component",
        note=legend,
        columns=["configuration", "cache", "component", *numbers],
        rows=rows[False],
        place="more",
    )


def _provenance(configurations: Mapping[str, Block]) -> Section:
    """How many records say what, of each configuration."""
    rows = []
    for name, block in configurations.items():
        carried, records = block["provenance"]["carried"], block["provenance"]["records"]
        for item, count in carried.items():
            words = "all" if count == records else "none" if not count else f"{count:,} of {records:,}"
            rows.append([name, item, words])
    return Section(
        name="provenance_carried",
        title="What the records say about how they came to be",
        columns=["configuration", "item", "records that carry it"],
        rows=rows,
        place="more",
    )


def _facts(configurations: Mapping[str, Block]) -> Section:
    """What the records say: models, temperature, prompts and settings, with how many say it."""
    rows = []
    for name, block in configurations.items():
        provenance = block["provenance"]
        for what in ("models", "temperatures", "prompts", "run_configs"):
            listed = [entry for entry in provenance.get(what, ()) if entry["value"] is not None]
            title = what.replace("_", " ")
            rows += [[name, title, str(entry["value"]), entry["records"]] for entry in listed[:_VALUES_SHOWN]]
            rest = (provenance["prompts_distinct"] if what == "prompts" else len(listed)) - _VALUES_SHOWN
            if rest > 0:
                rows.append([name, title, f"and {rest:,} more", None])
    return Section(
        name="recorded",
        title="Recorded models, settings and prompts",
        columns=["configuration", "what", "value", "records"],
        rows=rows,
        place="more",
    )


def _estimate(data: dict[str, Any] | None) -> Estimate | None:
    return None if data is None else Estimate.from_dict(data)


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean over trials; nothing where a trial has no value."""
    known = [value for value in values if value is not None]
    return exact.mean_of(known) if known and len(known) == len(values) else None
