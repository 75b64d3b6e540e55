from __future__ import annotations

import json
import re

import pytest

from adjudge.errors import ConfigError
from adjudge.protocols.stability.jitter import KINDS, apply, jitter
from adjudge.protocols.stability.text import canonical

TEXTS = [
    "What does the manual say about the battery? Please answer in one sentence.",
    "Show the maximum load",
    "Größe, Gewicht & Preis? Bitte kurz!",
    "please",
    "It is so. It is so.",
    "a  b\tc",
]
WORDS = re.compile(r"\w+")


def undo(jittered, edits):
    """The original, from the jittered text and its record."""
    back, shift = [], 0
    for start, removed, inserted in edits:
        back.append((start + shift, inserted, removed))
        shift += len(inserted) - len(removed)
    return apply(jittered, back)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "none"])
@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_a_jitter_changes_the_text_keeps_its_meaning_and_leads_back(text, kind, seed):
    edits = jitter(text, kind, seed)
    if not edits:
        assert (kind, text) in {("syn", TEXTS[2]), ("syn", TEXTS[4]), ("syn", TEXTS[5]), ("order", "please")}
        return
    changed = apply(text, json.loads(json.dumps(edits)))
    assert changed != text
    assert undo(changed, edits) == text
    assert jitter(text, kind, seed) == edits
    if kind in {"ws", "punct"}:
        assert canonical(changed) == canonical(text)
    if kind == "order":
        assert sorted(WORDS.findall(changed)) == sorted(WORDS.findall(text))
    if kind == "syn":
        assert len(WORDS.findall(changed)) >= len(WORDS.findall(text))


def test_another_seed_gives_another_prompt():
    assert len({apply(TEXTS[0], jitter(TEXTS[0], "ws", str(seed))) for seed in range(8)}) > 4


def test_a_record_that_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match="does not fit"):
        apply("abc", [(1, "x", "y")])
    with pytest.raises(ConfigError, match="not one of none, ws, punct, syn, order"):
        jitter("abc", "case", "0")


def test_the_command_writes_prompts_that_lead_back(cli, write, tmp_path):
    gold = write("gold.jsonl", [{"qid": 1, "question": TEXTS[0]}, {"qid": 2, "question": "please"}])
    result = cli("consistency", "jitter", gold, "--jitters", "ws,order", "--seeds", "0-4", "-o", "deep/out.jsonl")
    assert result.exception is None
    rows = [json.loads(line) for line in (tmp_path / "deep" / "out.jsonl").read_text().splitlines()]
    assert len(rows) == 15
    assert "left out, nothing there to change: 2 (order)" in result.stderr
    for row in rows:
        assert undo(row["question"], row["edits"]) == (TEXTS[0] if row["qid"] == "1" else "please")


@pytest.mark.parametrize("words", [("--seeds", "x"), ("--seeds", "4-1"), ("--jitters", "ws,case")])
def test_wrong_flags_are_refused(cli, write, words):
    gold = write("gold.jsonl", [{"qid": 1, "question": "Why?"}])
    assert isinstance(cli("consistency", "jitter", gold, *words).exception, ConfigError)
