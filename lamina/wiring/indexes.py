"""The indexes of words and vectors that the settings choose: in this process, or on servers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, assert_never
from uuid import uuid4

from lamina.core.ports import Inventory, Projection, Searcher
from lamina.core.tiers import PROJECTIONS, ProjectionName, Source
from lamina.errors import Unavailable
from lamina.settings import (
    EmbeddedFalkorDBSettings,
    FalkorDBServerSettings,
    GraphSettings,
    HybridSettings,
    MeilisearchSettings,
    Neo4jServerSettings,
    NoGraphSettings,
    QdrantEdgeSettings,
    QdrantServerSettings,
    SearchSettings,
    Settings,
    VectorSettings,
)
from lamina.stores.index.cold.edge import ColdIndex
from lamina.stores.index.edge.builds import EmbeddedHybridIndex, EmbeddedIndex
from lamina.stores.index.edge.shard import QdrantEdgeIndex
from lamina.stores.index.ports import HybridIndex, Lookup, VectorIndex, WordIndex
from lamina.stores.index.searchers import Hybrid, SessionWords
from lamina.stores.postgres.generations import Generation

logger = logging.getLogger(__name__)


class SearchedIndex(HybridIndex, WordIndex, Protocol):
    """An index that sources of search stand on."""


class KeptProjection(Projection[Any], Inventory, Protocol):
    """A projection that can be fed and audited."""


class ColdProjection(KeptProjection, VectorIndex, Protocol):
    """The cold index: a projection that finds by vectors."""


Index_co = TypeVar("Index_co", bound=KeptProjection, covariant=True)
ServerT = TypeVar("ServerT", bound="Server")
IDENTITY = "identity"
SearchedBy = Callable[[Source, Lookup], Searcher]


async def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class BuiltIndex(Generic[Index_co]):
    """An index, and what goes with it.

    Args:
        projection: The index.
        is_new: Whether it is empty: Postgres has what belongs in it.
        close: Releases the files that it has open.
        aclose: Releases its connections.
    """

    projection: Index_co
    is_new: bool
    close: Callable[[], None] = lambda: None
    aclose: Callable[[], Awaitable[None]] = nothing


@dataclass(frozen=True, slots=True)
class BuiltHybrid:
    """An index by words, and what searches it.

    Args:
        index: The index, and what goes with it.
        searched_by: Returns the source of search over it, given its name and what reads the memories found.
    """

    index: BuiltIndex[KeptProjection]
    searched_by: SearchedBy


class Server(KeptProjection, Protocol):
    """An index on a server."""

    async def prepare(self) -> bool:
        """Make what is missing on the server; tell whether the index is empty."""
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...


class HybridServer(Server, SearchedIndex, Protocol):
    """An index by words on a server."""


def build_index(
    settings: Settings,
    name: ProjectionName,
    dimension: int | None,
    *,
    by_session: bool = False,
    generation: Generation | None = None,
) -> BuiltHybrid:
    """Build a projection's index; an embedded one opens in this process and nowhere else."""
    match settings.hybrid:
        case QdrantEdgeSettings(search_threads=threads):
            open_at = partial(QdrantEdgeIndex, dimension=dimension, by_session=by_session, search_threads=threads)
            path = index_path(settings, name, generation)
            identify(path.parent)
            return _embedded(open_at, path, settings.search)
        case QdrantServerSettings() as chosen:
            from lamina.stores.index.qdrant.index import QdrantIndex  # noqa: PLC0415 - installed where it is chosen

            place = index_name(chosen.prefix, name, generation)
            make = partial(QdrantIndex, chosen, place, dimension=dimension, by_session=by_session)
            return _on_server(make, settings.search)
        case MeilisearchSettings() as chosen:
            from lamina.stores.index.meilisearch.index import MeilisearchIndex  # noqa: PLC0415 - installed where it is chosen

            place = index_name(chosen.prefix, name, generation)
            open_index = partial(MeilisearchIndex, chosen, place, dimension=dimension, by_session=by_session)
            return _on_server(open_index, settings.search)
        case _ as other:
            assert_never(other)


def _embedded(open_at: Callable[[Path], QdrantEdgeIndex], path: Path, limits: SearchSettings) -> BuiltHybrid:
    index = EmbeddedHybridIndex(path, open_at)
    kept: KeptProjection = index
    return BuiltHybrid(
        BuiltIndex(kept, index.current.is_new, index.close), partial(_over_words, index, limits.min_similarity)
    )


def _on_server(make: Callable[[], HybridServer], limits: SearchSettings) -> BuiltHybrid:
    is_empty = is_new(make)
    index = make()
    kept: KeptProjection = index
    built = BuiltIndex(kept, is_empty, aclose=index.close)
    return BuiltHybrid(built, partial(_over_words, index, limits.min_similarity))


