"""Link memories into the knowledge graph: the entities, edges and mentions of their texts."""

import asyncio
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import accumulate
from uuid import UUID

from cachetools import LRUCache

from lamina.aio.deadline import deadline
from lamina.core.links import LinkKind
from lamina.core.memories import Chunk, Edge, Entity, Extraction
from lamina.core.ports import Embedder
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.errors import InvalidInput, TextRefused
from lamina.extraction.edges import extract_graph
from lamina.extraction.name_matching import TextWords, find_places, split_words
from lamina.ingest.embedding import embed_each, embed_in_time
from lamina.ingest.name_lookup import EntitiesByName, find_names_in, find_these_names_in
from lamina.models.batching import mean_vector
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.entities import (
    Evidence,
    NodeResult,
    PreparedEntity,
    ToldGraph,
    back_edges,
    edge_key,
    find_alias_holders,
    find_names,
    put_edges,
    put_entities,
    touch_entities,
)
from lamina.stores.postgres.links import (
    Mention,
    SimilarLinks,
    count_witness,
    find_unlinked,
    link_similar,
    put_mentions,
    remove_from_graph,
)
from lamina.stores.postgres.outbox import enqueue
from lamina.text.hygiene import composed
from lamina.text.opaque import without_opaque
from lamina.text.words import content_hash, name_key

MAX_UNTOLD = 50
MAX_OLDER_CHARS = 5_000_000
MAX_TITLE_CHARS = 128
# The names of a workspace come again in turn after turn.
NAME_CACHE = 8192
TITLE_TYPE = "title"
_TRAILING_PARENTHESIS = re.compile(r"(?<!\s)\s*+\([^()]*+\)\s*+$")
_OWN_SOURCES = ("api", "message:")


@dataclass(frozen=True, slots=True)
class MemoryText:
    """The text of a memory, as the graph reads it.

    Args:
        memory: Id of the message, note or passage.
        tier: Where it lives.
        text: The text.
        source: Where that was read; the same source counts once as evidence; ``message:<id>`` is that message.
        user: Whose memory it is; ``None`` for a shared one.
        seen_at: When it happened, in UTC.
        title: The subject, if the memory has a title.
        said: The text without the name of its speaker, which anybody may claim: it is what counts as a source once.
            ``None`` where the text has none.
        witness: Who vouches for it, and counts once, too; ``None`` if nobody knows.
    """

    memory: UUID
    tier: Tier
    text: str
    source: str
    user: str | None
    seen_at: datetime
    title: str | None = None
    said: str | None = None
    witness: str | None = None


