"""The semantic cache of a model's responses: by the exact request from a shard, or by meaning from Postgres."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from lamina.aio.deadline import deadline
from lamina.aio.write_behind import WriteBehind
from lamina.caching.shared_caches import SharedCaches, piece
from lamina.core.cache_layers import (
    ENTRY_BYTES,
    NOTHING_FOUND,
    CacheEntry,
    CacheKey,
    Layer,
    RespondingAgents,
    ShardAnswer,
    ShardQuery,
    Space,
)
from lamina.core.cache_stats import LayerOutcome
from lamina.core.ports import Clock, QuestionEmbedder
from lamina.errors import InvalidInput
from lamina.policies.caching.keys import embedding_key
from lamina.policies.caching.model_responses import (
    AgentState,
    CachedResponse,
    DigestedQuestion,
    LookupState,
    ModelQuestion,
    PutOutcome,
    PutRefusal,
    ResponseCandidate,
    ResponseLookup,
    ResponsePolicy,
    ResponseUse,
    best_response,
    json_text,
    token_at,
)
from lamina.policies.caching.shard import MAX_AGENTS
from lamina.policies.caching.ttl_lru import TtlLru
from lamina.stores.postgres.responses import Exact, NewResponse, Responses

USES_WINDOW_S = 1.0
MAX_WAITING = 64
"""Lookups of one replica that wait for somebody else's response; they must not keep out who is to put it."""
TELLING_INTERVAL_S = 1.0
"""Least time between two readings of a workspace's agents, for a shard that does not know them or cannot be told."""
_MAX_SPACES = 1000
_OUTCOMES = {
    LookupState.HIT: LayerOutcome.HIT,
    LookupState.STALE: LayerOutcome.STALE,
    LookupState.MISS: LayerOutcome.MISS,
}


@dataclass(frozen=True, slots=True)
class _Sought:
    """A question on its way through the caches.

    Args:
        embedding: Key of its embedding; ``None`` if it is not compared by meaning.
        now: When it was asked.
        found: What the shard knows.
    """

    request: DigestedQuestion
    embedding: CacheKey | None
    now: datetime
    found: ShardAnswer = NOTHING_FOUND

    @property
    def question(self) -> ModelQuestion:
        return self.request.question

    @property
    def turn(self) -> CacheKey:
        return CacheKey(Layer.TURN, self.request.digest)

    @property
    def pieces(self) -> tuple[CacheKey, ...]:
        return () if self.embedding is None else (self.embedding,)


