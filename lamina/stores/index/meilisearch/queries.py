"""The searches that Meilisearch is asked for one query, and the reading of its answers.

A question of several words is asked word by word. As one, Meilisearch finds only what has the rarest of its words,
rare among the texts of all tenants: others' texts would decide what a tenant finds. Word by word, every shared word
counts by how rare it is among what the asking scope may see: as in BM25, but for how often a text repeats it.

The nearest are chosen by Meilisearch's hybrid search, which lets chunks with all the words in at the configured ratio.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import regex

from lamina.core.queries import Place, Query
from lamina.stores.index.filters import query_filter
from lamina.stores.index.meilisearch.documents import EMBEDDER, floats_of, place_of
from lamina.stores.index.meilisearch.filters import DIALECT, Expression
from lamina.stores.index.ports import ChunkHit
from lamina.text.english import FUNCTION_WORDS
from lamina.text.folding import fold
from lamina.text.symbols import asked_symbols, with_symbols_apart
from lamina.text.words import name_words, question_words

# Meilisearch looks at the first ten words of a question.
MAX_TERMS = 10
_QUOTES = re.compile('["\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02]')
_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_WITHOUT_SPACES = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}]")
Hit = Mapping[str, Any]
SearchBody = dict[str, Any]


def search_terms(text: str) -> list[str]:
    """Return the words that Meilisearch is asked for: at most ten, without function words if there are others.

    It reads quoted words as a phrase, and a word after a dash as unwanted: both marks are left out.
    """
    parts = dict.fromkeys(part.lstrip(_DASHES) for part in with_symbols_apart(_QUOTES.sub(" ", text)).split())
    said = {part: [*name_words(part), *asked_symbols(part, fold(part))] for part in parts if part}
    terms = [part for part, words in said.items() if words]
    content_terms = [part for part in terms if not FUNCTION_WORDS.issuperset(said[part])]
    return (content_terms or terms or list(said))[:MAX_TERMS]  # Marks alone are asked for by their characters.


@dataclass(frozen=True, slots=True)
class IndexQuestion:
    """One search.

    Args:
        index: Name of the index.
        terms: The words that are asked for.
        vector: Vector of the query; ``None`` if it, or the index, has none.
        filter: Condition of the chunks that the query may see.
        semantic_ratio: Weight of meaning beside words where Meilisearch chooses by both.
    """

    index: str
    terms: tuple[str, ...]
    vector: list[float] | None
    filter: Expression
    semantic_ratio: float

    def discovery(self, limit: int, *, by_vector: bool) -> list[SearchBody]:
        """Return the searches for candidates: how many there are in all, those of each term, and the nearest."""
        base = {"indexUid": self.index, "filter": str(self.filter), "attributesToRetrieve": ["id", "memory", "chunk"]}
        terms = [{**base, **_by_term(term), "limit": limit} for term in self.terms]
        counted = [{**base, "q": "", "limit": 1}, *terms] if terms else []
        nearest = [{**base, **self._by_both(), "limit": limit}] if by_vector and self.vector is not None else []
        return counted + nearest

    def matching(self, term: str, ids: Sequence[str]) -> SearchBody:
        """Return the search for those of these chunks that have the term."""
        return {**self._among(ids), **_by_term(term)}

    def nearness(self, ids: Sequence[str]) -> SearchBody:
        """Return the search that tells how near each of these chunks is."""
        return {**self._among(ids), **self._by_vector(1.0)}

    def _among(self, ids: Sequence[str]) -> SearchBody:
        listed = ", ".join(f'"{id_}"' for id_ in ids)
        narrowed = DIALECT.all_of([self.filter, Expression(f"id IN [{listed}]")])
        return {"indexUid": self.index, "filter": str(narrowed), "attributesToRetrieve": ["id"], "limit": len(ids)}

    def _by_both(self) -> SearchBody:
        if not self.terms:
            return self._by_vector(1.0)
        return {**self._by_vector(self.semantic_ratio), "q": _folded(" ".join(self.terms)), "matchingStrategy": "all"}

    def _by_vector(self, ratio: float) -> SearchBody:
        by_meaning = {"vector": self.vector, "hybrid": {"embedder": EMBEDDER, "semanticRatio": ratio}}
        return {**by_meaning, "showRankingScore": True, "showRankingScoreDetails": True}


def index_question(
    query: Query, index: str, *, by_session: bool, has_vectors: bool, semantic_ratio: float
) -> IndexQuestion:
    """Return the question to an index for a query."""
    return IndexQuestion(
        index=index,
        terms=tuple(search_terms(query.text)) if query.words else (),
        vector=floats_of(query.embedding) if query.embedding is not None and has_vectors else None,
        filter=query_filter(query, DIALECT, by_session=by_session),
        semantic_ratio=semantic_ratio,
    )


def _by_term(term: str) -> SearchBody:
    # A run of a script without spaces is many words, of which the rarest one is enough.
    if _WITHOUT_SPACES.search(term):
        return {"q": _folded(term), "matchingStrategy": "frequency"}
    # Of the other scripts without spaces it knows some words of some: pairs of characters stand in the index, too.
    asked = question_words(term)
    return {"q": _folded(term) if asked == name_words(term) else " ".join(asked), "matchingStrategy": "all"}


def _folded(text: str) -> str:
    """Return the text as the index holds it; Meilisearch itself does not tell cases apart."""
    folded = fold(text)
    return text if folded == text.casefold() else folded


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a search, and their known figures.

    Args:
        limit: Most hits of each list.
        weights: Weight of each term that was found.
        having: Ids of the chunks that were found for each term.
        places: Memory and chunk of each id.
        nearest: Ids of those that were chosen by words and meaning, Meilisearch's best first.
        cosines: Known cosines of chunks; 0 for a negative one.
    """

    limit: int
    weights: Mapping[str, float]
    having: Mapping[str, tuple[str, ...]]
    places: Mapping[str, Place]
    nearest: tuple[str, ...]
    cosines: Mapping[str, float]

    def is_enough(self, wanted: int) -> bool:
        """Report whether each list has so many memories, or all that there are."""
        lists = (*self.having.values(), self.nearest)
        return all(len(ids) < self.limit or len({self.places[id_][0] for id_ in ids}) >= wanted for ids in lists)

    def figures(self) -> dict[str, float]:
        """Return the sum of the weights of each chunk's terms."""
        sums: dict[str, float] = {}
        for term, ids in self.having.items():
            for id_ in ids:
                sums[id_] = sums.get(id_, 0.0) + self.weights[term]
        return sums

    def by_words(self) -> list[ChunkHit]:
        """Return the best chunks by their words, with their cosines."""
        figures = self.figures()
        return [ChunkHit(self.places[id_], figures[id_], self.cosines.get(id_)) for id_ in self.best_by_words()]

    def best_by_words(self) -> list[str]:
        """Return the ids of the best chunks by their words, best first."""
        figures = self.figures()
        return sorted(figures, key=lambda id_: (-figures[id_], self.places[id_]))[: self.limit]

    def by_vector(self) -> list[ChunkHit]:
        """Return the nearest chunks, nearest first."""
        near = [id_ for id_ in self.nearest if id_ in self.cosines]
        near.sort(key=lambda id_: (-self.cosines[id_], self.places[id_]))
        return [ChunkHit(self.places[id_], cosine=self.cosines[id_]) for id_ in near]


