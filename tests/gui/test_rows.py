"""Blocks of records become columns: every value where it belongs, the same however many records a block has."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks import data
from hypothesis import given, settings

import adjudge
from adjudge.engine.evaluate import Options, evaluate
from adjudge.engine.verify import verify
from adjudge.errors import InputError
from adjudge.protocols.base import protocol
from adjudge.protocols.gui.rows import RowReader
from adjudge.readers.blocks import block_of
from adjudge.readers.gui.model import TYPES
from adjudge.runs.run import Run

KINDS = ("click", "type", "key", "scroll", "hotkey", "drag", "done", "select")


def reader(bbox="xyxy", types=TYPES):
    return RowReader(types, space="normalized", bbox=bbox)


def read(method, rows, seed=0):
    """The rows of the table, NaN equal to NaN, or the error in words. Spelled with and without blanks and escapes."""
    texts = [
        json.dumps(row, ensure_ascii=bool(k & 1), separators=(",", ":") if k & 2 else None).encode()
        for k, row in enumerate(rows, seed)
    ]
    try:
        return [repr(row) for row in method(block_of(enumerate(texts, 7), "f.jsonl", 3)).to_pylist()]
    except InputError as error:
        return str(error)


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
edges = st.tuples(numbers, numbers).map(sorted)
corners = st.tuples(edges, edges).map(lambda both: [both[0][0], both[1][0], both[0][1], both[1][1]])
plain_actions = st.fixed_dictionaries(
    {"type": st.sampled_from([*KINDS, "CLICK", "Scroll"])},
    optional={
        **dict.fromkeys(("x", "y", "end_x", "end_y"), numbers | st.none()),
        **dict.fromkeys(("text", "key", "direction"), words | st.none()),
        "element": maybe(id=names | st.none(), bbox=corners | st.lists(corners, max_size=5) | st.none()) | st.none(),
    },
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


def one_by_one(method, rows):
    """What the records give alone, each in a block of its own; the errors of those that are refused."""
    texts = [json.dumps(row).encode() for row in rows]
    read_rows, errors = [], []
    for line, text in enumerate(texts, 7):
        try:
            read_rows += [repr(row) for row in method(block_of([(line, text)], "f.jsonl", 3)).to_pylist()]
        except InputError as error:
            errors.append(str(error))
    return read_rows, errors


@settings(max_examples=80, deadline=None)
@given(st.lists(episodes, min_size=1, max_size=4), st.integers(0, 3), st.sampled_from(["xyxy", "xywh"]))
def test_an_episode_is_the_same_in_any_block(rows, seed, bbox):
    method = reader(bbox, (*TYPES, "nothing")).episodes
    alone, errors = one_by_one(method, rows)
    together = read(method, rows, seed)
    assert together in errors if errors else together == alone


@settings(max_examples=80, deadline=None)
@given(st.lists(predictions, min_size=1, max_size=4), st.integers(0, 3))
def test_a_prediction_is_the_same_in_any_block(rows, seed):
    method = reader().predictions
    alone, errors = one_by_one(method, rows)
    together = read(method, rows, seed)
    assert together in errors if errors else together == alone


def argument_of(action):
    kind = action["type"].lower()
    return action.get({"key": "key", "hotkey": "key", "scroll": "direction"}.get(kind, "text"))


def points_at_its_box(action):
    box = (action.get("element") or {}).get("bbox")
    return bool(box) and action.get("x") is None and action.get("y") is None


@settings(max_examples=100, deadline=None)
@given(st.lists(plain_actions, min_size=1, max_size=5))
def test_the_values_of_an_action_are_those_that_are_written(actions):
    """Said once more over plain dictionaries, for recorded and for predicted actions."""
    steps = [{"step": k, "action": action} for k, action in enumerate(actions)]
    [*recorded] = (
        reader().episodes(block_of([(1, json.dumps({"episode_id": "e", "steps": steps}).encode())])).to_pylist()
    )
    lines = [json.dumps({"episode_id": "e", **step}).encode() for step in steps]
    predicted = reader().predictions(block_of(enumerate(lines, 1))).to_pylist()
    for action, row, said in zip(actions, recorded, predicted, strict=True):
        element = action.get("element") or {}
        name = element.get("id")
        assert (TYPES[row["kind"]], said["type"]) == (action["type"].lower(),) * 2
        for column in (row, said):
            assert column["argument"] == argument_of(action)
            assert column["element"] == (None if name is None else str(name))
            for point in ("x", "y", "end_x", "end_y"):
                value = action.get(point)
                if column is said and point in {"x", "y"} and points_at_its_box(action):
                    continue  # a prediction on a box and without a point is at the centre of the box
                assert np.isnan(column[point]) if value is None else column[point] == value
        box = element.get("bbox") or []
        flat = [value for one in (box if box and isinstance(box[0], list) else [box]) for value in one]
        assert row["boxes"] == (flat or None)


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


def block(rows):
    return block_of(enumerate((json.dumps(row).encode() for row in rows), 7), "f.jsonl", 3)


def test_the_columns_of_an_episode():
    first, second, third = reader().episodes(block(PLAIN_EPISODES)).to_pylist()
    assert (first["key"], first["file"], first["line"], first["step"], first["whole"]) == ("é", 3, 7, 0, True)
    assert (TYPES[first["kind"]], first["x"], first["y"], first["element"]) == ("click", 0.5, 1.0, "7")
    assert (first["boxes"], first["argument"], first["width"]) == ([0, 0.25, 1, 1], None, None)
    assert (second["line"], second["step"], second["argument"], second["boxes"]) == (7, 2, "ü", None)
    assert (third["key"], third["line"], third["argument"], third["scenario"]) == ("4", 8, "up", "s")
    assert (third["width"], third["height"], third["goal"], third["platform"]) == (100.0, 50.5, None, None)
    assert json.loads(third["milestones"]) == [{"name": "m", "step": 0, "type": "done"}]


def test_the_columns_of_a_prediction():
    first, second, third = reader().predictions(block(PLAIN_PREDICTIONS)).to_pylist()
    assert (first["type"], first["x"], first["y"], first["structured"]) == ("click", 0.5, 0.25, False)
    assert (first["raw"], first["self_report"], first["note"]) == ("CLICK(x=0.5, y=0.25)", True, None)
    assert (second["type"], second["self_report"], second["line"]) == (None, None, 8)
    assert second["note"] == "there is no action (characters 0 to 9)"
    assert (third["key"], third["step"], third["type"], third["element"]) == ("3", -1, "click", "7")
    assert (third["structured"], third["raw"]) == (True, None)


@pytest.mark.parametrize("text", [True, False], ids=["text", "actions"])
def test_a_run_is_the_same_in_any_order(tmp_path, text):
    episodes, predictions = data.gui(2000, tmp_path, 5, "four", texts=text)
    config = {
        "episodes": [str(episodes)],
        "predictions": [str(predictions)],
        "space": "normalized",
        "bbox": "xyxy",
        "unmatched": "report",
        "resamples": 100,
    }
    first_episode = json.loads(episodes.read_text(encoding="utf-8").split("\n")[0])["episode_id"]
    lines = [f"{line}\n" for line in predictions.read_text(encoding="utf-8").split("\n") if line]
    lines.append(json.dumps({"episode_id": first_episode, "step": 99, "action": {"type": "jump"}}) + "\n")
    runs = []
    for name in ("first", "shuffled"):
        if name == "shuffled":
            np.random.default_rng(1).shuffle(lines)
        predictions.write_text("".join(lines), encoding="utf-8")
        runs.append(adjudge.evaluate("gui", config, out=tmp_path / name, report=False))
        assert verify(runs[-1]).problems == []
    first, other = runs
    assert first.metrics["metrics"]["unmatched_predictions"] == 1
    assert (other.path / "metrics.json").read_bytes() == (first.path / "metrics.json").read_bytes()
    assert other.manifest.digests == first.manifest.digests
    assert (other.path / "samples.parquet").read_bytes() == (first.path / "samples.parquet").read_bytes()
    for folder in ("evidence", "outputs"):
        assert pq.read_table(other.path / folder).equals(pq.read_table(first.path / folder))


STEP = {"step": 0, "action": {"type": "click", "x": 0.5, "y": 0.5}}
ODD_FILES = {
    "a byte order mark": lambda lines: b"\xef\xbb\xbf" + b"\n".join(lines) + b"\n",
    "carriage returns": lambda lines: b"\r\n".join(lines) + b"\r\n",
    "blank lines": lambda lines: b"\n \n\n".join(lines) + b"\n\n",
    "no last line end": b"\n".join,
    "a lone surrogate": lambda lines: b"\n".join(lines).replace(b"spoken", b"spo\\ud800en"),
    "bytes that are not UTF-8": lambda lines: b"\n".join(lines).replace(b"spoken", b"spo\xffen"),
    "a zero byte": lambda lines: b"\n".join(lines).replace(b"spoken", b"spo\x00en"),
}


@pytest.mark.parametrize("odd", ODD_FILES)
def test_odd_characters_cost_themselves_and_not_the_run(tmp_path, odd):
    told = [
        json.dumps({"episode_id": name, "goal": "spoken", "scenario": name, "steps": [STEP]}) for name in ("a", "A")
    ]
    said = [
        {"episode_id": "a", "step": 0, "action": {**STEP["action"], "text": "spoken"}},
        {"episode_id": "A", "step": 0, "raw": "spoken words\nAction: CLICK(x=0.5, y=0.5)"},
    ]
    files = {"episodes": told, "predictions": [json.dumps(row) for row in said]}
    for name, lines in files.items():
        (tmp_path / f"{name}.jsonl").write_bytes(ODD_FILES[odd]([line.encode() for line in lines]))
    config = {name: [str(tmp_path / f"{name}.jsonl")] for name in files} | {"space": "normalized", "bbox": "xyxy"}
    run = Run(evaluate(protocol("gui"), config, Options(out=tmp_path / "run")))
    assert run.metrics["metrics"]["episode_success_rate"] == 1.0
    # Scenarios that differ in case alone are two.
    assert sorted(run.metrics["metrics_by_scenario"]) == ["A", "a"]
    assert verify(run).problems == []
    replaced = [note for note in run.manifest.notes if "held" in note]
    assert len(replaced) == (2 if odd.startswith(("a lone", "bytes", "a zero")) else 0)


def notes_of(tmp_path, **files):
    for name, rows in files.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = {name: [str(tmp_path / f"{name}.jsonl")] for name in files} | {"space": "normalized", "bbox": "xyxy"}
    return Run(evaluate(protocol("gui"), config, Options(out=tmp_path / "run"))).manifest.notes


def test_keys_that_nothing_reads_are_named(tmp_path):
    done = {"type": "click", "x": 0.5, "y": 0.5}
    notes = notes_of(
        tmp_path,
        episodes=[{"episode_id": "e", "reward": 1, "steps": [{"step": 0, "why": "", "action": {**done, "width": 3}}]}],
        predictions=[
            {
                "episode_id": "e",
                "step": 0,
                "thought": "",
                "action": {**done, "scroll_amount": 2, "element": {"id": 3, "xpath": "/a"}},
            }
        ],
        outcomes=[{"episode_id": "e", "success": True, "judge": "me"}],
    )
    expected = {
        "episodes": "`reward` (100 %), `steps.action.width` (100 %), `steps.why` (100 %)",
        "predictions": "`action.element.xpath` (100 %), `action.scroll_amount` (100 %), `thought` (100 %)",
        "outcomes": "`judge` (100 %)",
    }
    for role, words in expected.items():
        assert [note for note in notes if note.startswith(f"{role}: keys that nothing reads: {words}")]


def test_keys_of_every_format_are_read(tmp_path):
    click, point = {"type": "click", "x": 0.5, "y": 0.5, "end_x": None}, {"x": 5, "y": 5}
    box = {"element_id": "b", "bounds": {"x": 1, "y": 1, "width": 2, "height": 2}}
    current = {
        "type": "click",
        "coordinates": point,
        "normalized_coordinates": [0.5, 0.5],
        "modifiers": [],
        "element": box,
    }
    told = [
        {"episode_id": "a", "scenario": "s", "milestones": [], "steps": [{"step": 0, "action": click}]},
        {"id": "b", "workflow_id": "s", "goal": "g", "steps": [{"action": {**click, "element_index": 3}}]},
        {
            "episode_id": "c",
            "instruction": "i",
            "task_id": "s",
            "environment": "web",
            "steps": [{"step_index": 0, "observation": {"screen_size": [10, 10]}, "action": current}],
        },
        {"episode_id": "d", "step": 0, "type": "click", "x": 0.5, "y": 0.5, "element_id": 3, "screen_width": 9},
    ]
    said = [{"episode_id": name, "step": 0, "action": click, "state": {"success": True}} for name in "abc"]
    said.append({"annotation_id": "d", "step": 0, "gpt_action": "CLICK", "gpt_value": "None"})
    outcomes = [{"episode_id": "a", "success": True, "checker": "c"}]
    notes = notes_of(tmp_path, episodes=told, predictions=said, outcomes=outcomes)
    assert not [note for note in notes if "nothing reads" in note]
