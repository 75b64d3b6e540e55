"""The true next state, fed back as the answer, breaks no critical limit; the limits are typed here again."""

import json
import math
import os
from pathlib import Path

import pytest

from adjudge.protocols.flight.fields import ANGLES, FIELDS, TASKS
from adjudge.protocols.flight.generate import generate
from adjudge.protocols.flight.make_tasks import make_tasks

DATA = Path(os.environ.get("ADJUDGE_DATA", Path(__file__).parents[3] / "shared" / "data")) / "flight_g3x"

# low, high, jump
LIMITS = dict(
    zip(
        FIELDS,
        [
            *((-90, 90, 0.002), (-180, 180, 0.002), (0, 10000, 67), (0, 360, 15), (0, 360, 15)),
            *((-130, 130, 10), (-130, 130, 10), (-20.5, 20.5, 5), (0, 250, 10), (-90, 90, 20), (-60, 60, 10)),
            *((-30, 30, 6), (-1, 1, 0.5), (-2, 4.5, 1.0), (-1, 1, 0.3), (-4000, 4000, 1000), (0, 200, 10)),
            *((-1000, 11000, 67), (-1500, 11500, 67)),
        ],
        strict=True,
    )
)


def arc(a, b):
    return abs((a - b + 180) % 360 - 180)


def failures(shown, steps, *, relative, airborne_only):
    """Rule and field of everything over a limit, with `critical` or `warning`."""
    found = []

    def judge(rule, observed, warning, critical, field=""):
        if observed > warning:
            found.append(("critical" if observed > critical else "warning", rule, field))

    before = last = shown[-1]
    for number, state in enumerate(steps):
        for field in FIELDS:
            low, high, jump = LIMITS[field]
            judge("range", max(low - state[field], state[field] - high), 0, 0.5 * (high - low), field)
            step = arc(state[field], before[field]) if field in ANGLES else abs(state[field] - before[field])
            judge("jump", step, jump, 1.5 * jump, field)
            if number:
                judge("continuity", step, 2 * jump, 3 * jump, field)
        gps, baro = state["GPS Altitude (WGS84 ft)"], state["Baro Altitude (ft)"]
        offset = last["GPS Altitude (WGS84 ft)"] - last["Baro Altitude (ft)"] if relative else 0.0
        judge("altitude", abs(gps - baro - offset), 500, 1000)
        east, north = state["GPS Velocity E (m/s)"], state["GPS Velocity N (m/s)"]
        judge("speed", abs(state["GPS Ground Speed (kt)"] - 1.943844 * math.hypot(east, north)), 5, 15)
        if state["GPS Ground Speed (kt)"] >= 5:
            judge("track", arc(state["GPS Ground Track (deg true)"], math.degrees(math.atan2(east, north))), 10, 30)
        roll, pitch, climb = state["Roll (deg)"], state["Pitch (deg)"], state["Vertical Speed (fpm)"]
        judge("attitude", max(abs(roll), abs(pitch)), 60, 60)
        judge("rapid descent", -climb, 2000, 3000)
        judge("extreme altitude", -gps, 0, 0)
        airspeed = state["Indicated Airspeed (kt)"]
        if not (airborne_only and last["Indicated Airspeed (kt)"] < 40):
            judge("extreme speed", 30 - airspeed, 0, 0)
            if airspeed < 50 and pitch > 15 and climb < 500:
                found.append(("critical", "stall", ""))
        before = state
    return found


def samples(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        states = record["current_state"]
        if "next_second" in record:
            yield record["id"], [states], [record["next_second"]]
        else:
            arrays = record["T+1"]
            length = len(arrays["Roll (deg)"])
            yield record["id"], states, [{field: arrays[field][step] for field in FIELDS} for step in range(length)]


@pytest.mark.parametrize("task", sorted(TASKS))
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_generated_gold_breaks_no_limit(tmp_path, task, seed):
    made = generate(tmp_path, task=task, seed=seed, flights=12)
    for sample_id, shown, gold in samples(made.reference):
        assert failures(shown, gold, relative=True, airborne_only=True) == [], sample_id


def test_the_two_options_matter_on_generated_flights(tmp_path):
    made = generate(tmp_path)
    absolute, grounded = set(), set()
    for sample_id, shown, gold in samples(made.reference):
        for severity, rule, _ in failures(shown, gold, relative=False, airborne_only=True):
            assert rule == "altitude"
            absolute.add((severity, sample_id[:3]))
        for severity, rule, _ in failures(shown, gold, relative=True, airborne_only=False):
            assert (severity, rule) == ("critical", "extreme speed")
            grounded.add(sample_id)
    assert {severity for severity, _ in absolute} == {"warning", "critical"}
    assert 10 < len(grounded) < 30
    assert {sample_id[:3] for sample_id in grounded} == {"F06"}


@pytest.mark.realdata
@pytest.mark.parametrize("position, slow", [(0, 5), (1, 4)])
def test_real_gold_is_eligible_but_for_slow_rolling(tmp_path, position, slow):
    paths = sorted(DATA.glob("log_*.csv"))
    if len(paths) != 2:
        pytest.skip(f"needs the two G3X recordings in {DATA}")
    counts = make_tasks([paths[position]], "S1", tmp_path)
    ineligible = 0
    for sample_id, shown, gold in samples(counts.reference_path):
        critical = [
            found for found in failures(shown, gold, relative=False, airborne_only=False) if found[0] == "critical"
        ]
        if gold[0]["Indicated Airspeed (kt)"] >= 30:
            assert critical == [], sample_id
        else:
            assert critical == [("critical", "extreme speed", "")], sample_id
            ineligible += 1
        relaxed = failures(shown, gold, relative=False, airborne_only=True)
        assert [found for found in relaxed if found[0] == "critical"] == [], sample_id
    assert ineligible == slow
