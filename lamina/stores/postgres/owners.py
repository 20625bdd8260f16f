"""Whose stored things are, by their ids: asked for keys that are bound to a part of a tenant."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from lamina.core.memories import MemoryKind
from lamina.core.principals import Owner
from lamina.core.scope import Scope
from lamina.errors import NotFound
from lamina.stores.postgres.connection import read_rows
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("owners.sql")


class OwnedKind(StrEnum):
    """Kind of a thing that is named by its id, as errors spell it."""

    NOTE = "note"
    ARCHIVED_NOTE = "archived note"
    MESSAGE = "message"
    DOCUMENT = "document"
    PROCEDURE = "procedure"
    ENTITY = "entity"
    EDGE = "edge"
    SHARE = "share"
    RUN = "run"
    ERASURE = "erasure"
    WEBHOOK = "webhook"
    DISCARDED = "deleted memory"
    MEMORY = "memory"
    OPERATION = "operation"


_FIND = {
    OwnedKind.NOTE: QUERIES["find_note_owners"],
    OwnedKind.ARCHIVED_NOTE: QUERIES["find_archived_note_owners"],
    OwnedKind.MESSAGE: QUERIES["find_message_owners"],
    OwnedKind.DOCUMENT: QUERIES["find_document_owners"],
    OwnedKind.PROCEDURE: QUERIES["find_procedure_owners"],
    OwnedKind.ENTITY: QUERIES["find_entity_owners"],
    OwnedKind.EDGE: QUERIES["find_edge_owners"],
    OwnedKind.SHARE: QUERIES["find_share_owners"],
    OwnedKind.RUN: QUERIES["find_run_owners"],
    OwnedKind.ERASURE: QUERIES["find_erasure_owners"],
    OwnedKind.WEBHOOK: QUERIES["find_webhook_owners"],
    OwnedKind.DISCARDED: QUERIES["find_discarded_owners"],
    OwnedKind.MEMORY: QUERIES["find_memory_owners"],
    OwnedKind.OPERATION: QUERIES["find_operation_owners"],
}


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A memory by its id.

    Args:
        whole_id: Id of the memory of which it is a part: of a passage, its document; else its own.
        scope: The workspace and namespace that it lies in.
        path: Of a file, or of the file that a passage is of.
    """

    kind: MemoryKind
    id: UUID
    whole_id: UUID
    scope: Scope
    path: str | None


class Owners(PostgresStore):
    """Reads whose things are."""

    async def find(
        self, tenant: str, kind: OwnedKind, ids: Sequence[UUID], users: Collection[str] = ()
    ) -> Mapping[UUID, Owner]:
        """Return the owners of the tenant's things by id; those that are not there are missing.

        Args:
            tenant: Whose things.
            kind: Of the things.
            ids: Of the things.
            users: Names that are tried where only the hash of one is kept.
        """
        return {
            row["id"]: Owner(row["id"], row["workspace"], row["namespace"], row["user_id"], row["agent_id"])
            for row in await self._rows(_FIND[kind], tenant=tenant, ids=list(ids), users=list(users))
        }

    async def memory(self, tenant: str, id_: UUID) -> FoundMemory:
        """Return where the memory of an id is, of whatever kind.

        Raises:
            NotFound: If the tenant has none.
        """
        rows = await read_rows(self._pool, QUERIES["find_memory_owners"], {"tenant": tenant, "ids": [id_]})
        if not rows:
            raise NotFound("memory", str(id_), "search for it and use the id of a result")
        row = rows[0]
        scope = Scope(tenant, row["workspace"], row["namespace"])
        return FoundMemory(MemoryKind(row["kind"]), id_, row["whole_id"], scope, row["path"])
