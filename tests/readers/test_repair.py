import json
import math
import re
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adjudge.readers import repair
from adjudge.readers.repair import REPAIRS, read_flat, read_object, repair_names


def read(text, **options):
    return read_object(text, 0, len(text), **options)


def outer(reading):
    assert reading.stop == ""
    return reading.found[-1]


@pytest.mark.parametrize(
    "text, value, repairs",
    [
        ("{}", {}, ()),
        ('{"a": 1}', {"a": 1}, ()),
        ('{"a": -0.5e+2, "b": [], "c": {"d": null}}', {"a": -50.0, "b": [], "c": {"d": None}}, ()),
        ('{"a": 1, "a": 2}', {"a": 2}, ()),
        ('{"a": "\\u00e9\\ud83d\\ude80\\"\\n"}', {"a": 'é🚀"\n'}, ()),
        ('{"a": [true, false, "N/A", ""]}', {"a": [True, False, "N/A", ""]}, ()),
        ('{"a": 1,}', {"a": 1}, ("trailing_comma",)),
        ('{"a": [1, 2,\n],\t}', {"a": [1, 2]}, ("trailing_comma",)),
        ("{'a': 'b'}", {"a": "b"}, ("single_quotes",)),
        ("{'it\\'s': 'say \"hi\" \\\\ \\n'}", {"it's": 'say "hi" \\ \n'}, ("single_quotes",)),
        ('{"a": -Infinity, "b": Infinity}', {"a": -math.inf, "b": math.inf}, ("nan_literal",)),
        ('{"a": True, "b": False, "c": None}', {"a": True, "b": False, "c": None}, ("python_literal",)),
        ("{'a': None, 'b': [Infinity,],}", {"a": None, "b": [math.inf]}, REPAIRS),
    ],
)
def test_what_is_read(text, value, repairs):
    found = outer(read(text + " and more"))
    assert found.value == value
    assert (found.start, found.end) == (0, len(text))
    assert repair_names(found.repairs) == repairs


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1,, "b": 2}',
        "{,}",
        '{"a": [,]}',
        '{"a": 01}',
        '{"a": +1}',
        '{"a": .5}',
        '{"a": 1. }',
        '{"a": nan}',
        '{"a": undefined}',
        '{"a": -NaN}',
        '{"a": 0x10}',
        '{"a": 1_000}',
        "{a: 1}",
        "{1: 2}",
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        '{"a": 1; "b": 2}',
        '{"a": 1 // one\n}',
        '{"a": "line\nbreak"}',
        '{"a": "\\x41"}',
        '{"a": "it\\\'s"}',
        '{"a": "\\ud800"}',
        "{“a”: 1}",
        '{"a": [1}',
        '{"a": {]}',
        '{"a": (1, 2)}',
        '{"a":\u00a01}',
    ],
)
def test_nothing_else_is_repaired(text):
    reading = read(text + " and more")
    assert reading.stop == "broken"
    assert reading.why


def test_nan_is_nan():
    assert math.isnan(outer(read('{"a": NaN}')).value["a"])


@pytest.mark.parametrize(
    "number, value",
    [
        ("1e999", math.inf),
        ("-1e999", -math.inf),
        ("9" * 5000, math.inf),
        ("-" + "9" * 400, -math.inf),
        ("1" + "0" * 308, 1e308),
        ("9" * 308, int("9" * 308)),
        ("18446744073709551617", 2**64 + 1),
        ("9223372036854775808", 2**63),
        ("-0", 0),
        ("1e-999", 0.0),
    ],
)
def test_numbers_of_any_size(number, value):
    found = outer(read(f'{{"a": {number}}}')).value["a"]
    assert found == value
    assert type(found) is type(value)
    assert math.isinf(float(found)) == math.isinf(float(value))


def test_the_span_and_repairs_of_an_inner_object_are_its_own():
    text = '{\'outer\': [{"a": 1}, {"a": True}],}'
    found = {text[f.start : f.end]: repair_names(f.repairs) for f in read(text).found}
    assert found == {
        '{"a": 1}': (),
        '{"a": True}': ("python_literal",),
        text: ("trailing_comma", "single_quotes", "python_literal"),
    }


def test_objects_closed_inside_a_broken_one_are_kept_and_open_ones_named():
    text = '{"a": {"b": 1}, "c": [{"d": oops'
    reading = read(text + " }]}")
    assert reading.stop == "broken"
    assert [text[f.start : f.end] for f in reading.found] == ['{"b": 1}']
    assert reading.left_open == [0, text.index('{"d"')]
    assert text[reading.at :].strip() == "oops"


