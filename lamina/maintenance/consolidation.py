"""The job consolidation: related notes become one note, and shared neighbours an edge."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from cachetools import LRUCache
from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.events import Event, EventKind
from lamina.core.memories import Note
from lamina.core.runs import RunCounts
from lamina.core.scope import Scope
from lamina.errors import LaminaError
from lamina.extraction.extractive_summaries import SourceText, Summarizer
from lamina.maintenance.derived_notes import DerivedNote, Deriver, PreparedDerivedNote, lock_if_unchanged
from lamina.maintenance.job import Page, PageCursor
from lamina.maintenance.row_writer import RowWriter
from lamina.policies.retention.clusters import (
    Cluster,
    EdgePolicy,
    InferredEdge,
    cluster_key,
    clusters,
    covered,
    inferred_edges,
)
from lamina.policies.retention.provenance import Origin
from lamina.stores.postgres.connection import Connection, Pool, connect
from lamina.stores.postgres.derived_notes import (
    find_covered,
    find_derived,
    read_consolidable,
    read_consolidated,
    read_sources,
)
from lamina.stores.postgres.entities import keep_entities
from lamina.stores.postgres.epochs import bump_epoch, read_former_scopes
from lamina.stores.postgres.events import record_events
from lamina.stores.postgres.feedback import pinned
from lamina.stores.postgres.inferred_edges import delete_inferences, insert_edges, read_edges, read_shared_links
from lamina.stores.postgres.job_changes import RowChange, take_rows
from lamina.stores.postgres.links import prune_evidence
from lamina.stores.postgres.notes import count_notes
from lamina.stores.postgres.outbox import enqueue

SOURCE = "job:consolidation"
EDGE_TYPE = "related_to"
EDGE_CONFIDENCE = 0.5
PAGE_NOTES = 4_000
MOST_MADE = 1_000
"""Consolidated notes that are kept until their page is decided again, some ten kilobytes each."""
UNDO_PAGE = 2_000
_STALE, _NOTES, _EDGES = "stale", "notes", "edges"


@dataclass(frozen=True, slots=True)
class ConsolidationPolicy:
    """The conditions of consolidated notes and inferred edges.

    Args:
        min_cosine: Least cosine of a member and the centre of its cluster.
        least_members: Fewest notes of a consolidated one.
        tokens: Most tokens of a consolidated note.
        edges: When neighbours imply an edge.
    """

    min_cosine: float
    least_members: int
    tokens: int
    edges: EdgePolicy


@dataclass(frozen=True, slots=True)
class ConsolidatedNote:
    """A consolidated note that is ready to be written.

    Args:
        hashes: Of the members, by id: if one has another text by now, the note is not written.
        covered: The members whose every sentence the note states.
    """

    made: PreparedDerivedNote
    hashes: Mapping[UUID, bytes]
    covered: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class ConsolidationPlan:
    """The changes of one page.

    Args:
        ended: Consolidated notes to dissolve, since a member ends.
        stale: Those to dissolve unless they are pinned, since a member has changed.
        notes: Consolidated notes to write.
        edges: Edges to insert.
        unfounded: Inferred edges to delete, since the present links no longer imply them.
    """

    ended: tuple[UUID, ...] = ()
    stale: tuple[UUID, ...] = ()
    notes: tuple[ConsolidatedNote, ...] = ()
    edges: tuple[InferredEdge, ...] = ()
    unfounded: tuple[UUID, ...] = ()


class ConsolidationJob:
    """Consolidates the notes of a scope, a page of them at a time, then its edges.

    A member whose every sentence stands in the consolidated note leaves the searches; the others stay, and belong to
    it. Clusters cross neither pages nor users. The first page dissolves consolidated notes of which a member has
    another text by now, or an expiry, or is past the retention of its workspace: their covered members return, and may
    be consolidated again. A consolidated note that a caller rewrote stays as it is, and one that is pinned while no
    member ends. Inferred edges that the present links no longer imply are deleted.

    Args:
        pool: Connections to Postgres.
        summarizer: Condenses texts.
        deriver: Makes the notes.
        policy: The conditions.
        page_notes: Notes of a page, which are compared with each other.
    """

    def __init__(
        self,
        pool: Pool,
        summarizer: Summarizer,
        deriver: Deriver,
        policy: ConsolidationPolicy,
        *,
        page_notes: int = PAGE_NOTES,
    ) -> None:
        self._pool = pool
        self._summarizer = summarizer
        self._deriver = deriver
        self._policy = policy
        self._page_notes = page_notes
        # A page is decided again where its removals were counted before: a model is asked for its texts once.
        self._made: LRUCache[UUID, ConsolidatedNote] = LRUCache(MOST_MADE)

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[ConsolidationPlan]:
        """Read one page, and write the texts of its consolidated notes."""
        at = after or {"of": _STALE, "id": None}
        if at["of"] == _STALE:
            return await self._decide_stale(area, moment)
        if at["of"] == _EDGES:
            return await self._decide_edges(area)
        found, page = await self._find_clusters(area, at["id"], moment)
        made, problems = await self._write_texts(area, found)
        gone = sum(len(one.covered) for one in made)
        plan = ConsolidationPlan(notes=tuple(made)) if made else None
        return Page(plan, page.after, page.seen, len(made) + gone, gone, tuple(problems))

    async def preview(self, area: Area, after: PageCursor, moment: datetime) -> Page[None]:
        """Read one page, and count its clusters; how many members would leave is not known without their texts."""
        at = after or {"of": _STALE, "id": None}
        if at["of"] == _NOTES:
            return (await self._find_clusters(area, at["id"], moment))[1]
        page = await (self._decide_stale(area, moment) if at["of"] == _STALE else self._decide_edges(area))
        return Page(None, page.after, page.seen, page.planned)

    async def _decide_stale(self, area: Area, moment: datetime) -> Page[ConsolidationPlan]:
        rows = await read_consolidated(self._pool, area, SOURCE, moment)
        ended = tuple(row["id"] for row in rows if row["ends"])
        others = [row for row in rows if not (row["ends"] or row["is_pinned"])]
        scopes = await self._scopes(area)
        stale = await asyncio.to_thread(lambda: tuple(row["id"] for row in others if _is_stale(scopes, row)))
        plan = ConsolidationPlan(ended=ended, stale=stale) if ended or stale else None
        return Page(plan, {"of": _NOTES, "id": None}, planned=len(ended) + len(stale))

    async def _find_clusters(
        self, area: Area, after: str | None, moment: datetime
    ) -> tuple[list[tuple[str | None, Cluster]], Page[None]]:
        rows = await read_consolidable(self._pool, area, SOURCE, moment=moment, after=after, limit=self._page_notes)
        found = await asyncio.to_thread(self._clusters, rows)
        is_last = len(rows) < self._page_notes
        following = {"of": _EDGES, "id": None} if is_last else {"of": _NOTES, "id": str(rows[-1]["id"])}
        return found, Page(None, following, seen=len(rows), planned=len(found))

    def _clusters(self, rows: Sequence[DictRow]) -> list[tuple[str | None, Cluster]]:
        by_user: dict[str | None, list[DictRow]] = defaultdict(list)
        for row in rows:
            by_user[row["user_id"]].append(row)
        return [(user, cluster) for user, own in by_user.items() for cluster in self._clusters_of(own)]

    def _clusters_of(self, rows: Sequence[DictRow]) -> list[Cluster]:
        embeddings = np.array([row["embedding"] for row in rows], dtype=np.float32)
        ids, moments = [row["id"] for row in rows], [row["event_at"] for row in rows]
        found = clusters(ids, embeddings, moments, min_cosine=self._policy.min_cosine)
        return [cluster for cluster in found if len(cluster.members) >= self._policy.least_members]

    async def _write_texts(
        self, area: Area, found: Sequence[tuple[str | None, Cluster]]
    ) -> tuple[list[ConsolidatedNote], list[str]]:
        made, problems = [], []
        scopes = await self._scopes(area)
        for user, cluster in found:
            try:
                one = await self._consolidate(area, scopes, user, cluster)
            except LaminaError as error:
                problems.append(f"{len(cluster.members)} notes around {cluster.centre} of {area}: {error}")
            else:
                made.extend([one] if one is not None else [])
        return made, problems

    async def _scopes(self, area: Area) -> list[Scope]:
        """Return the scope by its present name, then by its former ones, from which ids of notes may follow."""
        return [area.scope(), *await read_former_scopes(self._pool, area.scope())]

    async def _consolidate(
        self, area: Area, scopes: Sequence[Scope], user: str | None, cluster: Cluster
    ) -> ConsolidatedNote | None:
        """Write the text of a cluster's note; ``None`` if that note exists, or was deleted or undone."""
        rows = await read_sources(self._pool, area, cluster.members)
        origins = [Origin(row["id"], bytes(row["content_hash"])) for row in rows]
        key, *former = (cluster_key(scope, user, origins) for scope in scopes)
        if len(rows) < self._policy.least_members or await find_derived(self._pool, area, [key], former):
            return None
        if (made := self._made.get(key)) is not None:
            return made
        texts = [SourceText(row["content"], row["event_at"], row["importance"], row["speaker"]) for row in rows]
        text = await self._summarizer.summarize(texts, most_tokens=self._policy.tokens)
        prepared = await self._deriver.prepare(DerivedNote(key, user, _note(text, rows)))
        gone = tuple(row["id"] for row in rows if covered(row["content"], text, moment=row["event_at"]))
        made = ConsolidatedNote(prepared, {origin.id: origin.content_hash for origin in origins}, gone)
        self._made[key] = made
        return made

    async def _decide_edges(self, area: Area) -> Page[ConsolidationPlan]:
        async with connect(self._pool) as connection:
            links = await read_shared_links(connection, area, EDGE_TYPE)
            known = await read_edges(connection, area, EDGE_TYPE, SOURCE)
        found = await asyncio.to_thread(inferred_edges, links, self._policy.edges)
        plan = _compare_edges(found, known)
        planned = len(plan.edges) + len(plan.unfounded)
        return Page(plan if planned else None, None, seen=len(links), planned=planned)

    async def act(self, writer: RowWriter, area: Area, plan: ConsolidationPlan) -> RunCounts:
        """Dissolve stale notes, write notes whose members are unchanged and not pinned, and change the edges."""
        counts = await _dissolve(writer, area, plan) if plan.ended or plan.stale else RunCounts()
        for one in plan.notes:
            counts += await self._write(writer, area, one)
        if plan.unfounded:
            counts += await _drop_edges(writer, plan.unfounded)
        return counts + (await _write_edges(writer, area, plan.edges) if plan.edges else RunCounts())

    async def _write(self, writer: RowWriter, area: Area, one: ConsolidatedNote) -> RunCounts:
        if not await lock_if_unchanged(writer, area, one.hashes, lasting=True):
            return RunCounts()
        if await pinned(writer.connection, area.tenant, list(one.hashes)):
            return RunCounts()
        if not await self._deriver.write(writer, area, one.made):
            return RunCounts()
        after = {"deleted_at": writer.moment, "merged_into": one.made.derived.id}
        gone = await writer.change("notes", [RowChange(id_, after) for id_ in one.covered], tenant=area.tenant)
        return RunCounts(changed=1 + len(gone), removed=len(gone))

    async def size(self, area: Area) -> int:
        """Count the notes of the scope."""
        return await count_notes(self._pool, area)

    async def undo(self, connection: Connection, run: UUID) -> RunCounts:
        """Undo some of a run's edges."""
        ids = await take_rows(connection, run, "inferred", UNDO_PAGE)
        rows = await _withdraw_inferences(connection, ids)
        scopes = sorted({(row["tenant"], row["workspace"], row["namespace"]) for row in rows})
        for scope in scopes:
            await bump_epoch(connection, Scope(*scope))
        await record_events(connection, [Event.of(Scope(*scope), EventKind.JOB_CHANGED, run) for scope in scopes])
        return RunCounts(seen=len(ids), changed=len(rows))


