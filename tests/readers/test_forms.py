"""Rows of a known form: read as the scan reads them, and never where a byte says otherwise."""

from __future__ import annotations

import json
import math

import hypothesis.strategies as st
import numpy as np
from hypothesis import assume, given, settings

from adjudge.readers.forms import MOST_FORMS, Forms, Holes
from adjudge.readers.numbered import Numbered
from adjudge.readers.scan import ABSENT, INTEGER, NULL, REAL, Wanted, padded, scan

TEXTS = (("id",), ("said",), ("meta",))
VALUES = {("p",): (0, math.nan), ("times", 1): (1, math.nan)}
KINDS = {("p",): (INTEGER, REAL, NULL)}
WANTED = Wanted([("id",), ("said",), ("meta", "a"), ("p",), ("times", 1)])

LETTERS = 'ab é\\"\n{,'  # no pair of escapes, which the loops leave to others
decimals = st.integers(0, 10**6).map(lambda number: number / 1000)  # none whose rounding is in doubt
scalars = st.one_of(st.none(), st.booleans(), st.integers(-999, 999), decimals, st.text(LETTERS, max_size=12))
rows_alike = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.text(LETTERS, max_size=9),
            "said": scalars,
            "meta": st.fixed_dictionaries({"a": scalars}),
            "long": st.text(LETTERS, max_size=40),
            "p": st.one_of(st.none(), decimals, st.integers(0, 1)),
            "times": st.tuples(scalars, decimals),
        }
    ),
    min_size=2,
    max_size=8,
)


def laid_out(texts):
    ends = np.cumsum([len(text) for text in texts]).astype(np.int32)
    starts = (ends - [len(text) for text in texts]).astype(np.int32)
    data = b"".join(texts)
    return padded(data, len(data)), starts, ends


def learnt(texts):
    forms = Forms(Holes(TEXTS, VALUES, KINDS, [("id",)]), 2)
    forms.learn(texts, lambda _: np.full(2, math.nan))
    return forms


def read(forms, texts):
    numbered = Numbered(forms.slots, forms.below([("said",), ("meta",)]), [0])
    return forms.read(*laid_out(texts), numbered, lambda row: texts[row])


@settings(max_examples=60, deadline=None)
@given(rows_alike)
def test_a_row_of_a_form_is_read_as_the_scan_reads_it(rows):
    texts = [json.dumps(row, ensure_ascii=False).encode() for row in rows]
    forms = learnt(texts)
    found = read(forms, texts)
    scanned = scan(WANTED, *laid_out(texts), fast=True)
    assert (found.form >= 0).all()
    holes = [{form.scalars[hole][0] for hole in form.holes} for form in forms.all()]
    for row, own in enumerate(rows):
        mine = holes[found.form[row]]
        assert ("id",) in mine
        for path in mine & {("id",), ("said",), ("meta", "a")}:
            assert found.slots.kinds(*path)[row] == scanned.kinds(*path)[row]
            assert found.slots.texts(*path)[row] == scanned.texts(*path)[row]
        value = float(found.values[row, 0])
        assert math.isnan(value) if own["p"] is None or ("p",) not in mine else value == own["p"]
        # Rows share a number where they say the same, and only there.
        example = json.loads(found.known[found.number[row]])
        assert json.dumps([own["said"], own["meta"]]) == json.dumps([example["said"], example["meta"]])


@settings(max_examples=150, deadline=None)
@given(rows_alike, st.data())
def test_a_changed_byte_is_never_overlooked(rows, data):
    """Where any byte of a row is changed, the row is read as what it is then, or has no form."""
    texts = [json.dumps(row, ensure_ascii=False).encode() for row in rows]
    forms = learnt(texts)
    text = bytearray(texts[0])
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.sampled_from(list(b'"\\{}[]:,0-e. tn\x01a')))
    assume(bytes(text).replace("é".encode(), b"").isascii())  # blocks are UTF-8
    found = read(forms, [bytes(text), *texts[1:]])
    if found.form[0] < 0:
        return
    own = json.loads(bytes(text))  # whatever has a form is JSON
    kept = json.loads(texts[0])
    assert [*own] == [*kept]
    if ("id",) in forms.slots.nodes:
        assert found.slots.texts("id")[0].as_py() == own["id"]


def test_a_number_in_doubt_or_of_another_kind_has_no_form():
    texts = [b'{"id": "a", "p": 0.5}', b'{"id": "b", "p": 0.25}']
    forms = learnt(texts)
    odd = [b'{"id": "c", "p": "0.5"}', b'{"id": "d", "p": 1e400}', b'{"id": "e", "p": true}', b'{"id": "f", "p": 00.5}']
    assert read(forms, [*texts, *odd, b'{"id": "g", "p": null}']).form.tolist() == [0, 0, -1, -1, -1, -1, 0]


def test_forms_that_are_of_no_use_are_given_up():
    shapes = [[f'{{"id": "{n}", "k{n}": 1}}'.encode()] for n in range(40)]
    forms = learnt(shapes[0])
    for texts in shapes[1:]:
        if forms.known:
            assert read(forms, texts).form.tolist() == [-1]
            forms.learn(texts, lambda _: np.full(2, math.nan))
    assert len(forms.all()) == MOST_FORMS
    assert not forms.known


def test_slots_that_a_form_lacks_are_absent():
    texts = [b'{"id": "a", "said": "x"}', b'{"id": "b", "said": "y"}', b'{"id": "c"}', b'{"id": "d"}']
    found = read(learnt(texts), texts)
    assert found.slots.texts("said").to_pylist() == ["x", "y", None, None]
    assert found.slots.kinds("said").tolist()[2:] == [ABSENT, ABSENT]
