"""What a text adds to the knowledge graph: entities, edges, and the links of memories to both."""

import asyncio
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from uuid import UUID

from cachetools import LRUCache

from lamina.aio.deadline import deadline
from lamina.core.links import LinkKind
from lamina.core.memories import Edge, Entity
from lamina.core.ports import Embedder
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.extraction.name_linking import Reading, places_of, read
from lamina.ingest.name_lookup import Names, names_at, names_in
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.entities import Evidence, PreparedEntity, Put, find_names, put_edges, put_entities
from lamina.stores.postgres.links import Mention, Untold, forget, link_similar, put_mentions, untold
from lamina.stores.postgres.outbox import enqueue
from lamina.text.words import content_hash, name_key

MAX_UNTOLD = 50
MAX_OLDER_CHARS = 5_000_000
MAX_TITLE_CHARS = 128
NAME_CACHE = 8192
TITLE_TYPE = "title"
_TRAILING_PARENTHESIS = re.compile(r"\s*\([^()]*\)\s*$")
_OWN_SOURCES = ("api", "message:")


@dataclass(frozen=True, slots=True)
class Told:
    """A memory's text, as the graph reads it.

    Args:
        memory: Id of the message, note or passage.
        tier: Where it lives.
        text: What it says.
        source: Where that was read; the same source counts once as evidence; ``message:<id>`` is that message.
        user: Whose memory it is; ``None`` for a shared one.
        seen_at: When it happened, in UTC.
        title: What it is about, if it has a title.
    """

    memory: UUID
    tier: Tier
    text: str
    source: str
    user: str | None
    seen_at: datetime
    title: str | None = None


