import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.cli.main import main
from adjudge.errors import ConfigError, InputError, OutputError
from adjudge.protocols.flight.fields import FIELDS, TASKS
from adjudge.protocols.flight.garmin import read_log
from adjudge.protocols.flight.make_tasks import find_windows, make_tasks

DATA = Path(os.environ.get("ADJUDGE_DATA", Path(__file__).parents[3] / "shared" / "data")) / "flight_g3x"

NAMES = [
    *("Date (yyyy-mm-dd)", "Time (hh:mm:ss)", "UTC Offset (hh:mm)", "Latitude (deg)", "Longitude (deg)"),
    *("GPS Altitude (ft)", "GPS Ground Track (deg)", "Magnetic Heading (deg)", "GPS Velocity E (m/sec)"),
    *("GPS Velocity N (m/sec)", "GPS Velocity U (m/sec)", "GPS Ground Speed (kt)", "Roll (deg)", "Pitch (deg)"),
    *("Normal Acceleration (G)", "Lateral Acceleration (G)", "Vertical Speed (ft/min)", "Indicated Airspeed (kt)"),
    *("Baro Altitude (ft)", "Pressure Altitude (ft)"),
]


def write_log(path, seconds, blank=(), unreadable=()):
    """A G3X log with these seconds after 10:00:00 (None: no stamp); track blank or unreadable in the rows named."""
    lines = ["#airframe_info,x", ",".join(NAMES), ",".join("" for _ in NAMES)]
    for row, second in enumerate(seconds):
        clock = "" if second is None else f"10:{second // 60:02d}:{second % 60:02d}"
        track = "" if row in blank else "?" if row in unreadable else "90"
        position = f"47.{row:03d},-122.5,1500,{track},{(75 + 2 * row) % 360}"
        lines.append(f"2024-05-01,{clock},+00:00,{position},50,0,0.5,97.2,1.5,2.5,1.01,-0.02,100,95,1400,1380")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


TRACK_BLANK = "blank GPS Ground Track (deg true)"
TURN_MISSING = "derived Turn Rate (deg/sec) missing"


@pytest.mark.parametrize(
    "seconds, blank, tasks, left_out",
    [
        # The first second has none before it, so its turn rate is missing.
        ([0, 1, 2, 3], (), 2, {TURN_MISSING: 1}),
        ([0, 1, 2, 4, 5, 6], (), 2, {TURN_MISSING: 2, "gap of 2 s": 1}),
        ([0, 1, 2, 2, 3, 4], (), 2, {TURN_MISSING: 2, "repeated stamp": 1}),
        ([0, 1, 2, 1, 2, 3], (), 2, {TURN_MISSING: 2, "backward stamp": 1}),
        ([0, 1, 2, 3, 4, 5], (3,), 2, {TURN_MISSING: 1, TRACK_BLANK: 2}),
        # A window with several reasons counts under the first: the step before the blank, the blank before the derived.
        ([0, 1, 2, 9, 10, 11], (3,), 2, {TURN_MISSING: 1, "gap of 7 s": 1, TRACK_BLANK: 1}),
        ([0, 1, None, 3, 4, 5], (), 1, {TURN_MISSING: 2, "no time stamp": 2}),
    ],
)
def test_windows_of_pairs_and_reasons(tmp_path, seconds, blank, tasks, left_out):
    counts = make_tasks([write_log(tmp_path / "a.csv", seconds, blank)], "S1", tmp_path / "out")
    assert counts.tasks == tasks
    assert counts.left_out == left_out
    assert counts.windows == len(seconds) - 1
    assert sum(log.recorded for log in counts.logs) == tasks + left_out.get(TURN_MISSING, 0)
    assert len(read(counts.tasks_path)) == len(read(counts.reference_path)) == tasks


def test_unreadable_cells_are_not_called_blank(tmp_path):
    log = write_log(tmp_path / "a.csv", range(8), blank=(6,), unreadable=(3,))
    assert make_tasks([log], "S1", tmp_path / "out").left_out == {
        TURN_MISSING: 1,
        "unreadable GPS Ground Track (deg true)": 2,
        TRACK_BLANK: 2,
    }


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(st.sampled_from([1, 1, 1, 1, 2, 0, -1]), min_size=6, max_size=25),
    blank=st.sets(st.integers(0, 25)),
    task=st.sampled_from(sorted(TASKS)),
)
def test_every_window_is_a_task_or_has_one_reason(tmp_path_factory, steps, blank, task):
    seconds = [100]
    for step in steps:
        seconds.append(seconds[-1] + step)
    log = read_log(write_log(tmp_path_factory.mktemp("log") / "a.csv", seconds, blank))
    length = TASKS[task].shown + TASKS[task].steps
    windows = find_windows(log, TASKS[task])
    assert len(windows.starts) + len(windows.reasons) == max(0, len(seconds) - length + 1)
    expected = [
        start
        for start in range(1, len(seconds) - length + 1)
        if all(seconds[row + 1] - seconds[row] == 1 for row in range(start - 1, start + length - 1))
        and not blank & set(range(start, start + length))
    ]
    assert windows.starts == expected


