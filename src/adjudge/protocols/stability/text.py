"""Text as stability compares it, and distances between the answers to one question."""

from __future__ import annotations

import itertools
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

REFUSAL = "not in context"


class _Fold(dict[int, str]):
    """Punctuation and white space become a space; filled as signs are met."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        folded = " " if sign.isspace() or unicodedata.category(sign)[0] in "PZ" else sign
        self[code] = folded
        return folded


_FOLD = _Fold()


def canonical(text: str) -> str:
    """The text in compatibility form and without case, with punctuation and white space folded to single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().translate(_FOLD).split())


def edit_distance_median(claims: Sequence[str]) -> float | None:
    """The median over all pairs of Levenshtein distance / length of the longer; equal claims are compared once."""
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    pairs = len(claims) * (len(claims) - 1) // 2
    if not pairs:
        return None
    counts = Counter(claims)
    texts, times = list(counts), np.array(list(counts.values()))
    if len(texts) == 1:
        return 0.0
    matrix = process.cdist(texts, texts, scorer=Levenshtein.normalized_distance, dtype=np.float64)
    above = np.triu_indices(len(texts), 1)
    repeated = np.repeat(matrix[above], np.outer(times, times)[above])
    return float(np.median(np.concatenate([np.zeros(pairs - repeated.size), repeated])))


def exact_agreement(claims: Sequence[str]) -> float | None:
    """The share of pairs whose canonical claims are equal."""
    n = len(claims)
    if n < 2:
        return None
    return sum(count * (count - 1) for count in Counter(map(canonical, claims)).values()) / (n * (n - 1))


def jaccard_mean(sets: Sequence[Collection[str]]) -> float | None:
    """The mean over all pairs of |A ∩ B| / |A ∪ B|; two empty sets are the same."""
    n = len(sets)
    if n < 2:
        return None
    counts = Counter(frozenset(one) for one in sets)
    ordered = sorted(counts, key=lambda one: (len(one), sorted(one)))
    total = float(sum(count * (count - 1) // 2 for count in counts.values()))
    for a, b in itertools.combinations(ordered, 2):
        total += counts[a] * counts[b] * len(a & b) / len(a | b)
    return total / (n * (n - 1) / 2)
