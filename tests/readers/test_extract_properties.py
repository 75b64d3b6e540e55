"""A known answer inside prose, fences and decoys: it is found, or the text is unparsed, and never another object."""

import json

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adjudge.protocols.flight.fields import FIELDS
from adjudge.readers.extract import Extractor

NAMES = FIELDS[:5]
STRUCT = msgspec.defstruct(
    "Answer",
    [(f"f{i}", float) for i in range(len(NAMES))],
    rename={f"f{i}": name for i, name in enumerate(NAMES)},
    forbid_unknown_fields=True,
)
TYPED = Extractor(NAMES, decoder=msgspec.json.Decoder(STRUCT))
PLAIN = Extractor(NAMES)
STRICT = Extractor(NAMES, repairs=False)

CALM = [
    "The aircraft is in a shallow climb.",
    "It's the pilot's \"best\" guess",
    "a set {1, 2} and {see below}",
    "\\frac{dx}{dt} = \\vec{v}",
    "{}",
    "{'a', 'b'} [1] {{double}} {value!r}",
    "Température 15 °C — 🛩 ‘ok’ “so”",
    "| a | b |\n|---|---|\n| {x} | `{}` |",
    "<think>hm, {x: 1} or\r\nso</think>",
    "**Answer** (JSON):",
    '{"note": "nothing {here} \\"} or \'there"}',
    '{"note": {"deep": [{"er": 1}]}}',
    "```python\nprint({'a': 1})\n```",
    "~~~\n{broken\n~~~",
    "timeout, bad request: error 500",
    "\r\n\r\n",
]
WILD = st.text("{}[]:,\"'`~\\ \n\r01aN<>é🛩", max_size=12)
NUMBERS = st.floats(-1e4, 1e4).map(lambda x: round(x, 3)) | st.integers(-1000, 1000)
VALUES = NUMBERS | NUMBERS.map(str) | st.lists(NUMBERS, max_size=3) | st.sampled_from([None, True, "N/A", "{", "}'"])


@st.composite
def objects(draw, names=NAMES, values=VALUES, extra=True):
    """The text of an object with all of `names`, in strict JSON, in any order and layout."""
    keys = draw(st.permutations(names))
    value = {key: draw(values) for key in keys}
    if extra and draw(st.booleans()):
        value["note {"] = draw(st.sampled_from(["it's", 'a "{quote}"', "}", "Roll (deg): 1", {"inner": [1, {}]}]))
    return json.dumps(value, indent=draw(st.sampled_from([None, 2])), ensure_ascii=draw(st.booleans()))


@st.composite
def mangled(draw, text):
    """The same object as a model may write it, with what the repairs allow."""
    value = json.loads(text)
    how = draw(st.sampled_from(["strict", "comma", "python", "nan"]))
    if how == "comma":
        return text[:-1].rstrip() + ",}"
    if how == "python":
        return repr(value)
    if how == "nan":
        value[NAMES[0]] = float("nan")
        return json.dumps(value)
    return text


@st.composite
def calm(draw):
    return draw(st.sampled_from([" ", "\n", "\r\n", "\n\n"])).join(draw(st.lists(st.sampled_from(CALM), max_size=3)))


@st.composite
def shown(draw):
    """What may stand before an answer: prose, the echoed input, format hints, partial and broken objects."""
    pieces = draw(st.lists(st.sampled_from(["prose", "echo", "part", "hint", "fence"]), max_size=3))
    made = {
        "prose": calm(),
        "echo": objects(),
        "part": objects(names=NAMES[:2], extra=False),
        "hint": st.just(f'Format: {{"{NAMES[0]}": <number>, ...}}'),
        "fence": objects().map("```json\n{}\n```".format),
    }
    return "\n".join(draw(made[piece]) for piece in pieces)


@st.composite
def wrapped(draw, text):
    """The answer as it is, in a fence, or in another object; and what follows the answer inside the wrapping."""
    before, after = draw(
        st.sampled_from(
            [
                ("", ""),
                ("```json\n", "\n```"),
                ("~~~\r\n", "\r\n~~~"),
                ("```\n", ""),
                ("[", "]"),
                ('{"answer": ', "}"),
                ('{"why": "it\'s {so}", "steps": [1, {"out": ', '}], "more": "}"}'),
                ("{'answer': ", ",}"),
            ]
        )
    )
    return before, text, after


