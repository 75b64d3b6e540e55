"""Short names stay different, and say what tells them apart."""

from hypothesis import given
from hypothesis import strategies as st

from adjudge.runs.names import pair_name, short_names

GEMINI = ["google/gemini-3-flash-preview|tools", "google/gemini-3-flash-preview|no-tools"]


def test_the_common_part_goes_and_the_mode_stays():
    short = list(short_names(GEMINI, 26).values())
    assert short == ["…tools", "…no-tools"]
    more = list(short_names([*GEMINI, "anthropic/claude-sonnet-4.5|tools"], 26).values())
    assert more == ["google/gemin…preview|tools", "google/gemin…view|no-tools", "anthropic/cl…net-4.5|tools"]
    assert list(short_names(["hawk|tools", "wren|tools"], 26).values()) == ["hawk|tools", "wren|tools"]


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=12, unique=True), st.integers(12, 40))
def test_names_stay_different_and_within_the_limit(names, limit):
    short = short_names(names, limit)
    assert len(set(short.values())) == len(names)
    assert all(len(text) <= limit for text in short.values())


def test_pairs_in_few_words():
    assert pair_name("hawk|no-tools", "hawk|tools") == "hawk: tools − no-tools"
    assert pair_name("hawk|tools", "wren|tools") == "tools: wren − hawk"
    assert pair_name("run-1", "run-2") == "run-2 − run-1"
    assert pair_name("a|b", "c") == "c − a|b"
