"""Records become the same columns by compiled loops and one by one; and most of them take the compiled loops."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks import gui
from hypothesis import given, settings

from adjudge.engine import split
from adjudge.engine.verify import verify
from adjudge.errors import InputError
from adjudge.protocols.base import Block
from adjudge.protocols.gui import scanned
from adjudge.protocols.gui.blocks import BlockReader
from adjudge.readers.gui.model import TYPES
from adjudge.runs.run import Run


def block(rows, *, fast):
    data = b"\n".join(rows)
    ends = np.cumsum([len(row) + 1 for row in rows]) - 1
    starts = ends - [len(row) for row in rows]
    lines = np.arange(7, 7 + len(rows))
    return Block("f.jsonl", 3, data, starts.astype(np.int32), ends.astype(np.int32), lines, fast)


def outcome(read, rows, *, fast):
    """The table, or the error in words."""
    try:
        table = read(block(rows, fast=fast))
    except InputError as error:
        return str(error)
    # NaN is equal to NaN here.
    return table.schema, [repr(row) for row in table.to_pylist()]


def written(rows, seed):
    """Spelled with and without blanks and escapes."""
    return [
        json.dumps(row, ensure_ascii=bool(k & 1), separators=(",", ":") if k & 2 else None).encode()
        for k, row in enumerate(rows, seed)
    ]


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(["Enter", 'a "b"', "ü\n"])
numbers = st.sampled_from([0, 1, -0.0, 0.25, 0.5, 17, 1e-3, 123456.75, 0.1234567890123456])
names = st.sampled_from(["a", "b", "é", 4, 17, ""])
kinds = st.sampled_from(["click", "CLICK", "type", "key", "Scroll", "hotkey", "drag", "done", "select", "nothing"])
strange = st.sampled_from([None, True, "x", 3, 2.5, [], {}, [1], [[1, 2, 3, 4]], 2**60, 2**70, -0])
boxes = st.lists(numbers, min_size=4, max_size=4) | st.lists(st.lists(numbers, min_size=4, max_size=4), max_size=2)


def maybe(**optional):
    return st.fixed_dictionaries({}, optional=optional)


@st.composite
def with_strange(draw, records):
    """Now and then a value of another kind somewhere."""
    record = draw(records)
    if record and draw(st.integers(0, 5)) == 0:
        record = {**record, draw(st.sampled_from(sorted(record))): draw(strange)}
    return record


elements = with_strange(maybe(id=names | st.none(), bbox=boxes | st.none()))
actions = with_strange(
    st.fixed_dictionaries(
        {"type": kinds},
        optional={
            **dict.fromkeys(("x", "y", "end_x", "end_y"), numbers | st.none()),
            **dict.fromkeys(("text", "key", "direction"), words | st.none()),
            "element": elements | st.none(),
            "more": words,
        },
    )
)
steps = with_strange(st.fixed_dictionaries({"step": st.integers(-3, 9), "action": actions}))
milestones = with_strange(
    st.fixed_dictionaries({"name": words, "step": st.integers(0, 3), "type": kinds}, optional={"element": names})
)
episodes = with_strange(
    st.fixed_dictionaries(
        {"episode_id": names, "steps": st.lists(steps, min_size=1, max_size=4)},
        optional={
            **dict.fromkeys(("scenario", "goal", "platform"), words | st.none()),
            "screen": with_strange(st.fixed_dictionaries({"width": numbers, "height": numbers})) | st.none(),
            "milestones": st.lists(milestones, max_size=2) | st.none(),
            "id": names | st.none(),
        },
    )
)
spoken = st.sampled_from(
    [
        *("CLICK(x=0.5, y=0.25)", "Action: DONE()", 'I see.\nAction: TYPE("ü")', "KEY('enter')", "CLICK(x=7, y=8", ""),
        *("CLICK([3])", 'SELECT([4], "x")', "NOTHING(1)", r'TYPE("\ud800")', "DRAG(x=0, y=0, end_x=1, end_y=1)"),
    ]
)
predictions = with_strange(
    st.fixed_dictionaries(
        {"episode_id": names, "step": st.integers(-3, 9)},
        optional={
            "state": with_strange(maybe(success=st.booleans() | st.none())) | st.none(),
            "id": names,
            "annotation_id": words | st.none(),
        },
    )
).flatmap(
    lambda record: st.one_of(
        spoken.map(lambda raw: {**record, "raw": raw}),
        actions.map(lambda action: {**record, "action": action}),
        st.tuples(spoken | st.none(), actions | st.none()).map(
            lambda both: {**record, "raw": both[0], "action": both[1]}
        ),
    )
)


@settings(max_examples=200, deadline=None)
@given(st.lists(episodes, min_size=1, max_size=4), st.integers(0, 3), st.sampled_from(["xyxy", "xywh"]))
def test_episodes(rows, seed, bbox):
    read = BlockReader(TYPES, space="normalized", bbox=bbox).episodes
    rows = written(rows, seed)
    assert outcome(read, rows, fast=True) == outcome(read, rows, fast=False)


@settings(max_examples=200, deadline=None)
@given(st.lists(predictions, min_size=1, max_size=4), st.integers(0, 3))
def test_predictions(rows, seed):
    read = BlockReader(TYPES, space="normalized", bbox="xyxy").predictions
    rows = written(rows, seed)
    assert outcome(read, rows, fast=True) == outcome(read, rows, fast=False)


CLICK = {"type": "Click", "x": 0.5, "y": 1, "element": {"id": 7, "bbox": [0, 0.25, 1, 1]}}
PLAIN_EPISODES = [
    {
        "episode_id": "é",
        "steps": [{"step": 0, "action": CLICK}, {"step": 2, "action": {"type": "key", "key": "\u00fc"}}],
    },
    {
        "episode_id": 4,
        "scenario": "s",
        "platform": None,
        "goal": "g",
        "screen": {"width": 100, "height": 50.5},
        "milestones": [{"name": "m", "step": 0, "type": "DONE"}],
        "steps": [{"step": 1, "action": {"type": "scroll", "direction": "up", "text": None, "element": None}}],
    },
]
PLAIN_PREDICTIONS = [
    {"episode_id": "a", "step": 0, "raw": "CLICK(x=0.5, y=0.25)", "state": {"success": True}},
    {"episode_id": "a", "step": 1, "raw": "no action", "action": None, "state": {}},
    {"episode_id": 3, "step": -1, "action": CLICK, "raw": None},
]


def test_what_is_plainly_written_is_not_left_to_the_ordinary_way():
    """Were the loops never used, the properties above would hold of nothing."""
    table, owner, odd = scanned.episodes(block(written(PLAIN_EPISODES, 0), fast=True))
    assert (table.num_rows, owner.tolist(), odd.tolist()) == (3, [0, 0, 1], [False, False])
    said, odd = scanned.predictions(block(written(PLAIN_PREDICTIONS, 0), fast=True), TYPES)
    assert (said.num_rows, odd.tolist()) == (3, [False] * 3)


@pytest.mark.parametrize("fast", [True, False])
def test_the_columns_of_an_episode(fast):
    read = BlockReader(TYPES, space="normalized", bbox="xyxy").episodes
    first, second, third = read(block(written(PLAIN_EPISODES, 0), fast=fast)).to_pylist()
    assert (first["key"], first["file"], first["line"], first["step"], first["whole"]) == ("é", 3, 7, 0, True)
    assert (TYPES[first["kind"]], first["x"], first["y"], first["element"]) == ("click", 0.5, 1.0, "7")
    assert (first["boxes"], first["argument"], np.isnan(first["width"])) == ([0, 0.25, 1, 1], None, True)
    assert (second["line"], second["step"], second["argument"], second["boxes"]) == (7, 2, "ü", None)
    assert (third["key"], third["line"], third["argument"], third["scenario"]) == ("4", 8, "up", "s")
    assert (third["width"], third["height"], third["goal"], third["platform"]) == (100.0, 50.5, None, None)
    assert json.loads(third["milestones"]) == [{"name": "m", "step": 0, "type": "done"}]


@pytest.mark.parametrize("fast", [True, False])
def test_the_columns_of_a_prediction(fast):
    read = BlockReader(TYPES, space="normalized", bbox="xyxy").predictions
    first, second, third = read(block(written(PLAIN_PREDICTIONS, 0), fast=fast)).to_pylist()
    assert (first["type"], first["x"], first["y"], first["structured"]) == ("click", 0.5, 0.25, False)
    assert (first["raw"], first["self_report"], first["note"]) == ("CLICK(x=0.5, y=0.25)", True, None)
    assert (second["type"], second["self_report"], second["line"]) == (None, None, 8)
    assert second["note"] == "there is no action (characters 0 to 9)"
    assert (third["key"], third["step"], third["type"], third["element"]) == ("3", -1, "click", "7")
    assert (third["structured"], third["raw"]) == (True, None)


@pytest.mark.parametrize("text", [True, False], ids=["text", "actions"])
def test_a_run_is_the_same_either_way(tmp_path, monkeypatch, text):
    episodes, predictions = gui.make(tmp_path, 2000, text=text, seed=5)
    lines = predictions.read_text(encoding="utf-8").splitlines(keepends=True)
    lines.append('{"episode_id": "episode-0000003", "step": 99, "action": {"type": "jump"}}\n')
    runs = []
    for name, worth_it in (("ordinary", 1 << 40), ("fast", 0), ("shuffled", 0)):
        monkeypatch.setattr(split, "WORTH_IT", worth_it)
        if name == "shuffled":
            np.random.default_rng(1).shuffle(lines)
        predictions.write_text("".join(lines), encoding="utf-8")
        gui.columnar(episodes, predictions, tmp_path / name)
        runs.append(Run(tmp_path / name))
        assert verify(runs[-1]) == []
    first, *others = runs
    assert first.metrics["metrics"]["unmatched_predictions"] == 1
    for other in others:
        assert (other.path / "metrics.json").read_bytes() == (first.path / "metrics.json").read_bytes()
        assert other.manifest.digests == first.manifest.digests
        assert (other.path / "samples.parquet").read_bytes() == (first.path / "samples.parquet").read_bytes()
        for folder in ("evidence", "outputs"):
            assert pq.read_table(other.path / folder).equals(pq.read_table(first.path / folder))
