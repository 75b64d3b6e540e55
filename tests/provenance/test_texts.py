"""Texts as bytes: the lengths and bytes of a column follow from its values alone."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.provenance.canonical import bytes_of, slots_of

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
