"""The weights of words in a text by BM25, before it is known how rare each word is; the same for every Qdrant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qdrant_edge import Bm25, Bm25Config

from lamina.text.words import words

_BM25: Any = Bm25(Bm25Config())


@dataclass(frozen=True, slots=True)
class WordWeights:
    """A sparse vector: the numbers of words, and the weight of each."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


def weights_of_text(text: str) -> WordWeights:
    """Return the weights of the words of what is indexed."""
    return _weights(_BM25.embed_document(" ".join(words(text))))


def weights_of_question(asked: Sequence[str]) -> WordWeights:
    """Return the weights of a question's words; none where the question has no word that is indexed."""
    return _weights(_BM25.embed_query(" ".join(asked)))


def _weights(sparse: Any) -> WordWeights:
    return WordWeights(tuple(sparse.indices), tuple(sparse.values))
