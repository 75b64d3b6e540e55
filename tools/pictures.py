"""Photographs of pages: those that README and docs show, or every protocol's at three widths, light and dark.

    python tools/pictures.py docs                 # docs/images/report.png, explorer.png, comparison.png, comparison-sample.png
    python tools/pictures.py look OUT [RUN …]     # every page of some runs, or of the demo, to be looked at

Needs Chromium (Debian: apt install chromium).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.report.browser import Browser  # noqa: E402

import adjudge  # noqa: E402
from adjudge.cli.compare import comparison_document, sides  # noqa: E402
from adjudge.protocols.base import names, protocol  # noqa: E402
from adjudge.report import html, side_by_side  # noqa: E402

WIDTHS = {"desktop": (1280, 900), "tablet": (820, 1100), "phone": (390, 844)}
OPENED = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'j', bubbles: true}))"
IN_SIGHT = "document.getElementById('explore').scrollIntoView()"


def examples(folder: Path, protocols: Iterable[str]) -> dict[str, Path]:
    """The page of every protocol's example."""
    pages = {}
    for name in protocols:
        data = folder / name
        data.mkdir()
        config = protocol(name).example(data, 0)
        if config is not None:
            run = adjudge.evaluate(name, config, out=folder / f"{name}-run", report=False)
            pages[name] = folder / f"{name}.html"
            pages[name].write_bytes(html.render(run))
    return pages


def comparisons(folder: Path) -> dict[str, Path]:
    """Two models of every example that has several, and all models of one that has more than two."""
    pages = {}
    for name in names():
        run = folder / f"{name}-run"
        if not run.is_dir() or len(adjudge.load_run(run).metrics["buckets"]) < 3:  # of all, and of one model
            continue
        systems = [side.model for side in sides([str(run)])]
        chosen = {f"{name}_pair": systems[:2]} | ({f"{name}_matrix": systems} if len(systems) > 2 else {})
        for title, models in chosen.items():
            specs = [f"{run}::{model}" for model in models]
            document = comparison_document(specs)
            if document["pairs"]:  # those that may be compared
                pages[title] = folder / f"{title}.html"
                pages[title].write_bytes(side_by_side.render(document, sides(specs)))
    return pages


def look(browser: Browser, pages: dict[str, Path], folder: Path) -> None:
    """The first screen, the table, an opened sample and all of every page, at every width, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        for width, (wide, high) in WIDTHS.items():
            for shade in ("light", "dark"):
                stem = f"{name}-{width}-{shade}"
                browser.ready(page, width=wide, height=high, dark=shade == "dark")
                browser.screenshot(folder / f"{stem}-first.png", whole=False)
                browser.screenshot(folder / f"{stem}-whole.png")
                browser.run(IN_SIGHT)
                browser.screenshot(folder / f"{stem}-table.png", whole=False)
                browser.run(OPENED)
                browser.run(IN_SIGHT)
                browser.screenshot(folder / f"{stem}-sample.png", whole=False)


def docs(browser: Browser, page: Path) -> None:
    """The two pictures of the README."""
    images = ROOT / "docs" / "images"
    browser.ready(page, width=1100, height=1000)
    browser.screenshot(images / "report.png", whole=False)
    browser.run(OPENED)
    browser.run(IN_SIGHT)
    browser.screenshot(images / "explorer.png", whole=False)


def compared(browser: Browser, run: Path, page: Path) -> None:
    """The pictures of two models beside each other: the page, and on it a sample that flipped."""
    images = ROOT / "docs" / "images"
    specs = [f"{run}::falcon-a", f"{run}::kestrel-b"]
    page.write_bytes(side_by_side.render(comparison_document(specs, margin=0.05), sides(specs)))
    browser.ready(page, width=1100, height=925)
    browser.screenshot(images / "comparison.png", whole=False)
    browser.ready(page, width=1280, height=840)
    browser.run(OPENED)
    browser.run(IN_SIGHT)
    browser.screenshot(images / "comparison-sample.png", whole=False)


def main(words: list[str]) -> int:
    """Do what the first word says; without one, say what there is."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None or words[:1] not in (["docs"], ["look"]) or (words[0] == "look" and len(words) < 2):
        sys.stderr.write(
            __doc__ if program else "there is no chromium on this machine (Debian: apt install chromium)\n"
        )
        return 2
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        runs = [Path(word) for word in words[2:]]
        pages = {run.name: run / "report.html" for run in runs} or examples(
            folder, ["flight"] if words[0] == "docs" else names()
        )
        browser = Browser(program, folder / "profile")
        try:
            if words[0] == "docs":
                docs(browser, pages["flight"])
                compared(browser, folder / "flight-run", folder / "compared.html")
            else:
                look(browser, pages | comparisons(folder), Path(words[1]))
        finally:
            browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
