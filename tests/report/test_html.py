"""report.html: what it shows, what it refuses, and that its numbers are the run's."""

import base64
import gzip
import hashlib
import json
import re

import pytest
from tests.report.test_panels import png

import adjudge
from adjudge.engine.verify import verify
from adjudge.errors import VerificationFailed
from adjudge.protocols.base import protocol
from adjudge.provenance.canonical import file_digest
from adjudge.report import data, explore, html, samples


@pytest.fixture(scope="module")
def page(flight_run):
    return (flight_run.path / "report.html").read_bytes()


@pytest.fixture(scope="module")
def block(page):
    return html.block_of(page)


def test_the_run_has_its_report_and_holds(flight_run, page):
    assert len(page) < 5_000_000
    assert verify(flight_run, check_report=html.check).problems == []
    assert html.render(flight_run) == page


def test_the_block_holds_every_estimate_at_full_precision(flight_run, block):
    shown = {
        (row["name"], row["slice"]): (row["value"], row["low"], row["high"], row["n"])
        for row in block["estimates"]["rows"]
    }
    assert shown == {key: (e.value, e.low, e.high, e.n) for key, e in flight_run.estimates.items()}


def test_failure_modes_are_those_of_the_metrics(flight_run, block):
    counted = {}
    for row in block["failure_modes"]["rows"]:
        counted.setdefault(row["model"], {})[row["rule"]] = row["critical"] + row["warning"]
    expected = {p["model_name"]: p["failure_modes"]["by_rule"] for p in flight_run.metrics["model_profiles"]}
    assert counted == {model: rules for model, rules in expected.items() if rules}


def test_the_worst_have_most_critical_failures(flight_run, block):
    shown = [row for row in block["worst"]["rows"] if row["bucket"] != "passed"]
    assert len(shown) == block["worst"]["shown"] <= samples.WORST
    assert block["worst"]["not_passed"] == sum(
        flight_run.metrics["buckets"]["all"][name] for name in ("failed", "abstained", "unparsed", "errored", "missing")
    )
    counts = [sum(atom["severity"] == "CRITICAL" for atom in row["atoms"]) + row["more_atoms"] for row in shown]
    assert counts == sorted(counts, reverse=True)
    assert {row["model"] for row in shown} == {row["model"] for row in block["failure_modes"]["rows"]}


def test_a_changed_number_in_the_block_is_found_even_when_every_digest_is_rewritten(flight_run, copy_of):
    path = copy_of(flight_run)
    page = (path / "report.html").read_bytes()
    block = html.block_of(page)
    block["headline"]["columns"][0]["cells"][0]["value"] = 0.999
    _rewrite(path, page.replace(_embedded(page), html._embeddable(data.encode(block)).encode()), data.digest(block))
    with pytest.raises(VerificationFailed, match=r"report\.html: headline\.columns\[0\]\.cells\[0\]\.value is 0\.999"):
        adjudge.verify(path)


def test_a_changed_number_in_the_page_alone_is_found(flight_run, copy_of):
    path = copy_of(flight_run)
    page = (path / "report.html").read_bytes()
    text = html.block_of(page)["headline"]["columns"][0]["cells"][0]["text"].encode()
    shown = b'<span class="value">' + text
    assert page.count(shown) == 1
    _rewrite(path, page.replace(shown, b'<span class="value">99.9 % [99.8, 100.0]'), None)
    with pytest.raises(VerificationFailed, match="does not show its data block"):
        adjudge.verify(path)


@pytest.fixture(scope="module")
def pictured_run(tmp_path_factory):
    """A run whose records name pictures that stand beside them."""
    folder = tmp_path_factory.mktemp("pictured")
    config = protocol("triage").example(folder, 0)
    for number in range(2000):
        (folder / f"img-{number:04d}.jpg").write_bytes(png(200, 30, 30))
    return adjudge.evaluate("triage", config, out=folder / "run")


