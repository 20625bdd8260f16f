"""What a text adds to the knowledge graph: entities, edges, and the links of memories to both."""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from cachetools import LRUCache

from lamina.errors import Unavailable
from lamina.extraction.linking import Span, longest, name_candidates
from lamina.links import LinkKind
from lamina.memories import Edge, Entity
from lamina.ports import Embedder
from lamina.queries import Tier
from lamina.scope import Scope
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.entities import Evidence, PreparedEntity, Put, find_names, put_edges, put_entities
from lamina.stores.postgres.links import Mention, Untold, forget, link_similar, put_mentions, untold
from lamina.stores.postgres.outbox import enqueue
from lamina.text import content_hash, name_key

MAX_UNTOLD = 50
NAME_CACHE = 8192
TITLE_TYPE = "title"
_TRAILING_PARENTHESIS = re.compile(r"\s*\([^()]*\)\s*$")
_OWN_SOURCES = ("api", "message:")
Candidates = Mapping[str, Sequence[Span]]
"""What may be a name in a text, by its key, with the words where it stands."""


@dataclass(frozen=True, slots=True)
class Told:
    """A memory's text, as the graph reads it.

    Args:
        memory: Id of the message, note or passage.
        tier: Where it lives.
        text: What it says.
        source: Where that was read; the same source counts once as evidence.
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
    candidates: tuple[Candidates, ...] = ()
    entities: tuple[PreparedEntity, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    def told_by(self, *, user: str | None, source: str, seen_at: datetime) -> "PreparedKnowledge":
        """Return the same knowledge from another mouth."""
        told = tuple(replace(item, user=user, source=source, seen_at=seen_at) for item in self.told)
        texts = {item.memory: item.text for item in told}
        evidence = tuple(
            replace(item, user=user, source=source_of(source, texts[item.memory]), seen_at=seen_at)
            for item in self.evidence
            if item.memory is not None
        )
        return replace(self, told=told, evidence=evidence)


def source_of(source: str, text: str) -> str:
    """Return what counts as one source: the one that was named, or else the very text."""
    return content_hash(text).hex() if source.startswith(_OWN_SOURCES) else source


def title_entity(title: str) -> Entity:
    """Return the entity that a titled text is about; `Mercury (planet)` is also known as `Mercury`."""
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
        candidates = await asyncio.to_thread(lambda: tuple(name_candidates(item.text) for item in told))
        seen_at = max(item.seen_at for item in told)
        titles = [title_entity(item.title) for item in told if item.title]
        distinct = {entity.key: entity for entity in (*_named(edges), *entities, *titles)}
        return PreparedKnowledge(
            tuple(told),
            candidates,
            await self.embedded(tuple(distinct.values()), seen_at),
            tuple(_evidence(told, candidates, edges)),
        )

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
            try:
                rows = await asyncio.wait_for(self._embedder.embed(missing), self._deadline_s)
            except TimeoutError as error:
                raise Unavailable("embedder", f"no answer within {self._deadline_s} s") from error
            fresh = {name: row.tobytes() for name, row in zip(missing, rows, strict=True)}
            self._names.update(fresh)
            vectors |= fresh
        return vectors

    async def write(
        self, connection: Connection, scope: Scope, knowledge: PreparedKnowledge, new: Collection[UUID]
    ) -> None:
        """Store what the new ones among the texts tell, inside the transaction that stores them."""
        known = [pair for pair in zip(knowledge.told, knowledge.candidates, strict=True) if pair[0].memory in new]
        if not known:
            return
        told = [item for item, _ in known]
        put = await put_entities(connection, scope, knowledge.entities, self._generation)
        await self._mention(connection, scope, told, [keys for _, keys in known])
        evidence = [item for item in knowledge.evidence if item.memory in new]
        ids = {key: item.id for key, item in put.items()}
        edges = await put_edges(connection, scope, evidence, ids)
        titles = {title_entity(item.title).key for item in told if item.title}
        older = await self._mention_in_older(connection, scope, knowledge.entities, put, titles)
        for tier in sorted({item.tier for item in told}):
            ids_of_tier = [item.memory for item in told if item.tier is tier]
            await link_similar(connection, tier, ids_of_tier, self._generation)
        subjects = {ids[subject] for subject, _, _ in edges}
        fresh = {item.id for item in put.values() if not item.existed}
        await enqueue(connection, "graph", [*(item.memory for item in told), *sorted(fresh | subjects | older)])

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
        self, connection: Connection, scope: Scope, told: Sequence[Told], candidates: Sequence[Candidates]
    ) -> None:
        names = await find_names(connection, scope, list(dict.fromkeys(key for keys in candidates for key in keys)))
        mentions = [
            mention for item, keys in zip(told, candidates, strict=True) for mention in _mentions(item, keys, names)
        ]
        abouts = await find_names(connection, scope, [name_key(item.title) for item in told if item.title])
        titled = [(item, abouts.get(name_key(item.title), ())) for item in told if item.title]
        own = [_mention(item, entity, LinkKind.ABOUT) for item, entities in titled for entity in entities]
        await put_mentions(connection, scope, [*mentions, *own])

    async def _mention_in_older(
        self,
        connection: Connection,
        scope: Scope,
        entities: Iterable[PreparedEntity],
        put: dict[str, Put],
        wanted: Collection[str],
    ) -> set[UUID]:
        """Link memories to entities that are newer than they are; return those memories."""
        new = [item.entity for item in entities if item.entity.key in wanted and not put[item.entity.key].existed]
        keys = sorted({key for entity in new for key in entity.all_keys()})
        if not keys:
            return set()
        found = await untold(connection, scope, keys, MAX_UNTOLD)
        names = await find_names(connection, scope, keys)
        mentions = [
            mention for item in found for mention in _mentions(_told(item), name_candidates(item.content), names)
        ]
        await put_mentions(connection, scope, mentions)
        return {item.memory for item in mentions}


def _named(edges: Sequence[Edge]) -> list[Entity]:
    return [Entity(name) for edge in edges for name in (edge.subject, edge.object)]


def _told(item: Untold) -> Told:
    return Told(item.id, item.tier, item.content, item.source, item.user, item.seen_at)


def _mentions(told: Told, candidates: Candidates, names: Mapping[str, tuple[UUID, ...]]) -> list[Mention]:
    named = {entity for key in longest(candidates, names) for entity in names[key]}
    return [_mention(told, entity, LinkKind.MENTIONS) for entity in sorted(named)]


def _mention(told: Told, entity: UUID, kind: LinkKind) -> Mention:
    source = source_of(told.source, told.text)
    return Mention(told.memory, told.tier, entity, kind, source, told.user, told.seen_at)


def _evidence(told: Sequence[Told], candidates: Sequence[Candidates], edges: Sequence[Edge]) -> list[Evidence]:
    return [
        Evidence(edge, source_of(item.source, item.text), item.memory, item.user, item.seen_at)
        for edge in edges
        for item in _tellers(told, candidates, edge)
    ]


def _tellers(told: Sequence[Told], candidates: Sequence[Candidates], edge: Edge) -> Sequence[Told]:
    """Return the texts that name both ends of an edge; the first text where none does."""
    ends = {name_key(edge.subject), name_key(edge.object)}
    both = [item for item, keys in zip(told, candidates, strict=True) if ends <= keys.keys()]
    return both or told[:1]
