"""An embedding model without weights: hashed words. For tests of everything but quality."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lamina.core.ports import ModelIdentity, ModelReport
from lamina.text.words import words

MAX_WORDS = 200
CHARS_PER_TOKEN = 4


class HashingModel:
    """Each word adds one signed unit at a hashed place; texts that share words are near.

    Args:
        dimension: Length of the vectors.
        seed: Another one makes another model, whose vectors cannot be compared with this one's.
    """

    pass_tokens = 16_384
    passes_at_once = 1

    def __init__(self, dimension: int = 384, seed: int = 0) -> None:
        name = f"hashing-{dimension}" if seed == 0 else f"hashing-{dimension}-{seed}"
        self.identity = ModelIdentity(model=name, dimension=dimension)
        self.report = ModelReport(name, dimension, "hashing", "float32", "cpu", checked=None, may_be_mixed=True)
        self._salt = seed.to_bytes(8, "big")

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text; a text without words points along the first axis."""
        rows = np.zeros((len(texts), self.identity.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            self._add_words(row, words(text))
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def _add_words(self, row: NDArray[np.float32], found: Sequence[str]) -> None:
        for word in found:
            digest = hashlib.blake2b(word.encode(), digest_size=8, salt=self._salt).digest()
            place = int.from_bytes(digest[:4], "big") % self.identity.dimension
            row[place] += 1 if digest[4] % 2 else -1
        # No words, or words that cancel out: a row of zeros has no direction.
        if not row.any():
            row[0] = 1

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Cut at white space, every 200 words or fewer."""
        if len(words(text)) <= MAX_WORDS:
            return [(0, len(text))]
        pieces = [match.span() for match in re.finditer(r"\S+\s*", text)]
        groups = [pieces[start : start + MAX_WORDS // 2] for start in range(0, len(pieces), MAX_WORDS // 2)]
        return [(group[0][0], group[-1][1]) for group in groups]

    def lengths(self, texts: Sequence[str]) -> Sequence[int]:
        """Return as many tokens as another model would have about."""
        return [1 + len(text) // CHARS_PER_TOKEN for text in texts]
