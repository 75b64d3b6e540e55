import json
import math
import time

import msgspec
import pytest

from adjudge.errors import ConfigError
from adjudge.protocols.flight.fields import FIELDS
from adjudge.readers import extract
from adjudge.readers.extract import Extractor

ROLL, PITCH = "Roll (deg)", "Pitch (deg)"
A = '{"Roll (deg)": 1.5, "Pitch (deg)": 2}'
B = '{"Roll (deg)": -3, "Pitch (deg)": "4"}'
ONE = '{"Roll (deg)": 9}'


class Pair(msgspec.Struct, rename={"roll": ROLL, "pitch": PITCH}, forbid_unknown_fields=True):
    roll: float
    pitch: float


DECODER = msgspec.json.Decoder(Pair)
PLAIN = Extractor((ROLL, PITCH))
TYPED = Extractor((ROLL, PITCH), decoder=DECODER)
STRICT = Extractor((ROLL, PITCH), repairs=False)


def same(one, other):
    """Two extractions agree on everything but whether the value is typed."""
    plain = [
        {ROLL: e.value.roll, PITCH: e.value.pitch} if e.typed else e.value and {k: e.value[k] for k in e.value}
        for e in (one, other)
    ]
    return (
        plain[0] == plain[1]
        and one.method == other.method
        and one.error == other.error
        and (
            (one.start, one.end, one.repairs, one.candidates)
            == (other.start, other.end, other.repairs, other.candidates)
        )
    )


@pytest.mark.parametrize(
    "text, method, span, repairs, candidates",
    [
        (A, "whole", A, (), 1),
        (f" \r\n{A}\n\n", "whole", A, (), 1),
        (f"```json\n{A}\n```", "fenced", A, (), 1),
        (f"```\n{A}\n```\n", "fenced", A, (), 1),
        (f"~~~ json5 title=x\n{A}\n~~~", "fenced", A, (), 1),
        (f"```json\r\n{A}\r\n```\r\n", "fenced", A, (), 1),
        (f"Here it is:\n```json\n{A}\n```\nIt's done.", "fenced", A, (), 1),
        (f"Unclosed:\n```json\n{A}", "fenced", A, (), 1),
        (f"- in a list:\n    ```json\n    {A}\n    ```", "fenced", A, (), 1),
        (f"> ```\n> {A}\n> ```", "fenced", A, (), 1),
        (f"````\n```\n{A}\n````", "fenced", A, (), 1),
        (f"~~~\n```\n{A}", "fenced", A, (), 1),
        (f"```python\nx = 1\n```\n{A}", "embedded", A, (), 1),
        (f"```python\nx = 1\n```\n```\n{A}\n```", "fenced", A, (), 1),
        (f"```json {A}```", "embedded", A, (), 1),
        (f"```json {A}\n```", "embedded", A, (), 1),
        (f"{A}\n```", "embedded", A, (), 1),
        (f"The answer is {A}.", "embedded", A, (), 1),
        (f"\ufeff{A}", "embedded", A, (), 1),
        (f"<think>\nIt's {{see}} …\n</think>\n{A}", "embedded", A, (), 1),
        (f"{B} then {A}", "embedded", A, (), 2),
        (f"```json\n{B}\n```\nbecomes\n```json\n{A}\n```", "fenced", A, (), 2),
        (f"{A} and only {ONE}", "embedded", A, (), 2),
        (f'{ONE} {A} {{"x": 1}}', "embedded", A, (), 3),
        (f"a set {{1, 2}} and {{see below}} {A} {{}} or {{'a', 'b'}}", "embedded", A, (), 2),
        (f"\\frac{{a}}{{b}} {{{{x}}}} {A}", "embedded", A, (), 1),
        (f'Format: {{"Roll (deg)": <number>, ...}}\n{A}', "embedded", A, (), 1),
        (f"[{B}, {A}]", "embedded", A, (), 2),
        (f'{{"answer": {A}}}', "nested", A, (), 2),
        (f'{{"input": {B}, "steps": [{{"out": {A}}}]}}', "nested", A, (), 4),
        (f'So: {{"answer": {A}}}!', "nested", A, (), 2),
        (f'{{"Roll (deg)": 0, "then": {ONE}}}', "nested", ONE, (), 2),
        (f'{{"Roll (deg)": 0, "Pitch (deg)": 0, "then": {ONE}}}', "whole", None, (), 2),
        (f'{{"answer": {A}, "why": oops}}', "embedded", A, (), 1),
        (f'{{"thought": "he said "hi"", "answer": {A}}}', "embedded", A, (), 1),
        (f'{{"a {A}', "embedded", A, (), 1),
        ('{"Roll (deg)": 1,}', "whole", None, ("trailing_comma",), 1),
        ("{'Roll (deg)': 1}", "whole", None, ("single_quotes",), 1),
        ('{"Roll (deg)": NaN}', "whole", None, ("nan_literal",), 1),
        ('{"Roll (deg)": None}', "whole", None, ("python_literal",), 1),
        (f"{A} or rather {{'Roll (deg)': True, 'Pitch (deg)': -Infinity,}}", "embedded", ..., ..., 2),
        (f"{{'answer': {A},}}", "nested", A, (), 2),
        (f'{A} "Roll (deg)": unchanged, Pitch (deg): up', "embedded", A, (), 1),
        (f'x {A[:-1]}, "note": "timeout, bad request {{ }} \'"}} y', "embedded", ..., (), 1),
        ('{"a":' * 60 + "[" + "0," * 999 + f"oops {A}", "embedded", A, (), 1),
        (f"{A}\n```json\n```", "embedded", A, (), 1),
    ],
)
def test_the_answer_is_found(text, method, span, repairs, candidates):
    if span is None:
        span = text
    elif span is ...:
        span = text[2:-2] if repairs == () else text[text.index("{'") :]
    if repairs is ...:
        repairs = ("trailing_comma", "single_quotes", "nan_literal", "python_literal")
    got = PLAIN.extract(text)
    assert got.error == ""
    assert (got.method, text[got.start : got.end], got.repairs, got.candidates) == (method, span, repairs, candidates)
    assert same(TYPED.extract(text), got) or "NaN" in text
    again = PLAIN.extract(span)
    assert again.repairs == repairs
    assert again.value == got.value or "NaN" in text


