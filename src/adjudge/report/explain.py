"""One sample explained: the verdict, the reasons, the checklist, the evidence, the scores, and the answer itself."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adjudge.errors import AdjudgeError
from adjudge.evidence.atoms import Atom
from adjudge.report import numbers, view
from adjudge.report.numbers import WIDTH, line, shell, short_lines, table, terminal
from adjudge.report.samples import output_of, scores, shown_facts, worst_first
from adjudge.runs.run import Run

_OPEN, _CLOSE = "⟦", "⟧"
_AROUND = 600
_PLACE = frozenset({"part", "row", "sample", "model", "bucket", "verdict"})
_SHOWN_ELSEWHERE = frozenset(
    {
        "agent_output",
        "bucket",
        "cites",
        "evidence",
        "evidence_pack",
        "gating",
        "model_name",
        "optional_scores",
        "protocol_result",
        "raw_response",
        "rubric",
        "sample_id",
        "shown",
        "tables",
        "trace",
        "verdict",
    }
)
_STATUS = {"pass": "pass", "fail": "FAIL", "unknown": "unknown"}


def explain(run: Run, sample: str, model: str | None = None, *, everything: bool = False) -> str:
    """The explanation of one sample; with several models and none named, every verdict with its first reason."""
    rows = run.find(sample, model)
    if len(rows) > 1:
        return _overview(run, rows)
    row = rows[0]
    atoms = run.atoms(row)
    record = _record(run, row)
    blocks = [
        _title(run, row),
        _verdict(row, record, atoms),
        _attribution(record),
        _judge(record),
        _scores(record),
        _shown(record),
        *_tables(record),
        _facts(record, row),
        _checklist(record, everything=everything),
        _failed(atoms),
        _errors(atoms),
        _not_applicable(atoms),
        _passed(atoms, everything=everything),
        _answer(run, row, record, everything=everything),
        _trace(run, row, record),
    ]
    return "\n\n".join(block for block in blocks if block)


def _overview(run: Run, rows: Sequence[dict[str, Any]]) -> str:
    body = []
    for row, model in zip(rows, short_lines([row["model"] for row in rows], 32), strict=True):
        reasons = [item["reason"] for item in _reasons(_record(run, row))]
        first = next(iter(reasons or [atom.message for atom in worst_first(run.atoms(row))]), "")
        body.append([model, str(row["verdict"]), str(row["bucket"]), line(str(first), 50)])
    shown = table(["model", "verdict", "bucket", "first reason"], body, left=4)
    return (
        f"Sample {line(rows[0]['sample'])} · {view.title(run)}\n\n{shown}\n\n"
        f"The whole evidence of one: adjudge explain {run.path} {shell(rows[0]['sample'])} --model {shell(rows[0]['model'])}"
    )


def _record(run: Run, row: Mapping[str, Any]) -> dict[str, Any]:
    """The protocol's own view of a sample; a protocol without one is explained by its atoms alone."""
    try:
        return run.record(row["sample"], row["model"])
    except AdjudgeError:
        return {}


def _title(run: Run, row: Mapping[str, Any]) -> str:
    text = f"Sample {line(row['sample'])} · model {line(row['model'])} · {view.task_name(run)}"
    return f"{text}\n{'═' * min(len(text), WIDTH)}"


def _verdict(row: Mapping[str, Any], record: Mapping[str, Any], atoms: Sequence[Atom]) -> str:
    lines = [f"Verdict: {str(row['verdict']).upper()}  (bucket: {row['bucket']})"]
    gating = record.get("gating") or {}
    lines += [_wrap(str(reason)) for reason in gating.get("reasons") or ()]
    parsing = (record.get("protocol_result") or {}).get("parsing") or {}
    if parsing.get("error"):
        lines.append(_wrap(f"The answer could not be read: {parsing['error']}"))
    cites = (record.get("agent_output") or record).get("cites")
    if isinstance(cites, list):
        lines.append(_wrap(f"Rests on {numbers.count(len(cites))} of {numbers.count(len(atoms))} atoms of evidence."))
    return "\n".join(lines)


