"""`gate --sequential`: items count once over all looks, and the gate fails only on evidence against the candidate."""

import json

import msgspec
import pytest
from click.testing import CliRunner

import adjudge
from adjudge.cli.gate import gate
from adjudge.comparisons.sequential import look, read_state
from adjudge.errors import ConfigError, NotComparable
from adjudge.stats.paired import paired_test


def outcomes(judge, write, name, passes, first=0):
    records = [{"id": f"q{first + i}", "model": name, "score": int(passed)} for i, passed in enumerate(passes)]
    return str(judge(write(records, f"{name}-{first}-{len(passes)}.jsonl")).path)


@pytest.fixture
def pair(judge, write):
    """A baseline that is right everywhere, and a candidate that is right on every third item."""

    def make(n, first=0):
        base = outcomes(judge, write, "base", [True] * n, first)
        return base, outcomes(judge, write, "new", [i % 3 == 0 for i in range(n)], first)

    return make


def test_items_count_once(judge, write, pair):
    base, new = pair(30)
    first = look(new, base, None)
    assert (first.new, first.state.losses, first.state.wins, first.state.ties) == (30, 20, 0, 10)
    again = look(new, base, first.state)
    assert (again.new, again.known, again.state.losses, again.state.looks) == (0, 30, 20, 2)
    assert again.test.ln_e == paired_test(0, 20).ln_e


def test_the_gate_fails_when_the_evidence_is_there_and_keeps_its_counts(tmp_path, pair):
    base, new = pair(60)
    state = tmp_path / "state.json"
    words = [new, "--against", base, "--sequential", str(state)]
    result = CliRunner().invoke(gate, words, standalone_mode=False)
    assert result.return_value == 1
    assert "FAIL" in result.stderr
    kept = json.loads(state.read_text(encoding="utf-8"))
    assert (kept["losses"], kept["wins"], len(kept["seen"])) == (40, 0, 60)


def test_a_better_candidate_never_fails(tmp_path, pair):
    base, new = pair(60)
    words = [base, "--against", new, "--sequential", str(tmp_path / "state.json")]
    assert CliRunner().invoke(gate, words, standalone_mode=False).return_value == 0


def test_several_attempts_at_an_item_are_one_coin(judge, write):
    def run(name, passes):
        records = [{"id": "q", "model": name, "trial": t + 1, "score": int(p)} for t, p in enumerate(passes)]
        return str(judge(write(records, f"{name}.jsonl")).path)

    found = look(run("new", [0, 0, 0]), run("base", [1, 1, 0]), None)
    assert (found.state.losses, found.state.wins, found.new) == (1, 0, 1)


def test_another_baseline_or_alpha_begins_anew(judge, write, pair):
    base, new = pair(10)
    state = look(new, base, None).state
    with pytest.raises(ConfigError, match="another alpha"):
        look(new, base, state, alpha=0.01)
    other = outcomes(judge, write, "other", [True] * 10)
    with pytest.raises(ConfigError, match="another baseline"):
        look(new, other, state)


def test_graded_scores_have_no_pairs_to_count(judge, write):
    def run(name):
        return str(judge(write([{"id": f"q{i}", "model": name, "score": 0.5} for i in range(5)], f"{name}.jsonl")).path)

    with pytest.raises(NotComparable, match="no yes-or-no outcome"):
        look(run("a"), run("b"), None)


def test_another_outcome_of_the_baseline_is_another_baseline_and_its_page_is_not(judge, write, pair, tmp_path):
    base, new = pair(10)
    state = look(new, base, None).state
    other = outcomes(judge, write, "base", [i < 5 for i in range(10)])
    with pytest.raises(ConfigError, match="another baseline"):
        look(new, other, state)
    records = [{"id": f"q{i}", "model": "base", "score": 1} for i in range(10)]
    page = adjudge.evaluate("score", {"logs": [write(records, "again.jsonl")], "resamples": 100}, out=tmp_path / "page")
    assert look(new, str(page.path), state).new == 0


@pytest.mark.parametrize("change", [{"wins": 500}, {"losses": -1}, {"seen": []}, {"looks": -1}])
def test_counts_that_do_not_add_up_are_refused(tmp_path, pair, change):
    base, new = pair(10)
    state = msgspec.to_builtins(look(new, base, None).state)
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state | change), encoding="utf-8")
    with pytest.raises(ConfigError, match="begin with a new file"):
        read_state(path)


def test_a_candidate_that_answers_otherwise_is_told_and_not_counted_again(tmp_path, pair):
    base, new = pair(30)
    words = ["--against", base, "--sequential", str(tmp_path / "state.json")]
    assert CliRunner().invoke(gate, [base, *words], standalone_mode=False).return_value == 0
    result = CliRunner().invoke(gate, [new, *words], standalone_mode=False)
    assert "says nothing of the candidate; 20 items that were counted came out otherwise now" in result.output
    state = json.loads((tmp_path / "state.json").read_text())
    assert (state["wins"], state["losses"], state["ties"]) == (0, 0, 30)
