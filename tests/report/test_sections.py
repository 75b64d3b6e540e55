"""Sections that a protocol returns are stored, recomputed by verify, and shown by every report."""

import pytest

import adjudge
from adjudge.protocols.base import protocol
from adjudge.protocols.stability.plan import StabilityPlan
from adjudge.report.data import data_block
from adjudge.report.html import render
from adjudge.report.latex import latex
from adjudge.report.markdown import markdown
from adjudge.report.text import summary
from adjudge.runs.section import Column, Section
from adjudge.stats.estimate import Estimate

HOSTILE = "<b>x</b>\x1b[2J|_"
SECTIONS = [
    Section(
        "what_ships",
        "What ships",
        ["final", "why", "items", Column("share", "%"), Column("distance", "px"), "estimate"],
        [
            ["VALID", HOSTILE, 1200, 0.9321, 12.25, Estimate(value=0.5, low=0.25, high=0.75, n=4)],
            ["REJECT", None, 3, None, None, Estimate.null("nothing to judge")],
        ],
        note="Every item once.",
        place="first",
    ),
    Section("long", "Long", ["item"], [[f"row {index}"] for index in range(30)], terminal=2),
    Section("folded", "Folded", ["a", "b"], [["deep", 7]], place="more"),
    Section("nothing", "Nothing", ["a"], [], empty="No item was rejected.", place="results"),
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    finish = StabilityPlan.finish

    def with_sections(plan, partials):
        measured = finish(plan, partials)
        measured.sections = list(SECTIONS)
        return measured

    monkeypatch.setattr(StabilityPlan, "finish", with_sections)
    config = protocol("stability").example(tmp_path, 0)
    return adjudge.evaluate("stability", config, out=tmp_path / "run")


def test_verify_recomputes_them(run, monkeypatch):
    adjudge.verify(run)
    monkeypatch.undo()
    with pytest.raises(adjudge.VerificationFailed, match="sections"):
        adjudge.verify(run)


def test_terminal(run):
    text = summary(run)
    first, buckets = text.index("What ships"), text.index("Where every sample ended")
    assert first < buckets < text.index("No item was rejected.")
    row = next(line for line in text.splitlines() if line.startswith("VALID"))
    assert "\x1b" not in row
    assert all(text in row for text in ("1,200", "93.2 %", "12.25 px", "0.50 [0.25, 0.75]"))
    assert "row 1" in text
    assert "row 2" not in text
    assert "… and 28 more" in text
    assert "deep" not in text


def test_markdown_and_latex(run):
    text = markdown(run)
    assert text.index("What ships") < text.index("<details>") < text.index("deep")
    assert "<b>" not in text
    tables = latex([run])
    assert r"\label{tab:adjudge-what_ships}" in tables
    assert "93.2 \\%" in tables


def test_page(run):
    page = render(run).decode()
    assert page.index('<section id="what_ships">') < page.index('<section id="results">')
    assert page.index('<section id="results">') < page.index('id="failures"') < page.index('<section id="folded">')
    body = page[: page.index('id="data"')]
    assert "<b>x</b>" not in body
    assert "&lt;b&gt;x&lt;/b&gt;" in body
    assert [section["name"] for section in data_block(run)[0]["sections"]] == [section.name for section in SECTIONS]


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="row 1"):
        Section("s", "S", ["a", "b"], [["x", 1], ["y"]])
