"""report.html: one self-contained page, made from the run's data block and nothing else.

No network, no inline handlers, no evaluation of code: the policy in the page allows one script and one style sheet, both
named by their hashes. Charts are drawn ahead as SVG. Every text of the run is escaped by the template.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.metadata import version
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup, escape

from adjudge.errors import RunError
from adjudge.report import numbers
from adjudge.report.charts import Drawing, bar, delta, legend, svgs, whisker
from adjudge.report.data import data_block, digest, encode
from adjudge.report.explore import PAGE_BYTES, unpacked_digest
from adjudge.report.samples import LARGEST, pictures
from adjudge.runs.run import Run
from adjudge.runs.writer import MANIFEST, REPORT

_BLOCK = re.compile(rb'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_PICTURE = re.compile(rb'<img class="sample"[^>]*>')
_PACKED = re.compile(rb'<script type="text/plain" id="samples-data">([^<]*)</script>')
_OPENED = re.compile(rb'<script type="application/json" id="pictures-data">([^<]*)</script>')
_CHART = re.compile(rb"<figure.*?</figure>", re.DOTALL)
_UNDRAWN = re.compile(rb"This chart could not be drawn: ([^<>&]*)\.</p>")
EXPLORER = ("store.js", "panels.js", "sample.js", "table.js")
"""The scripts of every page that explores samples; one of the page's own follows."""
_SHOWN = 20
_WIDE = 620


def render(run: Run, *, explore: bool = True) -> bytes:
    """The page, with or without the explorer of samples."""
    return write(run, explore=explore)[0]


def write(run: Run, *, explore: bool = True) -> tuple[bytes, str]:
    """The page and the digest of the data block it embeds, for the manifest."""
    block, samples = data_block(run, explore=explore)
    names = [row["picture"] for row in block["worst"]["rows"] if "picture" in row]
    drawings, shown = _drawings(block), pictures(run, names)
    packed = samples.packed if samples else b""
    document = _page(block, drawings, shown, packed)
    opened = pictures(run, [*names, *samples.pictures], picture_bytes(len(document))) if samples else {}
    if shown or opened:  # the block knows them by their digest
        block |= _picture_digest(_page(block, drawings, shown, packed, opened))
        document = _page(block, drawings, shown, packed, opened)
    return document, digest(block)


