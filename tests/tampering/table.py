"""The tampering table: every way × every protocol. `python tests/tampering/table.py` prints it for docs/trust.md.

Runs without a page, which repeats much of the manifest and so finds more; ways to alter the page on runs with one.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import adjudge
from adjudge.engine.prove import prove
from adjudge.errors import AdjudgeError
from adjudge.protocols.base import names, protocol
from adjudge.report.html import check
from tampering.damage import scored
from tampering.forge import Inapplicable
from tampering.ways import PAGES, WAYS, Way

FOUND, LISTED, MISSED, BROKEN, INAPPLICABLE = "found", "listed", "MISSED", "TRACEBACK", "–"


def protocols() -> list[str]:
    """Our own protocols; each has an example to be judged."""
    return [name for name in names() if type(protocol(name)).__module__.startswith("adjudge.")]


def honest_run(name: str, folder: Path, *, report: bool) -> Path:
    """A small run of a protocol's example, with a gate where the protocol has estimates to hold."""
    config = scored(folder / "data") if name == "anomaly" else dict(protocol(name).example(folder / "data", 3) or {})
    config.setdefault("resamples", 100)
    plan = protocol(name).plan(config)
    limit = 6 if any(item.limited for item in plan.inputs()) else None
    return adjudge.evaluate(name, config, out=folder / "run", limit=limit, gates=["matched >= 2"], report=report).path


def outcome(run: Path, way: Way, folder: Path) -> tuple[str, str, bool]:
    """What becomes of a run altered in one way, the words that say it, and whether a published digest finds it."""
    copy = shutil.copytree(run, folder / "forged")
    try:
        digest = adjudge.load_run(copy).digest
        try:
            way(copy)
        except Inapplicable:
            return INAPPLICABLE, "", False
        try:
            result = prove(adjudge.load_run(copy), check_report=check, expect=digest)
        except AdjudgeError as error:
            return (FOUND if error.exit_code == 2 else MISSED), str(error), True
        except Exception as error:  # noqa: BLE001 -- this is what the table looks for
            return BROKEN, f"{type(error).__name__}: {error}", False
        mark = f"manifest.json: its digest is {adjudge.load_run(copy).digest}"
        expected = any(text.startswith(mark) for text in result.problems)
        problems = [text for text in result.problems if not text.startswith(mark)] + result.not_recomputed
        if problems:
            return FOUND, problems[0], True
        listed = [text for words in way.listed for text in result.not_checked if text.startswith(words)]
        return (LISTED, listed[0], expected) if listed else (MISSED, "", expected)
    finally:
        shutil.rmtree(folder / "forged", ignore_errors=True)


def main() -> None:
    """Print a row a protocol, and every way that is neither found nor listed."""
    began, by_digest = time.process_time(), Counter()
    print("| protocol | ways | found | listed under “not checked” | neither | tracebacks |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        for name in sys.argv[1:] or protocols():
            folder = Path(place) / name
            folder.mkdir()
            runs = {page: honest_run(name, folder / str(page), report=page) for page in (False, True)}
            row = Counter()
            for way in WAYS:
                word, text, expected = outcome(runs[way in PAGES], way, folder)
                row[word] += 1
                if word != INAPPLICABLE:
                    by_digest[expected] += 1
                if word in {MISSED, BROKEN} or "is not as adjudge writes it (" in text:
                    print(f"{name}: {way.name}: {word} {text}", file=sys.stderr)
            ways = sum(row.values()) - row[INAPPLICABLE]
            print(f"| {name} | {ways} | {row[FOUND]} | {row[LISTED]} | {row[MISSED]} | {row[BROKEN]} |", flush=True)
    print(
        f"\n{by_digest[True]} of {by_digest.total()} are found with --expect. {time.process_time() - began:.0f} s",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
