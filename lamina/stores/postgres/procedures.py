"""Tier 5: procedures, the outcomes that reinforce them, and how they are matched."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Any
from uuid import UUID

import psycopg
from pgvector import Vector
from psycopg.rows import DictRow
from psycopg.types.json import Json

from lamina.core.memories import new_id
from lamina.core.paging import Page
from lamina.core.procedures import Procedure, ProcedureOutcome, ProcedureState, StoredProcedure
from lamina.core.queries import Candidate, FilterField, Filters, Hit, Query, Ranking
from lamina.core.scope import Scope
from lamina.core.tiers import Source, Tier
from lamina.errors import Conflict, NotFound
from lamina.policies.ranking.procedure_matching import (
    MatchPolicy,
    ProcedureCandidate,
    ProcedureMatch,
    index_key,
    key_prefixes,
    rank_matches,
    strength,
    weighed_counts,
)
from lamina.policies.retention.learning import LearningPolicy, learnt_state
from lamina.stores.postgres.connection import Connection, Pool, connect, read_rows, scope_parameters
from lamina.stores.postgres.filters import Columns, apply_filters, query_parameters
from lamina.stores.postgres.large_scopes import LargeScopes
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_rows
from lamina.stores.postgres.tier_rows import (
    EmbeddingStatements,
    ErasureStatements,
    FoundStatement,
    TierRows,
    VectorTable,
)
from lamina.stores.postgres.vector_indexes import typed
from lamina.text.words import compared_words, index_words, name_key

QUERIES = load_queries("procedures.sql")

# A procedure belongs to a workspace, whoever wrote it; it is weighed by its outcomes, not by a confidence.
COLUMNS: Columns = {
    FilterField.CATEGORY: "NULL::text",
    FilterField.OCCURRED_AT: "p.created_at",
    FilterField.TAGS: "p.tags",
    FilterField.SOURCE: "p.source",
    FilterField.USER: "NULL::text",
    FilterField.AGENT: "p.agent_id",
    FilterField.SESSION: "NULL::text",
    FilterField.CONFIDENCE: "1.0",
    FilterField.IMPORTANCE: "p.strength",
}
# Each stage offers so many procedures, so that their strength can still change the order.
LEAST_CANDIDATES = 100
CANDIDATES_PER_HIT = 4
MOST_COMPARED = LEAST_CANDIDATES
"""Procedures of a scope that are all compared with a question, by a statement that is planned once.