@pytest.mark.parametrize(
    "pattern, other",
    [
        (rb'<img class="sample"[^>]*base64,([^"]{9})', b"A" * 9),
        (rb'<img class="sample" alt="([^"]+)"', b"another.png"),
        (rb'id="pictures-data">\{[^<]*base64,([^"<]{9})', b"A" * 9),
        (rb'id="pictures-data">\{"([^"]+)"', b"another.png"),
        (rb'id="pictures-data">(\{[^<]*\})', b"{}"),
    ],
    ids=["worst", "name of a worst", "opened", "name of an opened", "all gone"],
)
def test_a_changed_picture_is_found(pictured_run, copy_of, pattern, other):
    path = copy_of(pictured_run)
    assert verify(adjudge.load_run(path), check_report=html.check).problems == []
    page = (path / "report.html").read_bytes()
    start, end = re.search(pattern, page).span(1)
    _rewrite(path, page[:start] + other + page[end:], None)
    with pytest.raises(VerificationFailed, match=r"report\.html: pictures is"):
        adjudge.verify(path)


@pytest.mark.parametrize(
    "pattern, other, problem",
    [
        (rb'<p class="answer">(.)', b"#", "does not show its data block"),
        (rb"<title>(.)", b"#", "does not show its data block"),
        (rb'<p class="starts">(.)', b"#", "does not show its data block"),
        (rb'class="legend".*?>(\w)', b"#", "does not show its data block"),
        (rb"<figcaption>(.)", b"#", "the figure '.*' is not the chart of the run"),
        (rb"<svg[^>]*>.*?<text[^>]*>([^<])", b"#", "the figure '.*' is not the chart of the run"),
        (rb'<figure.*?<path[^>]* d="M([0-9])', b"#", "the figure '.*' is not the chart of the run"),
        (rb'id="samples-data">[^<]{999}(.{9})', b"AAAAAAAAA", "the samples to explore are not those"),
        (rb'id="samples-data">([^<]*)<', b"", "the samples to explore are not those"),
        (rb"const badge = (\()", b"(((", "does not show its data block"),
        (rb"<style>(.)", b"#", "does not show its data block"),
        (rb'<details class="sample">.*?<span class="why">(.)', b"#", "does not show its data block"),
        (rb'"verdict":"(\w)', b"#", r"verdict is|digest report_data|worst\."),
    ],
)
def test_whatever_is_changed_in_the_page_is_named(flight_run, copy_of, pattern, other, problem):
    path = copy_of(flight_run)
    page = (path / "report.html").read_bytes()
    start, end = re.search(pattern, page, re.DOTALL).span(1)
    _rewrite(path, page[:start] + other + page[end:], None)
    with pytest.raises(VerificationFailed, match=problem):
        adjudge.verify(path)


def test_other_samples_are_found_even_when_every_digest_is_rewritten(flight_run, copy_of):
    path = copy_of(flight_run)
    page = (path / "report.html").read_bytes()
    packed = html._PACKED.search(page)[1]
    text = gzip.decompress(base64.b64decode(packed)).replace(b'"passed"', b'"failed"', 1)
    block = html.block_of(page)
    block["explore"]["sha256"] = hashlib.sha256(text).hexdigest()
    page = page.replace(packed, explore.packed(text))
    _rewrite(path, page.replace(_embedded(page), html._embeddable(data.encode(block)).encode()), data.digest(block))
    with pytest.raises(VerificationFailed, match=r"report\.html: explore\.sha256 is"):
        adjudge.verify(path)


def test_a_page_without_a_block_is_found(flight_run, copy_of):
    path = copy_of(flight_run)
    _rewrite(path, b"<html></html>", None)
    with pytest.raises(VerificationFailed, match=r"report\.html: it has no data block"):
        adjudge.verify(path)


def test_the_page_asks_for_nothing_from_outside(page):
    text = page.decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src &#39;none&#39;" in policy
    assert "unsafe" not in policy
    assert not re.findall(r'\b(?:src|href)="(?!#)(?!data:)[^"]*"', text.replace("xlink:href", ""))
    assert not re.findall(r"<[a-z][^>]*\son[a-z]+=", text.split("<body>")[1].split('id="data"')[0])


