"""The job that compacts sessions: summaries replace their older messages."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lamina.core.areas import Area
from lamina.core.events import Event, EventKind
from lamina.core.memories import Message, clean_message
from lamina.core.ports import Embedder, ModelIdentity
from lamina.core.runs import RunCounts
from lamina.core.scope import Scope
from lamina.errors import LaminaError
from lamina.extraction.extractive_summaries import LEAST_TOKENS, SourceText, Summarizer
from lamina.extraction.name_matching import split_words
from lamina.maintenance.job import Page, PageCursor
from lamina.maintenance.live_sessions import Sessions
from lamina.maintenance.row_writer import RowWriter
from lamina.maintenance.session_summaries import MADE, SUMMARY_NAME, PreparedSummary, summary_message, write_summaries
from lamina.policies.retention.provenance import Origin, derived_id
from lamina.policies.retention.session_budget import CompactionPolicy
from lamina.policies.retention.session_compaction import LiveMessage, SummaryPart, plan_summaries
from lamina.settings.jobs import JobsSettings
from lamina.stores.postgres.compaction import delete_summaries, find_large_sessions, lock_live_messages
from lamina.stores.postgres.connection import Connection, Pool
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.events import record_events
from lamina.stores.postgres.generations import read_active_generation, require_generation
from lamina.stores.postgres.job_changes import take_rows
from lamina.stores.postgres.links import remove_from_graph
from lamina.stores.postgres.outbox import enqueue
from lamina.text.words import estimated_tokens

PAGE_SESSIONS = 16
UNDO_PAGE = 500
_NAME_TOKENS = estimated_tokens(f"{SUMMARY_NAME}: ")
MIN_SUMMARY_TOKENS = LEAST_TOKENS + _NAME_TOKENS


def compaction_policy(chosen: JobsSettings) -> CompactionPolicy:
    """Return the policy of the settings; a summary takes at most half of the tokens that the session is left with."""
    of = chosen.compaction
    half = int(of.target * of.budget_tokens / 2)
    return CompactionPolicy(
        budget_tokens=of.budget_tokens,
        near=of.near,
        due=of.due,
        target=of.target,
        keep=of.keep_messages,
        # Half: with a longer summary the session would be due again after a few messages.
        summary_tokens=max(MIN_SUMMARY_TOKENS, min(chosen.summaries.tokens, half)),
    )


@dataclass(frozen=True, slots=True)
class CompactedSession:
    """The summaries of one session, which are written all together or not at all.

    Args:
        generation: Of their vectors.
    """

    summaries: tuple[PreparedSummary, ...]
    generation: int

    @property
    def replaced(self) -> list[LiveMessage]:
        """Return the messages that leave the session."""
        return [item for summary in self.summaries for item in summary.replaced]


@dataclass(frozen=True, slots=True)
class _Decision:
    seen: int
    compacted: CompactedSession | None = None
    problem: str | None = None


class CompactionJob:
    """Replaces the older messages of sessions near their budget by summaries.

    The messages stay in Postgres, out of every search, until an undo of the run brings them back. They count as
    removed, but no share of them is too large: the job is there to make room, and searches find the summaries.
    A session whose summariser fails is left alone, and the next run tries it again.

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
        """Read some sessions, and summarise those that are due.

        Raises:
            Misconfigured: If one is due and the stores hold vectors of another model.
        """
        ids, following = await self._page(area, after)
        decisions = [await self._decide(area.scope().narrowed(session=id_), moment) for id_ in ids]
        compacted = [one.compacted for one in decisions if one.compacted]
        removals = sum(len(one.replaced) for one in compacted)
        return Page(
            compacted or None,
            following,
            seen=sum(one.seen for one in decisions),
            planned=removals + sum(len(one.summaries) for one in compacted),
            removals=removals,
            problems=tuple(one.problem for one in decisions if one.problem),
        )

    async def preview(self, area: Area, after: PageCursor, moment: datetime) -> Page[None]:  # noqa: ARG002 - no clock
        """Read some sessions, and count the messages and summaries that a run would change."""
        ids, following = await self._page(area, after)
        live = [await self._sessions.live(area.scope().narrowed(session=id_)) for id_ in ids]
        due = [plan_summaries(messages, self._policy, min_tokens=MIN_SUMMARY_TOKENS) for messages in live]
        removals = sum(len(part.messages) for parts in due for part in parts)
        return Page(None, following, sum(map(len, live)), removals + sum(map(len, due)), removals)

    async def _page(self, area: Area, after: PageCursor) -> tuple[list[str], PageCursor]:
        """Return the sessions of a page that may be due, and the start of the next page."""
        ids = await find_large_sessions(
            self._pool,
            area,
            least_tokens=math.floor(self._policy.due * self._policy.budget_tokens),
            after=None if after is None else after["session"],
            limit=self._page_sessions,
        )
        return ids, {"session": ids[-1]} if len(ids) == self._page_sessions else None

    async def _decide(self, scope: Scope, moment: datetime) -> _Decision:
        messages = await self._sessions.live(scope)
        due = plan_summaries(messages, self._policy, min_tokens=MIN_SUMMARY_TOKENS)
        if not due:
            return _Decision(len(messages))
        generation = (await require_generation(self._pool, self._identity)).number
        try:
            summaries = await self._prepare(scope, due, moment)
        except LaminaError as error:
            where = Area(scope.tenant, scope.workspace, scope.namespace)
            return _Decision(len(messages), problem=f"session {scope.session}: {error} ({where})")
        return _Decision(len(messages), CompactedSession(summaries, generation))

    async def _prepare(self, scope: Scope, due: Sequence[SummaryPart], moment: datetime) -> tuple[PreparedSummary, ...]:
        messages = [await self._summarize(part) for part in due]
        texts = [message.text() for message in messages]
        chunks = await self._embedder.embed_chunks(texts)
        text_words = await asyncio.to_thread(lambda: [split_words(text) for text in texts])
        return tuple(
            PreparedSummary(_summary_id(scope, part, moment), str(scope.session), part.messages, message, of, words)
            for part, message, of, words in zip(due, messages, chunks, text_words, strict=True)
        )

    async def _summarize(self, part: SummaryPart) -> Message:
        sources = [_source(item) for item in part.messages]
        text = await self._summarizer.summarize(sources, most_tokens=part.most_tokens - _NAME_TOKENS)
        return clean_message(summary_message(text, part.messages), SUMMARY_NAME)

    async def act(self, writer: RowWriter, area: Area, plan: list[CompactedSession]) -> RunCounts:
        """Compact the sessions whose messages are all unchanged; none after a switch to another embedding model."""
        hashes = {item.id: item.content_hash for one in plan for item in one.replaced}
        locked = await lock_live_messages(writer.connection, area, hashes)
        # A run may outlast a switch of models, and vectors of the old one would never be found.
        active = await read_active_generation(writer.connection)
        number = 0 if active is None else active.number
        unchanged = [one for one in plan if one.generation == number and {item.id for item in one.replaced} <= locked]
        summaries = [summary for one in unchanged for summary in one.summaries]
        if not summaries:
            return RunCounts()
        removed = len(await write_summaries(writer, area, summaries, number))
        return RunCounts(changed=removed + len(summaries), removed=removed)

    async def undo(self, connection: Connection, run: UUID) -> RunCounts:
        """Delete some of a run's summaries; the journal has brought back the messages that they replaced."""
        ids = await take_rows(connection, run, MADE, UNDO_PAGE)
        rows = await delete_summaries(connection, ids)
        gone = [row["id"] for row in rows]
        changed = await remove_from_graph(connection, gone)
        await enqueue(connection, "messages", gone)
        await enqueue(connection, "graph", [*gone, *sorted(changed)])
        scopes = sorted({(row["tenant"], row["workspace"], row["namespace"]) for row in rows})
        for scope in scopes:
            await bump_epoch(connection, Scope(*scope), teaches=True)
        await record_events(connection, [Event.of(Scope(*scope), EventKind.JOB_CHANGED, run) for scope in scopes])
        return RunCounts(seen=len(ids), changed=len(gone))


def _source(item: LiveMessage) -> SourceText:
    """Return a message as a source of a summary, with its author; lines of an earlier summary begin with theirs."""
    said = item.message
    author, quoted = ("", item.authors()) if item.is_summary else (item.authors()[0], ())
    return SourceText(said.content, item.occurred_at, said.importance, author, quoted)


def _summary_id(scope: Scope, part: SummaryPart, moment: datetime) -> UUID:
    """Return an id that depends on the run's moment, so that undoing one run leaves the summary of a later one."""
    origins = [Origin(item.id, item.content_hash) for item in part.messages]
    key = ("compaction", str(scope.session), moment.isoformat())
    return derived_id(scope, part.messages[0].user, key, origins)
