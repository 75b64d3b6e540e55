"""The page of a comparison as an explorer: flips first, both sides beside each other, the matrix, links and keys."""

import base64
import gzip
import json
import time

import msgspec
import pytest
from tests.report.test_explore import is_number

import adjudge
from adjudge.cli.compare import comparison_document, sides
from adjudge.comparisons import comparison
from adjudge.errors import ConfigError
from adjudge.protocols.base import protocol
from adjudge.report import compared, explore, html, side_by_side


def _lines(path, change):
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for place, record in enumerate(records):
        change(place, record)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def _other_labels(place, record):
    if place % 3 == 0:
        record["scholar"]["label"] = record["auditor"]["label"] = "REJECT" if place % 2 else "VALID"


def _other_claims(place, record):
    if place % 4 == 0:
        record["answer_json"]["claim"] = f"it takes {place} days"


def two_runs(name, folder):
    """Two runs of one protocol on its example, the second on other outputs."""
    specs = []
    for turn in ("before", "after"):
        data = folder / turn
        data.mkdir()
        config = protocol(name).example(data, 0)
        if name == "consistency" and turn == "after":
            _lines(data / "pairs.jsonl", _other_labels)
        if name == "stability" and turn == "after":
            _lines(data / "runs.jsonl", _other_claims)
        if name == "gui" and turn == "after":
            config |= {key: [config[key][0].replace("off_target", "careful")] for key in ("predictions", "outcomes")}
        if name == "anomaly" and turn == "after":
            config |= {"detector": "random"}
        run = adjudge.evaluate(name, config, out=folder / f"{turn}-run", report=False)
        specs.append(str(run.path))
    return specs


