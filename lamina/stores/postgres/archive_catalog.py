"""The catalog of archived notes: the file of each. An archived note is in no other table."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from lamina.core.memories import RestoreStatus
from lamina.core.paging import Page
from lamina.core.scope import Scope
from lamina.errors import Misconfigured
from lamina.stores.postgres.connection import Connection, connect, scope_parameters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("archive_catalog.sql")


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    """The place of an archived note.

    Args:
        session: Its session, as it is called now; empty for none, ``None`` if its file alone says it.
        file: Name of its file in the archive.
        run: The run that archived it, as long as that can be undone.
        archived_at: The time for which that run decided, in UTC.
        is_corrected: Whether the message that it was drawn from says something else by now.
    """

    id: UUID
    tenant: str
    workspace: str
    namespace: str
    user: str | None
    session: str | None
    file: str
    run: UUID | None
    archived_at: datetime
    is_corrected: bool = False

    def scope(self) -> Scope:
        """Return the namespace of the note."""
        return Scope(self.tenant, self.workspace, self.namespace)


@dataclass(frozen=True, slots=True)
class ArchiveFolder:
    """The folder with the files of a namespace.

    Args:
        database: Id of the database. A copy of a database has the same: give it an archive of its own.
        scope: A namespace.
        is_begun: Whether the folder exists: it is made with its first file.
    """

    database: UUID
    scope: Scope
    is_begun: bool


@dataclass(frozen=True, slots=True)
class RestoreOutcome:
    """The outcome of restoring one note.

    Args:
        lacks_vectors: Whether it came back without vectors of the active generation: no search finds it by meaning
            until it is embedded again.
        error: Why it could not be read.
    """

    id: UUID
    status: RestoreStatus
    lacks_vectors: bool = False
    error: str | None = None


class ArchiveCatalog(PostgresStore):
    """Lists archived notes and folders."""

    async def page(self, scope: Scope, page: Page) -> list[ArchivedEntry]:
        """Return archived notes of a namespace, by id."""
        parameters = scope_parameters(scope) | page.parameters("id")
        async with connect(self._pool) as connection:
            return await _entries(connection, QUERIES["list_archived"], parameters)

    async def find(self, tenant: str, ids: Sequence[UUID]) -> list[ArchivedEntry]:
        """Return the entries of those of these notes that are archived."""
        async with connect(self._pool) as connection:
            return await find_entries(connection, tenant, ids)

    async def find_of_user(self, tenant: str, user: str, *, but: Collection[str] = ()) -> list[ArchivedEntry]:
        """Return archived notes of a user, in any namespace: those of one file, but not of these."""
        parameters = {"tenant": tenant, "user_id": user, "but": list(but)}
        async with connect(self._pool) as connection:
            return await _entries(connection, QUERIES["find_archived_of_user"], parameters)

    async def folders(self, tenant: str) -> list[ArchiveFolder]:
        """Return every folder of a tenant, also those without files by now."""
        return [
            ArchiveFolder(row["id"], Scope(tenant, row["workspace"], row["namespace"]), is_begun=True)
            for row in await self._rows(QUERIES["list_archive_folders"], tenant=tenant)
        ]


async def lock_folder(connection: Connection, file: str) -> None:
    """Lock the folder of a file against other writers until the transaction ends; read its rows afterwards."""
    # One folder is one scope, and its lock is also that of all files in it.
    await connection.execute(QUERIES["lock_archive_folder"], {"folder": file.rpartition("/")[0]})


async def find_folder(connection: Connection, scope: Scope) -> ArchiveFolder:
    """Return the folder of a namespace."""
    row = await (await connection.execute(QUERIES["find_archive_folder"], scope_parameters(scope))).fetchone()
    if row is None:
        raise Misconfigured("archive_identity has no row", "insert one, with the first part of archived_notes.file")
    return ArchiveFolder(row["id"], scope, row["is_begun"])


async def begin_folder(connection: Connection, scope: Scope) -> None:
    """Record that a namespace has a folder; commit this before its first file is written."""
    await connection.execute(QUERIES["begin_archive_folder"], scope_parameters(scope))


async def end_folder(connection: Connection, scope: Scope) -> None:
    """Forget the folder of a namespace, which is locked and empty."""
    await connection.execute(QUERIES["end_archive_folder"], scope_parameters(scope))


async def count_by_file(connection: Connection, scope: Scope) -> Mapping[str, int]:
    """Count the archived notes of a namespace by file."""
    cursor = await connection.execute(QUERIES["count_archived"], scope_parameters(scope))
    return {row["file"]: row["notes"] async for row in cursor}


async def find_entries(connection: Connection, tenant: str, ids: Sequence[UUID]) -> list[ArchivedEntry]:
    """Return the entries of those of a tenant's notes that are archived."""
    return await _entries(connection, QUERIES["find_archived"], {"tenant": tenant, "ids": list(ids)})


async def list_file(connection: Connection, file: str) -> list[ArchivedEntry]:
    """Return the entries of a file."""
    return await _entries(connection, QUERIES["list_archived_file"], {"file": file})


async def find_file_of_run(connection: Connection, run: UUID, *, but: Collection[str] = ()) -> str | None:
    """Return a file that a run wrote and that still has entries, but none of these; ``None`` after the last."""
    parameters = {"run_id": run, "but": list(but)}
    row = await (await connection.execute(QUERIES["find_file_of_run"], parameters)).fetchone()
    return row["file"] if row else None


async def detach_from_run(connection: Connection, ids: Sequence[UUID]) -> None:
    """Detach entries from the run that archived them: its undo leaves them archived."""
    await connection.execute(QUERIES["detach_from_run"], {"ids": list(ids)})


async def mark_corrected(
    connection: Connection, scope: Scope, source: str, stated: Collection[bytes], now: datetime
) -> list[UUID]:
    """Mark the archived notes that were drawn from a message, as it says something else; return them.

    Args:
        connection: Inside the transaction that corrects it.
        scope: Of the message.
        source: The message.
        stated: Hashes of the texts of notes that it states now.
        now: The time of day.
    """
    parameters = {**scope_parameters(scope), "source": source, "hashes": list(stated), "now": now}
    return [row["id"] async for row in await connection.execute(QUERIES["mark_corrected"], parameters)]


async def delete_entries(connection: Connection, ids: Sequence[UUID]) -> None:
    """Delete entries of the catalog."""
    await connection.execute(QUERIES["delete_archived"], {"ids": list(ids)})


async def _entries(connection: Connection, query: bytes, parameters: Mapping[str, Any]) -> list[ArchivedEntry]:
    cursor = await connection.execute(query, parameters)
    return [
        ArchivedEntry(
            id=row["id"],
            tenant=row["tenant"],
            workspace=row["workspace"],
            namespace=row["namespace"],
            user=row["user_id"],
            session=row["session_id"],
            file=row["file"],
            run=row["run_id"],
            archived_at=row["archived_at"],
            is_corrected=row["is_corrected"],
        )
        async for row in cursor
    ]
