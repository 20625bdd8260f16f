"""The cost of adding a note beside few notes and beside many, in turns, so that other load counts for both."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from benchmarks.generated_sentences import Wording
from benchmarks.job_data import NoteBatch
from benchmarks.job_runs import TENANT, JobBench, fill
from benchmarks.report import stage
from benchmarks.timing import Latencies, timed
from lamina.core.memories import Chunk, Note
from lamina.core.ports import Embedder
from lamina.core.scope import Scope
from lamina.ingest.turns import Recorder
from lamina.settings.loading import Settings
from lamina.stores.postgres.generations import claim_generation
from lamina.wiring.jobs import build_job_embedder
from lamina.wiring.services import build_recorder
from lamina.wiring.stores import build_pool, model_identity, postgres_url

FEW_NOTES = 1_000
ADDS = 200
WARM_UP_ADDS = 20
WORKSPACE = "written"
SCOPE = Scope(TENANT, WORKSPACE, "scope-0")
SEED = 20_240_601


@dataclass(frozen=True, slots=True)
class Uncached:
    """Embed the texts of every scope, without a cache."""

    embedder: Embedder

    async def embed_texts(self, scope: Scope, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:  # noqa: ARG002
        """Return the embedded chunks of each text."""
        return await self.embedder.embed_chunks(texts)


def measure_adds(place: JobBench, notes: int) -> dict[str, Any]:
    """Return how long it takes to add a note to a namespace of 1000 notes and to one of many, with every index."""
    with place.database("few_notes") as few, place.database("many_notes") as many:
        settings = [_filled(place, url, count) for url, count in ((few, FEW_NOTES), (many, notes))]
        few_ms, many_ms = (Latencies.of(elapsed_ms) for elapsed_ms in asyncio.run(_added(settings)))
    stage(f"{ADDS} notes added, p50 {few_ms.p50_ms:.1f} ms beside {FEW_NOTES}, {many_ms.p50_ms:.1f} ms beside {notes}")
    return {
        "add_few_p50_ms": few_ms.p50_ms,
        "add_many_p50_ms": many_ms.p50_ms,
        "add_few_p95_ms": few_ms.p95_ms,
        "add_many_p95_ms": many_ms.p95_ms,
        "add_ratio": many_ms.p50_ms / few_ms.p50_ms,
    }


def _filled(place: JobBench, url: str, notes: int) -> Settings:
    settings = place.settings(url, f"adds_{notes}")
    fill(settings, url, NoteBatch(TENANT, WORKSPACE, notes, 1, datetime.now(UTC)), is_searched=True)
    stage(f"{notes} notes written, with every index")
    return settings


async def _added(settings: Sequence[Settings]) -> list[list[float]]:
    """Return the milliseconds of each add, for each database."""
    wording = Wording(np.random.default_rng(SEED))
    elapsed_ms: list[list[float]] = [[] for _ in settings]
    async with _recorder(settings[0]) as few, _recorder(settings[1]) as many:
        for turn in range(WARM_UP_ADDS + ADDS):
            note = Note(f"{wording.statement()} ({turn})")
            for place, recorder in enumerate((few, many)):
                outcome = await timed(recorder.put_notes(SCOPE, [note]))
                elapsed_ms[place].append(outcome.elapsed_ms)
    return [some[WARM_UP_ADDS:] for some in elapsed_ms]


@asynccontextmanager
async def _recorder(settings: Settings) -> AsyncIterator[Recorder]:
    generation = await asyncio.to_thread(claim_generation, postgres_url(settings), model_identity(settings))
    embedder = build_job_embedder(settings)
    async with build_pool(settings) as pool:
        yield build_recorder(settings, pool, embedder, Uncached(embedder), generation.number)
