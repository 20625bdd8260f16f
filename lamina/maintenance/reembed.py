"""Embedding again: the vectors of another model, beside those that searches read, until one switch to them."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.memories import Chunk
from lamina.core.ports import Embedder, ModelIdentity
from lamina.core.runs import RunCounts
from lamina.errors import Conflict, Unavailable
from lamina.maintenance.job import Page, PageCursor
from lamina.maintenance.row_writer import RowWriter
from lamina.models.batching import mean_vector
from lamina.stores.postgres.connection import Connection, Pool
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.generations import (
    GenerationStatus,
    Thresholds,
    begin_generation,
    list_generations,
    read_active_generation,
)
from lamina.stores.postgres.job_runs import run_area
from lamina.stores.postgres.outbox import enqueue
from lamina.stores.postgres.tier_rows import EmbeddingStatements
from lamina.stores.postgres.tiers import EMBEDDED, EMBEDDING_PROJECTIONS
from lamina.stores.postgres.vectors import (
    EmbeddedRow,
    delete_outdated,
    drop_building,
    find_outdated,
    read_unembedded,
    write_vectors,
)
from lamina.text.words import words

MAX_PAGE_TEXTS = 256
"""Rows of a page are locked while their vectors are written: about a second."""
TEXTS_PER_CALL = 32
OUTDATED = "outdated"


STEPS = (*EMBEDDED, OUTDATED)


@dataclass(frozen=True, slots=True)
class VectorPage:
    """A page of vectors to write.

    Args:
        kind: Of what.
        rows: The vectors.
        generation: Which generation; ``None`` if it is to be begun.
    """

    kind: str
    rows: tuple[EmbeddedRow, ...] = ()
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class OutdatedVectors:
    """A page of what has vectors that nobody reads any more.

    Args:
        ids: Of memories, entities and procedures.
        generations: Whose vectors go.
    """

    ids: tuple[UUID, ...]
    generations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GenerationTarget:
    """What a run is to fill.

    Args:
        number: The generation of the configured model, if it has one.
        is_begun: Whether that one is being built or is the active one.
        outdated: Generations whose vectors nobody reads any more, nor goes back to.
    """

    number: int | None = None
    is_begun: bool = False
    outdated: tuple[int, ...] = ()


def choose_target(
    known: Sequence[GenerationStatus], identity: ModelIdentity, moment: datetime, undo_window: timedelta
) -> GenerationTarget:
    """Return what a run of this model is to fill, and what it is to remove.

    Vectors of the generation that was active before stay for a while, so that one can go back to it. Nothing is removed
    while another generation is built.
    """
    own = next((generation for generation in known if generation.identity == identity), None)
    if own is None:
        return GenerationTarget()
    gone = (
        generation.number
        for generation in known
        if generation.retired_at is not None and moment - generation.retired_at > undo_window
    )
    return GenerationTarget(own.number, own.state != "retired", tuple(gone) if own.is_active else ())


@dataclass(frozen=True, slots=True)
class ReembedPolicy:
    """Which model embeds, and how.

    Args:
        identity: What the embedder's vectors are.
        thresholds: Cosines that belong to the model.
        undo_window: How long the vectors of the generation before are kept after the switch.
        page_rows: Most rows of a page.
    """

    identity: ModelIdentity
    thresholds: Thresholds = field(default_factory=dict)
    undo_window: timedelta = timedelta(days=30)
    page_rows: int = MAX_PAGE_TEXTS


class ReembedJob:
    """Embeds whatever of a namespace lacks vectors of the configured model.

    If that model's vectors are the ones that searches read, what lacks them is caught up: what was written while one
    model took the other's place, or came back from the archive. If they are not, its generation is built beside the
    active one, which searches and writes go on with; `lamina up` with the model switches once nothing is left.

    Args:
        pool: Connections to Postgres.
        embedder: The configured model.
        policy: Which one it is.
    """

    def __init__(self, pool: Pool, embedder: Embedder, policy: ReembedPolicy) -> None:
        self._pool = pool
        self._embedder = embedder
        self._policy = policy
        self._page_rows = min(policy.page_rows, MAX_PAGE_TEXTS)

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[VectorPage | OutdatedVectors]:
        """Read and embed one page of what lacks vectors; then, of what has vectors too many."""
        policy = self._policy
        target = choose_target(await list_generations(self._pool), policy.identity, moment, policy.undo_window)
        for step, last in _steps(after):
            rows = await self._rows(area, step, last, target)
            if rows:
                plan = await self._plan(step, rows, target)
                return Page(plan, self._next(step, rows), seen=len(rows), planned=len(rows))
        return Page(VectorPage(STEPS[0]) if after is None and not target.is_begun else None)

    async def preview(self, area: Area, after: PageCursor, moment: datetime) -> Page[None]:
        """Count one page of what lacks vectors, or has vectors too many."""
        policy = self._policy
        target = choose_target(await list_generations(self._pool), policy.identity, moment, policy.undo_window)
        for step, last in _steps(after):
            rows = await self._rows(area, step, last, target)
            if rows:
                return Page(None, self._next(step, rows), seen=len(rows), planned=len(rows))
        return Page(None)

    async def _rows(self, area: Area, step: str, after: str | None, target: GenerationTarget) -> list[DictRow]:
        if step != OUTDATED:
            return await read_unembedded(self._pool, step, area, target.number, after=after, limit=self._page_rows)
        if not target.outdated:
            return []
        ids = await find_outdated(self._pool, area, target.outdated, after=after, limit=self._page_rows)
        return [{"id": id_} for id_ in ids]

    def _next(self, step: str, rows: Sequence[DictRow]) -> PageCursor:
        if len(rows) == self._page_rows:
            return {"step": step, "id": str(rows[-1]["id"])}
        following = STEPS[STEPS.index(step) + 1 :]
        return {"step": following[0], "id": None} if following else None

    async def _plan(self, step: str, rows: Sequence[DictRow], target: GenerationTarget) -> VectorPage | OutdatedVectors:
        if step == OUTDATED:
            return OutdatedVectors(tuple(row["id"] for row in rows), target.outdated)
        texts = [EMBEDDED[step].text(row) for row in rows]
        chunks = await self._embed(texts)
        embedded = await asyncio.to_thread(_embedded, EMBEDDED[step], rows, texts, chunks)
        return VectorPage(step, embedded, target.number if target.is_begun else None)

    async def _embed(self, texts: Sequence[str]) -> list[tuple[Chunk, ...]]:
        found: list[tuple[Chunk, ...]] = []
        for start in range(0, len(texts), TEXTS_PER_CALL):
            found += await self._embedder.embed_chunks(texts[start : start + TEXTS_PER_CALL])
        if len(found) != len(texts):
            raise Unavailable("embedder", f"it returned {len(found)} results for {len(texts)} texts")
        return found

    async def act(self, writer: RowWriter, area: Area, plan: VectorPage | OutdatedVectors) -> RunCounts:
        """Write the vectors of what still says the same, or remove those that nobody reads."""
        if isinstance(plan, OutdatedVectors):
            return RunCounts(changed=await delete_outdated(writer.connection, area, plan.ids, plan.generations))
        return RunCounts(changed=await self._write(writer.connection, area, plan))

    async def _write(self, connection: Connection, area: Area, plan: VectorPage) -> int:
        number = plan.generation
        if number is None:
            number = await begin_generation(connection, self._policy.identity, self._policy.thresholds)
        if not plan.rows:
            return 0
        ids = await write_vectors(connection, plan.kind, area, number, plan.rows)
        active = await read_active_generation(connection)
        if ids and active is not None and active.number == number:
            await _tell(connection, area, plan.kind, sorted(ids))
        return len(ids)

    async def size(self, area: Area) -> int:  # noqa: ARG002 - nothing leaves a search
        """Return 0: nothing leaves a search."""
        return 0

    async def undo(self, connection: Connection, run: UUID) -> RunCounts:
        """Drop the vectors that the run's area has of the generation that is being built, those of other runs included.

        Raises:
            Conflict: If searches read the generation: then there is nothing to go back to.
        """
        known = await list_generations(self._pool)
        own = next((one for one in known if one.identity == self._policy.identity), None)
        if own is None:
            return RunCounts()
        if own.is_active:
            raise Conflict(
                f"searches read the vectors of {own.identity.model}; to go back, run `python -m jobs reembed` with the "
                "model before it, and start with that one"
            )
        dropped = await drop_building(connection, await run_area(connection, run), own.number)
        return RunCounts(seen=dropped, changed=dropped)


def _steps(after: PageCursor) -> Iterator[tuple[str, str | None]]:
    """Yield the steps that are left, each with the id after which it begins."""
    first = STEPS[0] if after is None else after["step"]
    for step in STEPS[STEPS.index(first) :]:
        yield step, after["id"] if after is not None and step == first else None


def _embedded(
    kind: EmbeddingStatements, rows: Sequence[DictRow], texts: Sequence[str], chunks: Sequence[tuple[Chunk, ...]]
) -> tuple[EmbeddedRow, ...]:
    kept = chunks if kind.is_cut else [(_mean(text, found),) for text, found in zip(texts, chunks, strict=True)]
    return tuple(
        EmbeddedRow(
            row["id"], row["guard"], found, tuple(" ".join(words(text[chunk.start : chunk.end])) for chunk in found)
        )
        for row, text, found in zip(rows, texts, kept, strict=True)
    )


def _mean(text: str, chunks: tuple[Chunk, ...]) -> Chunk:
    return Chunk(0, len(text), mean_vector(chunks).tobytes())


async def _tell(connection: Connection, area: Area, kind: str, ids: Sequence[UUID]) -> None:
    """Have the projections take over what can be found from now on, and end what was answered without it."""
    for projection in EMBEDDING_PROJECTIONS[kind]:
        await enqueue(connection, projection, ids)
    await bump_epoch(connection, area.scope(), teaches=True)
