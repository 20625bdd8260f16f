"""Write procedures and their outcomes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

from pgvector import Vector
from pydantic import TypeAdapter

from lamina.aio.yielding import map_in_steps
from lamina.core.events import Event, EventKind
from lamina.core.memories import MetadataLimit, new_id
from lamina.core.ports import Clock, Embedder
from lamina.core.procedures import (
    Procedure,
    ProcedureOutcome,
    ProcedureState,
    StoredProcedure,
    clean_outcome,
    clean_procedure,
)
from lamina.core.scope import Scope
from lamina.core.trash import TrashKind
from lamina.ingest.embedding import embed_in_time
from lamina.ingest.write_once import write_once
from lamina.models.batching import mean_vector
from lamina.policies.retention.learning import LearningPolicy
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.events import record_event
from lamina.stores.postgres.idempotency import Once
from lamina.stores.postgres.procedures import (
    PreparedProcedure,
    ProcedureResult,
    decide_procedure,
    delete_procedure,
    index_procedure,
    insert_procedures,
    lock_procedure,
    report_outcome,
    update_procedure,
)
from lamina.stores.postgres.trash import TrashPolicy, discard


@dataclass(frozen=True, slots=True)
class RecordedProcedures:
    """The results of a write in the caller's order, and the scope's epoch after it."""

    procedures: tuple[ProcedureResult, ...]
    epoch: int


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """The procedure after a report; ``existed`` says that the run was known, so that nothing changed."""

    id: UUID
    existed: bool
    strength: float
    successes: int
    failures: int


_PROCEDURES = TypeAdapter(RecordedProcedures)
_OUTCOME = TypeAdapter(RecordedOutcome)


class ProcedureRecorder:
    """Writes procedures and outcomes.

    A trigger is embedded first, then one transaction writes the rows together with the scope's
    new epoch: no connection is held while a model works.

    Args:
        pool: Connections to Postgres.
        embedder: Embeds triggers.
        generation: The active generation of vectors.
        clock: The time of day.
        embed_deadline_s: Seconds after which a write gives up on the embedder.
        metadata_limit: Of a procedure's metadata.
        learning: When outcomes activate or drop a learnt procedure.
        trash: How long deleted procedures can be brought back.
    """

    def __init__(
        self,
        pool: Pool,
        embedder: Embedder,
        *,
        generation: int,
        clock: Clock,
        embed_deadline_s: float,
        metadata_limit: MetadataLimit,
        learning: LearningPolicy,
        trash: TrashPolicy,
    ) -> None:
        self.metadata_limit = metadata_limit
        self._learning = learning
        self._trash = trash
        self._pool = pool
        self._embedder = embedder
        self._generation = generation
        self._clock = clock
        self._embed_deadline_s = embed_deadline_s

    async def put(self, scope: Scope, procedures: Sequence[Procedure], once: Once | None = None) -> RecordedProcedures:
        """Store procedures, each trigger with each action once per scope; return the results in their order.

        Raises:
            InvalidInput: For an unclean procedure; none is stored.
            Unavailable: If the embedder or Postgres does not answer; none is stored.
        """
        cleaned = await map_in_steps(partial(clean_procedure, limit=self.metadata_limit), procedures)
        prepared = await self._prepared([(new_id(), procedure) for procedure in cleaned])
        now = self._clock()

        async def write(connection: Connection) -> RecordedProcedures:
            put = await insert_procedures(connection, scope, prepared, self._generation, now)
            is_news = not all(item.existed for item in put)
            epoch = await bump_epoch(connection, scope, teaches=is_news)
            if fresh := [item.id for item in put if not item.existed]:
                await record_event(connection, Event.of(scope, EventKind.PROCEDURE_CREATED, *fresh))
            return RecordedProcedures(tuple(put), epoch)

        return await write_once(self._pool, once, _PROCEDURES, write)

    async def change(self, tenant: str, id_: UUID, changes: dict[str, Any]) -> StoredProcedure:
        """Change fields of a procedure; its outcomes stay.

        A changed trigger is embedded before the row is locked.

        Raises:
            NotFound: If the tenant has no such procedure.
            Conflict: If another procedure of the scope already has this trigger and action.
        """
        checked = clean_procedure(replace(Procedure(trigger="-", action="-"), **changes), limit=self.metadata_limit)
        clean_changes = {name: getattr(checked, name) for name in changes}
        prepared = await self._prepared([(id_, checked)] if "trigger" in changes else [])
        now = self._clock()

        async def act(connection: Connection) -> StoredProcedure:
            old = await lock_procedure(connection, tenant, id_)
            stored = await update_procedure(connection, id_, replace(old.procedure, **clean_changes), now)
            for item in prepared:
                await index_procedure(connection, item, self._generation)
            await bump_epoch(connection, _scope(tenant, stored), teaches=True)
            await record_event(connection, Event.of(_scope(tenant, stored), EventKind.PROCEDURE_CHANGED, id_))
            return stored

        return await in_transaction(self._pool, act)

    async def decide(self, tenant: str, id_: UUID, state: ProcedureState) -> StoredProcedure:
        """Confirm or drop a procedure; outcomes no longer change its state.

        Raises:
            NotFound: If the tenant has no such procedure.
        """
        now = self._clock()

        async def act(connection: Connection) -> StoredProcedure:
            stored = await decide_procedure(connection, tenant, id_, state, now)
            scope = _scope(tenant, stored)
            await bump_epoch(connection, scope, teaches=True)
            await record_event(connection, Event.of(scope, EventKind.PROCEDURE_CHANGED, id_, state=state.value))
            return stored

        return await in_transaction(self._pool, act)

    async def delete(self, tenant: str, id_: UUID, *, operation: UUID | None = None) -> None:
        """Take a procedure out of every reader's sight.

        Args:
            tenant: Whose procedure.
            id_: Its id.
            operation: The deletion of a scope that takes it.

        Raises:
            NotFound: If the tenant has no such procedure.
        """
        now = self._clock()

        async def act(connection: Connection) -> None:
            scope = await delete_procedure(connection, tenant, id_, now)
            await discard(connection, self._trash, TrashKind.PROCEDURE, tenant, id_, now, operation=operation)
            await bump_epoch(connection, scope, teaches=True)
            await record_event(connection, Event.of(scope, EventKind.PROCEDURE_DELETED, id_))

        await in_transaction(self._pool, act)

    async def report(
        self,
        scope: Scope,
        id_: UUID,
        outcome: ProcedureOutcome,
        once: Once | None = None,
        *,
        witness: str | None = None,
    ) -> RecordedOutcome:
        """Count an outcome of a procedure; each run counts once.

        Args:
            scope: Whose procedure it is, by its tenant, and which agent reports.
            id_: The procedure.
            outcome: What came of following it.
            once: The caller's Idempotency-Key.
            witness: Who vouches for it.

        Raises:
            InvalidInput: For an unclean run or comment.
            NotFound: If the tenant has no such procedure.
            Conflict: If the run was reported with the other result.
        """
        cleaned = clean_outcome(outcome)
        now = self._clock()

        async def write(connection: Connection) -> RecordedOutcome:
            reported = await report_outcome(connection, scope, id_, cleaned, now, witness, self._learning)
            # A count changes the order of matches, not what is known: responses stay valid.
            if not reported.existed:
                place = _scope(scope.tenant, reported.stored).narrowed(agent=scope.agent)
                await bump_epoch(connection, place.narrowed(agent=None))
                facts = {"succeeded": cleaned.succeeded}
                await record_event(connection, Event.of(place, EventKind.PROCEDURE_OUTCOME, id_, **facts))
            stored = reported.stored
            return RecordedOutcome(stored.id, reported.existed, stored.strength, stored.successes, stored.failures)

        return await write_once(self._pool, once, _OUTCOME, write)

    async def _prepared(self, procedures: Sequence[tuple[UUID, Procedure]]) -> list[PreparedProcedure]:
        triggers = [procedure.trigger for _, procedure in procedures]
        chunks = await embed_in_time(self._embedder.embed_chunks, triggers, self._embed_deadline_s, field="trigger")
        return [
            PreparedProcedure(id_, procedure, Vector(mean_vector(parts)))
            for (id_, procedure), parts in zip(procedures, chunks, strict=True)
        ]


def _scope(tenant: str, stored: StoredProcedure) -> Scope:
    return Scope(tenant, stored.workspace, stored.namespace)
