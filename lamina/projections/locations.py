"""The places where the settings keep projections."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import assert_never
from uuid import uuid4

from lamina.core.tiers import ProjectionName
from lamina.host.private_files import make_private, private_opener
from lamina.settings.loading import Settings, store_settings
from lamina.settings.stores import (
    EmbeddedFalkorDBSettings,
    FalkorDBServerSettings,
    MeilisearchSettings,
    Neo4jServerSettings,
    NoGraphSettings,
    QdrantEdgeSettings,
    QdrantServerSettings,
)
from lamina.stores.postgres.generations import Generation

IDENTITY = "identity"
INSTALLATION = "installation"


def index_path(settings: Settings, projection: ProjectionName, generation: Generation | None = None) -> Path:
    """Return the folder of an embedded index; each generation of vectors has its own, which begins empty."""
    return settings.data_dir.resolve() / "edge" / index_name("", projection, generation).removeprefix("_")


def index_name(prefix: str, projection: ProjectionName, generation: Generation | None = None) -> str:
    """Return the name of an index on a server; each generation of vectors has its own, which begins empty."""
    return f"{prefix}_{projection}{generation.suffix if generation else ''}"


def collection_name(
    settings: Settings, prefix: str, projection: ProjectionName, generation: Generation | None = None
) -> str:
    """Return the name of an index on a Qdrant server; cold notes otherwise than by default have another one."""
    is_usual = projection != "cold" or settings.cold.collections == "per_namespace"
    return index_name(prefix, projection, generation) + ("" if is_usual else f"_{settings.cold.collections}")


def location_of(settings: Settings, projection: ProjectionName, generation: Generation | None = None) -> str:
    """Describe the place of a projection without secrets; a store in another place has missed changes."""
    match store_settings(settings, projection):
        case QdrantEdgeSettings(kind=kind):
            path = index_path(settings, projection, generation)
            return f"{kind} {folder_identity(path.parent)} {path}"
        case EmbeddedFalkorDBSettings(kind=kind) | NoGraphSettings(kind=kind):
            return kind
        case Neo4jServerSettings(kind=kind, url=url, database=database):
            return f"{kind} {without_secrets(url)} {database}"
        case FalkorDBServerSettings(kind=kind, url=url):
            return f"{kind} {without_secrets(url)}"
        case QdrantServerSettings(kind=kind, url=url, prefix=prefix):
            return f"{kind} {without_secrets(url)} {collection_name(settings, prefix, projection, generation)}"
        case MeilisearchSettings(kind=kind, url=url, prefix=prefix):
            return f"{kind} {without_secrets(url)} {index_name(prefix, projection, generation)}"
        case _ as other:
            assert_never(other)


def without_secrets(url: str) -> str:
    """Return a URL without its user, password and query."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}" if mark else url


def folder_identity(folder: Path) -> str:
    """Return the identity of a folder of indexes, which one of the same path on another machine does not have."""
    try:
        return (folder / IDENTITY).read_text()
    except (FileNotFoundError, NotADirectoryError):
        return "new"


def identify_folder(folder: Path) -> None:
    """Give a folder of indexes an identity, if it has none."""
    make_private(folder)
    with suppress(FileExistsError), open(folder / IDENTITY, "x", opener=private_opener) as file:
        file.write(uuid4().hex)


class OwnedFolder:
    """The folder of the embedded indexes, which tells whose it is, and how far one of them was applied.

    Args:
        folder: The folder.
        index: Name of the index there.
    """

    def __init__(self, folder: Path, index: str = "") -> None:
        self._file = folder / INSTALLATION
        self._mark = folder / f"{index}.mark"

    async def installation(self) -> str | None:
        """Return the identity of the installation that the folder belongs to."""
        return await asyncio.to_thread(_read, self._file)

    async def belong_to(self, installation: str) -> None:
        """Have the folder belong to an installation from now on."""
        await asyncio.to_thread(_write, self._file, installation)

    async def mark(self) -> int:
        """Return the number of the index's last flush; 0 if there is none."""
        return int(await asyncio.to_thread(_read, self._mark) or 0)

    async def set_mark(self, mark: int) -> None:
        """Keep the number of a flush."""
        await asyncio.to_thread(_write, self._mark, str(mark))

    async def close(self) -> None:
        """Return at once: nothing is open."""


def _read(file: Path) -> str | None:
    try:
        return file.read_text() or None
    except FileNotFoundError:
        return None


def _write(file: Path, text: str) -> None:
    make_private(file.parent)
    # Beside it first: a full disk or a crash would leave a file without its text.
    whole = file.with_name(f"{file.name}.new")
    with open(whole, "w", opener=private_opener) as opened:
        opened.write(text)
    whole.replace(file)
