"""The oracle against cases worked out by hand from the specification."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from adjudge.protocols.flight.fields import (
    AIRSPEED,
    BARO_ALTITUDE,
    FIELDS,
    GPS_ALTITUDE,
    GROUND_SPEED,
    HEADING,
    LATITUDE,
    NORMAL_ACCELERATION,
    PITCH,
    ROLL,
    TRACK,
    VELOCITY_E,
    VELOCITY_N,
    VELOCITY_U,
    VERTICAL_SPEED,
)

# A level cruise to the east: 50 m/s are 97.1922 kt.
CRUISE = dict(
    zip(
        FIELDS,
        (47.5, 8.5, 3000, 90, 88, 50, 0, 0.5, 97.1922, 1, 2, 0.1, 0.01, 1.0, 0.02, 100, 95, 2900, 2950),
        strict=True,
    )
)
NO_NUMBERS = ("", "N/A", "NaN", "inf", "1e999", "0x1F", "1_000", "1,5", ".", "-", "e5", "5 kt", "٣")
TASK_ATOMS = {
    "S1": {"protocol": 1, "numeric_validity": 19, "range_sanity": 19, "jump_dynamics": 19}
    | {"cross_field_consistency": 3, "physics_constraint": 2, "safety_constraint": 4},
    "M3": {"protocol": 1, "numeric_validity": 57, "range_sanity": 57, "jump_dynamics": 57}
    | {"cross_field_consistency": 9, "physics_constraint": 44, "safety_constraint": 12},
}
TASK_ATOMS["M1"] = TASK_ATOMS["S1"]


def state(**changes):
    names = {name.split(" (")[0].replace(" ", "_").replace("/", "_"): name for name in FIELDS}
    return CRUISE | {names[short]: value for short, value in changes.items()}


def arrays(base=CRUISE, **changes):
    return {name: [value] * 3 for name, value in base.items()} | changes


def failed(judged):
    return {(a.rule, a.field, a.step): (a.severity, a.observed) for a in judged.atoms if a.outcome == "fail"}


FIELD_OF_RULE = {"rapid_descent": VERTICAL_SPEED, "extreme_speed": AIRSPEED, "extreme_altitude": GPS_ALTITUDE}


def atom(judged, rule, field=None, step=0):
    field = FIELD_OF_RULE.get(rule, field)
    (found,) = [a for a in judged.atoms if a.rule.partition(".")[2] == rule and a.field == field and a.step == step]
    return found


@pytest.mark.parametrize("task", ["S1", "M1", "M3"])
def test_clean_answer_has_every_atom_and_fails_none(reference, task):
    answer = arrays() if task == "M3" else CRUISE
    judged = reference.evaluate(task, answer, CRUISE, answer)
    assert Counter(a.rule.partition(".")[0] for a in judged.atoms) == TASK_ATOMS[task]
    assert {a.outcome for a in judged.atoms} == {"pass"}
    assert {a.severity for a in judged.atoms} == {"INFO"}
    assert (judged.verdict, judged.bucket, judged.gating_reasons) == ("eligible", "passed", ())
    assert judged.citations == tuple(range(len(judged.atoms)))
    assert (judged.mae, judged.rmse) == (0.0, 0.0)
    assert judged.scores == reference.Scores(100.0, 100.0, 100.0, 100.0, None)
    assert judged.rubric == reference.Rubric("A", "A", "A", "A", "A", 100.0)
    assert len(judged.checklist) == (15 if task == "M3" else 14)
    assert judged.attribution == ()


def test_slots_stand_in_the_order_of_the_layout(reference):
    atoms = reference.evaluate("M3", arrays(), CRUISE, None).atoms
    assert [(a.field, a.step) for a in atoms[1:58]] == [(name, step) for step in range(3) for name in FIELDS]
    assert [(a.field, a.step) for a in atoms[58:115]] == [(a.field, a.step) for a in atoms[1:58]]
    assert [(a.field, a.step) for a in atoms[115:172]] == [(a.field, a.step) for a in atoms[1:58]]
    assert [(a.rule.split(".")[1], a.step) for a in atoms[172:181]] == [
        (f"{rule}_consistency", step) for rule in ("altitude", "speed", "track") for step in range(3)
    ]
    assert [(a.field, a.step) for a in atoms[181:219]] == [(name, step) for step in (1, 2) for name in FIELDS]
    assert [(a.rule.split(".")[1], a.step) for a in atoms[219:]] == [
        (rule, step)
        for rule in (
            "velocity_altitude_consistency",
            "attitude_velocity_consistency",
            "rapid_descent",
            "extreme_speed",
            "extreme_altitude",
            "stall_condition",
        )
        for step in range(3)
    ]


@pytest.mark.parametrize(
    "hint, rule",
    [
        ("unparsed", "protocol.json_parse"),
        ("errored", "protocol.api_error"),
        ("abstained", "protocol.abstained"),
        ("missing", "protocol.missing_output"),
    ],
)
@pytest.mark.parametrize("task", TASK_ATOMS)
def test_no_answer_is_ineligible_by_its_protocol_atom_alone(reference, task, hint, rule):
    judged = reference.evaluate(task, None, CRUISE, arrays() if task == "M3" else CRUISE, bucket_hint=hint)
    assert judged.atoms[0] == reference.Atom(rule, None, 0, "fail", "CRITICAL", None, math.inf)
    assert {(a.outcome, a.severity, a.observed) for a in judged.atoms[1:]} == {("not_applicable", "INFO", None)}
    assert len(judged.atoms) == sum(TASK_ATOMS[task].values())
    assert (judged.verdict, judged.bucket, judged.citations) == ("ineligible", hint, (0,))
    assert judged.gating_reasons == (f"Found 1 critical violation: {rule}",)
    assert {item.status for item in judged.checklist} == {"unknown"}
    assert judged.scores == reference.Scores(None, None, None, None, "ineligible")
    assert judged.rubric == reference.Rubric("D", "D", "D", "D", "D", 0.0)


def test_object_without_any_field_is_unparsed_or_abstained(reference):
    assert reference.evaluate("S1", {}, CRUISE, CRUISE).bucket == "unparsed"
    assert reference.evaluate("S1", {"abstain": True}, CRUISE, CRUISE).bucket == "abstained"
    with pytest.raises(ValueError, match="bucket_hint"):
        reference.evaluate("S1", None, CRUISE, CRUISE)


@pytest.mark.parametrize("value", [[], [1.0], [1.0] * 12, 95.0, "95", None, {}])
def test_m3_arrays_of_the_wrong_shape_are_critical_at_all_steps(reference, value):
    judged = reference.evaluate("M3", dict.fromkeys(FIELDS, value), CRUISE, arrays())
    assert len(failed(judged)) == 57
    assert {(rule, severity) for (rule, _, _), (severity, _) in failed(judged).items()} == {
        ("numeric_validity.array_shape", "CRITICAL")
    }
    assert judged.verdict == "ineligible"


def test_list_where_a_number_is_due_is_a_shape_failure(reference):
    judged = reference.evaluate("S1", state(Roll=[1.0]), CRUISE, CRUISE)
    assert failed(judged) == {("numeric_validity.array_shape", ROLL, 0): ("CRITICAL", None)}


@pytest.mark.parametrize(
    "value",
    [None, True, False, {}, {"value": 1}, math.nan, math.inf, 10**400, *NO_NUMBERS],
)
def test_what_is_no_finite_number_is_an_invalid_value(reference, value):
    judged = reference.evaluate("S1", state(Indicated_Airspeed=value), CRUISE, CRUISE)
    assert failed(judged) == {("numeric_validity.invalid_value", AIRSPEED, 0): ("CRITICAL", None)}
    not_applicable = [(a.rule.split(".")[1], a.field) for a in judged.atoms if a.outcome == "not_applicable"]
    assert not_applicable == [
        ("out_of_range", AIRSPEED),
        ("mutation_violation", AIRSPEED),
        ("extreme_speed", AIRSPEED),
        ("stall_condition", None),
    ]
    assert judged.completeness == 1.0


@pytest.mark.parametrize("value", ["95", " 95.0\n", "+95.", "9.5e1", "950E-1", "0095"])
def test_numeric_strings_are_numbers_on_both_sides(reference, value):
    judged = reference.evaluate("S1", state(Indicated_Airspeed=value), state(Indicated_Airspeed=value), CRUISE)
    assert failed(judged) == {}
    assert atom(judged, "out_of_range", AIRSPEED).observed == 95.0
    assert judged.mae == 0.0


def test_missing_field_fails_at_every_step(reference):
    answer = arrays()
    del answer[PITCH]
    judged = reference.evaluate("M3", answer, CRUISE, arrays())
    assert set(failed(judged)) == {("numeric_validity.missing_field", PITCH, step) for step in range(3)}
    assert judged.completeness == 18 / 19
    assert judged.rubric.protocol == "C"  # 3 of 57 is 5.3 %
    assert [(c.rule, c.count, c.severity) for c in judged.attribution] == [
        ("numeric_validity.missing_field", 3, "CRITICAL")
    ]


def test_m3_heading_over_north_is_a_step_of_one_degree(reference):
    shown = state(Magnetic_Heading=359.0)
    judged = reference.evaluate("M3", arrays(shown, **{HEADING: [359.5, 0.5, 1.5]}), shown, None)
    assert [atom(judged, "mutation_violation", HEADING, step).observed for step in range(3)] == [0.5, 1.0, 1.0]
    assert [atom(judged, "m3_array_continuity", HEADING, step).observed for step in (1, 2)] == [1.0, 1.0]
    assert failed(judged) == {}


def test_angle_errors_are_wrapped(reference):
    judged = reference.evaluate("S1", state(Magnetic_Heading=359.5), None, state(Magnetic_Heading=0.5))
    assert judged.mae == 1.0 / 19
    assert judged.rmse == math.sqrt(1.0 / 19)
    assert judged.normalised_mae == pytest.approx(1.0 / 15 / 19)


def test_5000_kt_at_index_1_only_is_critical_at_step_1(reference):
    judged = reference.evaluate("M3", arrays(**{GROUND_SPEED: [97.1922, 5000, 97.1922]}), CRUISE, None)
    found = failed(judged)
    assert found["range_sanity.out_of_range", GROUND_SPEED, 1] == ("CRITICAL", 5000.0)
    assert {step for (rule, _, step) in found if not rule.endswith(("mutation_violation", "continuity"))} == {1}
    assert {step for (rule, _, step) in found if rule.endswith(("mutation_violation", "continuity"))} == {1, 2}
    assert judged.attribution[0].rule == "cross_field_consistency.speed_consistency"  # 980 times its limit


@pytest.mark.parametrize(
    "field, limit, around",
    [(AIRSPEED, 10.0, 95.0), (GPS_ALTITUDE, 67.0, 3000.0), (VERTICAL_SPEED, 1000.0, 100.0), (HEADING, 15.0, 88.0)],
)
def test_jump_limits_are_strict(reference, field, limit, around):
    def severity(change):
        return atom(
            reference.evaluate("S1", CRUISE | {field: around + change}, CRUISE, None), "mutation_violation", field
        ).severity

    bit = 1e-9
    assert [severity(x) for x in (limit, limit + bit, 1.5 * limit, 1.5 * limit + bit)] == [
        "INFO",
        "WARNING",
        "WARNING",
        "CRITICAL",
    ]


@pytest.mark.parametrize(
    "value, severity",
    [
        (200, "INFO"),
        (math.nextafter(200, 300), "WARNING"),
        (300, "WARNING"),
        (math.nextafter(300, 400), "CRITICAL"),
        (0, "INFO"),
        (-5e-324, "WARNING"),
        (-100, "WARNING"),
        (math.nextafter(-100, -200), "CRITICAL"),
    ],
)
def test_range_is_measured_in_spans_outside(reference, value, severity):
    found = atom(reference.evaluate("S1", state(Indicated_Airspeed=value), None, None), "out_of_range", AIRSPEED)
    assert (found.severity, found.observed) == (severity, value)


def test_continuity_warns_above_twice_and_is_critical_above_three_times_the_jump_limit(reference):
    def severities(step):
        judged = reference.evaluate("M3", arrays(**{PITCH: [2.0, 2.0 + step, 2.0 + step]}), CRUISE, None)
        return atom(judged, "mutation_violation", PITCH, 1).severity, atom(
            judged, "m3_array_continuity", PITCH, 1
        ).severity

    assert [severities(step) for step in (20.0, 20.5, 30.0, 30.5)] == [
        ("CRITICAL", "INFO"),
        ("CRITICAL", "WARNING"),
        ("CRITICAL", "WARNING"),
        ("CRITICAL", "CRITICAL"),
    ]


@pytest.mark.parametrize(
    "rule, changes, expected",
    [
        ("altitude_consistency", {BARO_ALTITUDE: 2500}, ("pass", "INFO", 500.0)),
        ("altitude_consistency", {BARO_ALTITUDE: 3501}, ("fail", "WARNING", 501.0)),
        ("altitude_consistency", {BARO_ALTITUDE: 1999}, ("fail", "CRITICAL", 1001.0)),
        ("speed_consistency", {GROUND_SPEED: 97.1922 + 4.5}, ("pass", "INFO", 4.5)),
        ("speed_consistency", {GROUND_SPEED: 97.1922 - 5.5}, ("fail", "WARNING", 5.5)),
        ("speed_consistency", {GROUND_SPEED: 97.1922 + 15.5}, ("fail", "CRITICAL", 15.5)),
        ("track_consistency", {TRACK: 99.0}, ("pass", "INFO", 9.0)),
        ("track_consistency", {TRACK: 79.0}, ("fail", "WARNING", 11.0)),
        ("track_consistency", {TRACK: 300.0}, ("fail", "CRITICAL", 150.0)),
        ("track_consistency", {VELOCITY_E: 2.57}, ("not_applicable", "INFO", None)),  # 4.996 kt
        ("track_consistency", {VELOCITY_E: 2.58}, ("pass", "INFO", 0.0)),  # 5.015 kt
        ("track_consistency", {VELOCITY_E: 0, VELOCITY_N: -50, TRACK: 180}, ("pass", "INFO", 0.0)),
        ("velocity_altitude_consistency", {VERTICAL_SPEED: 2001}, ("pass", "INFO", 2001.0)),
        ("velocity_altitude_consistency", {VERTICAL_SPEED: 2001, GPS_ALTITUDE: 1000}, ("pass", "INFO", 2001.0)),
        ("velocity_altitude_consistency", {VERTICAL_SPEED: 2001, GPS_ALTITUDE: 999}, ("fail", "WARNING", 2001.0)),
        ("velocity_altitude_consistency", {VERTICAL_SPEED: -9000}, ("fail", "WARNING", 9000.0)),
        ("attitude_velocity_consistency", {ROLL: -60}, ("pass", "INFO", 60.0)),
        ("attitude_velocity_consistency", {ROLL: -61}, ("fail", "CRITICAL", 61.0)),
        ("attitude_velocity_consistency", {PITCH: 16, VELOCITY_U: 0.79}, ("fail", "WARNING", 0.79 / 16)),
        ("attitude_velocity_consistency", {PITCH: -16, VELOCITY_U: -0.81}, ("pass", "INFO", 0.81 / 16)),
        ("rapid_descent", {VERTICAL_SPEED: -2000}, ("pass", "INFO", -2000.0)),
        ("rapid_descent", {VERTICAL_SPEED: -2001}, ("fail", "WARNING", -2001.0)),
        ("rapid_descent", {VERTICAL_SPEED: -3001}, ("fail", "CRITICAL", -3001.0)),
        ("extreme_speed", {AIRSPEED: 30}, ("pass", "INFO", 30.0)),
        ("extreme_speed", {AIRSPEED: 29.9}, ("fail", "CRITICAL", 29.9)),
        ("extreme_speed", {AIRSPEED: 181}, ("fail", "WARNING", 181.0)),
        ("extreme_altitude", {GPS_ALTITUDE: -1}, ("fail", "CRITICAL", -1.0)),
        ("extreme_altitude", {GPS_ALTITUDE: 15001}, ("fail", "WARNING", 15001.0)),
        ("stall_condition", {AIRSPEED: 49, PITCH: 16, VERTICAL_SPEED: 499}, ("fail", "CRITICAL", 49.0)),
        ("stall_condition", {AIRSPEED: 50, PITCH: 16, VERTICAL_SPEED: 499}, ("pass", "INFO", 50.0)),
        ("stall_condition", {AIRSPEED: 49, PITCH: 15, VERTICAL_SPEED: 499}, ("pass", "INFO", 15.0)),
        ("stall_condition", {AIRSPEED: 49, PITCH: 16, VERTICAL_SPEED: 500}, ("pass", "INFO", 500.0)),
    ],
)
def test_rules_about_several_fields(reference, rule, changes, expected):
    found = atom(reference.evaluate("S1", CRUISE | changes, CRUISE, None), rule)
    assert (found.outcome, found.severity) == expected[:2]
    assert found.observed == (None if expected[2] is None else pytest.approx(expected[2], abs=1e-12))


def test_without_a_shown_state_only_the_first_jump_is_not_applicable(reference):
    judged = reference.evaluate("M3", arrays(), None, None)
    idle = {(a.rule, a.step) for a in judged.atoms if a.outcome == "not_applicable"}
    assert idle == {("jump_dynamics.mutation_violation", 0)}
    partly = reference.evaluate("S1", CRUISE, state(Pitch="N/A"), None)
    assert [(a.rule, a.field) for a in partly.atoms if a.outcome == "not_applicable"] == [
        ("jump_dynamics.mutation_violation", PITCH)
    ]


def test_relative_altitude_compares_with_the_offset_that_was_shown(reference):
    high = state(Baro_Altitude=1400)
    assert atom(reference.evaluate("S1", high, high, None), "altitude_consistency").severity == "CRITICAL"
    relative = reference.evaluate("S1", high, state(Baro_Altitude=1410), None, relative_altitude=True)
    assert atom(relative, "altitude_consistency").observed == 10.0
    alone = reference.evaluate("S1", high, None, None, relative_altitude=True)
    assert atom(alone, "altitude_consistency").outcome == "not_applicable"


@pytest.mark.parametrize(
    "shown_airspeed, airspeed, extreme, stall",
    [
        (39, 20, "not_applicable", "not_applicable"),
        (39, 35, "pass", "not_applicable"),
        (39, 181, "fail", "not_applicable"),
        (40, 20, "fail", "fail"),
        (None, 20, "fail", "fail"),
    ],
)
def test_airborne_only_spares_an_aircraft_on_the_ground(reference, shown_airspeed, airspeed, extreme, stall):
    answer = state(Indicated_Airspeed=airspeed, Pitch=16)
    shown = None if shown_airspeed is None else state(Indicated_Airspeed=shown_airspeed)
    judged = reference.evaluate("S1", answer, shown, None, airborne_only=True)
    assert atom(judged, "extreme_speed").outcome == extreme
    assert atom(judged, "stall_condition").outcome == stall
    assert atom(reference.evaluate("S1", answer, shown, None), "stall_condition").outcome != "not_applicable"


@pytest.mark.parametrize(
    "mae, expected",
    [(0, 100), (2.5, 95), (3.5, 93), (5, 90), (12.5, 80), (35, 60), (75, 40), (150, 22.5), (250, 10), (math.inf, 5)],
)
def test_mae_points(reference, mae, expected):
    assert reference.points(mae, reference.MAE_POINTS) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "rmse, expected",
    [(0, 100), (5, 95), (10, 90), (30, 80), (75, 60), (150, 40), (250, 22.5), (300, 15), (350, 10), (400, 5), (1e9, 5)],
)
def test_rmse_points(reference, rmse, expected):
    assert reference.points(rmse, reference.RMSE_POINTS) == pytest.approx(expected, abs=1e-12)


def test_total_and_rubric_of_the_specification(reference):
    assert reference.total(100, 100, 90.51) == pytest.approx(95.255)
    assert reference.rubric_overall(("A", "A", "D", "A", "B")) == 75.0
    assert reference.rubric_overall(("A", "A", "D", "A", None)) == 75.0


def test_scores_worked_out_by_hand(reference):
    # One warning (a jump of 12 kt, limit 10) among 66 atoms of the six families; one error of 12 kt among 19.
    judged = reference.evaluate("S1", state(Indicated_Airspeed=107), CRUISE, CRUISE)
    assert judged.verdict == "eligible"
    mae, rmse = 12 / 19, math.sqrt(144 / 19)
    error = 0.6 * (100 - 2 * mae) + 0.4 * (100 - rmse)
    constraint = 100 * 32.5 / 33.5
    assert (judged.mae, judged.rmse) == (pytest.approx(mae), pytest.approx(rmse))
    assert judged.scores.constraint == pytest.approx(constraint)
    assert judged.scores.error == pytest.approx(error)
    assert judged.scores.total == pytest.approx(20 + 0.3 * constraint + 0.5 * error)
    assert judged.rubric == reference.Rubric("A", "C", "A", "A", "A", 90.0)  # 1 of 19 jumps is 5.3 %


def test_no_reference_leaves_the_error_null_and_the_rubric_over_four(reference):
    judged = reference.evaluate("S1", CRUISE, CRUISE, None)
    assert judged.verdict == "eligible"
    assert judged.scores == reference.Scores(100.0, 100.0, None, None, "no reference")
    assert judged.rubric == reference.Rubric("A", "A", "A", "A", None, 100.0)


def test_errors_pool_only_pairs_of_valid_values(reference):
    truth = arrays()
    truth[LATITUDE] = [47.5, None, 47.5]
    answer = arrays(**{PITCH: [2, "N/A", 12]})
    judged = reference.evaluate("M3", answer, CRUISE, truth)
    assert judged.mae == pytest.approx(10 / 55)
    nothing_valid = reference.evaluate("S1", dict.fromkeys(FIELDS, "N/A"), CRUISE, CRUISE)
    assert nothing_valid.mae is None
    assert nothing_valid.rubric == reference.Rubric("D", "D", "D", "D", "D", 0.0)


def test_attribution_puts_criticals_first_then_the_furthest_over_the_limit(reference):
    answer = state(Normal_Acceleration=2.2, Indicated_Airspeed=126, Pressure_Altitude=3020, Baro_Altitude=2990)
    answer[HEADING] = "north"
    judged = reference.evaluate("S1", answer, CRUISE, None)
    assert [(c.rank, c.rule, c.field, c.severity) for c in judged.attribution] == [
        (1, "numeric_validity.invalid_value", HEADING, "CRITICAL"),  # without bound
        (2, "jump_dynamics.mutation_violation", AIRSPEED, "CRITICAL"),  # 31 of 10
        (3, "jump_dynamics.mutation_violation", BARO_ALTITUDE, "WARNING"),  # 90 of 67
        (4, "jump_dynamics.mutation_violation", NORMAL_ACCELERATION, "WARNING"),  # 1.2 of 1
        (5, "jump_dynamics.mutation_violation", FIELDS[18], "WARNING"),  # 70 of 67
    ]
    assert judged.gating_reasons == (
        "Found 2 critical violations: numeric_validity.invalid_value, jump_dynamics.mutation_violation",
    )
    assert [judged.atoms[i].field for i in judged.citations] == [HEADING, AIRSPEED]


def test_equal_excess_is_ordered_by_rule_then_field(reference):
    judged = reference.evaluate("S1", CRUISE | {PITCH: None, LATITUDE: None, HEADING: [1]}, CRUISE, None)
    assert [(c.rule.split(".")[1], c.field) for c in judged.attribution] == [
        ("array_shape", HEADING),
        ("invalid_value", LATITUDE),
        ("invalid_value", PITCH),
    ]


def test_checklist_binds_each_rule_to_its_atoms(reference):
    judged = reference.evaluate("S1", state(Indicated_Airspeed=107), None, None)
    status = {item.constraint_id.split(".")[1]: (item.item_id, item.status, item.evidence) for item in judged.checklist}
    assert status["invalid_value"] == ("CHECK_002", "pass", tuple(range(1, 20)))
    assert status["mutation_violation"] == ("CHECK_005", "unknown", tuple(range(39, 58)))
    assert status["missing_field"] == ("CHECK_001", "pass", tuple(range(1, 20)))
    assert "m3_array_continuity" not in status
    broken = reference.evaluate("S1", state(Roll=[1]), None, None)
    assert [(item.status, len(item.evidence)) for item in broken.checklist[:3]] == [
        ("pass", 18),
        ("pass", 18),
        ("fail", 1),
    ]
    shown = reference.evaluate("S1", state(Indicated_Airspeed=107), CRUISE, None)
    assert {item.constraint_id for item in shown.checklist if item.status == "fail"} == {
        "jump_dynamics.mutation_violation"
    }


@pytest.mark.parametrize(
    "a, b, expected",
    [(359.5, 0.5, 1), (0, 360, 0), (10, 350, 20), (0, 180, 180), (-90, 270, 0), (725, 0, 5)],
)
def test_arc_is_the_shortest_way_round(reference, a, b, expected):
    assert reference.change(HEADING, a, b) == reference.change(HEADING, b, a) == pytest.approx(expected, abs=1e-12)


def test_arc_survives_a_difference_that_overflows(reference):
    assert 0 <= reference.change(HEADING, 1.7e308, -1.7e308) <= 180


def test_rubric_grades_each_rate_on_its_own(reference):
    def rubric(**changes):
        shown = CRUISE | {name: values[0] for name, values in changes.items()}
        return reference.evaluate("M3", arrays(**changes), shown, None).rubric

    one_of_nine = {BARO_ALTITUDE: [2499, 2501, 2501]}  # altitude consistency fails once: 11 %
    assert rubric(**one_of_nine).physics == "C"
    three_of_nine = {BARO_ALTITUDE: [2499, 2499, 2499]}
    assert rubric(**three_of_nine).physics == "D"
    one_of_44 = {PITCH: [16, 16, 15], VELOCITY_U: [0.1, 2, 2]}
    assert rubric(**one_of_44).physics == "B"
    one_of_twelve = {VERTICAL_SPEED: [-2001, -2000, -2000]}
    assert rubric(**one_of_twelve).safety == "B"
    three_of_twelve = {VERTICAL_SPEED: [-2001, -2001, -2001]}
    assert rubric(**three_of_twelve).safety == "C"
    assert rubric(**three_of_twelve).overall == 100 * (1 + 1 + 1 + 0.5) / 4


def test_excess_of_a_low_limit(reference):
    judged = reference.evaluate("S1", state(GPS_Altitude=-1500, Indicated_Airspeed=15), None, None)
    assert atom(judged, "extreme_altitude").excess == pytest.approx(0.1)
    assert atom(judged, "extreme_speed").excess == pytest.approx(0.5)
    assert atom(judged, "out_of_range", GPS_ALTITUDE).excess == pytest.approx(0.15)
