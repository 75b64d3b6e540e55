"""Outputs without an answer: failed calls and abstentions are told by their shape."""

from __future__ import annotations

import pytest

from adjudge.readers.extract import abstains, failed_call, without_answer


@pytest.mark.parametrize(
    "text",
    [
        "Error: 429 rate limit exceeded",
        "Error code: 503 - service unavailable, please retry later",
        "API error: request timed out after 60 s",
        "HTTP/1.1 500 Internal Server Error\nServer: x",
        "502 Bad Gateway",
        "openai.RateLimitError: too many",
        "TimeoutError",
        "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='x')",
        "Traceback (most recent call last):\n  File",
        '{"error": {"message": "overloaded", "code": 529}}',
        "Request timed out.",
        "Connection error.",
    ],
)
def test_a_failed_call_is_told_by_its_shape(text):
    assert failed_call(text) is not None


@pytest.mark.parametrize(
    "text, expected",
    [
        ('{"abstain": true}', True),
        ('{"reason": "too little data", "abstain": true}', True),
        ('I would rather not.\n```json\n{"reason": {"why": "fog"}, "abstain" : true, "p": 0.2}\n```', True),
        ('{"abstain": false}', False),
        ('the key "abstain": true is allowed', False),
        ('{"reason": {"abstain": true}}', True),
    ],
)
def test_an_abstention_is_told_in_any_order_of_keys(text, expected):
    assert abstains(text) == expected


@pytest.mark.parametrize(
    "text, error, bucket, words",
    [
        (None, None, "missing", "no response"),
        (None, "boom", "errored", "boom"),
        ("", None, "abstained", "empty"),
        ("", "boom", "errored", "boom"),
        ('{"abstain": true}', "boom", "abstained", "abstain"),
        ("prose", "boom", "errored", "boom"),
        ("502 Bad Gateway", None, "errored", "502 Bad Gateway"),
        ("prose", None, "unparsed", "no JSON"),
    ],
)
def test_every_output_without_an_answer_has_its_bucket(text, error, bucket, words):
    found, note = without_answer(text, error, "no JSON")
    assert found == bucket
    assert words in note
