"""One vector a text from the vectors of its word pieces, in sentence-transformers' ways."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Whole = NDArray[np.int64]


WAYS = frozenset({"cls", "lasttoken", "max", "mean", "mean_sqrt_len_tokens", "weightedmean"})


def pooled(hidden: Floats, mask: Whole, ways: Sequence[str]) -> Floats:
    """Return the pooled vectors of a batch: (n, ways * d).

    Args:
        hidden: Vectors of the word pieces, (n, length, d).
        mask: 1 for a word piece that counts, (n, length); each text has at least one.
        ways: Names of the ways; their vectors are joined.
    """
    return np.concatenate([_pool(hidden, mask, way) for way in ways], axis=1)


def _pool(hidden: Floats, mask: Whole, way: str) -> Floats:
    pool: Floats
    match way:
        case "cls":
            pool = hidden[np.arange(len(hidden)), mask.argmax(axis=1)]
        case "lasttoken":
            pool = _pool(hidden[:, ::-1], mask[:, ::-1], "cls")
        case "max":
            pool = hidden.max(axis=1, initial=-np.inf, where=mask[:, :, None] == 1)
        case "weightedmean":
            pool = _pool(hidden, mask * np.arange(1, mask.shape[1] + 1), "mean")
        case _:
            count = mask.sum(axis=1, keepdims=True, dtype=np.float32)
            total = np.einsum("ntd,nt->nd", hidden, mask.astype(np.float32))
            pool = total / (np.sqrt(count) if way == "mean_sqrt_len_tokens" else count)
    return pool
