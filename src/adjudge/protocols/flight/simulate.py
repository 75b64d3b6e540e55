"""Simulated flights of a light aircraft, second by second: the ground truth of the demo data.

A flight is a list of legs that give target values; speed, climb, roll and taxi turn rate run after them at limited
rates, as a pilot would fly it. The rest follows from physics: in the air the turn rate is g·tan(roll)/V, normal
acceleration 1/cos(roll), and the ground velocity is that through the air plus the wind; ground speed and track are
those of the velocity, vertical speed is 196.85 times the vertical velocity. Between the GPS and the barometric altitude
stands an offset of 600 to 1,600 ft that is constant over a flight. Noise and resolution are those of a 1 Hz log.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from adjudge.protocols.flight import fields as f
from adjudge.protocols.flight.fields import FIELDS
from adjudge.protocols.flight.garmin import FPM_PER_MS, KNOTS_PER_MS
from adjudge.protocols.flight.make_tasks import State

GRAVITY = 9.80665
METRES_PER_DEGREE = 111_320.0


@dataclass(frozen=True)
class Leg:
    """Targets for a share of the flight: airspeed (kt), climb (fpm), roll (deg), turn rate on the ground (deg/s)."""

    share: float
    airspeed: float
    climb: float = 0.0
    roll: float = 0.0
    taxi_turn: float = 0.0
    on_ground: bool = False


@dataclass(frozen=True)
class Profile:
    """A kind of flight: height above the field and airspeed at its start, and its legs."""

    name: str
    height: float
    airspeed: float
    legs: tuple[Leg, ...]


PROFILES = (
    Profile("climb", 700, 78, (Leg(0.5, 80, climb=750), Leg(0.5, 84, climb=650, roll=-14))),
    Profile("cruise", 3200, 112, (Leg(0.7, 114), Leg(0.3, 116, roll=6))),
    Profile("turn", 2400, 98, (Leg(0.2, 98), Leg(0.6, 96, roll=28), Leg(0.2, 98))),
    Profile("descent", 2900, 108, (Leg(0.4, 112, climb=-600), Leg(0.6, 104, climb=-850, roll=-12))),
    Profile("approach", 900, 74, (Leg(0.35, 70, climb=-350, roll=-18), Leg(0.65, 64, climb=-450))),
    Profile(
        "taxi and take-off",
        0,
        12,
        (Leg(0.35, 13, taxi_turn=4, on_ground=True), Leg(0.4, 66, on_ground=True), Leg(0.25, 76, climb=700)),
    ),
)


def fly(rng: np.random.Generator, profile: Profile, seconds: int) -> list[State]:
    """The states of one flight, one a second."""
    field_elevation = rng.uniform(150, 900)
    offset = rng.uniform(600, 1600) * rng.choice([-1.0, 1.0])
    if offset < 0:
        field_elevation -= offset
    setting_correction = rng.uniform(-280, 280)
    variation = rng.uniform(-14, 14)
    wind_from, wind = rng.uniform(0, 2 * math.pi), rng.uniform(0, 7)
    side = rng.choice([-1.0, 1.0])
    latitude, longitude = rng.uniform(34, 48), rng.uniform(-120, -75)
    heading = rng.uniform(0, 2 * math.pi)
    baro = field_elevation + profile.height
    airspeed, climb, roll, taxi_turn = profile.airspeed + rng.uniform(-3, 3), 0.0, 0.0, 0.0
    if profile.height:
        climb = profile.legs[0].climb
    wander = rng.uniform([0.95, 0.85, 0.85], [1.05, 1.15, 1.15])
    drift = wind if profile.height else 0.0

    states = []
    for second in range(seconds):
        leg = _leg(profile, second / seconds)
        airspeed = _toward(airspeed, leg.airspeed * wander[0], 2.4) + rng.normal(0, 0.15)
        height = baro - field_elevation
        level = (leg.climb < 0 and height < 200) or (leg.climb > 0 and height > 5000)
        climb = _toward(climb, 0.0 if level else leg.climb * wander[1], 110) + (
            0.0 if leg.on_ground else rng.normal(0, 12)
        )
        roll = _toward(roll, side * leg.roll * wander[2], 5) + (0.0 if leg.on_ground else rng.normal(0, 0.4))
        taxi_turn = _toward(taxi_turn, side * leg.taxi_turn, 1.0)
        # The air thins with height: true airspeed is about 2 % above indicated for every 1,000 ft.
        true_airspeed = airspeed / KNOTS_PER_MS * (1 + 0.00002 * baro)
        turn = math.radians(taxi_turn) if leg.on_ground else GRAVITY * math.tan(math.radians(roll)) / true_airspeed
        heading += turn
        # On the ground the wheels hold the direction; in the air the wind carries along, after take-off by and by.
        drift = 0.0 if leg.on_ground else _toward(drift, wind, 1.0)
        east = true_airspeed * math.sin(heading) - drift * math.sin(wind_from)
        north = true_airspeed * math.cos(heading) - drift * math.cos(wind_from)
        up = climb / FPM_PER_MS
        latitude += north / METRES_PER_DEGREE
        longitude += east / (METRES_PER_DEGREE * math.cos(math.radians(latitude)))
        baro += climb / 60.0
        lateral = rng.normal(0, 0.012)
        pitch = 0.8 if leg.on_ground else math.degrees(math.atan2(up, true_airspeed)) + 6.5 - 0.045 * airspeed
        east, north, up = round(east, 2), round(north, 2), round(up, 2)
        state = {
            f.LATITUDE: latitude,
            f.LONGITUDE: longitude,
            f.GPS_ALTITUDE: baro + offset + rng.normal(0, 0.4),
            f.TRACK: math.degrees(math.atan2(east, north)),
            f.HEADING: math.degrees(heading) - variation + rng.normal(0, 0.15),
            f.VELOCITY_E: east,
            f.VELOCITY_N: north,
            f.VELOCITY_U: up,
            f.GROUND_SPEED: KNOTS_PER_MS * math.hypot(east, north),
            f.ROLL: roll + rng.normal(0, 0.1),
            f.PITCH: pitch + rng.normal(0, 0.2),
            f.TURN_RATE: math.degrees(turn),
            f.SLIP: lateral + rng.normal(0, 0.004),
            f.NORMAL_ACCELERATION: 1 / math.cos(math.radians(roll)) + rng.normal(0, 0.015),
            f.LATERAL_ACCELERATION: lateral,
            f.VERTICAL_SPEED: FPM_PER_MS * up,
            f.AIRSPEED: airspeed + rng.normal(0, 0.3),
            f.BARO_ALTITUDE: baro + rng.normal(0, 0.8),
            f.PRESSURE_ALTITUDE: baro + setting_correction + rng.normal(0, 0.8),
        }
        states.append({field: as_recorded(field, state[field]) for field in FIELDS})
    return states


RESOLUTION = {
    f.LATITUDE: 7,
    f.LONGITUDE: 7,
    f.VELOCITY_E: 2,
    f.VELOCITY_N: 2,
    f.VELOCITY_U: 2,
    f.ROLL: 2,
    f.PITCH: 2,
    f.TURN_RATE: 2,
    f.SLIP: 3,
    f.NORMAL_ACCELERATION: 3,
    f.LATERAL_ACCELERATION: 3,
    f.VERTICAL_SPEED: 0,
}


def as_recorded(field: str, value: float) -> float:
    """As a log would have it: with the decimals of the field (1 where not stated), angles in [0, 360)."""
    rounded = round(float(value), RESOLUTION.get(field, 1)) + 0.0
    return round(rounded % 360.0, 1) % 360.0 if field in (f.TRACK, f.HEADING) else rounded


def _leg(profile: Profile, progress: float) -> Leg:
    ends = accumulate(leg.share for leg in profile.legs)
    return next((leg for leg, end in zip(profile.legs, ends, strict=True) if progress < end), profile.legs[-1])


def _toward(value: float, target: float, rate: float) -> float:
    return value + min(rate, max(-rate, target - value))
