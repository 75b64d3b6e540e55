"""Markdown, LaTeX, CSV and figures: the numbers are those of metrics.json to the digits shown."""

import csv
import io
import re
import shutil
import subprocess

import pytest

from adjudge.errors import ConfigError
from adjudge.report import latex, numbers
from adjudge.report.charts import draw
from adjudge.report.markdown import escape, markdown
from adjudge.report.render import estimates_csv


def unescaped(text):
    for sign, tex in latex._SIGNS.items():
        text = text.replace(tex, sign)
    return text.strip()


def parsed(tex):
    """Every table by its label: head and body, unescaped."""
    found = {}
    for label, body in re.findall(r"\\label\{tab:adjudge-(\S+)\}(.*?)\\end\{tabular\}", tex, re.DOTALL):
        inner = body.split(r"\toprule")[1].split(r"\bottomrule")[0]
        rows = [line.removesuffix(r"\\").split(" & ") for line in inner.splitlines() if line.endswith(r"\\")]
        found[label] = [[unescaped(cell) for cell in row] for row in rows]
    return found


def shown_and_true(text, value):
    """The number in a cell equals the true one to the digits shown."""
    number = float(text.replace(",", "").rstrip(" %"))
    places = len(text.replace(",", "").rstrip(" %").partition(".")[2])
    scaled = value * 100 if text.endswith("%") else value
    return abs(number - scaled) <= 0.5 * 10**-places * (1 + 1e-9)


def test_the_main_table_holds_the_metrics_to_the_digits_shown(flight_run):
    table = parsed(latex.latex([flight_run]))["main-S1"]
    assert table[0] == ["Model", *(label for _, label in latex.MAIN)]
    estimates = flight_run.estimates
    assert [row[0] for row in table[1:]] == [name for name in flight_run.metrics["buckets"] if name != "all"]
    checked = 0
    for row in table[1:]:
        for (name, _), cell in zip(latex.MAIN, row[1:], strict=True):
            item = estimates[name, f"model={row[0]}"]
            point, _, rest = cell.partition(" [")
            assert shown_and_true(point, item.value), (name, cell, item)
            for end, value in zip(rest.rstrip("]").split(", "), (item.low, item.high), strict=True):
                percent = " %" if point.endswith("%") else ""
                assert end == "…" if value is None else shown_and_true(end + percent, value)
                checked += 1
    assert checked == 2 * len(latex.MAIN) * (len(table) - 1)


def test_every_table_of_the_protocol_is_there_with_its_counts(flight_run):
    tables = parsed(latex.latex([flight_run]))
    of_task = {f"{name}-S1" for name in ("main", "compact", "constraints", "failure-modes")}
    assert set(tables) == of_task | {"ceiling", "tail_risk", "score_statistics", "field_errors", "rubric"} & set(tables)
    assert {"ceiling", "tail_risk", "rubric"} <= set(tables)
    for profile, row in zip(flight_run.metrics["model_profiles"], tables["constraints-S1"][1:], strict=True):
        counts = [int(cell.partition(" ")[0].replace(",", "")) for cell in row[1:]]
        assert counts == [item["violations"] for item in profile["violations"].values()]
    for profile, row in zip(flight_run.metrics["model_profiles"], tables["tail_risk"][1:], strict=True):
        assert row[6] == numbers.count(profile["tail_risk"]["high_risk"]["count"])


def test_the_version_hashes_stand_under_the_main_table(flight_run):
    main = latex.latex([flight_run]).split(r"\label{tab:adjudge-constraints")[0]
    digests = flight_run.manifest.digests
    for name in ("config", "schema", "constraint_library", "rules"):
        assert digests[name][:16] in main.split(r"\bottomrule")[1]
    assert f"evaluator adjudge {flight_run.manifest.environment['adjudge']}" in main


def test_the_compact_table_has_the_best_of_every_column_in_bold(flight_run):
    rows = parsed(latex.latex([flight_run]))["compact-S1"]
    assert rows[0] == ["Model", *(label for _, label in latex.COMPACT)]
    estimates = flight_run.estimates
    for place, (name, _) in enumerate(latex.COMPACT, 1):
        values = {row[0]: estimates[name, f"model={row[0]}"].value for row in rows[1:]}
        best = (min if name == "mae_p95" else max)(value for value in values.values() if value is not None)
        assert {row[0] for row in rows[1:] if row[place].startswith(r"\textbf")} == {
            model for model, value in values.items() if value == best
        }
        assert not any("[" in row[place] for row in rows[1:])


def test_several_runs_get_the_table_over_tasks(flight_run):
    table = parsed(latex.latex([flight_run, flight_run]))["comprehensive"]
    assert len(table[0]) == 1 + 2 * 4
    assert table[1][1] == table[1][5]


@pytest.mark.parametrize(
    "given, tex", [("a_b & 100 %", r"a\_b \& 100 \%"), ("x{y}\\z", r"x\{y\}\textbackslash{}z"), ("a\nb", "a b")]
)
def test_tex_escapes(given, tex):
    assert latex.escape(given) == tex


def test_latex_compiles(flight_run, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("there is no pdflatex on this machine (Debian: apt install texlive-latex-recommended)")
    body = latex.latex([flight_run, flight_run])
    page = r"\documentclass{article}\usepackage[utf8]{inputenc}\usepackage{booktabs,graphicx}\begin{document}"
    (tmp_path / "t.tex").write_text(page + body + r"\end{document}", encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_markdown_has_gates_warnings_and_a_fold(flight_run):
    text = markdown(flight_run)
    assert "❌ not every gate passed" in text
    assert "| ✅ pass |" in text
    assert "| ⚠️ unknown |" in text
    assert text.count("<details>") == text.count("</details>") == 1
    estimates = flight_run.estimates
    for model in (name for name in flight_run.metrics["buckets"] if name != "all"):
        cell = numbers.estimate(estimates["total_score", f"model={model}"])
        assert re.search(rf"\| {model} \|.*\| {re.escape(cell)} \|", text)
    for row in text.splitlines():
        if row.startswith("|"):
            assert row.replace("\\|", "").count("|") >= 4


def test_markdown_shows_text_as_text():
    assert escape("<img onerror=x> @team | `a` *b*") == "&lt;img onerror=x\\> &#64;team \\| \\`a\\` \\*b\\*"


def test_csv_holds_every_estimate_at_full_precision(flight_run):
    rows = list(csv.DictReader(io.StringIO(estimates_csv(flight_run))))
    estimates = flight_run.estimates
    assert len(rows) == len(estimates)
    for row in rows:
        item = estimates[row["name"], row["slice"]]
        assert (float(row["value"]) if row["value"] else None) == item.value
        assert (float(row["high"]) if row["high"] else None) == item.high
        assert row["why"] == (item.why or "")


@pytest.mark.parametrize("kind, magic", [("png", b"\x89PNG"), ("svg", b"<svg"), ("pdf", b"%PDF")])
def test_charts_become_figures(flight_run, kind, magic):
    assert draw(flight_run, "violations", kind).startswith(magic)


def test_an_unknown_chart_is_an_error_that_names_those_there_are(flight_run):
    with pytest.raises(ConfigError, match="violations"):
        draw(flight_run, "nonsense", "png")