To plan the one that finds candidates by the index of each stage takes 2.9 ms, and to run it 0.8.
"""
MAX_ASKED_WORDS = 256


@dataclass(frozen=True, slots=True)
class PreparedProcedure:
    """A procedure with its id and its trigger's vector, ready for one transaction.

    Args:
        embedding: Float32 vector of length 1.
    """

    id: UUID
    procedure: Procedure
    embedding: Vector


@dataclass(frozen=True, slots=True)
class LearntOrigin:
    """The origin of a procedure that runs of agents propose.

    Args:
        is_private: Whether they are runs of one user, whose words its trigger has.
    """

    is_private: bool


@dataclass(frozen=True, slots=True)
class ProcedureResult:
    """The outcome of storing a procedure.

    Args:
        id: Its id, or that of the equal procedure that the scope has.
        existed: Whether the scope had it before.
    """

    id: UUID
    existed: bool


@dataclass(frozen=True, slots=True)
class ReportResult:
    """The outcome of reporting on a procedure.

    Args:
        stored: The procedure after it.
        existed: Whether the run had been reported before; then nothing changed.
    """

    stored: StoredProcedure
    existed: bool


@dataclass(frozen=True, slots=True)
class ReportedOutcome:
    """A stored outcome of a procedure."""

    id: UUID
    outcome: ProcedureOutcome
    agent: str | None
    reported_at: datetime


async def insert_procedures(
    connection: Connection,
    scope: Scope,
    prepared: Sequence[PreparedProcedure],
    generation: int,
    now: datetime,
    *,
    learnt: LearntOrigin | None = None,
) -> list[ProcedureResult]:
    """Insert the procedures that the scope does not have yet; the constraint decides between concurrent writers.

    Rows are inserted in the order of their hashes, so that two writers of the same procedures cannot deadlock. Stated
    ones are active, and so is one that was proposed before; what runs propose is not.
    """
    origin = {
        "state": ProcedureState.ACTIVE if learnt is None else ProcedureState.PROPOSED,
        "is_learnt": learnt is not None,
        "is_private": learnt is not None and learnt.is_private,
    }
    ids: dict[bytes, UUID] = {}
    for item in sorted(prepared, key=lambda item: item.procedure.content_hash()):
        row = _columns(item.procedure, now) | _index_columns(item, generation) | {"id": item.id}
        written = {"source": item.procedure.source, "strength": strength(0, 0), **origin}
        cursor = await connection.execute(QUERIES["insert_procedure"], scope_parameters(scope) | row | written)
        ids[row["content_hash"]] = (await _fetch_row(cursor))["id"]
    stored = [ids[item.procedure.content_hash()] for item in prepared]
    return [ProcedureResult(id_, existed=id_ != item.id) for id_, item in zip(stored, prepared, strict=True)]


def _columns(procedure: Procedure, now: datetime) -> dict[str, Any]:
    return {
        "trigger": procedure.trigger,
        "action": procedure.action,
        "content_hash": procedure.content_hash(),
        "tags": list(procedure.tags),
        "metadata": Json(procedure.metadata),
        "now": now,
    }


def _index_columns(item: PreparedProcedure, generation: int) -> dict[str, Any]:
    trigger = item.procedure.trigger
    return {
        "trigger_key": index_key(name_key(trigger)),
        "words": " ".join(index_words(trigger)),
        "generation": generation,
        "embedding": item.embedding,
    }


async def lock_procedure(connection: Connection, tenant: str, id_: UUID) -> StoredProcedure:
    """Return the procedure, locked until the transaction ends.

    Raises:
        NotFound: If the tenant has no such procedure.
    """
    cursor = await connection.execute(QUERIES["get_procedure_for_update"], {"id": id_, "tenant": tenant})
    return _require(await cursor.fetchone(), id_)


async def update_procedure(connection: Connection, id_: UUID, procedure: Procedure, now: datetime) -> StoredProcedure:
    """Write a procedure's new state; its outcomes stay.

    Raises:
        Conflict: If another procedure of the scope already has this trigger and action.
    """
    try:
        cursor = await connection.execute(QUERIES["update_procedure"], {"id": id_, **_columns(procedure, now)})
    except psycopg.errors.UniqueViolation as error:
        reason = "another procedure of this scope has the same trigger and action; change or delete that one"
        raise Conflict(reason) from error
    return _stored(await _fetch_row(cursor))


async def index_procedure(connection: Connection, item: PreparedProcedure, generation: int) -> None:
    """Index a changed trigger in place of the old one."""
    await connection.execute(QUERIES["index_procedure"], {"id": item.id, **_index_columns(item, generation)})


async def reword_procedure(
    connection: Connection, tenant: str, id_: UUID, trigger: str, embedding: Vector, generation: int, now: datetime
) -> None:
    """Give a learnt procedure a trigger that is common to several users: from now on it is no one's, and all find it.

    It stays as it is if another procedure of its scope has the same trigger and action.
    """
    old = await lock_procedure(connection, tenant, id_)
    new = replace(old.procedure, trigger=trigger)
    try:
        async with connection.transaction():  # A savepoint: the conflict ends no more than this.
            await update_procedure(connection, id_, new, now)
    except Conflict:
        return
    await index_procedure(connection, PreparedProcedure(id_, new, embedding), generation)
    await connection.execute(QUERIES["share_procedure"], {"id": id_})


async def decide_procedure(
    connection: Connection, tenant: str, id_: UUID, state: ProcedureState, now: datetime
) -> StoredProcedure:
    """Confirm or drop a procedure: outcomes no longer change its state. All of the workspace find a confirmed one.

    Raises:
        NotFound: If the tenant has no such procedure.
    """
    parameters = {"id": id_, "tenant": tenant, "state": state, "now": now}
    cursor = await connection.execute(QUERIES["decide_procedure"], parameters)
    return _require(await cursor.fetchone(), id_)


async def delete_procedure(connection: Connection, tenant: str, id_: UUID, now: datetime) -> Scope:
    """Hide the procedure from every reader, and return its scope.

    Raises:
        NotFound: If the tenant has no such procedure.
    """
    cursor = await connection.execute(QUERIES["delete_procedure"], {"id": id_, "tenant": tenant, "now": now})
    row = await cursor.fetchone()
    if row is None:
        raise NotFound("procedure", str(id_))
    return Scope(tenant, row["workspace"], row["namespace"])


async def report_outcome(
    connection: Connection,
    scope: Scope,
    id_: UUID,
    outcome: ProcedureOutcome,
    now: datetime,
    witness: str | None = None,
    learning: LearningPolicy | None = None,
) -> ReportResult:
    """Count an outcome and update the procedure's strength; reports on one procedure are serialised.

    Args:
        connection: In a transaction.
        scope: The procedure's tenant, and the agent that reports.
        id_: The procedure.
        outcome: Success or failure of one run; a run that was reported before changes nothing.
        now: When it is reported, in UTC.
        witness: Who vouches for it, whose reports have a bounded weight; ``None`` if nobody knows.
        learning: When outcomes activate or drop a learnt procedure; ``None``: they do not.

    Raises:
        NotFound: If the tenant has no such procedure.
        Conflict: If the run was reported with the other result.
    """
    old = await lock_procedure(connection, scope.tenant, id_)
    row = {
        "id": new_id(),
        "procedure_id": id_,
        "run": outcome.run,
        "succeeded": outcome.succeeded,
        "comment": outcome.comment,
        "agent_id": scope.agent,
        "now": now,
    }
    cursor = await connection.execute(QUERIES["insert_outcome"], row)
    if cursor.rowcount == 0:
        await _refuse_contrary(connection, id_, outcome)
        return ReportResult(old, existed=True)
    if witness is not None:
        counted = {"id": id_, "witness": witness, "succeeded": outcome.succeeded}
        await connection.execute(QUERIES["count_report"], counted)
    stored = await _reinforce(connection, old, outcome, now)
    if learning is not None and stored.is_learnt:
        state = learnt_state(stored.state, stored.successes, stored.failures, learning)
        cursor = await connection.execute(QUERIES["set_learnt_state"], {"id": id_, "state": state})
        stored = replace(stored, state=ProcedureState((await _fetch_row(cursor))["state"]))
    return ReportResult(stored, existed=False)


async def _refuse_contrary(connection: Connection, id_: UUID, outcome: ProcedureOutcome) -> None:
    cursor = await connection.execute(QUERIES["get_outcome"], {"procedure_id": id_, "run": outcome.run})
    before = (await _fetch_row(cursor))["succeeded"]
    if before != outcome.succeeded:
        said = "a success" if before else "a failure"
        raise Conflict(f"run {outcome.run!r} was reported as {said} before; report another run, or leave it at that")


async def _reinforce(
    connection: Connection, old: StoredProcedure, outcome: ProcedureOutcome, now: datetime
) -> StoredProcedure:
    successes, failures = old.successes + outcome.succeeded, old.failures + (not outcome.succeeded)
    counts = {
        "successes": successes,
        "failures": failures,
        "strength": await _strength(connection, old.id, successes, failures),
    }
    cursor = await connection.execute(QUERIES["reinforce_procedure"], {"id": old.id, "now": now, **counts})
    return _stored(await _fetch_row(cursor))


async def _strength(connection: Connection, id_: UUID, successes: int, failures: int) -> float:
    """Return the strength of a procedure by its outcomes, and by the votes on it."""
    rows = await (await connection.execute(QUERIES["read_reports"], {"id": id_})).fetchall()
    votes = [row for row in rows if row["are_votes"]]
    good = successes + sum(row["successes"] for row in votes)
    bad = failures + sum(row["failures"] for row in votes)
    return strength(*weighed_counts(good, bad, [(row["successes"], row["failures"]) for row in rows]))


async def weigh_votes(connection: Connection, tenant: str, id_: UUID) -> None:
    """Weigh the votes on a memory, if it is a procedure, beside its outcomes."""
    cursor = await connection.execute(QUERIES["get_procedure_for_update"], {"id": id_, "tenant": tenant})
    row = await cursor.fetchone()
    if row is not None:
        weighed = await _strength(connection, id_, row["successes"], row["failures"])
        await connection.execute(QUERIES["set_strength"], {"id": id_, "strength": weighed})


class Procedures:
    """Reads procedures.

    Args:
        pool: Connections to Postgres.
        policy: Thresholds of a match.
    """

    def __init__(self, pool: Pool, policy: MatchPolicy) -> None:
        self._pool = pool
        self._policy = policy
        self._large = LargeScopes()

    async def get(self, tenant: str, id_: UUID) -> StoredProcedure:
        """Return the procedure.

        Raises:
            NotFound: If the tenant has no such procedure.
        """
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["get_procedure"], {"id": id_, "tenant": tenant})
            return _require(await cursor.fetchone(), id_)

    async def page(self, scope: Scope, filters: Filters, page: Page) -> list[StoredProcedure]:
        """Return the scope's active procedures, the latest first."""
        text, values = apply_filters(QUERIES["list_procedures"], filters, COLUMNS)
        parameters = scope_parameters(scope) | values | page.parameters("time", "id")
        return [_stored(row) for row in await fetch_rows(self._pool, text, parameters)]

    async def learnt(self, scope: Scope, state: ProcedureState, page: Page) -> list[StoredProcedure]:
        """Return the learnt procedures of a scope in a state, of all users, the latest first."""
        parameters = scope_parameters(scope) | {"state": state} | page.parameters("time", "id")
        return [_stored(row) for row in await fetch_rows(self._pool, QUERIES["list_learnt_procedures"], parameters)]

    async def outcomes(self, tenant: str, id_: UUID, page: Page) -> list[ReportedOutcome]:
        """Return the reported outcomes of a procedure, the latest first.

        Raises:
            NotFound: If the tenant has no such procedure.
        """
        await self.get(tenant, id_)
        parameters = {"procedure_id": id_, **page.parameters("time", "id")}
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["list_outcomes"], parameters)
            return [
                ReportedOutcome(
                    row["id"],
                    ProcedureOutcome(row["succeeded"], row["run"], row["comment"]),
                    row["agent_id"],
                    row["reported_at"],
                )
                async for row in cursor
            ]

    async def match(self, query: Query) -> tuple[ProcedureMatch, ...]:
        """Return the procedures whose triggers match, by prefix, then by words, then by meaning.

        A query without a vector is matched by prefix and words alone.
        """
        key = name_key(query.text)
        names = ("trigger_words", "asked_words", "shared_words", "cosine")
        candidates = [
            ProcedureCandidate(_stored(row), **{name: row[name] for name in names})
            for row in await self._compared(query, key)
            if row["id"] is not None
        ]
        return rank_matches(key, candidates, self._policy, limit=query.limit)

    async def _compared(self, query: Query, key: str) -> list[DictRow]:
        scope = query.scope.tenant, query.scope.workspace, query.scope.namespace
        if scope not in self._large:
            text, values = match_statement(query, key, is_large=False)
            rows = await read_rows(self._pool, text, values, by_key=True)
            if rows[0]["of_scope"] <= MOST_COMPARED:
                return rows
            self._large.add(scope)
        text, values = match_statement(query, key, is_large=True)
        return await read_rows(self._pool, typed(text, query.generation, query.dimension), values)


