"""Each tier in one process, with the projections that it keeps."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, assert_never
from uuid import UUID

from lamina.aio.probing import Probe
from lamina.core.ports import Change, GraphStore, Projection, Reachable, Rebuildable, Searcher
from lamina.core.tiers import PROJECTIONS, TIERS, ProjectionName, Source, Tier, TierName
from lamina.errors import Misconfigured, Unavailable
from lamina.search.conversation_context import ConversationContext
from lamina.search.graph import GraphLimits, GraphSearcher
from lamina.search.tier_sources import TierSources
from lamina.settings import (
    NoGraphSettings,
    Settings,
)
from lamina.stores.index.cold.searcher import NotesCold
from lamina.stores.postgres.builds import feeding_of
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.documents import Documents
from lamina.stores.postgres.generations import Generation
from lamina.stores.postgres.knowledge import KnowledgeReader
from lamina.stores.postgres.messages import Messages, MessagesAround, SessionVectors
from lamina.stores.postgres.notes import Notes, NotesAt, NotesWarm
from lamina.stores.postgres.procedures import ProceduresSearcher
from lamina.wiring.indexes import (
    BuiltIndex,
    KeptProjection,
    build_cold_index,
    build_index,
    chosen_for,
    nothing,
    store_of,
)
from lamina.wiring.stores import build_graph_store, build_procedure_reads, graph_is_new


class RebuildableProjection(KeptProjection, Rebuildable[Any], Protocol):
    """A projection that can be fed, audited, and built anew beside itself."""


Check = Callable[[], Awaitable[None]]


class Guarded:
    """A store that takes changes only while it is the one to take them.

    Args:
        projection: Takes the changes.
        check: Raises if another store is to take them: what this one refuses stays in the outbox for that one.
    """

    def __init__(self, projection: Projection[Any], check: Check) -> None:
        self._projection = projection
        self._check = check

    async def apply(self, changes: Sequence[Change[Any]]) -> None:
        """Take over the given states.

        Raises:
            Unavailable: If another store is to take them.
        """
        await self._check()
        await self._projection.apply(changes)

    async def flush(self) -> None:
        """Return when everything applied so far survives a loss of power."""
        await self._projection.flush()


class GuardedProjection(Guarded):
    """The same with what it holds.

    Args:
        projection: Takes the changes.
        check: Raises if another store is to take them.
    """

    def __init__(self, projection: KeptProjection, check: Check) -> None:
        super().__init__(projection, check)
        self._kept = projection

    async def inventory(self, tenant: str) -> Mapping[UUID, str]:
        """Return every memory of a tenant in it with the fingerprint of its state."""
        return await self._kept.inventory(tenant)


class GuardedRebuildable(GuardedProjection):
    """The same, where it can be built anew beside itself.

    Args:
        projection: Takes the changes.
        check: Raises if another store is to take them.
    """

    def __init__(self, projection: RebuildableProjection, check: Check) -> None:
        super().__init__(projection, check)
        self._rebuildable = projection

    def beside(self, build: int) -> Projection[Any]:
        """Return the store of a build, which is guarded as well."""
        return Guarded(self._rebuildable.beside(build), self._check)

    async def switch(self, build: int) -> None:
        """Have searches use the store of the build from now on."""
        await self._rebuildable.switch(build)


def while_fed(pool: Pool, projection: ProjectionName, store: str, generation: Generation | None) -> Check:
    """Return what refuses changes once another store is to take them; one small statement.

    Args:
        pool: Connections to Postgres.
        projection: Whose store.
        store: Where it is: another service may keep the projection elsewhere by now.
        generation: Whose vectors it holds, if any. States are read with the vectors of the active generation: an index
            that was opened before a switch must not take over those of another model.
    """

    async def check() -> None:
        feeding = await feeding_of(pool, projection, store, generation)
        if generation is not None and not feeding.is_active:
            raise Unavailable("index", f"vectors of {generation.identity.model} are not the active ones any more")
        if not feeding.is_here:
            raise Unavailable(projection, "another service keeps it elsewhere now; end this one")

    return check


@dataclass(frozen=True, slots=True)
class TierParts:
    """A tier in one process.

    Args:
        searcher: Asks all its sources.
        projections: What it keeps up to date, by name.
        new: Those of them that are empty because their files are new: Postgres has what belongs in them.
        graph: The store that follows links; the graph tier alone has one.
        stores: What tells whether the store of a projection answers; those in this process always do.
        close: Releases the files that the projections have open.
        aclose: Releases their connections.
    """

    searcher: TierSources
    projections: Mapping[ProjectionName, KeptProjection] = field(default_factory=dict)
    new: tuple[ProjectionName, ...] = ()
    graph: GraphStore | None = None
    stores: Mapping[str, Probe] = field(default_factory=dict)
    close: Callable[[], None] = lambda: None
    aclose: Callable[[], Awaitable[None]] = nothing


def _parts(searcher: TierSources, indexes: Mapping[ProjectionName, BuiltIndex[KeptProjection]]) -> TierParts:
    def close() -> None:
        for index in indexes.values():
            index.close()

    async def aclose() -> None:
        for index in indexes.values():
            await index.aclose()

    return TierParts(
        searcher,
        {name: index.projection for name, index in indexes.items()},
        tuple(name for name, index in indexes.items() if index.is_new),
        close=close,
        aclose=aclose,
    )


def served_tiers(settings: Settings) -> tuple[TierName, ...]:
    """Return the tiers that this configuration serves."""
    return tuple(name for name, spec in TIERS.items() if not any(_is_off(settings, kept) for kept in spec.projections))


def _is_off(settings: Settings, projection: ProjectionName) -> bool:
    return isinstance(chosen_for(settings, projection), NoGraphSettings)


def kept_projections(settings: Settings) -> tuple[ProjectionName, ...]:
    """Return the projections that the served tiers keep."""
    return tuple(projection for name in served_tiers(settings) for projection in TIERS[name].projections)


def unserved_tiers(settings: Settings) -> dict[Tier, str]:
    """Return the tiers that the settings switch off, with the setting that does so."""
    served = served_tiers(settings)
    return {spec.tier: f"disabled by {name}.kind=off" for name, spec in TIERS.items() if name not in served}


def build_tier(
    name: TierName, settings: Settings, pool: Pool, dimension: int, generation: Generation | None = None
) -> TierParts:
    """Build one tier in this process; its embedded stores open here and nowhere else.

    Args:
        name: Which tier.
        settings: Everything else.
        pool: Connections to Postgres.
        dimension: Length of the vectors.
        generation: Which vectors its indexes hold: those of no other one come into them. The first if not given.
    """
    parts = _build_tier(name, settings, pool, dimension, generation)
    kept = {
        projection: _guarded(store, _check(projection, settings, pool, generation))
        for projection, store in parts.projections.items()
    }
    return replace(parts, projections=kept, stores={key: _probe(store) for key, store in parts.projections.items()})


def _probe(store: KeptProjection) -> Probe:
    return store.probe if isinstance(store, Reachable) else nothing


def _check(projection: ProjectionName, settings: Settings, pool: Pool, generation: Generation | None) -> Check:
    holds = generation if PROJECTIONS[projection].is_of_generation else None
    return while_fed(pool, projection, store_of(settings, projection, generation), holds)


def _guarded(projection: KeptProjection, check: Check) -> KeptProjection:
    if isinstance(projection, Rebuildable):
        return GuardedRebuildable(projection, check)
    return GuardedProjection(projection, check)


def _build_tier(
    name: TierName, settings: Settings, pool: Pool, dimension: int, generation: Generation | None
) -> TierParts:
    match name:
        case "sessions":
            return build_sessions(settings, pool, generation)
        case "notes":
            return build_notes(settings, pool, dimension, generation)
        case "graph":
            return build_graph(settings, pool)
        case "procedures":
            return build_procedures(settings, pool)
        case "documents":
            return build_documents(settings, pool, dimension, generation)
        case _ as other:
            assert_never(other)


def build_sessions(settings: Settings, pool: Pool, generation: Generation | None = None) -> TierParts:
    """Build tier 1: vectors on pgvector, words on the hybrid engine, by the chunks of the generation's model."""
    index = build_index(settings, "messages", None, by_session=True, generation=generation)
    searchers: Sequence[Searcher] = (
        SessionVectors(pool, min_similarity=settings.search.min_similarity),
        index.searched_by(Source.SESSION_WORDS, Messages(pool)),
    )
    limits = settings.search
    context = ConversationContext(
        MessagesAround(pool), candidates=limits.context_candidates, min_similarity=limits.min_similarity
    )
    return _parts(TierSources(searchers, limits.source_deadline_s, context), {"messages": index.index})


