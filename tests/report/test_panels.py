"""An opened sample: the panels of every protocol, reasons and checklist, pictures; all of it text of the run."""

import json
import struct
import time
import zlib

import msgspec
import pytest

import adjudge
from adjudge.protocols.base import protocol
from adjudge.report import explore, html
from adjudge.report.explain import explain
from adjudge.report.explore import chosen

TITLES = {
    "anomaly": ["Score over time", "At the threshold"],
    "check": ["The fields, with their rules", "Beside the answer", "The answer, as it came"],
    "consistency": ["Both reasons", "Flags, citations and evidence", "The answer, as it came"],
    "flight": ["The state, field by field", "The question", "The answer, as it came"],
    "gui": ["The step on its screen", "Recorded and predicted", "The answer, as it came"],
    "score": ["Target and answer", "The input", "Scores"],
    "stability": ["The claims of every run", "Over all runs"],
    "triage": ["The image", "Label and answer", "Tools and times"],
}


def png(red, green, blue):
    """A picture of one point."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes([0, red, green, blue]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def show(browser, sample, model):
    browser.run(f"location.hash = new URLSearchParams({json.dumps({'sample': sample, 'model': model})}).toString()")
    end = time.monotonic() + 10
    while not (browser.run("document.querySelector('.xdetail h3')?.textContent") or "").startswith(sample):
        assert time.monotonic() < end, f"{sample} does not open"
        time.sleep(0.02)


def text(browser, selector=".xdetail"):
    return " ".join(browser.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''").split())


def row_where(run, condition):
    return next(row for row in run.samples.to_arrow().to_pylist() if condition(row))


@pytest.mark.parametrize("name", sorted(TITLES))
def test_every_protocol_shows_its_panels(browser, pages, name):
    run = pages(name)
    row = row_where(run, lambda row: row["bucket"] == "passed")
    browser.ready(run.path / "page.html")
    show(browser, row["sample"], row["model"])
    titles = browser.run("[...document.querySelectorAll('.xdetail .part h4')].map((head) => head.textContent)")
    assert set(TITLES[name]) <= set(titles)
    assert browser.complaints() == []


def test_flight_shows_every_field_with_error_limit_and_checks(browser, pages):
    run = pages("flight")
    browser.ready(run.path / "page.html")
    show(browser, "F01-0000", "magpie-h")
    lines = browser.run(
        "[...document.querySelectorAll('.part.table tbody tr')].map((line) => [...line.children].map((cell) => cell.textContent.trim()))"
    )
    record = run.record("F01-0000", "magpie-h")
    expected = record["tables"][0]["rows"]
    assert [line[0] for line in lines] == [row[0] for row in expected]
    for line, row in zip(lines, expected, strict=True):
        for shown, value in zip(line[1:6], row[1:6], strict=True):
            assert float(shown) == pytest.approx(value, rel=1e-3), (row[0], shown, value)
        assert ("CRITICAL" in line[6]) == row[6].startswith("CRITICAL")


def test_reasons_and_checklist_are_those_of_explain(browser, pages):
    run = pages("flight")
    browser.ready(run.path / "page.html")
    show(browser, "F01-0000", "magpie-h")
    said = run.record("F01-0000", "magpie-h")["agent_output"]
    shown = browser.run(
        "[...document.querySelector('.xdetail .atoms').querySelectorAll('li:not(.rule)')].map((line) => line.innerText)"
    )
    for line, reason in zip(shown, said["attribution"], strict=False):
        assert reason["reason"].split(";")[0] in " ".join(line.split())
    counts = {status: sum(item["status"] == status for item in said["checklist"]) for status in ("pass", "fail")}
    assert f"Checklist: {counts['pass']} pass · {counts['fail']} fail" in text(browser)
    assert "Checklist" in explain(run, "F01-0000", "magpie-h")


def test_anomaly_draws_threshold_attack_and_alarms(browser, pages):
    run = pages("anomaly")
    row = row_where(run, lambda row: row["attacked"] and row["detected"])
    browser.ready(run.path / "page.html")
    show(browser, row["sample"], row["model"])
    label = browser.run("document.querySelector('svg.series').getAttribute('aria-label')")
    assert f"threshold {run.metrics['calibration']['threshold']:.6g}" in label
    assert "attack: " in label
    assert "alarm: " in label
    block = explore.block(run, chosen(run, explore.SAMPLES))
    place = block["columns"]["sample"]["words"].index(row["sample"])
    drawn = block["columns"]["@series"]["values"][place]
    assert len(drawn["t"]) <= 400
    assert len(next(span for span in drawn["spans"] if span["kind"] == "attack")["at"]) == row["windows"]


def test_consistency_shows_both_reasons_side_by_side(browser, pages):
    run = pages("consistency")
    block = explore.block(run, chosen(run, explore.SAMPLES))
    for agent in ("scholar", "auditor"):
        column = block["columns"][f"{agent}_reason"]
        assert len(column["codes"]) == block["n"]
    row = row_where(run, lambda row: row["bucket"] == "failed" and row["scholar"] != row["auditor"])
    output = run.output(row["part"], row["row"])
    browser.ready(run.path / "page.html")
    show(browser, row["sample"], row["model"])
    sides = browser.run("[...document.querySelectorAll('.beside > div')].map((side) => side.innerText)")
    for side, agent in zip(sides, ("scholar", "auditor"), strict=True):
        assert row[agent].lower() in side.lower()
        assert output[f"{agent}_reason"] in side


def test_score_shows_target_answer_and_explanation(browser, pages):
    run = pages("score")
    row = row_where(run, lambda row: row["bucket"] == "failed")
    output = run.output(row["part"], row["row"])
    browser.ready(run.path / "page.html")
    show(browser, row["sample"], row["model"])
    shown = text(browser)
    for name in ("target", "response", "explanation"):
        if output[name]:
            assert " ".join(output[name].split()) in shown


def test_check_shows_fields_with_the_rules_about_them(browser, pages):
    run = pages("check")
    row = row_where(run, lambda row: row["rule.invoice.sum"] == "fail")
    browser.ready(run.path / "page.html")
    show(browser, row["sample"], row["model"])
    lines = browser.run(
        "Object.fromEntries([...document.querySelectorAll('.part.table tbody tr')].map((line) => [line.firstChild.textContent, line.innerText]))"
    )
    for field in ("total", "tax", "lines"):
        assert " sum" in lines[field]
    assert "sum" not in lines["currency"]
    assert f"{row['answer.total']:.6g}" in lines["total"]


def test_repairs_and_what_was_read_are_shown(browser, pages):
    run = pages("flight")
    row = row_where(run, lambda row: row["repairs"])
    output = run.output(row["part"], row["row"])
    browser.ready(run.path / "page.html")
    show(browser, row["sample"], row["model"])
    assert (
        browser.run("document.querySelector('.xdetail mark').textContent")
        == output["response"][row["start"] : row["end"]]
    )
    assert f"repaired: {row['repairs'].replace(',', ', ').replace('_', ' ')}" in text(browser)


def test_pictures_beside_the_input_are_shown_and_others_are_said(browser, tmp_path):
    config = protocol("triage").example(tmp_path, 0)
    (tmp_path / "img-0001.jpg").write_bytes(png(200, 30, 30))
    run = adjudge.evaluate("triage", config, out=tmp_path / "run")
    page = run.path / "report.html"
    browser.ready(page)
    model = run.find("img-0001")[0]["model"]
    show(browser, "img-0001", model)
    assert browser.run("document.querySelector('.xdetail img.sample').naturalWidth") == 1
    show(browser, "img-0002", model)
    assert browser.run("document.querySelector('.xdetail img.sample')") is None
    assert "img-0002.jpg is not in this page" in text(browser)
    assert browser.complaints() == []
    assert html.check(adjudge.load_run(run.path)) == ([], [])


def test_a_screenshot_stands_behind_its_step(browser, tmp_path):
    config = protocol("gui").example(tmp_path, 0)
    lines = [json.loads(line) for line in (tmp_path / "episodes.jsonl").read_text().splitlines()]
    lines[0]["steps"][0]["screenshot"] = "shots/first.png"
    lines[0]["steps"][4]["screenshot"] = "../outside.png"
    (tmp_path / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "shots").mkdir()
    (tmp_path / "shots" / "first.png").write_bytes(png(10, 20, 200))
    run = adjudge.evaluate("gui", config, out=tmp_path / "run")
    browser.ready(run.path / "report.html")
    episode, model = lines[0]["episode_id"], run.samples.to_arrow().column("model")[0].as_py()
    show(browser, f"{episode}#0", model)
    assert browser.run("document.querySelector('svg.screen image').getAttribute('href')").startswith("data:image/png")
    show(browser, f"{episode}#4", model)
    assert browser.run("document.querySelector('svg.screen image')") is None
    assert "../outside.png is not in this page" in text(browser)
    assert browser.complaints() == []


def test_a_tampered_panel_is_found(tmp_path):
    run = adjudge.evaluate("anomaly", protocol("anomaly").example(tmp_path, 0), out=tmp_path / "run")
    page = run.path / "report.html"
    packed = html._PACKED.search(page.read_bytes())[1]
    block = explore.block(run, chosen(run, explore.SAMPLES))
    block["columns"]["@series"]["values"][0]["threshold"] = 99.0
    page.write_bytes(page.read_bytes().replace(packed, explore.packed(msgspec.json.encode(block))))
    problems, _ = html.check(adjudge.load_run(run.path))
    assert any("samples to explore" in problem for problem in problems)


def test_the_table_has_names_for_screen_readers(browser, pages):
    run = pages("stability")
    browser.ready(run.path / "page.html")
    names = browser.run(
        "[...document.querySelectorAll('#explorer select, #explorer input')].map((box) => box.getAttribute('aria-label'))"
    )
    assert all(names)
    table = "document.querySelector('#explorer [role=table]')"
    assert browser.run(f"{table}.getAttribute('aria-label')") == "Samples"
    assert browser.run(f"{table}.querySelectorAll('[role=columnheader]').length") == browser.run(
        f"{table}.querySelector('.xbody [role=row]').querySelectorAll('[role=cell]').length"
    )


def test_words_votes_and_quotes_of_a_judge_are_shown_as_text(browser, pages, tmp_path):
    run = pages("check")
    block = explore.block(run, chosen(run, explore.SAMPLES))
    n, said = block["n"], "<b>the total is wrong</b>"
    block["agent"] |= {"language_model": True, "model": "judge-1"}
    place = next(index for index, reasons in enumerate(block["columns"]["@reasons"]["values"]) if reasons)
    for name, value in {
        "@votes": ["ineligible", "eligible", "ineligible"],
        "@reason_words": [said],
        "@reason_quotes": ["486.05"],
        "@reason_verified": [False],
        "@quotes": ["EUR"],
        "@quotes_verified": [True],
    }.items():
        block["columns"][name] = {"values": [value if index == place else None for index in range(n)]}
    page = tmp_path / "page.html"
    content = html.render(run)
    packed = html._PACKED.search(content)[1]
    page.write_bytes(content.replace(packed, explore.packed(msgspec.json.encode(block))))
    browser.ready(page)
    sample, model = (block["columns"][name] for name in ("sample", "model"))
    show(browser, sample["words"][sample["codes"][place]], model["words"][model["codes"][place]])
    shown = text(browser)
    for words in (
        f"The judge: {said}",
        "ineligible, eligible, ineligible",
        "does not stand in the answer",
        "judge-1",
        "EUR",
    ):
        assert words in shown
    assert browser.run("document.querySelector('.xdetail b')") is None
    assert browser.complaints() == []


def test_citations_stand_in_or_out_of_scope_by_their_ids(browser, tmp_path):
    said = {"label": "VALID", "reason": "ok"}
    rows = [
        ("some", ["a", 2, "<b>c</b>"], ["a", "2"], ["a, 2", "<b>c</b>"]),
        ("all", ["a", "b"], ["a", "b"], ["a, b", None]),
        ("unknown", ["a"], None, [None, "a"]),
        ("none", [], ["a"], [None, None]),
    ]
    lines = [
        {
            "qid": qid,
            "scholar": said,
            "auditor": said,
            "retrieved_ids": known,
            "answer_json": {"claim": "x", "citations": cited},
        }
        for qid, cited, known, _ in rows
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = adjudge.evaluate("consistency", {"pairs": [str(tmp_path / "pairs.jsonl")]}, out=tmp_path / "run")
    browser.ready(run.path / "report.html")
    for qid, _, _, expected in rows:
        show(browser, qid, "pair")
        shown = dict(
            browser.run(
                "[...document.querySelectorAll('.xdetail .part.pairs dt')].map((node) => [node.textContent, node.nextSibling.textContent])"
            )
        )
        assert [shown.get("cited and retrieved"), shown.get("cited, not retrieved")] == expected
    assert browser.complaints() == []
    assert html.check(adjudge.load_run(run.path)) == ([], [])


def test_what_each_rater_said_is_shown(browser, tmp_path):
    for name, label in (("ann", "yes"), ("ben", "no")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"item": "q1", "label": label}) + "\n")
    config = {"raters": [str(tmp_path / f"{name}.jsonl") for name in ("ann", "ben")], "labels": ["yes", "no"]}
    run = adjudge.evaluate("consistency", config, out=tmp_path / "run")
    browser.ready(run.path / "report.html")
    press = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'j', bubbles: true}))"
    browser.run(press)
    assert browser.run("[...document.querySelectorAll('.part.pairs dl > *')].map((node) => node.textContent)") == [
        *("ann", "yes", "ben", "no")
    ]


def test_a_field_that_fails_is_listed_though_nothing_was_read(browser, tmp_path):
    (tmp_path / "rules.yaml").write_text(
        "adjudge: 1\nname: r\nfields:\n  a: number\n  b: text\n  c: {type: text, required: false}\n"
    )
    (tmp_path / "outputs.jsonl").write_text(json.dumps({"id": "q", "response": '{"a": "x", "b": "y"}'}) + "\n")
    config = {"outputs": [str(tmp_path / "outputs.jsonl")], "rule_file": str(tmp_path / "rules.yaml")}
    run = adjudge.evaluate("check", config, out=tmp_path / "run")
    browser.ready(run.path / "report.html")
    browser.run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'j', bubbles: true}))")
    fields = "[...document.querySelectorAll('.part.table tbody th')].map((node) => node.textContent)"
    assert browser.run(fields) == ["a", "b"]
    heads = browser.run("[...document.querySelectorAll('.part.table thead th')].map((node) => node.textContent)")
    assert heads == ["field", "answer", "checks"]  # there is no reference, so no column for it
