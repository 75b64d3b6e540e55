"""The explorer of samples on the page: what it holds, filters, sorts, opens and links; nothing runs, nothing is requested."""

import base64
import gzip
import json
import time
import zlib
from collections import Counter

import msgspec
import numpy as np
import pytest
from scipy.stats import chisquare

import adjudge
from adjudge.evidence.atoms import atoms
from adjudge.protocols.base import protocol
from adjudge.report import data, explore, html
from adjudge.report.explain import explain
from adjudge.report.explore import chosen, mixed

PROTOCOLS = ("anomaly", "check", "consistency", "flight", "gui", "score", "stability", "triage")


def counted(browser):
    return int(browser.run("document.getElementById('explore-count').textContent.split(' ')[0].replaceAll(',', '')"))


def rows(browser):
    return browser.run(
        "[...document.querySelectorAll('.xbody .xrow')].map((row) => [...row.children].map((cell) => cell.textContent))"
    )


def press(browser, key):
    browser.run(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: {json.dumps(key)}, bubbles: true}}))")


def choose(browser, name, value):
    browser.run(
        f"(() => {{ const box = document.querySelector('select[data-filter-name={json.dumps(name)}]'); "
        f"box.value = {json.dumps(value)}; box.dispatchEvent(new Event('change')); }})()"
    )


def samples_of(run):
    """Rows of a run with the rules and severities that failed, as filters see them."""
    samples = []
    for _, table, evidence in run.batches():
        for place, row in enumerate(table.to_pylist()):
            some = [atom for atom in atoms(evidence, place, row["model"], row["sample"]) if atom.failed]
            samples.append({**row, "rule": {atom.rule for atom in some}, "severity": {atom.severity for atom in some}})
    return samples


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_filter_counts_what_the_run_holds(browser, pages, name):
    run = pages(name)
    samples = samples_of(run)
    browser.ready(run.path / "page.html")
    assert counted(browser) == len(samples)
    options = browser.run(
        "[...document.querySelectorAll('select[data-filter-name]')].map((box) => "
        "[box.dataset.filterName, [...box.options].map((option) => option.value)])"
    )
    assert {"bucket"} <= {filter_name for filter_name, _ in options}
    for filter_name, values in options:
        for value in values[1:4]:
            choose(browser, filter_name, value)
            expected = sum(
                value in row[filter_name] if filter_name in {"rule", "severity"} else str(row.get(filter_name)) == value
                for row in samples
            )
            if filter_name in samples[0] or filter_name in {"rule", "severity"}:
                assert counted(browser) == expected, (filter_name, value)
        choose(browser, filter_name, "")
    assert counted(browser) == len(samples)
    assert browser.complaints() == []


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_column_sorts_both_ways(browser, pages, name):
    run = pages(name)
    browser.ready(run.path / "page.html")
    heads = browser.run("[...document.querySelectorAll('.xhead [data-name]')].map((head) => head.dataset.name)")
    for place, head in enumerate(heads):
        for order in ("ascending", "descending"):
            browser.run(f"document.querySelector('.xhead [data-name={json.dumps(head)}] button').click()")
            assert browser.run(f"document.querySelector('.xhead [data-name={json.dumps(head)}]').ariaSort") == order
            shown = [row[place] for row in rows(browser) if row[place] not in {"–", ""}]
            values = [float(text) for text in shown] if all(is_number(text) for text in shown) else shown
            assert values == sorted(values, reverse=order == "descending"), head
    assert browser.complaints() == []


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_sample_opens_by_key_click_and_link(browser, pages, name):
    run = pages(name)
    browser.ready(run.path / "page.html")
    press(browser, "j")
    press(browser, "j")
    title = browser.run("document.querySelector('.xdetail h3').textContent")
    assert title.startswith(rows(browser)[1][0])
    link = browser.run("location.hash")
    press(browser, "k")
    assert browser.run("document.querySelector('.xdetail h3').textContent").startswith(rows(browser)[0][0])
    press(browser, "Escape")
    assert browser.run("document.querySelector('.xdetail').hidden")
    browser.run("document.querySelector('.xbody .xrow:last-child').click()")
    assert not browser.run("document.querySelector('.xdetail').hidden")
    models = {row["model"] for row in run.samples.to_arrow().select(["model"]).to_pylist()}
    if len(models) > 1:
        other = browser.run("document.querySelector('.others button').firstChild.textContent.trim()")
        browser.run("document.querySelector('.others button').click()")
        assert browser.run("document.querySelector('.xdetail h3 .model').textContent") == other
    browser.ready(run.path / "page.html", width=390)
    browser.run(f"location.hash = {json.dumps(link)}")
    time.sleep(0.3)
    assert browser.run("document.querySelector('.xdetail h3').textContent") == title
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert browser.complaints() == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in browser.requests())