@dataclass(frozen=True, slots=True)
class ProceduresSearcher:
    """Search over procedures: their matches as memories.

    Args:
        procedures: Finds the matches.
    """

    source = Source.PROCEDURES

    procedures: Procedures

    async def search(self, query: Query) -> Ranking:
        """Return the procedures that match, best first."""
        return tuple(
            Hit(_candidate_of(match.stored), match.score, match.figures) for match in await self.procedures.match(query)
        )


def match_statement(query: Query, key: str, *, is_large: bool) -> tuple[bytes, dict[str, Any]]:
    """Return the statement that matches a question, with its parameters.

    Args:
        query: The question.
        key: Of its text.
        is_large: Whether candidates are found by indexes: then it is planned for the scope each time.
    """
    candidates = QUERIES["procedures_by_stage"] if is_large else QUERIES["procedures_of_scope"]
    sized = b"SELECT NULL::bigint AS procedures" if is_large else QUERIES["count_procedures"]
    whole = QUERIES["search_procedures"].replace(b"/*candidates*/", candidates).replace(b"/*sized*/", sized)
    text, values = apply_filters(whole, query.filters, COLUMNS)
    indexed = index_key(key)
    return text, {
        **query_parameters(query),
        **values,
        "most_compared": MOST_COMPARED,
        "key": indexed,
        "key_prefixes": list(key_prefixes(indexed)),
        "words": " ".join(list(dict.fromkeys(compared_words(query.text)))[:MAX_ASKED_WORDS]),
        "candidates": max(LEAST_CANDIDATES, CANDIDATES_PER_HIT * query.limit),
    }