def _note(text: str, rows: Sequence[DictRow]) -> Note:
    return Note(
        content=text,
        importance=max(row["importance"] for row in rows),
        confidence=min(row["confidence"] for row in rows),
        tags=("consolidated",),
        event_at=max(row["event_at"] for row in rows),
        source=SOURCE,
        metadata={"consolidation": {"members": len(rows)}},
        derived_from=tuple(row["id"] for row in rows),
    )


def _is_stale(scopes: Sequence[Scope], row: DictRow) -> bool:
    """Report whether a consolidated note would have another id if it were made from its members today.

    Args:
        scopes: Its scope by the present name and the former ones.
        row: The note, with the ids and hashes of its members.
    """
    hashes = zip(row["members"], row["hashes"], strict=True)
    origins = [Origin(id_, bytes(content_hash)) for id_, content_hash in hashes]
    return row["id"] not in {cluster_key(scope, row["user_id"], origins) for scope in scopes}


async def _dissolve(writer: RowWriter, area: Area, plan: ConsolidationPlan) -> RunCounts:
    kept = await pinned(writer.connection, area.tenant, plan.stale)
    ids = [*plan.ended, *(id_ for id_ in plan.stale if id_ not in kept)]
    gone = [RowChange(id_, {"deleted_at": writer.moment}, {"deleted_at": None}) for id_ in ids]
    dissolved = await writer.change("notes", gone, tenant=area.tenant)
    covered_notes = await find_covered(writer.connection, area.tenant, dissolved)
    shown = {"deleted_at": None, "merged_into": None}
    back = [RowChange(row["id"], shown, {"merged_into": row["merged_into"]}) for row in covered_notes]
    return RunCounts(changed=len(dissolved) + len(await writer.change("notes", back, tenant=area.tenant)))


