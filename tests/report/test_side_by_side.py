"""`adjudge report A B`: the page and the summary of a comparison, and what is left when it is refused."""

import io
import json
import re
import signal
import sys

import pytest

import adjudge
from adjudge.cli.compare import comparison_document, sides
from adjudge.cli.main import run as console
from adjudge.report import comparison_markdown, html, side_by_side


def command(*words):
    """The console script in this process: exit code and standard error."""
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["adjudge", *map(str, words)])
        patch.setattr(sys, "stderr", err)
        patch.setattr(signal, "signal", lambda *_: None)
        with pytest.raises(SystemExit) as stopped:
            console()
    err.flush()
    return stopped.value.code, err.buffer.getvalue().decode()


@pytest.fixture(scope="module")
def specs(flight_run, flight_data):
    """The model with the hostile answers, and one that does better where it fails and worse elsewhere."""
    return [f"{flight_run.path}::{flight_data[1]}", f"{flight_run.path}::owl-c"]


@pytest.fixture(scope="module")
def document(specs):
    return comparison_document(specs)


@pytest.fixture(scope="module")
def page(document, specs):
    return side_by_side.render(document, sides(specs))


@pytest.fixture(scope="module")
def block(page):
    return html.block_of(page)


@pytest.fixture(scope="module")
def refused(flight_run, config, tmp_path_factory):
    """A run of the same data under another setting."""
    out = tmp_path_factory.mktemp("refused") / "other"
    return adjudge.evaluate("flight", {**config, "top_k": 3}, out=out, report=False)


def test_the_block_has_the_numbers_of_the_comparison_at_full_precision(document, block):
    assert block["sentence"].startswith("owl-c against ")
    for shown, metric in zip(block["pairs"][0]["metrics"], document["pairs"][0]["metrics"], strict=True):
        difference = metric["difference"]
        assert [shown[name] for name in ("value", "low", "high")] == [difference[n] for n in ("value", "low", "high")]
        assert (shown["p_holm"], shown["n"], shown["verdict"]) == (metric["p_holm"], metric["n"], metric["verdict"])


def test_flips_stand_both_ways_with_the_evidence_and_answers_of_both_sides(document, block, flight_data):
    flipped = document["pairs"][0]["flipped"]
    lost, gained = block["pairs"][0]["flipped"]["ways"]
    assert (lost["count"], gained["count"]) == (flipped["lost"], flipped["gained"])
    assert lost["count"] > side_by_side.FLIPS
    assert len(lost["rows"]) == side_by_side.FLIPS
    assert gained["rows"]
    for way, failing in ((lost, 1), (gained, 0)):
        for row in way["rows"]:
            assert [side["bucket"] == "passed" for side in row["sides"]] == [failing == 1, failing == 0]
            assert row["sides"][failing]["atoms"], row["sample"]
            assert row["sides"][failing]["name"] == row["fails"]
    answers = {row["sample"]: row["sides"][0]["answer"]["after"] for row in gained["rows"]}
    assert "<script>" in answers[flight_data[2][0]]


def test_evidence_is_read_for_both_ways(document):
    read = [flip["change"] for flip in document["pairs"][0]["flipped"]["samples"] if flip["evidence"] is not None]
    assert len(read) == 20
    assert set(read) == {"lost", "gained"}


def test_provenance_stands_once_a_run(block, flight_run, flight_data):
    (made,) = block["provenance"]
    assert made["systems"] == [flight_data[1], "owl-c"]
    assert made["digests"]["config"] == flight_run.manifest.digests["config"]
    assert all(row["same"] for row in block["same"])


def test_the_page_asks_for_nothing_and_model_text_stays_text(page):
    text = page.decode()
    assert "default-src &#39;none&#39;" in text
    assert page.count(b"<script") == 4  # data, packed samples, pictures, code
    assert b"&lt;script&gt;document.title" in page
    assert not re.findall(r'\b(?:src|href)="(?!#)[^"]*"', text)
    assert len(page) < 1_000_000


