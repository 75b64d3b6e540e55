"""One more rule for the flight protocol: at night nobody flies lower than 500 ft, judged where the speed rule passed."""

from __future__ import annotations

from adjudge.extend import Limits, Rule, RuleSet, Scope, Slot

ALTITUDE = "GPS Altitude (WGS84 ft)"


def build(context):
    steps = range(context.task.steps)
    return [
        Rule(
            code="night.minimum_altitude",
            title="at night the aircraft keeps 500 ft",
            scope=Scope.FIELD,
            slots=tuple(Slot(ALTITUDE, step, ((ALTITUDE, step),)) for step in steps),
            needs=("safety_constraint.extreme_speed", "numeric_validity"),
            unit="ft",
            passed="{field} is {observed} ft",
            failed="{field} is {observed} ft, under {low}",
            quantity=lambda batch: batch.value(ALTITUDE),
            limits=Limits(low=500.0, critical_low=200.0),
        )
    ]


RULES = RuleSet("night-flight", "flight", build)
