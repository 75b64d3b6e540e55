"""Grounding by hand: points, boxes, candidates, and what is refused."""

from __future__ import annotations

import json

import pytest

from adjudge.errors import InputError
from adjudge.protocols.gui.grounding import grounding, iou

BOX = [0.4, 0.4, 0.6, 0.6]
RECORDS = [
    {"id": 1, "bbox": BOX, "point": [0.6, 0.6], "platform": "web", "ui_type": "icon"},
    {"id": 2, "bbox": BOX, "point": [0.7, 0.5], "candidates": [[0.7, 0.5], [0.5, 0.5]], "platform": "web"},
    {"id": 3, "bbox": [[0, 0, 0.1, 0.1], BOX], "pred": [0.4, 0.4, 0.6, 0.5], "platform": "mac"},
    {"id": 4, "bbox": BOX},
]


def test_by_hand(tmp_path, lines):
    found = grounding([lines(tmp_path / "r.jsonl", RECORDS)], "normalized", "xyxy", (1, 2, 5))
    assert found["num_records"] == 4
    assert found["missing_answers"] == 1
    assert found["metrics"]["top1_hit_rate"] == 0.5
    # Without candidates the answer is the only one.
    assert found["metrics"]["oracle_at_1"] == 0.5
    assert found["metrics"]["oracle_at_2"] == found["metrics"]["oracle_at_5"] == 0.75
    assert found["metrics"]["mean_iou"] == pytest.approx(0.5)
    assert found["by_platform"]["web"]["metrics"]["top1_hit_rate"] == 0.5
    assert found["by_platform"]["mac"]["metrics"]["top1_hit_rate"] == 1.0
    assert found["by_ui_type"]["icon"]["num_records"] == 1
    low, high = (found["estimates"]["top1_hit_rate"][end] for end in ("low", "high"))
    assert low < 0.5 < high


def test_nothing_is_null_not_zero(tmp_path, lines):
    found = grounding([lines(tmp_path / "r.jsonl", RECORDS[:1])], "normalized", "xyxy")
    assert found["metrics"]["mean_iou"] is None
    assert found["metrics"]["oracle_at_3"] is None


@pytest.mark.parametrize(
    "second, expected",
    [([0, 0, 1, 1], 1.0), ([0, 0, 0.5, 1], 0.5), ([0.5, 0.5, 1.5, 1.5], 0.25 / 1.75), ([2, 2, 3, 3], 0.0)],
)
def test_intersection_over_union(second, expected):
    assert iou([0, 0, 1, 1], second) == pytest.approx(expected)


@pytest.mark.parametrize(
    "record, words",
    [
        ({"id": 1, "bbox": BOX, "point": [512, 384]}, "outside the space normalized"),
        ({"id": 1, "bbox": [4, 4, 6, 6]}, "outside the space normalized"),
        ({"id": 1, "bbox": [0.6, 0.4, 0.4, 0.6]}, "x2 < x1"),
        ({"id": 1, "bbox": BOX, "pred": [0.1, 0.1, 0.1]}, "3 numbers"),
        ({"id": 1, "bbox": BOX, "point": [0.5, 0.5], "pred": [0.5, 0.5]}, "both `point` and `pred`"),
        ({"id": 1, "bbox": []}, "bbox is empty"),
        ({"bbox": BOX}, "the record has no `id`; expected a grounding record"),
    ],
)
def test_refusals(tmp_path, lines, record, words):
    with pytest.raises(InputError, match=r"r\.jsonl:1") as error:
        grounding([lines(tmp_path / "r.jsonl", [record])], "normalized", "xyxy")
    assert words in str(error.value)


def test_odd_characters_cost_themselves_and_not_the_run(tmp_path):
    rows = [
        b'{"id": "\\ud800", "bbox": [0, 0, 1, 1], "point": [0.5, 0.5]}',
        b'{"id": "\xff\x00", "bbox": [0, 0, 1, 1]}',
    ]
    (tmp_path / "r.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\r\n\r\n".join(rows))
    numbers = grounding([str(tmp_path / "r.jsonl")], "normalized", "xyxy")
    assert (numbers["num_records"], numbers["missing_answers"]) == (2, 1)


def test_the_command(tmp_path, lines, command):
    path = lines(tmp_path / "r.jsonl", RECORDS)
    flags = ["gui", "grounding", "--records", path, "--space", "normalized", "--bbox", "xyxy"]
    shown = command(*flags)
    assert "top1_hit_rate: 0.5000" in shown.stdout
    printed = command(*flags, "--json", "--k", "2")
    assert json.loads(printed.stdout)["metrics"]["oracle_at_2"] == 0.75