def _candidate_of(stored: StoredProcedure) -> Candidate:
    return Candidate(
        stored.id,
        Tier.PROCEDURES,
        stored.created_at,
        importance=stored.strength,
        last_hit_at=stored.last_used_at,
    )


async def _fetch_row(cursor: "psycopg.AsyncCursor[DictRow]") -> DictRow:
    row = await cursor.fetchone()
    assert row is not None  # noqa: S101 - the statement returns its row, or the row is locked
    return row


def _require(row: DictRow | None, id_: UUID) -> StoredProcedure:
    if row is None:
        raise NotFound("procedure", str(id_))
    return _stored(row)


def _stored(row: DictRow) -> StoredProcedure:
    procedure = Procedure(
        trigger=row["trigger"],
        action=row["action"],
        tags=tuple(row["tags"]),
        metadata=row["metadata"],
        source=row["source"],
    )
    names = ("id", "workspace", "namespace", "strength", "successes", "failures", "created_at", "updated_at")
    fields = {name: row[name] for name in (*names, "last_used_at", "is_learnt", "is_private")}
    state = ProcedureState(row["state"])
    return StoredProcedure(procedure=procedure, agent=row["agent_id"], state=state, **fields)


TIER_ROWS = TierRows(
    found=FoundStatement(
        QUERIES["read_found_procedures"], COLUMNS, lambda row, _: Procedure(row.trigger or "", row.content).text()
    ),
    present=QUERIES["find_present_procedures"],
    embedded={
        "procedures": EmbeddingStatements(
            table="procedures",
            vectors=(VectorTable("procedure_embeddings", "procedure_id"),),
            unembedded=QUERIES["find_unembedded_procedures"],
            embed=QUERIES["embed_procedures"],
            count=QUERIES["count_unembedded_procedures"],
            text=itemgetter("trigger"),
            is_live="r.deleted_at IS NULL",
            is_cut=False,
        )
    },
    erased={"procedures": ErasureStatements(QUERIES["erase_user_procedures"])},
    count_user=QUERIES["count_user_procedures"],
)
