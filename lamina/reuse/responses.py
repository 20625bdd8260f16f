"""The semantic cache of a model's responses: by the exact request from a shard, or by meaning from Postgres."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from lamina.caching.keys import embedding_key
from lamina.caching.layers import Agents, Entry, Found, Key, Layer, Probe
from lamina.caching.responses import (
    Candidate,
    KeptResponse,
    LookedUp,
    PutResponse,
    Question,
    Refusal,
    ResponsePolicy,
    Standing,
    State,
    Use,
    best,
    token_at,
)
from lamina.caching.tally import Outcome
from lamina.coalescing import WriteBehind
from lamina.errors import InvalidInput, Unavailable
from lamina.ports import Clock, QuestionEmbedder
from lamina.reuse.shards import SharedCaches, piece
from lamina.stores.postgres.responses import Exact, NewResponse, Responses
from lamina.text import clean_json

USES_WINDOW_S = 1.0
ENTRY_BYTES = 256
"""What a kept response takes beside itself, about."""
_OUTCOMES = {State.HIT: Outcome.HIT, State.STALE: Outcome.STALE, State.MISS: Outcome.MISS}


@dataclass(frozen=True, slots=True)
class _Sought:
    """A question on its way through the caches.

    Args:
        found: What the shard knows.
        now: When it was asked.
    """

    question: Question
    turn: Key
    embedding: Key
    found: Found
    now: datetime


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
        self._uses: WriteBehind[Use] = WriteBehind(
            store.count, part="uses of responses", window_s=USES_WINDOW_S, on_error=self._uses_lost
        )

    async def lookup(self, question: Question, *, wait_s: float = 0.0) -> LookedUp:
        """Return the response to a question, or what to send with the one that is made now.

        Args:
            question: What is asked.
            wait_s: How long to wait, on a miss, for one that somebody else makes who may be waited for: who
                looked up the same with a ``wait_s`` before.

        Raises:
            InvalidInput: If ``wait_s`` is out of range.
        """
        if not 0 <= wait_s <= self._policy.max_wait_s:
            raise InvalidInput("wait_s", f"is {wait_s}; expected 0 to {self._policy.max_wait_s} seconds")
        if not self._caches.has(Layer.SEMANTIC):
            return _miss(self._clock())
        sought = await self._probed(question)
        answer = await self._answered(sought)
        if answer.state is State.MISS and wait_s > 0:
            return await self._waited(sought, answer, wait_s)
        return answer

    async def put(self, question: Question, response: Any, epoch: int | None = None) -> PutResponse:
        """Store a response in place of the one to exactly this request; every lookup after this returns finds it.

        Args:
            question: What it answers.
            response: Any JSON value.
            epoch: From the lookup that missed: if the memory changed since, the response is not stored.

        Raises:
            InvalidInput: If the response is unclean or too large.
            Unavailable: If the embedder or Postgres does not answer; nothing is stored.
        """
        value = clean_json(response, "response")
        text = _json_text(value, self._policy.max_response_bytes)
        if not self._caches.has(Layer.SEMANTIC):
            return PutResponse(refusal=Refusal.OFF)
        sought = await self._for_put(question)
        new = NewResponse(question, text, await self._embedding(sought), epoch)
        put = await self._store.put(new, sought.now)
        await self._caches.tell(Agents(question.space, (question.agent,)))
        if put.id is not None:
            self._keep(sought, put.id, value, len(text))
        await self._caches.settle(question.space, sought.turn.digest)
        return put

    async def flush(self) -> None:
        """Write the counts of all lookups so far."""
        await self._uses.flush()

    async def close(self) -> None:
        """Write what is left and end."""
        await self._uses.close()

    # Looking up.

    async def _probed(self, question: Question) -> _Sought:
        sought = self._sought(question)
        probe = Probe(question.space, (sought.turn,), (sought.embedding,), question.agent)
        return self._sought(question, await self._caches.find(probe))

    def _sought(self, question: Question, found: Found | None = None) -> _Sought:
        turn = Key(Layer.TURN, question.digest(self._generation))
        embedding = embedding_key(self._generation, question.text)
        return _Sought(question, turn, embedding, found or Found(), self._clock())

    async def _answered(self, sought: _Sought) -> LookedUp:
        if sought.found.has_responses is not None:
            self._caches.observe(Layer.AGENTS, Outcome.MISS if sought.found.has_responses else Outcome.HIT)
        if sought.found.has_responses is False:
            return _miss(sought.now)
        began = time.perf_counter()
        try:
            async with asyncio.timeout(self._policy.deadline_s + self._policy.embed_deadline_s):
                answer = await self._proven(sought)
        except Exception:  # noqa: BLE001 - what does not answer is a miss
            self._caches.observe(Layer.SEMANTIC, Outcome.ERROR, time.perf_counter() - began)
            return _miss(sought.now)
        if answer.layer is not Layer.TURN or answer.state is not State.HIT:
            self._caches.observe(Layer.SEMANTIC, _OUTCOMES[answer.state], time.perf_counter() - began)
        return answer

    async def _proven(self, sought: _Sought) -> LookedUp:
        exact = await self._exact(sought)
        if sought.found.has_responses is None:
            await self._tell_all(sought.question)
        if exact.standing is None:
            return _miss(sought.now)
        if await self._has_other_prompt(sought.question, exact.standing):
            return _miss(sought.now)
        chosen = self._best(await self._candidates(sought, exact.candidate), sought)
        answer = await self._given(sought, chosen, exact.standing)
        used = Use(sought.question.space, sought.question.agent, sought.now, answer.id)
        self._uses.add(used)
        return answer

    async def _exact(self, sought: _Sought) -> Exact:
        async with asyncio.timeout(self._policy.deadline_s):
            return await self._store.exact(sought.question, sought.now)

    async def _tell_all(self, question: Question) -> None:
        """Tell a shard that does not know which agents have responses."""
        agents = await self._store.agents(*question.space)
        await self._caches.tell(Agents(question.space, agents, is_all=True))

    async def _has_other_prompt(self, question: Question, standing: Standing) -> bool:
        """Tell whether the question's system prompt is another one than before; the responses to that are over."""
        if question.prompt_version in {None, standing.prompt_version}:
            return False
        await self._store.change_prompt(question)
        return standing.prompt_version is not None

    async def _candidates(self, sought: _Sought, exact: Candidate | None) -> Sequence[Candidate]:
        """Return the exact response, and the near ones unless it is fresh."""
        own = () if exact is None else (exact,)
        if exact is not None and exact.state(sought.now, self._policy.grace) is State.HIT:
            return own
        try:
            near = await self._store.near(sought.question, await self._embedding(sought), sought.now)
        except Exception:
            if exact is None:
                raise
            self._caches.observe(Layer.SEMANTIC, Outcome.ERROR)
            return own
        return (*own, *near)

    def _best(self, candidates: Sequence[Candidate], sought: _Sought) -> Candidate | None:
        return best(candidates, sought.question.text, sought.now, self._policy, self._is_same_question)

    async def _given(self, sought: _Sought, chosen: Candidate | None, standing: Standing) -> LookedUp:
        token = standing.token(by_workspace=self._policy.by_workspace)
        if chosen is None:
            return LookedUp(State.MISS, token)
        kept = self._kept(sought, chosen)
        read = (kept.response,) if kept else await self._store.read(sought.question, chosen.id)
        if read is None:
            return LookedUp(State.MISS, token)
        state = chosen.state(sought.now, self._policy.grace)
        is_mine = state is State.STALE and await self._store.lease(sought.question, chosen.id, sought.now)
        if chosen.is_exact and state is State.HIT and kept is None:
            self._keep(sought, chosen.id, read[0], len(_text(read[0])))
        return LookedUp(
            state,
            token,
            read[0],
            chosen.id,
            chosen.similarity,
            Layer.TURN if kept else Layer.SEMANTIC,
            (sought.now - chosen.created_at).total_seconds(),
            (chosen.expires_at - sought.now).total_seconds(),
            is_mine,
        )

    def _kept(self, sought: _Sought, chosen: Candidate) -> KeptResponse | None:
        """Return what the shard kept for this request, if it is the response that is current."""
        value = sought.found.answer[1] if sought.found.answer else None
        return value if isinstance(value, KeptResponse) and value.id == chosen.id else None

    async def _embedding(self, sought: _Sought) -> bytes:
        known = piece(sought.found, sought.embedding)
        if isinstance(known, bytes):
            return known
        question = sought.question
        try:
            async with asyncio.timeout(self._policy.embed_deadline_s):
                return await self._embedder.embed_question(question.scope, question.text)
        except TimeoutError as error:
            raise Unavailable("embedder", f"no answer within {self._policy.embed_deadline_s} s") from error

    async def _waited(self, sought: _Sought, miss: LookedUp, wait_s: float) -> LookedUp:
        """Return the response that somebody else makes meanwhile; the miss, if this caller is to make it."""
        space, name = sought.question.space, sought.turn.digest
        if await self._caches.claim(space, name, self._policy.lease_s, wait_s):
            return miss
        again = self._sought(sought.question)
        try:
            exact = await self._exact(again)
            if exact.standing is None or exact.candidate is None:
                return miss
            return await self._given(again, exact.candidate, exact.standing)
        except Exception:  # noqa: BLE001 - what does not answer is a miss
            self._caches.observe(Layer.SEMANTIC, Outcome.ERROR)
            return miss

    # Keeping.

    async def _for_put(self, question: Question) -> _Sought:
        """Return what is needed to store a response; the lookup before it may have left the embedding."""
        embedding = embedding_key(self._generation, question.text)
        return self._sought(question, await self._caches.find(Probe(question.space, pieces=(embedding,))))

    def _keep(self, sought: _Sought, id_: UUID, response: Any, size_bytes: int) -> None:
        kept = KeptResponse(id_, response)
        self._caches.keep(Entry(sought.question.space, sought.turn, kept, size_bytes + ENTRY_BYTES))

    def _uses_lost(self, error: Exception) -> None:  # noqa: ARG002 - the signature is WriteBehind's
        self._caches.observe(Layer.SEMANTIC, Outcome.ERROR)


def _miss(now: datetime) -> LookedUp:
    """Return a miss of a lookup that does not know where the agent stands."""
    return LookedUp(State.MISS, token_at(now))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json_text(value: Any, most_bytes: int) -> str:
    """Return the value as JSON text.

    Raises:
        InvalidInput: If that has too many bytes.
    """
    text = _text(value)
    size_bytes = len(text.encode())
    if size_bytes > most_bytes:
        raise InvalidInput("response", f"has {size_bytes} bytes as JSON; at most {most_bytes} are accepted")
    return text
