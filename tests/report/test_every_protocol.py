"""Every protocol's report, and a comparison, in Chromium; and every protocol's records for Every-Eval-Ever."""

import hashlib
import json
import re

import jsonschema
import pytest

from adjudge.cli.compare import comparison_document, sides
from adjudge.errors import OutputError
from adjudge.report import eee, html, latex, side_by_side, view
from adjudge.report.samples import rendered
from adjudge.runs.section import published

PROTOCOLS = ("anomaly", "consistency", "flight", "gui", "score", "stability", "triage")


@pytest.fixture(scope="module")
def pages(demo, tmp_path_factory):
    """The report of every protocol, and one comparison."""
    found = {name: run.path / "report.html" for name, run in demo.items()}
    specs = [f"{demo['flight'].path}::{model}" for model in ("falcon-a", "owl-c")]
    found["comparison"] = tmp_path_factory.mktemp("pages") / "comparison.html"
    found["comparison"].write_bytes(side_by_side.render(comparison_document(specs), sides(specs)))
    return found


@pytest.mark.parametrize("name", [*PROTOCOLS, "comparison"])
def test_a_page_is_quiet_asks_for_nothing_sorts_and_turns_dark(pages, browser, name):
    colour = "getComputedStyle(document.body).backgroundColor"
    browser.open(pages[name])
    light = browser.run(colour)
    tables = browser.run(_SORTS)
    assert tables
    assert all(table["sorted"] for table in tables), tables
    assert browser.complaints() == []
    assert browser.requests() == [pages[name].as_uri()]
    browser.open(pages[name], dark=True, width=390)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    assert _brightness(light) > 200
    assert _brightness(browser.run(colour)) < 60
    browser.run("document.getElementById('theme').click()")
    assert browser.run(colour) == light
    assert browser.complaints() == []
    assert browser.run("document.title").startswith("adjudge · ")


@pytest.mark.parametrize("name", [*PROTOCOLS, "comparison"])
def test_on_a_phone_no_row_hides_a_number_behind_the_edge(pages, browser, name):
    browser.open(pages[name], width=360)
    assert browser.run("document.documentElement.scrollWidth") <= 360
    hidden = """[...document.querySelectorAll('table.flow, table.tiles')].filter(t => t.offsetWidth)
        .filter(t => t.parentElement.scrollWidth > t.parentElement.clientWidth + 1).map(t => t.textContent.slice(0, 80))"""
    assert browser.run(hidden) == []


@pytest.mark.parametrize("name", PROTOCOLS)
def test_two_notes_are_in_sight_and_all_are_there(pages, demo, browser, name):
    browser.open(pages[name])
    listed = "[...document.querySelectorAll('section.warnings li')]"
    assert sorted(browser.run(f"{listed}.map(li => li.textContent)")) == sorted(
        note.replace("`", "") for note in view.warnings(demo[name])
    )
    assert browser.run(f"{listed}.filter(li => !li.closest('details')).length") <= 2


@pytest.mark.parametrize("name", [*(name for name in PROTOCOLS if name != "anomaly"), "comparison"])
def test_a_script_in_an_answer_is_shown_as_text(pages, browser, hostile, name):
    browser.open(pages[name])
    shown = browser.run(
        "[...document.querySelectorAll('pre, dd')].map(p => p.textContent).filter(t => t.startsWith('<script>'))"
    )
    assert hostile in shown
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.querySelectorAll('script').length") == 4  # data, packed samples, pictures, code
    assert browser.run("document.title").startswith("adjudge · ")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_report_shows_what_the_run_holds(demo, name):
    assert html.check(demo[name]) == ([], [])


def test_the_answers_of_several_runs_are_listed(demo, hostile):
    (row,) = demo["stability"].find("s01")
    facts = rendered(demo["stability"], row)["facts"]
    assert [fact["label"] for fact in facts] == [f"claims {number}" for number in range(1, len(facts) + 1)]
    assert {fact["text"] for fact in facts} == {hostile}


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if name != "flight"])
def test_the_latex_table_holds_the_metrics_to_the_digits_shown(demo, name):
    run = demo[name]
    body = latex.latex([run]).split(r"\label{tab:adjudge-estimates}")[1].split(r"\end{tabular}")[0]
    lines = [
        row.removesuffix(r" \\").replace(r"\%", "%").split(" & ") for row in body.splitlines() if row.endswith(r"\\")
    ]
    found = view.headline(run)
    assert [len(line) for line in lines] == [1 + len(found.names)] * (1 + len(found.slices))
    compared = 0
    for slice_, cells in zip(found.slices, lines[1:], strict=True):
        for measure, cell in zip(found.names, cells[1:], strict=True):
            item = found.cells.get((slice_, measure))
            if item is None or item.value is None:
                assert cell == ("--" if item is None else "n/a")
                continue
            point, _, rest = cell.partition(" [")
            shown = [part.partition(" ")[0] for part in (point, *rest.rstrip("]").split(", ")) if part]
            scale = 100 if point.endswith(" %") else 1
            true = [item.value, *(end for end in (item.low, item.high) if end is not None)]
            for text, value in zip(shown, true, strict=True):
                places = len(text.partition(".")[2])
                assert abs(float(text.replace(",", "")) - scale * value) <= 0.5000001 * 10**-places, (
                    measure,
                    cell,
                    item,
                )
                compared += 1
    assert compared >= len(found.slices)


