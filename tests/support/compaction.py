"""Sessions that are near their budget, and the job that compacts them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lamina.core.runs import Order, Run, RunCounts
from lamina.core.scope import Scope
from lamina.errors import Unavailable
from lamina.extraction.extractive_summaries import ExtractiveSummarizer, SourceText, Summarizer
from lamina.maintenance.compaction import CompactionJob
from lamina.maintenance.job import Job
from lamina.maintenance.undo import Undo
from lamina.policies.retention.session_budget import CompactionPolicy
from lamina.wiring.jobs import undo_window
from lamina.wiring.stores import postgres_url
from tests.support.application import Application
from tests.support.jobs import area_of, driver_of, tools_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
POLICY = CompactionPolicy(budget_tokens=1000, summary_tokens=150)
CHATTER = (
    "we talked about the weather near the old pier and how the wind turned",
    "somebody asked whether the paint on the mast had dried by then",
    "the cook wants to know who eats aboard and who prefers the tavern",
    "it seems the gulls were louder than ever during the whole morning",
    "nobody remembers where the spare rope was put after the last trip",
)


@dataclass
class Refusing:
    """A summariser that does not answer for sources that say a word."""

    summarizer: Summarizer
    word: str
    asked: list[str] = field(default_factory=list)

    async def summarize(self, sources: Sequence[SourceText], *, most_tokens: int) -> str:
        told = " ".join(source.text for source in sources)
        self.asked.append(told)
        if self.word in told:
            raise Unavailable("language_model", "no answer within 30 s")
        return await self.summarizer.summarize(sources, most_tokens=most_tokens)


def summarizer_of(app: Application) -> Summarizer:
    return ExtractiveSummarizer(tools_of(app).embedder)


def compaction_of(app: Application, policy: CompactionPolicy = POLICY, **chosen: Any) -> CompactionJob:
    """Return the job, over doubles where some are given."""
    embedder = tools_of(app).embedder
    parts = {"summarizer": summarizer_of(app), "embedder": embedder, "identity": app.model.identity} | chosen
    return CompactionJob(app.pool, policy=policy, **parts)


async def compact(app: Application, job: Job[Any] | None = None, **order: Any) -> Run:
    """Compact the tenant's sessions."""
    wanted = Order("compaction", replace(area_of(Scope(app.tenant)), workspace=None, namespace=None), NOON, **order)
    return await driver_of(app, "compaction", job or compaction_of(app)).start(wanted)


async def undo(app: Application, run: Run) -> RunCounts:
    """Take a compaction back."""
    job = compaction_of(app)
    return await Undo(postgres_url(app.settings), app.pool, job, window=undo_window(app.settings)).undo(
        run.id, datetime.now(UTC)
    )


async def say(app: Application, session: str, *contents: str, first: int = 0, **fields: Any) -> None:
    """Say something in a session, a minute apart from noon on."""
    messages = [
        {"role": "user", "content": content, "occurred_at": (NOON + (first + place) * MINUTE).isoformat()}
        for place, content in enumerate(contents)
    ]
    answer = await app.client().post("/v1/turns", json={"session": session, "messages": messages, **fields})
    assert answer.status_code in {200, 201}, answer.text


def chatter(count: int) -> list[str]:
    """Return so many different messages without a figure, of 14 to 23 tokens."""
    return [
        f"{CHATTER[place % 5]}, said {'abcdefghijklmnop'[place % 16]}{'xyz'[place // 16 % 3]}" for place in range(count)
    ]


def words(tokens: int) -> str:
    """Return a text of so many tokens."""
    return " ".join(["word"] * tokens)


async def history(app: Application, session: str, **params: Any) -> list[dict[str, Any]]:
    """Return what stands in a session."""
    asked = {"limit": 500, **params}
    answer = await app.client().get(f"/v1/sessions/{session}/messages", params=asked)
    return list(answer.json()["messages"])


async def found_messages(app: Application, query: str, **fields: Any) -> list[dict[str, Any]]:
    """Return the messages that a search finds."""
    await app.indexed()
    asked = {"query": query, "tiers": ["sessions"], "limit": 50, **fields}
    answer = await app.client().post("/v1/search", json=asked)
    assert answer.status_code == 200, answer.text
    return [one for one in answer.json()["results"] if one["kind"] == "message"]


TABLES = {
    "messages": "id",
    "message_chunks": "message_id, generation, chunk",
    "compacted_chunks": "message_id, generation, chunk",
    "memory_links": "from_id, to_id, kind",
    "entities": "id",
}


async def checksums(app: Application, tables: Sequence[str] = tuple(TABLES)) -> dict[str, str]:
    """Return a checksum of each table's rows of the tenant."""
    sums = {}
    async with app.pool.connection() as connection:
        for table in tables:
            statement = f"SELECT t::text AS row FROM {table} t WHERE tenant = %s ORDER BY {TABLES[table]}"  # noqa: S608
            cursor = await connection.execute(statement.encode(), [app.tenant])
            told = "\n".join([row["row"] async for row in cursor])
            sums[table] = hashlib.sha256(told.encode()).hexdigest()
    return sums
