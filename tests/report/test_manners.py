"""A page that anybody can use: texts stand out from what is behind them, a thumb hits what can be pressed, everything has a name,
and the first screen leads to the worst failure, why it failed and what the others said."""

import json
import time

import pytest
from tests.report.test_compared import specs_of
from tests.report.test_explore import PROTOCOLS, choose, counted, press, rows, samples_of

from adjudge.cli.compare import comparison_document, sides
from adjudge.report import data, side_by_side, view

# The contrast of every text in sight, as WCAG 2.2 counts it (relative luminance of sRGB), with what lies behind it.
CONTRASTS = """(() => {
  const parse = (text) => {
    const numbers = text.match(/-?[\\d.]+(e-?\\d+)?/g).map(Number);
    return text.startsWith("color(") ? [...numbers.slice(0, 3).map((each) => each * 255), numbers[3] ?? 1] : [...numbers.slice(0, 3), numbers[3] ?? 1];
  };
  const over = (front, back) => [0, 1, 2].map((place) => front[place] * front[3] + back[place] * (1 - front[3])).concat(1);
  const behind = (node) => {
    const layers = [];
    for (let each = node; each; each = each.parentElement) layers.unshift(parse(getComputedStyle(each).backgroundColor));
    return layers.reduce((back, front) => over(front, back), [255, 255, 255, 1]);
  };
  const light = (colour) => colour.slice(0, 3).map((each) => each / 255).map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), low = new Map();
  let seen = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement, style = getComputedStyle(node);
    if (!walker.currentNode.data.trim() || !node.checkVisibility() || node.closest("script, svg, [disabled]")) continue;
    const back = behind(node), front = over(parse(style.color), back);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    seen += 1;
    if (ratio < 4.5) low.set(`${node.tagName}.${node.className}`, [Number(ratio.toFixed(2)), walker.currentNode.data.trim().slice(0, 30), style.color, back.join(" ")]);
  }
  return [seen, [...low]];
})()"""
UNNAMED = """[...document.querySelectorAll("button, select, input, a, img, svg[role=img], [role=table], [role=region]")]
  .filter((node) => !(node.getAttribute("aria-label") || node.alt || node.textContent.trim() || (node.labels && node.labels.length)))
  .map((node) => node.outerHTML.slice(0, 120))"""
SMALL = """[...document.querySelectorAll(".starts a, nav a, .xbar button, .controls select, .controls input, .fold, .others button, .clear, #theme, .xbody .xrow")]
  .filter((node) => node.checkVisibility()).map((node) => [node.className || node.tagName, node.getBoundingClientRect().height]).filter(([, height]) => height < 40)"""


# Pairs of texts of which one is drawn over the other.
OVERLAPPING = """(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), boxes = [], over = [];
  while (walker.nextNode()) {
    const text = walker.currentNode, node = text.parentElement, range = document.createRange();
    if (!text.data.trim() || !node.checkVisibility() || node.closest("script, svg, pre, .ends, .xpanes, [hidden]")) continue;
    range.selectNodeContents(text);
    const edge = node.closest(".scroll")?.getBoundingClientRect().right ?? Infinity;
    for (const { top, bottom, left, right } of range.getClientRects()) boxes.push([{ top, bottom, left, right: Math.min(right, edge) }, text.data.trim().slice(0, 40)]);
  }
  boxes.sort(([a], [b]) => a.top - b.top);
  boxes.forEach(([a, first], place) => {
    for (let next = place + 1; next < boxes.length && boxes[next][0].top < a.bottom - 3; next += 1) {
      const [b, second] = boxes[next];
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3 && Math.min(a.bottom, b.bottom) - b.top > 3) over.push([first, second]);
    }
  });
  return [boxes.length, over];
})()"""

