"""Gates: bounds on estimates that pass, fail, or are unknown with a reason."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.errors import ConfigError
from adjudge.stats.estimate import SHARE, Estimate, Metric

_OPERATORS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "==": operator.eq}
_GATE = re.compile(
    r"\s*(?P<metric>[^<>=]+?)(?:\.(?P<on>value|low|high))?\s*(?P<op>>=|<=|==|>|<)\s*(?P<bound>[-+.\deE]+)\s*"
)


@dataclass(frozen=True)
class Gate:
    """A bound on an estimate's value, or on its low or high end.

    `undefined` is the outcome where the estimate rests on data but has no value; without data it is always unknown.
    """

    name: str
    metric: str
    op: str
    bound: float
    on: str = "value"
    undefined: str = "unknown"

    @classmethod
    def parse(cls, text: str) -> Gate:
        """A gate from text such as `eligibility_rate.low >= 0.9`."""
        match = _GATE.fullmatch(text)
        if match is None:
            raise ConfigError(f"gate {text!r} is not of the form METRIC[.value|.low|.high] >= BOUND")
        try:
            bound = float(match["bound"])
        except ValueError:
            raise ConfigError(f"gate {text!r}: {match['bound']!r} is not a number") from None
        return cls(text.strip(), match["metric"].strip(), match["op"], bound, match["on"] or "value")


def refuse_unfailing(gates: Sequence[Gate], metric_of: Callable[[str], Metric | None]) -> None:
    """A bound that no value of a metric can miss is a slip of the pen, such as 5 for 5 %, and no gate."""
    for gate in gates:
        metric = metric_of(gate.metric.rpartition("/")[2])
        if metric is None:
            continue
        beyond_high = gate.op in {"<", "<="} and metric.high is not None and gate.bound > metric.high
        beyond_low = gate.op in {">", ">="} and metric.low is not None and gate.bound < metric.low
        if beyond_high or beyond_low:
            meant = f"; {gate.bound:g} % is {gate.bound / 100:g}" if metric.unit == SHARE and beyond_high else ""
            side = f"is never above {metric.high:g}" if beyond_high else f"is never below {metric.low:g}"
            raise ConfigError(f"gate {gate.name!r} cannot fail: {metric.title or metric.name} {side}{meant}")


def judge(gates: Sequence[Gate], estimates: Mapping[str, Estimate]) -> tuple[dict[str, Any], bool]:
    """Every gate with its outcome, and whether all pass. Unknown does not pass."""
    results: dict[str, Any] = {}
    for gate in gates:
        estimate = estimates.get(gate.metric)
        observed = None if estimate is None else getattr(estimate, gate.on)
        if estimate is None:
            outcome, why = "unknown", f"there is no estimate {gate.metric!r}"
        elif observed is None:
            outcome = gate.undefined if estimate.n else "unknown"
            why = estimate.why or f"the estimate has no {gate.on} end"
        else:
            outcome, why = ("pass" if _OPERATORS[gate.op](observed, gate.bound) else "fail"), None
        told = {name: getattr(gate, name) for name in ("metric", "op", "bound", "on")}
        results[gate.name] = {**told, "observed": observed, "outcome": outcome, "why": why}
    return results, all(result["outcome"] == "pass" for result in results.values())
