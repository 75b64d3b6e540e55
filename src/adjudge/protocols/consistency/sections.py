"""What a reader came for, as tables: what ships and why, dangerous agreements, disagreements, hygiene; raters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.evidence.rule import Layout
from adjudge.protocols.consistency import encoding
from adjudge.protocols.consistency.counts import FIXES, Partial
from adjudge.protocols.consistency.judge import UNPAIRED
from adjudge.protocols.consistency.policy import REJECT
from adjudge.runs.section import Column, Section
from adjudge.stats.estimate import Estimate
from adjudge.verdict.decision import DecisionTable

SHOWN = 200
"""Rows of a long table; the run's files have all."""
_DECIDING = ("pair", "red_flag", "citation", "label")
_MEANING = {
    "hard_flag": "a red flag is raised",
    "citation_out_of_scope": "cites what was not retrieved",
    "citations_unverifiable": "cites without retrieved_ids",
    "auditor_veto": "the auditor does not say VALID",
    "auditor_ok": "the auditor says VALID",
    "agreed_refusal": "both refuse by the token",
    "incoherent_pair": "the scholar objects",
    "only_scholar": "only the scholar labelled it",
    "only_auditor": "only the auditor labelled it",
    "bad_row": "a row of it cannot be used",
    "unknown_answer": "an answer to no labelled item",
}


def pair_sections(
    whole: Partial, table: DecisionTable, hygiene: Mapping[str, Mapping[str, int]], layout: Layout
) -> list[Section]:
    """All tables of a run of pairs, the most important first."""
    return [_what_ships(whole, table), _dangerous(whole), _disagreements(whole), _hygiene(hygiene, layout)]


def _what_ships(whole: Partial, table: DecisionTable) -> Section:
    """Final × why over every item: what ships first, then what is rejected, then what could not be decided."""
    final_of = {row.why: row.final for row in table.rows}
    reasons = (*table.reasons, *encoding.STATUSES[1:])
    total = int(whole.finals.sum())
    rows: list[tuple[str, str, str, int, float | None, int]] = [
        (final_of.get(why, UNPAIRED), why, _MEANING.get(why, ""), count, count / total if total else None, agreed)
        for why, count, agreed in zip(reasons, whole.finals.tolist(), whole.agreed_finals.tolist(), strict=True)
        if count or why in final_of
    ]
    rank = {UNPAIRED: 2, REJECT: 1}
    rows.sort(key=lambda row: (rank.get(row[0], 0), -row[3]))
    ships = sum(count for final, _, _, count, *_ in rows if final not in rank)
    return Section(
        "what_ships",
        f"What ships: {ships:,} of {total:,} items",
        ("final", "why", "", "items", Column("share", "%"), "both VALID"),
        rows,
        note=f"Every item once, decided by the first row of policy {table.name} that fits.",
        place="first",
    )


def _dangerous(whole: Partial) -> Section:
    """Items that both agents call VALID and that do not ship: whoever arbitrates only disagreements ships them."""
    order = {why: place for place, why in enumerate(("hard_flag", "citation_out_of_scope", "citations_unverifiable"))}
    rows = sorted(whole.agreed_rejected, key=lambda row: (order.get(row[1], len(order)), row[0]))
    return Section(
        "dangerous_agreements",
        "Both say VALID, and it does not ship",
        ("qid", "why", "what failed"),
        rows[:SHOWN],
        note="A scorer that arbitrates only disagreements would ship these.",
        place="first",
        terminal=8,
        empty="No item that both call VALID was rejected.",
    )


def _disagreements(whole: Partial) -> Section:
    """Disagreements in the order in which to repair: hard flags, template and schema drift, recall, the rest."""
    words = (*(name.replace("_", " ") for name in FIXES), "labels")
    rows = whole.rows.sort_by([("fix", "ascending"), ("sample", "ascending")]).slice(0, SHOWN).to_pylist()
    return Section(
        "disagreements",
        f"Disagreements: {whole.rows.num_rows:,}",
        ("fix first", "qid", "scholar", "auditor", "final", "scholar's reason", "auditor's reason"),
        [
            (
                words[row["fix"]],
                *(row[name] for name in ("sample", "scholar", "auditor", "verdict")),
                *(row[f"{agent}_reason"] or "" for agent in encoding.AGENTS),
            )
            for row in rows
        ],
        note="In the order of repair: hard flags, template or schema drift, retriever recall, then the labels alone. "
        "Personal data is masked; consistency_disagreements.tsv has all of them.",
        terminal=6,
        empty="The agents agree on every item.",
    )


