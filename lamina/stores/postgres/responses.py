"""The store of model responses: one transaction for a put, one small read for a lookup."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from pgvector import Vector
from psycopg.rows import DictRow

from lamina.core.memories import new_id
from lamina.policies.caching.adaptive_ttl import adaptive_ttl
from lamina.policies.caching.model_responses import (
    AgentState,
    DigestedQuestion,
    Lessons,
    ModelQuestion,
    PutOutcome,
    PutRefusal,
    ResponseCandidate,
    ResponseFigures,
    ResponsePolicy,
    ResponseUse,
    is_current,
)
from lamina.policies.caching.response_budget import StoredResponse, evicted
from lamina.stores.postgres.connection import Connection, Pool, connect, in_transaction
from lamina.stores.postgres.epochs import end_responses
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_row, fetch_rows, run_statement

QUERIES = load_queries("responses.sql")

MAX_CANDIDATES = 16
MANY_LOOKUPS = 1000
IDLE = timedelta(hours=1)
_ROW_BYTES = 512  # Ids, digests and times.


@dataclass(frozen=True, slots=True)
class NewResponse:
    """A response to store.

    Args:
        request: The question that it answers.
        response: The answer, as JSON text.
        embedding: Float32 bytes of the question's unit vector; ``None`` if that is not compared by meaning.
        token: Of the lookup before the response was made.
        is_verified: Whether the agent, the user or an admin puts it.
    """

    request: DigestedQuestion
    response: str
    embedding: bytes | None = None
    token: int | None = None
    is_verified: bool = False

    @property
    def question(self) -> ModelQuestion:
        """Return the question."""
        return self.request.question

    @property
    def size_bytes(self) -> int:
        """Return about how many bytes it takes in the table."""
        texts = len(self.response.encode()) + len(self.question.text.encode())
        return _ROW_BYTES + len(self.embedding or b"") + texts


@dataclass(frozen=True, slots=True)
class ExactMatch:
    """The state of an agent, and its current response to exactly one request.

    Args:
        agent_state: ``None`` if the agent never put a response.
        candidate: The response, fresh or stale.
        has_any: Whether the agent has any current response.
    """

    agent_state: AgentState | None = None
    candidate: ResponseCandidate | None = None
    has_any: bool = False


@dataclass(frozen=True, slots=True)
class _LockedAgent:
    """The locked rows of an agent and its workspace."""

    agent_state: AgentState
    used_bytes: int


class Responses:
    """Reads and writes responses.

    Args:
        pool: Connections to Postgres.
        policy: Thresholds and lifetimes of responses.
        generation: The active generation of vectors.
    """

    def __init__(self, pool: Pool, policy: ResponsePolicy, generation: int) -> None:
        self._pool = pool
        self._policy = policy
        self._generation = generation

    async def exact(self, request: DigestedQuestion, now: datetime) -> ExactMatch:
        """Return the state of the agent, and its current response to exactly this request.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        row = await fetch_row(self._pool, QUERIES["find_exact_response"], self._parameters(request, now))
        if row is None:
            return ExactMatch()
        return ExactMatch(
            _agent_state(row),
            None if row["id"] is None else _candidate(row, similarity=1.0, is_exact=True),
            has_any=row["has_any"],
        )

    async def near(self, request: DigestedQuestion, embedding: bytes, now: datetime) -> list[ResponseCandidate]:
        """Return current responses to short questions within the threshold, the nearest first; 16 at most.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        vector = {"embedding": _vector(embedding), "max_distance": 1 - self._policy.threshold, "limit": MAX_CANDIDATES}
        parameters = self._parameters(request, now) | vector
        rows = await fetch_rows(self._pool, QUERIES["find_near_responses"], parameters)
        return [_candidate(row, similarity=row["similarity"]) for row in rows]

    async def read(self, question: ModelQuestion, id_: UUID) -> str | None:
        """Return a response as the JSON text that was put; ``None`` if it was deleted.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        row = await fetch_row(self._pool, QUERIES["get_response"], _place(question) | {"id": id_})
        return None if row is None else str(row["response"])

    async def lessons(self, question: ModelQuestion) -> Lessons:
        """Return when the memory of the question's workspace was changed.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        async with connect(self._pool) as connection:
            return await _read_lessons(connection, question)

    async def lease(self, question: ModelQuestion, id_: UUID, now: datetime) -> bool:
        """Report whether the caller is the one to refresh a stale response.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        until = now + timedelta(seconds=self._policy.lease_s)
        parameters = _place(question) | {"id": id_, "now": now, "until": until}
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["lease_response"], parameters)
            return cursor.rowcount == 1

    async def agents(self, tenant: str, workspace: str, limit: int) -> list[str]:
        """Return agents that have responses, and maybe some that had, up to the limit, in no order.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        parameters = {"tenant": tenant, "workspace": workspace, "limit": limit}
        return [row["agent"] for row in await fetch_rows(self._pool, QUERIES["list_response_agents"], parameters)]

    async def put(self, new: NewResponse, now: datetime) -> PutOutcome:
        """Store a response in place of the one to exactly this request, unless memories changed since its lookup.

        Raises:
            Unavailable: If Postgres does not answer; nothing is stored.
        """
        if new.size_bytes > self._policy.budget.size_bytes:
            return PutOutcome(refusal=PutRefusal.TOO_LARGE)
        return await in_transaction(self._pool, lambda connection: self._put(connection, new, now))

    async def _put(self, connection: Connection, new: NewResponse, now: datetime) -> PutOutcome:
        # Before anything else: a response is not stored under a state that is later than what it was made from.
        user_profile, user_writes = await _read_user_profile(connection, new.question)
        is_first = new.token is not None and new.token < 0
        lessons = await _lock_lessons(connection, new.question) if is_first else Lessons()
        claimed = await _lock_agent(connection, new.question, now)
        agent_state = replace(claimed.agent_state, user_writes=user_writes)
        if not is_current(new.token, agent_state, lessons, by_workspace=self._policy.by_workspace):
            return PutOutcome(refusal=PutRefusal.CHANGED)
        agent_epoch = await _with_prompt(connection, new.question, agent_state)
        id_, ttl_s = new_id(), adaptive_ttl(agent_state.hits, agent_state.lookups, self._policy.ttl)
        deleted = await self._make_room(connection, new, claimed.used_bytes, now)
        row = self._parameters(new.request, now) | {
            "id": id_,
            "query": new.question.text,
            "response": new.response,
            "embedding": None if new.embedding is None else _vector(new.embedding),
            "agent_epoch": agent_epoch,
            "workspace_epoch": agent_state.workspace_epoch,
            "workspace_writes": agent_state.workspace_writes,
            "size_bytes": new.size_bytes,
            "is_verified": new.is_verified,
            "user_profile": user_profile,
            "expires_at": now + timedelta(seconds=ttl_s),
        }
        await connection.execute(QUERIES["insert_response"], row)
        await _add_bytes(connection, new.question.space, new.size_bytes - deleted.size_bytes)
        return PutOutcome(id_, None, ttl_s, deleted.others)

    async def _make_room(self, connection: Connection, new: NewResponse, used_bytes: int, now: datetime) -> "_Deleted":
        """Delete the response that is replaced, and others if the budget is spent."""
        asked, ids = self._parameters(new.request, now), list[UUID]()
        if used_bytes + new.size_bytes > self._policy.budget.size_bytes:
            cursor = await connection.execute(QUERIES["list_responses"], asked)
            held = [StoredResponse(**row) async for row in cursor]
            ids = evicted(held, new.size_bytes, self._policy.budget)
        cursor = await connection.execute(QUERIES["delete_responses"], asked | {"ids": ids})
        return _Deleted(sum([row["size_bytes"] async for row in cursor]), len(ids))

    async def count(self, uses: Sequence[ResponseUse]) -> None:
        """Add lookups and hits to the counts of agents and responses.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        await run_statement(self._pool, QUERIES["count_response_lookups"], _count_lookups(uses))
        hits = _count_hits(uses)
        if hits["ids"]:
            await run_statement(self._pool, QUERIES["count_response_hits"], hits)

    def cutoff(self, now: datetime) -> datetime:
        """Return the time of expiry before which a response is not served any more, not even as stale."""
        return now - self._policy.grace

    async def purge_expired(self, now: datetime, tenant: str) -> int:
        """Delete a tenant's responses that are not served any more; return how many.

        Each workspace is locked while its own responses are deleted.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        times = {"cutoff": self.cutoff(now), "by_workspace": self._policy.by_workspace}
        count = 0
        for place in await self._workspaces(tenant, None):
            count += await self._purge(QUERIES["purge_dead_responses"], place | times)
        await run_statement(self._pool, QUERIES["delete_idle_agents"], {"tenant": tenant, "idle_since": now - IDLE})
        return count

    async def purge(self, tenant: str, workspace: str | None = None, agent: str | None = None) -> int:
        """Delete all responses of a tenant, a workspace or an agent; return how many.

        Responses that are being made at this moment are not stored afterwards.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        places = await self._workspaces(tenant, workspace)
        return sum(
            [await self._purge(QUERIES["purge_responses"], place | {"agent_id": agent}, ends=True) for place in places]
        )

    async def erase_user(self, tenant: str, user: str) -> int:
        """Delete all responses of a user in any workspace; return how many.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        places = await self._workspaces(tenant, None)
        return sum([await self._purge(QUERIES["erase_user_responses"], place | {"user_id": user}) for place in places])

    async def _purge(self, query: bytes, parameters: dict[str, Any], *, ends: bool = False) -> int:
        async def act(connection: Connection) -> int:
            await connection.execute(QUERIES["lock_response_workspace"], parameters)
            if ends:
                await end_responses(connection, parameters["tenant"], parameters["workspace"], parameters["agent_id"])
            cursor = await connection.execute(query, parameters)
            sizes = [row["size_bytes"] async for row in cursor]
            await _add_bytes(connection, (parameters["tenant"], parameters["workspace"]), -sum(sizes))
            return len(sizes)

        return await in_transaction(self._pool, act)

    async def _workspaces(self, tenant: str, workspace: str | None) -> list[DictRow]:
        parameters = {"tenant": tenant, "workspace": workspace}
        return await fetch_rows(self._pool, QUERIES["list_response_workspaces"], parameters)

    async def figures(
        self, tenant: str, workspace: str | None, now: datetime, agent: str | None = None
    ) -> ResponseFigures:
        """Count the responses of a tenant, of one of its workspaces, or of an agent.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        place = {"tenant": tenant, "workspace": workspace, "agent_id": agent}
        parameters = place | {"now": now, "cutoff": now - self._policy.grace}
        row = await fetch_row(
            self._pool, QUERIES["count_responses"], parameters | {"by_workspace": self._policy.by_workspace}
        )
        assert row is not None  # noqa: S101 - an aggregate is one row
        return ResponseFigures(**row)

    def _parameters(self, request: DigestedQuestion, now: datetime) -> dict[str, Any]:
        question = request.question
        return _place(question) | {
            "namespace": question.scope.namespace,
            "user_id": question.scope.user,
            "circumstances": request.circumstances,
            "digest": request.digest,
            "generation": self._generation,
            "by_workspace": self._policy.by_workspace,
            "now": now,
            "cutoff": now - self._policy.grace,
        }


