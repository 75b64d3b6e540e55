"""Injection: every attack, every parameter, both catalog shapes."""

from __future__ import annotations

import numpy as np
import pytest

from adjudge.errors import ConfigError, InputError
from adjudge.protocols.anomaly.attacks import ACCELERATION, GYRO, POSITION, VELOCITY, inject
from adjudge.protocols.anomaly.catalog import EXAMPLE, PARAMETERS, Attack, parse_catalog
from adjudge.protocols.anomaly.rows import Flight

GROUPS = {"p": POSITION, "v": VELOCITY, "a": ACCELERATION, "w": GYRO}


@pytest.fixture
def flight() -> Flight:
    random = np.random.default_rng(0)
    names = (*POSITION, *VELOCITY, *ACCELERATION, *GYRO)
    return Flight("f1", np.arange(1000) / 10, {name: random.normal(size=1000) for name in names})


def one(entry, name=None):
    (attack,) = parse_catalog({name or entry.pop("name"): entry}).attacks
    return attack


def difference(flight: Flight, attack: Attack) -> tuple[dict[str, np.ndarray], np.ndarray]:
    done = inject(flight, attack)
    moved = {
        key: np.column_stack([done.flight.columns[name] - flight.columns[name] for name in names])
        for key, names in GROUPS.items()
    }
    return moved, done.label


FIXED = {"onset_fraction": 0.5, "duration": 10.0}


@pytest.mark.parametrize("kind", ["bias", "step"])
@pytest.mark.parametrize(
    "parameter, group",
    [("position_bias_m", "p"), ("velocity_bias_mps", "v"), ("acceleration_bias_mps2", "a"), ("gyro_bias_radps", "w")],
)
def test_constant_offsets_move_their_channels_only(flight, kind, parameter, group):
    moved, label = difference(flight, one({"parameters": {parameter: 2.0, "direction": [0, 3, 4]}, **FIXED}, kind))
    assert np.flatnonzero(label).tolist() == list(range(500, 600))
    np.testing.assert_allclose(moved[group][500:600], np.tile([0, 1.2, 1.6], (100, 1)))
    assert all(not moved[other].any() for other in GROUPS if other != group)
    assert not moved[group][:500].any()
    assert not moved[group][600:].any()


@pytest.mark.parametrize("kind", ["drift", "ramp"])
def test_drift_grows_and_then_stays(flight, kind):
    parameters = {"position_drift_rate_mps": 0.5, "velocity_drift_rate_mps2": 0.1, "max_drift_duration_s": 4.0}
    moved, label = difference(flight, one({"parameters": parameters, **FIXED}, kind))
    assert label.sum() == 100
    np.testing.assert_allclose(moved["p"][[500, 510, 540, 599], 0], [0, 0.5, 2.0, 2.0], atol=1e-9)
    np.testing.assert_allclose(moved["v"][[500, 510, 540, 599], 0], [0, 0.1, 0.4, 0.4], atol=1e-9)


def test_noise_has_the_given_spread(flight):
    parameters = {"position_noise_std_m": 3.0, "velocity_noise_std_mps": 0.5, "acceleration_noise_std_mps2": 0.1}
    moved, _ = difference(flight, one({"parameters": parameters, "onset_fraction": 0.1, "duration": None}, "noise"))
    spread = [moved[key][100:].std() for key in "pva"]
    np.testing.assert_allclose(spread, [3.0, 0.5, 0.1], rtol=0.05)


@pytest.mark.parametrize("factor", [1.0, 0.3, -1.0])
def test_coordinated_directions_have_the_correlation(flight, factor):
    parameters = {
        "position_bias_m": 5.0,
        "velocity_bias_mps": 2.0,
        "acceleration_bias_mps2": 1.0,
        "correlation_factor": factor,
    }
    moved, _ = difference(flight, one({"parameters": parameters, **FIXED}, "coordinated"))
    p, v, a = (moved[key][550] for key in "pva")
    np.testing.assert_allclose([np.linalg.norm(p), np.linalg.norm(v), np.linalg.norm(a)], [5, 2, 1])
    np.testing.assert_allclose([p @ v / 10, p @ a / 5], [factor, factor], atol=1e-9)


def test_intermittent_labels_only_what_is_on(flight):
    parameters = {"position_bias_m": 4.0, "on_duration_s": 1.0, "off_duration_s": 2.0, "n_cycles": 2}
    moved, label = difference(flight, one({"parameters": parameters, **FIXED}, "intermittent"))
    assert np.flatnonzero(label).tolist() == [*range(500, 510), *range(530, 540)]
    np.testing.assert_allclose(moved["p"][:, 0], label * 4.0)


def test_replay_repeats_gps_and_not_the_imu(flight):
    done = inject(
        flight, one({"parameters": {"replay_duration_s": 5.0, "delay_s": 20.0}, "onset_fraction": 0.5}, "replay")
    )
    assert np.flatnonzero(done.label).tolist() == list(range(500, 550))
    np.testing.assert_array_equal(done.flight.columns["gps_x"][500:550], flight.columns["gps_x"][300:350])
    np.testing.assert_array_equal(done.flight.columns["imu_ax"], flight.columns["imu_ax"])


