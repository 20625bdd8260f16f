"""The job that embeds memories with the configured model.

Vectors of another model than the active one are built beside those that searches read, until a switch to them.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.memories import Chunk
from lamina.core.ports import Embedder, ModelIdentity
from lamina.core.runs import RunCounts
from lamina.errors import Conflict, ModelLimit, Overloaded, TextRefused, Unavailable
from lamina.ingest.embedding import embed_each, embedded_rows, probe, stand_in_vector
from lamina.maintenance.job import Page, PageCursor
from lamina.maintenance.row_writer import RowWriter
from lamina.policies.retention.vector_generations import GenerationTarget, choose_target
from lamina.stores.postgres.connection import Connection, Pool
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.generations import (
    Thresholds,
    begin_generation,
    list_generations,
    read_active_generation,
)
from lamina.stores.postgres.job_runs import run_area
from lamina.stores.postgres.outbox import enqueue
from lamina.stores.postgres.tiers import EMBEDDED, EMBEDDING_PROJECTIONS
from lamina.stores.postgres.vectors import (
    EmbeddedRow,
    delete_outdated,
    drop_building,
    drop_stand_ins,
    find_outdated,
    keep_stand_ins,
    read_unembedded,
    write_vectors,
)
from lamina.text.parts import parts

# Most rows of a page: they stay locked while their vectors are written, about a second.
MAX_PAGE_TEXTS = 256
TEXTS_PER_CALL = 32
# Of a text by itself, before and after another one was taken: four in all, each with the retries of an endpoint's call.
ALONE_TRIES = 2
STAND_IN_CHARS = 8_192
"""Most characters of a chunk of a refused text; its words have to fit a row of Postgres."""
OUTDATED = "outdated"
STEPS = (*EMBEDDED, OUTDATED)


@dataclass(frozen=True, slots=True)
class VectorPage:
    """A page of vectors to write.

    Args:
        kind: The kind of rows, a key of ``EMBEDDED``.
        rows: The vectors.
        refused: Vectors in the place of those of texts that the model refuses.
        generation: Their generation; ``None`` if it does not exist yet.
    """

    kind: str
    rows: tuple[EmbeddedRow, ...] = ()
    refused: tuple[EmbeddedRow, ...] = ()
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class OutdatedVectors:
    """A page of vectors to delete.

    Args:
        ids: Of memories, entities and procedures.
        generations: Whose vectors are deleted.
    """

    ids: tuple[UUID, ...]
    generations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReembedPolicy:
    """The configured model, and the limits of a run.

    Args:
        identity: Of the embedder's model.
        thresholds: Cosines that belong to the model.
        undo_window: How long the vectors of the previous generation are kept after the switch.
        page_rows: Most rows of a page.
    """

    identity: ModelIdentity
    thresholds: Thresholds = field(default_factory=dict)
    undo_window: timedelta = timedelta(days=30)
    page_rows: int = MAX_PAGE_TEXTS


class ReembedJob:
    """Embeds the memories of a namespace that lack vectors of the configured model.

    If searches read that model's vectors, these are memories that were written during the switch to it, or that came
    back from the archive. Otherwise the model's generation is built beside the active one, which searches and writes
    go on using; `lamina up` with the model switches to it once no memory lacks a vector.

    A text that the model refuses while it takes others, or fails at each time, is named, and found by its words alone;
    the next run tries it again. If the model takes nothing, is away, or its budget is spent, the run waits.

    Args:
        pool: Connections to Postgres.
        embedder: The configured model.
        policy: Its identity, and the limits of a run.
        begin: Prepares the stores for vectors of its dimension; blocking, as long as indexes are built.
    """

    def __init__(self, pool: Pool, embedder: Embedder, policy: ReembedPolicy, begin: Callable[[], None]) -> None:
        self._begin: Callable[[], None] | None = begin
        self._pool = pool
        self._embedder = embedder
        self._policy = policy
        self._page_rows = min(policy.page_rows, MAX_PAGE_TEXTS)

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[VectorPage | OutdatedVectors]:
        """Embed one page of memories that lack vectors; after the last of them, list vectors to delete."""
        if self._begin is not None:
            await asyncio.to_thread(self._begin)
            self._begin = None
        target = await self._target(moment)
        step, rows = await self._next_rows(area, after, target)
        if not rows:  # The first run makes the generation even in an empty namespace, so that the switch finds it.
            return Page(VectorPage(STEPS[0]) if after is None and not target.is_begun else None)
        following = self._cursor_after(step, rows)
        if step == OUTDATED:
            outdated = OutdatedVectors(tuple(row["id"] for row in rows), target.outdated)
            return Page(outdated, following, seen=len(rows), planned=len(rows))
        plan, problems = await self._plan(step, rows, target)
        return Page(plan, following, seen=len(rows), planned=len(rows), problems=problems)

    async def preview(self, area: Area, after: PageCursor, moment: datetime) -> Page[None]:
        """Count one page of memories that lack vectors, or of those with vectors to delete."""
        step, rows = await self._next_rows(area, after, await self._target(moment))
        return Page(None, self._cursor_after(step, rows) if rows else None, seen=len(rows), planned=len(rows))

    async def _target(self, moment: datetime) -> GenerationTarget:
        present = await list_generations(self._pool)
        return choose_target(present, self._policy.identity, moment, self._policy.undo_window)

    async def _next_rows(self, area: Area, after: PageCursor, target: GenerationTarget) -> tuple[str, list[DictRow]]:
        """Return the next page of the first step that has one; no rows at the end."""
        first, last = (STEPS[0], None) if after is None else (after["step"], after["id"])
        for step in STEPS[STEPS.index(first) :]:
            rows = await self._rows(area, step, last if step == first else None, target)
            if rows:
                return step, rows
        return OUTDATED, []

    async def _rows(self, area: Area, step: str, after: str | None, target: GenerationTarget) -> list[DictRow]:
        if step != OUTDATED:
            return await read_unembedded(self._pool, step, area, target.number, after=after, limit=self._page_rows)
        if not target.outdated:
            return []
        ids = await find_outdated(self._pool, area, target.outdated, after=after, limit=self._page_rows)
        return [{"id": id_} for id_ in ids]

    def _cursor_after(self, step: str, rows: Sequence[DictRow]) -> PageCursor:
        if len(rows) == self._page_rows:
            return {"step": step, "id": str(rows[-1]["id"])}
        following = STEPS[STEPS.index(step) + 1 :]
        return {"step": following[0], "id": None} if following else None

    async def _plan(
        self, step: str, rows: Sequence[DictRow], target: GenerationTarget
    ) -> tuple[VectorPage, tuple[str, ...]]:
        """Embed rows; return their vectors, and the rows whose texts the model refuses, in words."""
        texts = [EMBEDDED[step].text(row) for row in rows]
        found: list[tuple[Chunk, ...] | TextRefused] = []
        for start in range(0, len(texts), TEXTS_PER_CALL):
            found += await embed_each(self._embed, texts[start : start + TEXTS_PER_CALL])
        refusals = {place: one for place, one in enumerate(found) if isinstance(one, TextRefused)}
        dimension = self._policy.identity.dimension
        chunks = [
            _stand_in(text, dimension) if isinstance(one, TextRefused) else one
            for text, one in zip(texts, found, strict=True)
        ]
        embedded = await asyncio.to_thread(embedded_rows, EMBEDDED[step], rows, texts, chunks)
        page = VectorPage(
            step,
            tuple(row for place, row in enumerate(embedded) if place not in refusals),
            tuple(embedded[place] for place in refusals),
            target.number if target.is_begun else None,
        )
        return page, tuple(
            f"{step} {rows[place]['id']}: {one.part}: {one.reason}; until it takes the text, words alone find it"
            for place, one in refusals.items()
        )

    async def _embed(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        """Embed texts; those that fail again and again while the model takes another text count as refused.

        An endpoint may answer a text that is too long with 500, or not in time.
        """
        tries = ALONE_TRIES if len(texts) == 1 else 1
        while True:
            try:
                return await self._embedder.embed_chunks(texts)
            except (TextRefused, Overloaded, ModelLimit):
                raise
            except Unavailable as error:
                await probe(self._embedder.embed_chunks)
                tries -= 1
                if not tries:
                    raise TextRefused(error.part, error.reason) from error

    async def act(self, writer: RowWriter, area: Area, plan: VectorPage | OutdatedVectors) -> RunCounts:
        """Write the vectors of rows whose text is unchanged, or delete outdated vectors."""
        if isinstance(plan, OutdatedVectors):
            return RunCounts(changed=await delete_outdated(writer.connection, area, plan.ids, plan.generations))
        return RunCounts(changed=await self._write(writer.connection, area, plan))

    async def _write(self, connection: Connection, area: Area, plan: VectorPage) -> int:
        number = plan.generation
        if number is None:
            number = await begin_generation(connection, self._policy.identity, self._policy.thresholds)
        if not plan.rows and not plan.refused:
            return 0
        await drop_stand_ins(connection, plan.kind, area, number, plan.rows)
        ids = await write_vectors(connection, plan.kind, area, number, plan.rows)
        changed = [*ids, *await keep_stand_ins(connection, plan.kind, area, number, plan.refused)]
        active = await read_active_generation(connection)
        if changed and active is not None and active.number == number:
            for projection in EMBEDDING_PROJECTIONS[plan.kind]:
                await enqueue(connection, projection, sorted(changed))
            await bump_epoch(connection, area.scope(), teaches=True)
        return len(ids)

    async def undo(self, connection: Connection, run: UUID) -> RunCounts:
        """Delete the vectors of the generation that is being built from the run's area, also those of other runs.

        Raises:
            Conflict: If searches read the generation.
        """
        present = await list_generations(self._pool)
        own = next((one for one in present if one.identity == self._policy.identity), None)
        if own is None:
            return RunCounts()
        if own.is_active:
            raise Conflict(
                f"searches read the vectors of {own.identity.model}; to go back, run `python -m jobs reembed` with the "
                "model before it, and start with that one"
            )
        dropped = await drop_building(connection, await run_area(connection, run), own.number)
        return RunCounts(seen=dropped, changed=dropped)


def _stand_in(text: str, dimension: int) -> tuple[Chunk, ...]:
    """Cut a refused text into chunks with the vector that stands in for its own."""
    embedding = stand_in_vector(text, dimension)
    return tuple(Chunk(start, end, embedding) for start, end in parts(text, 0, len(text), STAND_IN_CHARS))
