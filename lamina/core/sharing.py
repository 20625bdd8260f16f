"""Shares between workspaces: the further queries of a search, and how their answers join in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from lamina.core.memories import as_utc, clean_tags
from lamina.core.queries import Candidate, Failure, Memory, Query, Ranking, best_hits
from lamina.core.scope import DEFAULT_NAMESPACE
from lamina.core.tiers import TIER_OF_SEGMENT, Segment, Source, Tier
from lamina.errors import InvalidInput
from lamina.text.hygiene import clean, clean_id

MAX_LABEL_CHARS = 500
# Most active shares into one workspace: every one of them is a query more in every search of it.
MAX_SHARES_INTO = 32


class ShareState(StrEnum):
    """Whether a share has an effect."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Share:
    """One segment of a workspace's namespace that another workspace of the tenant may search.

    Args:
        workspace: Whose memories they are.
        namespace: The subdivision of it that is shared.
        to_workspace: Who may search them, from any of its namespaces.
        segment: Which of them.
        tags: Only memories with all of these; a memory without tags passes only where none are named.
        label: Its purpose, in its maker's words.
        expires_at: From when on it has no effect, in UTC; ``None`` means never.
        revoked_at: When it was withdrawn, in UTC.
    """

    id: UUID
    workspace: str
    namespace: str
    to_workspace: str
    segment: Segment
    tags: tuple[str, ...]
    label: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def state(self, now: datetime) -> ShareState:
        """Return whether the share has an effect at this moment."""
        if self.revoked_at is not None:
            return ShareState.REVOKED
        is_over = self.expires_at is not None and self.expires_at <= now
        return ShareState.EXPIRED if is_over else ShareState.ACTIVE


@dataclass(frozen=True, slots=True)
class ForeignQuery:
    """A query in the scope of another workspace.

    Args:
        tier: Whom to ask.
        query: What, in the other workspace's scope; it sees nothing that belongs to a user.
    """

    tier: Tier
    query: Query

    @property
    def origin(self) -> tuple[str, str | None]:
        """Return the workspace and the namespace that its hits show, the default namespace being none."""
        scope = self.query.scope
        return scope.workspace, None if scope.namespace == DEFAULT_NAMESPACE else scope.namespace


def refuse_past(share: Share) -> None:
    """Refuse a share that ends before it begins.

    Raises:
        InvalidInput: If its expiry, in UTC, is not after its creation.
    """
    if share.expires_at is not None and share.expires_at <= share.created_at:
        raise InvalidInput("expires_at", f"is {share.expires_at.isoformat()}, which is past; name a later time or none")


def clean_share(share: Share) -> Share:
    """Return the share with clean ids and label, sorted tags and a UTC expiry.

    Raises:
        InvalidInput: For an unclean id, tag or label, or a workspace that would share with itself.
    """
    to_workspace = clean_id(share.to_workspace, "to_workspace")
    workspace = clean_id(share.workspace, "workspace")
    if to_workspace == workspace:
        raise InvalidInput("to_workspace", "is the workspace that shares; name another one")
    return replace(
        share,
        workspace=workspace,
        namespace=clean_id(share.namespace, "namespace"),
        to_workspace=to_workspace,
        tags=tuple(sorted(clean_tags(share.tags, "tags"))),
        label=clean(share.label, "label", limit=MAX_LABEL_CHARS),
        expires_at=None if share.expires_at is None else as_utc(share.expires_at, "expires_at"),
    )


def foreign_queries(shares: Sequence[Share], query: Query, tiers: Sequence[Tier], now: datetime) -> list[ForeignQuery]:
    """Return the queries to ask beside the own one, each once.

    The caller's own filters hold in the other workspace too. Its user, session and agent mean
    nothing there, and nobody's private memories are shared.
    """
    asked = (
        ForeignQuery(TIER_OF_SEGMENT[share.segment], _in_scope_of(share, query))
        for share in shares
        if share.state(now) is ShareState.ACTIVE
    )
    return [item for item in dict.fromkeys(asked) if item.tier in tiers]


def _in_scope_of(share: Share, query: Query) -> Query:
    scope = query.scope.narrowed(
        workspace=share.workspace, namespace=share.namespace, user=None, session=None, agent=None, swarm=None
    )
    tags = tuple(dict.fromkeys((*query.filters.tags, *share.tags)))
    return replace(query, scope=scope, filters=replace(query.filters, tags=tags, shared_only=True))


@dataclass(frozen=True, slots=True)
class ForeignAnswers:
    """Answers of other workspaces.

    Args:
        rankings: Hits by source, in no order, perhaps one more than once.
        failures: Reasons of sources that did not answer, by their names in ``degraded``.
        asked: The queries whose answers they are.
    """

    rankings: Mapping[Source, Ranking]
    failures: Mapping[str, str]
    asked: tuple[ForeignQuery, ...] = ()


def gather_answers(
    asked: Sequence[ForeignQuery], answers: Sequence[Mapping[Source, Ranking | Failure]]
) -> ForeignAnswers:
    """Return the answers to the foreign queries, in their order, as one.

    Hits that a share does not cover are dropped here as well, whatever a store answered: those of another
    tier (a graph leads to notes), and everything that belongs to a user.
    """
    rankings: dict[Source, Ranking] = {}
    failures: dict[str, str] = {}
    for item, answer in zip(asked, answers, strict=True):
        for source, outcome in answer.items():
            if isinstance(outcome, Failure):
                name = f"shared_{source.value}"
                reason = f"workspace {item.query.scope.workspace}: {outcome.reason}"
                failures[name] = f"{failures[name]}; {reason}" if name in failures else reason
            else:
                rankings[source] = (*rankings.get(source, ()), *_shared_hits(item, outcome))
    return ForeignAnswers(rankings, failures, tuple(asked))


def _shared_hits(item: ForeignQuery, ranking: Ranking) -> Ranking:
    return tuple(
        replace(hit, memory=_with_origin(item, hit.memory))
        for hit in ranking
        if hit.memory.tier is item.tier and hit.memory.user is None
    )


def _with_origin(item: ForeignQuery, memory: Memory | Candidate) -> Memory | Candidate:
    workspace, namespace = item.origin
    if isinstance(memory, Candidate):
        return memory._replace(workspace=workspace, namespace=namespace)
    return replace(memory, workspace=workspace, namespace=namespace)


def merge_rankings(
    own: Mapping[Source, Ranking], foreign: Mapping[Source, Ranking], limit: int
) -> dict[Source, Ranking]:
    """Return each source's own and foreign hits as one ranking by their scores, which are absolute."""
    both = {source: best_hits((*own.get(source, ()), *hits), limit) for source, hits in foreign.items() if hits}
    return {**own, **both}