@dataclass(frozen=True, slots=True)
class PreparedKnowledge:
    """Texts with everything that can be known of them before the transaction."""

    told: tuple[Told, ...] = ()
    readings: tuple[Reading, ...] = ()
    entities: tuple[PreparedEntity, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    def told_by(self, *, user: str | None, source: str, seen_at: datetime) -> "PreparedKnowledge":
        """Return the same knowledge from another mouth."""
        told = _as_sources([replace(item, user=user, source=source, seen_at=seen_at) for item in self.told])
        sources = {item.memory: item.source for item in told}
        evidence = tuple(
            replace(item, user=user, source=sources[item.memory], seen_at=seen_at)
            for item in self.evidence
            if item.memory is not None
        )
        return replace(self, told=told, evidence=evidence)


def source_of(source: str, text: str) -> str:
    """Return what counts as one source: the one that was named, or else the very text."""
    return content_hash(text).hex() if source.startswith(_OWN_SOURCES) else source


def _as_sources(told: Sequence[Told]) -> tuple[Told, ...]:
    """Return the texts with what counts as their source: a note that was drawn from a message is no second one."""
    messages = {f"message:{item.memory}": item.text for item in told}
    return tuple(replace(item, source=source_of(item.source, messages.get(item.source, item.text))) for item in told)


def title_entity(title: str | None) -> Entity | None:
    """Return the entity that a titled text is about; `Mercury (planet)` is also known as `Mercury`.

    A title of more than 128 characters is a sentence rather than a name, and no entity.
    """
    if not title or len(title) > MAX_TITLE_CHARS:
        return None
    short = _TRAILING_PARENTHESIS.sub("", title)
    return Entity(title, TITLE_TYPE, (short,) if short and short != title else ())


class Knowledge:
    """Writes what texts tell into the graph's tables.

    Args:
        embedder: Embeds the names.
        generation: The active generation of vectors.
        deadline_s: Seconds after which a write gives up on the embedder.
    """

    def __init__(self, embedder: Embedder, *, generation: int, deadline_s: float) -> None:
        self._embedder = embedder
        self._generation = generation
        self._deadline_s = deadline_s
        self._names: LRUCache[str, bytes] = LRUCache(NAME_CACHE)

    async def prepare(
        self, told: Sequence[Told], entities: Sequence[Entity], edges: Sequence[Edge]
    ) -> PreparedKnowledge:
        """Return what the texts tell, with the vectors of all names; nothing is written.

        Raises:
            Unavailable: If the embedder does not answer in time.
        """
        if not told:
            return PreparedKnowledge()
        sources = _as_sources(told)
        readings, evidence = await asyncio.to_thread(_read, sources, edges)
        seen_at = max(item.seen_at for item in told)
        distinct = {entity.key: entity for entity in (*_named(edges), *entities, *_titles(told))}
        embedded = await self.embedded(tuple(distinct.values()), seen_at)
        return PreparedKnowledge(sources, readings, embedded, tuple(evidence))

    async def embedded(
        self, entities: Sequence[Entity], seen_at: datetime, *, is_asserted: bool = False
    ) -> tuple[PreparedEntity, ...]:
        """Return the entities with the vectors of their names.

        Raises:
            Unavailable: If the embedder does not answer in time.
        """
        vectors = await self._embed({entity.name for entity in entities})
        return tuple(PreparedEntity(entity, vectors[entity.name], seen_at, is_asserted) for entity in entities)

    async def _embed(self, names: Collection[str]) -> dict[str, bytes]:
        vectors = {name: known for name in names if (known := self._names.get(name)) is not None}
        missing = [name for name in sorted(names) if name not in vectors]
        if missing:
            async with deadline("embedder", self._deadline_s):
                rows = await self._embedder.embed(missing)
            fresh = {name: row.tobytes() for name, row in zip(missing, rows, strict=True)}
            self._names.update(fresh)
            vectors |= fresh
        return vectors

    async def write(
        self, connection: Connection, scope: Scope, knowledge: PreparedKnowledge, new: Collection[UUID]
    ) -> None:
        """Store what the new ones among the texts tell, inside the transaction that stores them."""
        known = [pair for pair in zip(knowledge.told, knowledge.readings, strict=True) if pair[0].memory in new]
        if not known:
            return
        told = [item for item, _ in known]
        put = await put_entities(connection, scope, knowledge.entities, self._generation)
        await self._mention(connection, scope, told, [reading for _, reading in known])
        evidence = [item for item in knowledge.evidence if item.memory in new]
        ids = {key: item.id for key, item in put.items()}
        edges = await put_edges(connection, scope, evidence, ids)
        titles = {entity.key for entity in _titles(told)}
        older = await self._mention_in_older(connection, scope, knowledge.entities, put, titles)
        for tier in sorted({item.tier for item in told}):
            ids_of_tier = [item.memory for item in told if item.tier is tier]
            await link_similar(connection, tier, ids_of_tier, self._generation)
        subjects = {ids[subject] for subject, _, _ in edges}
        earlier = {item.id for item in put.values() if item.is_earlier}
        await enqueue(connection, "graph", [*(item.memory for item in told), *sorted(earlier | subjects | older)])

    async def assert_entities(
        self, connection: Connection, scope: Scope, entities: Sequence[PreparedEntity]
    ) -> dict[str, Put]:
        """Store entities that somebody states, and link the memories that already name them."""
        put = await put_entities(connection, scope, entities, self._generation)
        older = await self._mention_in_older(connection, scope, entities, put, put.keys())
        await enqueue(connection, "graph", sorted({item.id for item in put.values()} | older))
        return put

    async def assert_edges(
        self, connection: Connection, scope: Scope, entities: Sequence[PreparedEntity], evidence: Sequence[Evidence]
    ) -> dict[tuple[str, str, str], Put]:
        """Store edges that somebody states, with the entities that they name."""
        put = await self.assert_entities(connection, scope, entities)
        ids = {key: item.id for key, item in put.items()}
        return await put_edges(connection, scope, evidence, ids)

    async def forget(self, connection: Connection, memories: Sequence[UUID]) -> None:
        """Remove what memories told, inside the transaction that deletes or rewrites them."""
        changed = await forget(connection, memories)
        await enqueue(connection, "graph", [*memories, *sorted(changed)])

    async def _mention(
        self, connection: Connection, scope: Scope, told: Sequence[Told], readings: Sequence[Reading]
    ) -> None:
        names = await names_in(connection, scope, readings)
        mentions = [mention for item, found in zip(told, names, strict=True) for mention in _mentions(item, found)]
        titled = [(item, entity.key) for item in told if (entity := title_entity(item.title))]
        abouts = await find_names(connection, scope, sorted({key for _, key in titled}))
        own = [_mention(item, entity, LinkKind.ABOUT) for item, key in titled for entity in abouts.get(key, ())]
        await put_mentions(connection, scope, [*mentions, *own])

    async def _mention_in_older(
        self,
        connection: Connection,
        scope: Scope,
        entities: Iterable[PreparedEntity],
        put: dict[str, Put],
        wanted: Collection[str],
    ) -> set[UUID]:
        """Link memories to entities that are newer than they are; return those memories.

        Of at most 500 memories, five million characters are read.
        """
        new = [item.entity for item in entities if item.entity.key in wanted and not put[item.entity.key].existed]
        keys = sorted({key for entity in new for key in entity.all_keys()})
        if not keys:
            return set()
        older = _within([_told(item) for item in await untold(connection, scope, keys, MAX_UNTOLD)])
        readings = await asyncio.to_thread(lambda: [read(item.text) for item in older])
        names = await names_at(connection, scope, readings, frozenset(keys))
        mentions = [mention for item, found in zip(older, names, strict=True) for mention in _mentions(item, found)]
        await put_mentions(connection, scope, mentions)
        return {item.memory for item in mentions}


def _titles(told: Sequence[Told]) -> list[Entity]:
    return [entity for item in told if (entity := title_entity(item.title))]


def _within(told: Sequence[Told]) -> list[Told]:
    """Return the first of the texts, as many as may be read while a transaction waits."""
    ends = accumulate(len(item.text) for item in told)
    return [item for item, end in zip(told, ends, strict=True) if end <= MAX_OLDER_CHARS]


def _named(edges: Sequence[Edge]) -> list[Entity]:
    return [Entity(name) for edge in edges for name in (edge.subject, edge.object)]


def _told(item: Untold) -> Told:
    source = source_of(item.source, item.content)
    return Told(item.id, item.tier, item.content, source, item.user, item.seen_at)


def _mentions(told: Told, names: Names) -> list[Mention]:
    named = {entity for entities in names.values() for entity in entities}
    return [_mention(told, entity, LinkKind.MENTIONS) for entity in sorted(named)]


def _mention(told: Told, entity: UUID, kind: LinkKind) -> Mention:
    return Mention(told.memory, told.tier, entity, kind, told.source, told.user, told.seen_at)


def _read(told: Sequence[Told], edges: Sequence[Edge]) -> tuple[tuple[Reading, ...], list[Evidence]]:
    """Return the words of the texts, and which of them tell the edges; a long text takes a second."""
    readings = tuple(read(item.text) for item in told)
    ends = {name_key(name) for edge in edges for name in (edge.subject, edge.object)}
    named = [frozenset(places_of(reading, ends, limit=1)) for reading in readings]
    evidence = [
        Evidence(edge, item.source, item.memory, item.user, item.seen_at)
        for edge in edges
        for item in _tellers(told, named, edge)
    ]
    return readings, evidence


def _tellers(told: Sequence[Told], named: Sequence[frozenset[str]], edge: Edge) -> Sequence[Told]:
    """Return the texts that name both ends of an edge; the first text where none does."""
    ends = {name_key(edge.subject), name_key(edge.object)}
    both = [item for item, keys in zip(told, named, strict=True) if ends <= keys]
    return both or told[:1]
