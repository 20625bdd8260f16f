"""The summaries of a session's older messages, as compaction writes them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from lamina.core.areas import Area
from lamina.core.memories import Chunk, Message, Role
from lamina.extraction.extractive_summaries import SourceText
from lamina.extraction.name_matching import TextWords
from lamina.ingest.name_lookup import find_names_in
from lamina.maintenance.row_writer import RowWriter
from lamina.policies.retention.session_compaction import LiveMessage
from lamina.stores.postgres.compaction import SessionSummary, insert_summaries
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.entities import keep_entities
from lamina.stores.postgres.job_changes import RowChange
from lamina.stores.postgres.links import copy_mentions
from lamina.stores.postgres.outbox import enqueue
from lamina.stores.postgres.vectors import EmbeddedRow, write_vectors

SUMMARY_NAME = "summary"
MADE = "session_summaries"
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class PreparedSummary:
    """A summary that is ready to be written.

    Args:
        replaced: The messages that it replaces, oldest first.
        message: Its text, named and dated.
        words: Its words, by which the names of entities are found in it.
    """

    id: UUID
    session: str
    replaced: tuple[LiveMessage, ...]
    message: Message
    chunks: tuple[Chunk, ...]
    words: TextWords

    @property
    def last(self) -> LiveMessage:
        """Return the message whose position it takes."""
        return self.replaced[-1]

    def content_hash(self) -> bytes:
        """Return the hash that makes it unique in its session; no message of a client has the same."""
        return replace(self.message, ref=str(self.id)).identity(self.last.occurred_at)


def summary_message(text: str, replaced: Sequence[LiveMessage]) -> Message:
    """Return a summary as a message, with the number, the positions and the authors of the messages that it replaces.

    Of the authors, those who have lines in it.
    """
    covered = [item.covered() for item in replaced]
    last = replaced[-1].occurred_at
    names = dict.fromkeys(name for item in replaced for name in item.authors())
    lines = SourceText(text, last, quoted=tuple(names)).lines()
    metadata = {
        "messages": sum(count for count, _ in covered),
        "from": min(first for _, first in covered),
        "to": replaced[-1].position,
        "authors": list(dict.fromkeys(line.speaker for line in lines if line.speaker)),
    }
    return Message(Role.SYSTEM, text, name=SUMMARY_NAME, occurred_at=last, metadata={"summary": metadata})


async def write_summaries(
    writer: RowWriter, area: Area, summaries: Sequence[PreparedSummary], generation: int
) -> list[UUID]:
    """Write summaries with their vectors and links in place of the messages that they replace; return these."""
    connection = writer.connection
    rows = [_row(summary) for summary in summaries]
    await insert_summaries(
        connection, area, rows, name=SUMMARY_NAME, moment=writer.moment, run=writer.run, relation=MADE
    )
    vectors = [EmbeddedRow(summary.id, summary.content_hash(), summary.chunks) for summary in summaries]
    await write_vectors(connection, "messages", area, generation, vectors)
    await _link(connection, area, summaries)
    for projection in ("messages", "graph"):
        await enqueue(connection, projection, [summary.id for summary in summaries])
    departures = [
        RowChange(item.id, {"compacted_at": writer.moment, "compacted_into": summary.id}, {"compacted_at": None})
        for summary in summaries
        for item in summary.replaced
    ]
    return await writer.change("messages", departures, tenant=area.tenant)


def _row(summary: PreparedSummary) -> SessionSummary:
    return SessionSummary(
        id=summary.id,
        session=summary.session,
        user=summary.last.user,
        agent=_common(item.agent for item in summary.replaced),
        swarm=_common(item.swarm for item in summary.replaced),
        position=summary.last.position,
        content=summary.message.content,
        content_hash=summary.content_hash(),
        metadata=summary.message.metadata,
        occurred_at=summary.last.occurred_at,
        importance=max(item.message.importance for item in summary.replaced),
    )


def _common(values: Iterable[Value | None]) -> Value | None:
    """Return the value that all share, or ``None``."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


async def _link(connection: Connection, area: Area, summaries: Sequence[PreparedSummary]) -> None:
    """Link summaries to the entities that they name, where a message that they replace was linked to them."""
    names = await find_names_in(connection, area.scope(), [summary.words for summary in summaries])
    found = [{entity for entities in by_name.values() for entity in entities} for by_name in names]
    kept = await keep_entities(connection, area.scope(), set[UUID]().union(*found))
    named = [
        (summary.id, entity)
        for summary, entities in zip(summaries, found, strict=True)
        for entity in sorted(entities & kept)
    ]
    replaced = [(summary.id, item.id) for summary in summaries for item in summary.replaced]
    await copy_mentions(connection, area, replaced, named)