@pytest.mark.parametrize(
    "text, error, candidates",
    [
        ("", "no JSON object found", 0),
        ("The aircraft climbs.", "no JSON object found", 0),
        ("null", "no JSON object found", 0),
        ("[1, 2]", "no JSON object found", 0),
        ("3.5", "no JSON object found", 0),
        ("{see below} and {1, 2}", "no JSON object found", 0),
        ("{}", "no expected field in 1 object", 1),
        ('{"abstain": true}', "no expected field in 1 object", 1),
        ('{"a": {"b": 1}}', "no expected field in 2 objects", 2),
        (A[:-1], "truncated object", 0),
        (f"{B} then {A[:12]}", "truncated object", 1),
        (f"{B} then {{", "truncated object", 1),
        (f"{B} then {{ \n", "truncated object", 1),
        (f'{B} then {{"reasoning": "it', "truncated object", 1),
        (f'{{"input": {B}, "predic', "truncated object", 0),
        (f"{B}\n```json\n{A[:-3]}\n```", "truncated object", 1),
        (f"{B}\n```json", "truncated: the text ends where a fenced block opens", 1),
        (f"{B}\n```json\n", "truncated: the text ends where a fenced block opens", 1),
        (f"{A}\n```json", "truncated: the text ends where a fenced block opens", 1),
        ("~~~json", "truncated: the text ends where a fenced block opens", 0),
        (
            f'{B} then {{"Roll (deg)": 1 + 1, "Pitch (deg)": 2}}',
            "unreadable object at character 44: expected ',' or the end of the object or list, found '+ 1, \"Pitch '",
            1,
        ),
        (
            f"{B} then {{Roll (deg): 1}}",
            "unreadable object at character 44: it does not begin with a key in quotes",
            1,
        ),
        (f"{{“Roll (deg)”: 1}} {B} or", "", 1),
        (f'{{see}} {B} "Roll (deg)": kept', "", 1),
        (f"{B} {{see}} Roll (deg): kept", "", 1),
        (f'{B} {{x "Roll (deg)": 1', "a field at character 43 stands in no object that can be read", 1),
        (f'{B} {{}}"Roll (deg)": 1}}', "a field at character 42 stands in no object that can be read", 2),
        (f"{B}\n``` Done, as asked", "", 1),
        (
            f"{B} {{“Roll (deg)”: 1}}",
            "unreadable object at character 39: it does not begin with a key in quotes",
            1,
        ),
        (
            f'{{"why": "line\nbreak {B}", "Roll (deg)": 1}}',
            "unreadable object at character 0: expected a value, found '\"line\\nbreak '",
            1,
        ),
        (
            f'{B} {{"answer": "{{\\"Roll (deg)\\": 1}}"}}',
            "the object at character 39 holds an answer encoded as a string",
            2,
        ),
        (f'{B} {{"why": "the \\"Roll (deg)\\": kept"}}', "", 2),
        (f'{{"answer": {B}, "why": "{{\\"Roll (deg)\\": kept}}"}}', "", 2),
    ],
)
def test_what_cannot_be_read_is_unparsed_with_the_reason(text, error, candidates):
    got = PLAIN.extract(text)
    assert (got.error, got.candidates) == (error, candidates)
    assert same(TYPED.extract(text), got)
    if error:
        assert (got.value, got.typed, got.method, got.start, got.end, got.repairs) == (None, False, "", -1, -1, ())
    else:
        assert text[got.start : got.end] == B


