"""Garmin G3X and G1000 flight logs: three header lines and a row a second become columns under the 19 fields.

Which of the two a log is, its header says: the second line of a G1000 log holds units and starts with `#`, that of a
G3X log holds long headings. A blank cell is NaN, and so is a cell that is no number, which is remembered apart.

Derived where a log has no such column, and named in `FlightLog.derived`:

| field | from |
|---|---|
| GPS Velocity E, N | ground speed and track: V = GS / 1.943844, E = V sin(track), N = V cos(track) |
| GPS Velocity U | vertical speed / 196.850394 |
| Turn Rate | change of heading since the second before, shortest arc; NaN where no row stands exactly 1 s before |
| Slip/Skid | lateral acceleration: the ball moves with it |
| Pressure Altitude | baro altitude + 145366.45 · (1 − (setting / 29.92126)^0.190284) ft |

The last is the exact power law of the standard atmosphere (U.S. Standard Atmosphere 1976: 15 °C, 6.5 K/km), 29.92126
inHg being 1013.25 hPa; near sea level it is the pilot's 1 inHg for about 920 ft. G1000 normal acceleration rests at 0
and G3X at 1; ours rests at 1, so 1 is added to what a G1000 recorded. Tracks are taken as true.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from adjudge.errors import InputError
from adjudge.protocols.flight import fields as f
from adjudge.protocols.flight.fields import FIELDS

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

KNOTS_PER_MS = 1.943844
FPM_PER_MS = 196.850394
STANDARD_PRESSURE_INHG = 29.92126

FIRST_LINE = "#airframe_info"
DATE, TIME, OFFSET, SETTING = "date", "time", "UTC offset", "altimeter setting"


@dataclass(frozen=True)
class Layout:
    """How one kind of log names its columns: the first name is the usual one, the others are accepted too."""

    system: str
    header_line: int
    names: dict[str, tuple[str, ...]]
    normal_acceleration_at_rest: float


G3X = Layout(
    "G3X",
    2,
    {
        DATE: ("Date (yyyy-mm-dd)",),
        TIME: ("Time (hh:mm:ss)",),
        OFFSET: ("UTC Offset (hh:mm)",),
        SETTING: ("Baro Setting (inch Hg)",),
        f.LATITUDE: ("Latitude (deg)",),
        f.LONGITUDE: ("Longitude (deg)",),
        f.GPS_ALTITUDE: ("GPS Altitude (ft)",),
        f.TRACK: ("GPS Ground Track (deg)",),
        f.HEADING: (),
        f.VELOCITY_E: ("GPS Velocity E (m/sec)",),
        f.VELOCITY_N: ("GPS Velocity N (m/sec)",),
        f.VELOCITY_U: ("GPS Velocity U (m/sec)",),
        f.VERTICAL_SPEED: ("Vertical Speed (ft/min)",),
    },
    1.0,
)
G1000 = Layout(
    "G1000",
    3,
    {
        DATE: ("Lcl Date",),
        TIME: ("Lcl Time",),
        OFFSET: ("UTCOfst",),
        SETTING: ("BaroA", "Baro"),
        f.LATITUDE: ("Latitude",),
        f.LONGITUDE: ("Longitude",),
        f.GPS_ALTITUDE: ("AltGPS",),
        f.TRACK: ("TRK",),
        f.HEADING: ("HDG",),
        f.VELOCITY_E: ("GPSVelE",),
        f.VELOCITY_N: ("GPSVelN",),
        f.VELOCITY_U: ("GPSVelU",),
        f.GROUND_SPEED: ("GndSpd",),
        f.ROLL: ("Roll",),
        f.PITCH: ("Pitch",),
        f.NORMAL_ACCELERATION: ("NormAc",),
        f.LATERAL_ACCELERATION: ("LatAc",),
        f.VERTICAL_SPEED: ("VSpd",),
        f.AIRSPEED: ("IAS",),
        f.BARO_ALTITUDE: ("AltB", "AltInd"),
        f.PRESSURE_ALTITUDE: ("AltP",),
    },
    0.0,
)


@dataclass(frozen=True)
class FlightLog:
    """One log as columns of equal length; `time` is UTC in seconds since 1970, NaN where a row has no stamp."""

    path: Path
    system: str
    time: Floats
    lines: npt.NDArray[np.int64]
    columns: dict[str, Floats]
    unreadable: dict[str, Bools]
    derived: tuple[str, ...]
    nul_tail: int = 0
    """NUL bytes at the end of the file: the power went while it was written."""


def read_log(path: str | Path) -> FlightLog:
    """Read one log, whichever kind it is; InputError where it is none or lacks a column that a state needs."""
    path = Path(path)
    rows, nul_tail = _rows(path)
    layout, header = _header(path, rows)
    positions = _positions(path, layout, header)
    filled = [(line, row) for line, row in rows if any(cell.strip("\0 \t") for cell in row)]
    if not filled:
        raise InputError("no data rows after the three header lines; expected one row a second.", file=str(path))

    def texts(name: str) -> list[str]:
        at = positions[name]
        return [row[at].strip("\0 \t") if at < len(row) else "" for _, row in filled]

    columns, unreadable = {}, {}
    for name in (*FIELDS, SETTING):
        if name in positions:
            columns[name], unreadable[name] = _numbers(texts(name))
    vertical = columns[f.NORMAL_ACCELERATION]
    columns[f.NORMAL_ACCELERATION] = np.round(vertical + 1.0 - layout.normal_acceleration_at_rest, 6)
    time = _stamps(texts(DATE), texts(TIME), texts(OFFSET) if OFFSET in positions else [])
    derived = tuple(field for field in FIELDS if field not in positions)
    for field in derived:
        columns[field] = DERIVATIONS[field].compute(time, columns)
    return FlightLog(
        path,
        layout.system,
        time,
        np.array([line for line, _ in filled], dtype=np.int64),
        {field: columns[field] for field in FIELDS},
        {field: unreadable[field] for field in FIELDS if field in unreadable},
        derived,
        nul_tail,
    )


def turn_rate(time: Floats, heading: Floats) -> Floats:
    """Degrees a second from the second before to this one, right turns positive; NaN without a second before."""
    rate = np.full(len(time), np.nan)
    step = (np.diff(heading) + 180.0) % 360.0 - 180.0
    rate[1:] = np.where(np.diff(time) == 1.0, step, np.nan)
    return np.round(rate, 3)


def pressure_altitude(baro_altitude: Floats, setting_inhg: Floats) -> Floats:
    """Altitude above the standard pressure level, in feet, from the indicated altitude and the altimeter setting."""
    setting = np.where(setting_inhg > 0, setting_inhg, np.nan)
    return np.round(baro_altitude + 145366.45 * (1.0 - (setting / STANDARD_PRESSURE_INHG) ** 0.190284), 1)


def _velocity(columns: dict[str, Floats], part: np.ufunc) -> Floats:
    """The E or N part, the sine or cosine of the track, of the ground speed."""
    return np.asarray(np.round(columns[f.GROUND_SPEED] / KNOTS_PER_MS * part(np.radians(columns[f.TRACK])), 3))


@dataclass(frozen=True)
class Derivation:
    """How a field comes from other columns of the log."""

    sources: tuple[str, ...]
    compute: Callable[[Floats, dict[str, Floats]], Floats]


DERIVATIONS = {
    f.VELOCITY_E: Derivation((f.GROUND_SPEED, f.TRACK), lambda _, columns: _velocity(columns, np.sin)),
    f.VELOCITY_N: Derivation((f.GROUND_SPEED, f.TRACK), lambda _, columns: _velocity(columns, np.cos)),
    f.VELOCITY_U: Derivation(
        (f.VERTICAL_SPEED,), lambda _, columns: np.round(columns[f.VERTICAL_SPEED] / FPM_PER_MS, 3)
    ),
    f.TURN_RATE: Derivation((f.HEADING,), lambda time, columns: turn_rate(time, columns[f.HEADING])),
    f.SLIP: Derivation((f.LATERAL_ACCELERATION,), lambda _, columns: columns[f.LATERAL_ACCELERATION]),
    f.PRESSURE_ALTITUDE: Derivation(
        (f.BARO_ALTITUDE, SETTING), lambda _, columns: pressure_altitude(columns[f.BARO_ALTITUDE], columns[SETTING])
    ),
}


def _rows(path: Path) -> tuple[Iterator[tuple[int, list[str]]], int]:
    """The rows of the file with their line numbers; and how many NUL bytes its end is made of, which are left."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}).", file=str(path)) from error
    text = data.rstrip(b"\0")
    tail = len(data) - len(text)
    return _csv_rows(text.decode("utf-8-sig", errors="replace"), path), tail