def specs_of(name, folder):
    """What a comparison of this protocol's example is asked for, and its options."""
    if name in {"gui", "consistency", "stability", "anomaly"}:
        return two_runs(name, folder), {"force": name == "anomaly"}  # another detector is another configuration
    data = folder / "data"
    data.mkdir()
    run = adjudge.evaluate(name, protocol(name).example(data, 0), out=folder / "run", report=False)
    models = {"flight": ("falcon-a", "kestrel-b"), "check": ("ledger-large", "ledger-small")}
    if name in models:
        return [f"{run.path}::{model}" for model in models[name]], {}
    if name == "score":
        return [str(run.path)], {}
    return [f"{run.path}::{model}" for model in ("hawk-1|no-tools", "hawk-1|tools")], {}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Page and comparison of each protocol, each made when it is asked for."""
    made = {}

    def page(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            specs, asked = specs_of(name, folder)
            document = comparison_document(specs, resamples=200, **asked)
            assert document["pairs"], document["reasons"]
            path = folder / "compared.html"
            path.write_bytes(side_by_side.render(document, sides(specs)))
            made[name] = path, document, specs
        return made[name]

    return page


def packed_in(path):
    return msgspec.json.decode(gzip.decompress(base64.b64decode(html._PACKED.search(path.read_bytes())[1])))


def counted(browser):
    return int(browser.run("document.getElementById('explore-count').textContent.split(' ')[0].replaceAll(',', '')"))


def choose(browser, name, value):
    browser.run(
        f"(() => {{ const box = document.querySelector('select[data-filter-name={name}]'); "
        f"box.value = {json.dumps(value)}; box.dispatchEvent(new Event('change')); }})()"
    )


def press(browser, key):
    browser.run(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: {json.dumps(key)}, bubbles: true}}))")


def rows(browser):
    return browser.run(
        "[...document.querySelectorAll('.xbody .xrow')].map((row) => [...row.children].map((cell) => cell.textContent))"
    )


def untroubled(browser):
    return browser.complaints() == [] and all(url.startswith(("file:", "data:", "blob:")) for url in browser.requests())


@pytest.mark.parametrize("name", ["anomaly", "check", "consistency", "flight", "gui", "score", "stability", "triage"])
def test_every_protocol_can_be_compared_on_the_page(browser, pages, name):
    path, document, _ = pages(name)
    pair = document["pairs"][0]
    a, b, flipped = pair["a"], pair["b"], pair["flipped"]
    browser.ready(path)
    assert counted(browser) == document["n"]
    choose(browser, "change", f"{a} right, {b} wrong")
    assert counted(browser) == flipped["lost"]
    choose(browser, "change", f"{b} right, {a} wrong")
    assert counted(browser) == flipped["gained"]
    choose(browser, "change", "no flip")
    assert counted(browser) == pair["n"] - flipped["lost"] - flipped["gained"]
    choose(browser, "change", "")
    first = rows(browser)[0]
    press(browser, "j")
    names = browser.run("[...document.querySelectorAll('.xdetail h4.side')].map((node) => node.textContent)")
    assert names == [a, b]
    title = browser.run("document.querySelector('.xdetail h3').textContent")
    assert title.split()[0] == first[0].split(" ")[0]
    if flipped["lost"] + flipped["gained"]:
        assert browser.run("document.querySelector('.xdetail .badge').textContent") in {"lost", "gained"}
        assert browser.run("document.querySelectorAll('.xdetail .only').length") > 0
    press(browser, "j")
    second = browser.run("document.querySelector('.xdetail h3').textContent")
    assert second != title or document["n"] == 1
    press(browser, "k")
    link = browser.run("location.hash")
    press(browser, "Escape")
    assert browser.run("document.querySelector('.xdetail').hidden")
    for width in (390, 820):
        browser.ready(path, width=width)
        browser.run(f"location.hash = {json.dumps(link)}")
        time.sleep(0.3)
        assert browser.run("document.querySelector('.xdetail h3').textContent") == title
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert untroubled(browser)


@pytest.mark.parametrize("name", ["anomaly", "check", "consistency", "flight", "gui", "score", "stability", "triage"])
def test_every_column_of_a_comparison_sorts_both_ways(browser, pages, name):
    browser.ready(pages(name)[0])
    heads = browser.run("[...document.querySelectorAll('.xhead [data-name]')].map((head) => head.dataset.name)")
    assert len(heads) >= 5
    for place, head in enumerate(heads):
        for order in ("ascending", "descending"):
            browser.run(f"document.querySelector('.xhead [data-name={json.dumps(head)}] button').click()")
            assert browser.run(f"document.querySelector('.xhead [data-name={json.dumps(head)}]').ariaSort") == order
            shown = [row[place].partition(" · ")[0] for row in rows(browser) if row[place] not in {"–", ""}]
            values = [float(text) for text in shown] if all(is_number(text) for text in shown) else shown
            assert values == sorted(values, reverse=order == "descending"), head
        assert f"sort=-{head.split(' ')[0]}" in browser.run("location.hash")
    press(browser, "j")
    title = browser.run("document.querySelector('.xdetail h3').textContent").split()[0]
    assert title == rows(browser)[0][0].partition(" ")[0]  # keys follow the order that is shown
    assert untroubled(browser)


@pytest.mark.parametrize("name", ["anomaly", "check", "consistency", "flight", "gui", "score", "stability", "triage"])
def test_the_first_screen_leads_to_the_worst_flip(browser, pages, name):
    path, document, _ = pages(name)
    pair = document["pairs"][0]
    links = {way: pair["flipped"][way] for way in ("lost", "gained") if pair["flipped"][way]}
    browser.ready(path)
    texts = browser.run("[...document.querySelectorAll('.starts a')].map((link) => link.textContent)")
    assert [text.split()[1] for text in texts] == list(links)
    for place, (way, count) in enumerate(links.items()):
        browser.run(f"document.querySelectorAll('.starts a')[{place}].click()")
        time.sleep(0.2)
        assert counted(browser) == count
        assert browser.run("document.querySelector('.xdetail .badge').textContent") == way


@pytest.mark.parametrize("name", ["check", "flight", "score", "triage"])
def test_the_first_screen_says_no_difference_twice_and_names_stay_apart(browser, pages, name):
    path, document, _ = pages(name)
    pair = document["pairs"][0]
    browser.ready(path)
    sentence = browser.run("document.querySelector('.verdict').textContent")
    assert pair["b"] in sentence
    shown = browser.run(
        "[...document.querySelectorAll('#differences .value, #differences [data-label=Difference]')]"
        ".filter((node) => node.checkVisibility()).map((node) => node.textContent)"
    )
    assert len(shown) == sum(not metric["slice"] for metric in pair["metrics"])
    assert not any(text in sentence for text in shown)
    heads = browser.run(
        "[...document.querySelectorAll('.xhead [data-name^=\"system \"] button')].map((node) => [node.title, node.textContent])"
    )
    assert [title for title, _ in heads] == [pair["a"], pair["b"]]
    for title, label in heads:
        assert title.endswith(label.removeprefix("…"))
    assert heads[0][1] != heads[1][1]


def test_lost_stand_before_gained_and_columns_sort(browser, pages):
    path, document, _ = pages("flight")
    flipped = document["pairs"][0]["flipped"]
    lost = {flip["sample"] for flip in flipped["samples"] if flip["change"] == "lost"}
    browser.ready(path, height=2400)
    shown = rows(browser)
    assert {row[0] for row in shown[: len(lost)]} == lost
    assert [row[3] for row in shown[: len(lost) + 1]] == ["lost"] * len(lost) + ["gained"]
    browser.run("document.querySelector('.xhead [data-name=sample] button').click()")
    ids = [row[0] for row in rows(browser)]
    assert ids == sorted(ids)
    browser.run("document.querySelector('.xhead [data-name=sample] button').click()")
    assert rows(browser)[0][0] > ids[0]


def test_both_sides_stand_beside_each_other_with_their_differences_marked(browser, pages):
    path, document, specs = pages("flight")
    lost = next(flip for flip in document["pairs"][0]["flipped"]["samples"] if flip["change"] == "lost")
    browser.ready(path)
    browser.run(f"location.hash = 'sample={lost['sample']}'")
    time.sleep(0.3)
    texts = browser.run(
        "['first', 'second'].map((side) => [...document.querySelectorAll(`.sides > .${side} pre`)].at(-1).textContent)"
    )
    run = adjudge.load_run(specs[0].partition("::")[0])
    answers = [run.find(lost["sample"], spec.partition("::")[2])[0] for spec in specs]
    assert texts == [run.output(row["part"], row["row"])["response"] for row in answers]
    unmarked = browser.run(
        "['first', 'second'].map((side) => { const copy = [...document.querySelectorAll(`.sides > .${side} pre`)]"
        ".at(-1).cloneNode(true); for (const mark of copy.querySelectorAll('mark.only')) mark.remove(); "
        "return copy.textContent.replace(/\\s+/g, ''); })"
    )
    assert unmarked[0] == unmarked[1]
    assert all(len(rest) < len("".join(text.split())) for rest, text in zip(unmarked, texts, strict=True))
    failing = browser.run(
        "['first', 'second'].map((side) => document.querySelectorAll(`.sides > .${side} > .atoms li.only`).length)"
    )
    assert failing[0] == 0
    assert failing[1] > 0
    headings = browser.run(
        "[...document.querySelectorAll('.sides > .first')].map((cell) => [cell, cell.nextSibling].map((each) => "
        "each.querySelector('.part > h4')?.textContent ?? null))"
    )
    assert ["The answer, as it came"] * 2 in headings
    assert all(left == right for left, right in headings if left and right)


WORDS = [
    ("the cat sat", "the dog sat", [["cat"], ["dog"]]),
    ("1.25 and 2", "1.26 and 2", [["1.25"], ["1.26"]]),
    ("same", "same", [[], []]),
    ("a b c d", "b c", [["a", "d"], []]),
    ("one two three", "one 2 3 three", [["two"], ["2 3"]]),
    ("", "new words", [[], ["new words"]]),
    ("<b>x</b>", "<b>y</b>", [["x"], ["y"]]),
    ("\u202eabc ü", "\u202eabc ö", [["ü"], ["ö"]]),
]


@pytest.mark.parametrize("left, right, marked", WORDS)
def test_words_that_only_one_text_has_are_marked_and_texts_stay(browser, pages, left, right, marked):
    browser.open(pages("flight")[0])
    script = "\n".join(html._resource(name) for name in ("store.js", "differences.js"))
    found = browser.run(
        f"(() => {{ {script}\nconst nodes = {json.dumps([left, right])}.map((text) => make('pre', {{}}, text)); "
        "markTexts(...nodes); return nodes.map((node) => [node.textContent, node.children.length, "
        "[...node.querySelectorAll('mark.only')].map((mark) => mark.textContent)]); })()"
    )
    assert [[text, only] for text, _, only in found] == [[left, marked[0]], [right, marked[1]]]
    assert all(children == len(only) for _, children, only in found)


def test_texts_too_long_for_a_subsequence_are_marked_by_words(browser, pages):
    browser.open(pages("flight")[0])
    script = "\n".join(html._resource(name) for name in ("store.js", "differences.js"))
    found = browser.run(
        f"(() => {{ {script}\nconst text = (word) => `${{word}} ` + 'x y z '.repeat(20000) + word; "
        "const nodes = [text('first'), text('other')].map((each) => make('pre', {}, each)); const start = performance.now(); "
        "markTexts(...nodes); return [performance.now() - start, nodes.map((node) => "
        "[...node.querySelectorAll('mark.only')].map((mark) => mark.textContent))]; })()"
    )
    assert found[1] == [["first", "first"], ["other", "other"]]
    assert found[0] < 2000


@pytest.fixture(scope="module")
def matrix(pages, tmp_path_factory):
    run = pages("flight")[2][0].partition("::")[0]
    document = comparison_document([run], resamples=200)
    path = tmp_path_factory.mktemp("matrix") / "compared.html"
    path.write_bytes(side_by_side.render(document, sides([run])))
    return path, document, adjudge.load_run(run)


def test_more_than_two_models_are_a_matrix(browser, matrix):
    path, document, run = matrix
    browser.ready(path)
    names = [system["name"] for system in document["systems"]]
    assert len(names) == 5
    assert counted(browser) == document["n"]
    first = browser.run(
        "[...document.querySelector('.xbody .xrow').querySelectorAll('.sign')].map((cell) => "
        "[cell.getAttribute('aria-label'), cell.textContent, getComputedStyle(cell).backgroundColor])"
    )
    sample = rows(browser)[0][0]
    buckets = {row["model"]: row["bucket"] for row in run.find(sample)}
    assert [label for label, _, _ in first] == [f"{name}: {buckets[name]}" for name in names]
    assert len({(sign, colour) for _, sign, colour in first}) == len(set(buckets.values()))
    for pair in document["pairs"]:
        for way, words in (("lost", "{a} right, {b} wrong"), ("gained", "{b} right, {a} wrong")):
            choose(browser, "change", words.format(**pair))
            assert counted(browser) == pair["flipped"][way]
    choose(browser, "change", "")
    wrong = next(place for place, (label, _, _) in enumerate(first) if label.endswith("failed"))
    browser.run(f"document.querySelectorAll('.xbody .xrow .sign')[{wrong}].click()")
    shown = browser.run("[...document.querySelectorAll('.xdetail h4.side')].map((node) => node.textContent)")
    assert names[wrong] in shown
    browser.run(
        "(() => { const box = document.querySelector('.xdetail select'); box.value = '4'; "
        "box.dispatchEvent(new Event('change')); })()"
    )
    shown = browser.run("[...document.querySelectorAll('.xdetail h4.side')].map((node) => node.textContent)")
    assert shown[0] == names[4]
    link = browser.run("location.hash")
    browser.ready(path, width=390)
    browser.run(f"location.hash = {json.dumps(link)}")
    time.sleep(0.3)
    assert browser.run("[...document.querySelectorAll('.xdetail h4.side')].map((node) => node.textContent)") == shown
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert untroubled(browser)


def test_logs_are_compared_on_the_page(browser, tmp_path):
    protocol("score").example(tmp_path, 0)
    logs = [str(tmp_path / f"acme_{size}.eval") for size in ("large", "small")]
    page = tmp_path / "logs.html"
    from adjudge.cli.main import main

    assert main(["compare", *logs, "-o", str(page)], standalone_mode=False) == 0
    browser.ready(page)
    assert counted(browser) == html.block_of(page.read_bytes())["pairs"][0]["n"]
    assert untroubled(browser)


def test_a_hostile_pair_of_runs_shows_text_only(browser, tmp_path):
    answers = [
        "<script>document.title='owned'</script>",
        "y" * 1_000_000,
        "\u001b[2J\u001b]0;owned\u0007",
        "\u202etxet <img src=x onerror=alert(1)>",
        "</script><script>document.title='owned'</script>",
    ]
    models = ["Model", "model", "<img src=x onerror=alert(1)>", "\u202eevil", *(f"m{place}" for place in range(990))]
    specs = []
    for turn in ("a", "b"):
        lines = [
            json.dumps(
                {"id": f"</script>{place}", "model": model, "score": (place + (turn == "b")) % 2, "answer": answer}
            )
            for place in range(5)
            for model, answer in ((models[0], answers[place]), (models[1], answers[-place]))
        ]
        lines += [
            json.dumps({"id": f"</script>{place}", "model": model, "score": 1, "answer": "x"})
            for model in models[2:]
            for place in range(5)
        ]
        (tmp_path / f"{turn}.jsonl").write_text("\n".join(lines))
        run = adjudge.evaluate("score", logs=[str(tmp_path / f"{turn}.jsonl")], out=tmp_path / turn, report=False)
        specs.append(run.path)
    page = tmp_path / "compared.html"
    for chosen in (
        [f"{specs[0]}::Model", f"{specs[1]}::Model"],
        [f"{specs[0]}::Model", f"{specs[0]}::model"],
        [f"{specs[0]}::{model}" for model in models[:4]],
    ):
        document = comparison_document(chosen, resamples=100, force=True)
        page.write_bytes(side_by_side.render(document, sides(chosen)))
        assert len(page.read_bytes()) < 2_000_000
        browser.ready(page)
        assert counted(browser) == 5
        for _ in range(5):
            press(browser, "j")
            assert browser.run("document.title") != "owned"
            assert browser.run("document.querySelectorAll('#explorer img, #explorer script').length") == 0
        assert untroubled(browser)


def test_more_models_than_can_be_held_against_each_other_are_folded(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "_MOST_SYSTEMS", 4)
    monkeypatch.setattr(side_by_side, "PAIRS", 5)
    lines = [
        json.dumps({"id": f"q{number}", "model": f"m{place}", "score": int(number < 2 * place)})
        for place in range(7)
        for number in range(12)
    ]
    (tmp_path / "scores.jsonl").write_text("\n".join(lines))
    run = adjudge.evaluate("score", logs=[str(tmp_path / "scores.jsonl")], out=tmp_path / "run", report=False)
    specs = [str(run.path)]
    document = comparison_document(specs)
    assert [system["name"] for system in document["systems"]] == ["m0", "m4", "m5", "m6"]  # the first, and the best
    assert document["folded"] == [{"name": f"m{place}", "value": place / 6} for place in (3, 2, 1)]
    assert len(document["pairs"]) == 6
    assert document["tests"] == 21  # of all seven: the data chose which six are tested
    assert document["notes"][0].startswith(
        "4 of 7 systems are held against each other: the first and those with the best"
    )
    first = document["pairs"][2]["metrics"][0]
    assert first["p_holm"] == pytest.approx(21 * first["p"])
    page = side_by_side.render(document, sides(specs)).decode()
    shown = html.block_of(page.encode())
    assert len(shown["pairs"]) == 5
    assert ("m6", "m5") not in {(pair["b"], pair["a"]) for pair in shown["pairs"]}
    assert shown["notes"][0].startswith("The page lists 5 of 6 pairs")
    assert [row["label"] for row in shown["buckets"]["rows"]] == ["m0", "m4", "m5", "m6"]


def test_many_models_are_not_folded_by_latency_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "_MOST_SYSTEMS", 2)
    lines = [json.dumps({"id": "q", "model": f"m{place}", "score": 1}) for place in range(3)]
    (tmp_path / "scores.jsonl").write_text("\n".join(lines))
    run = adjudge.evaluate("score", logs=[str(tmp_path / "scores.jsonl")], out=tmp_path / "run", report=False)
    with pytest.raises(ConfigError, match=r"3 systems, and by latency alone at most 2"):
        comparison_document([str(run.path)], metrics=["latency_seconds"])


def test_of_too_many_samples_flips_come_first_and_others_are_drawn(browser, pages, monkeypatch, tmp_path):
    _, document, specs = pages("flight")
    flipped = document["pairs"][0]["flipped"]
    flips = flipped["lost"] + flipped["gained"]
    monkeypatch.setattr(compared, "SAMPLES", 200)
    samples = compared.compared(document, sides(specs))
    assert samples == compared.compared(document, sides(specs))
    assert samples.summary["flipped"] == samples.summary["flipped_shown"] == flips
    assert (samples.summary["n"], samples.summary["drawn"]) == (100, 100 - flips)
    page = tmp_path / "page.html"
    page.write_bytes(side_by_side.render(document, sides(specs)))
    assert f"{flips} of the {flips} samples that flip, and {100 - flips} drawn at random" in page.read_text()
    browser.ready(page)
    choose(browser, "change", "falcon-a right, kestrel-b wrong")
    assert counted(browser) == flipped["lost"]
    monkeypatch.setattr(compared, "SAMPLES", 20)
    samples = compared.compared(document, sides(specs))
    assert (samples.summary["flipped_shown"], samples.summary["drawn"]) == (7, 3)


def test_the_page_says_what_it_packs(pages):
    path, _, _ = pages("check")
    stated = html.block_of(path.read_bytes())["explore"]
    assert stated["sha256"] == explore.unpacked_digest(html._PACKED.search(path.read_bytes())[1])
    block = packed_in(path)
    assert len(block["rows"]) == 2
    assert len(block["runs"]) == 1  # two models of one run share its rules