def test_search_sort_and_the_other_models(browser, pages):
    run = pages("flight")
    browser.ready(run.path / "page.html")
    press(browser, "/")
    assert browser.run("document.activeElement.id") == "explore-search"
    browser.run(
        "(() => { const box = document.getElementById('explore-search'); box.value = 'F01-0000 magpie'; "
        "box.dispatchEvent(new Event('input')); })()"
    )
    assert counted(browser) == 1
    browser.run("document.querySelector('.xbody .xrow').click()")
    others = browser.run(
        "[...document.querySelectorAll('.others button')].map((button) => button.firstChild.textContent.trim())"
    )
    assert len(others) == 4
    browser.run("document.querySelector('.others button').click()")
    assert others[0] in browser.run("document.querySelector('.xdetail h3').textContent")
    browser.run("document.querySelector('.xdetail .close').click()")
    browser.run(
        "(() => { const box = document.getElementById('explore-search'); box.value = ''; box.dispatchEvent(new Event('input')); })()"
    )
    browser.run("document.querySelector('.xhead [data-name=total] button').click()")
    values = [float(row[4]) for row in rows(browser)[:10]]
    assert values == sorted(values)


def test_a_failure_and_a_model_lead_to_their_samples(browser, pages):
    run = pages("flight")
    browser.ready(run.path / "page.html")
    shown = browser.run("Number(document.querySelector('#failures tbody a').textContent.replaceAll(',', ''))")
    browser.run("document.querySelector('#failures tbody a').click()")
    time.sleep(0.3)
    assert counted(browser) == shown
    browser.run("document.querySelector('#results a.label').click()")
    time.sleep(0.3)
    assert {row[1] for row in rows(browser)} == {browser.run("document.querySelector('#results a.label').textContent")}


def test_messages_are_those_of_explain(browser, pages):
    run = pages("flight")
    browser.ready(run.path / "page.html")
    browser.run("location.hash = 'sample=F01-0000&model=magpie-h'")
    time.sleep(0.3)
    shown = browser.run(
        "[...document.querySelectorAll('.xdetail .atoms li:not(.rule)')].map((line) => line.childNodes[1].textContent.trim())"
    )
    text = " ".join(explain(run, "F01-0000", "magpie-h", everything=True).split())
    assert len(shown) > 3
    assert all(message in text for message in shown), shown
    assert browser.run("document.querySelectorAll('.xdetail tbody tr').length") == 19


def test_a_hostile_run_shows_text_only(browser, tmp_path):
    names = ["<img src=x onerror=alert(1)>", "\u202eevil", "Model", "model", "m\u0007"]
    answers = ["<script>document.title='owned'</script>", "x" * 1_000_000, "\u001b[2J", '{"a": 1}', "&amp;"]
    lines = [
        json.dumps({"id": f"</script>{place}", "model": model, "score": place % 2, "answer": answer})
        for place in range(30)
        for model, answer in zip(names, answers, strict=True)
    ]
    (tmp_path / "scores.jsonl").write_text("\n".join(lines))
    run = adjudge.evaluate("score", logs=[str(tmp_path / "scores.jsonl")], out=tmp_path / "run", report=False)
    page = tmp_path / "page.html"
    page.write_bytes(html.render(run))
    browser.ready(page)
    assert counted(browser) == 150
    options = browser.run(
        "[...document.querySelector('select[data-filter-name=model]').options].map((each) => each.value)"
    )
    assert sorted(options[1:]) == sorted(names)  # those that differ in case are two
    choose(browser, "model", "model")
    assert {row[1] for row in rows(browser)} == {"model"}
    choose(browser, "model", "")
    for _ in range(6):
        press(browser, "j")
        assert browser.run("document.querySelector('.xdetail').innerText.length") < 20_000
    assert browser.run("document.title") != "owned"
    assert browser.run("document.querySelectorAll('#explorer img, #explorer script').length") == 0
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert browser.complaints() == []