@pytest.mark.parametrize("task", ["S1", "M1", "M3"])
def test_records(tmp_path, task):
    counts = make_tasks([write_log(tmp_path / "flight.csv", range(10))], task, tmp_path / "out")
    shown, steps = TASKS[task].shown, TASKS[task].steps
    assert counts.windows == 10 - shown - steps + 1
    first, reference = read(counts.tasks_path)[0], read(counts.reference_path)[0]
    last_shown = shown  # rows count from 0, and the first has no turn rate
    assert list(first) == ["id", "task", "flight_id", "question", "current_state", "derived"]
    assert first["id"] == reference["id"] == f"flight-20240501T1000{last_shown:02d}Z"
    assert first["task"] == task
    assert first["flight_id"] == reference["flight_id"] == "flight"
    assert first["derived"] == ["Turn Rate (deg/sec)", "Slip/Skid"]
    assert first["current_state"] == reference["current_state"]
    states = [first["current_state"]] if task == "S1" else first["current_state"]
    assert [state["Latitude (WGS84 deg)"] for state in states] == [
        pytest.approx(47 + row / 1000) for row in range(1, 1 + shown)
    ]
    assert all(list(state) == list(FIELDS) for state in states)
    assert states[-1]["Turn Rate (deg/sec)"] == 2.0
    for field in FIELDS:
        assert f"- {field}\n" in first["question"] + "\n"
    for state in states:
        assert json.dumps(state, separators=(",", ":")) in first["question"]
    next_rows = [47 + row / 1000 for row in range(1 + shown, 1 + shown + steps)]
    if task == "S1":
        assert reference["next_second"]["Latitude (WGS84 deg)"] == pytest.approx(next_rows[0])
        assert "T+1" not in reference
    else:
        assert reference["T+1"]["Latitude (WGS84 deg)"] == pytest.approx(next_rows)
        assert list(reference["T+1"]) == list(FIELDS)
        assert "next_second" not in reference
    assert ("arrays of exactly 3" in first["question"] or "array of exactly 3" in first["question"]) == (task == "M3")


def test_ids_are_unique_where_stamps_recur(tmp_path):
    seconds = [0, 1, 2, 3, 1, 2, 3]
    logs = [write_log(tmp_path / "a.csv", seconds), write_log(tmp_path / "b.csv", seconds)]
    counts = make_tasks(logs, "S1", tmp_path / "out")
    ids = [record["id"] for record in read(counts.tasks_path)]
    assert len(set(ids)) == len(ids) == counts.tasks == 6
    assert ids[:3] == ["a-20240501T100001Z", "a-20240501T100002Z", "a-20240501T100002Z-L9"]
    assert [log.tasks for log in counts.logs] == [3, 3]


def test_one_flight_recorded_twice(tmp_path):
    logs = [write_log(tmp_path / "a.csv", range(4)), write_log(tmp_path / "b.csv", range(4))]
    counts = make_tasks(logs, "S1", tmp_path / "out", flight_id="F7")
    assert {record["flight_id"] for record in read(counts.reference_path)} == {"F7"}


def test_the_same_logs_give_the_same_bytes(tmp_path):
    log = write_log(tmp_path / "a.csv", range(9))
    first, second = (make_tasks([log], "M3", tmp_path / out) for out in ("one", "two"))
    assert first.tasks_path.read_bytes() == second.tasks_path.read_bytes()
    assert first.reference_path.read_bytes() == second.reference_path.read_bytes()


def test_existing_files_are_kept_unless_forced(tmp_path):
    log = write_log(tmp_path / "a.csv", range(4))
    out = tmp_path / "out"
    out.mkdir()
    (out / "reference.jsonl").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match=r"reference.jsonl exists already; .*--force"):
        make_tasks([log], "S1", out)
    assert [path.name for path in out.iterdir()] == ["reference.jsonl"]
    assert (out / "reference.jsonl").read_text(encoding="utf-8") == "mine"
    make_tasks([log], "S1", out, force=True)
    assert len(read(out / "reference.jsonl")) == 2