def _csv_rows(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        what = f"not readable as CSV ({error}); expected a Garmin log."
        raise InputError(what, file=str(path), line=reader.line_num) from error


def _header(path: Path, rows: Iterator[tuple[int, list[str]]]) -> tuple[Layout, list[str]]:
    head = [row for _, row in zip(range(3), (row for _, row in rows), strict=False)]
    if not head:
        raise InputError("the file is empty; expected a Garmin G3X or G1000 log.", file=str(path))
    first = head[0][0] if head[0] else ""
    if not first.startswith(FIRST_LINE):
        what = f"not a Garmin G3X or G1000 log: the first line starts with {first[:40]!r}, expected {FIRST_LINE!r}."
        raise InputError(what, file=str(path), line=1)
    if len(head) < 3:
        what = f"the header ends after {len(head)} of 3 lines; expected airframe, units or headings, and column names."
        raise InputError(what, file=str(path), line=len(head))
    layout = G1000 if head[1] and head[1][0].startswith("#") else G3X
    header = [cell.strip() for cell in head[layout.header_line - 1]]
    if not set(header) & {name for names in layout.names.values() for name in names}:
        expected = f"expected columns such as {layout.names[DATE][0]!r} and {layout.names[f.LATITUDE][0]!r}."
        what = f"not a {layout.system} header: it starts with {', '.join(header[:4])[:80]!r}, {expected}"
        raise InputError(what, file=str(path), line=layout.header_line)
    return layout, header


def _positions(path: Path, layout: Layout, header: list[str]) -> dict[str, int]:
    """Where each needed column stands; a column that is neither there nor derivable is an error that names it."""
    positions = {}
    for name in (DATE, TIME, OFFSET, SETTING, *FIELDS):
        accepted = (*layout.names.get(name, ()), name)
        heading = next((candidate for candidate in accepted if candidate in header), None)
        if heading is not None:
            positions[name] = header.index(heading)
    missing: dict[str, str] = {}
    for name in (DATE, TIME, *FIELDS):
        if name in positions:
            continue
        for source in DERIVATIONS[name].sources if name in DERIVATIONS else (name,):
            if source not in positions:
                missing.setdefault((*layout.names.get(source, ()), source)[0], name)
    if missing:
        named = (f"{column!r} (for {name})" if column != name else repr(name) for column, name in missing.items())
        columns = ", ".join(named)
        lacks = "a column" if len(missing) == 1 else "columns"
        what = f"the {layout.system} header lacks {lacks} that a flight state needs: {columns}."
        raise InputError(what, file=str(path), line=layout.header_line)
    return positions


def _numbers(texts: list[str]) -> tuple[Floats, Bools]:
    """Numbers with NaN for blank, and where a cell holds something that is no finite number."""
    numbers = np.full(len(texts), np.nan)
    unreadable = np.zeros(len(texts), dtype=np.bool_)
    for row, text in enumerate(texts):
        if not text:
            continue
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            numbers[row] = number + 0.0  # -0.00 is 0
        else:
            unreadable[row] = True
    return numbers, unreadable


def _stamps(dates: list[str], times: list[str], offsets: list[str]) -> Floats:
    """UTC seconds of each row; local time where the log never states an offset."""
    shifts = [_offset(text) for text in offsets] if any(offsets) else [0.0] * len(dates)
    return np.array([_stamp(*row) for row in zip(dates, times, shifts, strict=True)])


def _stamp(date: str, time: str, shift: float) -> float:
    try:
        return datetime.fromisoformat(f"{date}T{time}").replace(tzinfo=UTC).timestamp() - shift
    except ValueError:
        return math.nan


def _offset(text: str) -> float:
    match = re.fullmatch(r"([+-]?)(\d{1,2}):(\d{2})", text)
    if match is None:
        return math.nan
    sign, hours, minutes = match.groups()
    return (-1.0 if sign == "-" else 1.0) * (int(hours) * 3600 + int(minutes) * 60)