@pytest.mark.parametrize(
    "text",
    [
        '{"Roll (deg)": 1,}',
        "{'Roll (deg)': 1}",
        '{"Roll (deg)": Infinity}',
        '{"Roll (deg)": True}',
        B + ' {"Roll (deg)": 1, "Pitch (deg)": 2,}',
        B + " {'Roll (deg)': 1, 'Pitch (deg)': 2}",
    ],
)
def test_repairs_can_be_forbidden(text):
    assert PLAIN.extract(text).repairs
    got = STRICT.extract(text)
    assert got.value is None
    assert "repairs are off" in got.error
    assert STRICT.extract(A).value == {ROLL: 1.5, PITCH: 2}


def test_a_broken_wrapper_does_not_forbid_the_strict_object_inside():
    got = STRICT.extract(f"{{'answer': {A}}}")
    assert (got.value, got.method, got.repairs) == ({ROLL: 1.5, PITCH: 2}, "embedded", ())


@pytest.mark.parametrize(
    "written, value",
    [
        ("true", True),
        ('"N/A"', "N/A"),
        ('""', ""),
        ("null", None),
        ("1e999", math.inf),
        ("9" * 5000, math.inf),
        ("-" + "9" * 400, -math.inf),
        ("[1, 2, 3]", [1, 2, 3]),
        ("[]", []),
        ("[[1]]", [[1]]),
        ('"12.5"', "12.5"),
        ("12", 12),
    ],
)
def test_values_are_left_as_they_are(written, value):
    text = f'{{"Roll (deg)": {written}}}'
    for extractor in (PLAIN, STRICT, TYPED):
        got = extractor.extract(text)
        assert got.value == {ROLL: value}
        assert type(got.value[ROLL]) is type(value)
        assert got.repairs == ()
    assert math.isnan(PLAIN.extract('{"Roll (deg)": NaN}').value[ROLL])


@pytest.mark.parametrize(
    "kind, value", [(float, -1.5), (list[float], [1.0, 2.5, -3.0]), (tuple[float, float], [1.0, 2.5])]
)
def test_all_fields_of_a_flight_answer_come_typed_or_plain(kind, value):
    names = {f"f{i}": name for i, name in enumerate(FIELDS)}
    struct = msgspec.defstruct("State", [(f, kind) for f in names], rename=names, forbid_unknown_fields=True)
    extractor = Extractor(FIELDS, decoder=msgspec.json.Decoder(struct))
    state = dict.fromkeys(FIELDS, value)
    got = extractor.extract(f"```json\n{json.dumps(state, indent=2)}\n```")
    assert (got.typed, got.method, msgspec.structs.astuple(got.value)) == (
        True,
        "fenced",
        (msgspec.convert(value, kind),) * 19,
    )
    shown = json.dumps(dict.fromkeys(FIELDS, 0))
    got = extractor.extract(f"Shown: {shown}\nNext: {json.dumps(state | {'unit': 'ft'})}")
    assert (got.typed, got.method, got.value) == (False, "embedded", state | {"unit": "ft"})


def test_of_equal_keys_the_last_wins():
    assert PLAIN.extract('{"Roll (deg)": 1, "Roll (deg)": 2}').value == {ROLL: 2}
    assert TYPED.extract('{"Roll (deg)": 1, "Pitch (deg)": 0, "Roll (deg)": 2}').value == Pair(2.0, 0.0)


@pytest.mark.parametrize("shape", ["{}", " {}\n", "```json\n{}\n```", "So {}.", "```\n{}\n```\nas asked\n"])
def test_an_object_of_numbers_comes_typed(shape):
    text = shape.replace("{}", A)
    got = TYPED.extract(text)
    assert got.typed
    assert got.value == Pair(1.5, 2.0)
    assert same(got, PLAIN.extract(text))


@pytest.mark.parametrize("text", [B, ONE, f"{B} {A}", A[:-1] + ', "x": 0}', f"{A} {{see}}", f"{A} }}"])
def test_any_other_text_comes_as_a_dict(text):
    got = TYPED.extract(text)
    assert not got.typed
    assert got == PLAIN.extract(text)
    assert type(got.value) is dict