def test_nothing_is_written_where_one_log_is_bad(tmp_path):
    (tmp_path / "bad.csv").write_text("hello", encoding="utf-8")
    out = tmp_path / "out"
    with pytest.raises(InputError, match="not a Garmin"):
        make_tasks([write_log(tmp_path / "a.csv", range(4)), tmp_path / "bad.csv"], "S1", out)
    assert not out.exists()


def test_a_failing_write_leaves_nothing(tmp_path, monkeypatch):
    log = write_log(tmp_path / "a.csv", range(4))
    out = tmp_path / "out"

    def no_space(self, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(Path, "replace", no_space)
    with pytest.raises(OutputError, match="No space left"):
        make_tasks([log], "S1", out)
    assert list(out.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_an_output_error(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(OutputError, match="cannot write"):
        make_tasks([write_log(tmp_path / "a.csv", range(4))], "S1", tmp_path / "file" / "out")


def test_a_log_without_any_window_says_why(tmp_path):
    log = write_log(tmp_path / "a.csv", [0, 2, 4])
    with pytest.raises(InputError, match=r"no 2 consecutive seconds .* left out: 2 gap of 2 s"):
        make_tasks([log], "S1", tmp_path / "out")
    with pytest.raises(InputError, match="too few rows"):
        make_tasks([log], "M3", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_wrong_calls(tmp_path):
    log = write_log(tmp_path / "a.csv", range(4))
    with pytest.raises(ConfigError, match="unknown task 'S2'; expected one of S1, M1, M3"):
        make_tasks([log], "S2", tmp_path / "out")
    with pytest.raises(ConfigError, match="at least one log"):
        make_tasks([], "S1", tmp_path / "out")
    (tmp_path / "sub").mkdir()
    with pytest.raises(ConfigError, match="two logs are called 'a'"):
        make_tasks([log, write_log(tmp_path / "sub" / "a.csv", range(4))], "S1", tmp_path / "out")


@pytest.mark.realdata
@pytest.mark.parametrize(
    "task, first, second",
    [
        ("S1", (260, {TRACK_BLANK: 795, "gap of 2 s": 1, TURN_MISSING: 1}), (262, {TRACK_BLANK: 796})),
        ("M1", (256, {TRACK_BLANK: 795, "gap of 2 s": 3, TURN_MISSING: 1}), (260, {TRACK_BLANK: 796})),
        ("M3", (252, {TRACK_BLANK: 795, "gap of 2 s": 5, TURN_MISSING: 1}), (258, {TRACK_BLANK: 796})),
    ],
)
def test_real_recordings(tmp_path, task, first, second):
    paths = sorted(DATA.glob("log_*.csv"))
    if len(paths) != 2:
        pytest.skip(f"needs the two G3X recordings in {DATA}")
    counts = make_tasks(paths, task, tmp_path / "out")
    assert [(log.recorded, log.left_out) for log in counts.logs] == [first, second]
    rows = [1057, 1059]
    length = TASKS[task].shown + TASKS[task].steps
    assert [log.windows for log in counts.logs] == [n - length + 1 for n in rows]
    assert [log.tasks + sum(log.left_out.values()) for log in counts.logs] == [log.windows for log in counts.logs]
    assert len({record["id"] for record in read(counts.tasks_path)}) == counts.tasks


@pytest.mark.parametrize("tail", [131_072, 131_073, 524_288])
def test_a_log_whose_end_is_nul_is_read_up_to_it_and_said(tmp_path, tail):
    """The power went while the log was written: what stands before the tail is a log like any other."""
    log = write_log(tmp_path / "flight.csv", [0, 1, 2, 3])
    whole = make_tasks([log], "S1", tmp_path / "whole")
    log.write_bytes(log.read_bytes() + b"\0" * tail)
    cut = make_tasks([log], "S1", tmp_path / "cut")
    assert cut.tasks == whole.tasks > 0
    assert (tmp_path / "cut" / "tasks.jsonl").read_bytes() == (tmp_path / "whole" / "tasks.jsonl").read_bytes()
    assert [counts.nul_tail for counts in cut.logs] == [tail]
    done = CliRunner().invoke(
        main, ["flight", "make-tasks", str(log), "--out", str(tmp_path / "told")], standalone_mode=False
    )
    assert f"its last {tail:,} bytes, which are NUL" in done.stderr
