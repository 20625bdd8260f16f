"""Files of a workspace: requests and answers."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from lamina.api.documents import FileText
from lamina.api.fields import ABSENT, Output, PageOut, Strict
from lamina.core.files import MAX_MIRROR_CHARS, MAX_PATH_BYTES

# Of NFD, which may take four characters for one.
MAX_PATH_CHARS = 4 * MAX_PATH_BYTES
FilePrefix = Annotated[str, Field(max_length=MAX_PATH_CHARS)]


class FileIn(Strict):
    """A file to store."""

    content: FileText = Field(description="Its text; it may be empty.")
    always: bool = Field(default=False, description="Whether every context block of the workspace shows it.")
    mirror: Annotated[str, Field(max_length=MAX_MIRROR_CHARS)] = Field(
        ABSENT, description="Name of the folder that it mirrors, by which a watcher knows its own files."
    )


class FileOut(Output):
    """A file of a workspace."""

    id: UUID = Field(description="Id of the document that it is; it stays when the file is replaced.")
    path: str = Field(description="Its path within the workspace, in NFC.")
    content: str | None = Field(None, description="Its text as it was sent; none in lists and after a write.")
    etag: str = Field(description="SHA-256 of its text in UTF-8, in hex; the header ETag has it in quotes.")
    size: int = Field(description="Bytes of its text in UTF-8.")
    passages: int = Field(description="How many passages it is found by; none of a blank file.")
    always: bool = Field(description="Whether every context block of the workspace shows it.")
    mirror: str | None = Field(description="Name of the folder that it mirrors.")
    version: int = Field(description="1 at first, one more whenever its text or `always` changes.")
    workspace: str = Field(description="Project it belongs to.")
    namespace: str = Field(description="Subdivision of the workspace.")
    user: str | None = Field(description="Person it belongs to; none for a shared one.")
    agent: str | None = Field(description="Agent that wrote it.")
    created_at: datetime = Field(description="When it was stored first, UTC.")
    updated_at: datetime = Field(description="When it was last changed, UTC.")


class FilesOut(PageOut):
    """A page of files."""

    files: list[FileOut] = Field(description="In the order of the bytes of their paths, without their texts.")
