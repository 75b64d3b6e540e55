"""Digests of ids: the same whichever way the ids come, and whether or not they are those of the samples."""

from __future__ import annotations

import pyarrow as pa
import pytest

from adjudge.engine.matching import IdDigest


def column(*ids: str) -> pa.ChunkedArray:
    return pa.chunked_array([list(ids)], pa.string())


@pytest.mark.parametrize(
    "read",
    [
        [column("c", "a", "b")],
        [column("a", "b"), column("c", "b")],
        [column("c", "a")],
        [column("c", "a", "b", "d")],
        [column("a", "b", "x")],
    ],
)
def test_ids_that_were_read_have_the_digest_of_their_own(read):
    samples, like, plain = IdDigest(), IdDigest(), IdDigest()
    samples.add(3, column("a", "b", "c"))
    samples.close()
    like.add_like(3, read, samples)
    for ids in read:
        plain.add(3, ids)
    assert like.hexdigest() == plain.hexdigest()
    same = sorted({name for ids in read for name in ids.to_pylist()}) == ["a", "b", "c"]
    assert (like.hexdigest() == samples.hexdigest()) == same


def test_the_digest_of_another_partition_is_not_taken_over():
    samples, like = IdDigest(), IdDigest()
    samples.add(0, column("a"))
    samples.close()
    like.add_like(1, [column("a")], samples)
    like.close()
    assert like._of_part.keys() == {1}