def test_ten_thousand_models_stay_usable(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("ADJUDGE_MAX_MODELS", "20000")
    (tmp_path / "rules.yaml").write_text(
        "adjudge: 1\nname: r\nfields:\n  a: {path: $.a, type: number, range: [0, 5]}\n"
    )
    answers = ["<script>document.title='owned'</script>", "\u001b[2J", "\u202etxt.exe", '{"a": 1}']
    lines = [
        json.dumps({"id": "q", "model": f"{'Model' if i % 2 else 'model'}-{i // 2}", "response": answers[i % 4]})
        for i in range(10_000)
    ]
    (tmp_path / "outputs.jsonl").write_text("\n".join(lines))
    config = {"outputs": [str(tmp_path / "outputs.jsonl")], "rule_file": str(tmp_path / "rules.yaml")}
    run = adjudge.evaluate("check", config, out=tmp_path / "run", report=False)
    page = tmp_path / "page.html"
    page.write_bytes(html.render(run))
    browser.ready(page)
    assert counted(browser) == 10_000
    choose(browser, "model", "Model-17")
    assert [row[1] for row in rows(browser)] == ["Model-17"]
    press(browser, "j")
    assert "and 9,969 more" in browser.run("document.querySelector('.others').textContent")
    assert browser.run("document.title") != "owned"
    assert browser.complaints() == []


def test_verify_covers_what_the_page_packs(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    run = adjudge.evaluate("stability", protocol("stability").example(folder, 0), out=tmp_path / "run")
    page = run.path / "report.html"
    held = html._PACKED.search(page.read_bytes())
    samples = explore.explorer(run)
    assert explore.unpacked_digest(held[1]) == samples.summary["sha256"]
    block = msgspec.json.decode(gzip.decompress(base64.b64decode(held[1])))
    block["columns"]["bucket"]["words"] = block["columns"]["bucket"]["words"][::-1]
    altered = explore.packed(msgspec.json.encode(block))
    page.write_bytes(page.read_bytes().replace(held[1], altered))
    problems, _ = html.check(adjudge.load_run(run.path))
    assert any("samples to explore" in problem for problem in problems)


def held_rows(samples):
    """What a packed block shows: sample, model and number of critical failures of every row."""
    block = msgspec.json.decode(gzip.decompress(base64.b64decode(samples.packed)))
    critical = Counter(
        row for atoms in block["failed"] for row, e in zip(atoms["s"], atoms["e"], strict=True) if e == 2
    )
    words = {name: block["columns"][name] for name in ("sample", "model", "bucket")}
    texts = {name: [column["words"][code] for code in column["codes"]] for name, column in words.items()}
    return block, [
        (*each, critical[row])
        for row, each in enumerate(zip(texts["sample"], texts["model"], texts["bucket"], strict=True))
    ]


def test_of_too_many_samples_the_worst_and_a_random_part_are_shown_and_said(browser, pages, monkeypatch, tmp_path):
    run = pages("flight")
    every = held_rows(explore.explorer(run))[1]
    monkeypatch.setattr(explore, "SAMPLES", 500)
    samples = explore.explorer(run)
    block, shown = held_rows(samples)
    assert (samples.summary["n"], samples.summary["total"]) == (len(shown), run.samples_count) == (500, len(every))
    assert (block["worst"], block["drawn"], block["seed"]) == (250, 250, 0)
    assert set(shown) <= set(every)
    criticals = sorted((row[3] for row in every), reverse=True)
    bound = criticals[40]  # all models of a bad sample are shown, so the rows are not simply the worst rows
    assert {row for row in every if row[3] > bound} <= set(shown)
    models = Counter(row[1] for row in shown)
    assert max(models.values()) - min(models.values()) <= 1
    left = [row for row in every if row not in set(shown)]
    assert 0 < sum(row[2] == "passed" for row in shown) < len(shown)
    assert any(row[2] != "passed" for row in left)
    assert explore.explorer(adjudge.load_run(run.path)) == samples
    page = tmp_path / "page.html"
    page.write_bytes(html.render(run))
    assert "250 rows of the worst samples and 250 drawn at random from the others (seed 0)" in page.read_text()
    browser.ready(page)
    assert counted(browser) == 500
    assert f"{run.samples_count - 500:,} more are in the run" in browser.run(
        "document.getElementById('explore-count').textContent"
    )
    assert browser.complaints() == []


def test_verify_holds_of_a_page_that_shows_a_part(monkeypatch, tmp_path):
    monkeypatch.setattr(explore, "SAMPLES", 100)
    data = tmp_path / "data"
    data.mkdir()
    run = adjudge.evaluate("check", protocol("check").example(data, 0), out=tmp_path / "run")
    stated = html.block_of((run.path / "report.html").read_bytes())["explore"]
    assert (stated["n"], stated["worst"], stated["drawn"]) == (100, 50, 50)
    assert html.check(adjudge.load_run(run.path)) == ([], [])
    monkeypatch.setattr(explore, "SAMPLES", 101)
    assert html.check(adjudge.load_run(run.path))[0]


def test_samples_that_make_the_page_too_large_are_fewer(pages):
    run = pages("flight")
    whole = explore.explorer(run)
    samples = explore.explorer(run, room=len(whole.packed) // 2)
    assert len(samples.packed) <= len(whole.packed) // 2
    assert 0.3 * run.samples_count < samples.summary["n"] < 0.7 * run.samples_count


@pytest.mark.parametrize("name", ["flight", "triage"])
def test_the_room_of_a_page_is_filled_and_never_passed(pages, monkeypatch, name):
    run = pages(name)
    short = len(html.render(run, explore=False))
    whole = explore.explorer(run)
    room = int(len(whole.packed) * 0.6)
    beside = {name: part for name, part in data.data_block(run)[0].items() if name != "worst"}
    monkeypatch.setattr(data, "PAGE_BYTES", data.page_bytes(beside) + room)
    page = html.render(run)
    stated = html.block_of(page)["explore"]
    assert len(page) <= data.PAGE_BYTES
    assert len(page) - short > 0.85 * room
    assert 0.5 * run.samples_count < stated["n"] < 0.75 * run.samples_count


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_a_page_takes_beside_its_samples_is_foreseen(pages, name):
    run = pages(name)
    block, _ = data.data_block(run)
    assert len(html.render(run, explore=False)) < data.page_bytes({**block, "worst": []})


def test_rows_that_are_asked_for_are_among_the_chosen(pages):
    run = pages("flight")
    place = (0, run.samples_count - 1)
    assert all(place[1] in chosen(run, 100, [place]).rows[place[0]] for place in [place, (0, 7)])


def test_a_short_page_without_samples(pages):
    short = html.render(pages("stability"), explore=False).decode()
    assert "samples-data" not in short
    assert 'id="explorer"' not in short


def test_every_seed_draws_others_and_all_alike():
    ids = np.array([zlib.crc32(f"q{place:05d}".encode()) for place in range(20_000)], dtype=np.uint64)
    first, second = (np.argsort(mixed(ids, seed))[:2000] for seed in (0, 1))
    assert 120 < len(set(first) & set(second)) < 280  # 200 by chance
    for drawn in (first, second):
        tenths = np.bincount(drawn // 2000, minlength=10)
        assert chisquare(tenths).pvalue > 0.001
    steele = mixed(np.zeros(1, dtype=np.uint64), 0)  # the first number of SplitMix64 from 0
    assert int(steele[0]) == 0xE220A8397B1DCDAF
