"""Ways to alter a run, each with what must be said of it: it is found, or listed under "not checked" by these words."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from adjudge.engine.verify import FROM_INPUT, SETTINGS
from tampering.forge import Inapplicable, edit, edit_table, first_part, fit, other, some

TEXTS = "the raw texts in outputs/"
IDS = "intake.json: the run has no digest"
VERSION = "notes, charts and words, which belong to the version"
PAGE = "the words and figures of report.html"
FIGURES = "the figures of report.html"


@dataclass(frozen=True)
class Way:
    """One way: what is changed, whether the digests are made to fit, and the words that may excuse it."""

    name: str
    apply: Callable[[Path], None]
    listed: tuple[str, ...] = ()
    fits: bool = True

    def __call__(self, run: Path) -> None:
        self.apply(run)
        if self.fits:
            fit(run)


def _at(path: str, value: Callable[[Any], Any]) -> Callable[[Any], None]:
    """A change at a path such as `estimates.0.value`."""

    def change(document: Any) -> None:
        *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
        try:
            for step in steps:
                document = document[step]
            document[last] = value(document[last])
        except (KeyError, IndexError, TypeError):
            raise Inapplicable from None

    return change


def _drop(path: str) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
        try:
            for step in steps:
                document = document[step]
            del document[last]
        except (KeyError, IndexError, TypeError):
            raise Inapplicable from None

    return change


def _number(value: Any) -> Any:
    return 0.5 if value is None else value * 0.9 + 0.01


# Files that are damaged, with digests that do not fit.
def _bytes(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        path = first_part(run, name) if name in {"evidence", "outputs"} else run / name
        if not path.is_file():
            raise Inapplicable
        path.write_bytes(change(path.read_bytes()))

    return apply


def _flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


_FILES = (
    "metrics.json",
    "samples.parquet",
    "evidence",
    "outputs",
    "rules.json",
    "charts.json",
    "intake.json",
    "report.html",
)
DAMAGED = [
    *(Way(f"{name}: a bit flipped", _bytes(name, _flip), fits=False) for name in _FILES),
    *(
        Way(f"{name}: cut in the middle", _bytes(name, lambda data: data[: len(data) // 2]), fits=False)
        for name in _FILES
    ),
    *(Way(f"{name}: removed", lambda run, name=name: _remove(run, name), fits=False) for name in _FILES),
    Way("a file added", lambda run: (run / "more.txt").write_text("more") and None, fits=False),
    Way("manifest.json: cut in the middle", _bytes("manifest.json", lambda data: data[: len(data) // 2]), fits=False),
]


def _remove(run: Path, name: str) -> None:
    path = first_part(run, name) if name in {"evidence", "outputs"} else run / name
    if not path.is_file():
        raise Inapplicable
    path.unlink()


# metrics.json, with digests that fit.
def _balanced(document: Any) -> None:
    words = ("passed", "failed", "abstained", "unparsed", "errored", "missing")
    for row in document["buckets"].values():
        full = [word for word in words if row[word]]
        target = "passed" if full[0] != "passed" else "failed"
        source = next((word for word in full if word != target), None)
        if source is None:
            raise Inapplicable
        row[source] -= 1
        row[target] += 1


def _every_top(document: Any) -> None:
    """Every key that a protocol documents at the top level, its first value changed."""
    known = {
        "schema_version",
        "protocol",
        "protocol_version",
        "digests",
        "pass",
        "gates",
        "buckets",
        "metrics",
        "estimates",
    }
    keys = [key for key in document if key not in known | {"notes", "sections", "headline", "declared", "comparable"}]
    changed = [key for key in keys if other(document[key]) != document[key]]
    if not changed:
        raise Inapplicable
    for key in changed:
        document[key] = other(document[key])


def _loosen(document: Any) -> None:
    if not document["gates"]:
        raise Inapplicable
    for gate in document["gates"].values():
        gate |= {"bound": -1e9 if ">" in gate["op"] else 1e9, "outcome": "pass"}
    document["pass"] = True


_M = "metrics.json"
METRICS = [
    *(
        Way(f"{_M}: {key} of an estimate", edit(_M, _at(f"estimates.0.{key}", _number)))
        for key in ("value", "low", "high", "level")
    ),
    Way(f"{_M}: n of an estimate", edit(_M, _at("estimates.0.n", lambda n: n + 1))),
    Way(f"{_M}: method of an estimate", edit(_M, _at("estimates.0.method", other))),
    Way(f"{_M}: seed of an estimate", edit(_M, _at("estimates.0.seed", lambda seed: (seed or 0) + 1))),
    Way(f"{_M}: why of an estimate", edit(_M, _at("estimates.0.why", lambda why: f"{why} because"))),
    Way(f"{_M}: warnings of an estimate", edit(_M, _at("estimates.0.warnings", lambda texts: [*texts, "none"]))),
    Way(f"{_M}: name of an estimate", edit(_M, _at("estimates.0.name", other))),
    Way(f"{_M}: slice of an estimate", edit(_M, _at("estimates.0.slice", other))),
    Way(f"{_M}: last estimate's value", edit(_M, _at("estimates.1.value", _number))),
    Way(f"{_M}: an estimate left out", edit(_M, _drop("estimates.0"))),
    Way(f"{_M}: an estimate twice", edit(_M, lambda d: d["estimates"].append(d["estimates"][0]))),
    Way(f"{_M}: estimates in another order", edit(_M, lambda d: d["estimates"].reverse())),
    Way(f"{_M}: an estimate added", edit(_M, lambda d: d["estimates"].append({**d["estimates"][0], "name": "best"}))),
    Way(
        f"{_M}: a flat metric",
        edit(
            _M,
            lambda d: d.update(
                metrics={k: _number(v) if isinstance(v, int | float) else v for k, v in d["metrics"].items()}
            ),
        ),
    ),
    Way(f"{_M}: a flat metric added", edit(_M, lambda d: d["metrics"].update(best=1.0))),
    Way(f"{_M}: a sample moved to another bucket", edit(_M, _balanced)),
    Way(f"{_M}: n of a bucket row", edit(_M, _at("buckets.all.n", lambda n: n + 1))),
    Way(
        f"{_M}: a model left out of the buckets",
        edit(_M, lambda d: d["buckets"].pop(next(k for k in d["buckets"] if k != "all"), None) and None),
    ),
    Way(f"{_M}: gates loosened and passed", edit(_M, _loosen)),
    Way(f"{_M}: gates removed", edit(_M, lambda d: d.update(gates={}, **{"pass": None}))),
    Way(f"{_M}: pass flipped", edit(_M, lambda d: d.update({"pass": not d["pass"]}))),
    Way(f"{_M}: a digest", edit(_M, _at("digests.config", lambda text: "0" * 64))),
    Way(f"{_M}: notes removed", edit(_M, lambda d: d["notes"].clear())),
    Way(f"{_M}: a note added", edit(_M, lambda d: d["notes"].append("all is well"))),
    Way(f"{_M}: every key of the protocol", edit(_M, _every_top)),
    Way(f"{_M}: headline", edit(_M, _at("headline", lambda names: [*names[::-1], "best"]))),
    Way(f"{_M}: declared metrics", edit(_M, _at("declared", other))),
    Way(f"{_M}: what may be compared", edit(_M, _at("comparable", other))),
    Way(f"{_M}: a cell of a section", edit(_M, _at("sections.0.rows.0.0", lambda cell: "x"))),
    Way(f"{_M}: a section left out", edit(_M, _drop("sections.0"))),
    Way(f"{_M}: schema version", edit(_M, _at("schema_version", other))),
    Way(f"{_M}: protocol", edit(_M, _at("protocol", other))),
    Way(f"{_M}: protocol version", edit(_M, _at("protocol_version", other))),
    Way(f"{_M}: a key added", edit(_M, lambda d: d.update(award="best paper"))),
    Way(
        f"{_M}: written in another way",
        lambda run: (run / _M).write_text(json.dumps(json.loads((run / _M).read_text()))) and None,
    ),
]


# samples.parquet, with digests that fit.
def _one(name: str, change: Callable[[Any], Any] = other) -> Callable[[list[dict[str, Any]]], None]:
    def apply(rows: list[dict[str, Any]]) -> None:
        row = some(rows, name, lambda value: value is not None and change(value) != value)
        row[name] = change(row[name])

    return apply


def _each_column(rows: list[dict[str, Any]]) -> None:
    """Every column that is the protocol's own, one value each."""
    known = {"part", "row", "sample", "model", "bucket", "verdict", "cites"}
    for name in rows[0].keys() - known:
        try:
            _one(name)(rows)
        except Inapplicable:
            continue


