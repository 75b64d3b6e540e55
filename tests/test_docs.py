"""Docs are true: every command is run and its output compared; generated pages are up to date."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SPEC = importlib.util.spec_from_file_location("docs_tool", ROOT / "tools" / "docs.py")
docs = importlib.util.module_from_spec(SPEC)
sys.modules["docs_tool"] = docs
SPEC.loader.exec_module(docs)

PAGES = [
    page
    for page in docs.pages()
    if any(mark in page.read_text("utf-8") for mark in ("```console", "<!-- imports", "<!-- reference of "))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_prints_what_the_page_shows(page):
    assert docs.rendered(page) == page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", docs.GENERATED)
def test_generated_pages_are_up_to_date(name):
    # In a process of its own: click remembers the help flags of the group that was called first.
    code = f"import runpy; print(runpy.run_path({str(docs.__file__)!r})['GENERATED'][{name!r}](), end='')"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert (ROOT / name).read_text(encoding="utf-8") == made, "run `make docs`"


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in docs.pages():
        targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        broken += [f"{page.relative_to(ROOT)}: {target}" for target in targets if not (page.parent / target).exists()]
    assert broken == []


def test_a_wrong_output_would_be_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one\ntwo\n```\n", encoding="utf-8")
    assert docs.rendered(page) == "```console\n$ echo one\none\n```\n"