class ResponseCache:
    """Answers questions with responses that were put before; the caller makes what is not there.

    One round trip to a shard tells whether the agent has responses at all, and what the exact request
    was answered. Nothing is given that one small read of Postgres does not prove current. A lookup
    never fails: what does not answer makes it a miss.

    Args:
        caches: The shards.
        store: The responses.
        embedder: Embeds questions.
        policy: When a response answers.
        generation: The active generation of vectors.
        clock: The time of day.
        is_same_question: Tells whether two near questions want the same response.
    """

    def __init__(
        self,
        caches: SharedCaches,
        store: Responses,
        embedder: QuestionEmbedder,
        policy: ResponsePolicy,
        *,
        generation: int,
        clock: Clock,
        is_same_question: Callable[[str, str], bool],
    ) -> None:
        self._caches = caches
        self._store = store
        self._embedder = embedder
        self._policy = policy
        self._generation = generation
        self._clock = clock
        self._is_same_question = is_same_question
        self._uses: WriteBehind[ResponseUse] = WriteBehind(
            store.count, part="uses of responses", window_s=USES_WINDOW_S, on_error=self._uses_lost
        )
        self._told: TtlLru[Space, bool] = TtlLru(max_entries=_MAX_SPACES)
        self._waiting = 0

    async def lookup(self, question: ModelQuestion, *, wait_s: float = 0.0) -> ResponseLookup:
        """Return the response to a question, or what to send with the one that is made now.

        Args:
            question: What is asked.
            wait_s: How long to wait, on a miss, for one that somebody else makes who may be waited for: who
                looked up the same with a ``wait_s`` before. Where 64 lookups wait already, it does not.

        Raises:
            InvalidInput: If ``wait_s`` is out of range.
        """
        most_s = self._policy.max_wait_s
        if not 0 <= wait_s <= most_s:
            raise InvalidInput("wait_s", f"is {wait_s:g}; expected 0 to {most_s:g} seconds")
        if not self._caches.has(Layer.SEMANTIC):
            return _miss(self._clock())
        sought = await self._probed(question)
        answer = await self._answered(sought)
        if answer.state is LookupState.MISS and wait_s > 0:
            answer = await self._waited(sought, answer, wait_s)
        self._count(sought, answer)
        return answer

    async def put(self, question: ModelQuestion, response: Any, epoch: int | None = None) -> PutOutcome:
        """Store a response in place of the one to exactly this request.

        Lookups after this returns find it, unless its shard could not be told of the agent's first response: then
        they may miss for as long as the shard's list of agents counts as complete (``agent_filter.ttl_s``).

        Args:
            question: What it answers.
            response: Any JSON value; it is kept as it is.
            epoch: From the lookup that missed: if the memory changed since, the response is not stored.

        Raises:
            InvalidInput: If the response is unclean or too large.
            Unavailable: If the embedder or Postgres does not answer; nothing is stored.
        """
        text = json_text(response, "response", self._policy.max_response_bytes)
        if not self._caches.has(Layer.SEMANTIC):
            return PutOutcome(refusal=PutRefusal.OFF)
        sought = await self._for_put(question)
        try:
            return await self._put(sought, text, epoch)
        finally:
            await self._caches.settle(question.space, sought.turn.digest)  # stored or not, who waits looks for it now

    async def _put(self, sought: _Sought, text: str, epoch: int | None) -> PutOutcome:
        question = sought.question
        embedding = await self._embedding(sought) if question.has_meaning else None
        put = await self._store.put(NewResponse(sought.request, text, embedding, epoch), sought.now)
        await self._caches.tell(RespondingAgents(question.space, (question.agent,)))
        if put.id is not None:
            self._keep(sought, put.id, text)
        return put

    async def flush(self) -> None:
        """Write the counts of all lookups so far."""
        await self._uses.flush()

    async def close(self) -> None:
        """Write what is left and end."""
        await self._uses.close()

    # Looking up.

    async def _probed(self, question: ModelQuestion) -> _Sought:
        sought = self._sought(question)
        probe = ShardQuery(question.space, (sought.turn,), sought.pieces, question.agent)
        return await self._found(sought, probe)

    def _sought(self, question: ModelQuestion) -> _Sought:
        embedding = embedding_key(self._generation, question.text) if question.has_meaning else None
        return _Sought(question.request(self._generation), embedding, self._clock())

    async def _found(self, sought: _Sought, probe: ShardQuery) -> _Sought:
        found = await self._caches.find(probe)
        return replace(sought, found=found, now=self._clock())

    async def _answered(self, sought: _Sought) -> ResponseLookup:
        if sought.found.has_responses is not None:
            self._caches.observe(Layer.AGENTS, LayerOutcome.MISS if sought.found.has_responses else LayerOutcome.HIT)
        if sought.found.has_responses is False:
            return _miss(sought.now)
        answer = await self._within(self._policy.deadline_s + self._policy.embed_deadline_s, self._proven(sought))
        if answer is None:
            return _miss(sought.now)
        if sought.found.has_responses is None:
            await self._tell_all(sought.question.space)
        return answer

    async def _within(self, deadline_s: float, asking: Awaitable[ResponseLookup]) -> ResponseLookup | None:
        """Return the answer and count it; ``None``, counted as an error, if there is none in time."""
        began = time.perf_counter()
        try:
            async with asyncio.timeout(deadline_s):
                answer = await asking
        except Exception:  # noqa: BLE001 - what does not answer is a miss
            self._caches.observe(Layer.SEMANTIC, LayerOutcome.ERROR, time.perf_counter() - began)
            return None
        if answer.layer is not Layer.TURN or answer.state is not LookupState.HIT:
            self._caches.observe(Layer.SEMANTIC, _OUTCOMES[answer.state], time.perf_counter() - began)
        return answer

    async def _proven(self, sought: _Sought) -> ResponseLookup:
        exact = await self._exact(sought)
        if exact.standing is None:
            return _miss(sought.now)
        chosen = self._best(await self._candidates(sought, exact.candidate), sought)
        return await self._given(sought, chosen, exact.standing)

    def _count(self, sought: _Sought, answer: ResponseLookup) -> None:
        """Count a lookup once, waited or not; that of an agent without standing counts nowhere.

        What the shard had counts as a hit only where it was current.
        """
        if self._caches.has(Layer.TURN) and sought.found.has_responses is not False:
            self._caches.observe(Layer.TURN, LayerOutcome.HIT if answer.layer is Layer.TURN else LayerOutcome.MISS)
        if answer.epoch > 0:
            self._uses.add(ResponseUse(sought.question.space, sought.question.agent, sought.now, answer.id))

    async def _exact(self, sought: _Sought) -> Exact:
        async with asyncio.timeout(self._policy.deadline_s):
            return await self._store.exact(sought.request, sought.now)

    async def _tell_all(self, space: Space) -> None:
        """Tell a shard that does not know which agents have responses, if they are not too many for it."""
        if not self._caches.has(Layer.AGENTS) or self._told.get(space, time.monotonic()):
            return
        self._told.put(space, value=True, now=time.monotonic(), ttl_s=TELLING_INTERVAL_S)
        try:
            async with asyncio.timeout(self._policy.deadline_s):
                agents = await self._store.agents(*space, limit=MAX_AGENTS + 1)
        except Exception:  # noqa: BLE001 - the answer stands without it
            self._caches.observe(Layer.AGENTS, LayerOutcome.ERROR)
            return
        if len(agents) <= MAX_AGENTS:
            await self._caches.tell(RespondingAgents(space, agents, is_all=True))

    async def _candidates(self, sought: _Sought, exact: ResponseCandidate | None) -> Sequence[ResponseCandidate]:
        """Return the exact response, and the near ones unless it is fresh or the question long."""
        own = () if exact is None else (exact,)
        is_fresh = exact is not None and exact.state(sought.now, self._policy.grace) is LookupState.HIT
        if is_fresh or not sought.question.has_meaning:
            return own
        try:
            near = await self._store.near(sought.request, await self._embedding(sought), sought.now)
        except Exception:
            if exact is None:
                raise
            self._caches.observe(Layer.SEMANTIC, LayerOutcome.ERROR)
            return own
        return (*own, *near)

    def _best(self, candidates: Sequence[ResponseCandidate], sought: _Sought) -> ResponseCandidate | None:
        return best_response(candidates, sought.question.text, sought.now, self._policy, self._is_same_question)

    async def _given(self, sought: _Sought, chosen: ResponseCandidate | None, standing: AgentState) -> ResponseLookup:
        token = standing.token(by_workspace=self._policy.by_workspace)
        if chosen is None:
            return ResponseLookup(LookupState.MISS, token)
        kept = self._kept(sought, chosen)
        text = kept.json if kept else await self._store.read(sought.question, chosen.id)
        if text is None:
            return ResponseLookup(LookupState.MISS, token)
        state = chosen.state(sought.now, self._policy.grace)
        is_mine = state is LookupState.STALE and await self._store.lease(sought.question, chosen.id, sought.now)
        if chosen.is_exact and state is LookupState.HIT and isinstance(text, str):
            self._keep(sought, chosen.id, text)
        return ResponseLookup(
            state,
            token,
            json.loads(text),
            chosen.id,
            chosen.similarity,
            Layer.TURN if kept else Layer.SEMANTIC,
            (sought.now - chosen.created_at).total_seconds(),
            (chosen.expires_at - sought.now).total_seconds(),
            is_mine,
        )

    def _kept(self, sought: _Sought, chosen: ResponseCandidate) -> CachedResponse | None:
        """Return what the shard kept for this request, if it is the response that is current."""
        value = sought.found.answer[1] if sought.found.answer else None
        return value if isinstance(value, CachedResponse) and value.id == chosen.id else None

    async def _embedding(self, sought: _Sought) -> bytes:
        known = piece(sought.found, sought.embedding)
        if isinstance(known, bytes):
            return known
        question = sought.question
        async with deadline("embedder", self._policy.embed_deadline_s):
            return await self._embedder.embed_question(question.scope, question.text)

    async def _waited(self, sought: _Sought, miss: ResponseLookup, wait_s: float) -> ResponseLookup:
        """Return the response that somebody else makes meanwhile; the miss, if this caller is to make it."""
        if self._waiting >= MAX_WAITING or await self._is_mine(sought, wait_s):
            return miss
        again = replace(sought, found=NOTHING_FOUND, now=self._clock())
        return await self._within(self._policy.deadline_s, self._made(again)) or miss

    async def _is_mine(self, sought: _Sought, wait_s: float) -> bool:
        self._waiting += 1
        try:
            return await self._caches.claim(sought.question.space, sought.request.digest, self._policy.lease_s, wait_s)
        finally:
            self._waiting -= 1

    async def _made(self, sought: _Sought) -> ResponseLookup:
        """Return what was put meanwhile, or a miss that knows where the agent stands now."""
        exact = await self._exact(sought)
        if exact.standing is None:
            return _miss(sought.now)
        return await self._given(sought, exact.candidate, exact.standing)

    # Keeping.

    async def _for_put(self, question: ModelQuestion) -> _Sought:
        """Return what is needed to store a response; the lookup before it may have left the embedding."""
        sought = self._sought(question)
        return await self._found(sought, ShardQuery(question.space, pieces=sought.pieces))

    def _keep(self, sought: _Sought, id_: UUID, text: str) -> None:
        kept = CachedResponse(id_, text.encode())
        self._caches.keep(CacheEntry(sought.question.space, sought.turn, kept, len(kept.json) + ENTRY_BYTES))

    def _uses_lost(self, error: Exception) -> None:  # noqa: ARG002 - the signature is WriteBehind's
        self._caches.observe(Layer.SEMANTIC, LayerOutcome.ERROR)


def _miss(now: datetime) -> ResponseLookup:
    """Return a miss of a lookup that does not know where the agent stands."""
    return ResponseLookup(LookupState.MISS, token_at(now))
