"""The compaction of sessions: older messages leave them, and summaries take their place."""

import asyncio
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.memories import Chunk, Message, Role, clean_message
from lamina.core.ports import Embedder, ModelIdentity
from lamina.core.runs import RunCounts
from lamina.core.scope import Scope
from lamina.errors import LaminaError, NotFound
from lamina.extraction.extractive_summaries import LEAST_TOKENS, SourceText, Summarizer
from lamina.extraction.name_matching import TextWords, split_words
from lamina.ingest.name_lookup import EntitiesByName, find_names_in
from lamina.maintenance.job import Page, PageCursor
from lamina.maintenance.row_writer import RowWriter
from lamina.policies.retention.provenance import Origin, derived_id
from lamina.policies.retention.session_budget import (
    BudgetForecast,
    CompactionPolicy,
    SessionMessage,
    forecast,
    plan_compaction,
)
from lamina.settings import JobsSettings
from lamina.stores.postgres.compaction import (
    SessionSummary,
    delete_summaries,
    find_large_sessions,
    has_session,
    insert_summaries,
    lock_live_messages,
    read_live_messages,
)
from lamina.stores.postgres.connection import Connection, Pool
from lamina.stores.postgres.entities import keep_entities
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.generations import read_active_generation, require_generation
from lamina.stores.postgres.job_changes import RowChange, take_rows
from lamina.stores.postgres.links import copy_mentions, remove_from_graph
from lamina.stores.postgres.outbox import enqueue
from lamina.stores.postgres.vectors import EmbeddedRow, write_vectors
from lamina.text.words import estimated_tokens

SUMMARY_NAME = "summary"
PAGE_SESSIONS = 16
UNDO_PAGE = 500
MADE = "session_summaries"
_NAME_TOKENS = estimated_tokens(f"{SUMMARY_NAME}: ")
LEAST_SHARE = LEAST_TOKENS + _NAME_TOKENS
Value = TypeVar("Value")


def compaction_policy(chosen: JobsSettings) -> CompactionPolicy:
    """Return what the settings say; a summary takes at most half of what is left of the session."""
    of = chosen.compaction
    half = int(of.target * of.budget_tokens / 2)
    return CompactionPolicy(
        budget_tokens=of.budget_tokens,
        near=of.near,
        due=of.due,
        target=of.target,
        keep=of.keep_messages,
        summary_tokens=max(LEAST_SHARE, min(chosen.summaries.tokens, half)),
    )


@dataclass(frozen=True, slots=True)
class LiveMessage:
    """A message that stands in its session.

    Args:
        user: Who alone may read it; ``None``: everybody.
        tokens: Estimated, of what readers are shown.
    """

    id: UUID
    position: int
    message: Message
    user: str | None
    agent: str | None
    swarm: str | None
    content_hash: bytes
    is_summary: bool
    occurred_at: datetime
    tokens: int

    def source(self) -> SourceText:
        """Return it as what a summary is made from: with who said it, but for a summary, which tells it itself."""
        said = self.message
        text = said.content if self.is_summary else f"{said.name or said.role.value}: {said.content}"
        return SourceText(text, self.occurred_at)

    def stands_for(self) -> tuple[int, int]:
        """Return how many messages it is or stands for, and the position of the first of them."""
        told = self.message.metadata.get("summary", {}) if self.is_summary else {}
        return told.get("messages", 1), told.get("from", self.position)


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """Messages that one summary is to stand for.

    Args:
        messages: Of one user, oldest first: whoever may read the summary may read them all.
        most_tokens: Of the summary as it is shown.
    """

    messages: tuple[LiveMessage, ...]
    most_tokens: int

    @property
    def is_worth_it(self) -> bool:
        """Tell whether a summary is shorter, and not just a shorter summary of a summary."""
        is_new = len(self.messages) > 1 or not self.messages[0].is_summary
        return is_new and _tokens(self.messages) > self.most_tokens


