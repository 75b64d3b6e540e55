"""The numbers of a consistency run: agreement, finals, red flags, the fix list and the table of disagreements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.evidence.rule import Layout
from adjudge.evidence.vocabulary import OUTCOMES
from adjudge.protocols.base import Measured, Named
from adjudge.protocols.consistency import charts, encoding
from adjudge.protocols.consistency.comparable import COMPARABLE, DATASET_COLUMNS
from adjudge.protocols.consistency.config import ConsistencyConfig
from adjudge.protocols.consistency.counts import FIXES, LISTED, Partial, dataset_digest, merge
from adjudge.protocols.consistency.policy import LABELS, REJECT
from adjudge.protocols.consistency.sections import pair_sections
from adjudge.stats import agreement
from adjudge.stats.estimate import Estimate, Metric, count, share
from adjudge.stats.proportions import wilson
from adjudge.verdict.decision import DecisionTable

_WILSON = "Wilson"
_NO_ITEMS = "without items that both rated"
_CONSTANT = "1 − Pe = 0: both gave one and the same label throughout"


def _kappa(name: str, formula: str, interval: str = "analytic", *, headline: bool = False) -> Metric:
    return Metric(
        name, "", "", -1.0, 1.0, "higher", formula=formula, interval=interval, null=_CONSTANT, headline=headline
    )


def _share(name: str, formula: str, null: str = _NO_ITEMS, **more: Any) -> Metric:
    return share(name, formula=formula, null=null, **{"interval": _WILSON, **more})


METRICS = (
    _share("ship_rate", "items whose final verdict ships them ÷ items", better=None, headline=True),
    _share("percent_agreement", "items on which both give the same label ÷ items", headline=True),
    _kappa("kappa", "(Po − Pe) ÷ (1 − Pe): Po agreement, Pe Σ of the products of both raters' shares", headline=True),
    _kappa("kappa_bootstrap", "the same κ", "bootstrap over items"),
    _kappa("ac1", "(Po − Pe) ÷ (1 − Pe) with Pe = Σ π(1 − π) ÷ (q − 1) over the q labels", headline=True),
    _kappa(
        "pabak",
        "(q·Po − 1) ÷ (q − 1): κ as if every label were equally frequent",
        "Wilson of the agreement",
        headline=True,
    ),
    _kappa("kappa_linear", "κ in which a disagreement weighs |i − j|"),
    _kappa("kappa_quadratic", "κ in which a disagreement weighs (i − j)²"),
    _share(
        "constant_rater_*",
        "the agreement that one constant label reaches with this rater",
        title="constant rater against the {}",
        better=None,
    ),
    _share("abstain_rate", "items on which either validator abstains ÷ items", better="lower", headline=True),
    _share("*_abstain_rate", "items on which this validator abstains ÷ items", better="lower"),
    _share("paired_share", "items that both labelled ÷ items that either labelled", "without items"),
    count(
        "shipped_with_red_flag",
        headline=True,
        formula="shipped items with a red flag",
        interval="none: counted",
        null="no item carries a flag",
    ),
    count(
        "shipped_with_bad_citations",
        formula="shipped items with a citation that does not hold",
        interval="none: counted",
    ),
    _share(
        "label_agreement",
        "2 · items both give the label ÷ (times the first + times the second gives it)",
        "neither rater used the label",
        interval="Wilson with a design effect of 2",
    ),
    *(
        Metric(name, low=-1.0, high=1.0, formula=formula, interval="none: descriptive", null=_NO_ITEMS)
        for name, formula in (
            ("prevalence_index", "(uses of the label by both − n) ÷ n"),
            ("bias_index", "(uses by the first − uses by the second) ÷ n"),
        )
    ),
    _share("unanimous_rate", "items on which all raters agree ÷ items with two or more", headline=True),
    *(
        _kappa(name, formula, "bootstrap over items", headline=True)
        for name, formula in (
            ("fleiss_kappa", "mean agreement of pairs beyond Σ of squared label shares"),
            ("krippendorff_alpha", "1 − observed ÷ expected disagreement, with missing ratings"),
        )
    ),
    *(
        _share(
            name,
            f"{kind}s of the reference that the judge calls so ÷ {kind}s",
            f"the reference has no {kind}",
            headline=True,
        )
        for name, kind in (("sensitivity", "positive"), ("specificity", "negative"))
    ),
    _share("apparent_pass_rate", "items the judge passes ÷ items", "without items", better=None),
    _share(
        "corrected_pass_rate",
        "(apparent + specificity − 1) ÷ (sensitivity + specificity − 1), kept within 0 and 1",
        "the judge does no better than chance",
        interval="Lang and Reiczigel",
        better=None,
        headline=True,
    ),
)

_SHARES = {
    "abstain_rate": "either_abstains",
    "scholar_abstain_rate": "scholar_abstains",
    "auditor_abstain_rate": "auditor_abstains",
    "ship_rate": "shipped",
}
"""Shares of the items that both labelled, and what is counted for each."""
TSV = "consistency_disagreements.tsv"
HEADER = ("qid", "scholar", "auditor", "final", "why", "scholar_reason", "auditor_reason")
_TSV_ROWS = 8192
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def finish(partials: Sequence[Partial], table: DecisionTable, layout: Layout, config: ConsistencyConfig) -> Measured:
    """All numbers, from the partials in order."""
    whole = merge(partials)
    reasons = (*table.reasons, *encoding.STATUSES[1:])
    ships = {row.why for row in table.rows if row.final != REJECT}
    n, counts = whole.n, whole.counts
    unpaired = sum(_status(whole, status) for status in ("only_scholar", "only_auditor", "bad_row"))
    named = two_raters(whole.confusion, LABELS, seed=config.seed, resamples=config.resamples)
    named += [
        *(Named(name, "", wilson(counts[part], n)) for name, part in _SHARES.items()),
        Named("paired_share", "", wilson(n, n + unpaired)),
        Named("shipped_with_red_flag", "", _red_flags(whole)),
        Named("shipped_with_bad_citations", "", _count(counts["shipped_with_bad_citations"], n)),
    ]
    value = {name: estimate.value for name, where, estimate in named if not where}
    finals = {why: int(count) for why, count in zip(reasons, whole.finals, strict=True) if why not in encoding.STATUSES}
    disagreements = n - int(np.trace(whole.confusion))
    hygiene = _hygiene(whole, layout)
    top = {
        "n": n,
        **{name: value[name] for name in ("percent_agreement", "kappa", "abstain_rate")},
        "disagreements": disagreements,
        "policy": table.name,
        "finals_by_why": finals,
        "agreed_valid": {
            "n": counts["agreed_valid"],
            "rejected_by_red_flag": counts["agreed_valid_rejected_by_red_flag"],
            "rejected_by_citations": counts["agreed_valid_rejected_by_citations"],
            "examples": whole.examples["dangerous"],
        },
        "confusion": confusion_table(whole.confusion, LABELS),
        "unmatched": {
            "scholar": _listed(whole, "only_scholar"),
            "auditor": _listed(whole, "only_auditor"),
            "answers": _listed(whole, "unknown_answer"),
        },
        "bad_rows": _bad_rows(whole),
        "hygiene": hygiene,
        "votes_reduced": {"reducer": "strict_majority", "items": counts["votes_reduced"]},
        "fix_list": _fix_list(whole),
        **({} if config.pairs or config.answers else {"not_checked": ["flags"]}),
        "comparable": COMPARABLE,
        "dataset_columns": list(DATASET_COLUMNS),
    }
    return Measured(
        estimates=named,
        metrics={**value, "n": n, "disagreements": disagreements}
        | {f"finals.{why}": count for why, count in finals.items()},
        top=top,
        charts=[
            charts.confusion(whole.confusion, LABELS, "scholar", "auditor"),
            charts.by_label(named, LABELS),
            charts.by_reason(finals, ships),
        ],
        notes=_notes(whole),
        sections=pair_sections(whole, table, hygiene, layout),
        digests={"dataset": dataset_digest(whole.digests)},
        files={TSV: tsv(whole)},
        one_model=True,
    )


def two_raters(
    matrix: Any, labels: Sequence[str], *, seed: int, resamples: int, ordered: bool = False, where: str = ""
) -> list[Named]:
    """Every agreement measure of two raters; where one label prevails κ collapses, and the others show it."""
    stream = f"{where}/kappa" if where else "kappa"
    drawing: dict[str, Any] = {"seed": seed, "stream": stream, "resamples": resamples}
    first, second = agreement.constant_rater(matrix)
    estimates = {
        "percent_agreement": agreement.percent_agreement(matrix),
        "kappa": agreement.cohen_kappa(matrix),
        "kappa_bootstrap": agreement.cohen_kappa_bootstrap(matrix, **drawing),
        "ac1": agreement.gwet_ac1(matrix),
        "pabak": agreement.pabak(matrix),
        "constant_rater_first": first,
        "constant_rater_second": second,
    }
    if ordered:
        estimates["kappa_linear"] = agreement.cohen_kappa(matrix, weights="linear")
        estimates["kappa_quadratic"] = agreement.cohen_kappa(matrix, weights="quadratic")
    named = [Named(name, where, estimate) for name, estimate in estimates.items()]
    if where:
        return named
    n = int(np.asarray(matrix).sum())
    for label, of_label in zip(labels, agreement.label_agreement(matrix), strict=True):
        place = f"label={label}"
        named.append(Named("label_agreement", place, of_label.agreement))
        for name, number in (("prevalence_index", of_label.prevalence_index), ("bias_index", of_label.bias_index)):
            plain = Estimate.null("no items") if number is None else Estimate(value=number, n=n, method="descriptive")
            named.append(Named(name, place, plain))
    return named


def confusion_table(matrix: Any, labels: Sequence[str]) -> dict[str, dict[str, int]]:
    """Counts by the first rater's label, then the second's."""
    return {one: {two: int(matrix[i, j]) for j, two in enumerate(labels)} for i, one in enumerate(labels)}


def tsv(whole: Partial) -> bytes:
    """The disagreements, one a line; tabs, line ends and backslashes inside a cell are escaped."""
    pieces = whole.rows.combine_chunks().to_batches(max_chunksize=_TSV_ROWS)
    return b"".join([("\t".join(HEADER) + "\n").encode(), *map(_lines, pieces)])


def _lines(rows: pa.RecordBatch) -> bytes:
    cells = [column.fill_null("") for column in rows.columns[: len(HEADER)]]
    for sign, written in _ESCAPES.items():
        cells = [pc.replace_substring(column, sign, written) for column in cells]
    lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*cells, "\t"), "\n", "")
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines), "")
    text: bytes = joined[0].as_buffer().to_pybytes()
    return text


def _count(count: int, n: int) -> Estimate:
    return Estimate(value=float(count), n=n, method="count") if n else Estimate.null("no items")


def _listed(whole: Partial, status: str) -> dict[str, Any]:
    count, names = _status(whole, status), [name for name, _ in whole.listed[status]]
    return {"count": count, "listed": names, "not_listed": count - len(names)}


def _red_flags(whole: Partial) -> Estimate:
    """How many items ship with a red flag; without a flag on any item nobody knows."""
    if whole.n and not whole.counts["with_flags"]:
        return Estimate.null("no item carries a flag, so nobody knows whether what ships is clean")
    return _count(whole.counts["shipped_with_red_flag"], whole.n)


def _status(whole: Partial, status: str) -> int:
    """How many items have this status."""
    return int(whole.status[encoding.STATUSES.index(status)])


def _bad_rows(whole: Partial) -> dict[str, Any]:
    """Every row that could not be used, by its place."""
    lines = sorted(line.partition(": ") for _, note in whole.listed["bad_row"] for line in note.split("\n"))[:LISTED]
    rows = [{"at": at, "what": what} for at, _, what in lines]
    return {"count": whole.counts["bad_rows"], "listed": rows, "not_listed": whole.counts["bad_rows"] - len(rows)}


def _hygiene(whole: Partial, layout: Layout) -> dict[str, dict[str, int]]:
    """Outcomes of every rule over all its atoms, and how often each of its codes failed."""
    outcomes: dict[str, dict[str, int]] = {}
    for rule in layout.rules:
        positions = layout.positions_of(rule["code"])
        total = whole.outcomes[positions].sum(axis=0)
        outcomes[rule["code"]] = {name: int(count) for name, count in zip(OUTCOMES, total, strict=True)}
        for variant in rule["variants"]:
            outcomes[rule["code"]][variant["code"]] = whole.codes[variant["code"]]
    return outcomes


def _fix_list(whole: Partial) -> list[dict[str, Any]]:
    """What to repair first: hard flags, then template and schema drift, then the retriever."""
    what = (
        "provenance or constraints are violated: nothing else counts",
        "the refusal token, its citations, the constraints echo or the row itself is not as agreed",
        "citations out of scope, or only one agent finds the answer in the context",
    )
    bad = {"template_or_schema_drift": _status(whole, "bad_row")}
    return [
        {"kind": kind, "items": count, "what": text, "examples": whole.examples[kind]}
        for kind, text in zip(FIXES, what, strict=True)
        if (count := whole.counts[kind] + bad.get(kind, 0))
    ]


def _notes(whole: Partial) -> list[str]:
    notes = []
    n, without = whole.n, whole.counts["without_answer"]
    if without:
        share = "NONE OF THE ITEMS HAS" if without == n else f"{without} OF {n} ITEMS DO NOT HAVE"
        notes.append(
            f"{share} AN ANSWER OR FLAGS: the hard-flag and citation rules were not applied there, so a red flag "
            "cannot stop them (--answers FILE gives answer_json, retrieved_ids and flags)"
        )
    for status, what in (
        ("only_scholar", "only the scholar labelled"),
        ("only_auditor", "only the auditor labelled"),
        ("unknown_answer", "have an answer, but no label"),
        ("bad_row", "have a row that could not be used"),
    ):
        if count := _status(whole, status):
            listed = ", ".join(name for name, _ in whole.listed[status][:5])
            notes.append(f"{count} {what}: {listed}{' …' if count > 5 else ''}; they are in no share")
    dangerous = whole.counts["agreed_valid_rejected_by_red_flag"]
    if dangerous:
        notes.append(f"{dangerous} items that both agents call VALID are rejected by a red flag")
    if n == 0:
        notes.append("no item was labelled by both agents")
    if any(len(rows) == LISTED for rows in whole.listed.values()):
        notes.append(f"lists are cut at {LISTED}; samples.parquet has all")
    return notes