def read_discovery(question: IndexQuestion, answers: Sequence[Mapping[str, Any]], limit: int) -> Candidates:
    """Return the candidates in the answers to :meth:`IndexQuestion.discovery`."""
    of_terms = answers[1 : 1 + len(question.terms)] if question.terms else []
    nearest = answers[1 + len(question.terms) :] if question.terms else answers
    total = answers[0]["estimatedTotalHits"] if question.terms else 0
    found = {term: answer for term, answer in zip(question.terms, of_terms, strict=True) if answer["hits"]}
    near = [hit for answer in nearest for hit in answer["hits"]]
    hits = [*near, *(hit for answer in found.values() for hit in answer["hits"])]
    return Candidates(
        limit=limit,
        weights={term: _weight(answer["estimatedTotalHits"], total) for term, answer in found.items()},
        having={term: _ids(answer["hits"]) for term, answer in found.items()},
        places={hit["id"]: place_of(hit) for hit in hits},
        nearest=_ids(near),
        cosines=cosines_of(near),
    )


def cosines_of(hits: Sequence[Hit]) -> dict[str, float]:
    """Return the cosines of the hits that were chosen by their vectors: the similarity is the cosine."""
    similarities = {
        hit["id"]: hit.get("_rankingScoreDetails", {}).get("vectorSort", {}).get("similarity") for hit in hits
    }
    return {id_: float(similarity) for id_, similarity in similarities.items() if similarity is not None}


def _ids(hits: Sequence[Hit]) -> tuple[str, ...]:
    return tuple(str(hit["id"]) for hit in hits)


def _weight(having: int, total: int) -> float:
    """Return the inverse document frequency of BM25."""
    return math.log(1 + (max(total, having) - having + 0.5) / (having + 0.5))
