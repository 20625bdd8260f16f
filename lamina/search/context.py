"""Search for a context block: memories, the user's profile, and facts next to the memories."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from lamina.aio.deadline import time_limit
from lamina.core.files import ShownFile
from lamina.core.memories import Profile
from lamina.core.ports import Hints, RowLookup
from lamina.core.queries import (
    Filters,
    FusedHit,
    Memory,
    Query,
    Ranking,
    RowRequest,
    SearchRequest,
    clean_filters,
    first_expiry,
)
from lamina.core.scope import Scope
from lamina.core.tiers import Source, Tier
from lamina.errors import LaminaError
from lamina.policies.ranking.context_block import BlockFormat, ContextBlock, Extras, build_context
from lamina.search.admission import SearchTiers
from lamina.search.fused_search import SearchHints
from lamina.stores.postgres.feedback import FeedbackTable
from lamina.stores.postgres.files import Files
from lamina.stores.postgres.profiles import Profiles

Part = TypeVar("Part")
MOST_PINNED = 20
"""Pinned notes of a block, those first that were pinned first."""


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """A context block that is wanted.

    Args:
        search: The memories to look for.
        budget_tokens: Most tokens of the block.
        suffix: Text that the agent's memory profile puts at the end.
        form: How it is written.
        is_suffix_verified: Whether the agent itself, or an admin, wrote the suffix.
        shows_profile: Whether it begins with the user's profile.
        shows_pinned: Whether its memories begin with the pinned notes.
        shows_tenant_profile: Whether that stands over the user's profile of the whole tenant.
    """

    search: SearchRequest
    budget_tokens: int
    suffix: str = ""
    form: BlockFormat = BlockFormat.TEXT
    is_suffix_verified: bool = False
    shows_profile: bool = True
    shows_pinned: bool = False
    shows_tenant_profile: bool = True


@dataclass(frozen=True, slots=True)
class ContextAnswer:
    """A context block.

    Args:
        block: The block.
        degraded: Parts that did not answer, with the reasons.
        is_whole: Whether all answered that is not switched off.
        graph: The rankings of the graph's sources.
        expires_at: When the first memory that was found expires.
    """

    block: ContextBlock
    degraded: Mapping[str, str]
    is_whole: bool
    graph: Mapping[Source, Ranking] | None
    expires_at: datetime | None


class ContextSearch:
    """Searches, and lays out a block for a prompt.

    Args:
        search: Finds the memories.
        profiles: The users' profiles.
        hints: Reads the facts next to memories; ``None`` without a graph.
        hint_results: How many of the best memories get hints.
        hint_neighbours: Most hints of one memory.
        files: The files that every block shows; ``None`` where none does.
        files_tokens: Most tokens of a block that these take.
        feedback: Finds the pinned notes; ``None`` where no block shows them.
        rows: Reads their rows.
        deadline_s: Seconds after which a block is made without the profile or the hints.
    """

    def __init__(
        self,
        search: SearchTiers,
        profiles: Profiles,
        hints: Hints | None,
        rows: RowLookup,
        *,
        hint_results: int,
        hint_neighbours: int,
        deadline_s: float,
        files: Files | None = None,
        files_tokens: int = 0,
        feedback: FeedbackTable | None = None,
    ) -> None:
        self._feedback = feedback
        self._rows = rows
        self._search = search
        self._profiles = profiles
        self._hints = hints
        self._hint_results = hint_results
        self._hint_neighbours = hint_neighbours
        self._deadline_s = deadline_s
        self._files = files
        self._files_tokens = files_tokens

    async def search(self, request: ContextRequest, hints: SearchHints) -> ContextAnswer:
        """Return the block; a profile or hints that cannot be read are missing and named as degraded.

        Raises:
            InvalidInput: If the query is blank or a number is out of range.
            Unavailable: If no source answered at all.
        """
        answer = await self._search.search(request.search, hints)
        # Both are read after the search: hints belong to its hits, and a profile is wanted only with an answer.
        (profile, no_profile), (facts, no_facts), (files, no_files), (pinned, no_pinned) = await asyncio.gather(
            self._profile(request),
            self._facts(request.search, answer.hits),
            self._always(request.search.scope),
            self._pinned(request),
        )
        facts = _without_later(answer.hits, facts)
        hits = _with_pinned(pinned or (), answer.hits)
        extras = Extras(
            profile,
            request.suffix,
            facts,
            request.search.scope.agent or "",
            is_suffix_verified=request.is_suffix_verified,
            files=tuple(files or ()),
            files_tokens=self._files_tokens,
        )
        return ContextAnswer(
            block=build_context(hits, extras, budget_tokens=request.budget_tokens, form=request.form),
            degraded={**answer.degraded, **no_profile, **no_facts, **no_files, **no_pinned},
            is_whole=answer.is_whole and not (no_profile or no_facts or no_files or no_pinned),
            graph=answer.graph,
            expires_at=first_expiry(hit.memory.expires_at for hit in hits),
        )

    async def _pinned(self, request: ContextRequest) -> tuple[Sequence[Memory] | None, Mapping[str, str]]:
        if self._feedback is None or not request.shows_pinned:
            return None, {}
        return await read_or_degrade("pinned", self._pinned_notes(self._feedback, request.search), self._deadline_s)

    async def _pinned_notes(self, feedback: FeedbackTable, request: SearchRequest) -> list[Memory]:
        as_of = clean_filters(request.filters).as_of
        found = await feedback.pinned_notes(request.scope, MOST_PINNED, as_of)
        if not found:
            return []
        # Like those of hits, which say so where a later fact took the place of theirs.
        query = Query("", (), request.scope, len(found), Filters(as_of=as_of))
        rows = await self._rows.rows([RowRequest(Tier.NOTES, query, found)])
        return [rows[item.tier, item.id] for item in found if (item.tier, item.id) in rows]

    async def _profile(self, request: ContextRequest) -> tuple[Profile | None, Mapping[str, str]]:
        scope = request.search.scope
        if not request.shows_profile or scope.user is None:
            return None, {}
        read = self._profiles.layered if request.shows_tenant_profile else self._profiles.get
        return await read_or_degrade("profile", read(scope, request.search.filters.as_of), self._deadline_s)

    async def _always(self, scope: Scope) -> tuple[Sequence[ShownFile] | None, Mapping[str, str]]:
        if self._files is None:
            return None, {}
        return await read_or_degrade("files", self._files.always(scope, self._files_tokens), self._deadline_s)

    async def _facts(
        self, request: SearchRequest, hits: Sequence[FusedHit]
    ) -> tuple[Mapping[UUID, Sequence[str]], Mapping[str, str]]:
        """Read the facts next to the best hits, if the graph is searched at all."""
        ids = [hit.memory.id for hit in hits[: self._hint_results]]
        if self._hints is None or not ids or Tier.GRAPH not in request.tiers:
            return {}, {}
        reading = self._hints.hints(request.scope, clean_filters(request.filters), ids)
        found, degraded = await read_or_degrade("hints", reading, self._deadline_s)
        return {id_: tuple(facts[: self._hint_neighbours]) for id_, facts in (found or {}).items()}, degraded


def _with_pinned(pinned: Sequence[Memory], hits: Sequence[FusedHit]) -> tuple[FusedHit, ...]:
    """Return the hits behind the pinned notes, each once."""
    found, ids = {hit.memory.id: hit for hit in hits}, {memory.id for memory in pinned}
    first = (replace(found.get(memory.id) or FusedHit(memory, 0.0, {}), score=1.0) for memory in pinned)
    return (*first, *(hit for hit in hits if hit.memory.id not in ids))


def _without_later(hits: Sequence[FusedHit], facts: Mapping[UUID, Sequence[str]]) -> Mapping[UUID, Sequence[str]]:
    """Return the facts next to memories but for those that a memory says itself: what took the place of its own."""
    later = {hit.memory.id: set(hit.memory.later) for hit in hits}
    return {id_: tuple(fact for fact in told if fact not in later.get(id_, ())) for id_, told in facts.items()}


async def read_or_degrade(
    part: str, reading: Awaitable[Part], deadline_s: float
) -> tuple[Part | None, Mapping[str, str]]:
    """Read a part of an answer, or return the reason why the answer lacks it."""
    try:
        async with time_limit(deadline_s):
            return await reading, {}
    except (LaminaError, TimeoutError) as error:
        return None, {part: str(error)}