@dataclass(frozen=True, slots=True)
class _Deleted:
    """The bytes of deleted responses, and their number without the replaced one."""

    size_bytes: int
    others: int


async def count_expired(
    pool: Pool, tenant: str, *, responses: datetime, embeddings: datetime, providers: datetime, answers: datetime
) -> int:
    """Count a tenant's rows of all cache tables whose time ended before these times.

    Raises:
        Unavailable: If Postgres does not answer.
    """
    parameters = {"tenant": tenant, "responses": responses, "embeddings": embeddings, "providers": providers}
    parameters["answers"] = answers
    row = await fetch_row(pool, QUERIES["count_expired"], parameters)
    return int(row["expired"]) if row else 0


async def _lock_lessons(connection: Connection, question: ModelQuestion) -> Lessons:
    """Return when the workspace's memory was changed, locked against changes until the transaction ends.

    So the next change sees the agent's new row.
    """
    await connection.execute(QUERIES["lock_teaching"], _place(question))
    return await _read_lessons(connection, question)


async def _read_lessons(connection: Connection, question: ModelQuestion) -> Lessons:
    parameters = _place(question) | {"user_id": question.scope.user}
    row = await (await connection.execute(QUERIES["read_lessons"], parameters)).fetchone()
    assert row is not None  # noqa: S101 - an aggregate is one row
    return Lessons(row["last_at"], int(row["total"]))


