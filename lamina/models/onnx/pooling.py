"""One vector a text from the vectors of its word pieces, in sentence-transformers' ways."""

from collections.abc import Sequence

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
    return np.concatenate([_pooled(hidden, mask, way) for way in ways], axis=1)


def _pooled(hidden: Floats, mask: Whole, way: str) -> Floats:
    rows = np.arange(len(hidden))
    match way:
        case "cls":
            return hidden[rows, mask.argmax(axis=1)]
        case "lasttoken":
            return hidden[rows, mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)]
        case "max":
            return np.where(mask[:, :, None] == 0, -np.inf, hidden).max(axis=1).astype(np.float32)
        case "mean":
            return _sum(hidden, mask) / mask.sum(axis=1, keepdims=True, dtype=np.float32)
        case "mean_sqrt_len_tokens":
            return _sum(hidden, mask) / np.sqrt(mask.sum(axis=1, keepdims=True, dtype=np.float32))
        case "weightedmean":
            weights = mask * np.arange(1, mask.shape[1] + 1)
            return _sum(hidden, weights) / weights.sum(axis=1, keepdims=True, dtype=np.float32)
        case _:
            message = f"{way} is no way of pooling"
            raise ValueError(message)


def _sum(hidden: Floats, weights: Whole) -> Floats:
    total: Floats = np.einsum("ntd,nt->nd", hidden, weights.astype(np.float32))
    return total