def _renamed(rows: list[dict[str, Any]]) -> None:
    model = rows[0]["model"]
    for row in rows:
        row["model"] = "best" if row["model"] == model else row["model"]


def _without_failed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = [row for row in rows if row["bucket"] in {"passed", None}]
    return kept or rows[:1]


_S = "samples.parquet"
_WORD = pa.string()
SAMPLES = [
    Way(f"{_S}: a bucket", edit_table(_S, _one("bucket", lambda word: "passed" if word != "passed" else "failed"))),
    Way(f"{_S}: a bucket that does not exist", edit_table(_S, _one("bucket", lambda word: "won"))),
    Way(f"{_S}: a verdict", edit_table(_S, _one("verdict"))),
    Way(f"{_S}: citations", edit_table(_S, _one("cites"))),
    Way(f"{_S}: citations removed", edit_table(_S, _one("cites", lambda bits: bytes(len(bits))))),
    Way(f"{_S}: the id of a sample", edit_table(_S, _one("sample"))),
    Way(f"{_S}: the model of a sample", edit_table(_S, _one("model")), (FROM_INPUT,)),
    Way(f"{_S}: a model renamed", edit_table(_S, _renamed), (FROM_INPUT,)),
    Way(f"{_S}: one column of the protocol after the other", edit_table(_S, _each_column), (FROM_INPUT,)),
    Way(f"{_S}: a row left out", edit_table(_S, lambda rows: rows[1:])),
    Way(f"{_S}: failed samples left out", edit_table(_S, _without_failed)),
    Way(f"{_S}: a row twice", edit_table(_S, lambda rows: [rows[0], *rows])),
    Way(f"{_S}: rows in another order", edit_table(_S, lambda rows: rows[::-1])),
    Way(f"{_S}: part", edit_table(_S, _one("part"))),
    Way(f"{_S}: row", edit_table(_S, _one("row"))),
    Way(
        f"{_S}: a column added",
        edit_table(
            _S, lambda rows: [{**row, "award": "x"} for row in rows], lambda s: s.append(pa.field("award", _WORD))
        ),
        (FROM_INPUT,),
    ),
    Way(
        f"{_S}: verdicts left out",
        edit_table(_S, lambda rows: None, lambda s: pa.schema([f for f in s if f.name != "verdict"])),
    ),
    Way(f"{_S}: the last column left out", edit_table(_S, lambda rows: None, lambda s: pa.schema(list(s)[:-1]))),
    Way(f"{_S}: empty", edit_table(_S, lambda rows: [])),
]