# What is wider than its place in an opened sample; one line of what others said may be cut.
CUT = """[...document.querySelectorAll(".xdetail, .xdetail *")]
  .filter((node) => node.checkVisibility() && node.scrollWidth > node.clientWidth + 1 && !node.closest("svg, .excerpt"))
  .filter((node) => getComputedStyle(node).overflowX !== "visible").map((node) => node.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """Two models of flight, and all of them."""
    folder = tmp_path_factory.mktemp("compared")
    specs, _ = specs_of("flight", folder)
    made = {}
    for name, chosen in (("pair", specs), ("matrix", [specs[0].partition("::")[0]])):
        made[name] = folder / f"{name}.html"
        made[name].write_bytes(side_by_side.render(comparison_document(chosen, resamples=200), sides(chosen)))
    return made


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", [*PROTOCOLS, "pair", "matrix"])
def test_every_text_stands_out_and_everything_has_a_name(browser, pages, comparison, name, dark):
    page = comparison[name] if name in {"pair", "matrix"} else pages(name).path / "page.html"
    browser.ready(page, dark=dark)
    for _ in range(2):
        seen, low = browser.run(CONTRASTS)
        assert seen > 50
        assert low == []
        assert browser.run(UNNAMED) == []
        press(browser, "j")


def test_a_dark_page_is_printed_dark_on_white(browser, pages):
    light = "getComputedStyle(document.body).color.match(/\\d+/g).map(Number)[0] > 128"
    browser.ready(pages("check").path / "page.html", dark=True)
    browser.run("document.documentElement.dataset.theme = 'dark'")
    assert browser.run(light)
    browser.on_paper()
    assert not browser.run(light)
    assert not browser.run("document.getElementById('explore').checkVisibility()")
    assert browser.run("document.getElementById('samples').checkVisibility()")


@pytest.mark.parametrize("name", [*PROTOCOLS, "pair", "matrix"])
def test_no_text_is_drawn_over_another_or_cut(browser, pages, comparison, name):
    page = comparison[name] if name in {"pair", "matrix"} else pages(name).path / "page.html"
    for width in (1280, 820, 390):
        browser.ready(page, width=width)
        browser.run("for (const node of document.querySelectorAll('details')) node.open = true")
        seen, over = browser.run(OVERLAPPING)
        assert seen > 100
        assert over == [], width
        press(browser, "j")
        assert browser.run(CUT) == [], width


@pytest.mark.parametrize("name", [*PROTOCOLS, "pair", "matrix"])
def test_a_thumb_hits_what_can_be_pressed(browser, pages, comparison, name):
    page = comparison[name] if name in {"pair", "matrix"} else pages(name).path / "page.html"
    browser.ready(page, width=390, height=844)
    assert browser.run("document.querySelectorAll('.boxes select')[0].checkVisibility()") is False
    browser.run("document.querySelector('.fold').click()")
    assert browser.run("document.querySelectorAll('.boxes select')[0].checkVisibility()") is True
    assert browser.run(SMALL) == []
    press(browser, "j")
    assert browser.run(SMALL) == []
    wide = "[...document.querySelectorAll('.xdetail *')].filter((node) => node.checkVisibility() && !node.closest('svg, pre, .xbar, .excerpt')"
    assert (
        browser.run(
            f"{wide} && node.getBoundingClientRect().right > innerWidth + 1).map((node) => node.outerHTML.slice(0, 90))"
        )
        == []
    )


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_first_screen_leads_to_the_worst_failure_of_each_model(browser, pages, name):
    run = pages(name)
    samples = samples_of(run)
    column = view.system_column(run)
    systems = sorted({str(row[column]) for row in samples if row["bucket"] != "passed"})
    browser.ready(run.path / "page.html", height=900)
    links = browser.run(
        "[...document.querySelectorAll('.starts a')].map((link) => [link.textContent, link.getBoundingClientRect().bottom])"
    )
    assert links
    assert all(bottom < 900 for _, bottom in links)
    several = len({row[column] for row in samples}) > 1
    if several:
        assert [text for text, _ in links if text != f"any {column}"] == systems[:6]
    for place, (text, _) in enumerate(links):
        browser.run(f"document.querySelectorAll('.starts a')[{place}].click()")
        time.sleep(0.2)
        shown = browser.run("new URLSearchParams(location.hash.slice(1)).get('sample')")
        model = browser.run("document.querySelector('.xdetail h3 .model').textContent")
        of_model = [row for row in samples if not several or text in {row[column], f"any {column}"}]
        row = next(row for row in of_model if (row["sample"], row["model"]) == (shown, model))
        assert row["bucket"] == "failed" or all(each["bucket"] != "failed" for each in of_model)
        same = [each for each in of_model if each["bucket"] == row["bucket"]]
        gravest = run.metrics.get("gravest") or []
        assert _badness(row, gravest) == max(_badness(each, gravest) for each in same)
        assert browser.run("document.querySelectorAll('.xdetail .atoms li').length") > 0
    assert browser.complaints() == []


def _badness(row, gravest):
    """The gravest rule a sample fails, and whether it fails critically."""
    grave = max((len(gravest) - gravest.index(rule) for rule in row["rule"] if rule in gravest), default=0)
    return grave, "CRITICAL" in row["severity"]


def test_what_the_others_said_stands_beside_it(browser, pages):
    run = pages("score")
    browser.ready(run.path / "page.html")
    row = next(row for row in samples_of(run) if row["bucket"] == "failed")
    browser.run(
        f"location.hash = new URLSearchParams({json.dumps({'sample': row['sample'], 'model': row['model']})}).toString()"
    )
    time.sleep(0.3)
    (other,) = (each for each in run.find(row["sample"]) if each["model"] != row["model"])
    said = browser.run("[...document.querySelectorAll('.others button > *')].map((node) => node.textContent)")
    assert said == [other["model"], other["bucket"], run.output(other["part"], other["row"])["response"]]
    own = browser.run("[...document.querySelectorAll('.others .own > *')].map((node) => node.textContent)")
    assert own == [row["model"], row["bucket"], run.output(row["part"], row["row"])["response"]]


def test_of_many_others_some_are_folded(browser, pages):
    run = pages("triage")
    browser.ready(run.path / "page.html")
    press(browser, "j")
    others = len(run.find(browser.run("document.querySelector('.xdetail h3').firstChild.textContent.trim()"))) - 1
    assert browser.run("document.querySelector('.others summary').textContent") == f"{others - 5} more models"
    assert browser.run("document.querySelectorAll('.others button').length") == others


def test_buttons_step_through_samples_and_everything_is_shown_again(browser, pages):
    run = pages("check")
    browser.ready(run.path / "page.html")
    assert browser.run("document.querySelector('.clear.all')") is None
    choose(browser, "bucket", "failed")
    several = counted(browser)
    ids = [row[:2] for row in rows(browser)]
    press(browser, "j")
    assert browser.run("document.querySelector('.xbar .note').textContent") == f"1 of {several}"
    assert browser.run("[...document.querySelectorAll('.xbar .step')].map((each) => each.disabled)") == [True, False]
    browser.run("document.querySelectorAll('.xbar .step')[1].click()")
    assert browser.run("document.querySelector('.xdetail h3').textContent").split() == ids[1]
    browser.run("document.querySelector('#explore-count .clear').click()")
    assert counted(browser) == run.samples_count
    assert browser.run("document.querySelector('#explore-count .clear')") is None


@pytest.mark.parametrize("name", ["anomaly", "check", "triage"])
def test_no_headline_stands_twice(browser, pages, name):
    run = pages(name)
    block, _ = data.data_block(run)
    twice = [column for column in block["headline"]["columns"] if "shown_as" in column]
    assert twice
    browser.ready(run.path / "page.html")
    for column in block["headline"]["columns"]:
        texts = [cell["text"] for cell in column["cells"]]
        drawn = browser.run(
            "[...document.querySelectorAll('#headline .panel')].map((panel) => [panel.querySelector('h3').textContent, "
            "[...panel.querySelectorAll('.value')].map((node) => node.textContent)])"
        )
        assert ([column["label"], texts] in drawn) == (column not in twice)
        shown = browser.run("[...document.querySelectorAll('td')].map((cell) => cell.textContent)")
        if column in twice:
            assert set(texts) <= set(shown)


def test_headlines_that_only_look_alike_are_drawn():
    cells = [{"label": "a", "text": "100 %"}, {"label": "b", "text": "100 %"}]
    headline = {"columns": [{"label": "coverage", "cells": cells}]}
    rows = [[{"text": "a"}, {"text": "100 %"}], [{"text": "b"}, {"text": "100 %"}]]
    table = {"columns": [{"title": "model", "numeric": False}, {"title": "right", "numeric": True}], "rows": rows}
    data.mark_shown(headline, [table])
    assert "shown_as" not in headline["columns"][0]