@dataclass(frozen=True, slots=True)
class LinkDraft:
    """Texts with all that the graph needs of them but the vectors of new names.

    Args:
        words: Of each text, in the order of the memories.
        entities: The entities that the texts name, each once.
        vectors: Of names that were embedded before: float32 bytes of unit vectors.
    """

    memories: tuple[MemoryText, ...] = ()
    words: tuple[TextWords, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    entities: tuple[Entity, ...] = ()
    vectors: Mapping[str, bytes] = field(default_factory=dict)

    def new_names(self) -> list[str]:
        """Return the names that are still to be embedded, in order."""
        return sorted({entity.name for entity in self.entities} - self.vectors.keys())


@dataclass(frozen=True, slots=True)
class PreparedLinks:
    """Texts with all of their links that need no transaction."""

    memories: tuple[MemoryText, ...] = ()
    words: tuple[TextWords, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    entities: tuple[PreparedEntity, ...] = ()

    def with_origin(self, *, user: str | None, source: str, seen_at: datetime) -> "PreparedLinks":
        """Return the same links for memories of another user, source and time."""
        memories = [replace(item, user=user, source=source, seen_at=seen_at) for item in self.memories]
        sources = _sources_of_evidence(memories)
        evidence = tuple(
            replace(item, user=user, source=sources[item.memory], seen_at=seen_at)
            for item in self.evidence
            if item.memory is not None
        )
        return replace(self, memories=_with_sources(memories), evidence=evidence)

    def renamed(self, ids: Mapping[UUID, UUID]) -> "PreparedLinks":
        """Return the same links for texts that are stored under other ids."""
        memories = tuple(replace(item, memory=ids.get(item.memory, item.memory)) for item in self.memories)
        evidence = tuple(
            replace(item, memory=None if item.memory is None else ids.get(item.memory, item.memory))
            for item in self.evidence
        )
        return replace(self, memories=memories, evidence=evidence)


def is_own_source(source: str) -> bool:
    """Report whether a source names nothing but the request or the message itself."""
    return source.startswith(_OWN_SOURCES)


def source_of(source: str, text: str) -> str:
    """Return the source that counts as evidence once: the one that was named, or else the very text."""
    return content_hash(text).hex() if is_own_source(source) else source


def title_entity(title: str | None) -> Entity | None:
    """Return the entity that a titled text is about; `Mercury (planet)` is also known as `Mercury`.

    A title of more than 128 characters is a sentence rather than a name, and no entity.
    """
    title = " ".join(composed(title or "").split())
    if not title or len(title) > MAX_TITLE_CHARS:
        return None
    short = _TRAILING_PARENTHESIS.sub("", title)
    return Entity(title, TITLE_TYPE, (short,) if short and short != title else ())


class MemoryLinker:
    """Writes the links of memories into the graph's tables.

    A text is read in :meth:`draft`; the names in it are embedded together with the caller's own texts, so that a
    write asks the embedder once; :meth:`complete` takes their vectors, and :meth:`write` works in the transaction.

    Args:
        embedder: Embeds the names of entities that callers state.
        generation: The active generation of vectors.
        deadline_s: Seconds after which a write gives up on the embedder.
        similar: How notes and passages are linked to their nearest neighbours.
    """

    def __init__(self, embedder: Embedder, *, generation: int, deadline_s: float, similar: SimilarLinks) -> None:
        self._embedder = embedder
        self._generation = generation
        self._deadline_s = deadline_s
        self._similar = similar
        self._names: LRUCache[str, bytes] = LRUCache(NAME_CACHE)

    async def draft(self, memories: Sequence[MemoryText], graph: Extraction | None = None) -> LinkDraft:
        """Read the texts, in a thread: a long one takes a second.

        Args:
            memories: The texts.
            graph: The entities and edges in them; if not given, the rules extract them, without a token spent.
        """
        if not memories:
            return LinkDraft()
        draft = await asyncio.to_thread(_read, memories, graph)
        return replace(draft, vectors=self._known_vectors(draft.entities))

    async def prepare_told(self, memories: Sequence[MemoryText], told: ToldGraph) -> PreparedLinks:
        """Prepare the links of memories from their recorded evidence, without extracting it again.

        Raises:
            Unavailable: If the embedder does not answer in time.
        """
        ends = (Entity(name) for item in told.evidence for name in (item.edge.subject, item.edge.object))
        known = {entity.key: entity for entity in (*ends, *told.entities)}
        witnesses = {item.memory: item.witness for item in told.evidence}
        vouched = [replace(item, witness=witnesses.get(item.memory, item.witness)) for item in memories]
        draft = await self.draft(vouched, Extraction(entities=tuple(known.values())))
        return await self.embed_names(replace(draft, evidence=told.evidence))

    async def embed_names(self, draft: LinkDraft) -> PreparedLinks:
        """Return the links with the vectors of all names but those that the model refuses, which get no link.

        Raises:
            Unavailable: If the embedder does not answer in time.
        """
        names = draft.new_names()
        vectors = await self.name_vectors(names)
        refused = {name_key(name) for name in names if name not in vectors}
        entities = tuple(item for item in draft.entities if item.key not in refused)
        evidence = tuple(item for item in draft.evidence if refused.isdisjoint(edge_key(item.edge)[::2]))
        known = {**draft.vectors, **vectors}
        return self.complete(replace(draft, entities=entities, evidence=evidence, vectors=known), ())

    async def name_vectors(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return the vectors of names, as float32 bytes, but for those that the model refuses.

        Raises:
            Unavailable: If the embedder does not answer in time.
        """
        known = self._known_vectors([Entity(name) for name in names])
        if not (new := [name for name in names if name not in known]):
            return known
        async with deadline("embedder", self._deadline_s):
            found = zip(new, await embed_each(self._embedder.embed_chunks, new), strict=True)
        made = {name: mean_vector(one).tobytes() for name, one in found if not isinstance(one, TextRefused)}
        self._names.update(made)
        return {**known, **made}

    def complete(self, draft: LinkDraft, embedded_names: Sequence[tuple[Chunk, ...]]) -> PreparedLinks:
        """Return the links with the vectors of all names, given the chunks of the draft's new ones."""
        if not draft.memories:
            return PreparedLinks()
        vectors = self._all_vectors(draft, embedded_names)
        seen_at = max(item.seen_at for item in draft.memories)
        entities = (PreparedEntity(entity, vectors[entity.name], seen_at) for entity in draft.entities)
        return PreparedLinks(draft.memories, draft.words, draft.evidence, tuple(entities))

    async def embed_entities(
        self, entities: Sequence[Entity], seen_at: datetime, *, is_asserted: bool = False
    ) -> tuple[PreparedEntity, ...]:
        """Return the entities with the vectors of their names.

        Raises:
            Unavailable: If the embedder does not answer in time.
        """
        draft = LinkDraft(entities=tuple(entities), vectors=self._known_vectors(entities))
        chunks = await embed_in_time(self._embedder.embed_chunks, draft.new_names(), self._deadline_s, field="name")
        vectors = self._all_vectors(draft, chunks)
        return tuple(PreparedEntity(entity, vectors[entity.name], seen_at, is_asserted) for entity in entities)

    def _known_vectors(self, entities: Sequence[Entity]) -> dict[str, bytes]:
        found = {entity.name: self._names.get(entity.name) for entity in entities}
        return {name: vector for name, vector in found.items() if vector is not None}

    def _all_vectors(self, draft: LinkDraft, chunks: Sequence[tuple[Chunk, ...]]) -> dict[str, bytes]:
        new = {name: mean_vector(parts).tobytes() for name, parts in zip(draft.new_names(), chunks, strict=True)}
        self._names.update(new)
        return {**draft.vectors, **new}

    async def write(
        self, connection: Connection, scope: Scope, links: PreparedLinks, new: Collection[UUID]
    ) -> list[UUID]:
        """Store the links of the new ones among the memories, inside the transaction that stores them.

        Returns:
            The nodes of the graph that changed; the caller enqueues them.
        """
        pairs = [pair for pair in zip(links.memories, links.words, strict=True) if pair[0].memory in new]
        if not pairs:
            return []
        memories = [item for item, _ in pairs]
        # Entities before edges, as every writer of the graph locks them.
        titles = {entity.key for entity in _titles(memories)}
        # Of several entities with an alias, a text does not say which one it means.
        aliased = await _find_aliased(connection, scope, links.entities, but=titles, most_holders=1)
        named = [item for item in links.entities if item.entity.key not in aliased]
        put = await put_entities(connection, scope, named, self._generation)
        ids = {key: item.id for key, item in put.items()} | aliased
        await self._mention(connection, scope, memories, [found for _, found in pairs], set(ids.values()))
        evidence = [item for item in links.evidence if item.memory in new and not _joins_one(item.edge, ids)]
        edges = await put_edges(connection, scope, evidence, ids)
        older = await self._mention_in_older(connection, scope, named, put, titles, memories[0].witness)
        for tier in sorted({item.tier for item in memories}):
            ids_of_tier = [item.memory for item in memories if item.tier is tier]
            await link_similar(connection, tier, ids_of_tier, self._generation, self._similar)
        # An edge lives with its subject in the graph's store.
        subjects = {ids[subject] for subject, _, _ in edges}
        earlier = {item.id for item in put.values() if item.is_earlier}
        return [*(item.memory for item in memories), *sorted(earlier | subjects | older)]

    async def back(
        self, connection: Connection, scope: Scope, links: PreparedLinks, stored: Mapping[UUID, UUID]
    ) -> list[UUID]:
        """Count texts that say again what is stored already, for the witness who vouches for them.

        Args:
            connection: Inside the transaction.
            scope: Where they belong.
            links: Of the texts.
            stored: By the id of a text, the memory that says the same.

        Returns:
            The nodes of the graph that changed; the caller enqueues them.
        """
        told = [(item.witness, stored[item.memory]) for item in links.memories if item.memory in stored]
        for witness in sorted({witness for witness, _ in told if witness is not None}):
            await count_witness(connection, witness, sorted({id_ for other, id_ in told if other == witness}))
        evidence = [
            replace(item, memory=stored[item.memory])
            for item in links.evidence
            if item.memory is not None and item.memory in stored and item.witness is not None
        ]
        return sorted(await back_edges(connection, scope, evidence)) if evidence else []

    async def assert_entities(
        self, connection: Connection, scope: Scope, entities: Sequence[PreparedEntity], witness: str | None = None
    ) -> dict[str, NodeResult]:
        """Store entities that a witness states, and link the memories that already name them."""
        put = await put_entities(connection, scope, entities, self._generation)
        older = await self._mention_in_older(connection, scope, entities, put, put.keys(), witness)
        await enqueue(connection, "graph", sorted({item.id for item in put.values()} | older))
        return put

    async def assert_edges(
        self, connection: Connection, scope: Scope, entities: Sequence[PreparedEntity], evidence: Sequence[Evidence]
    ) -> dict[tuple[str, str, str], NodeResult]:
        """Store edges that callers state, with the entities that they name.

        A name that is an alias alone stands for the entity of the alias, the oldest if there are several.

        Raises:
            InvalidInput: For an edge between two names of one entity.
        """
        aliased = await _find_aliased(connection, scope, entities)
        named = [item for item in entities if item.entity.key not in aliased]
        put = await self.assert_entities(connection, scope, named, evidence[0].witness if evidence else None)
        ids = {key: item.id for key, item in put.items()} | aliased
        for place, item in enumerate(evidence):
            if _joins_one(item.edge, ids):
                reason = f"is {item.edge.object}, another name of the subject {item.edge.subject}"
                raise InvalidInput(f"edges.{place}.object", f"{reason}; an edge joins two entities")
        await enqueue(connection, "graph", sorted(set(aliased.values())))
        return await put_edges(connection, scope, evidence, ids)

    async def forget(self, connection: Connection, memories: Sequence[UUID]) -> list[UUID]:
        """Remove the links of memories, inside the transaction that deletes or rewrites them.

        Returns:
            The nodes of the graph that changed, the memories among them; the caller enqueues them.
        """
        return [*memories, *sorted(await remove_from_graph(connection, memories))] if memories else []

    async def _mention(
        self,
        connection: Connection,
        scope: Scope,
        memories: Sequence[MemoryText],
        words: Sequence[TextWords],
        kept: Collection[UUID],
    ) -> None:
        names = await find_names_in(connection, scope, words)
        mentions = [mention for item, found in zip(memories, names, strict=True) for mention in _mentions(item, found)]
        titled = [(item, entity.key) for item in memories if (entity := title_entity(item.title))]
        subjects = await find_names(connection, scope, sorted({key for _, key in titled})) if titled else {}
        abouts = [_mention(item, entity, LinkKind.ABOUT) for item, key in titled for entity in subjects.get(key, ())]
        await put_mentions(connection, scope, [*mentions, *abouts], kept)

    async def _mention_in_older(
        self,
        connection: Connection,
        scope: Scope,
        entities: Iterable[PreparedEntity],
        put: Mapping[str, NodeResult],
        wanted: Collection[str],
        witness: str | None,
    ) -> set[UUID]:
        """Link memories to entities that are newer than they are; return those memories.

        Of at most 500 memories, five million characters are read. Who wrote them is not looked up: they count as the
        words of the witness who makes the entities known.
        """
        new = [item.entity for item in entities if item.entity.key in wanted and not put[item.entity.key].existed]
        keys = sorted({key for entity in new for key in entity.all_keys()})
        if not keys:
            return set()
        found = await find_unlinked(connection, scope, keys, MAX_UNTOLD)
        # As many as may be read while the transaction waits.
        ends = accumulate(len(item.content) for item in found)
        older = [
            MemoryText(
                item.id,
                item.tier,
                item.content,
                source_of(item.source, item.content),
                item.user,
                item.seen_at,
                witness=witness,
            )
            for item, end in zip(found, ends, strict=True)
            if end <= MAX_OLDER_CHARS
        ]
        words = await asyncio.to_thread(lambda: [split_words(item.text) for item in older])
        names = await find_these_names_in(connection, scope, words, frozenset(keys))
        mentions = [mention for item, named in zip(older, names, strict=True) for mention in _mentions(item, named)]
        await put_mentions(connection, scope, mentions)
        return {item.memory for item in mentions}


async def _find_aliased(
    connection: Connection,
    scope: Scope,
    entities: Sequence[PreparedEntity],
    *,
    but: Collection[str] = (),
    most_holders: int = sys.maxsize,
) -> dict[str, UUID]:
    """Return the known entity that each name is an alias of, and record that it was seen.

    Args:
        connection: Inside the transaction.
        scope: Where they belong.
        entities: With the names.
        but: Keys of names that stand for themselves.
        most_holders: A name that is an alias of more entities is left out.
    """
    seen_at = {item.entity.key: item.seen_at for item in entities if item.entity.key not in but}
    holders = await find_alias_holders(connection, scope, sorted(seen_at)) if seen_at else {}
    aliased = {key: ids[0] for key, ids in holders.items() if len(ids) <= most_holders}
    await touch_entities(connection, {id_: seen_at[key] for key, id_ in aliased.items()})
    return aliased


def _joins_one(edge: Edge, ids: Mapping[str, UUID]) -> bool:
    """Report whether both ends of an edge are one entity by now."""
    subject, _, object_ = edge_key(edge)
    return ids[subject] == ids[object_]


def _read(memories: Sequence[MemoryText], graph: Extraction | None) -> LinkDraft:
    texts = [composed(without_opaque(item.text)) for item in memories]
    found = extract_graph(texts) if graph is None else graph
    in_edges = [Entity(name) for edge in found.edges for name in (edge.subject, edge.object)]
    distinct = {entity.key: entity for entity in (*in_edges, *found.entities, *_titles(memories))}
    words = tuple(map(split_words, texts))
    evidence = tuple(_evidence(memories, words, found.edges))
    return LinkDraft(_with_sources(memories), words, evidence, tuple(distinct.values()))


def _with_sources(memories: Sequence[MemoryText]) -> tuple[MemoryText, ...]:
    """Return the texts with the source that counts; a note that was drawn from a message is no second one."""
    messages = {f"message:{item.memory}": item.said or item.text for item in memories}
    counted = cache(source_of)  # A long message from which a thousand notes were drawn is hashed once.
    return tuple(replace(item, source=counted(item.source, messages.get(item.source, item.text))) for item in memories)


def _sources_of_evidence(memories: Sequence[MemoryText]) -> dict[UUID, str]:
    """Return what counts as evidence once, by memory: a source that was named, else its witness, else its text."""
    return {
        item.memory: item.witness if item.witness is not None and is_own_source(raw.source) else item.source
        for raw, item in zip(memories, _with_sources(memories), strict=True)
    }


def _titles(memories: Sequence[MemoryText]) -> list[Entity]:
    return [entity for item in memories if (entity := title_entity(item.title))]


def _evidence(memories: Sequence[MemoryText], words: Sequence[TextWords], edges: Sequence[Edge]) -> Iterable[Evidence]:
    """Yield for each edge the texts that state it; the first text where none does."""
    ends = {name_key(name) for edge in edges for name in (edge.subject, edge.object)}
    # One place is enough: only whether a text names an end matters.
    named = [find_places(found, ends, limit=1).keys() for found in words]
    sources = _sources_of_evidence(memories)
    for edge in edges:
        tellers = [item for item, keys in zip(memories, named, strict=True) if _tells(item, keys, edge)]
        for item in tellers or memories[:1]:
            yield Evidence(edge, sources[item.memory], item.memory, item.user, item.seen_at, item.witness)


def _tells(item: MemoryText, keys: Collection[str], edge: Edge) -> bool:
    """Report whether a text names both ends of an edge, or is of the message that states it and names its value."""
    if edge.told_by is None:
        return {name_key(edge.subject), name_key(edge.object)} <= set(keys)
    return item.source == edge.told_by and edge.object.casefold() in item.text.casefold()


def _mentions(item: MemoryText, names: EntitiesByName) -> list[Mention]:
    named = {entity for entities in names.values() for entity in entities}
    return [_mention(item, entity, LinkKind.MENTIONS) for entity in sorted(named)]


def _mention(item: MemoryText, entity: UUID, kind: LinkKind) -> Mention:
    return Mention(item.memory, item.tier, entity, kind, item.source, item.user, item.seen_at, item.witness)
