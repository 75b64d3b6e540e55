"""The 19 fields of a flight state and the three tasks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

LATITUDE = "Latitude (WGS84 deg)"
LONGITUDE = "Longitude (WGS84 deg)"
GPS_ALTITUDE = "GPS Altitude (WGS84 ft)"
TRACK = "GPS Ground Track (deg true)"
HEADING = "Magnetic Heading (deg)"
VELOCITY_E = "GPS Velocity E (m/s)"
VELOCITY_N = "GPS Velocity N (m/s)"
VELOCITY_U = "GPS Velocity U (m/s)"
GROUND_SPEED = "GPS Ground Speed (kt)"
ROLL = "Roll (deg)"
PITCH = "Pitch (deg)"
TURN_RATE = "Turn Rate (deg/sec)"
SLIP = "Slip/Skid"
NORMAL_ACCELERATION = "Normal Acceleration (G)"
LATERAL_ACCELERATION = "Lateral Acceleration (G)"
VERTICAL_SPEED = "Vertical Speed (fpm)"
AIRSPEED = "Indicated Airspeed (kt)"
BARO_ALTITUDE = "Baro Altitude (ft)"
PRESSURE_ALTITUDE = "Pressure Altitude (ft)"

FIELDS = (
    LATITUDE,
    LONGITUDE,
    GPS_ALTITUDE,
    TRACK,
    HEADING,
    VELOCITY_E,
    VELOCITY_N,
    VELOCITY_U,
    GROUND_SPEED,
    ROLL,
    PITCH,
    TURN_RATE,
    SLIP,
    NORMAL_ACCELERATION,
    LATERAL_ACCELERATION,
    VERTICAL_SPEED,
    AIRSPEED,
    BARO_ALTITUDE,
    PRESSURE_ALTITUDE,
)
INDEX = {name: position for position, name in enumerate(FIELDS)}
ANGLES = frozenset({TRACK, HEADING})


@dataclass(frozen=True)
class Task:
    """What is shown and what is asked: `shown` states in, `steps` states out."""

    name: str
    shown: int
    steps: int
    arrays: bool


TASKS = {task.name: task for task in (Task("S1", 1, 1, False), Task("M1", 3, 1, False), Task("M3", 3, 3, True))}

_TASK_IN_NAME = re.compile(r"(?<![A-Za-z0-9])(S1|M1|M3)(?![A-Za-z0-9])")
_RESULTS_FILE = re.compile(r"(.+)_(?:S1|M1|M3)_test_results.*")


def task_named_in(path: str) -> str | None:
    """The task that a file's name, or else a folder above it, holds as a word of its own: `a_M3_results`, `S1_2025/a/x`."""
    for part in reversed(Path(path).parts):
        match = _TASK_IN_NAME.search(part)
        if match:
            return match[1]
    return None


def model_named_in(path: str) -> str:
    """The model of a file of outputs that does not say it: `<model>_<task>_test_results…`, `<task>…/<model>/x`, or its name."""
    file = Path(path)
    match = _RESULTS_FILE.fullmatch(file.stem)
    if match:
        return match[1]
    above = file.parent.name
    if above and not _TASK_IN_NAME.search(file.stem + " " + above) and _TASK_IN_NAME.search(file.parent.parent.name):
        return above
    return file.stem