def _hygiene(hygiene: Mapping[str, Mapping[str, int]], layout: Layout) -> Section:
    """How often each hygiene rule failed, most often first."""
    rows = []
    for rule in layout.rules:
        if rule["family"] in _DECIDING:
            continue
        counts = hygiene[rule["code"]]
        failed, checked = counts["fail"], counts["fail"] + counts["pass"]
        if failed:
            rows.append((rule["title"], rule["code"], failed, checked, failed / checked))
    rows.sort(key=lambda row: (-row[2], row[1]))
    return Section(
        "hygiene",
        "Hygiene: rules that did not hold",
        ("rule", "code", "failed", "checked", Column("share", "%")),
        rows,
        note="Per item, or per agent of an item where the rule is about an agent.",
        empty="Every hygiene rule that could be checked held.",
    )


_JUDGED = ("sensitivity", "specificity", "apparent_pass_rate", "corrected_pass_rate")
Cells = Mapping[tuple[str, str], Estimate]
"""Estimates by name and slice."""


def rater_sections(
    names: Sequence[str], estimates: Cells, reference: str | None, worst: Sequence[Mapping[str, Any]]
) -> list[Section]:
    """Which rater is off: each against the others, every pair, and the items on which they differ most."""
    pairs = {(a, b): _pair(names, a, b) for i, a in enumerate(names) for b in names[i + 1 :]}
    return [
        _raters(names, pairs, estimates, reference),
        Section(
            "pairs_of_raters",
            "Pairs of raters",
            ("first", "second", "items", Column("agreement", "%"), "κ", "AC1"),
            [
                (
                    *(a, b, estimates["percent_agreement", where].n),
                    *(estimates[name, where] for name in ("percent_agreement", "kappa", "ac1")),
                )
                for (a, b), where in pairs.items()
            ],
        ),
        Section(
            "most_disagreement",
            "Items on which the raters differ most",
            ("item", Column("not the most common label", "%"), *names),
            [(entry["item"], entry["share"], *(entry["labels"].get(name, "") for name in names)) for entry in worst],
            place="more",
            terminal=0,
            empty="All raters agree on every item.",
        ),
    ]


def _pair(names: Sequence[str], a: str, b: str) -> str:
    """The slice of a pair of raters; two raters alone are the whole run."""
    return "" if len(names) == 2 else f"raters={a}~{b}"


def _raters(
    names: Sequence[str], pairs: Mapping[tuple[str, str], str], estimates: Cells, reference: str | None
) -> Section:
    """One row a rater, the one that agrees least with the others first."""
    judged = () if reference is None else _JUDGED
    rows = []
    for name in names:
        others = {
            next(iter({a, b} - {name})): estimates["kappa", where] for (a, b), where in pairs.items() if name in (a, b)
        }
        known = {other: e.value for other, e in others.items() if e.value is not None}
        mean = sum(known.values()) / len(known) if known else None
        farthest = min(known, key=lambda other: (known[other], other)) if known else None
        judge = [estimates.get((measure, f"judge={name}")) for measure in judged]
        rows.append((name, mean, farthest, None if farthest is None else others[farthest], *judge))
    rows.sort(key=lambda row: (row[1] is None, row[1] or 0.0, row[0]))
    titles = [Column(measure.removesuffix("_rate").replace("_", " "), "%") for measure in judged]
    against = f" The last columns are each rater against {reference}." if reference is not None else ""
    return Section(
        "raters",
        "Raters, the one that agrees least with the others first",
        ("rater", "mean κ", "farthest from", "κ with it", *titles),
        rows,
        note=f"κ is agreement beyond chance; the mean is over the other raters.{against}",
        place="first",
    )
