"""Grounding by hand: points, boxes, candidates, slices, what is clipped, missed and refused."""

from __future__ import annotations

import json

import pytest

import adjudge
from adjudge.engine.verify import verify
from adjudge.errors import InputError
from adjudge.protocols.gui.grounding import iou
from adjudge.report.explain import explain

BOX = [0.4, 0.4, 0.6, 0.6]
RECORDS = [
    {"id": 1, "bbox": BOX, "point": [0.6, 0.6], "platform": "web", "ui_type": "icon"},
    {"id": 2, "bbox": BOX, "point": [0.7, 0.5], "candidates": [[0.7, 0.5], [0.5, 0.5]], "platform": "web"},
    {"id": 3, "bbox": [[0, 0, 0.1, 0.1], BOX], "pred": [0.4, 0.4, 0.6, 0.5], "platform": "mac"},
    {"id": 4, "bbox": BOX},
]


@pytest.fixture
def ground(tmp_path, lines, evaluated):
    """`ground(records, **config)` is the finished run."""

    def ground(records, **config):
        settings = {"space": "normalized", "bbox": "xyxy", "resamples": 100, **config}
        return evaluated(records=[lines(tmp_path / "r.jsonl", records)], **settings)

    return ground


def value(run, name, where=""):
    return next(e["value"] for e in run.metrics["estimates"] if (e["name"], e["slice"]) == (name, where))


def test_by_hand(ground):
    run = ground(RECORDS, k=[1, 2, 5])
    numbers = run.metrics["metrics"]
    assert (numbers["num_records"], numbers["missing_answers"]) == (4, 1)
    assert numbers["top1_hit_rate"] == 0.5
    # Without candidates the answer is the only one.
    assert numbers["oracle_at_1"] == 0.5
    assert numbers["oracle_at_2"] == numbers["oracle_at_5"] == 0.75
    assert numbers["mean_iou"] == pytest.approx(0.5)
    assert value(run, "top1_hit_rate", "platform=web") == 0.5
    assert value(run, "top1_hit_rate", "platform=mac") == 1.0
    assert value(run, "top1_hit_rate", "ui_type=icon") == 1.0
    assert (
        run.metrics["buckets"]["all"] | {"passed": 2, "failed": 1, "missing": 1, "n": 4}
        == run.metrics["buckets"]["all"]
    )
    assert verify(run).problems == []


def test_nothing_is_null_not_zero(ground):
    numbers = ground(RECORDS[:1]).metrics["metrics"]
    assert numbers["mean_iou"] is None
    assert numbers["oracle_at_3"] is None


@pytest.mark.parametrize(
    "second, expected",
    [([0, 0, 1, 1], 1.0), ([0, 0, 0.5, 1], 0.5), ([0.5, 0.5, 1.5, 1.5], 0.25 / 1.75), ([2, 2, 3, 3], 0.0)],
)
def test_intersection_over_union(second, expected):
    assert iou([0, 0, 1, 1], second) == pytest.approx(expected)


def test_a_box_beyond_the_screen_is_clipped_and_a_point_beyond_it_is_a_miss(ground):
    records = [
        {"id": "box", "bbox": [90, 40, 101, 60], "img_size": [100, 100], "point": [99, 50]},
        {"id": "point", "bbox": [40, 40, 60, 60], "img_size": [100, 100], "point": [130, 50]},
        {"id": "fine", "bbox": [40, 40, 60, 60], "img_size": [100, 100], "point": [50, 50]},
    ]
    run = ground(records, space="pixel")
    rows = {row["sample"]: row for row in run.samples.to_pylist()}
    assert rows["box"]["boxes"] == [90, 40, 100, 60]
    assert {name: row["verdict"] for name, row in rows.items()} == {"box": "hit", "point": "missed", "fine": "hit"}
    failed = [atom for atom in run.atoms(run.find("point")[0]) if atom.failed]
    assert [atom.rule for atom in failed] == ["grounding.space", "grounding.hit"]
    assert "coordinates 130, 50 lie outside the space pixel" in failed[0].message
    assert "the point is (130, 50), the box [40, 40, 60, 60]" in failed[1].message
    notes = " ".join(run.manifest.notes)
    assert "1 of 3 records have a box that reaches beyond the screen; it was clipped" in notes
    assert "1 of 3 answers lie outside the declared space and miss" in notes
    assert verify(run).problems == []


