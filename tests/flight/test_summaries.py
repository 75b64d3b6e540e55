"""Task summary, profile, exceedance, tail risk, skill and priors are those of the plain oracle, over random samples."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge.evidence.graph import only_rules
from adjudge.protocols.base import Partition
from adjudge.protocols.flight.fields import TASKS
from adjudge.protocols.flight.plan import FlightPlan
from adjudge.readers.blocks import block_of

MODELS = ("alpha", "beta")
PRIORS = {"alpha": {"confidence_m": {"S1_score": 0.5, "M1_score": None, "M3_score": 0.25}, "version": "v8"}}


def near(mine, other, where=""):
    """The same numbers, to rounding; what overflows is kept as very large."""
    if isinstance(other, dict):
        assert set(other) <= set(mine), (where, set(other) - set(mine))
        for key, value in other.items():
            near(mine[key], value, f"{where}.{key}")
    elif other is None:
        assert mine is None, (where, mine)
    elif mine is None:
        assert abs(other) > 1e150, (where, other)  # a spread or a square that no double holds
    else:
        huge = abs(other) > 1e150 and abs(mine) > 1e150
        assert huge or math.isclose(mine, other, rel_tol=1e-9, abs_tol=1e-9), (where, mine, other)


@pytest.mark.parametrize("task", TASKS)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_summaries_are_those_of_the_oracle(task, data, reference, strategies, summaries):
    with only_rules(reference.rules_of(task)):
        plan = FlightPlan({"task": task, "outputs": ["o"], "reference": ["r"], "confidence": PRIORS, "resamples": 100})
    samples = [data.draw(strategies.cases(task)) for _ in range(data.draw(st.integers(1, 4)))]
    flights = [data.draw(st.sampled_from(["F1", "F2"])) for _ in samples]
    outputs, truths, pairs = [], [], {model: [] for model in MODELS}
    for number, (case, flight) in enumerate(zip(samples, flights, strict=True)):
        sample = f"s{number}"
        first = replace(case, relative_altitude=False, airborne_only=False)
        other = data.draw(strategies.cases(task))
        second = replace(first, answer=other.answer, bucket_hint=other.bucket_hint)
        gold = first.reference_line(sample)
        state = first._current_state()
        if gold is not None:
            truths.append({**gold, "flight_id": flight, **state})
        for model, one in zip(MODELS, (first, second), strict=True):
            line = one.output_line(sample, model)
            if line is not None:
                outputs.append({**line, **state})
            pairs[model].append(
                (one, reference.evaluate(task, one.answer, one.shown, one.gold, bucket_hint=one.bucket_hint))
            )
    if not outputs or {row["model"] for row in outputs} != set(MODELS):
        return
    tables = {
        item.role: item.read(block_of([(k, json.dumps(record).encode()) for k, record in enumerate(records, 1)]))
        for item, records in zip(plan.inputs(), (outputs, truths), strict=True)
        if records
    }
    # A sample that neither role names is none.
    named = {row["id"] for row in (*outputs, *truths)}
    judged = plan.judge(Partition({}, MODELS, ("o", "r"), tables=tables))
    measured = plan.finish([plan.partial(one.samples, one.evidence, one.batch) for one in judged])
    top = measured.top
    kept = {
        model: [pair for number, pair in enumerate(found) if f"s{number}" in named] for model, found in pairs.items()
    }
    for model in MODELS:
        near(top["task_summary"]["models"][model], summaries.summary([record for _, record in kept[model]]), model)
    near(
        top["task_summary"]["all"], summaries.summary([record for found in kept.values() for _, record in found]), "all"
    )
    estimates = {(named_.slice, named_.name): named_.estimate for named_ in measured.estimates}
    for profile in top["model_profiles"]:
        model = profile["model_name"]
        expected = summaries.summary([record for _, record in kept[model]])
        near(profile["tail_risk"], expected["tail_risk"], f"{model} tail")
        near(profile["score_statistics"], expected["scores"], f"{model} scores")
        near(profile["violations"], expected["constraint_profile"], f"{model} violations")
        near(profile["error_distribution"]["by_field"], summaries.by_field(task, kept[model]), f"{model} fields")
        near(
            estimates[f"model={model}", "skill_vs_persistence"].value,
            summaries.skill(task, kept[model]),
            f"{model} skill",
        )
        for name, value in expected["tail_risk"].items():
            if name != "high_risk":
                near(estimates[f"model={model}", name].value, value, f"{model} {name}")
        prior = profile["confidence_prior"]
        assert (prior and prior["confidence_m"]) == (PRIORS[model]["confidence_m"] if model in PRIORS else None)
