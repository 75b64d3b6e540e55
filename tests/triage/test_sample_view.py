"""What is shown of one sample: picture, label, answer, rationale, analysis, tools, timings; slips and false flags first."""

from __future__ import annotations

import base64
import json

import pytest

import adjudge
from adjudge.report.explain import explain
from adjudge.report.html import check, render
from adjudge.report.samples import worst

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
RATIONALE = "The shadows fall in two directions and the left hand has six fingers, which no lens could explain."


@pytest.fixture
def run(tmp_path, record):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(PIXEL)
    (tmp_path / "text.png").write_text("no picture", encoding="utf-8")
    secret = tmp_path.parent / f"{tmp_path.name}-outside.png"
    secret.write_bytes(PIXEL)
    rows = [
        record(0, "fake", None, error="late"),
        record(1, "real", "fake", image=f"../{secret.name}"),
        record(
            2,
            "fake",
            "real",
            image="pictures/a.png",
            rationale=RATIONALE,
            analysis="noise is even",
            response='{"verdict": "real"}',
            tool_usage=["ela", "noise"],
            tool_details=[
                {"tool": "ela", "seconds": 0.25, "status": "completed"},
                {"tool": "noise", "status": "error"},
            ],
            timings={"vision_llm_seconds": 1.5, "total_seconds": 2.5},
        ),
        record(3, "fake", "uncertain", image="text.png"),
        record(4, "real", "real"),
    ]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return adjudge.evaluate("triage", {"results": [[str(path)]], "resamples": 200}, out=tmp_path / "run")


def test_explain_shows_what_one_looks_at(run):
    text = " ".join(explain(run, "s0002").split())
    for words in (
        "image pictures/a.png",
        "label fake",
        "answer real",
        RATIONALE,
        "analysis noise is even",
        "tools ela 0.25 s, noise error",
        "vision llm 1.5",
        '{"verdict": "real"}',
    ):
        assert words in text, words


def test_slips_and_false_flags_come_first(run):
    rows = worst(run)["rows"]
    assert [row["sample"] for row in rows][:2] == ["s0002", "s0001"]
    assert [row["atoms"][0]["rule"] for row in rows][:2] == ["triage.slip", "triage.false_flag"]


def test_the_page_shows_a_picture_beside_the_data_and_no_other_file(run):
    page = render(run)
    assert page.count(b'<img class="sample"') == 1
    assert base64.b64encode(PIXEL) in page
    assert b"pictures/a.png" in page
    (run.path / "report.html").write_bytes(page)
    assert check(run)[0] in ([], ["manifest.json: digest report_data is not that of the data block in report.html"])


def test_a_run_with_pictures_verifies_where_they_are_gone(run, tmp_path):
    (tmp_path / "pictures" / "a.png").unlink()
    adjudge.verify(run)


def test_the_record_has_them_too(run):
    shown = run.record("s0002")["shown"]
    assert (shown["rationale"], shown["image"], shown["label"]) == (RATIONALE, "pictures/a.png", "fake")
