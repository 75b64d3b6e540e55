"""Action texts by column: what the compiled loop takes is what the parser gives, and it takes the plain forms."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.readers import action_columns as module
from adjudge.readers.action_columns import NAMES, plain_actions
from adjudge.readers.action_dsl import Action, parse

PLAIN = [
    "CLICK(x=0.42, y=0.73)",
    "click ( X = -1e-1 , Y = 2E-1 )",
    "double_click(x=0.123456789012345678, y=3)",
    "Right_Click([ 12 ])",
    "hover(x=0,y=-0)",
    'TYPE("it is")',
    'TYPE(text = "CLICK([3])")',
    'TYPE([3], "")',
    'select( [ 7 ] , text="ü…")',
    'OPEN("app")',
    'ANSWER("yes")',
    'KEY("ctrl+c")',
    'scroll("down")',
    "wait()",
    "DONE( )",
    "fail()",
    "  action : DONE()\n",
    "Action: CLICK([3])",
    "I look, ünd see Action: nothing. Then\nAction: CLICK(x=0.1, y=0.2) ",
]
OTHER = [
    "",
    "Action:",
    "DONE",
    "DONE()x",
    "done(1)",
    'KEY(key="enter")',
    'KEY(text="enter")',
    'SCROLL([3], "up")',
    "CLICK([])",
    "CLICK([3]",
    'CLICK("3")',
    "CLICK(x=.5, y=1)",
    "CLICK(x=1e999, y=1)",
    "CLICK(x=0.5)",
    "CLICK(x=0.5, y=0.5, end_x=1)",
    "CLICK(x=0.5; y=0.5)",
    'TYPE("a\\"b")',
    "TYPE('x')",
    'TYPE("x',
    'TYPE([3] "x")',
    "clicks(x=1, y=1)",
    "action DONE()",
    "f(1)\nAction: DONE()",
    "xAction: DONE()",
    'TYPE("Action: DONE()")x',
]


def read(texts):
    """The rows as actions, None for what is left to the parser."""
    found = plain_actions(pa.array(["x", *texts], pa.string())[1:], fast=True)
    rows = zip(found.name, found.x, found.y, found.argument.to_pylist(), found.element.to_pylist(), strict=True)
    return [
        None if name < 0 else Action(NAMES[name], float(x), float(y), argument=argument, element=element)
        for name, x, y, argument, element in rows
    ]


def test_plain_forms_are_taken():
    for text, found in zip(PLAIN, read(PLAIN), strict=True):
        assert repr(found) == repr(parse(text)), text


def test_all_others_are_left_to_the_parser():
    assert read(OTHER) == [None] * len(OTHER)


pieces = st.sampled_from(
    [
        *PLAIN,
        *OTHER,
        *(
            "CLICK",
            "type",
            "Action:",
            "(",
            ")",
            "[",
            "]",
            ",",
            "=",
            '"',
            " ",
            "\n",
            "\x0b",
            "x",
            "y",
            "text",
            "3",
            "0.5",
        ),
        *("-1", "1e400", "é", "\\"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(texts=st.lists(st.lists(pieces, max_size=7).map("".join), max_size=4))
def test_what_is_taken_is_what_the_parser_gives(texts):
    for text, found in zip(texts, read(texts), strict=True):
        assert found is None or repr(found) == repr(parse(text)), text


numbers = st.floats(-10, 2000).map(lambda value: repr(round(value, 6))) | st.integers(-5, 2000).map(str)


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(NAMES[:4]), x=numbers, y=numbers, space=st.sampled_from(["", " ", "\t\n"]))
def test_coordinates_are_those_of_the_parser(name, x, y, space):
    text = f"{name}{space}({space}x{space}={space}{x}{space},{space}y{space}={space}{y}{space}){space}"
    [found] = read([text])
    assert repr(found) == repr(parse(text))


@pytest.mark.parametrize("fast", [True, False])
def test_without_the_compiled_loop_nothing_is_taken(monkeypatch, fast):
    monkeypatch.setattr(module, "available", lambda: not fast)
    found = plain_actions(pa.array(PLAIN), fast=fast)
    assert (found.name == -1).all()
    assert found.argument.null_count == len(PLAIN)