# Evidence, with digests that fit.
def _softer(rows: list[dict[str, Any]]) -> None:
    row = some(rows, "severity", lambda word: word in {"CRITICAL", "WARNING"})
    row["severity"] = "INFO"


_E = "evidence"
EVIDENCE = [
    Way(f"{_E}: an outcome", edit_table(_E, _one("outcome", lambda word: "pass" if word != "pass" else "fail"))),
    Way(
        f"{_E}: failures become passes",
        edit_table(
            _E,
            lambda rows: [{**row, "outcome": "pass" if row["outcome"] == "fail" else row["outcome"]} for row in rows],
        ),
    ),
    Way(f"{_E}: not applicable", edit_table(_E, _one("outcome", lambda word: "not_applicable"))),
    Way(f"{_E}: an outcome that does not exist", edit_table(_E, _one("outcome", lambda word: "won"))),
    Way(f"{_E}: a severity", edit_table(_E, _softer)),
    Way(f"{_E}: an observed value", edit_table(_E, _one("observed"))),
    Way(
        f"{_E}: a rule",
        edit_table(
            _E, lambda rows: rows[0].update(rule=next(row["rule"] for row in rows if row["rule"] != rows[0]["rule"]))
        ),
    ),
    Way(f"{_E}: a rule that does not exist", edit_table(_E, _one("rule"))),
    Way(f"{_E}: a field", edit_table(_E, _one("field"))),
    Way(f"{_E}: a step", edit_table(_E, _one("step"))),
    Way(f"{_E}: a reason", edit_table(_E, _one("why")), (FROM_INPUT,)),
    Way(
        f"{_E}: a reason added to what passed",
        edit_table(_E, lambda rows: some(rows, "outcome", lambda w: w == "pass").update(why="luck")),
    ),
    Way(f"{_E}: an atom left out", edit_table(_E, lambda rows: rows[1:])),
    Way(f"{_E}: an atom twice", edit_table(_E, lambda rows: [rows[0], *rows])),
    Way(f"{_E}: atoms in another order", edit_table(_E, lambda rows: rows[::-1])),
    Way(f"{_E}: the sample of an atom", edit_table(_E, _one("sample"))),
    Way(
        f"{_E}: observed values left out",
        edit_table(_E, lambda rows: None, lambda s: pa.schema([f for f in s if f.name != "observed"])),
    ),
    Way(f"{_E}: empty", edit_table(_E, lambda rows: [])),
]


