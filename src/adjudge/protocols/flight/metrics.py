"""The metrics of a flight run."""

from __future__ import annotations

from adjudge.stats.metric import Metric, share

_BY_FLIGHT = "Wilson; with the design effect of the flights where they are known"
_BOOTSTRAP = "bootstrap over flights; over samples where no flight is known"
_NO_SAMPLES = "without samples"
_NONE_ELIGIBLE = "no sample is eligible"
_NO_REFERENCE = "no eligible sample has a reference"
_NOTHING_READ = "no answer has a reference to compare with"


def _score(name: str, formula: str, *, headline: bool = True, null: str = _NONE_ELIGIBLE) -> Metric:
    return Metric(
        name, low=0.0, high=100.0, better="higher", headline=headline, formula=formula, interval=_BOOTSTRAP, null=null
    )


def _error(name: str, formula: str, interval: str, null: str, *, headline: bool = False) -> Metric:
    return Metric(name, low=0.0, better="lower", headline=headline, formula=formula, interval=interval, null=null)


METRICS = (
    Metric(
        "eligibility_difference",
        "difference in eligibility",
        "%",
        -1.0,
        1.0,
        formula="eligibility rate of the first model − that of the second, on the same samples",
        interval="Newcombe, paired",
        null=_NO_SAMPLES,
    ),
    Metric(
        "total_difference_all",
        "difference in total score",
        low=-100.0,
        high=100.0,
        formula="total score of the first model − that of the second, ineligible as 0",
        interval=_BOOTSTRAP,
        null="the data names no flights to resample",
    ),
    share(
        "eligibility_rate",
        headline=True,
        formula="samples whose answer breaks no critical rule ÷ all samples",
        interval=_BY_FLIGHT,
        null=_NO_SAMPLES,
    ),
    share("answer_rate", formula="samples with a readable answer ÷ all samples", interval=_BY_FLIGHT, null=_NO_SAMPLES),
    *(
        share(
            f"{bucket}_rate",
            better="lower",
            formula=f"samples that ended {bucket} ÷ all",
            interval=_BY_FLIGHT,
            null=_NO_SAMPLES,
        )
        for bucket in ("abstained", "unparsed", "errored", "missing")
    ),
    share(
        "availability_rate",
        formula="mean over all samples of the share of required fields that the answer has",
        interval=_BOOTSTRAP,
        null=_NO_SAMPLES,
    ),
    share(
        "compliance.*",
        formula="samples without a failed atom of the rule family ÷ samples on which the family was checked",
        interval=_BY_FLIGHT,
        null="the family was checked on no sample",
    ),
    _score("availability_score", "100 · share of required fields given, mean over eligible samples"),
    _score(
        "constraint_score",
        "100 · Σ weight of passed atoms ÷ Σ weight (passed 0.5, failed 1, failed critically 3), mean over eligible",
    ),
    _score(
        "error_score", "0.6 · points of the MAE + 0.4 · points of the RMSE, mean over eligible samples with a reference"
    ),
    _score(
        "total_score",
        "0.2 · availability + 0.3 · constraint + 0.5 · error, mean over eligible samples with a reference",
    ),
    _score(
        "*_score_all",
        "the same score with 0 for every ineligible sample ÷ all samples",
        headline=False,
        null=_NO_SAMPLES,
    ),
    share(
        "error_under_*_rate",
        better="lower",
        formula="samples with an error score under the bound, or ineligible ÷ samples with a score, or ineligible",
        interval="Wilson",
        null=_NO_SAMPLES,
    ),
    share(
        "error_under_*_rate_eligible",
        better="lower",
        formula="eligible samples with an error score under the bound ÷ eligible samples with an error score",
        interval="Wilson",
        null=_NONE_ELIGIBLE,
    ),
    _score(
        "rubric_score",
        "100 · mean of the five grades (A 1, B 0.75, C 0.5, D 0), mean over all samples",
        null=_NO_SAMPLES,
    ),
    share(
        "grade_a.*",
        formula="samples with grade A in the rubric's dimension ÷ samples graded in it",
        interval="Wilson",
        null="no sample is graded",
    ),
    _error(
        "mae", "mean absolute error over the fields of eligible samples with a reference", _BOOTSTRAP, _NO_REFERENCE
    ),
    _error("rmse", "mean over eligible samples of the root of the mean squared error", _BOOTSTRAP, _NO_REFERENCE),
    _error(
        "normalised_mae",
        "absolute error ÷ the field's jump limit, mean over fields and samples",
        _BOOTSTRAP,
        _NO_REFERENCE,
    ),
    Metric(
        "skill_vs_persistence",
        high=1.0,
        better="higher",
        formula="1 − normalised error ÷ that of repeating the shown state, over eligible samples",
        interval=_BOOTSTRAP,
        null="no eligible sample has both a reference and a shown state",
    ),
    _error(
        "mae_p95",
        "95th percentile of the samples' mean absolute errors, ineligible ones too",
        "order statistics",
        _NOTHING_READ,
        headline=True,
    ),
    *(
        _error(
            f"{error}_p{share_of}",
            f"{share_of}th percentile of the samples' {words}, ineligible ones too",
            "order statistics",
            _NOTHING_READ,
        )
        for error, words, share_of in (
            ("mae", "mean absolute errors", 99),
            ("rmse", "root mean squared errors", 95),
            ("rmse", "root mean squared errors", 99),
        )
    ),
)