WHOLE = '{"a": -12.5e-3, \'b\': "x\\u0041\\n", "c": [true, None, -Infinity, {"d": {}}, ], "e": \'it\\\'s\'}'


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_an_object_cut_anywhere_is_truncated(cut):
    assert outer(read(WHOLE)).end == len(WHOLE)
    assert read(WHOLE[:cut]).stop == "truncated"


@pytest.mark.parametrize("opening, closing", [("[", "]"), ('{"a":', "}")])
def test_depth_is_bounded(opening, closing):
    levels = 63
    assert outer(read('{"a":' + opening * levels + "1" + closing * levels + "}")).start == 0
    levels = 64
    reading = read('{"a":' + opening * levels + "1" + closing * levels + "}")
    assert (reading.stop, reading.why) == ("deep", "nested deeper than 64")
    assert read('{"a":' + opening * 100_000).stop == "deep"


def test_the_fast_way_keeps_the_depth_bound():
    text = '{"a": {"b": [1]}}'
    assert outer(read(text, max_depth=3)).value == {"a": {"b": [1]}}
    assert read(text, max_depth=2).stop == "deep"


def test_open_strings_do_not_backtrack():
    began = time.process_time()
    for text in ('{"' + "a" * 200_000 + "\n", '{"' + "\\\\" * 100_000 + "\n", "{'" + "\\'" * 100_000 + "\n"):
        assert read(text + "x").stop == "broken"
    assert time.process_time() - began < 1


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab{}'\"\\,:", max_size=4), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text("ab{}'\"\\,:", max_size=4), JSON, max_size=4)


@settings(max_examples=200, deadline=None)
@given(OBJECTS, st.booleans(), st.sampled_from([None, 1]), st.text("ab {}\"'", max_size=6))
def test_strict_json_reads_as_the_standard_library_reads_it(value, ascii_only, indent, tail):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    found = outer(read(text + tail))
    assert (found.value, found.end, found.repairs) == (value, len(text), 0)
    for inner in read(text).found:
        assert json.loads(text[inner.start : inner.end]) == inner.value


@settings(max_examples=200, deadline=None)
@given(OBJECTS)
def test_python_literals_read_back(value):
    text = repr(value)
    assume("\\x" not in text and "\\U" not in text)  # escapes that JSON does not have
    assert outer(read(text)).value == value


@settings(max_examples=200, deadline=None)
@given(OBJECTS.map(lambda value: json.dumps(value, ensure_ascii=False)), st.data())
def test_strictness_agrees_with_the_standard_library_on_damaged_text(text, data):
    at = data.draw(st.integers(1, len(text)))
    text = (
        text[:at] + data.draw(st.text("{}[]:,\"'\\ 01-.eE\ntN", max_size=3)) + text[at + data.draw(st.integers(0, 2)) :]
    )
    try:
        value, end = json.JSONDecoder(parse_constant=lambda _: 1 / 0).raw_decode(text)
    except (ValueError, ZeroDivisionError):
        reading = read(text)
        assert reading.stop in {"broken", "truncated"} or outer(reading).repairs
    else:
        found = outer(read(text))
        assert (found.value, found.end, found.repairs) == (value, end, 0)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text("ab}'\"\\", max_size=3), st.integers() | st.floats(allow_nan=False) | st.text("a}\\")))
def test_the_fast_way_reads_what_the_grammar_reads(value):
    text = json.dumps(value) + "}"
    flat = read_flat(text, 0, len(text))
    simple = "}" not in text[:-2] and "Infinity" not in text and all(abs(int(n)) < 2**63 for n in _integers(value))
    assert (flat is not None) >= simple
    assert flat is None or outer(read(text)) == flat


def _integers(value):
    return [number for number in value.values() if type(number) is int]


@given(
    st.dictionaries(st.text(max_size=4), st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)),
    st.sampled_from(["", "'", "]", "x", '"a": 1, 2', "[1, {", "# note", "\\"]),
    st.data(),
)
def test_plain_members_of_an_object_without_an_end_are_passed_over_alike(value, noise, data):
    text = json.dumps(value, indent=data.draw(st.sampled_from([None, 1]))).replace("}", "")
    at = data.draw(st.integers(1, len(text)))
    text = text[:at] + noise + text[at : data.draw(st.integers(at, len(text)))]
    with pytest.MonkeyPatch.context() as patch:
        quick = read_object(text, 0, len(text))
        patch.setattr(repair, "_MEMBERS", re.compile("(?!)"))
        assert repr(read_object(text, 0, len(text))) == repr(quick)