@st.composite
def texts(draw, answer):
    before, text, after = draw(wrapped(answer))
    head = draw(shown())
    head = f"{head}\n{before}" if head else before
    tail = draw(calm() | objects(names=NAMES[:2], extra=False))
    tail = f"{after}\n{tail}" if tail else after
    return head, text, tail


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_whole_answer_is_found(data):
    answer = data.draw(objects())
    head, _, tail = data.draw(texts(answer))
    written = data.draw(mangled(answer))
    got = PLAIN.extract(head + written + tail)
    assert got.error == ""
    assert (got.start, got.end) == (len(head), len(head) + len(written))
    alone = PLAIN.extract(written)
    assert (alone.method, alone.repairs) == ("whole", got.repairs)
    assert repr(alone.value) == repr(got.value)
    assert bool(got.repairs) == (_strict(written) is None)
    if not got.repairs:
        assert got.value == json.loads(written)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_in_wild_text_the_answer_is_found_or_nothing(data):
    answer = data.draw(objects())
    head, text, tail = data.draw(texts(answer))
    head = f"{data.draw(WILD)}{head}" if data.draw(st.booleans()) else f"{head}{data.draw(WILD)}"
    tail += data.draw(WILD)
    got = data.draw(st.sampled_from([PLAIN, STRICT, TYPED])).extract(head + text + tail)
    if got.error:
        assert got.value is None
    else:
        assert (got.start, got.end) == (len(head), len(head) + len(text))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_an_answer_cut_anywhere_is_unparsed(data):
    answer = data.draw(objects().flatmap(mangled))
    head, text, _ = data.draw(texts(answer))
    end = data.draw(st.sampled_from(["", "\n", "\r\n```", "\n~~~\n"]))
    for cut in range(1, len(text)):
        for extractor in (PLAIN, STRICT):
            got = extractor.extract(head + text[:cut] + end)
            assert got.value is None, (cut, text[:cut])
        if not end.strip():
            assert PLAIN.extract(head + text[:cut] + end).error == "truncated object"


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_answer_never_gives_way_to_an_echo(data):
    answer = data.draw(objects(extra=False))
    head, text, _ = data.draw(texts(answer))
    at = data.draw(st.integers(1, len(text) - 1))
    damage = data.draw(st.sampled_from(["", " ", "x", '"', "'", ",", "{", "}", "\n", "//", "..."]))
    text = text[:at] + damage + text[at + data.draw(st.integers(0, 2)) :]
    alone = PLAIN.extract(text)
    assume(alone.value is None or set(NAMES) <= set(alone.value))  # with a field less, the rule of fit prefers an echo
    got = PLAIN.extract(head + text)
    assert got.value is None or got.start >= len(head)


@pytest.mark.parametrize("repair", ["comma", "quotes"])
def test_a_repairable_answer_never_gives_way_to_an_echo_when_repairs_are_off(repair):
    echo = json.dumps(dict.fromkeys(NAMES, 1))
    answer = echo[:-1] + ",}" if repair == "comma" else echo.replace('"', "'")
    assert PLAIN.extract(echo + answer).start == len(echo)
    assert STRICT.extract(echo + answer).value is None


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_the_typed_way_finds_what_the_plain_way_finds(data):
    around = st.lists(
        st.sampled_from(
            [*CALM, "```json\n", "```", "\n```", "\n~~~x", "[", "]", "{", "}", " ", "\n", "prose", "\u00a0"]
        )
        | WILD,
        max_size=3,
    ).map("".join)
    text = data.draw(objects(values=NUMBERS, extra=False) | objects(values=VALUES))
    if data.draw(st.integers(0, 3)) == 0:
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(["", "0", ",", "\\u0041", "e9", "99e9999", " "])) + text[at + 1 :]
    text = data.draw(around) + text + data.draw(around)
    typed, plain = TYPED.extract(text), PLAIN.extract(text)
    shape = ("method", "start", "end", "repairs", "candidates", "error")
    assert [getattr(typed, name) for name in shape] == [getattr(plain, name) for name in shape]
    if typed.typed:
        floats = {key: float(value) for key, value in plain.value.items()}
        assert dict(zip(NAMES, msgspec.structs.astuple(typed.value), strict=True)) == floats
    else:
        assert repr(typed.value) == repr(plain.value)


@settings(max_examples=50, deadline=None)
@given(objects(values=NUMBERS, extra=False), st.sampled_from(["{}", "```json\n{}\n```", "So:\n{}\nDone.", " {}\n"]))
def test_plain_numbers_take_the_typed_way(text, shape):
    assert TYPED.extract(shape.replace("{}", text)).typed


@settings(max_examples=200, deadline=None)
@given(st.text("{}[]:,\"'`~\\ \n01aN" + NAMES[0][:3], max_size=60), st.booleans())
def test_any_text_is_answered(text, name_it):
    if name_it:
        text = text.replace("a", NAMES[0])
    got = TYPED.extract(text)
    assert (got.value is None) == bool(got.error)
    if got.error:
        return
    assert set(got.value) & set(NAMES)
    assert TYPED.extract(text[got.start : got.end]).repairs == got.repairs


def _strict(text):
    try:
        return json.loads(text, parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return None