def summary_parts(messages: Sequence[LiveMessage], policy: CompactionPolicy) -> list[SummaryPart]:
    """Return what becomes of a session: one summary for the messages of each user, and one for the shared ones.

    So nobody learns from a summary what another user said. The room is shared by how much each said.

    Args:
        messages: All that stands in the session, in order.
        policy: When compaction is due, and how far it goes.
    """
    found = plan_compaction([_measured(item) for item in messages], policy)
    if found is None:
        return []
    by_user: dict[str | None, list[LiveMessage]] = {}
    for item in messages[: len(found.positions)]:
        by_user.setdefault(item.user, []).append(item)
    parts = (
        SummaryPart(tuple(of), max(LEAST_SHARE, policy.summary_tokens * _tokens(of) // found.tokens))
        for of in by_user.values()
    )
    return [part for part in parts if part.is_worth_it]


def _measured(item: LiveMessage) -> SessionMessage:
    return SessionMessage(item.position, item.tokens, item.occurred_at)


def _tokens(messages: Iterable[LiveMessage]) -> int:
    return sum(item.tokens for item in messages)


@dataclass(frozen=True, slots=True)
class SessionForecast:
    """How full a session is.

    Args:
        was_compacted: Whether summaries stand in it.
    """

    forecast: BudgetForecast
    was_compacted: bool


class Sessions:
    """Reads what stands in sessions.

    Args:
        pool: Connections to Postgres.
        policy: When compaction is near and due.
    """

    def __init__(self, pool: Pool, policy: CompactionPolicy) -> None:
        self._pool = pool
        self.policy = policy

    async def live(self, scope: Scope) -> list[LiveMessage]:
        """Return all that stands in the scope's session, whoever may read it."""
        rows = await read_live_messages(self._pool, scope)
        return await asyncio.to_thread(lambda: [_live(row) for row in rows])

    async def forecast(self, scope: Scope, now: datetime) -> SessionForecast:
        """Return how full the scope's session is; a user is told the positions of what that user may read alone.

        Raises:
            NotFound: If there is no such session.
        """
        messages = await self.live(scope)
        if not messages and not await has_session(self._pool, scope):
            raise NotFound("session", str(scope.session))
        found = forecast([_measured(item) for item in messages], self.policy, now)
        readable = {item.position for item in messages if scope.user is None or item.user in {None, scope.user}}
        told = replace(found, compacts=tuple(place for place in found.compacts if place in readable))
        return SessionForecast(told, any(item.is_summary for item in messages))


def _live(row: DictRow) -> LiveMessage:
    message = Message(Role(row["role"]), row["content"], name=row["name"], metadata=row["metadata"] or {})
    return LiveMessage(
        id=row["id"],
        position=row["position"],
        message=message,
        user=row["user_id"],
        agent=row["agent_id"],
        swarm=row["swarm_id"],
        content_hash=bytes(row["content_hash"]),
        is_summary=row["is_summary"],
        occurred_at=row["occurred_at"],
        tokens=estimated_tokens(message.text()),
    )


@dataclass(frozen=True, slots=True)
class PreparedSummary:
    """A summary that is ready to be written.

    Args:
        stood: What it stands for, oldest first.
        message: Its text, named and dated.
        reading: Its words, as the graph reads them.
    """

    id: UUID
    session: str
    stood: tuple[LiveMessage, ...]
    message: Message
    chunks: tuple[Chunk, ...]
    reading: TextWords

    @property
    def last(self) -> LiveMessage:
        """Return the message whose place it takes."""
        return self.stood[-1]

    def content_hash(self) -> bytes:
        """Return the hash under which its session holds it once; no message that somebody sends has the same."""
        return replace(self.message, ref=str(self.id)).identity(self.last.occurred_at)


@dataclass(frozen=True, slots=True)
class CompactedSession:
    """What becomes of one session, all of it or nothing."""

    summaries: tuple[PreparedSummary, ...]
    generation: int

    @property
    def stood(self) -> list[LiveMessage]:
        """Return what leaves the session."""
        return [item for summary in self.summaries for item in summary.stood]


@dataclass(frozen=True, slots=True)
class _Outcome:
    seen: int
    compacted: CompactedSession | None = None
    problem: str | None = None


class CompactionJob:
    """Puts summaries in the place of the older messages of sessions that are near their budget.

    The messages stay in Postgres, out of every search, until an undo of the run brings them back. Though they count as
    removed, no share of them is too much: that they make room is what was asked for, and their summaries are found.
    A session whose summariser fails stays as it is, and the next run tries it again.

    Args:
        pool: Connections to Postgres.
        summarizer: Condenses messages.
        embedder: Embeds summaries.
        identity: Of its model.
        policy: When a session is due, and how far it is compacted.
        page_sessions: Most sessions of a page.
    """

    def __init__(
        self,
        pool: Pool,
        summarizer: Summarizer,
        embedder: Embedder,
        identity: ModelIdentity,
        policy: CompactionPolicy,
        *,
        page_sessions: int = PAGE_SESSIONS,
    ) -> None:
        self._pool = pool
        self._sessions = Sessions(pool, policy)
        self._summarizer = summarizer
        self._embedder = embedder
        self._identity = identity
        self._policy = policy
        self._page_sessions = page_sessions

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[list[CompactedSession]]:
        """Read some sessions, and have those summarised that are due.

        Raises:
            Misconfigured: If one is due and the stores hold vectors of another model.
        """
        ids = await self._large(area, after)
        outcomes = [await self._decided(area.scope().narrowed(session=id_), moment) for id_ in ids]
        compacted = [one.compacted for one in outcomes if one.compacted]
        gone = sum(len(one.stood) for one in compacted)
        return Page(
            compacted or None,
            {"session": ids[-1]} if len(ids) == self._page_sessions else None,
            seen=sum(one.seen for one in outcomes),
            planned=gone + sum(len(one.summaries) for one in compacted),
            removals=gone,
            problems=tuple(one.problem for one in outcomes if one.problem),
        )

    async def preview(self, area: Area, after: PageCursor, moment: datetime) -> Page[None]:  # noqa: ARG002 - no clock
        """Read some sessions, and count what would be compacted."""
        ids = await self._large(area, after)
        live = [await self._sessions.live(area.scope().narrowed(session=id_)) for id_ in ids]
        due = [summary_parts(messages, self._policy) for messages in live]
        gone = sum(len(share.messages) for one in due for share in one)
        following = {"session": ids[-1]} if len(ids) == self._page_sessions else None
        return Page(None, following, sum(map(len, live)), gone + sum(map(len, due)), gone)

    async def _large(self, area: Area, after: PageCursor) -> list[str]:
        return await find_large_sessions(
            self._pool,
            area,
            least_tokens=math.floor(self._policy.due * self._policy.budget_tokens),
            after=None if after is None else after["session"],
            limit=self._page_sessions,
        )

    async def _decided(self, scope: Scope, moment: datetime) -> _Outcome:
        messages = await self._sessions.live(scope)
        due = summary_parts(messages, self._policy)
        if not due:
            return _Outcome(len(messages))
        generation = (await require_generation(self._pool, self._identity)).number
        try:
            summaries = await self._prepared(scope, due, moment)
        except LaminaError as error:
            where = Area(scope.tenant, scope.workspace, scope.namespace)
            return _Outcome(len(messages), problem=f"session {scope.session}: {error} ({where})")
        return _Outcome(len(messages), CompactedSession(summaries, generation))

    async def _prepared(
        self, scope: Scope, due: Sequence[SummaryPart], moment: datetime
    ) -> tuple[PreparedSummary, ...]:
        messages = [await self._condensed(share) for share in due]
        texts = [message.text() for message in messages]
        chunks = await self._embedder.embed_chunks(texts)
        readings = await asyncio.to_thread(lambda: [split_words(text) for text in texts])
        return tuple(
            PreparedSummary(_id(scope, share, moment), str(scope.session), share.messages, message, of, reading)
            for share, message, of, reading in zip(due, messages, chunks, readings, strict=True)
        )

    async def _condensed(self, share: SummaryPart) -> Message:
        sources = [item.source() for item in share.messages]
        text = await self._summarizer.summarize(sources, most_tokens=share.most_tokens - _NAME_TOKENS)
        return clean_message(_message(text, share.messages), SUMMARY_NAME)

    async def act(self, writer: RowWriter, area: Area, plan: list[CompactedSession]) -> RunCounts:
        """Compact the sessions all of whose messages still stand; nothing while another model takes over."""
        stood = {item.id: item.content_hash for one in plan for item in one.stood}
        locked = await lock_live_messages(writer.connection, area, stood)
        active = await read_active_generation(writer.connection)
        number = 0 if active is None else active.number
        sound = [one for one in plan if one.generation == number and {item.id for item in one.stood} <= locked]
        made = [summary for one in sound for summary in one.summaries]
        if not made:
            return RunCounts()
        await _write(writer, area, made, number)
        departures = [change for one in made for change in _departures(one, writer.moment)]
        gone = await writer.change_messages(departures, tenant=area.tenant)
        return RunCounts(changed=len(gone) + len(made), removed=len(gone))

    async def size(self, area: Area) -> int:  # noqa: ARG002 - see the class: no share is too much
        """Return 0: what leaves has a summary."""
        return 0

    async def undo(self, connection: Connection, run: UUID) -> RunCounts:
        """Remove some of the summaries that a run made, whose messages are back."""
        ids = await take_rows(connection, run, MADE, UNDO_PAGE)
        rows = await delete_summaries(connection, ids)
        gone = [row["id"] for row in rows]
        changed = await remove_from_graph(connection, gone)
        await enqueue(connection, "messages", gone)
        await enqueue(connection, "graph", [*gone, *sorted(changed)])
        for scope in sorted({(row["tenant"], row["workspace"], row["namespace"]) for row in rows}):
            await bump_epoch(connection, Scope(*scope), teaches=True)
        return RunCounts(seen=len(ids), changed=len(gone))


def _id(scope: Scope, share: SummaryPart, moment: datetime) -> UUID:
    """Return an id by the run's moment too: one that a later run makes must not go with an earlier one's undo."""
    origins = [Origin(item.id, item.content_hash) for item in share.messages]
    what = ("compaction", str(scope.session), moment.isoformat())
    return derived_id(scope, share.messages[0].user, what, origins)


def _message(text: str, stood: Sequence[LiveMessage]) -> Message:
    counted = [item.stands_for() for item in stood]
    told = {
        "messages": sum(count for count, _ in counted),
        "from": min(first for _, first in counted),
        "to": stood[-1].position,
    }
    return Message(Role.SYSTEM, text, name=SUMMARY_NAME, occurred_at=stood[-1].occurred_at, metadata={"summary": told})


def _departures(summary: PreparedSummary, moment: datetime) -> list[RowChange]:
    after = {"compacted_at": moment, "compacted_into": summary.id}
    return [RowChange(item.id, after, {"compacted_at": None}) for item in summary.stood]


async def _write(writer: RowWriter, area: Area, made: Sequence[PreparedSummary], generation: int) -> None:
    connection = writer.connection
    await insert_summaries(
        connection,
        area,
        [_row(summary) for summary in made],
        name=SUMMARY_NAME,
        moment=writer.moment,
        run=writer.run,
        relation=MADE,
    )
    vectors = [EmbeddedRow(summary.id, summary.content_hash(), summary.chunks) for summary in made]
    await write_vectors(connection, "messages", area, generation, vectors)
    await _link(connection, area, made)
    for projection in ("messages", "graph"):
        await enqueue(connection, projection, [summary.id for summary in made])


def _row(summary: PreparedSummary) -> SessionSummary:
    return SessionSummary(
        id=summary.id,
        session=summary.session,
        user=summary.last.user,
        agent=_common(item.agent for item in summary.stood),
        swarm=_common(item.swarm for item in summary.stood),
        position=summary.last.position,
        content=summary.message.content,
        content_hash=summary.content_hash(),
        metadata=summary.message.metadata,
        occurred_at=summary.last.occurred_at,
    )


def _common(values: Iterable[Value | None]) -> Value | None:
    """Return what all have, if they have the same."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


async def _link(connection: Connection, area: Area, made: Sequence[PreparedSummary]) -> None:
    """Link summaries to the entities they name, as far as what they stand for was linked to them."""
    names = await find_names_in(connection, area.scope(), [summary.reading for summary in made])
    kept = await keep_entities(connection, area.scope(), {entity for found in names for entity in _entities(found)})
    named = [
        (summary.id, entity)
        for summary, found in zip(made, names, strict=True)
        for entity in sorted(_entities(found) & kept)
    ]
    stood = [(summary.id, item.id) for summary in made for item in summary.stood]
    await copy_mentions(connection, area, stood, named)


def _entities(found: EntitiesByName) -> set[UUID]:
    return {entity for entities in found.values() for entity in entities}