# Raw outputs, with digests that fit.
def _text_column(rows: list[dict[str, Any]]) -> str:
    for name in ("response", "claims", *rows[0]):
        if name in rows[0] and name != "row" and any(row[name] not in (None, []) for row in rows):
            return name
    raise Inapplicable


def _swapped(rows: list[dict[str, Any]]) -> None:
    name = _text_column(rows)
    a, b = next(((x, y) for x in rows for y in rows if x[name] != y[name]), (None, None))
    if a is None or b is None:
        raise Inapplicable
    a[name], b[name] = b[name], a[name]


_O = "outputs"
OUTPUTS = [
    Way(f"{_O}: a text", edit_table(_O, lambda rows: _one(_text_column(rows))(rows)), (TEXTS,)),
    Way(f"{_O}: two texts exchanged", edit_table(_O, _swapped), (TEXTS,)),
    Way(
        f"{_O}: all texts removed",
        edit_table(_O, lambda rows: [{**row, _text_column(rows): None} for row in rows]),
        (TEXTS,),
    ),
    Way(f"{_O}: a row left out", edit_table(_O, lambda rows: rows[1:])),
    Way(f"{_O}: the number of a row", edit_table(_O, _one("row"))),
]


# Rules, charts, intake, with digests that fit.
def _limit(document: Any) -> None:
    for rule in document["rules"]:
        for slot in rule["slots"]:
            for key in ("high", "low", "critical_high", "critical_low"):
                if isinstance(slot.get(key), int | float):
                    slot[key] *= 2
                    return
    raise Inapplicable