@pytest.fixture(scope="module")
def exported(demo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("eee")
    for name, run in demo.items():
        eee.write(run, folder / name, {"organization": "us", "relationship": "third_party", "developer": "them"})
    return folder


@pytest.mark.parametrize("name", PROTOCOLS)
def test_records_fit_their_schemas_and_hold_every_number(demo, exported, name):
    run = demo[name]
    schemas = published("adjudge.report")
    whole, line = (jsonschema.Draft202012Validator(schemas[f"eee-{kind}"]) for kind in ("aggregate", "instance"))
    numbers, absent, rows = {}, 0, 0
    for path in sorted((exported / name).rglob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        whole.validate(document)
        absent += len(document["source_metadata"]["additional_details"])
        for result in document["evaluation_results"]:
            where = result["score_details"]["details"].get("slice", "")
            interval = result["score_details"]["uncertainty"].get("confidence_interval", {})
            key = (result["metric_config"]["metric_id"].removeprefix(f"{name}."), where)
            assert key not in numbers
            numbers[key] = (result["score_details"]["score"], interval.get("lower"), interval.get("upper"))
        details = document["detailed_evaluation_results"]
        data = (exported / name / details["file_path"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == details["checksum"]
        instances = [json.loads(text) for text in data.splitlines()]
        assert len(instances) == details["total_rows"]
        rows += len(instances)
        for instance in instances[:: max(1, len(instances) // 50)]:
            line.validate(instance)
            assert instance["evaluation_id"] == document["evaluation_id"]
    # How the files of the input match is about none of several models.
    several = len(list((exported / name).rglob("*.json"))) > 1
    of_models = {key: item for key, item in run.estimates.items() if key[1] or not several}
    expected = {
        key: (item.value, *((item.low, item.high) if None not in {item.low, item.high} else (None, None)))
        for key, item in of_models.items()
        if item.value is not None
    }
    assert numbers == expected
    assert absent == len(of_models) - len(expected)
    assert rows == run.samples.num_rows


@pytest.mark.parametrize("name", PROTOCOLS)
def test_instances_say_where_each_sample_ended(demo, exported, name):
    buckets = {}
    for path in (exported / name).rglob("*_samples.jsonl"):
        for text in path.read_text(encoding="utf-8").splitlines():
            instance = json.loads(text)
            bucket = instance["metadata"]["bucket"]
            buckets[bucket] = buckets.get(bucket, 0) + 1
            assert instance["evaluation"]["is_correct"] is (bucket == "passed")
    counted = demo[name].samples.column("bucket").cast("string").value_counts().to_pylist()
    assert buckets == {item["values"]: item["counts"] for item in counted}


def test_a_sample_has_one_hash_whoever_answers(exported):
    by_model = [
        {row["sample_id"]: row["sample_hash"] for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())}
        for path in sorted((exported / "flight").rglob("*_samples.jsonl"))
    ]
    assert len(by_model) == 5
    assert all(hashes == by_model[0] for hashes in by_model)
    assert len(set(by_model[0].values())) == len(by_model[0])


def test_what_was_read_stands_in_the_response(exported):
    rows = [
        json.loads(text)
        for text in next((exported / "flight").rglob("parrot-p/*_samples.jsonl")).read_text().splitlines()
    ]
    taken = [(row["answer_attribution"][0]["extracted_value"], row) for row in rows if row["answer_attribution"]]
    assert len(taken) > 100
    for value, row in taken:
        assert value in row["output"]["raw"][0]
        assert value.startswith("{")
    unread = [row for row in rows if not row["answer_attribution"]]
    assert unread
    assert not any(row["evaluation"]["is_correct"] for row in unread)


def test_directions(exported):
    better = {}
    for name in PROTOCOLS:
        for path in (exported / name).rglob("*.json"):
            for result in json.loads(path.read_text(encoding="utf-8"))["evaluation_results"]:
                metric = result["metric_config"]
                better[metric["metric_id"]] = not metric["lower_is_better"]
    for name in ("flight.total_score", "flight.error_score", "triage.accuracy", "gui.step_score", "anomaly.auroc"):
        assert better[name], name
    assert better["anomaly.detection_latency_ms.detected_fraction"]
    for name in ("flight.mae_p95", "triage.fake_slip_rate", "triage.ece", "gui.mean_coord_error", "stability.ned50"):
        assert not better[name], name
    assert not better["anomaly.false_alarms_per_hour"]


def test_an_existing_folder_is_left_alone_and_a_failure_leaves_nothing(demo, tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    with pytest.raises(OutputError, match="exists already"):
        eee.write(demo["gui"], tmp_path / "there")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(eee, "aggregate", fail)
    with pytest.raises(OutputError, match="No space left"):
        eee.write(demo["gui"], tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_models_with_odd_names_get_files_of_their_own():
    assert list(eee._file_names(["a|b", "a/b", "A_b", "..", "ü"]).values()) == [
        "a_b",
        "a_b-2",
        "A_b-3",
        "model",
        "model-2",
    ]


def _brightness(colour):
    return sum(int(number) for number in re.findall(r"\d+", colour)[:3]) / 3


# Clicks the head of the first column of numbers of every table twice and says whether its rows then go upwards.
_SORTS = """
[...document.querySelectorAll("table[data-sort]")].map((table) => {
  const heads = [...table.tHead.rows[0].cells];
  const numeric = heads.findIndex((head) => head.classList.contains("num"));
  const place = Math.max(0, numeric);
  heads[place].querySelector("button").click();
  heads[place].querySelector("button").click();
  const cells = [...table.tBodies[0].rows].map((row) => row.cells[place]);
  const values = numeric < 0 ? cells.map((cell) => cell.textContent.trim().toLowerCase())
    : cells.map((cell) => cell.dataset.v).filter((v) => v !== "").map(Number);
  const ordered = (a, b) => (numeric < 0 ? a >= b : a <= b);  // words descend at the second click, numbers ascend
  return {sorted: values.every((value, index) => index === 0 || ordered(values[index - 1], value)), rows: values.length};
})
"""