def _reasons(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    reasons = (record.get("agent_output") or {}).get("attribution")
    return (
        [item for item in reasons if isinstance(item, dict) and "reason" in item] if isinstance(reasons, list) else []
    )


def _attribution(record: Mapping[str, Any]) -> str:
    reasons = _reasons(record)
    if not reasons:
        return ""
    lines = ["Why, the worst first"]
    for item in reasons:
        times = item.get("count", 1)
        where = f"{item.get('rule', '')}{f', {times} times' if times > 1 else ''}"
        text = f"{item.get('severity', '')}  {item['reason']}  [{where}]"
        lines.append(_wrap(text, first=f"{item.get('rank', ''):>3}. ", rest=5))
        if item.get("words"):
            lines.append(_wrap(f"the judge's words: {item['words']}", first="     ", rest=5))
        if item.get("quote"):
            refused = "does not stand in the answer; its reason is dropped"
            mark = "stands in the answer" if item["quote_verified"] else refused
            lines.append(_wrap(f"quotes “{item['quote']}”, which {mark}", first="     ", rest=5))
    return "\n".join(lines)


def _judge(record: Mapping[str, Any]) -> str:
    """What an agent other than the rules did here: votes, refused answers, quotes."""
    judgement = record.get("agent_output") or {}
    lines = []
    if judgement.get("votes"):
        lines.append(f"votes: {', '.join(judgement['votes'])}")
    if judgement.get("refused"):
        lines.append(f"answers refused: {', '.join(judgement['refused'])}")
    if judgement.get("decided_by") == "rules":
        lines.append("the verdict is the rules' own")
    lines += [
        f"quote “{quote['text']}”: {'stands' if quote['verified'] else 'does not stand'} in the answer"
        for quote in judgement.get("quotes") or ()
    ]
    return "\n".join(["The judge", *(_wrap(text) for text in lines)]) if lines else ""


def _scores(record: Mapping[str, Any]) -> str:
    rows, optional = [[score["label"], score["text"]] for score in scores(record)], record.get("optional_scores")
    lines = [_pairs(rows)] if rows else []
    if isinstance(optional, dict) and optional.get("reason"):
        lines.append(_wrap(f"no score: {optional['reason']}"))
    rubric = record.get("rubric")
    if isinstance(rubric, dict):
        lines.append(_pairs([[view.words(name), _plain(value)] for name, value in rubric.items()]))
    return "Scores\n" + "\n".join(lines) if lines else ""


def _shown(record: Mapping[str, Any]) -> str:
    """What is read beside the verdict; long texts are wrapped."""
    facts = shown_facts(record)
    wide = max((len(fact["label"]) for fact in facts), default=0)
    return "\n".join(_wrap(fact["text"], first=f"    {fact['label'].ljust(wide)}  ", rest=6 + wide) for fact in facts)


def _tables(record: Mapping[str, Any]) -> list[str]:
    """Tables of a protocol's own on one sample, such as a state field by field."""
    blocks = []
    for item in record.get("tables") or ():
        rows = [[_plain(cell) for cell in row] for row in item["rows"]]
        blocks.append(f"{line(item['title'])}\n{table(list(item['columns']), rows)}")
    return blocks


def _facts(record: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """What else the protocol records of a sample: words and numbers, one level deep; without a record, its row."""
    rows = []
    for name, value in (record or {key: item for key, item in row.items() if key not in _PLACE}).items():
        if name in _SHOWN_ELSEWHERE:
            continue
        inner = value.items() if isinstance(value, dict) else [("", value)]
        rows += [
            [view.words(f"{name}.{key}" if key else name), line(_plain(item), 70)]
            for key, item in inner
            if isinstance(item, str | int | float)
        ]
    return "Record\n" + _pairs(rows) if rows else ""


def _plain(value: Any) -> str:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return numbers.number(value)
    return numbers.NOTHING if value is None else line(str(value))


def _pairs(rows: Sequence[Sequence[str]]) -> str:
    wide = max(len(name) for name, _ in rows)
    return "\n".join(f"    {name.ljust(wide)}  {value}" for name, value in rows)


def _checklist(record: Mapping[str, Any], *, everything: bool) -> str:
    items = (record.get("agent_output") or {}).get("checklist")
    if not isinstance(items, list) or not items:
        return ""
    counted = Counter(item["status"] for item in items)
    lines = ["Checklist: " + " · ".join(f"{counted[status]} {status}" for status in _STATUS if counted[status])]
    for item in items:
        mark = _STATUS.get(item["status"], str(item["status"]))
        code = f"  [{item['constraint_id']}]" if everything or item["status"] == "fail" else ""
        lines.append(_wrap(f"{item.get('title') or item['constraint_id']}{code}", first=f"    {mark:<9}", rest=13))
    return "\n".join(lines)


def _failed(atoms: Sequence[Atom]) -> str:
    failed = worst_first(atoms)
    if not failed:
        return f"Evidence: {_counts(atoms)}"
    lines = [f"Evidence: {_counts(atoms)}", "", "  What failed"]
    for atom in failed:
        lines.append(_wrap(f"{atom.severity}  {atom.message}", first="    ", rest=6))
        place = [atom.rule, _moment(atom), _limits(atom)]
        lines.append(_wrap(" · ".join(part for part in place if part), first="      ", rest=6))
        lines.append(_wrap(atom.id, first="      ", rest=6))
    return "\n".join(lines)


def _moment(atom: Atom) -> str:
    """Which step an atom is about, in the rule's own words where it has some."""
    return atom.when or (f"step {atom.step}" if atom.step else "")


def _limits(atom: Atom) -> str:
    low, high, critical_low, critical_high = (
        None if end is None else numbers.number(end)
        for end in map(atom.limits.get, ("low", "high", "critical_low", "critical_high"))
    )
    parts = [f"observed {numbers.number(atom.observed)}"] if atom.observed is not None else []
    if low and high:
        parts.append(f"allowed {low} to {high}")
    elif low or high:
        parts.append(f"allowed from {low}" if low else f"allowed up to {high}")
    beyond = [f"{word} {end}" for word, end in (("below", critical_low), ("above", critical_high)) if end]
    if beyond:
        parts.append("critical " + " or ".join(beyond))
    return ", ".join(parts)


def _counts(atoms: Sequence[Atom]) -> str:
    kinds = {"pass": "passed", "fail": "failed", "not_applicable": "not applicable", "error": "instrument errors"}
    counts = Counter(atom.outcome for atom in atoms)
    parts = [f"{counts[kind]} {word}" for kind, word in kinds.items() if counts[kind]]
    return f"{numbers.count(len(atoms))} atoms, " + ", ".join(parts)


def _errors(atoms: Sequence[Atom]) -> str:
    broken = [atom for atom in atoms if atom.outcome == "error"]
    if not broken:
        return ""
    lines = ["  The instrument failed here, not the model"]
    lines += [_wrap(f"{atom.rule}: {atom.message}", first="    ", rest=6) for atom in broken]
    return "\n".join(lines)


def _not_applicable(atoms: Sequence[Atom]) -> str:
    groups = _grouped(atoms, "not_applicable", lambda atom: atom.why or "no reason given")
    if not groups:
        return ""
    lines = ["  What could not be checked"]
    for reason, members in groups.items():
        counts = Counter(atom.rule for atom in members)
        names = ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in counts.items())
        lines.append(_wrap(f"{len(members)} because {reason}: {names}", first="    ", rest=6))
    return "\n".join(lines)


def _grouped(atoms: Sequence[Atom], outcome: str, key: Callable[[Atom], str]) -> dict[str, list[Atom]]:
    """The atoms of one outcome by a word of theirs, in the order in which the words first appear."""
    groups: dict[str, list[Atom]] = {}
    for atom in atoms:
        if atom.outcome == outcome:
            groups.setdefault(key(atom), []).append(atom)
    return groups


def _passed(atoms: Sequence[Atom], *, everything: bool) -> str:
    families = _grouped(atoms, "pass", lambda atom: atom.family)
    if not families:
        return ""
    if not everything:
        counts = " · ".join(f"{view.words(family)} {len(members)}" for family, members in families.items())
        return "  What passed (--all lists every one)\n" + _wrap(counts, first="    ", rest=4)
    passed = [atom for atom in atoms if atom.outcome == "pass"]
    places = [", ".join(filter(None, (atom.rule, _moment(atom)))) for atom in passed]
    texts = [f"{atom.message}  [{where}]" for atom, where in zip(passed, places, strict=True)]
    return "\n".join(["  What passed", *(_wrap(text, first="    ", rest=6) for text in texts)])


def _answer(run: Run, row: Mapping[str, Any], record: Mapping[str, Any], *, everything: bool) -> str:
    output = output_of(run, row)
    text, characters = output.get("response", record.get("raw_response")), output.get("characters")
    if text is None:
        return "The answer\n    there is none" if "response" in output else ""
    start, end = row.get("start"), row.get("end")
    lines = ["The answer" + _found(record, start, end)]
    if characters is not None and characters > len(text):
        lines.append(f"    (the run keeps {numbers.count(len(text))} of {numbers.count(characters)} characters)")
    marked = isinstance(start, int) and isinstance(end, int) and 0 <= start < end
    around = len(text) if everything else _AROUND
    if marked and start is not None and end is not None:
        before, span, after = text[:start], text[start:end], text[end:]
        shown = _tail(before, around) + _OPEN + _middle(span, 4 * around) + _CLOSE + _head(after, around)
    else:
        shown = _head(text, 4 * around)
    body = terminal(shown) if shown.strip() else "(empty)"
    lines += [f"  │ {part}" for raw in body.split("\n") for part in (textwrap.wrap(raw, WIDTH - 4) or [""])]
    return "\n".join(lines)


def _found(record: Mapping[str, Any], start: Any, end: Any) -> str:
    parsing = (record.get("protocol_result") or {}).get("parsing") or {}
    if not parsing.get("success"):
        return ""
    parts = [f"what was read stands between {_OPEN} and {_CLOSE}: characters {start} to {end}"]
    if parsing.get("method"):
        parts.append(f"found as {parsing['method']}")
    parts.append(f"repaired: {', '.join(parsing['repairs'])}" if parsing.get("repairs") else "not repaired")
    return " (" + ", ".join(parts) + ")"


def _head(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} … {numbers.count(len(text) - limit)} more characters"


def _tail(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{numbers.count(len(text) - limit)} characters before … {text[-limit:]}"


def _middle(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} … {numbers.count(len(text) - 2 * half)} characters … {text[-half:]}"


def _trace(run: Run, row: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    trace = record.get("trace") or {}
    names = ("constraint_lib_version", "config_hash", "evaluator_version")
    digests = ", ".join(f"{name} {trace[name]}" for name in names if trace.get(name))
    place = f"Row {row['row']} of partition {row['part']} in {run.path}"
    return f"{place}\n{digests}" if digests else place


def _wrap(text: str, *, first: str = "    ", rest: int = 4) -> str:
    return textwrap.fill(
        line(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
