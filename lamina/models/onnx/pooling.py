"""One vector a text from the vectors of its word pieces, in sentence-transformers' ways."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Whole = NDArray[np.int64]


def pooled(hidden: Floats, mask: Whole, ways: Sequence[str]) -> Floats:
    """Return the pooled vectors of a batch: (n, ways * d).

    Args:
        hidden: Vectors of the word pieces, (n, length, d).
        mask: 1 for a word piece that counts, (n, length); each text has at least one.
        ways: Names of the ways; their vectors are joined.
    """
    return np.concatenate([_WAYS[way](hidden, mask) for way in ways], axis=1)


def _first(hidden: Floats, mask: Whole) -> Floats:
    found: Floats = hidden[np.arange(len(hidden)), mask.argmax(axis=1)]
    return found


def _last(hidden: Floats, mask: Whole) -> Floats:
    return _first(hidden[:, ::-1], mask[:, ::-1])


def _greatest(hidden: Floats, mask: Whole) -> Floats:
    found: Floats = hidden.max(axis=1, initial=-np.inf, where=mask[:, :, None] == 1)
    return found


def _mean(hidden: Floats, mask: Whole) -> Floats:
    mean: Floats = _sum(hidden, mask) / mask.sum(axis=1, keepdims=True, dtype=np.float32)
    return mean


def _mean_by_root(hidden: Floats, mask: Whole) -> Floats:
    mean: Floats = _sum(hidden, mask) / np.sqrt(mask.sum(axis=1, keepdims=True, dtype=np.float32))
    return mean


def _mean_by_place(hidden: Floats, mask: Whole) -> Floats:
    return _mean(hidden, mask * np.arange(1, mask.shape[1] + 1))


def _sum(hidden: Floats, weights: Whole) -> Floats:
    total: Floats = np.einsum("ntd,nt->nd", hidden, weights.astype(np.float32))
    return total


_WAYS: Mapping[str, Callable[[Floats, Whole], Floats]] = {
    "cls": _first,
    "lasttoken": _last,
    "max": _greatest,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_by_root,
    "weightedmean": _mean_by_place,
}
WAYS = frozenset(_WAYS)