def test_replay_from_before_the_flight_is_refused(flight):
    attack = one({"parameters": {"replay_duration_s": 5.0, "delay_s": 80.0}, "onset_fraction": 0.5}, "replay")
    with pytest.raises(InputError, match="before the flight"):
        inject(flight, attack)


@pytest.mark.parametrize("channels, moving", [("position", "p"), ("velocity", "v"), ("both", "pv")])
def test_ar1_drift_follows_its_recursion(flight, channels, moving):
    parameters = {"ar_coefficient": 0.9, "innovation_std": 0.2, "channels": channels}
    moved, label = difference(
        flight, one({"parameters": parameters, "onset_fraction": 0.2, "duration": None}, "ar1_drift")
    )
    for key in GROUPS:
        assert moved[key].any() == (key in moving)
    steps = moved[moving[0]][201:] - 0.9 * moved[moving[0]][200:-1]
    np.testing.assert_allclose(steps.std(), 0.2, rtol=0.05)
    assert label.sum() == 800


def test_bias_minus_bias_gives_the_flight_back(flight):
    there = inject(flight, one({"parameters": {"position_bias_m": 5.0}, **FIXED}, "bias"))
    back = inject(there.flight, one({"parameters": {"position_bias_m": -5.0}, **FIXED}, "bias"))
    for name, values in flight.columns.items():
        np.testing.assert_allclose(back.flight.columns[name], values, atol=1e-12)


def test_clean_flight_is_not_touched(flight):
    before = flight.digest()
    inject(flight, one({"parameters": {"position_bias_m": 5.0}, **FIXED}, "bias"))
    assert flight.digest() == before


def test_same_seed_same_attack_other_seed_other_onset(flight):
    entry = {"parameters": {"position_bias_m": [1.0, 5.0], "direction": "random"}, "duration": 10, "seeds": [1, 2]}
    attacks = parse_catalog({"bias": entry}).attacks
    assert [(item.magnitude, item.seed) for item in attacks] == [(1.0, 1), (1.0, 2), (5.0, 1), (5.0, 2)]
    starts = [inject(flight, item).record["start_row"] for item in attacks]
    assert starts[0] == starts[2] != starts[1] == starts[3]
    assert inject(flight, attacks[0]).flight.digest() == inject(flight, attacks[0]).flight.digest()
    assert min(starts) >= 300
    assert max(starts) <= 700


def test_both_shapes_say_the_same(flight):
    short = {"bias": {"parameters": {"position_bias_m": 5}, "injection_time": "fixed", "duration": 10, "seed": 3}}
    long = {"attacks": {"bias": {"position_bias_m": [5], "onset_fraction": 0.5, "duration": 10, "seeds": [3]}}}
    a, b = (inject(flight, parse_catalog(item).attacks[0]) for item in (short, long))
    assert a.flight.digest() == b.flight.digest()
    assert a.record == b.record


def test_onset_in_seconds(flight):
    done = inject(flight, one({"parameters": {"position_bias_m": 1}, "onset": 12.5, "duration": 1}, "bias"))
    assert (done.record["start_row"], done.record["end_row"]) == (125, 135)


def test_nine_attacks_and_the_example():
    assert len(PARAMETERS) == 9
    assert len(parse_catalog(EXAMPLE).attacks) == 8


@pytest.mark.parametrize(
    "catalog, message",
    [
        ({"baas": {"parameters": {}}}, "there is no attack 'baas' .*Did you mean 'bias'"),
        ({"bias": {"parameters": {"position_bias": 1}}}, "unknown parameter 'position_bias'"),
        ({"bias": {"parameters": {"position_bias_m": "big"}}}, "position_bias_m is 'big'"),
        ({"bias": {"parameters": {}}}, "no parameter gives the attack a size"),
        ({"bias": {"parameters": {"position_bias_m": 1}, "duration": -1}}, "duration is -1"),
        ({"bias": {"parameters": {"position_bias_m": 1}, "onset_range": [0.9, 1.5]}}, "the onset lies in"),
        ({"bias": {"parameters": {"position_bias_m": 1}, "injection_time": "late"}}, "injection_time is 'late'"),
        ({"bias": {"parameters": {"position_bias_m": 1}, "colour": 1}}, "unknown key 'colour'"),
        ({"replay": {"parameters": {}}}, "'replay_duration_s' is missing"),
        ({"ar1_drift": {"parameters": {"ar_coefficient": 2, "innovation_std": 1}}}, "ar_coefficient is 2"),
        ({"bias": {"parameters": {"position_bias_m": 1}, "seeds": []}}, "seeds are"),
        ([], "expected an object"),
    ],
)
def test_bad_catalog(catalog, message):
    with pytest.raises(ConfigError, match=message):
        parse_catalog(catalog)


def test_flight_without_the_channels(flight):
    bare = Flight("f", flight.time, {"imu_ax": flight.columns["imu_ax"]})
    with pytest.raises(InputError, match="has none of them"):
        inject(bare, one({"parameters": {"position_bias_m": 1}}, "bias"))
