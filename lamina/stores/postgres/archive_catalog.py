"""Notes that are in a file of the archive, and in no other table: where each is, and how rows leave and come back."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.memories import RestoreStatus
from lamina.core.scope import Scope
from lamina.errors import Misconfigured
from lamina.stores.postgres.connection import Connection, Pool, connect, scope_parameters
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("archive_catalog.sql")


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    """Where an archived note is.

    Args:
        file: The name under which the archive has it.
        run: The run that archived it, as long as that can be undone.
        archived_at: The time from which that run decided, in UTC.
    """

    id: UUID
    tenant: str
    workspace: str
    namespace: str
    user: str | None
    file: str
    run: UUID | None
    archived_at: datetime

    def scope(self) -> Scope:
        """Return the namespace that it belongs to."""
        return Scope(self.tenant, self.workspace, self.namespace)


@dataclass(frozen=True, slots=True)
class ArchiveFolder:
    """Where the archive has the files of a scope.

    Args:
        database: Which database's files these are. A copy of a database has its id: give it an archive of its own.
        scope: A namespace.
        is_begun: Whether it was given any file; before, there is no such folder.
    """

    database: UUID
    scope: Scope
    is_begun: bool


@dataclass(frozen=True, slots=True)
class RestoreOutcome:
    """What became of one note.

    Args:
        lacks_vectors: Whether it came back without vectors of the active generation: no search finds it by meaning
            until it is embedded again.
        error: Why it could not be read.
    """

    id: UUID
    status: RestoreStatus
    lacks_vectors: bool = False
    error: str | None = None


class ArchiveCatalog:
    """Tells what is archived.

    Args:
        pool: Connections to Postgres.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def page(self, scope: Scope, *, limit: int, offset: int) -> list[ArchivedEntry]:
        """Return archived notes of the scope's namespace, in the order of their ids."""
        parameters = scope_parameters(scope) | {"limit": limit, "offset": offset}
        async with connect(self._pool) as connection:
            return await _entries(connection, QUERIES["archived_page"], parameters)

    async def find(self, tenant: str, ids: Sequence[UUID]) -> list[ArchivedEntry]:
        """Return those of these notes that are archived."""
        async with connect(self._pool) as connection:
            return await find_entries(connection, tenant, ids)

    async def of_user(self, tenant: str, user: str, *, but: Collection[str] = ()) -> list[ArchivedEntry]:
        """Return archived notes of a user, in any namespace: those of one file that is none of some."""
        parameters = {"tenant": tenant, "user_id": user, "but": list(but)}
        async with connect(self._pool) as connection:
            return await _entries(connection, QUERIES["archived_of_user"], parameters)

    async def folders(self, tenant: str) -> list[ArchiveFolder]:
        """Return every folder that has, or had, files of a tenant."""
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["archive_folders"], {"tenant": tenant})
            return [
                ArchiveFolder(row["id"], Scope(tenant, row["workspace"], row["namespace"]), is_begun=True)
                async for row in cursor
            ]


async def lock_folder(connection: Connection, file: str) -> None:
    """Keep others from writing files of the same folder until the transaction ends; look at the rows afterwards."""
    await connection.execute(QUERIES["archived_lock"], {"folder": file.rpartition("/")[0]})


async def find_folder(connection: Connection, scope: Scope) -> ArchiveFolder:
    """Return the folder of a scope's namespace."""
    row = await (await connection.execute(QUERIES["archive_folder"], scope_parameters(scope))).fetchone()
    if row is None:
        raise Misconfigured("archive_identity has no row", "insert one, with the first part of archived_notes.file")
    return ArchiveFolder(row["id"], scope, row["is_begun"])


async def begin_folder(connection: Connection, scope: Scope) -> None:
    """Note that the archive is given files of a scope; it must be durable before the first of them."""
    await connection.execute(QUERIES["archive_begin_folder"], scope_parameters(scope))


async def count_by_file(connection: Connection, scope: Scope) -> Mapping[str, int]:
    """Return how many notes of the scope's namespace are archived in each file."""
    cursor = await connection.execute(QUERIES["archived_counts"], scope_parameters(scope))
    return {row["file"]: row["notes"] async for row in cursor}


async def find_entries(connection: Connection, tenant: str, ids: Sequence[UUID]) -> list[ArchivedEntry]:
    """Return those of a tenant's notes that are archived."""
    return await _entries(connection, QUERIES["archived_known"], {"tenant": tenant, "ids": list(ids)})


async def list_file(connection: Connection, file: str) -> list[ArchivedEntry]:
    """Return what is archived in a file."""
    return await _entries(connection, QUERIES["archived_in_file"], {"file": file})


async def find_file_of_run(connection: Connection, run: UUID, *, but: Collection[str] = ()) -> str | None:
    """Return a file that a run wrote and of which something is still archived; none of some."""
    parameters = {"run_id": run, "but": list(but)}
    row = await (await connection.execute(QUERIES["archived_file_of_run"], parameters)).fetchone()
    return row["file"] if row else None


async def detach_from_run(connection: Connection, ids: Sequence[UUID]) -> None:
    """Have archived notes stay when their run is undone."""
    await connection.execute(QUERIES["archived_leave_run"], {"ids": list(ids)})


async def delete_entries(connection: Connection, ids: Sequence[UUID]) -> None:
    """Have notes be archived no more."""
    await connection.execute(QUERIES["archived_delete"], {"ids": list(ids)})


async def _entries(connection: Connection, query: bytes, parameters: Mapping[str, Any]) -> list[ArchivedEntry]:
    cursor = await connection.execute(query, parameters)
    return [_entry(row) async for row in cursor]


def _entry(row: DictRow) -> ArchivedEntry:
    return ArchivedEntry(
        id=row["id"],
        tenant=row["tenant"],
        workspace=row["workspace"],
        namespace=row["namespace"],
        user=row["user_id"],
        file=row["file"],
        run=row["run_id"],
        archived_at=row["archived_at"],
    )