RULES = [
    Way("rules.json: a limit", edit("rules.json", _limit)),
    Way("rules.json: a title", edit("rules.json", _at("rules.0.title", other))),
    Way("rules.json: a message", edit("rules.json", _at("rules.0.failed", other))),
    Way("rules.json: what a rule needs", edit("rules.json", _at("rules.0.needs", lambda needs: [*needs, "luck"]))),
    Way("rules.json: a rule left out", edit("rules.json", _drop("rules.0"))),
    Way("rules.json: another order", edit("rules.json", lambda d: d["rules"].reverse())),
    Way("rules.json: no rules", edit("rules.json", lambda d: d.update(rules=[]))),
    Way("rules.json: an empty object", edit("rules.json", lambda d: {})),
    Way("charts.json: the first chart", edit("charts.json", _at("0.spec", other))),
    Way("charts.json: a chart left out", edit("charts.json", _drop("0"))),
    Way("charts.json: a chart added", edit("charts.json", lambda d: d.append({"name": "best", "spec": {}}))),
    Way("charts.json: no list", edit("charts.json", lambda d: {})),
    Way("intake.json: ids", edit("intake.json", _at("ids", lambda n: n + 5)), (FROM_INPUT,)),
    Way("intake.json: matched", edit("intake.json", _at("matched", lambda n: 0)), (FROM_INPUT,)),
    Way("intake.json: the digest of the ids", edit("intake.json", _at("ids_sha256", lambda text: "0" * 64))),
    Way(
        "intake.json: the digest of the ids read",
        edit("intake.json", _at("read_ids_sha256", lambda text: "0" * 64)),
        (FROM_INPUT,),
    ),
    Way("intake.json: no digest of the ids", edit("intake.json", _drop("ids_sha256")), (IDS,)),
    Way("intake.json: notes", edit("intake.json", lambda d: d["notes"].append("all was read"))),
    Way("intake.json: removed, digests fit", lambda run: _remove(run, "intake.json"), (IDS,)),
]

# The manifest, with digests that fit.
_F = "manifest.json"
MANIFEST = [
    Way(f"{_F}: verdict", edit(_F, _at("verdict", lambda word: "pass" if word != "pass" else "fail"))),
    Way(f"{_F}: seeds", edit(_F, _at("seeds", lambda seeds: {"seed": 99}))),
    Way(f"{_F}: the seed of the configuration", edit(_F, _at("config.seed", lambda seed: seed + 1))),
    Way(f"{_F}: resamples", edit(_F, _at("config.resamples", lambda n: n + 1))),
    Way(f"{_F}: limit", edit(_F, _at("config.limit", lambda n: (n or 0) + 1)), (FROM_INPUT,)),
    Way(f"{_F}: gates of the configuration", edit(_F, lambda d: d["config"].update(gates=["matched >= 0"]))),
    Way(f"{_F}: columns", edit(_F, lambda d: d["config"].update(columns={"id": "name"})), (FROM_INPUT,)),
    Way(f"{_F}: a setting that does not exist", edit(_F, lambda d: d["config"].update(award="best"))),
    Way(f"{_F}: command", edit(_F, _at("command", lambda words: ["adjudge", "win"])), (SETTINGS,)),
    Way(f"{_F}: timestamp", edit(_F, _at("timestamp", lambda text: "1999-12-31T23:59:59+00:00")), (SETTINGS,)),
    Way(f"{_F}: timings", edit(_F, _at("timings.read", lambda seconds: 0.001)), (SETTINGS,)),
    Way(f"{_F}: environment", edit(_F, _at("environment.python", lambda text: "4.0")), (SETTINGS,)),
    Way(f"{_F}: notes removed", edit(_F, lambda d: d["notes"].clear())),
    Way(f"{_F}: a note added", edit(_F, lambda d: d["notes"].append("all is well"))),
    Way(f"{_F}: the name of an input", edit(_F, _at("inputs.0.name", other)), (FROM_INPUT,)),
    Way(f"{_F}: the digest of an input", edit(_F, _at("inputs.0.sha256", lambda text: "0" * 64)), (FROM_INPUT,)),
    Way(f"{_F}: an input left out", edit(_F, _drop("inputs.0")), (FROM_INPUT,)),
    Way(f"{_F}: a digest", edit(_F, _at("digests.rules", lambda text: "0" * 64))),
    Way(f"{_F}: a digest added", edit(_F, lambda d: d["digests"].update(award="0" * 64))),
    Way(f"{_F}: a digest left out", edit(_F, _drop("digests.rules"))),
    Way(f"{_F}: a file listed twice", edit(_F, lambda d: d["files"].append(d["files"][0]))),
    Way(
        f"{_F}: a file outside the run",
        edit(_F, lambda d: d["files"].append({"path": "../run/metrics.json", "bytes": 1, "sha256": "0"})),
        fits=False,
    ),
    Way(
        f"{_F}: another protocol",
        edit(_F, lambda d: d.update(protocol="triage" if d["protocol"] != "triage" else "flight")),
    ),
    Way(f"{_F}: a protocol that does not exist", edit(_F, lambda d: d.update(protocol="oracle"))),
    Way(f"{_F}: schema version", edit(_F, _at("schema_version", lambda text: "9.0"))),
]


