"""Files of workspaces: documents with a path, and the earlier texts of each."""

from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.documents import FileMark
from lamina.core.files import ShownFile, StoredFile, file_key
from lamina.core.paging import Page
from lamina.core.scope import Scope
from lamina.errors import NotFound
from lamina.stores.postgres.connection import Connection, read_rows, scope_parameters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("files.sql")

MOST_SHOWN = 100
MOST_BYTES_OF_TOKEN = 16
"""A token of English has 5 bytes, of Chinese 3; code and tables have many blanks, which count nothing."""
MOST_READ = 4
"""Of as many texts of the largest length the bytes are read, for some of them turn out not to fit."""


@dataclass(frozen=True, slots=True)
class LockedFile:
    """A file that is locked against other writers until the transaction ends."""

    id: UUID
    agent: str | None
    etag: str


async def lock_file(connection: Connection, scope: Scope, path: str) -> LockedFile | None:
    """Lock the path of a file until the transaction ends; return the file that is there, if any."""
    parameters = scope_parameters(scope) | {"path": path, "key": file_key(path)}
    await connection.execute(QUERIES["lock_file"], parameters)
    row = await (await connection.execute(QUERIES["find_file"], parameters)).fetchone()
    return None if row is None else LockedFile(row["id"], row["agent_id"], row["etag"])


async def keep_version(connection: Connection, id_: UUID, mark: FileMark, versions: int) -> None:
    """Keep the text of a file that another one is about to replace.

    Args:
        connection: Inside the transaction.
        id_: The file.
        mark: Of the new one; an equal one replaces nothing.
        versions: Most earlier texts of a file.
    """
    parameters = {"id": id_, "text_hash": mark.text_hash, "is_always": mark.is_always, "versions": versions}
    await connection.execute(QUERIES["keep_version"], parameters)


class Files(PostgresStore):
    """Reads files of workspaces: of a user those of that user alone, without a user the shared ones."""

    async def get(self, scope: Scope, path: str, *, with_content: bool = True) -> StoredFile:
        """Return a file.

        Raises:
            NotFound: If there is none of this path.
        """
        parameters = scope_parameters(scope) | {"key": file_key(path), "with_content": with_content}
        rows = await read_rows(self._pool, QUERIES["get_file"], parameters)
        if not rows:
            raise NotFound("file", path)
        return _stored(rows[0])

    async def version(self, scope: Scope, path: str, version: int) -> tuple[str, str]:
        """Return the text of an earlier version, and its ETag.

        Raises:
            NotFound: If it was never there, or is kept no more.
        """
        parameters = scope_parameters(scope) | {"key": file_key(path), "version": version}
        rows = await read_rows(self._pool, QUERIES["get_version"], parameters)
        if not rows:
            raise NotFound(f"version {version} of file", path)
        return rows[0]["content"], rows[0]["etag"]

    async def page(self, scope: Scope, prefix: str, page: Page, *, mirror: str | None = None) -> list[StoredFile]:
        """Return files without their texts, in the order of their paths.

        Args:
            scope: Where they are.
            prefix: Beginning of their paths.
            page: Of the list.
            mirror: Only those that mirror this folder.
        """
        parameters = {"prefix": prefix, "mirror": mirror, **page.parameters("path")}
        rows = await read_rows(self._pool, QUERIES["list_files"], scope_parameters(scope) | parameters)
        return [_stored(row) for row in rows]

    async def always(self, scope: Scope, most_tokens: int) -> list[ShownFile]:
        """Return the files that every context block of the scope shows, the shared ones first, at most a hundred.

        Args:
            scope: Where they are.
            most_tokens: Of all that are shown; what cannot fit comes without its text.
        """
        most_bytes = most_tokens * MOST_BYTES_OF_TOKEN
        bounds = {"limit": MOST_SHOWN, "most_each": most_bytes, "most_together": most_bytes * MOST_READ}
        rows = await read_rows(self._pool, QUERIES["list_always"], scope_parameters(scope) | bounds)
        return [ShownFile(row["id"], row["path"], row["content"], row["user_id"]) for row in rows]


def _stored(row: DictRow) -> StoredFile:
    fields = {name: row[name] for name in row if name not in ("user_id", "agent_id")}
    return StoredFile(user=row["user_id"], agent=row["agent_id"], **fields)
