"""The semantic cache of models' responses: the exact request from a shard, or the same meaning from Postgres."""

import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from lamina.aio.deadline import deadline, time_limit
from lamina.aio.write_behind import WriteBehind
from lamina.caching.shared_caches import SharedCaches
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
from lamina.core.memories import Chunk
from lamina.core.ports import Clock, QuestionEmbedder
from lamina.errors import InvalidInput
from lamina.ingest.embedding import embed_in_time
from lamina.policies.caching.cache_keys import embedding_key
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
from lamina.stores.postgres.responses import ExactMatch, NewResponse, Responses

USES_WINDOW_S = 1.0
# Lookups of one replica that wait for another caller's response; more would keep that caller's put out.
MAX_WAITING = 64
# Least time between two readings of a workspace's agents, for a shard that has no list and may not take one.
AGENTS_INTERVAL_S = 1.0
# Workspaces whose agents were read lately; one that has left is only read once more.
_MAX_SPACES = 1000
_OUTCOMES = {
    LookupState.HIT: LayerOutcome.HIT,
    LookupState.STALE: LayerOutcome.STALE,
    LookupState.MISS: LayerOutcome.MISS,
}


@dataclass(frozen=True, slots=True)
class _KeyedQuestion:
    """A question on its way through the caches.

    Args:
        request: The question with its digests.
        turn: Key of the response to exactly this request.
        pieces: Key of its embedding; none if it is not compared by meaning.
        now: When it was asked.
        found: The shard's answer.
    """

    request: DigestedQuestion
    turn: CacheKey
    pieces: tuple[CacheKey, ...]
    now: datetime
    found: ShardAnswer = NOTHING_FOUND

    @property
    def question(self) -> ModelQuestion:
        return self.request.question