def _compare_edges(found: Sequence[InferredEdge], known: Sequence[DictRow]) -> ConsolidationPlan:
    """Find the implied edges that are new, and the present inferences that nothing implies."""
    implied = {(edge.subject, edge.object) for edge in found}
    ends = {(row["from_id"], row["to_id"]): row for row in known}
    return ConsolidationPlan(
        edges=tuple(edge for edge in found if (edge.subject, edge.object) not in ends),
        unfounded=tuple(row["id"] for pair, row in ends.items() if row["is_inferred"] and pair not in implied),
    )


async def _withdraw_inferences(connection: Connection, ids: Sequence[UUID]) -> list[DictRow]:
    """Delete the inferences of edges, and edges without other evidence; recompute the strength of the others."""
    rows = await delete_inferences(connection, ids, SOURCE)
    ends = sorted({end for row in rows for end in (row["from_id"], row["to_id"])})
    await prune_evidence(connection, ends, sorted({row["id"] for row in rows}))
    await enqueue(connection, "graph", ends)
    return rows


async def _drop_edges(writer: RowWriter, ids: Sequence[UUID]) -> RunCounts:
    rows = await _withdraw_inferences(writer.connection, ids)
    for row in rows:
        writer.bump(Scope(row["tenant"], row["workspace"], row["namespace"]))
    return RunCounts(changed=len(rows))


async def _write_edges(writer: RowWriter, area: Area, edges: Sequence[InferredEdge]) -> RunCounts:
    ends = {end for edge in edges for end in (edge.subject, edge.object)}
    kept = await keep_entities(writer.connection, area.scope(), ends)
    sound = [edge for edge in edges if {edge.subject, edge.object} <= kept]
    rows = await insert_edges(
        writer.connection,
        area,
        sound,
        type_=EDGE_TYPE,
        source=SOURCE,
        confidence=EDGE_CONFIDENCE,
        moment=writer.moment,
        run=writer.run,
    )
    await enqueue(writer.connection, "graph", sorted({row["from_id"] for row in rows}))
    writer.bump(area.scope())
    return RunCounts(changed=len(rows))