async def _read_user_profile(connection: Connection, question: ModelQuestion) -> tuple[str | None, int]:
    """Return the state of the user's profile in the whole tenant, as a text and as a number; 0 without one."""
    parameters = {"tenant": question.scope.tenant, "user_id": question.scope.user}
    row = await (await connection.execute(QUERIES["read_user_profile_state"], parameters)).fetchone()
    return (None, 0) if row is None else (row["user_profile"], row["user_writes"])


async def _lock_agent(connection: Connection, question: ModelQuestion, now: datetime) -> _LockedAgent:
    cursor = await connection.execute(QUERIES["lock_response_agents"], _place(question) | {"now": now})
    rows = {row["agent"]: row async for row in cursor}
    whole, own = rows[""], rows[question.agent]
    epochs = {"agent_epoch": own["epoch"], "workspace_epoch": whole["epoch"], "workspace_writes": whole["writes"]}
    return _LockedAgent(_agent_state(own | epochs), whole["bytes"])


async def _with_prompt(connection: Connection, question: ModelQuestion, agent_state: AgentState) -> int:
    """Return the agent's epoch; a question that names another prompt version begins a new one."""
    if question.prompt_version in {None, agent_state.prompt_version}:
        return agent_state.agent_epoch
    parameters = _place(question) | {"prompt_version": question.prompt_version}
    cursor = await connection.execute(QUERIES["change_prompt_version"], parameters)
    row = await cursor.fetchone()
    assert row is not None  # noqa: S101 - the row is locked
    return int(row["epoch"])