def picture_bytes(used: int) -> int:
    """How many bytes of pictures may stand in a page that has so many already; in base64 they are a third more."""
    return max(0, (PAGE_BYTES - used) * 3 // 4 - LARGEST)


def block_of(page: bytes) -> dict[str, Any]:
    """The data block that a page embeds."""
    embedded = _BLOCK.search(page)
    if embedded is None:
        raise RunError(f"{REPORT}: it has no data block")
    try:
        block: dict[str, Any] = msgspec.json.decode(embedded[1])
    except msgspec.DecodeError as error:
        raise RunError(f"{REPORT}: its data block is not JSON: {error}") from None
    return block


def check(run: Run) -> tuple[list[str], list[str]]:
    """Every way in which report.html does not show what the run holds, and what of it cannot be compared here."""
    path = run.path / REPORT
    if not path.is_file():
        return [], []
    page = path.read_bytes()
    try:
        shown = block_of(page)
    except RunError as error:
        return [str(error)], []
    problems = []
    if run.manifest.digests.get("report_data") != digest(shown):
        problems.append(f"{MANIFEST}: digest report_data is not that of the data block in {REPORT}")
    expected, samples = data_block(run, explore="explore" in shown)
    expected |= _picture_digest(page)
    made_with = run.manifest.environment
    another = made_with.get("adjudge") != version("adjudge")
    if another:  # what an older page does not show is not asked of it
        expected = {name: value for name, value in expected.items() if name in shown}
    problems += _differences(shown, expected)
    packed = _PACKED.search(page)
    if samples and (packed is None or unpacked_digest(packed[1]) != shown["explore"].get("sha256")):
        problems.append(f"{REPORT}: the samples to explore are not those of its data block")
    if another:
        unchecked = f"the words and figures of {REPORT}, which adjudge {made_with.get('adjudge')} wrote"
        return problems, [f"{unchecked} (adjudge report RUN -o page.html draws it anew)"]
    if problems:
        return problems, []
    if _without_charts(page) != _without_charts(_page(expected, [Drawing(b"")] * len(expected["charts"]))):
        return [f"{REPORT}: the page does not show its data block"], []
    if made_with.get("vl-convert-python") != version("vl-convert-python"):
        return [], [f"the figures of {REPORT}, which another version of the renderer drew"]
    return _figure_differences(page, expected)


def _picture_digest(page: bytes) -> dict[str, str]:
    """SHA-256 over all pictures of samples in a page, as a part of its data block; nothing where it has none."""
    opened = _OPENED.search(page)
    parts = [*_PICTURE.findall(page), *([opened[1]] if opened and opened[1] != b"{}" else [])]
    return {"pictures": hashlib.sha256(b"\n".join(parts)).hexdigest()} if parts else {}


def _figure_differences(page: bytes, block: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Figures that are not the charts of the run, drawn; and those that could not be drawn, then or now."""

    def figure_of(chart: dict[str, Any], drawing: Drawing) -> bytes:
        return _CHART.findall(_page({**block, "charts": [chart]}, [drawing]))[0]  # type: ignore[no-any-return]

    drawings, figures = _drawings(block), _CHART.findall(page)
    if len(figures) != len(drawings):
        return [f"{REPORT}: it has {len(figures)} figures, the run has {len(drawings)} charts"], []
    problems, unchecked = [], []
    for chart, drawn, figure in zip(block["charts"], drawings, figures, strict=True):
        reason = _UNDRAWN.search(figure)
        if figure == figure_of(chart, drawn):
            continue
        if drawn.picture is None or (reason and figure == figure_of(chart, Drawing(None, reason[1].decode()))):
            unchecked.append(f"the figure {chart['name']!r} of {REPORT}, which could not be drawn")
        else:
            problems.append(f"{REPORT}: the figure {chart['name']!r} is not the chart of the run")
    return problems, unchecked


def _differences(shown: Any, expected: Any) -> list[str]:
    problems: list[str] = []

    def walk(place: str, a: Any, b: Any) -> None:
        if len(problems) >= _SHOWN or (type(a) is type(b) and a == b):
            return
        if isinstance(a, dict) and isinstance(b, dict):
            for key in sorted(a.keys() | b.keys()):
                walk(f"{place}.{key}", a.get(key), b.get(key))
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            for index, (x, y) in enumerate(zip(a, b, strict=True)):
                walk(f"{place}[{index}]", x, y)
        else:
            problems.append(f"{REPORT}: {place.removeprefix('.')} is {_short(a)}, recomputed {_short(b)}")

    walk("", shown, expected)
    return problems


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:59] + "…"


def _without_charts(page: bytes) -> bytes:
    """The page without what is drawn or packed from the run, and without pictures, which its block knows by a digest."""
    return _OPENED.sub(b"", _PACKED.sub(b"", _PICTURE.sub(b"", _CHART.sub(b"", page))))


def _drawings(block: dict[str, Any]) -> list[Drawing]:
    return svgs(chart["spec"] for chart in block["charts"])


def _page(
    block: dict[str, Any],
    drawings: Sequence[Drawing],
    shown: Mapping[str, str] | None = None,
    samples: bytes = b"-",
    opened: Mapping[str, str] | None = None,
) -> bytes:
    """The report; `samples` are packed, and as good as anything where the page is only compared.

    `shown` are the pictures of the worst samples, `opened` those of all that can be opened.
    """
    figures = [_figure(chart, drawn) for chart, drawn in zip(block["charts"], drawings, strict=True)]
    explored = samples.decode() if "explore" in block else ""
    scripts = ("report.js", *EXPLORER, "explore.js") if explored else ("report.js",)
    parts = {"charts": figures, "pictures": shown or {}, "packed": explored, "opened": opened}
    return page("report.html.j2", block, scripts, **parts)


def page(template: str, block: dict[str, Any], assets: Sequence[str] = ("report.js",), **parts: Any) -> bytes:
    """A self-contained page that shows a data block and embeds it; `assets` are its scripts and further styles."""
    style, script = (
        "\n".join(_resource(name) for name in names if name.endswith(ending))
        for names, ending in ((("report.css", *assets), ".css"), (assets, ".js"))
    )
    allowed = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:"
    document = (
        _templates()
        .get_template(template)
        .render(
            data=block,
            policy=f"{allowed}; base-uri 'none'; form-action 'none'",
            style=Markup(style),  # noqa: S704 -- our own file
            script=Markup(script),  # noqa: S704 -- our own file
            json=_embeddable(encode(block)),
            **{"pictures": {}, **parts, "opened": _embeddable(msgspec.json.encode(parts.get("opened") or {}))},
        )
    )
    return document.encode()


def _figure(chart: dict[str, Any], drawn: Drawing) -> dict[str, Any]:
    if drawn.picture is None:
        note = Markup('<p class="note">This chart could not be drawn: {}.</p>').format(drawn.why)
        return {"title": _title(chart), "svg": note, "wide": False}
    picture = drawn.picture.decode()
    width = re.search(r'width="(\d+)', picture)
    return {
        "title": _title(chart),
        "svg": Markup(picture),  # noqa: S704 -- drawn by Vega, which escapes texts
        "wide": width is not None and int(width[1]) > _WIDE,
    }


def _title(chart: dict[str, Any]) -> str:
    title = chart["spec"].get("title")
    if isinstance(title, dict):
        title = title.get("text")
    return str(title or chart["name"].replace("_", " "))


def _embeddable(data: bytes) -> Markup:
    """JSON that cannot end the script element it stands in: every <, > and & is written as an escape, which JSON reads the same."""
    text = data.decode().translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})
    return Markup(text)  # noqa: S704 -- escaped for a script element


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _resource(name: str) -> str:
    return (resources.files("adjudge.report") / "page" / name).read_text(encoding="utf-8")


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(_resource),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(bar=bar, delta=delta, legend=legend, whisker=whisker)
    environment.filters.update(
        count=numbers.count,
        size=numbers.size,
        pretty=lambda value: msgspec.json.format(msgspec.json.encode(value), indent=2).decode(),
        weightiest_first=_weightiest_first,
        coded=_coded,
    )
    return environment


def _weightiest_first(notes: Sequence[str]) -> list[str]:
    """Notes in their order, but those about what was not checked anywhere, which change no number, last."""
    return sorted(notes, key=lambda note: "nowhere applicable" in note)


def _coded(text: str) -> Markup:
    """A note in which what stands between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 -- escaped
