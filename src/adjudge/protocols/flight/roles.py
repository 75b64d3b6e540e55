"""The kinds of records that the flight protocol reads."""

from __future__ import annotations

from adjudge.protocols.base import Role
from adjudge.protocols.flight import outputs, references

ROLES = {
    "outputs": Role(outputs.KEYS, (("id",), ("response",)), "adjudge flight --task S1 --outputs FILE --reference …"),
    "reference": Role(
        references.KEYS,
        (("id", "sample_id"), ("next_second", "T+1")),
        "adjudge flight --task S1 --outputs … --reference FILE",
    ),
}