async def _add_bytes(connection: Connection, space: tuple[str, str], more_bytes: int) -> None:
    parameters = {"tenant": space[0], "workspace": space[1], "more_bytes": more_bytes}
    await connection.execute(QUERIES["add_response_bytes"], parameters)


def _place(question: ModelQuestion) -> dict[str, Any]:
    return {"tenant": question.scope.tenant, "workspace": question.scope.workspace, "agent": question.agent}


def _agent_state(row: DictRow) -> AgentState:
    names = ("agent_epoch", "workspace_epoch", "workspace_writes", "prompt_version", "lookups", "hits")
    return AgentState(**{name: row[name] for name in names}, user_writes=row.get("user_writes", 0))


def _candidate(row: DictRow, *, similarity: float, is_exact: bool = False) -> ResponseCandidate:
    return ResponseCandidate(
        row["id"], row["query"], similarity, row["created_at"], row["expires_at"], is_exact, bool(row["is_verified"])
    )


def _vector(embedding: bytes) -> Vector:
    return Vector(np.frombuffer(embedding, dtype=np.float32))


def _count_lookups(uses: Sequence[ResponseUse]) -> dict[str, Any]:
    lookups = Counter((*use.space, use.agent) for use in uses)
    hits = Counter((*use.space, use.agent) for use in uses if use.response is not None)
    return {
        "tenants": [tenant for tenant, _, _ in lookups],
        "workspaces": [workspace for _, workspace, _ in lookups],
        "agents": [agent for _, _, agent in lookups],
        "lookups": list(lookups.values()),
        "hits": [hits[name] for name in lookups],
        "most": MANY_LOOKUPS,
    }


def _count_hits(uses: Sequence[ResponseUse]) -> dict[str, Any]:
    found = [(use.response, use.at) for use in uses if use.response is not None]
    hits = Counter(id_ for id_, _ in found)
    last = dict(sorted(found, key=lambda item: item[1]))
    return {"ids": list(hits), "hits": list(hits.values()), "last": [last[id_] for id_ in hits]}
