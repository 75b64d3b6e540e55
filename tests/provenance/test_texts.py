"""Texts as bytes: their lengths, their bytes, their slots and their order follow from the values alone."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.provenance.canonical import bytes_of, order_of, slots_of

TEXTS = st.lists(st.one_of(st.none(), st.text(max_size=5)), max_size=20)


@settings(deadline=None)  # the first to_numpy imports pandas where it is installed
@given(TEXTS, TEXTS, TEXTS)
def test_bytes_are_those_of_the_texts_wherever_the_column_begins(before, texts, after):
    column = pa.array([*before, *texts, *after], pa.string()).slice(len(before), len(texts))
    lengths, data = bytes_of(column)
    encoded = [None if text is None else text.encode() for text in texts]
    assert lengths.tolist() == [-1 if text is None else len(text) for text in encoded]
    assert bytes(data) == b"".join(text for text in encoded if text is not None)


@settings(deadline=None)
@given(st.lists(st.text(max_size=90), max_size=20))
def test_slots_of_short_and_long_texts_are_those_of_their_crc(texts):
    assert slots_of(pa.chunked_array([texts], pa.string())).tolist() == [
        zlib.crc32(text.encode()) >> 24 for text in texts
    ]


def test_a_slot_is_the_first_byte_of_the_crc():
    # CRC-32 of "123456789" is the check value of its definition, cbf43926.
    assert slots_of(pa.chunked_array([pa.array(["123456789"])])).tolist() == [0xCB]
    assert slots_of(pa.chunked_array([pa.array([""])])).tolist() == [0]
    assert slots_of(pa.chunked_array([pa.array(["a"])])).dtype == np.uint8


ALIKE = st.text(st.sampled_from("\0ab\xff検"), max_size=12)
"""Texts of few characters: many begin alike, are the beginning of another, or stand twice."""


@settings(max_examples=300, deadline=None)
@given(ALIKE | st.text(max_size=5), st.lists(ALIKE, max_size=30), st.integers(0, 3))
def test_the_order_is_that_of_their_bytes_and_equal_ones_stay_as_they_came(beginning, endings, skipped):
    texts = [beginning + ending for ending in endings]
    column = pa.array([*["other"] * skipped, *texts], pa.string()).slice(skipped)
    assert order_of(column).tolist() == sorted(range(len(texts)), key=lambda row: texts[row].encode())


def test_many_texts_are_in_order_whether_or_not_eight_bytes_tell_them_apart():
    numbers = np.random.default_rng(7).permutation(20_000)
    for form in ("{}", "sample-{:05}", "{:05}-of-a-long-name", "the-same-eight-bytes", "{:012}"):
        texts = [form.format(number) for number in numbers]
        assert order_of(pa.array(texts)).tolist() == sorted(range(len(texts)), key=texts.__getitem__)
