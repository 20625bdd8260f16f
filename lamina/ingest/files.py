"""Write the files of a workspace: documents that a path names, whose earlier texts are kept for a while."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lamina.core.documents import MAX_TITLE_CHARS, Document, FileMark, Upload
from lamina.core.files import (
    MAX_MIRROR_CHARS,
    StoredFile,
    clean_path,
    file_key,
    lines_of,
    spans_in_sent,
    text_hash,
)
from lamina.core.media_types import TEXT
from lamina.core.memories import MAX_SOURCE_CHARS
from lamina.core.preconditions import UNCONDITIONAL, Precondition
from lamina.core.scope import Scope
from lamina.errors import NotFound, TooLarge
from lamina.ingest.documents import DocumentRecorder
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.documents import Status
from lamina.stores.postgres.files import Files, keep_version, lock_file
from lamina.text.hygiene import clean, clean_text, is_blank

FILE_TAG = "workspace-file"
Allowed = Callable[[str | None], None]


@dataclass(frozen=True, slots=True)
class FileLimits:
    """How large a file may be, and how many of its earlier texts are kept.

    Args:
        max_bytes: Of its text in UTF-8.
        versions: Earlier texts of one file.
    """

    max_bytes: int
    versions: int


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file as it is sent.

    Args:
        path: Within the workspace.
        content: Its text; it may be empty.
        is_always: Whether every context block shows it.
        mirror: Name of the folder that it mirrors.
    """

    path: str
    content: str
    is_always: bool = False
    mirror: str | None = None


class FileRecorder:
    """Writes files of a workspace.

    Args:
        documents: Stores the documents that they are.
        files: Reads them.
        limits: What is accepted and kept.
    """

    def __init__(self, documents: DocumentRecorder, files: Files, limits: FileLimits) -> None:
        self._documents = documents
        self._files = files
        self._limits = limits

    async def put(
        self,
        scope: Scope,
        sent: SentFile,
        condition: Precondition = UNCONDITIONAL,
        *,
        witness: str | None = None,
        allowed: Allowed | None = None,
    ) -> tuple[StoredFile, Status]:
        """Store a file in place of the one of its path; return it without its text.

        Args:
            scope: Where it belongs.
            sent: The file.
            condition: The state of the file on which the caller insists.
            witness: Who vouches for it.
            allowed: Refuses to change a file of this agent.

        Raises:
            InvalidInput: Naming the field.
            TooLarge: If it has more bytes than a file may have.
            PreconditionFailed: If the file is in another state.
        """
        document = await self._read(scope.tenant, sent)
        mark = document.file
        assert mark is not None  # noqa: S101 - it was made so

        async def prepare(connection: Connection) -> None:
            stored = await lock_file(connection, scope, mark.path)
            condition.check(f"file {mark.path}", None if stored is None else stored.etag)
            if stored is not None:
                if allowed is not None and stored.etag != mark.text_hash.hex():
                    allowed(stored.agent)
                await keep_version(connection, stored.id, mark, self._limits.versions)

        recorded = await self._documents.put(scope, [document], witness=witness, before=prepare)
        return await self._files.get(scope, mark.path, with_content=False), recorded.documents[0].status

    async def delete(
        self, scope: Scope, path: str, condition: Precondition = UNCONDITIONAL, *, allowed: Allowed | None = None
    ) -> None:
        """Delete a file with its earlier texts; its passages leave every index.

        Raises:
            NotFound: If there is no such file.
            PreconditionFailed: If the file is in another state.
        """
        path = clean_path(path)
        found = await self._files.get(scope, path, with_content=False)

        async def prepare(connection: Connection) -> None:
            stored = await lock_file(connection, scope, path)
            if stored is None:
                raise NotFound("file", path)
            condition.check(f"file {path}", stored.etag)
            if allowed is not None:
                allowed(stored.agent)

        await self._documents.delete(scope.tenant, found.id, before=prepare)

    async def _read(self, tenant: str, sent: SentFile) -> Document:
        path, content = clean_path(sent.path), clean(sent.content, "content", limit=len(sent.content))
        mirror = None if sent.mirror is None else clean_text(sent.mirror, "mirror", limit=MAX_MIRROR_CHARS)
        size = len(content.encode())
        if size > self._limits.max_bytes:
            most = self._limits.max_bytes
            raise TooLarge(
                "content", f"has {size} bytes; at most {most} (files.max_bytes) are accepted, split the file"
            )
        title = path[-MAX_TITLE_CHARS:]
        source = f"file:{path}"[:MAX_SOURCE_CHARS]
        plain = Document(file_key(path), title, TEXT, content, (), (FILE_TAG,), source=source)
        if not is_blank(content):
            read = await self._documents.read(tenant, Upload(content, TEXT, title=title))
            plain = replace(plain, passages=spans_in_sent(content, read.content, read.passages))
        lines = lines_of(content, plain.passages)
        return replace(plain, file=FileMark(path, text_hash(content), sent.is_always, mirror, lines))
