"""Consolidation: notes about one thing become one note, and shared neighbours an edge."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.memories import Note
from lamina.core.runs import RunCounts
from lamina.core.scope import Scope
from lamina.errors import LaminaError
from lamina.extraction.extractive_summaries import SourceText, Summarizer
from lamina.maintenance.derived_notes import DerivedNote, Deriver, PreparedDerivedNote, still_says
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
from lamina.stores.postgres.derived_notes import find_covered, read_consolidable, read_consolidated
from lamina.stores.postgres.entities import keep_entities
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.inferred_edges import delete_inferences, insert_edges, read_edges, read_shared_links
from lamina.stores.postgres.job_changes import RowChange, take_rows
from lamina.stores.postgres.links import prune_evidence
from lamina.stores.postgres.notes import count_notes
from lamina.stores.postgres.outbox import enqueue

SOURCE = "job:consolidation"
EDGE_TYPE = "related_to"
EDGE_CONFIDENCE = 0.5
PAGE_NOTES = 4_000
UNDO_PAGE = 2_000
_STALE, _NOTES, _EDGES = "stale", "notes", "edges"


@dataclass(frozen=True, slots=True)
class ConsolidationPolicy:
    """When notes and entities belong together.

    Args:
        min_cosine: Least cosine of a member and the middle of its cluster.
        least_members: Notes from which a cluster becomes one.
        tokens: Most tokens of the one.
        edges: When neighbours imply an edge.
    """

    min_cosine: float
    least_members: int
    tokens: int
    edges: EdgePolicy


@dataclass(frozen=True, slots=True)
class ConsolidatedNote:
    """A note that is ready to be written.

    Args:
        hashes: Of the members, by id: if one says something else by now, nothing is done.
        covered: Members that say nothing which the note does not say.
    """

    made: PreparedDerivedNote
    hashes: Mapping[UUID, bytes]
    covered: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class ConsolidationPlan:
    """What one page comes to.

    Args:
        stale: Consolidated notes that no longer say what their members say.
        notes: Those that are to be written.
        edges: Those that are to be inferred.
        unfounded: Inferred edges that nothing implies any more.
    """

    stale: tuple[UUID, ...] = ()
    notes: tuple[ConsolidatedNote, ...] = ()
    edges: tuple[InferredEdge, ...] = ()
    unfounded: tuple[UUID, ...] = ()


class ConsolidationJob:
    """Consolidates the notes of a scope, a page of them at a time, then its edges.

    A member whose every sentence stands in the consolidated note leaves the searches; the others stay, and belong to
    it. Clusters do not cross pages, nor users. Before that, consolidated notes are dissolved of which a member says
    something else by now, or is to end by itself: what they covered is there again, and may be consolidated anew. One
    that somebody rewrote stays as it is. Inferred edges follow the present links: what these no longer imply goes.

    Args:
        pool: Connections to Postgres.
        summarizer: Condenses texts.
        deriver: Makes the notes.
        policy: When notes and entities belong together.
        page_notes: Notes that are compared with each other.
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

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[ConsolidationPlan]:
        """Read one page, and make what it comes to."""
        at = after or {"of": _STALE, "id": None}
        if at["of"] == _STALE:
            return await self._stale(area)
        if at["of"] == _EDGES:
            return await self._edges(area)
        found, page = await self._found(area, at["id"], moment)
        made, problems = await self._made(area, found)
        gone = sum(len(one.covered) for one in made)
        plan = ConsolidationPlan(notes=tuple(made)) if made else None
        return Page(plan, page.after, page.seen, len(made) + gone, gone, tuple(problems))

    async def preview(self, area: Area, after: PageCursor, moment: datetime) -> Page[None]:
        """Read one page, and count what would become one; how much of it would go is not known yet."""
        at = after or {"of": _STALE, "id": None}
        if at["of"] == _NOTES:
            return (await self._found(area, at["id"], moment))[1]
        page = await (self._stale(area) if at["of"] == _STALE else self._edges(area))
        return Page(None, page.after, page.seen, page.planned)

    async def _stale(self, area: Area) -> Page[ConsolidationPlan]:
        rows = await read_consolidated(self._pool, area, SOURCE)
        stale = await asyncio.to_thread(lambda: tuple(row["id"] for row in rows if _is_stale(area, row)))
        plan = ConsolidationPlan(stale=stale) if stale else None
        return Page(plan, {"of": _NOTES, "id": None}, planned=len(stale))

    async def _found(
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

    async def _made(
        self, area: Area, found: Sequence[tuple[str | None, Cluster]]
    ) -> tuple[list[ConsolidatedNote], list[str]]:
        made, problems = [], []
        for user, cluster in found:
            try:
                one = await self._one(area, user, cluster)
            except LaminaError as error:
                problems.append(f"{len(cluster.members)} notes around {cluster.centre} of {area}: {error}")
            else:
                made.extend([one] if one is not None else [])
        return made, problems

    async def _one(self, area: Area, user: str | None, cluster: Cluster) -> ConsolidatedNote | None:
        """Return the note that a cluster becomes; ``None`` if it was made before, and somebody took it away."""
        rows = await self._deriver.sources(area, cluster.members)
        origins = [Origin(row["id"], bytes(row["content_hash"])) for row in rows]
        key = cluster_key(area.scope(), user, origins)
        if len(rows) < self._policy.least_members or await self._deriver.known([key]):
            return None
        texts = [SourceText(row["content"], row["event_at"], row["importance"]) for row in rows]
        text = await self._summarizer.summarize(texts, most_tokens=self._policy.tokens)
        [prepared] = await self._deriver.prepare([DerivedNote(key, user, _note(text, rows))])
        gone = tuple(row["id"] for row in rows if covered(row["content"], text, moment=row["event_at"]))
        return ConsolidatedNote(prepared, {origin.id: origin.content_hash for origin in origins}, gone)

    async def _edges(self, area: Area) -> Page[ConsolidationPlan]:
        async with connect(self._pool) as connection:
            links = await read_shared_links(connection, area, EDGE_TYPE)
            known = await read_edges(connection, area, EDGE_TYPE, SOURCE)
        found = await asyncio.to_thread(inferred_edges, links, self._policy.edges)
        plan = _compared(found, known)
        planned = len(plan.edges) + len(plan.unfounded)
        return Page(plan if planned else None, None, seen=len(links), planned=planned)

    async def act(self, writer: RowWriter, area: Area, plan: ConsolidationPlan) -> RunCounts:
        """Dissolve and write notes as far as their members say what they said, and the edges."""
        counts = await _dissolve(writer, area, plan.stale) if plan.stale else RunCounts()
        for one in plan.notes:
            counts += await self._write(writer, area, one)
        if plan.unfounded:
            counts += await _drop_edges(writer, plan.unfounded)
        return counts + (await _write_edges(writer, area, plan.edges) if plan.edges else RunCounts())

    async def _write(self, writer: RowWriter, area: Area, one: ConsolidatedNote) -> RunCounts:
        if not await still_says(writer, area, one.hashes, lasting=True):
            return RunCounts()
        if not await self._deriver.write(writer, area, one.made):
            return RunCounts()
        after = {"deleted_at": writer.moment, "merged_into": one.made.derived.id}
        gone = await writer.change_notes([RowChange(id_, after) for id_ in one.covered], tenant=area.tenant)
        return RunCounts(changed=1 + len(gone), removed=len(gone))

    async def size(self, area: Area) -> int:
        """Return how many notes the scope has."""
        return await count_notes(self._pool, area)

    async def undo(self, connection: Connection, run: UUID) -> RunCounts:
        """Take some of a run's edges back."""
        ids = await take_rows(connection, run, "inferred", UNDO_PAGE)
        rows = await _take_inferences(connection, ids)
        for scope in sorted({(row["tenant"], row["workspace"], row["namespace"]) for row in rows}):
            await bump_epoch(connection, Scope(*scope))
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


def _is_stale(area: Area, row: DictRow) -> bool:
    """Tell whether a consolidated note would have another id if it were made from its members today."""
    hashes = zip(row["members"], row["hashes"], strict=True)
    origins = [Origin(id_, bytes(content_hash)) for id_, content_hash in hashes]
    return bool(row["ends"]) or cluster_key(area.scope(), row["user_id"], origins) != row["id"]


async def _dissolve(writer: RowWriter, area: Area, ids: Sequence[UUID]) -> RunCounts:
    gone = [RowChange(id_, {"deleted_at": writer.moment}, {"deleted_at": None}) for id_ in ids]
    dissolved = await writer.change_notes(gone, tenant=area.tenant)
    covered_notes = await find_covered(writer.connection, area.tenant, dissolved)
    shown = {"deleted_at": None, "merged_into": None}
    back = [RowChange(row["id"], shown, {"merged_into": row["merged_into"]}) for row in covered_notes]
    return RunCounts(changed=len(dissolved) + len(await writer.change_notes(back, tenant=area.tenant)))


def _compared(found: Sequence[InferredEdge], known: Sequence[DictRow]) -> ConsolidationPlan:
    """Return which of the implied edges are new, and which of the known inferences nothing implies."""
    implied = {(edge.subject, edge.object) for edge in found}
    ends = {(row["from_id"], row["to_id"]): row for row in known}
    return ConsolidationPlan(
        edges=tuple(edge for edge in found if (edge.subject, edge.object) not in ends),
        unfounded=tuple(row["id"] for pair, row in ends.items() if row["is_inferred"] and pair not in implied),
    )


async def _take_inferences(connection: Connection, ids: Sequence[UUID]) -> list[DictRow]:
    """Take the inferences from edges; what nothing else founds goes, the others are weighed anew."""
    rows = await delete_inferences(connection, ids, SOURCE)
    ends = sorted({end for row in rows for end in (row["from_id"], row["to_id"])})
    await prune_evidence(connection, ends, sorted({row["id"] for row in rows}))
    await enqueue(connection, "graph", ends)
    return rows


async def _drop_edges(writer: RowWriter, ids: Sequence[UUID]) -> RunCounts:
    rows = await _take_inferences(writer.connection, ids)
    for row in rows:
        writer.bump(Scope(row["tenant"], row["workspace"], row["namespace"]))
    return RunCounts(changed=len(rows))


async def _write_edges(writer: RowWriter, area: Area, edges: Sequence[InferredEdge]) -> RunCounts:
    ends = {end for edge in edges for end in (edge.subject, edge.object)}
    kept = await keep_entities(writer.connection, area.scope(), ends)
    told = [edge for edge in edges if {edge.subject, edge.object} <= kept]
    rows = await insert_edges(
        writer.connection,
        area,
        told,
        type_=EDGE_TYPE,
        source=SOURCE,
        confidence=EDGE_CONFIDENCE,
        moment=writer.moment,
        run=writer.run,
    )
    await enqueue(writer.connection, "graph", sorted({row["from_id"] for row in rows}))
    writer.bump(area.scope())
    return RunCounts(changed=len(rows))