# The version, and what another version is allowed.
def _both(*changes: Callable[[Path], None]) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        for change in changes:
            change(run)

    return apply


_OLDER = edit(_F, _at("environment.adjudge", lambda text: "0.1.0"))
VERSIONS = [
    Way("another version of adjudge", _OLDER, (SETTINGS,)),
    Way("another version of the protocol", edit(_F, _at("protocol_version", other)), (SETTINGS,)),
    Way("another version, and an estimate", _both(_OLDER, METRICS[0].apply)),
    Way("another version, and a bucket", _both(_OLDER, SAMPLES[0].apply)),
    Way("another version, and an outcome", _both(_OLDER, EVIDENCE[0].apply)),
    Way(
        "another version, and the notes",
        _both(_OLDER, edit(_F, lambda d: d["notes"].append("all is well"))),
        (VERSION,),
    ),
    Way("another version, and the charts", _both(_OLDER, edit("charts.json", _at("0.spec", other))), (VERSION,)),
    Way("another version, and the verdict", _both(_OLDER, MANIFEST[0].apply)),
]


# The page, with digests that fit.
def _page(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        path = run / "report.html"
        if not path.is_file():
            raise Inapplicable
        before = path.read_bytes()
        after = change(before)
        if before == after:
            raise Inapplicable
        path.write_bytes(after)

    return apply


def _in_figure(data: bytes) -> bytes:
    place = data.find(b"<figcaption>")
    if place < 0:
        raise Inapplicable
    return data[: place + 12] + b"Best: " + data[place + 12 :]


def _picture(data: bytes) -> bytes:
    start = data.find(b"<svg ", data.find(b"<figure"))
    if start < 0 or data.find(b"<figure") < 0:
        raise Inapplicable
    return data[:start] + b"<svg><text>best</text></svg>" + data[start:]


_UNDRAWN = b'<figure><figcaption>Best</figcaption><div class="chart"><p class="note">This chart could not be drawn: x.</p></div></figure>'
PAGES = [
    Way("report.html: a word", _page(lambda data: data.replace(b"</h1>", b" (best)</h1>", 1))),
    Way("report.html: a script", _page(lambda data: data.replace(b"</body>", b"<script>alert(1)</script></body>"))),
    Way("report.html: a title of a figure", _page(_in_figure)),
    Way("report.html: a picture", _page(_picture)),
    Way("report.html: a figure added", _page(lambda data: data.replace(b"</main>", _UNDRAWN + b"</main>"))),
    Way("report.html: the data block", _page(lambda data: data.replace(b'"protocol":"', b'"protocol":"x', 1))),
    Way("report.html: another page", _page(lambda data: b"<html><body>all passed</body></html>")),
    Way("report.html: removed, digests fit", lambda run: _remove(run, "report.html")),
    Way(
        "another version, and a word of the page",
        _both(_OLDER, _page(lambda data: data.replace(b"</h1>", b" (best)</h1>", 1))),
        (PAGE,),
    ),
    Way(
        "another renderer, and a picture",
        _both(edit(_F, _at("environment.vl-convert-python", lambda text: "0.1")), _page(_picture)),
        (FIGURES,),
    ),
]

WAYS = [*DAMAGED, *METRICS, *SAMPLES, *EVIDENCE, *OUTPUTS, *RULES, *MANIFEST, *VERSIONS, *PAGES]