def build_notes(settings: Settings, pool: Pool, dimension: int, generation: Generation | None = None) -> TierParts:
    """Build tier 2: the hybrid index and full text of warm notes, the vectors of cold ones."""
    index = build_index(settings, "notes", dimension, generation=generation)
    cold = build_cold_index(settings, dimension, generation)
    notes, limits = Notes(pool), settings.search
    searchers: Sequence[Searcher] = (
        index.searched_by(Source.NOTES_HYBRID, NotesAt(notes, "warm")),
        NotesWarm(pool),
        NotesCold(cold.projection, NotesAt(notes, "cold"), min_similarity=limits.min_similarity),
    )
    sources = TierSources(searchers, deadline_s=limits.source_deadline_s)
    return _parts(sources, {"notes": index.index, "cold": cold})


def build_graph(settings: Settings, pool: Pool) -> TierParts:
    """Build tier 4: from the names in a question along links, on the graph store.

    Raises:
        Misconfigured: If the graph is switched off or not started.
    """
    store = build_graph_store(settings)
    if store is None:
        raise Misconfigured("graph.kind is off", "choose a graph store, or leave its tier out")
    searcher = GraphSearcher(KnowledgeReader(pool), store, graph_limits(settings))
    tier = TierSources((searcher,), deadline_s=settings.search.source_deadline_s)
    new: tuple[ProjectionName, ...] = ("graph",) if graph_is_new(settings) else ()
    return TierParts(tier, {"graph": store}, new, store, aclose=store.close)


def graph_limits(settings: Settings) -> GraphLimits:
    """Return how far a search goes along links."""
    limits = settings.search
    return GraphLimits(
        depth=limits.graph_depth,
        fan_out=limits.graph_fan_out,
        max_links=limits.graph_max_edges,
        threshold=limits.graph_threshold,
        min_similarity=limits.graph_min_similarity,
        common_mentions=limits.graph_common_mentions,
    )


def build_procedures(settings: Settings, pool: Pool) -> TierParts:
    """Build tier 5: procedures, on Postgres alone."""
    searcher = ProceduresSearcher(build_procedure_reads(settings, pool))
    return TierParts(TierSources((searcher,), deadline_s=settings.search.source_deadline_s))


def build_documents(settings: Settings, pool: Pool, dimension: int, generation: Generation | None = None) -> TierParts:
    """Build the tier of documents: their passages in a hybrid index."""
    index = build_index(settings, "documents", dimension, generation=generation)
    searcher = index.searched_by(Source.DOCUMENTS, Documents(pool))
    sources = TierSources((searcher,), deadline_s=settings.search.source_deadline_s)
    return _parts(sources, {"documents": index.index})
