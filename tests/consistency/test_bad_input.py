from __future__ import annotations

import pytest

from adjudge.errors import ConfigError, InputError

GOOD = {"label": "VALID", "reason": "r"}


@pytest.mark.parametrize(
    "row,message",
    [
        ('{"qid": 1, "scholar": ', "is not JSON: it ends in the middle of a value; a pair has `qid`"),
        ({"qid": 1, "scholar": None, "auditor": GOOD}, "`scholar` is null, expected an object"),
        ({"qid": 1, "auditor": GOOD}, "the record has no `scholar`"),
        ({"scholar": GOOD, "auditor": GOOD}, "the record has no `qid`"),
        ({"qid": 1, "scholar": {"reason": "r"}, "auditor": GOOD}, "scholar has no label; expected one of VALID"),
        ({"qid": 1, "scholar": {"label": None}, "auditor": GOOD}, "scholar has no label"),
        ({"qid": 1, "scholar": {"label": "OK"}, "auditor": GOOD}, "scholar label 'OK' is not one of VALID"),
        ({"qid": 1, "scholar": {"votes": ["VALID", "no"]}, "auditor": GOOD}, "scholar label 'no' is not one of"),
        ({"qid": 1.5, "scholar": GOOD, "auditor": GOOD}, "`qid` is a number, expected a whole number or text"),
        ({"qid": 0, "scholar": GOOD, "auditor": GOOD}, r"qid '0' stands already at pairs.jsonl:1"),
        ({"qid": "0", "scholar": GOOD, "auditor": GOOD}, r"qid '0' stands already at pairs.jsonl:1"),
        ("[1]", "the record is a list, expected an object"),
    ],
)
def test_a_bad_row_is_an_error_with_its_line_or_is_skipped_and_listed(write, run, row, message):
    first = {"qid": 0, "scholar": GOOD, "auditor": GOOD}
    last = {"qid": 9, "scholar": GOOD, "auditor": GOOD}
    path = write("pairs.jsonl", [first, row, last])
    with pytest.raises(InputError, match=r"pairs.jsonl:2: ") as error:
        run({"pairs": [path]})
    assert error.match(message)
    _, metrics = run({"pairs": [path], "on_bad_row": "skip"})
    twice = "stands already" in message
    assert metrics["n"] == (1 if twice else 2)
    assert metrics["bad_rows"]["count"] == (2 if twice else 1)
    assert "pairs.jsonl:2" in [entry["at"] for entry in metrics["bad_rows"]["listed"]]
    assert metrics["buckets"]["all"]["unparsed"] == 1  # an item once, however many of its rows are bad
    assert metrics["buckets"]["all"]["n"] == (2 if twice else 3)


@pytest.mark.parametrize(
    "config,message",
    [
        ({}, "expected one of --pairs"),
        ({"pairs": ["a"], "scholar": ["b"], "auditor": ["c"]}, "found pairs and scholar and auditor"),
        ({"scholar": ["b"]}, "--scholar and --auditor come together"),
        ({"pairs": ["a"], "answers": ["b"]}, "--answers goes with"),
        ({"pairs": ["a"], "policy": "lenient"}, "neither a file nor one of strict, refusal-aware"),
        ({"pairs": ["a"], "on_bad_row": "ignore"}, "on_bad_row is 'ignore'"),
        ({"pairs": ["a"], "pa_gat": 0.9}, "pa_gat"),
        ({"pairs": ["a"], "kappa_undefined": "maybe"}, "kappa_undefined is 'maybe'"),
        ({"pairs": ["a"], "labels": ["VALID", "OK"]}, "--labels goes with --raters; .* --map OTHER=VALID"),
        ({"scholar": ["a"], "auditor": ["b"], "reference": "x"}, "--reference goes with --raters"),
        ({"raters": ["a"], "policy": "strict"}, "--policy is about pairs"),
        ({"raters": ["a"], "abstain_gate": 0.1}, "--abstain-gate is about pairs"),
        ({"pairs": ["a"], "map": {"VALID": "REJECT"}}, "VALID is a label of its own"),
        ({"pairs": ["a"], "map": {"OK": "FINE"}}, "FINE is not one of VALID"),
        ({"pairs": ["a"], "flag": ["provenance_violation"]}, "expected different names"),
    ],
)
def test_a_wrong_configuration_is_refused(run, config, message):
    with pytest.raises(ConfigError, match=message):
        run(config)


def test_lone_surrogates_and_odd_text_do_not_break_a_run(write, run):
    row = '{"qid": "q", "scholar": {"label": "VALID", "reason": "a \\ud800 b"}, "auditor": {"label": "REJECT"}}'
    _, metrics = run({"pairs": [write("pairs.jsonl", [row])], "on_bad_row": "skip"})
    assert metrics["n"] + metrics["bad_rows"]["count"] == 1
