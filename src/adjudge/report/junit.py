"""JUnit XML: what CI shows as tests. A failure is the model's, an error the instrument's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Case:
    """One test: a gate, a held estimate, or a rule that must not break. `kind` is pass, failure or error."""

    suite: str
    name: str
    kind: str
    message: str = ""
    detail: str = ""


def junit(cases: Sequence[Case], *, name: str = "adjudge", timestamp: str) -> bytes:
    """The document, as the schema of Ant's JUnit task asks for it; suites in the order in which they first appear.

    `timestamp` is that of the run, in UTC; nothing here is timed, and no host is named.
    """
    when = timestamp[: len("2026-01-01T00:00:00")]
    suites: dict[str, list[Case]] = {}
    for case in cases:
        suites.setdefault(case.suite, []).append(case)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for number, (suite, members) in enumerate(suites.items()):
        lines.append(
            f'  <testsuite id="{number}" package={_attribute(name)} name={_attribute(suite)} timestamp={_attribute(when)} '
            f'hostname="localhost" {_counts(members)} skipped="0" time="0">'
        )
        lines.append("    <properties/>")
        for case in members:
            opening = f'    <testcase classname={_attribute(f"{name}.{suite}")} name={_attribute(case.name)} time="0"'
            if case.kind == "pass":
                lines.append(f"{opening}/>")
                continue
            lines.append(f"{opening}>")
            body = escape(_clean(case.detail or case.message))
            lines.append(
                f"      <{case.kind} message={_attribute(case.message)} type={_attribute(suite)}>{body}</{case.kind}>"
            )
            lines.append("    </testcase>")
        lines += ["    <system-out/>", "    <system-err/>", "  </testsuite>"]
    return "\n".join([*lines, "</testsuites>", ""]).encode()


def _counts(cases: Sequence[Case]) -> str:
    failures, errors = (sum(case.kind == kind for case in cases) for kind in ("failure", "error"))
    return f'tests="{len(cases)}" failures="{failures}" errors="{errors}"'


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    """XML 1.0 cannot carry control characters, not even escaped."""
    return _FORBIDDEN.sub("\ufffd", text)