@pytest.mark.parametrize(
    "record, words",
    [
        ({"id": 1, "bbox": [4, 4, 6, 6]}, "outside the space normalized"),
        ({"id": 1, "bbox": [0.6, 0.4, 0.4, 0.6]}, "x2 < x1"),
        ({"id": 1, "bbox": BOX, "pred": [0.1, 0.1, 0.1]}, "3 numbers"),
        ({"id": 1, "bbox": BOX, "point": [0.5, 0.5], "pred": [0.5, 0.5]}, "both `point` and `pred`"),
        ({"id": 1, "bbox": []}, "bbox is empty"),
        ({"point": [0.5, 0.5]}, "the record has no `bbox`"),
    ],
)
def test_refusals(ground, record, words):
    with pytest.raises(InputError, match=r"r\.jsonl:1") as error:
        ground([record])
    assert words in str(error.value)


def test_an_id_that_stands_twice_is_refused(ground):
    with pytest.raises(InputError, match=r"r\.jsonl:2: id '1' stands here a second time; first at line 1"):
        ground([RECORDS[0], RECORDS[0]])


def test_boxes_of_another_space_stop_the_run(ground):
    with pytest.raises(InputError, match="2 of 2 boxes reach beyond --space normalized; they fit pixel or per_mille"):
        ground([{"id": k, "bbox": [0, 0, 300 + k, 400], "point": [0.5, 0.5]} for k in range(2)])


def test_records_under_a_key_and_without_ids(tmp_path, command):
    document = {
        "accuracy": 0.5,
        "details": [{"bbox": BOX, "point": [0.5, 0.5], "app": name} for name in ("Mail", "mail")],
    }
    (tmp_path / "result.json").write_text(json.dumps(document, indent=1))
    flags = ["--json-path", "$.details", "--slice", "app", "--space", "normalized", "--bbox", "xyxy"]
    done = command(
        "gui", "grounding", "--records", tmp_path / "result.json", *flags, "--out", tmp_path / "run", "--json"
    )
    numbers = json.loads(done.stdout)
    assert numbers["metrics"]["num_records"] == 2
    assert [e["slice"] for e in numbers["estimates"] if e["name"] == "top1_hit_rate"] == ["", "app=Mail", "app=mail"]
    assert "2 of 2 records have no id and are named by their position" in " ".join(numbers["notes"])


def test_odd_characters_cost_themselves_and_not_the_run(tmp_path, evaluated):
    rows = [
        b'{"id": "\\ud800", "bbox": [0, 0, 1, 1], "point": [0.5, 0.5]}',
        b'{"id": "\xff\x00", "bbox": [0, 0, 1, 1]}',
    ]
    (tmp_path / "r.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\r\n\r\n".join(rows))
    run = evaluated(records=[str(tmp_path / "r.jsonl")], space="normalized", bbox="xyxy")
    numbers = run.metrics["metrics"]
    assert (numbers["num_records"], numbers["missing_answers"]) == (2, 1)


def test_a_grounding_run_is_a_run(ground, tmp_path, command):
    run = ground(RECORDS)
    assert "MISSED" in explain(run, "2").upper()
    assert "grounding.hit" in explain(run, "2")
    gated = command(
        "gui", "grounding", "--records", tmp_path / "r.jsonl", "--space", "normalized", "--bbox", "xyxy",
        "--gate", "top1_hit_rate >= 0.9", "--out", tmp_path / "gated", "--quiet",
    )  # fmt: skip
    assert gated.return_value == 1
    better = [{**record, "point": [0.5, 0.5]} for record in RECORDS[:2]] + RECORDS[2:]
    compared = adjudge.compare(run.path, ground(better).path).to_dict()
    assert "top1_hit_rate" in json.dumps(compared)
    refused = command("export", run.path, "--eval-json")
    assert "is a grounding run" in str(refused.exception)
