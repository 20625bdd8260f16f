"""Many memories in an empty database before a service is started on it: through the library's write path, in bulk."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.job_data import settle
from benchmarks.report import stage
from benchmarks.timing import run_all
from lamina.cli.local import LOCAL_TENANT
from lamina.core.memories import Chunk, Message, Note, Role
from lamina.core.ports import Embedder
from lamina.core.scope import Scope
from lamina.ingest.turns import Recorder
from lamina.settings.loading import load_settings
from lamina.settings.stores import PostgresServerSettings
from lamina.settings.writing import WriteSettings
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.migrate import migrate
from lamina.wiring.jobs import build_job_embedder
from lamina.wiring.services import build_recorder
from lamina.wiring.stores import build_pool, model_identity

TEXTS_AT_ONCE = 40
NOTES_OF_THEM = 8
WRITES_AT_ONCE = 4
WRITES_PER_SESSION = 4
EMBED_DEADLINE_S = 600.0
STAGES = 10

# The embedded chunks of each text that was written before.
Embedded = dict[str, tuple[Chunk, ...]]


@dataclass(frozen=True, slots=True)
class Write:
    """Texts that are written together.

    Args:
        scope: Of a workspace and a session of it.
        messages: The texts that are said in the session.
        notes: The texts that are noted.
    """

    scope: Scope
    messages: tuple[str, ...]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.messages) + len(self.notes)


def workspace_of(number: int) -> str:
    """Return the name of a workspace."""
    return f"latency-{number}"


def writes(texts: Sequence[str], workspaces: int) -> Iterator[Write]:
    """Yield all texts, as many to each workspace, the texts of one in their order: four messages to a note."""
    for number in range(workspaces):
        own = texts[number * len(texts) // workspaces : (number + 1) * len(texts) // workspaces]
        for place, start in enumerate(range(0, len(own), TEXTS_AT_ONCE)):
            some = tuple(own[start : start + TEXTS_AT_ONCE])
            notes = len(some) * NOTES_OF_THEM // TEXTS_AT_ONCE
            session = f"session-{place // WRITES_PER_SESSION}"
            scope = Scope(LOCAL_TENANT, workspace_of(number), session=session)
            yield Write(scope, some[: len(some) - notes], some[len(some) - notes :])


class RememberingEmbedder:
    """Embeds each text once, for all layouts of the same texts.

    Args:
        embedder: Embeds them.
        embedded: What it embedded before.
    """

    def __init__(self, embedder: Embedder, embedded: Embedded) -> None:
        self._embedder = embedder
        self._embedded = embedded

    async def embed_texts(self, scope: Scope, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:  # noqa: ARG002
        """Return the embedded chunks of each text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._embedded]
        if new:
            self._embedded |= dict(zip(new, await self._embedder.embed_chunks(new), strict=True))
        return [self._embedded[text] for text in texts]


def load_memories(data_dir: Path, url: str, texts: Sequence[str], workspaces: int, embedded: Embedded) -> None:
    """Write the texts into an empty database.

    Args:
        data_dir: Of the service that will be started.
        url: The database.
        texts: No two the same.
        workspaces: Over which they are spread.
        embedded: What was embedded before; it is added to.
    """
    migrate(url)
    asyncio.run(_load(data_dir, url, list(writes(texts, workspaces)), embedded))
    settle(url)


async def _load(data_dir: Path, url: str, planned: Sequence[Write], embedded: Embedded) -> None:
    write = WriteSettings(embed_deadline_s=EMBED_DEADLINE_S, embed_budget_s=EMBED_DEADLINE_S)
    settings = load_settings(data_dir=data_dir, postgres=PostgresServerSettings(url=url), write=write)
    generation = await asyncio.to_thread(claim_generation, url, model_identity(settings))
    embedder = build_job_embedder(settings)
    whole, written, begin = sum(map(len, planned)), 0, time.monotonic()
    async with build_pool(settings) as pool:
        texts = RememberingEmbedder(embedder, embedded)
        recorder = build_recorder(settings, pool, embedder, texts, generation.number)

        async def act(item: Write) -> None:
            nonlocal written
            await _write(recorder, item)
            tenths, written = written * STAGES // whole, written + len(item)
            if written * STAGES // whole > tenths:
                stage(f"{written} of {whole} memories, {written / (time.monotonic() - begin):.0f} a second")

        await run_all(planned, act, concurrency=WRITES_AT_ONCE)


async def _write(recorder: Recorder, item: Write) -> None:
    if item.messages:
        await recorder.record_turn(item.scope, [Message(Role.USER, text) for text in item.messages])
    if item.notes:
        scope = Scope(item.scope.tenant, item.scope.workspace)
        await recorder.put_notes(scope, [Note(text) for text in item.notes])


def held_out(texts: Sequence[str], questions: int) -> tuple[list[str], list[str]]:
    """Return the texts that are stored, and evenly among them so many that are asked instead."""
    step = max(1, len(texts) // max(1, questions))
    asked = [*range(step // 2, len(texts), step)][:questions]
    apart = set(asked)
    return [text for place, text in enumerate(texts) if place not in apart], [texts[place] for place in asked]


def place_of(question: int, questions: int, workspaces: int) -> str:
    """Return the workspace that holds the neighbours of a text that was held out."""
    return workspace_of(question * workspaces // questions)