def build_cold_index(
    settings: Settings, dimension: int, generation: Generation | None = None
) -> BuiltIndex[ColdProjection]:
    """Build the index of cold notes; an embedded one opens in this process and nowhere else."""
    layout = settings.cold.collections
    match settings.vectors:
        case QdrantEdgeSettings(search_threads=threads):
            open_at = partial(
                ColdIndex,
                dimension=dimension,
                layout=layout,
                max_open=settings.cold.max_open,
                search_threads=threads,
            )
            path = index_path(settings, "cold", generation)
            identify(path.parent)
            embedded = EmbeddedIndex(path, open_at)
            return BuiltIndex(embedded, embedded.current.is_new, embedded.close)
        case QdrantServerSettings() as chosen:
            from lamina.stores.index.cold.qdrant import QdrantColdIndex  # noqa: PLC0415 - installed where chosen

            place = _server_name(chosen.prefix, "cold", generation, settings)
            make = partial(QdrantColdIndex, chosen, place, dimension=dimension, layout=layout)
            is_empty = is_new(make)
            qdrant = make()
            return BuiltIndex(qdrant, is_empty, aclose=qdrant.close)
        case _ as other:
            assert_never(other)


def _server_name(prefix: str, name: ProjectionName, generation: Generation | None, settings: Settings) -> str:
    """Return what collections are called on a Qdrant server; those of another layout have other names."""
    is_other = name == "cold" and settings.cold.collections == "shared"
    return index_name(prefix, name, generation) + ("_shared" if is_other else "")


def index_path(settings: Settings, name: ProjectionName, generation: Generation | None = None) -> Path:
    """Return where an embedded index lies; each generation of vectors has one of its own, which begins empty."""
    return settings.data_dir.resolve() / "edge" / index_name("", name, generation).removeprefix("_")


def index_name(prefix: str, name: ProjectionName, generation: Generation | None = None) -> str:
    """Return what an index is called on a server; each generation of vectors has one of its own, which begins empty."""
    return f"{prefix}_{name}{generation.suffix if generation else ''}"


def is_new(make: Callable[[], ServerT]) -> bool:
    """Tell whether a server's index is empty, after making what is missing; blocks.

    One that does not answer counts as empty: to apply everything again costs time, to miss something costs answers.

    Raises:
        Misconfigured: If the server refuses the key, is too old, or holds other vectors under this name.
    """

    async def ask() -> bool:
        server = make()  # Of its own: connections belong to the event loop that uses them.
        try:
            return await server.prepare()
        except Unavailable as error:
            logger.warning("the index is filled again: %s", error)
            return True
        finally:
            await server.close()

    return at_once(ask)


def at_once(ask: Callable[[], Awaitable[bool]]) -> bool:
    """Return the answer, whether or not the caller's thread has a loop of its own."""

    async def asked() -> bool:
        return await ask()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(asked())).result()


def _over_words(index: SearchedIndex, floor: float, source: Source, lookup: Lookup) -> Searcher:
    if source is Source.SESSION_WORDS:
        return SessionWords(index, lookup)
    return Hybrid(source, index, lookup, min_similarity=floor)


def store_of(settings: Settings, name: ProjectionName, generation: Generation | None = None) -> str:
    """Return where the settings keep a projection, without secrets: whoever reads another place has missed changes."""
    match chosen_for(settings, name):
        case QdrantEdgeSettings(kind=kind):
            place = index_path(settings, name, generation)
            return f"{kind} {identity_of(place.parent)} {place}"
        case EmbeddedFalkorDBSettings(kind=kind) | NoGraphSettings(kind=kind):
            return kind
        case Neo4jServerSettings(kind=kind, url=url, database=database):
            return f"{kind} {shown(url)} {database}"
        case FalkorDBServerSettings(kind=kind, url=url):
            return f"{kind} {shown(url)}"
        case QdrantServerSettings(kind=kind, url=url, prefix=prefix):
            return f"{kind} {shown(url)} {_server_name(prefix, name, generation, settings)}"
        case MeilisearchSettings(kind=kind, url=url, prefix=prefix):
            return f"{kind} {shown(url)} {index_name(prefix, name, generation)}"
        case _ as other:
            assert_never(other)


def shown(url: str) -> str:
    """Return a URL without what may be secret: who connects, and the query."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return url
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"


def identity_of(folder: Path) -> str:
    """Return what tells a folder of indexes from another one of the same path, on another machine or made anew."""
    try:
        return (folder / IDENTITY).read_text()
    except (FileNotFoundError, NotADirectoryError):
        return "new"


def identify(folder: Path) -> None:
    """Give a folder of indexes its identity, if it has none."""
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), (folder / IDENTITY).open("x") as file:
        file.write(uuid4().hex)


def chosen_for(settings: Settings, name: ProjectionName) -> HybridSettings | VectorSettings | GraphSettings:
    """Return the section of the settings that says where a projection is kept."""
    chosen: HybridSettings | VectorSettings | GraphSettings = getattr(settings, PROJECTIONS[name].store)
    return chosen
