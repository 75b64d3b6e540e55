"""What a triage run says in words before its numbers: what was judged, what is missing, what to read with care."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjudge.protocols.triage.batch import ANSWERS, CONFIDENCE_STATES
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.counts import Configuration, Ints, Partial
from adjudge.protocols.triage.facts import changed

FAR_FROM_BALANCED = 0.2


def judged(whole: Partial) -> str:
    """How the records come about, in words: 2 models × 2 modes × 3 trials on 400 samples."""
    setups = [name.rpartition("|") for name in whole.configurations]
    trials = {trial for block in whole.blocks.values() for trial in block.counts}
    sizes = (
        ({model for model, _, _ in setups}, "model"),
        ({mode for _, _, mode in setups}, "mode"),
        (trials, "trial"),
    )
    parts = [f"{len(values)} {noun}s" for values, noun in sizes if len(values) > 1]
    samples = f"{whole.samples:,} sample{'' if whole.samples == 1 else 's'}"
    return f"{' × '.join(parts)} on {samples}" if parts else samples


def _lacking(provenances: dict[str, dict[str, Any]]) -> list[str]:
    """What no record of a configuration says about how it came to be, and what only some say; equal lists are one note."""
    nowhere: dict[str, list[str]] = {}
    in_part: dict[str, list[str]] = {}
    for name, provenance in provenances.items():
        records, carried = provenance["records"], provenance["carried"]
        absent = [item for item, count in carried.items() if records and not count]
        if absent:
            nowhere.setdefault(", ".join(absent), []).append(name)
        some = {item: count for item, count in carried.items() if 0 < count < records}
        if some:
            least, most = min(some.values()), max(some.values())
            counts = f"{least:,}" if least == most else f"{least:,} to {most:,}"
            in_part.setdefault(", ".join(some), []).append(f"{name} ({counts} of {records:,})")
    return [
        *(f"no record of {', '.join(names)} carries {items}" for items, names in nowhere.items()),
        *(f"only some records carry {items}: {', '.join(names)}" for items, names in in_part.items()),
    ]


def _of_one(name: str, counted: Configuration) -> list[str]:
    """What is to be said of one configuration alone."""
    texts = []
    states = sum(counted.states.values(), start=np.zeros(len(CONFIDENCE_STATES), dtype=np.int64))
    bad = [f"{count} {state}" for state, count in zip(CONFIDENCE_STATES[1:], states.tolist()[1:], strict=True) if count]
    if bad:
        texts.append(f"{name}: confidences not used for calibration: {', '.join(bad)}")
    if counted.possibly_cached:
        texts.append(
            f"{name}: {counted.possibly_cached} of {counted.received} records do not say whether a cache answered and took "
            "under 250 ms of vision time: possibly cached"
        )
    return texts + [f"{name}: {note}" for note in changed(counted)]


def notes(whole: Partial, config: TriageConfig, every: Ints, configurations: dict[str, Any]) -> list[str]:
    """Every note of a run, in the order in which it is read."""
    texts = []
    p, n = config.classes()
    of_p, of_n = int(every[:ANSWERS].sum()), int(every[ANSWERS:].sum())
    for name, count in ((p, of_p), (n, of_n)):
        if not count:
            texts.append(f"no record is labelled {name!r}: every rate over that class is null")
    if of_p and of_n and min(of_p, of_n) < FAR_FROM_BALANCED * (of_p + of_n) and config.prevalence is None:
        texts.append(
            f"the classes are far from balanced ({of_p} {p}, {of_n} {n}) and no --prevalence is given: "
            "precision and accuracy hold for this mix only"
        )
    on_single = {name: _of_one(name, counted) for name, counted in sorted(whole.configurations.items())}
    texts += [text for name, of_one in on_single.items() if name in configurations for text in of_one]
    left_out = sum(len(of_one) for name, of_one in on_single.items() if name not in configurations)
    if len(whole.configurations) > len(configurations):
        what = (
            "sections, charts, resampled intervals, the key `configurations` of metrics.json and notes on single ones"
        )
        texts.append(
            f"{what} are of the first {len(configurations)} of {len(whole.configurations):,} configurations by name; every one has "
            f"its estimates. {left_out:,} notes on single ones are left out"
        )
    texts += _lacking({name: block["provenance"] for name, block in configurations.items()})
    edges = [
        name
        for name, block in configurations.items()
        if any(values["ece"] != values["ece_right_closed"] for values in block["per_trial"].values())
    ]
    if edges:
        texts.append(
            "confidences sit on bin edges, so ECE depends on which side of a bin is closed: compare ece and "
            f"ece_right_closed of {', '.join(edges)}"
        )
    return texts
