from __future__ import annotations

import re

import pytest

from adjudge.protocols.consistency.reasons import MAY_HOLD, mask

POSITIVES = [
    ("write to jo.doe@example.org", "e-mail"),
    ("JO_DOE+tag@mail.example.co.uk said so", "e-mail"),
    ("<a.b@c-d.io>", "e-mail"),
    ("mailto:x1@example.com.", "e-mail"),
    ("ask müller@büro.example", "e-mail"),
    ("call +44 20 7946 0958", "phone"),
    ("+1 (212) 555-0142 is hers", "phone"),
    ("+4917612345678", "phone"),
    ("(212) 555-0142", "phone"),
    ("212-555-0142", "phone"),
    ("212.555.0142", "phone"),
    ("1-212-555-0142", "phone"),
    ("0171 2345678", "phone"),
    ("030/12345678", "phone"),
    ("020 7946 0958", "phone"),
    ("01 23 45 67 89", "phone"),
    ("+33 1 23 45 67 89", "phone"),
    ("4111 1111 1111 1111", "card"),
    ("card 5555555555554444 on file", "card"),
    ("3782 822463 10005", "card"),
    ("6011-1111-1111-1117", "card"),
    ("4222222222222", "card"),
]
NEAR_MISSES = [
    "version 1.2.3.4",
    "numpy 2.310.5 and 1.26.4",
    "v10.212.555.0142",
    "2024-05-17",
    "17.05.2024",
    "05/17/2024 10:22:33",
    "2024-05-17T10:22:33.123456Z",
    "20240517",
    "doc-12345678",
    "order 1234567890123456",
    "4111 1111 1111 1112",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "sha a3f5c2d9e8b7465544332211",
    "10.0.0.1",
    "192.168.100.200:8080",
    "1,234,567 items",
    "0.30000000000000004",
    "see @handle",
    "user @ home",
    "pip install pkg@1.2",
    "a@b",
    "section 212-555",
    "pages 100-200 and 300-400",
    "ISBN 978-3-16-148410-0",
    "SKU-212-555-01429",
    "rows 1000000 to 2000000",
]


@pytest.mark.parametrize("text,kind", POSITIVES)
def test_personal_data_is_found_and_masked(text, kind):
    masked, count = mask(text)
    assert count == 1
    assert f"[{kind}]" in masked
    assert not re.search(r"\d{4}|@", masked)
    assert re.search(MAY_HOLD, text)


@pytest.mark.parametrize("text", NEAR_MISSES)
def test_what_only_looks_like_it_is_left_alone(text):
    assert mask(text) == (text, 0)


def test_tables_are_large_enough():
    assert len(POSITIVES) >= 20
    assert len(NEAR_MISSES) >= 20