class ResponseCache:
    """Answers questions with responses that were put before; the caller makes those that are missing.

    One round trip to a shard reads whether the agent has responses at all, and the response to the exact
    request. Every response is first proven current by one small read of Postgres. A lookup never
    fails: without an answer in time it is a miss.

    Args:
        caches: The shards.
        store: The responses.
        embedder: Embeds questions.
        policy: When a response answers.
        generation: The active generation of vectors.
        clock: The time of day.
        is_same_question: Decides whether two near questions want the same response.
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
            store.count,
            part="uses of responses",
            window_s=USES_WINDOW_S,
            on_error=lambda _: caches.observe(Layer.SEMANTIC, LayerOutcome.ERROR),
        )
        self._listed: TtlLru[Space, bool] = TtlLru(max_entries=_MAX_SPACES)
        self._waiting = 0

    async def lookup(self, question: ModelQuestion, *, wait_s: float = 0.0) -> ResponseLookup:
        """Return the response to a question, or the epoch to send with the one that is made now.

        Args:
            question: The question.
            wait_s: How long to wait, on a miss, for a response that another caller makes: one that looked up the same
                with a ``wait_s`` before. Where 64 lookups wait already, this one does not.

        Raises:
            InvalidInput: If ``wait_s`` is out of range.
        """
        max_wait_s = self._policy.max_wait_s
        if not 0 <= wait_s <= max_wait_s:
            raise InvalidInput("wait_s", f"is {wait_s:g}; expected 0 to {max_wait_s:g} seconds")
        if not self._caches.has(Layer.SEMANTIC):
            return _miss(self._clock())
        keyed = self._with_keys(question)
        asked = await self._find(keyed, ShardQuery(question.space, (keyed.turn,), keyed.pieces, question.agent))
        answer = await self._answer(asked)
        if answer.state is LookupState.MISS and wait_s > 0 and not await self._must_make(asked, wait_s):
            again = replace(asked, found=NOTHING_FOUND, now=self._clock())
            # Without the shard's findings of before: the response is newer than they are.
            answer = await self._in_time(self._policy.deadline_s, self._exact_response(again)) or answer
        self._count(asked, answer)
        return answer

    async def put(
        self, question: ModelQuestion, response: Any, epoch: int | None = None, *, is_verified: bool = False
    ) -> PutOutcome:
        """Store a response in place of the one to exactly this request.

        Lookups after this returns find it, unless its shard did not take the agent's first response into its list: then
        they may miss for as long as the shard's list of agents counts as complete (``agent_filter.ttl_s``).

        Args:
            question: The question that it answers.
            response: Any JSON value; it is kept as it is.
            epoch: From the lookup that missed: if the memory changed since, the response is not stored.
            is_verified: Whether the agent, the user or an admin puts it.

        Raises:
            InvalidInput: If the response is unclean or too large, or the model refuses the question.
            Unavailable: If the embedder or Postgres does not answer; nothing is stored.
        """
        text = json_text(response, "response", self._policy.max_response_bytes)
        if not self._caches.has(Layer.SEMANTIC):
            return PutOutcome(refusal=PutRefusal.OFF)
        keyed = self._with_keys(question)
        # The lookup before may have left the embedding in the shard.
        asked = await self._find(keyed, ShardQuery(question.space, pieces=keyed.pieces))
        try:
            return await self._put(asked, text, epoch, is_verified=is_verified)
        finally:  # Stored or not, the callers that wait look for it now.
            await self._caches.settle(question.space, asked.turn.digest)

    async def flush(self) -> None:
        """Write the counts of all lookups so far."""
        await self._uses.flush()

    async def close(self) -> None:
        """Write the counts that wait, and end."""
        await self._uses.close()

    async def _put(self, asked: _KeyedQuestion, text: str, epoch: int | None, *, is_verified: bool) -> PutOutcome:
        question = asked.question
        embedding = await self._embed_to_put(asked) if question.has_meaning else None
        put = await self._store.put(NewResponse(asked.request, text, embedding, epoch, is_verified), asked.now)
        # Before the put returns: a filter without the agent would hide its response from the next lookup.
        await self._caches.tell(RespondingAgents(question.space, (question.agent,)))
        if put.id is not None:
            self._keep(asked, put.id, text)
        return put

    def _with_keys(self, question: ModelQuestion) -> _KeyedQuestion:
        request = question.request(self._generation)
        pieces = (embedding_key(self._generation, question.text),) if question.has_meaning else ()
        return _KeyedQuestion(request, CacheKey(Layer.TURN, request.digest), pieces, self._clock())

    async def _find(self, keyed: _KeyedQuestion, query: ShardQuery) -> _KeyedQuestion:
        found = await self._caches.find(query)
        return replace(keyed, found=found, now=self._clock())

    async def _answer(self, asked: _KeyedQuestion) -> ResponseLookup:
        has_responses = asked.found.has_responses
        if has_responses is not None:
            self._caches.observe(Layer.AGENTS, LayerOutcome.MISS if has_responses else LayerOutcome.HIT)
        if has_responses is False:
            return await self._first_miss(asked)
        policy = self._policy
        answer = await self._in_time(policy.deadline_s + policy.embed_deadline_s, self._best_response(asked))
        if answer is None:
            return _miss(asked.now)
        if has_responses is None:
            await self._list_agents(asked.question.space)
        return answer

    async def _first_miss(self, asked: _KeyedQuestion) -> ResponseLookup:
        """Return the miss of an agent without responses, with the state of its workspace's memory.

        By the time alone, a write shortly before the lookup could not be told from one after it.
        """
        try:
            async with time_limit(self._policy.deadline_s):
                lessons = await self._store.lessons(asked.question)
        except Exception:  # noqa: BLE001 - then its time has to do
            return _miss(asked.now)
        return ResponseLookup(LookupState.MISS, lessons.token())

    async def _in_time(self, deadline_s: float, lookup: Awaitable[ResponseLookup]) -> ResponseLookup | None:
        """Await a lookup in the store and count it; a failure counts as an error and is ``None``."""
        began = time.perf_counter()
        try:
            async with time_limit(deadline_s):
                answer = await lookup
        except Exception:  # noqa: BLE001 - then it is a miss
            self._caches.observe(Layer.SEMANTIC, LayerOutcome.ERROR, time.perf_counter() - began)
            return None
        if answer.layer is not Layer.TURN or answer.state is not LookupState.HIT:
            self._caches.observe(Layer.SEMANTIC, _OUTCOMES[answer.state], time.perf_counter() - began)
        return answer

    def _count(self, asked: _KeyedQuestion, answer: ResponseLookup) -> None:
        """Count a lookup once, waited or not; that of an agent that never put a response counts nowhere.

        The shard's response counts as a hit only where it was current.
        """
        if self._caches.has(Layer.TURN) and asked.found.has_responses is not False:
            self._caches.observe(Layer.TURN, LayerOutcome.HIT if answer.layer is Layer.TURN else LayerOutcome.MISS)
        if answer.epoch > 0:
            self._uses.add(ResponseUse(asked.question.space, asked.question.agent, asked.now, answer.id))

    async def _list_agents(self, space: Space) -> None:
        """Give a shard without a list the agents that have responses, if they are not too many for it."""
        if not self._caches.has(Layer.AGENTS) or self._listed.get(space, time.monotonic()):
            return
        # Noted before the reading: many lookups at once are one reading.
        self._listed.put(space, value=True, now=time.monotonic(), ttl_s=AGENTS_INTERVAL_S)
        try:
            async with time_limit(self._policy.deadline_s):
                agents = await self._store.agents(*space, limit=MAX_AGENTS + 1)
        except Exception:  # noqa: BLE001 - the answer stands without it
            self._caches.observe(Layer.AGENTS, LayerOutcome.ERROR)
            return
        if len(agents) <= MAX_AGENTS:
            await self._caches.tell(RespondingAgents(space, agents, is_all=True))

    async def _must_make(self, asked: _KeyedQuestion, wait_s: float) -> bool:
        """Wait for a response that another caller makes; return whether this caller is to make it."""
        if self._waiting >= MAX_WAITING:
            return True
        self._waiting += 1
        try:
            return await self._caches.claim(asked.question.space, asked.request.digest, self._policy.lease_s, wait_s)
        finally:
            self._waiting -= 1

    async def _best_response(self, asked: _KeyedQuestion) -> ResponseLookup:
        exact = await self._read_exact(asked)
        if exact.agent_state is None:
            return await self._first_miss(asked)
        if not exact.has_any:
            # Its last response has ended: the next lookup costs neither an embedding nor a search.
            ended = RespondingAgents(asked.question.space, (asked.question.agent,), has_ended=True)
            await self._caches.tell(ended)
            return await self._read(asked, None, exact.agent_state)
        candidates = await self._candidates(asked, exact.candidate)
        text, now = asked.question.text, asked.now
        chosen = best_response(candidates, text, now, self._policy, self._is_same_question)
        return await self._read(asked, chosen, exact.agent_state)

    async def _exact_response(self, asked: _KeyedQuestion) -> ResponseLookup:
        exact = await self._read_exact(asked)
        if exact.agent_state is None:
            return await self._first_miss(asked)
        return await self._read(asked, exact.candidate, exact.agent_state)

    async def _read_exact(self, asked: _KeyedQuestion) -> ExactMatch:
        async with time_limit(self._policy.deadline_s):
            return await self._store.exact(asked.request, asked.now)

    async def _candidates(self, asked: _KeyedQuestion, exact: ResponseCandidate | None) -> Sequence[ResponseCandidate]:
        """Return the exact response, and the near ones unless it is fresh or the question long."""
        own = () if exact is None else (exact,)
        is_fresh = exact is not None and exact.state(asked.now, self._policy.grace) is LookupState.HIT
        if is_fresh or not asked.question.has_meaning:
            return own
        try:
            near = await self._store.near(asked.request, await self._embed(asked), asked.now)
        except Exception:
            if exact is None:
                raise
            self._caches.observe(Layer.SEMANTIC, LayerOutcome.ERROR)
            return own
        return (*own, *near)

    async def _read(
        self, asked: _KeyedQuestion, chosen: ResponseCandidate | None, agent_state: AgentState
    ) -> ResponseLookup:
        token = agent_state.token(by_workspace=self._policy.by_workspace)
        if chosen is None:
            return ResponseLookup(LookupState.MISS, token)
        in_shard = asked.found.answer[1] if asked.found.answer else None
        cached = in_shard if isinstance(in_shard, CachedResponse) and in_shard.id == chosen.id else None
        text = cached.json if cached else await self._store.read(asked.question, chosen.id)
        if text is None:
            return ResponseLookup(LookupState.MISS, token)
        state = chosen.state(asked.now, self._policy.grace)
        # The lease is taken in Postgres, so that one caller of all replicas refreshes it.
        is_to_refresh = state is LookupState.STALE and await self._store.lease(asked.question, chosen.id, asked.now)
        if chosen.is_exact and state is LookupState.HIT and isinstance(text, str):
            self._keep(asked, chosen.id, text)
        return ResponseLookup(
            state,
            token,
            json.loads(text),
            chosen.id,
            chosen.similarity,
            Layer.TURN if cached else Layer.SEMANTIC,
            (asked.now - chosen.created_at).total_seconds(),
            (chosen.expires_at - asked.now).total_seconds(),
            is_to_refresh,
            chosen.is_verified,
        )

    async def _embed(self, asked: _KeyedQuestion) -> bytes:
        question = asked.question
        if (in_shard := _embedding_in_shard(asked)) is not None:
            return in_shard
        async with deadline("embedder", self._policy.embed_deadline_s):
            return await self._embedder.embed_question(question.scope, question.text)

    async def _embed_to_put(self, asked: _KeyedQuestion) -> bytes:
        """Embed a question as a text that is written, whose refusal by the model is its sender's to know."""
        question = asked.question
        if (in_shard := _embedding_in_shard(asked)) is not None:
            return in_shard

        async def embed(texts: Sequence[str]) -> list[tuple[Chunk, ...]]:
            vectors = [await self._embedder.embed_question(question.scope, text) for text in texts]
            return [(Chunk(0, len(text), vector),) for text, vector in zip(texts, vectors, strict=True)]

        [[chunk]] = await embed_in_time(embed, [question.text], self._policy.embed_deadline_s, field="query")
        return chunk.embedding

    def _keep(self, asked: _KeyedQuestion, id_: UUID, text: str) -> None:
        cached = CachedResponse(id_, text.encode())
        self._caches.keep(CacheEntry(asked.question.space, asked.turn, cached, len(cached.json) + ENTRY_BYTES))


def _embedding_in_shard(asked: _KeyedQuestion) -> bytes | None:
    found = (asked.found.pieces.get(key) for key in asked.pieces)
    return next((embedding for embedding in found if isinstance(embedding, bytes)), None)


def _miss(now: datetime) -> ResponseLookup:
    """Return a miss of a lookup that could read nothing."""
    return ResponseLookup(LookupState.MISS, token_at(now))