def test_several_systems_are_ranked_and_every_pair_is_drawn(flight_run):
    models = [name for name in flight_run.metrics["buckets"] if name != "all"][:3]
    specs = [f"{flight_run.path}::{model}" for model in models]
    page = side_by_side.render(comparison_document(specs), sides(specs))
    block = html.block_of(page)
    assert len(block["pairs"]) == 3
    assert page.count(b'<svg class="plot delta') == sum(len(pair["metrics"]) for pair in block["pairs"])
    assert {place["name"] for place in block["rankings"][0]["places"]} == set(models)


def test_a_page_a_summary_and_a_text_from_the_command_line(specs, tmp_path):
    assert command("report", *specs, "-o", tmp_path / "x.html") == (
        0,
        f"{tmp_path / 'x.html'}: {(tmp_path / 'x.html').stat().st_size:,} bytes\n",
    )
    code, said = command("report", *specs, "-o", tmp_path / "x.html")
    assert code == 2
    assert "--force" in said
    assert command("report", *specs, "-o", tmp_path / "x.md")[0] == 0
    text = (tmp_path / "x.md").read_text(encoding="utf-8")
    assert text.count("<details>") == text.count("</details>") == 1
    assert "lost by owl-c" in text
    assert "gained by owl-c" in text
    assert "<script>" not in text
    code, said = command("report", *specs, "-o", tmp_path / "x.png")
    assert code == 2
    assert "html, md, txt" in said


def test_compare_writes_the_page_with_its_settings(specs, tmp_path):
    code, _ = command("compare", *specs, "--margin", "0.9", "--metric", "eligibility_rate", "-o", tmp_path / "x.html")
    assert code == 0
    block = html.block_of((tmp_path / "x.html").read_bytes())
    assert [metric["margin"] for metric in block["pairs"][0]["metrics"]] == [0.9]
    assert b'class="margin"' in (tmp_path / "x.html").read_bytes()


@pytest.mark.parametrize("name", ["x.html", "x.md", "x.txt"])
def test_what_may_not_be_compared_is_3_and_has_reasons_and_no_numbers(specs, refused, tmp_path, name):
    code, said = command("report", specs[0], f"{refused.path}::owl-c", "-o", tmp_path / name)
    assert code == 3
    assert "top_k" in said
    assert "gates" not in said
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert "top_k" in text.replace("\\", "")
    assert "points" not in text
    if name == "x.html":
        block = html.block_of(text.encode())
        assert (block["pairs"], block["rankings"], block["buckets"], block["settings"]) == ([], [], None, [])
        assert "svg" not in text.split("<body>")[1].split('id="data"')[0]
        assert len(block["provenance"]) == 2
        assert [row["what"] for row in block["same"] if not row["same"]] == ["configuration"]


def test_a_forced_comparison_says_so_on_the_page(specs, refused, tmp_path):
    words = ("compare", specs[0], f"{refused.path}::owl-c", "--force", "-o", tmp_path / "x.html")
    assert command(*words)[0] == 0
    block = html.block_of((tmp_path / "x.html").read_bytes())
    assert (block["status"], block["forced"]) == ("NOT_COMPARABLE", True)
    assert "The comparison was forced although it is not valid." in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_markdown_shows_names_as_text(document):
    hostile = json.loads(json.dumps(document))
    hostile["pairs"][0]["b"] = hostile["systems"][1]["name"] = "<img src=x> @team | `x`"
    text = comparison_markdown.markdown(hostile)
    assert "<img" not in text
    assert "@team" not in text


@pytest.mark.parametrize("reach, end", [(0.0, 1.0), (0.31, 0.5), (0.5, 0.5), (0.51, 1.0), (17.0, 20.0), (0.003, 0.005)])
def test_scales_end_at_round_numbers(reach, end):
    assert side_by_side._nice(reach) == pytest.approx(end)
