"""The metrics of an anomaly run, over test alone; a row is one sample of a sequence, an event one run of alarms."""

from __future__ import annotations

from typing import Any

from adjudge.stats.metric import Metric, share

_BOOTSTRAP = "bootstrap over flights"
_ONE_CLASS = "only one class is there"
_NO_ATTACK = "no attacked row"
_NO_ALARM = "no alarm"
_NO_SEQUENCE = "no attacked sequence"


def _rank(name: str, title: str, formula: str, *, null: str = _ONE_CLASS, **more: Any) -> Metric:
    return Metric(name, title, "", 0.0, 1.0, "higher", formula=formula, null=null, **{"interval": _BOOTSTRAP, **more})


def _rate(name: str, formula: str, null: str, **more: Any) -> Metric:
    return share(name, formula=formula, interval=_BOOTSTRAP, null=null, **more)


def _time(name: str, formula: str, interval: str, null: str, *, headline: bool = False) -> Metric:
    return Metric(
        f"detection_latency_ms.{name}",
        unit="ms",
        low=0.0,
        better="lower",
        headline=headline,
        formula=formula,
        interval=interval,
        null=null,
    )


METRICS = (
    _rank(
        "auroc", "auroc", "share of (attacked, clean) pairs of rows in which the attacked scores higher", headline=True
    ),
    _rate(
        "recall_at_1pct_fpr",
        "largest recall among thresholds with a false positive rate of at most 1 %",
        _ONE_CLASS,
        headline=True,
    ),
    _rate(
        "recall_at_5pct_fpr",
        "largest recall among thresholds with a false positive rate of at most 5 %",
        _ONE_CLASS,
        headline=True,
    ),
    _rate("recall", "attacked rows under alarm ÷ attacked rows", _NO_ATTACK, headline=True),
    _rate("precision", "attacked rows under alarm ÷ rows under alarm", _NO_ALARM, headline=True),
    _rate("f1", "2·TP ÷ (2·TP + FP + FN) over rows", "no attacked row and no alarm", headline=True),
    _rate("fpr", "clean rows under alarm ÷ clean rows", "no clean row", better="lower", headline=True),
    _time(
        "median",
        "median time from onset to alarm of the detected attacks",
        "order statistics",
        "no attack is detected",
        headline=True,
    ),
    _time("p95", "95th percentile of the same times", "order statistics", "no attack is detected"),
    _time(
        "restricted_mean",
        "mean time until the alarm or the end of the window, misses censored (Kaplan–Meier)",
        _BOOTSTRAP,
        _NO_SEQUENCE,
    ),
    _rate(
        "detection_latency_ms.detected_fraction", "attacked sequences with an alarm ÷ attacked sequences", _NO_SEQUENCE
    ),
    _rank(
        "average_precision",
        "",
        "Σ (recall gained) · precision over the distinct thresholds",
        null="no positives",
        interval="bootstrap over flights; none for slices",
    ),
    _rank(
        "oracle_f1",
        "",
        "F1 at the best threshold in hindsight, chosen on test: not a result",
        null="no positives",
        interval="none",
    ),
    _rate("event_recall", "attacked sequences detected ÷ attacked sequences", _NO_SEQUENCE),
    _rate("event_precision", "alarm events on attacks ÷ alarm events", _NO_ALARM),
    Metric(
        "false_alarms_per_hour",
        unit="/h",
        low=0.0,
        better="lower",
        formula="alarm events on clean test flights ÷ their hours",
        interval=_BOOTSTRAP,
        null="no clean test flight",
    ),
)
