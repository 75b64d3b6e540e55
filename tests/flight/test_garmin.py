import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.errors import InputError
from adjudge.protocols.flight.fields import FIELDS
from adjudge.protocols.flight.garmin import pressure_altitude, read_log, turn_rate

DATA = Path(os.environ.get("ADJUDGE_DATA", Path(__file__).parents[3] / "shared" / "data")) / "flight_g3x"

G3X_NAMES = {
    "Date (yyyy-mm-dd)": "2024-05-01",
    "Time (hh:mm:ss)": "10:00:00",
    "UTC Offset (hh:mm)": "+02:00",
    "Latitude (deg)": "+47.5",
    "Longitude (deg)": "-122.25",
    "GPS Altitude (ft)": "1500",
    "GPS Ground Track (deg)": "90",
    "Magnetic Heading (deg)": "75.5",
    "GPS Velocity E (m/sec)": "50",
    "GPS Velocity N (m/sec)": "0",
    "GPS Velocity U (m/sec)": "-0.00",
    "GPS Ground Speed (kt)": "97.2",
    "Roll (deg)": "1.5",
    "Pitch (deg)": "2.5",
    "Normal Acceleration (G)": "1.01",
    "Lateral Acceleration (G)": "-0.02",
    "Vertical Speed (ft/min)": "120",
    "Indicated Airspeed (kt)": "95.0",
    "Baro Altitude (ft)": "1400",
    "Pressure Altitude (ft)": "1380",
}
G1000_NAMES = {
    "Lcl Date": "2024-05-01",
    "Lcl Time": "10:00:00",
    "UTCOfst": "-05:00",
    "AtvWpt": "KXYZ",
    "Latitude": "47.5",
    "Longitude": "-122.25",
    "AltB": "1400.0",
    "BaroA": "30.12",
    "AltMSL": "1390.0",
    "IAS": "95.0",
    "GndSpd": "100.00",
    "VSpd": "393.70",
    "Pitch": "2.5",
    "Roll": "1.5",
    "LatAc": "-0.02",
    "NormAc": "0.03",
    "HDG": "75.5",
    "TRK": "30.0",
    "AltGPS": "1300.0",
}


