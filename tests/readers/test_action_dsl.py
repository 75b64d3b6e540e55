"""The action DSL: the forms of the specification, what is refused and where, and the fast path against the tokenizer."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.readers.action_dsl import (
    ALONE,
    POINTING,
    WITH_TEXT,
    Action,
    Unparsed,
    parse,
    parse_plain,
    render,
    tokenize,
)

N = math.nan


def same(a, b):
    """Equal, NaN counting as equal to NaN."""
    return repr(a) == repr(b)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("CLICK(x=0.42, y=0.73)", Action("click", 0.42, 0.73)),
        ("CLICK([3])", Action("click", element="3")),
        ("DOUBLE_CLICK(x=.5, y=1)", Action("double_click", 0.5, 1.0)),
        ("RIGHT_CLICK([a-7])", Action("right_click", element="a-7")),
        ("hover ( X = 1e-1 , Y = 2E-1 )", Action("hover", 0.1, 0.2)),
        ("DRAG(x=0.1, y=0.2, end_x=0.3, end_y=0.4)", Action("drag", 0.1, 0.2, 0.3, 0.4)),
        ('TYPE(text="it\'s")', Action("type", argument="it's")),
        ('TYPE("x")', Action("type", argument="x")),
        ("TYPE('x')", Action("type", argument="x")),
        (r'TYPE("a \"b\" \\ \n é")', Action("type", argument='a "b" \\ \n é')),
        (r'TYPE("\u00e9\x41\q")', Action("type", argument="éAq")),
        # Two escapes of one character, and half of such a pair.
        (r'TYPE("\ud83d\ude00")', Action("type", argument="😀")),
        (r'TYPE("a\ud800b")', Action("type", argument="a\ufffdb")),
        (r'TYPE("\q\ud83d\ude00\ud800")', Action("type", argument="q😀\ufffd")),
        ('TYPE("a\n\\tb\\\n")', Action("type", argument="a\n\tb\n")),
        ('TYPE([3], "x")', Action("type", argument="x", element="3")),
        ('TYPE("")', Action("type", argument="")),
        ('KEY("ctrl+c")', Action("key", argument="ctrl+c")),
        ('KEY(key="enter")', Action("key", argument="enter")),
        ('SCROLL("down")', Action("scroll", argument="down")),
        ('SCROLL(direction="up")', Action("scroll", argument="up")),
        ('SCROLL(x=0.5, y=0.5, direction="up")', Action("scroll", 0.5, 0.5, argument="up")),
        ('SELECT([3], "x")', Action("select", argument="x", element="3")),
        ('OPEN("app")', Action("open", argument="app")),
        ('ANSWER("…")', Action("answer", argument="…")),
        ("WAIT()", Action("wait")),
        ("Done( )", Action("done")),
        ("FAIL()", Action("fail")),
        # What stands in a typed text is text.
        ('TYPE(text="CLICK([3])")', Action("type", argument="CLICK([3])")),
        ('TYPE("Action: DONE()")', Action("type", argument="Action: DONE()")),
        # The last Action: block wins; without one, the last action found.
        ("Action: CLICK([1])\nNo.\nAction: CLICK([2])", Action("click", element="2")),
        ("CLICK([1]) is wrong, so\nACTION : DONE()", Action("done")),
        ("first CLICK([1]), then CLICK([2]) and rest", Action("click", element="2")),
        ("I click (the button): CLICK([4])", Action("click", element="4")),
        ("I don't type('t was) but\nDONE()", Action("done")),
        # A name that is no type is an action only where an action is announced.
        ('Action: TELEPORT("home")', Action("teleport", argument="home")),
        ('print("x") WAIT()', Action("wait")),
        # Model text is not clamped here or anywhere.
        ("CLICK(x=512, y=384)", Action("click", 512.0, 384.0)),
        ("CLICK(x=-0.1, y=+1.5)", Action("click", -0.1, 1.5)),
    ],
)
def test_forms(text, expected):
    assert same(tokenize(text), expected)
    assert same(parse(text), expected)


@pytest.mark.parametrize(
    "text, span, words",
    [
        ("", (0, 0), "no action"),
        ("I am thinking", (0, 13), "no action"),
        ("CLICK([1])\nAction: I give up", (18, 28), "after `Action:`"),
        ('TYPE(text="CLICK([3])"', (0, 22), "ends inside"),
        ('TYPE(text="CLICK([3])', (0, 21), "not closed"),
        ('TYPE("say Action: DONE()', (0, 24), "not closed"),
        ("CLICK(x=0.1)", (0, 12), "x and y"),
        ("CLICK(x=0.1, y=0.2", (0, 18), "ends inside"),
        ("CLICK(0.1, 0.2)", (0, 6), "expected an argument"),
        ("CLICK()", (0, 7), "x and y, or one"),
        ("CLICK(x=0.1, y=0.2, end_x=0.1, end_y=0.1)", (0, 41), "DRAG"),
        ("CLICK(x=nan, y=0)", (0, 8), "expected an argument"),
        ("CLICK(x=1e999, y=0)", (0, 8), "too large"),
        ("CLICK(x=1, x=2, y=0)", (0, 13), "no number here"),
        ("CLICK([3)", (0, 8), "expected ]"),
        ("CLICK([3],)", (0, 10), "expected an argument"),
        ("DRAG(x=0.1, y=0.2)", (0, 18), "end_x"),
        ("so: KEY()", (4, 9), "expected a key"),
        ('WAIT("2 s")', (0, 11), "no arguments"),
        ('TYPE("a" "b")', (0, 9), "expected , or )"),
        ('TYPE("a", "b")', (0, 10), "twice"),
        ("CLICK(x=0.1; y=0.2)", (0, 11), "unexpected ';'"),
    ],
)
def test_refused_with_the_span(text, span, words):
    found = parse(text)
    assert isinstance(found, Unparsed)
    assert (found.start, found.end) == span
    assert words in found.why


def test_further_types_count_outside_an_action_block():
    assert isinstance(parse('ZOOM("in")'), Unparsed)
    assert same(parse('ZOOM("in")', ("zoom",)), Action("zoom", argument="in"))


numbers = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
elements = st.from_regex(r"[A-Za-z_][A-Za-z0-9_\-]*|[0-9]+", fullmatch=True)
actions = st.one_of(
    st.tuples(st.sampled_from(POINTING), numbers, numbers).map(lambda parts: Action(*parts)),
    st.builds(lambda t, e: Action(t, element=e), st.sampled_from(POINTING), texts),
    st.tuples(numbers, numbers, numbers, numbers).map(lambda parts: Action("drag", *parts)),
    st.builds(
        lambda t, a, e: Action(t, argument=a, element=e), st.sampled_from(WITH_TEXT), texts, st.none() | elements
    ),
    st.builds(lambda t, a: Action(t, argument=a), st.sampled_from(("key", "scroll")), texts),
    st.sampled_from(ALONE).map(Action),
)


@settings(max_examples=120, deadline=None)
@given(action=actions, before=texts, after=texts)
def test_round_trip(action, before, after):
    written = render(action)
    assert same(tokenize(written), action)
    assert same(parse(written), action)
    # Whatever stands before a marker does not matter, unless it swallows the marker as an open string of its own.
    if "(" not in before and not re.search(r"action\s*:|\(", after, re.IGNORECASE):
        assert same(tokenize(f"{before} Action: {written} {after}"), action)


pieces = st.sampled_from(
    [
        *("CLICK", "click", "Type", "TYPE", "key", "SCROLL", "DONE", "WAIT", "select", "Action:", "action :", "x", "y"),
        *("(", ")", "[", "]", ",", "=", '"', "'", "\\", " ", "\n", "text=", "x=", "y=", "0.5", "1e3", "3", "-.5", "٣"),
        *("I see.", "\nAction: ", " Action:", "Action: CLICK([3])", "Action: DONE()"),
        *('"hi"', '"a b"', "()", "([3])", '("x")', r'("\u00e9\x41")', '("\\\n")', "(x=0.1, y=0.2)", "1e999", "é"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(text=st.lists(pieces, max_size=9).map("".join))
def test_the_fast_path_gives_what_the_tokenizer_gives(text):
    fast = parse_plain(text)
    if fast is not None:
        assert same(fast, tokenize(text))


@settings(max_examples=120, deadline=None)
@given(action=actions)
def test_the_fast_path_knows_the_plain_forms(action):
    """Were the fast path never taken, the property above would hold of nothing."""
    if action.type != "drag" and action.element is None:
        assert same(parse_plain(render(action)), action)
        assert same(parse_plain(f"I see a form.\nAction: {render(action)}"), action)


PLAIN = [
    "click ( X = -1e-1 , Y = 2E-1 )",
    "double_click(x=0.123456789012345678, y=3)",
    "Right_Click([ 12 ])",
    'TYPE(text = "CLICK([3])")',
    'TYPE("a\\"b")',
    'select( [ 7 ] , text="ü…")',
    "DONE( )",
    "  action : DONE()\n",
    "Action: CLICK([3])",
    "I look, ünd see Action: nothing. Then\nAction: CLICK(x=0.1, y=0.2) ",
    "I look. ACTION: WAIT()",
]
OTHER = [
    *("", "Action:", "DONE", "DONE()x", "done(1)", 'KEY(key="enter")', 'SCROLL([3], "up")', "CLICK([])", "CLICK([3]"),
    *(
        'CLICK("3")',
        "CLICK(x=1e999, y=1)",
        "CLICK(x=0.5)",
        "CLICK(x=0.5, y=0.5, end_x=1)",
        "TYPE('x')",
    ),
    *('TYPE("x', 'TYPE([3] "x")', "clicks(x=1, y=1)", "action DONE()", "f(1)\nAction: DONE()", "xAction: DONE()"),
]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_forms_take_the_fast_path(text):
    assert same(parse_plain(text), tokenize(text))


@pytest.mark.parametrize("text", OTHER)
def test_all_others_are_left_to_the_tokenizer(text):
    assert parse_plain(text) is None


@pytest.mark.parametrize("part", ["Action: ", " ", "Action:\n ", "a ", "click ", '"', "CLICK(x=", "1", "action : "])
def test_long_texts_take_no_longer_than_their_length(part):
    """A regular expression that tries every way to cut the text would not come back from this."""
    for end in ("", "(", "CLICK(x=1, y=2", 'TYPE("x'):
        text = part * 20_000 + end
        assert parse_plain(text) is None
        parse(text)


@settings(max_examples=150, deadline=None)
@given(text=texts | st.lists(pieces, max_size=12).map("".join))
def test_any_text_is_an_action_or_a_span_inside_it(text):
    found = parse(text)
    if isinstance(found, Unparsed):
        assert 0 <= found.start <= found.end <= len(text)
        assert found.why