def test_model_text_cannot_leave_its_place(page, flight_data):
    _, _, _ = flight_data
    assert b"<script>document.title" not in page
    assert b"<img src=x" not in page
    assert b"&lt;script&gt;document.title" in page
    assert page.count(b"<script") == 4  # data, packed samples, pictures, code


def test_in_a_browser_nothing_is_said_nothing_is_fetched(flight_run, browser):
    browser.open(flight_run.path / "report.html")
    assert browser.complaints() == []
    assert browser.requests() == [(flight_run.path / "report.html").as_uri()]
    assert browser.run("document.title").startswith("adjudge · flight S1")


def test_a_script_in_an_answer_is_shown_as_text(flight_run, browser, flight_data):
    browser.open(flight_run.path / "report.html")
    shown = browser.run(
        "[...document.querySelectorAll('pre')].map(p => p.textContent).filter(t => t.includes('<script>'))"
    )
    assert shown == ["<script>document.title = 'owned'</script><img src=x onerror=alert(1)>"]
    assert browser.run("document.querySelectorAll('img').length") == 0


def test_tables_sort_and_filter(flight_run, browser):
    browser.open(flight_run.path / "report.html")
    table = "document.querySelector('#failures table')"
    column = f"[...{table}.tBodies[0].rows].map(r => Number(r.cells[3].dataset.v))"
    before = browser.run(column)
    click = f"{table}.tHead.rows[0].cells[3].querySelector('button').click()"
    browser.run(click)
    assert browser.run(column) == sorted(before, reverse=True)
    browser.run(click)
    assert browser.run(column) == sorted(before)
    browser.run(f"{table}.tHead.rows[0].cells[0].querySelector('button').click()")
    models = browser.run(f"[...{table}.tBodies[0].rows].map(r => r.cells[0].textContent)")
    assert models == sorted(models)
    wanted = models[0]
    browser.run(
        "{ const i = document.querySelector('#failures input'); i.value = '"
        + wanted
        + "'; i.dispatchEvent(new Event('input')); }"
    )
    left = browser.run(f"[...{table}.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[0].textContent)")
    assert left == [model for model in models if model == wanted]
    assert browser.complaints() == []


def test_light_dark_and_the_button(flight_run, browser):
    colour = "getComputedStyle(document.body).backgroundColor"
    browser.open(flight_run.path / "report.html")
    light = browser.run(colour)
    browser.open(flight_run.path / "report.html", dark=True)
    dark = browser.run(colour)
    assert _brightness(light) > 200
    assert _brightness(dark) < 60
    browser.run("document.getElementById('theme').click()")
    assert browser.run(colour) == light
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_hangs_over_the_edge(flight_run, browser, width):
    browser.open(flight_run.path / "report.html", width=width)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_hovering_tells_more(flight_run, browser):
    browser.open(flight_run.path / "report.html")
    browser.run(
        "document.querySelector('.panel .row').dispatchEvent(new PointerEvent('pointermove', {bubbles: true, clientX: 9, clientY: 9}))"
    )
    assert "n = " in browser.run("document.getElementById('tip').textContent")
    assert browser.run("document.getElementById('tip').hidden") is False
    assert browser.complaints() == []


def _brightness(colour):
    return sum(int(number) for number in re.findall(r"\d+", colour)[:3]) / 3


def _embedded(page):
    return html._BLOCK.search(page)[1]


def _rewrite(path, page, digest):
    """Put another page in place and make the manifest fit it, as someone who wants to hide the change would."""
    (path / "report.html").write_bytes(page)
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    for entry in manifest["files"]:
        if entry["path"] == "report.html":
            entry |= {"bytes": len(page), "sha256": file_digest(path / "report.html")}
    if digest is not None:
        manifest["digests"]["report_data"] = digest
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
