"""Cluster bootstraps of ranking measures from rows sorted once.

AUROC of a resample with w_i draws of cluster i is wᵀUw / (2 (wᵀP)(wᵀN)), where U[i, j] = 2 · wins + ties of i's
positives over j's negatives; all whole numbers. Recall@FPR of a resample is found from cumulative counts of blocks of
sorted rows, and exactly within the one block where the target is passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from adjudge.stats.estimate import BoolArray, FloatArray, IntArray
from adjudge.stats.resampling import quotient

MATRIX_UP_TO = 2048
_CELLS = 1 << 18  # of a table that is worked through in parts, so that a part stays in the cache
_ROW_CELLS = 1 << 21
_TABLE_CELLS = 1 << 21
Codes = npt.NDArray[np.signedinteger[Any]]
"""Small whole numbers of any width: a column of many rows is held in the narrowest that fits."""


@dataclass(frozen=True)
class Ranked:
    """Rows by falling score: which are positive, and where groups of equal scores end."""

    positive: BoolArray
    ends: BoolArray

    def average_precision(self) -> float:
        """The average precision of the rows as they are."""
        return float(average_precisions(self.positive.view(np.int8), self.ends, np.ones((1, 1)))[0])


@dataclass(frozen=True)
class RankedRows:
    """Rows by rising score, sorted once for every measure of them: 2 · cluster + positive, and where ties start."""

    score: FloatArray
    code: Codes
    starts: BoolArray
    m: int

    @classmethod
    def of(cls, scores: FloatArray, positive: BoolArray, place: IntArray, m: int) -> RankedRows:
        """Sort rows with a score, a class and a cluster 0 … m-1; the order within equal scores is free."""
        order = np.argsort(scores)
        return cls.sorted(scores[order], ((place << 1) | positive)[order], m)

    @classmethod
    def sorted(cls, score: FloatArray, code: Codes, m: int, *, distinct: bool = False) -> RankedRows:
        """Rows that are sorted already; `distinct` says that no two scores are equal."""
        starts = np.ones(score.size, dtype=bool)
        if not distinct:
            np.not_equal(score[1:], score[:-1], out=starts[1:])
        return cls(score, code, starts, m)

    @cached_property
    def sizes(self) -> IntArray:
        """Negatives and positives of each cluster, side by side."""
        return np.bincount(self.code, minlength=2 * self.m).reshape(self.m, 2)

    @property
    def one_class(self) -> bool:
        """Whether positives or negatives are missing, so that nothing can be ranked."""
        return int(self.sizes[:, 1].sum()) in {0, self.code.size}

    @cached_property
    def falling(self) -> tuple[Ranked, Codes]:
        """By falling score: classes and ties, and the cluster of each row."""
        return Ranked((self.code & 1).astype(bool)[::-1], self.starts[::-1]), self.code[::-1] >> 1


def mann_whitney_matrix(rows: RankedRows) -> IntArray:
    """U[i, j] = 2 · wins + ties of cluster i's positives over cluster j's negatives.

    U = Σ Pᵀ(B + E) over the groups of equal scores that have positives, where P counts those by cluster, B the negatives
    below the group and E the negatives up to its end.
    """
    place, positive = rows.code >> 1, (rows.code & 1).astype(bool)
    begins = np.flatnonzero(rows.starts)
    ends = np.append(begins, rows.code.size)[1:]
    hits = np.append(0, np.cumsum(positive))
    scoring = hits[ends] > hits[begins]
    begins, ends = begins[scoring], ends[scoring]
    ups = _runs(place[positive], hits[ends], rows.m)
    below, until = (_runs(place[~positive], edges - hits[edges], rows.m) for edges in (begins, ends))
    matrix = np.zeros((rows.m, rows.m), dtype=np.int64)
    doubled = np.zeros(rows.m, dtype=np.int64)
    groups_at_once = max(1, _CELLS // rows.m)
    for start in range(0, begins.size, groups_at_once):
        part = slice(start, start + groups_at_once)
        passed = doubled + np.cumsum(below[part].toarray() + until[part].toarray(), axis=0)
        matrix += ups[part].T @ passed
        doubled = passed[-1]
    return matrix


def _runs(place: Codes, ends: IntArray, m: int) -> Any:
    """How many rows of each cluster are in each run of rows, a sparse table; a run begins where the one before ends."""
    from scipy.sparse import csr_matrix

    edges = np.append(0, ends)
    return csr_matrix((np.ones(edges[-1], dtype=np.int64), place[: edges[-1]], edges), shape=(ends.size, m))


@dataclass(frozen=True)
class PairCounts:
    """AUROC of resamples, from the class sizes of each cluster and U, or from the rows where U would be too large."""

    rows: RankedRows

    @cached_property
    def matrix(self) -> IntArray | None:
        """U; None of more than `MATRIX_UP_TO` clusters."""
        return mann_whitney_matrix(self.rows) if self.rows.m <= MATRIX_UP_TO else None

    @property
    def value(self) -> float:
        """AUROC of all rows."""
        if self.matrix is None:
            return float(self.replicate(np.ones((1, self.rows.m)))[0])
        negatives, positives = map(int, self.rows.sizes.sum(axis=0))
        return int(self.matrix.sum()) / (2 * positives * negatives)

    def replicate(self, drawn: FloatArray) -> FloatArray:
        """AUROC of each resample; NaN where one class was not drawn."""
        downs, ups = self.rows.sizes.T.astype(np.float64)
        pairs = 2.0 * (drawn @ ups) * (drawn @ downs)
        if self.matrix is None:
            return quotient(np.array([self._doubled_wins(row) for row in drawn]), pairs)
        return quotient(np.einsum("bi,bi->b", drawn @ self.matrix.astype(np.float64), drawn), pairs)

    def leave_one_out(self) -> FloatArray:
        """AUROC without each of the clusters."""
        downs, ups = self.rows.sizes.T.astype(np.float64)
        if self.matrix is None:
            return np.concatenate([self.replicate(1.0 - np.eye(1, self.rows.m, k)) for k in range(self.rows.m)])
        wins = self.matrix.astype(np.float64)
        left = wins.sum() - wins.sum(axis=0) - wins.sum(axis=1) + np.diagonal(wins)
        return quotient(left, 2.0 * (ups.sum() - ups) * (downs.sum() - downs))

    def _doubled_wins(self, drawn: FloatArray) -> float:
        weight = drawn[self.rows.code >> 1]
        up = (self.rows.code & 1).astype(bool)
        before = np.concatenate([[0.0], np.cumsum(np.where(up, 0.0, weight))])
        first = np.flatnonzero(self.rows.starts)
        edges = before[np.append(first, self.rows.code.size)]
        hits = np.add.reduceat(np.where(up, weight, 0.0), first)
        return float(hits @ (edges[:-1] + edges[1:]))


def average_precisions(code: Codes, ends: BoolArray, drawn: FloatArray) -> FloatArray:
    """Average precision of each resample, from rows by falling score; NaN where no positive was drawn.

    Only groups of equal scores with positives add to it. Sums run from the first group to the last, in every resample.
    """
    place, positive = code >> 1, (code & 1).astype(bool)
    hits_so_far = np.cumsum(positive)
    last = np.flatnonzero(ends)
    last = last[np.diff(hits_so_far[last], prepend=0) > 0]
    resamples, m = drawn.shape
    runs = _runs(place, last + 1, m).astype(np.float64)
    ups = _runs(place[positive], hits_so_far[last], m).astype(np.float64)
    times = np.ascontiguousarray(drawn.T)
    rows, hits, area = np.zeros((3, 1, resamples))
    groups_at_once = max(1, _CELLS // resamples)
    for start in range(0, last.size, groups_at_once):
        part = slice(start, start + groups_at_once)
        gained = ups[part] @ times
        rows, hits = _running(rows, runs[part] @ times), _running(hits, gained)
        area = _running(area, gained * np.divide(hits, rows, out=np.zeros_like(hits), where=rows > 0))
    return quotient(area[-1], hits[-1])


def _running(sums: FloatArray, more: FloatArray) -> FloatArray:
    """The sums in the last row, going on with every further row."""
    return np.cumsum(np.concatenate([sums[-1:], more]), axis=0)[1:]


@dataclass(frozen=True)
class Curve:
    """The ROC curve of every resample: cluster counts up to the start of each block of ranked rows."""

    place: Codes
    positive: BoolArray
    inner: IntArray
    """Rows that are not the last of their group of equal scores."""
    first: IntArray
    """For each of them the first row of its group."""
    downs: FloatArray
    ups: FloatArray
    size: int

    @classmethod
    def of(cls, ranked: Ranked, place: Codes, m: int) -> Curve:
        """From ranked rows and the cluster 0 … m-1 of each."""
        n = place.size
        size = max(64, min(int(np.sqrt(n)) // 2, n * m // _TABLE_CELLS))
        cumulative = _block_counts(place, ranked.positive, size, m)
        inner = np.flatnonzero(~ranked.ends)
        begins = np.ones(inner.size, dtype=bool)
        np.not_equal(inner[1:], inner[:-1] + 1, out=begins[1:])
        first = inner[np.maximum.accumulate(np.where(begins, np.arange(inner.size), 0))]
        return cls(place, ranked.positive, inner, first, cumulative[:, 0], cumulative[:, 1], size)

    def recall_at(self, drawn: FloatArray, target: float) -> FloatArray:
        """The largest TPR with FPR at most the target in each resample; NaN where one class was not drawn."""
        resamples_at_once = max(1, _ROW_CELLS // self.size)
        if len(drawn) > resamples_at_once:
            parts = [
                self.recall_at(drawn[start : start + resamples_at_once], target)
                for start in range(0, len(drawn), resamples_at_once)
            ]
            return np.concatenate(parts)
        n = self.place.size
        all_downs, all_ups = drawn @ self.downs[-1], drawn @ self.ups[-1]
        allowed = largest_allowed(all_downs, target)
        # The last block that starts within the allowance, by bisection, then the rows of it that stay within.
        block, beyond = np.zeros(len(drawn), dtype=np.int64), np.full(len(drawn), len(self.downs) - 1)
        while (beyond - block > 1).any():
            middle = (block + beyond) // 2
            within = np.einsum("bm,bm->b", drawn, self.downs[middle]) <= allowed
            block, beyond = np.where(within, middle, block), np.where(within, beyond, middle)
        rows = block[:, None] * self.size + np.arange(self.size)
        weight = self._weights(drawn, rows, positive=False)
        passed = np.einsum("bm,bm->b", drawn, self.downs[block])[:, None] + np.cumsum(weight, axis=1)
        inside = (passed <= allowed[:, None]).sum(axis=1)
        reach = self._whole_groups(np.minimum(block * self.size + inside, n))
        block = reach // self.size
        rows = block[:, None] * self.size + np.arange(self.size)
        weight = np.where(rows < reach[:, None], self._weights(drawn, rows, positive=True), 0.0)
        hits = np.einsum("bm,bm->b", drawn, self.ups[block]) + weight.sum(axis=1)
        return np.where(all_downs > 0, quotient(hits, all_ups), np.nan)

    def _whole_groups(self, rows: IntArray) -> IntArray:
        """Of so many first rows, those in whole groups of equal scores: a threshold lets a group in or leaves it out."""
        if not self.inner.size:
            return rows
        place = np.minimum(np.searchsorted(self.inner, rows - 1), self.inner.size - 1)
        return np.where(self.inner[place] == rows - 1, self.first[place], rows)

    def _weights(self, drawn: FloatArray, rows: IntArray, *, positive: bool) -> FloatArray:
        known = np.minimum(rows, self.place.size - 1)
        weight = np.take_along_axis(drawn, self.place[known].astype(np.intp), axis=1)
        return np.where((rows < self.place.size) & (self.positive[known] == positive), weight, 0.0)


def largest_allowed(negatives: npt.NDArray[np.generic], target: float) -> IntArray:
    """The largest number of false positives whose rate among so many negatives is at most the target."""
    total = np.asarray(negatives, dtype=np.float64)
    guess = np.floor(total * target) + 1.0
    # A correctly rounded share k/n compares with a decimal target as the numbers meant do.
    for _ in range(2):
        with np.errstate(invalid="ignore", divide="ignore"):
            guess = np.where((guess > total) | (guess / total > target), guess - 1.0, guess)
    return np.maximum(guess, 0.0).astype(np.int64)


def _block_counts(place: Codes, positive: BoolArray, size: int, m: int) -> FloatArray:
    """counts[b, c, i] = rows of class c and cluster i before block b of `size` rows; the last b is all rows."""
    n = place.size
    blocks = -(-n // size)
    counts = np.zeros((blocks + 1, 2, m))
    # Some blocks at a time: whole columns of 64-bit codes would be several times the rows themselves.
    blocks_at_once = max(1, _ROW_CELLS // size)
    offset = np.repeat(np.arange(min(blocks_at_once, blocks)) * (2 * m), size)
    for first in range(0, blocks, blocks_at_once):
        last = min(first + blocks_at_once, blocks)
        rows = slice(first * size, min(last * size, n))
        code = np.where(positive[rows], m, 0)
        code += place[rows]
        code += offset[: rows.stop - rows.start]
        counts[first + 1 : last + 1] = np.bincount(code, minlength=(last - first) * 2 * m).reshape(-1, 2, m)
    # One row after the other is several times faster than a cumulative sum across rows.
    for row in range(1, blocks + 1):
        counts[row] += counts[row - 1]
    return counts