def write_g3x(path, rows, *, drop=()):
    names = [name for name in G3X_NAMES if name not in drop]
    lines = ['#airframe_info,log_version="1.00",product="GDU 460"', ",".join(names), ",".join("x" for _ in names)]
    lines += [",".join({**G3X_NAMES, **row}[name] for name in names) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_g1000(path, rows, *, drop=()):
    names = [name for name in G1000_NAMES if name not in drop]
    lines = ['#airframe_info, log_version="1.00",', "#yyy-mm-dd, " + ", ".join("deg" for _ in names[1:])]
    lines.append("  " + ", ".join(f"{name:>7}" for name in names))
    lines += [", ".join(f"{ {**G1000_NAMES, **row}[name]:>7}" for name in names) for row in rows]
    path.write_text("\r\n".join(lines) + "\r\n", encoding="utf-8")
    return path


def test_g3x_log(tmp_path):
    log = read_log(write_g3x(tmp_path / "a.csv", [{}, {"Time (hh:mm:ss)": "10:00:01", "Magnetic Heading (deg)": "78"}]))
    assert log.system == "G3X"
    assert list(log.columns) == list(FIELDS)
    assert log.derived == ("Turn Rate (deg/sec)", "Slip/Skid")
    # 2024-05-01 08:00:00 UTC
    assert log.time.tolist() == [1714550400.0, 1714550401.0]
    assert log.lines.tolist() == [4, 5]
    assert np.isnan(log.columns["Turn Rate (deg/sec)"][0])
    assert log.columns["Turn Rate (deg/sec)"][1] == 2.5
    assert log.columns["Slip/Skid"].tolist() == [-0.02, -0.02]
    assert log.columns["Normal Acceleration (G)"][0] == 1.01
    assert log.columns["Pressure Altitude (ft)"][0] == 1380
    assert not np.signbit(log.columns["GPS Velocity U (m/s)"][0])


def test_g1000_log(tmp_path):
    log = read_log(write_g1000(tmp_path / "a.csv", [{}]))
    assert log.system == "G1000"
    assert log.derived == (
        "GPS Velocity E (m/s)",
        "GPS Velocity N (m/s)",
        "GPS Velocity U (m/s)",
        "Turn Rate (deg/sec)",
        "Slip/Skid",
        "Pressure Altitude (ft)",
    )
    assert log.time.tolist() == [1714550400.0 + 7 * 3600]
    state = {field: column[0] for field, column in log.columns.items()}
    # 100 kt = 51.4444 m/s; sin 30° = 1/2
    assert state["GPS Velocity E (m/s)"] == pytest.approx(25.722, abs=5e-4)
    assert state["GPS Velocity N (m/s)"] == pytest.approx(44.552, abs=5e-4)
    assert state["GPS Velocity U (m/s)"] == pytest.approx(2.0, abs=5e-4)
    assert state["Normal Acceleration (G)"] == 1.03
    assert state["GPS Altitude (WGS84 ft)"] == 1300
    assert state["Baro Altitude (ft)"] == 1400
    assert state["Pressure Altitude (ft)"] == pytest.approx(1400 - 183, abs=1.5)


@pytest.mark.parametrize(
    "setting, altitude",
    # FAA-H-8083-25, Pilot's Handbook of Aeronautical Knowledge, chapter 11: altitude correction for pressure altitude.
    [(28.0, 1824), (28.5, 1340), (29.0, 863), (29.5, 392), (29.92, 0), (30.0, -73), (30.5, -531), (31.0, -983)],
)
def test_pressure_altitude_follows_the_published_correction_table(setting, altitude):
    assert pressure_altitude(np.array([0.0]), np.array([setting]))[0] == pytest.approx(altitude, abs=1.5)


@given(st.floats(0, 359.9), st.floats(-179, 179))
def test_turn_rate_is_the_shortest_arc(heading, turn):
    rate = turn_rate(np.array([0.0, 1.0]), np.array([heading, (heading + turn) % 360.0]))
    assert rate[1] == pytest.approx(turn, abs=1e-3)


@pytest.mark.parametrize("step", [0.0, -1.0, 2.0, 0.5, float("nan")])
def test_turn_rate_needs_the_second_before(step):
    assert np.isnan(turn_rate(np.array([0.0, step]), np.array([10.0, 12.0]))).all()


def test_recorded_turn_rate_and_slip_are_taken(tmp_path):
    path = write_g3x(tmp_path / "a.csv", [{}])
    lines = path.read_text(encoding="utf-8").splitlines()
    added = [lines[0], lines[1] + ",Turn Rate (deg/sec),Slip/Skid", lines[2] + ",,", lines[3] + ",1.25,0.5"]
    path.write_text("\n".join(added), encoding="utf-8")
    log = read_log(path)
    assert log.derived == ()
    assert log.columns["Turn Rate (deg/sec)"][0] == 1.25
    assert log.columns["Slip/Skid"][0] == 0.5


def test_blank_is_nan_and_what_is_no_number_is_remembered(tmp_path):
    rows = [{"Roll (deg)": ""}, {"Roll (deg)": "---"}, {"Roll (deg)": "inf"}, {"Roll (deg)": "2"}]
    log = read_log(write_g3x(tmp_path / "a.csv", rows))
    assert np.isnan(log.columns["Roll (deg)"]).tolist() == [True, True, True, False]
    assert log.unreadable["Roll (deg)"].tolist() == [False, True, True, False]


def test_rows_without_a_stamp_have_no_time(tmp_path):
    rows = [{"Lcl Date": ""}, {"Lcl Time": "25:00:00"}, {"UTCOfst": ""}, {}]
    assert np.isnan(read_log(write_g1000(tmp_path / "a.csv", rows)).time).tolist() == [True, True, True, False]


def test_local_time_where_the_log_states_no_offset(tmp_path):
    local = 1714550400.0 + 2 * 3600
    assert read_log(write_g1000(tmp_path / "a.csv", [{"UTCOfst": ""}])).time.tolist() == [local]
    assert read_log(write_g1000(tmp_path / "b.csv", [{}], drop={"UTCOfst"})).time.tolist() == [local]


def test_a_row_cut_short_is_blank_from_there(tmp_path):
    path = write_g3x(tmp_path / "a.csv", [{}, {}])
    text = path.read_text(encoding="utf-8").rstrip("\n")
    path.write_text(text[: text.rindex(",1400")] + "\n\0\0\0\n\n", encoding="utf-8")
    log = read_log(path)
    assert len(log.time) == 2
    assert np.isnan(log.columns["Baro Altitude (ft)"]).tolist() == [False, True]
    assert log.columns["Indicated Airspeed (kt)"].tolist() == [95.0, 95.0]


@pytest.mark.parametrize(
    "content, line, says",
    [
        (b"", None, "the file is empty"),
        (b"id,label\n1,a\n", 1, "the first line starts with 'id', expected '#airframe_info'"),
        (b"\x89PNG\r\n\x1a\n", 1, "not a Garmin G3X or G1000 log"),
        (b'#airframe_info,product="x"\n', 1, "the header ends after 1 of 3 lines"),
        (b"#airframe_info\na,b,c\nd,e,f\n1,2,3\n", 2, "not a G3X header: it starts with 'a, b, c'"),
        (b"#airframe_info\n#yyy-mm-dd, b\nd, e\n1,2\n", 3, "not a G1000 header"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, content, line, says):
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match="expected") as caught:
        read_log(path)
    assert says in str(caught.value)
    assert caught.value.file == str(path)
    assert caught.value.line == line


def test_missing_columns_are_named(tmp_path):
    with pytest.raises(InputError, match=r"a.csv:2: the G3X header lacks a column .*: 'GPS Ground Track \(deg\)'"):
        read_log(write_g3x(tmp_path / "a.csv", [{}], drop={"GPS Ground Track (deg)"}))
    with pytest.raises(
        InputError, match=r"b.csv:3: .* columns .*'AltGPS' \(for GPS Altitude.*, 'BaroA' \(for Pressure Altitude"
    ):
        read_log(write_g1000(tmp_path / "b.csv", [{}], drop={"BaroA", "AltGPS"}))
    with pytest.raises(InputError, match=r"'Lcl Date' \(for date\)"):
        read_log(write_g1000(tmp_path / "c.csv", [{}], drop={"Lcl Date"}))


def test_header_without_rows_is_refused(tmp_path):
    with pytest.raises(InputError, match="no data rows"):
        read_log(write_g3x(tmp_path / "a.csv", []))


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_log(tmp_path / "none.csv")
    with pytest.raises(InputError, match="directory"):
        read_log(tmp_path)


def test_an_overlong_cell_is_refused_with_its_line(tmp_path):
    path = write_g3x(tmp_path / "a.csv", [{}, {"Roll (deg)": "1" * 200_000}])
    with pytest.raises(InputError, match=r"a.csv:5: not readable as CSV"):
        read_log(path)


@pytest.fixture(scope="module")
def twins():
    paths = sorted(DATA.glob("log_*.csv"))
    if len(paths) != 2:
        pytest.skip(f"needs the two G3X recordings in {DATA}")
    return [read_log(path) for path in paths]


@pytest.mark.realdata
def test_speed_and_track_fit_the_velocities(twins):
    for log in twins:
        east, north = log.columns["GPS Velocity E (m/s)"], log.columns["GPS Velocity N (m/s)"]
        speed = 1.943844 * np.hypot(east, north)
        assert np.max(np.abs(speed - log.columns["GPS Ground Speed (kt)"])) < 5.5
        moving = ~np.isnan(log.columns["GPS Ground Track (deg true)"])
        arc = np.degrees(np.arctan2(east, north)) - log.columns["GPS Ground Track (deg true)"]
        assert np.max(np.abs((arc[moving] + 180) % 360 - 180)) < 5


@pytest.mark.realdata
def test_pressure_altitude_formula_fits_the_recorded_one(twins):
    for log in twins:
        # All rows have the setting 29.95; the displays smooth the two altitudes differently, so look at the middle.
        computed = pressure_altitude(log.columns["Baro Altitude (ft)"], np.full(len(log.time), 29.95))
        difference = computed - log.columns["Pressure Altitude (ft)"]
        assert abs(np.median(difference)) < 1
        assert abs(np.mean(difference)) < 0.1


@pytest.mark.realdata
def test_the_twins_agree(twins):
    """The second display samples half a second before the first: halfway between two states of the first."""
    first, second = twins
    _, mine, yours = np.intersect1d(first.time, second.time, return_indices=True)
    inner = (mine > 0) & (np.diff(first.time, prepend=np.nan)[mine] == 1)
    mine, yours = mine[inner], yours[inner]
    assert len(mine) > 1000

    def apart(field):
        column = first.columns[field]
        return np.max(np.abs((column[mine - 1] + column[mine]) / 2 - second.columns[field][yours]))

    # The row after the gap was sampled 1.2 s of GPS time after the one before, where the stamps say 2 s.
    assert apart("Latitude (WGS84 deg)") * 111_320 < 12
    assert apart("Longitude (WGS84 deg)") * 111_320 * np.cos(np.radians(37.7)) < 12
    assert apart("GPS Altitude (WGS84 ft)") < 3
    assert apart("Baro Altitude (ft)") < 3
    assert apart("Pressure Altitude (ft)") < 6
    assert apart("GPS Ground Speed (kt)") < 1
    assert apart("Indicated Airspeed (kt)") < 2