@pytest.mark.parametrize("prose", ["", "The answer: "])
@pytest.mark.parametrize(
    "text, error",
    [
        ("[" * 100_000 + "]" * 100_000, "no JSON object found"),
        ("[" * 100_000, "no JSON object found"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested deeper than 64"),
        ('{"a":' * 40_000, "nested deeper than 64"),
        ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "nested deeper than 64"),
        (A + '{"a":' + "[" * 100_000, "nested deeper than 64"),
        ("{" * 200_000, "truncated object"),
        ("{" * 200_000 + "x", "no JSON object found"),
        ("{ " * 100_000 + "x", "no JSON object found"),
        ('{"' * 100_000, "more than 10000 objects"),
        ("{'" * 100_000, "more than 10000 objects"),
        ('{"a"x' * 40_000, "more than 10000 objects"),
        ("{}" * 100_000, "more than 10000 objects"),
        ('{"a":[' + "{}," * 66_000 + "{}]}", "more than 10000 objects"),
        ('{"{":0,' * 30_000, "more than 10000 objects"),
        ('{"a":1,' * 9_000 + "@", "no JSON object found"),
        ('{"a":[' + "0," * 100_000, "truncated object"),
        ('{"' + "\\" * 200_000, "truncated object"),
        ('{"a":oops ' + '"Roll (deg)" ' * 15_000, "no JSON object found"),
        ('{}{"a":"' + '\\"Roll (deg)\\":' * 60_000 + '"}', "no expected field in 2 objects"),
        ("```\n" * 50_000, "no JSON object found"),
        ("```json\n" * 25_000 + "x", "no JSON object found"),
    ],
)
def test_hostile_text_is_refused_in_little_time(text, error, prose):
    began = time.process_time()
    got = TYPED.extract(prose + text)
    assert time.process_time() - began < 1
    assert (got.error, got.value) == (error, None)


def test_reading_is_bounded(monkeypatch):
    text = '{"a":1,"b":2,oops} {"a":1,"b":2,oops} ' + ONE
    assert PLAIN.extract(text).value == {ROLL: 9}
    monkeypatch.setattr(extract, "MAX_PASSES", 0.1)
    assert PLAIN.extract(text).error == "more than 0.1 readings of the text needed"


def test_long_text_is_unparsed_at_once():
    extractor = Extractor((ROLL,), max_chars=100)
    assert extractor.extract(A + " " * (100 - len(A))).method == "whole"
    got = extractor.extract(A + " " * (101 - len(A)))
    assert (got.error, got.value) == ("text of 101 characters is over the limit of 100", None)
    assert PLAIN.extract("x" * 50_000_000).error == "text of 50000000 characters is over the limit of 1000000"


@pytest.mark.parametrize("text", ['{"Roll (deg)": "\ud800"}', "\ud800" + A, A + "\udfff"])
def test_text_that_is_not_valid_unicode_does_not_crash(text):
    got = TYPED.extract(text)
    assert text[got.start : got.end] == text[text.index("{") : text.index("}") + 1]
    assert same(got, PLAIN.extract(text))


def test_wrong_settings_are_refused():
    class Open(msgspec.Struct, rename={"roll": ROLL}):
        roll: float

    class Loose(msgspec.Struct, rename={"roll": ROLL}, forbid_unknown_fields=True):
        roll: float = 0.0

    class Text(msgspec.Struct, rename={"roll": ROLL}, forbid_unknown_fields=True):
        roll: str

    with pytest.raises(ConfigError, match="names of the expected fields"):
        Extractor(())
    with pytest.raises(ConfigError, match="names of the expected fields"):
        Extractor(ROLL)
    with pytest.raises(ConfigError, match="at least 2"):
        Extractor((ROLL,), max_depth=1)
    with pytest.raises(ConfigError, match="must decode a Struct"):
        Extractor((ROLL,), decoder=msgspec.json.Decoder(dict))
    with pytest.raises(ConfigError, match="exactly the expected fields"):
        Extractor((ROLL,), decoder=DECODER)
    with pytest.raises(ConfigError, match="all required"):
        Extractor((ROLL,), decoder=msgspec.json.Decoder(Loose))
    with pytest.raises(ConfigError, match="list or tuple of floats"):
        Extractor((ROLL,), decoder=msgspec.json.Decoder(Text))
    with pytest.raises(ConfigError, match="forbid unknown"):
        Extractor((ROLL,), decoder=msgspec.json.Decoder(Open))
    with pytest.raises(ConfigError, match="must be strict"):
        Extractor((ROLL, PITCH), decoder=msgspec.json.Decoder(Pair, strict=False))
