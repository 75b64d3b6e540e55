"""The 19 fields of a flight state and the three tasks."""

from __future__ import annotations

from dataclasses import dataclass

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
