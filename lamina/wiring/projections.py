"""The stores of projections that the settings choose: in this process, or on servers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, assert_never

from lamina.core.ports import AuditableProjection, Identified, Marked
from lamina.core.tiers import PROJECTIONS, ProjectionName
from lamina.errors import Misconfigured
from lamina.host.extras import needing
from lamina.projections.locations import OwnedFolder, collection_name, identify_folder, index_name, index_path
from lamina.projections.ownership import IdentifiedStore, ServerStore, is_new_store
from lamina.settings.loading import Settings
from lamina.settings.stores import (
    IN_MEMORY,
    EmbeddedFalkorDBSettings,
    FalkorDBServerSettings,
    MeilisearchSettings,
    Neo4jServerSettings,
    NoGraphSettings,
    QdrantEdgeSettings,
    QdrantServerSettings,
)
from lamina.stores.graph.store import CypherGraph
from lamina.stores.index.cold.edge import ColdIndex
from lamina.stores.index.edge.builds import EmbeddedHybridIndex, EmbeddedIndex
from lamina.stores.index.edge.shard import QdrantEdgeIndex
from lamina.stores.index.ports import HybridIndex, VectorIndex, WordIndex
from lamina.stores.postgres.generations import Generation


class SearchedIndex(AuditableProjection[Any], HybridIndex, WordIndex, Protocol):
    """An index by words, and by vectors if it has any, as a projection."""


class ColdProjection(AuditableProjection[Any], VectorIndex, Protocol):
    """The cold index as a projection."""


class KeptStore(Identified, Marked, Protocol):
    """Keeps the owner of a store and the number of its last flush."""


class ServerProjection(AuditableProjection[Any], ServerStore, Marked, Protocol):
    """A projection on a server."""


Store_co = TypeVar("Store_co", bound=AuditableProjection[Any], covariant=True)
ServerT = TypeVar("ServerT", bound=ServerProjection)


async def release_nothing() -> None:
    """Return at once."""


@dataclass(frozen=True, slots=True)
class BuiltProjection(Generic[Store_co]):
    """The store of a projection, and how it is released.

    Args:
        store: The store.
        is_new: Whether it is empty: Postgres has its content.
        close: Releases the files that it has open.
        connect: Connects anew, in any event loop, to ask whose the store is.
        keeper: Keeps whose the store is, and the number of its last flush.
        aclose: Releases its connections.
    """

    store: Store_co
    is_new: bool
    connect: Callable[[], IdentifiedStore]
    keeper: KeptStore
    close: Callable[[], None] = lambda: None
    aclose: Callable[[], Awaitable[None]] = release_nothing


def build_projection(
    settings: Settings, projection: ProjectionName, generation: Generation
) -> BuiltProjection[AuditableProjection[Any]]:
    """Build the store of any projection."""
    match PROJECTIONS[projection].store:
        case "hybrid":
            return build_hybrid_index(settings, projection, generation)
        case "vectors":
            return build_cold_index(settings, projection, generation)
        case "graph":
            return build_graph(settings)
        case _ as other:
            assert_never(other)


def build_hybrid_index(
    settings: Settings, projection: ProjectionName, generation: Generation
) -> BuiltProjection[SearchedIndex]:
    """Build an index by words, and by vectors if it has any; an embedded one opens in this process alone."""
    spec = PROJECTIONS[projection]
    dimension = generation.identity.dimension if spec.has_vectors else None
    options: dict[str, Any] = {"dimension": dimension, "by_session": spec.by_session}
    match settings.hybrid:
        case QdrantEdgeSettings(search_threads=threads):
            path = index_path(settings, projection, generation)
            identify_folder(path.parent)
            index = EmbeddedHybridIndex(path, partial(QdrantEdgeIndex, search_threads=threads, **options))
            folder = partial(OwnedFolder, path.parent, path.name)
            return BuiltProjection(index, index.current.is_new, folder, folder(), index.close)
        case QdrantServerSettings() as chosen:
            with needing("qdrant", "hybrid.kind is qdrant"):
                from lamina.stores.index.qdrant.index import QdrantIndex  # noqa: PLC0415 - installed where it is chosen
            name = index_name(chosen.prefix, projection, generation)
            return _on_server(partial(QdrantIndex, chosen, name, **options), _folder_of(chosen))
        case MeilisearchSettings() as chosen:
            with needing("meilisearch", "hybrid.kind is meilisearch"):
                from lamina.stores.index.meilisearch.index import MeilisearchIndex  # noqa: PLC0415 - the same
            name = index_name(chosen.prefix, projection, generation)
            return _on_server(partial(MeilisearchIndex, chosen, name, **options))
        case _ as other:
            assert_never(other)


def build_cold_index(
    settings: Settings, projection: ProjectionName, generation: Generation
) -> BuiltProjection[ColdProjection]:
    """Build the index of cold notes by vectors alone; an embedded one opens in this process alone."""
    options: dict[str, Any] = {"dimension": generation.identity.dimension, "layout": settings.cold.collections}
    match settings.vectors:
        case QdrantEdgeSettings(search_threads=threads):
            path = index_path(settings, projection, generation)
            identify_folder(path.parent)
            options |= {"max_open": settings.cold.max_open, "search_threads": threads}
            index = EmbeddedIndex(path, partial(ColdIndex, **options))
            folder = partial(OwnedFolder, path.parent, path.name)
            return BuiltProjection(index, index.current.is_new, folder, folder(), index.close)
        case QdrantServerSettings() as chosen:
            with needing("qdrant", "vectors.kind is qdrant"):
                from lamina.stores.index.cold.qdrant import QdrantColdIndex  # noqa: PLC0415 - installed where chosen
            name = collection_name(settings, chosen.prefix, projection, generation)
            return _on_server(partial(QdrantColdIndex, chosen, name, **options), _folder_of(chosen))
        case _ as other:
            assert_never(other)


def build_graph(settings: Settings) -> BuiltProjection[CypherGraph]:
    """Build the store that follows links.

    Raises:
        Misconfigured: If the graph is switched off, or FalkorDB is embedded but `lamina up` did not start it.
    """
    # A source is given up earlier, by the search that asks it: it knows how much of its time is left.
    deadline_s = settings.search.budget_s
    match settings.graph:
        case FalkorDBServerSettings(url=url, connections=connections):
            with needing("embedded", "graph.kind is falkordb"):
                from lamina.stores.graph.falkordb import falkordb_graph  # noqa: PLC0415 - installed where it is chosen
            return _on_server(partial(falkordb_graph, url, connections=connections, read_deadline_s=deadline_s))
        case Neo4jServerSettings() as chosen:
            with needing("neo4j", "graph.kind is neo4j"):
                from lamina.stores.graph.neo4j import neo4j_graph  # noqa: PLC0415 - installed where it is chosen
            return _on_server(partial(neo4j_graph, chosen, read_deadline_s=deadline_s))
        case EmbeddedFalkorDBSettings():
            raise Misconfigured(
                "graph.kind is embedded, which only `lamina up` starts",
                "run `lamina up`, set graph.kind to falkordb or neo4j and graph.url, or set graph.kind to off",
            )
        case NoGraphSettings():
            raise Misconfigured("graph.kind is off", "choose a graph store, or leave its tier out")
        case _ as other:
            assert_never(other)


def _folder_of(settings: QdrantServerSettings) -> OwnedFolder | None:
    """Return the folder of a Qdrant in this process, which one client has open at a time."""
    return OwnedFolder(Path(settings.url)) if settings.is_local and settings.url != IN_MEMORY else None


def _on_server(make: Callable[[], ServerT], folder: OwnedFolder | None = None) -> BuiltProjection[ServerT]:
    # Two stores: the clients of the first belong to the event loop in which it is asked.
    is_new = is_new_store(make)
    store = make()
    return BuiltProjection(store, is_new, make if folder is None else lambda: folder, store, aclose=store.close)
