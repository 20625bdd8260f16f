"""Rank messages by the fitted second stage, together with the messages around them."""

import asyncio
from collections.abc import Container, Mapping, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lamina.core.conversations import NOWHERE, PlacedMessages, Utterance
from lamina.core.ports import ConversationReader
from lamina.core.queries import Candidate, Hit, Query, Ranking
from lamina.core.tiers import Source, Tier
from lamina.policies.ranking.conversation_signals import REACH, Flow
from lamina.policies.ranking.message_traits import MessageTraits, message_traits, question_traits
from lamina.policies.ranking.second_stage import StageWeights, design
from lamina.policies.ranking.time_boost import as_asked, then_signals, weigh_then
from lamina.text.parts import ends_of

NEAR = 2
"""Positions from a found message at which another is a candidate: with none LoCoMo's recall at 10 falls by 5 points."""
SHOWN_SIGNALS = 5
TRAITS_BYTES = 64 * 1024 * 1024
"""Some 30 000 short messages, or 10 000 long ones."""
QUESTION_CHARS = 4_000
"""A longer question is weighed by its ends: one of 100 000 characters held the process up for 0.3 s."""
_LITTLE_CHARS = 20_000


class TraitsCache:
    """Traits of messages by id, version and generation; the least recently used leave first.

    Postgres says each time which version is there, and who may see it; nobody asks for an earlier one again.
    """

    def __init__(self, limit_bytes: int = TRAITS_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._traits: dict[tuple[int, bytes, int], MessageTraits] = {}

    def get(self, generation: int, versions: Mapping[bytes, int]) -> dict[bytes, MessageTraits]:
        """Return the traits that are there of these versions of messages."""
        found = {}
        for id_, version in versions.items():
            key = generation, id_, version
            item = self._traits.pop(key, None)
            if item is not None:
                found[id_] = self._traits[key] = item
        return found

    def put(self, generation: int, versions: Mapping[bytes, int], traits: Mapping[bytes, MessageTraits]) -> None:
        """Add traits of messages that have vectors; without them they may still get some.

        Those of a message that changed meanwhile are of its next version; nobody asks for this one again.
        """
        for id_, item in traits.items():
            key = generation, id_, versions[id_]
            if len(item.vectors) and key not in self._traits:
                self._traits[key] = item
                self._size_bytes += item.size_bytes
        while self._size_bytes > self._limit_bytes:
            self._size_bytes -= self._traits.pop(next(iter(self._traits))).size_bytes


class FittedConversation:
    """Ranks the messages that sources found, and near neighbours of them, by fitted weights of many signals.

    Args:
        reader: Reads the texts of messages, each once.
        weights: Of the signals.
        candidates: Least hits of each source, also where the query's limit is lower.
    """

    source = Source.SESSION_CONTEXT

    def __init__(self, reader: ConversationReader, weights: StageWeights, *, candidates: int) -> None:
        self.candidates = candidates
        self._reader = reader
        self._weights = weights
        self._cache = TraitsCache()

    async def rank(self, query: Query, rankings: Mapping[Source, Ranking], placed: PlacedMessages) -> Ranking:
        """Return the messages by their scores, best first, ties by id."""
        found = {hit.memory.id.bytes: hit.memory for ranking in rankings.values() for hit in ranking}
        if not found:
            return ()
        placed, traits = await self._with_traits(query, placed_near(placed, found, REACH))
        if not placed.ids:
            return ()
        by_words = {hit.memory.id.bytes: rank for rank, hit in enumerate(rankings.get(Source.SESSION_WORDS, ()))}
        words_rank = np.array([by_words.get(id_, np.inf) for id_ in placed.ids])
        vector = None if query.embedding is None else np.frombuffer(query.embedding, np.float32)
        question = question_traits(ends_of(query.text, QUESTION_CHARS), vector)
        if query.time is not None:
            question = as_asked(question, query.time)
        signals = design(question, Flow(traits, placed.session, placed.position, words_rank))
        ids = placed.ids
        is_found = np.array([id_ in found for id_ in ids])
        then = None if query.time is None else then_signals(query.time, traits, signals.own_scores(self._weights))
        scores, cosines = signals.scores(self._weights, None if then is None else weigh_then(then)), signals.of("cos")
        relevance = signals.relevance(scores)
        near = is_found if question.is_lookup else near_found(placed.session, placed.position, is_found)
        candidates = np.flatnonzero(near).tolist()
        # Messages stand by time within a session, and sessions by name: ties need an order of their own.
        best = sorted(candidates, key=lambda at: (-scores[at], ids[at]))[: query.limit]
        # A tenth of the time of all signals, for what nobody sees otherwise.
        strongest = signals.strongest(self._weights, best, SHOWN_SIGNALS) if query.explain else [{}] * len(best)
        return tuple(
            Hit(
                # A source's candidate shows the excerpt that matched; a neighbour's, its best chunk.
                found.get(ids[at]) or _candidate(ids[at], traits[at], vector),
                float(relevance[at]),
                {"cosine": float(cosines[at]), **shown, **({} if then is None else then.shown(at))},
            )
            for at, shown in zip(best, strongest, strict=True)
        )

    async def _with_traits(
        self, query: Query, placed: PlacedMessages
    ) -> tuple[PlacedMessages, Sequence[MessageTraits]]:
        """Return the messages with their traits, without those that are gone meanwhile."""
        versions = dict(zip(placed.ids, placed.version.tolist(), strict=True))
        known = self._cache.get(query.generation, versions)
        missing = [UUID(bytes=id_) for id_ in placed.ids if id_ not in known]
        if missing:
            said = await self._reader.utterances(query, missing)
            # A millisecond for some 2 000 characters.
            is_little = sum(len(item.content) for item in said.values()) <= _LITTLE_CHARS
            made = _traits_of(said) if is_little else await asyncio.to_thread(_traits_of, said)
            self._cache.put(query.generation, versions, made)
            known |= made
        if len(known) < len(placed.ids):
            placed = _chosen(placed, [at for at, id_ in enumerate(placed.ids) if id_ in known])
        return placed, [known[id_] for id_ in placed.ids]


def placed_near(placed: PlacedMessages, found: Container[bytes], reach: int) -> PlacedMessages:
    """Return the messages within so many positions of a found one in its session, themselves included."""
    is_found = np.array([id_ in found for id_ in placed.ids], bool)
    if not is_found.any():
        return NOWHERE
    # Sessions so far apart on one line that none is near another.
    apart = int(np.ptp(placed.position)) + reach + 1
    at = placed.session * apart + (placed.position - placed.position.min())
    marks = at[is_found]
    after = np.searchsorted(marks, at)
    distance = np.minimum(
        np.abs(marks[np.minimum(after, len(marks) - 1)] - at), np.abs(marks[np.maximum(after - 1, 0)] - at)
    )
    return _chosen(placed, np.flatnonzero(distance <= reach).tolist())


def _chosen(placed: PlacedMessages, at: Sequence[int]) -> PlacedMessages:
    ids = [placed.ids[place] for place in at]
    return PlacedMessages(ids, placed.session[at], placed.position[at], placed.version[at])


def near_found(
    session: NDArray[np.int64], position: NDArray[np.int64], is_found: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which messages are candidates: those that are found, and those that stand near one in its session."""
    near = is_found.copy()
    for rows in range(1, NEAR + 1):
        are_close = (session[rows:] == session[:-rows]) & (position[rows:] - position[:-rows] <= NEAR)
        near[rows:] |= are_close & is_found[:-rows]
        near[:-rows] |= are_close & is_found[rows:]
    return near


def _traits_of(said: Mapping[UUID, Utterance]) -> dict[bytes, MessageTraits]:
    return {id_.bytes: message_traits(item) for id_, item in said.items()}


def _candidate(id_: bytes, traits: MessageTraits, vector: NDArray[np.float32] | None) -> Candidate:
    best = 0 if vector is None or len(traits.vectors) <= 1 else int(np.argmax(traits.vectors @ vector))
    start, end = traits.spans[best] if traits.spans else (0, None)
    return Candidate(
        UUID(bytes=id_), Tier.SESSIONS, traits.said_at, start, end, importance=traits.importance, user=traits.user
    )
