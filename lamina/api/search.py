"""Search and context: requests and answers."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from lamina.api.fields import ABSENT, MAX_TIERS, AtMost, Count, Flag, Fraction, Moment, Output, Question, Tags, Weight
from lamina.api.problems import ProblemOut
from lamina.api.scope import ScopeIn
from lamina.core.filters import parse
from lamina.core.memories import as_utc, joint_name
from lamina.core.memory_profiles import PREFERENCES, SearchPreferences
from lamina.core.queries import (
    MAX_DEPTH,
    MAX_LIMIT,
    Answer,
    Filters,
    FusedHit,
    FusionMethod,
    Normalisation,
    TimeUse,
    WeightName,
)
from lamina.core.tiers import TIERS, Modality, Source, TierName
from lamina.core.time_zones import MAX_ZONE_CHARS, zone_named
from lamina.policies.ranking.context_block import BlockFormat, ContextBlock
from lamina.text.times import AskedTime, TimeKind, asked_time

MOST_SEARCHES = 16
"""Searches of one call."""
WEIGHT_NAMES = tuple(dict.fromkeys([*(modality.value for modality in Modality), *(source.value for source in Source)]))


def refuse_unknown_weights(weights: Any) -> Any:
    """Return the weights, if their names are known: of two kinds of names, the error is to list both."""
    for name in weights if isinstance(weights, dict) else ():
        if name not in WEIGHT_NAMES:
            raise PydanticCustomError(
                "unknown_weight",
                "has {name}; expected {names}",
                {"name": repr(name)[:100], "names": ", ".join(WEIGHT_NAMES)},
            )
    return weights


MAX_MODEL_CHARS = 256
RerankChoice = Flag | Annotated[str, AtMost(MAX_MODEL_CHARS)]
RelevanceName = Literal["similarity", "importance", "recency", "decay_per_day"]


class SearchIn(ScopeIn):
    """A search over all tiers."""

    query: Question = Field(description="A question, or the latest message.")
    limit: Count = Field(ABSENT, ge=1, le=MAX_LIMIT, description="Most results. Default: search.limit.")
    tiers: list[TierName] = Field(
        list(TIERS),
        min_length=1,
        max_length=MAX_TIERS,
        description="Tiers to search. Default: the agent's memory profile, then all.",
    )
    tags: Tags = Field(default_factory=list, description="Only memories with all of these tags.")
    since: Moment = Field(ABSENT, description="Only what happened at or after this time.")
    until: Moment = Field(ABSENT, description="Only what happened before this time.")
    min_confidence: Fraction = Field(
        ABSENT, description="Only memories at least this sure. Default: search.min_confidence."
    )
    as_of: Moment = Field(
        ABSENT, description="Search as if it were this time: later memories do not exist. Default: now."
    )
    min_score: Fraction = Field(
        ABSENT,
        description=(
            "Leave out what has a lower fused score. Default: the agent's memory profile, then 0 for a search and "
            "context.min_relevance for a context."
        ),
    )
    fusion: FusionMethod = Field(
        FusionMethod.RRF,
        description=(
            "rrf: by the ranks in all sources, tier by tier; plain_rrf: by the sum over all sources alike; "
            "weighted: by words, meaning and links; composite: by nearness, importance and how lately it was used."
        ),
    )
    normalise: Normalisation = Field(
        Normalisation.MIN_MAX,
        description="How weighted scales: min_max between the worst and the best found, absolute not at all.",
    )
    weights: Annotated[dict[WeightName, Weight], BeforeValidator(refuse_unknown_weights)] = Field(
        default_factory=dict,
        description=(
            "Weights of keyword, vector, graph or single sources, in place of the configured ones; 0 leaves one out. "
            'In rrf and plain_rrf a weight divides the rank: 1 / (k + rank / weight). E.g. {"keyword": 1, "vector": 0}.'
        ),
    )
    relevance: dict[RelevanceName, Weight] = Field(
        default_factory=dict,
        description="Numbers of the fusion composite, in place of the configured ones (search.composite).",
    )
    rerank: RerankChoice = Field(
        ABSENT,
        description="Whether the reranker orders the first hits: true, false, or its name (rerank.model). Default: "
        "rerank.by_default.",
    )
    depth: Count = Field(
        ABSENT, ge=1, le=MAX_DEPTH, description="Steps the graph is followed. Default: search.graph_depth."
    )
    filters: dict[str, Any] = Field(
        default_factory=dict,
        description=(
            "Any other condition: `and`, `or`, `not` over category, occurred_at, tags, source, user, agent, session, "
            'confidence and importance, e.g. {"or": [{"category": {"in": ["decision", "outcome"]}}, '
            '{"not": {"occurred_at": {"lt": "2026-03-01T10:00Z"}}}]}.'
        ),
    )
    time: TimeUse = Field(
        TimeUse.BOOST,
        description=(
            "What a time that the question names does (last week, in March, before 2020): boost ranks what happened "
            "then higher, filter leaves out all else, off ignores it."
        ),
    )
    time_zone: Annotated[str, AtMost(MAX_ZONE_CHARS)] = Field(
        "UTC",
        description="Whose days and weeks those are: a name like Europe/Berlin, or an offset like +02:00.",
    )
    explain: Flag = Field(default=False, description="Show each source's rank and raw figures with every result.")
    cache: Flag = Field(default=True, description="Let the caches answer; false searches anew and keeps nothing.")

    def all_filters(self, default_confidence: float) -> Filters:
        """Return every filter of the request, with the configured confidence where none was sent.

        Raises:
            InvalidInput: Naming the part of ``filters`` that is no condition.
        """
        sent = self.min_confidence if "min_confidence" in self.model_fields_set else default_confidence
        where = parse(self.filters, "filters") if self.filters else None
        return Filters(tuple(self.tags), self.since, self.until, sent, where, self.as_of)

    def wishes(self) -> SearchPreferences:
        """Return the choices that were sent; a memory profile decides the others."""
        sent = {name: getattr(self, name) for name in PREFERENCES if name in self.model_fields_set}
        if "tiers" in sent:
            sent["tiers"] = tuple(TIERS[name].tier for name in dict.fromkeys(self.tiers))
        return SearchPreferences(**sent)

    def asked_time(self, question: str, now: datetime) -> AskedTime | None:
        """Return the time that the question is about, unless it is to be ignored.

        Raises:
            InvalidInput: For an unknown time zone.
        """
        zone = zone_named(self.time_zone, "time_zone")
        if self.time is TimeUse.OFF:
            return None
        moment = as_utc(self.as_of, "as_of") if "as_of" in self.model_fields_set else now
        return asked_time(question, moment, zone)


class ContextIn(SearchIn):
    """A context block to build."""

    budget_tokens: Count = Field(
        ABSENT, ge=16, le=1_000_000, description="Most estimated tokens. Default: context.budget_tokens."
    )
    profile: Flag = Field(
        ABSENT,
        description="Whether it begins with the user's profile (tier 3). Default: the agent's memory profile, then the "
        "workspace's settings, then yes.",
    )
    pinned: Flag = Field(default=False, description="Whether the memories begin with the pinned notes of the scope.")
    format: BlockFormat = Field(
        BlockFormat.TEXT, description="text: one text for a prompt; messages: a list of objects in its place."
    )


class SearchBatchIn(ScopeIn):
    """Several searches of one scope; one that is wrong does not stop the others."""

    searches: list[Any] = Field(
        min_length=1,
        max_length=MOST_SEARCHES,
        description="Each a question, or an object with the fields of a search but for the ids of the scope.",
    )


class PlacementOut(BaseModel):
    """The rank and score that one source gave a result."""

    rank: int = Field(description="From 1, the best.")
    score: float = Field(description="The source's score, 0 to 1.")
    raw: dict[str, float] = Field(description="The engine's own figures: cosine, bm25, ts_rank_cd, path.")


class IntervalOut(BaseModel):
    """A half-open stretch of time."""

    start: datetime | None = Field(description="Its first moment, UTC; none if it has always been.")
    end: datetime | None = Field(description="The first moment after it, UTC; none if it never ends.")


class AskedTimeOut(BaseModel):
    """The time that a question is about."""

    kind: TimeKind = Field(
        description="interval; latest or earliest; before_event or after_event: of a message that is found first."
    )
    phrase: str = Field(description="The words that name it.")
    intervals: list[IntervalOut] = Field(description="What they stand for.")
    event: str | None = Field(description="The event before or after which it was.")

    @classmethod
    def from_asked(cls, asked: AskedTime | None) -> Self | None:
        """Show the time of a question, if it names one."""
        if asked is None:
            return None
        intervals = [IntervalOut(start=one.start, end=one.end) for one in asked.intervals]
        return cls(kind=asked.kind, phrase=asked.phrase, intervals=intervals, event=asked.event or None)


class ResultOut(Output):
    """A memory that was found."""

    id: UUID = Field(description="Id of the message, note, entity, fact, procedure or passage.")
    tier: str = Field(description="Where it lives: sessions, notes, graph, procedures or documents.")
    kind: str = Field(description="message, the note's category, entity, fact, procedure or passage.")
    content: str = Field(description="The stretch of its text that matched.")
    score: float = Field(description="Fused score, 0 to 1; the reranker's, of what it read.")
    occurred_at: datetime = Field(description="When it was said or happened, UTC.")
    confidence: float = Field(description="How sure it is, 0 to 1.")
    importance: float = Field(description="How much it matters, 0 to 1.")
    tags: list[str] = Field(description="Labels of a note.")
    user: str | None = Field(description="Person it is about.")
    agent: str | None = Field(description="Agent that wrote it.")
    session: str | None = Field(description="Conversation it comes from.")
    name: str | None = Field(description="Speaker of a message, or of those that state a note or a fact.")
    ref: str | None = Field(description="Your own id of a message.")
    source: str | None = Field(description="Where a note comes from, or a message's role.")
    metadata: dict[str, Any] = Field(description="Your data.")
    temperature: str = Field(description="warm, or cold for a note that nobody asked for in a while.")
    last_hit_at: datetime | None = Field(description="When a search last found it, UTC, where that is counted.")
    title: str | None = Field(description="Title of the document that a passage belongs to.")
    document: UUID | None = Field(description="Id of that document.")
    position: int | None = Field(description="Which of its passages it is, from 1.")
    workspace: str | None = Field(description="Where it comes from, if another workspace shares it.")
    namespace: str | None = Field(description="Its subdivision there, if that is not the default one.")
    later: list[str] = Field(description="Facts that took the place of those that it states, with the day since when.")
    explain: dict[str, PlacementOut] | None = Field(
        None, description="Rank and figures per source and the reranker's, on request."
    )

    @classmethod
    def from_hit(cls, hit: FusedHit, *, explain: bool) -> Self:
        """Show a hit, with each source's rank if it is to be explained."""
        placements = {
            source.value: PlacementOut(rank=place.rank, score=place.score, raw=dict(place.raw))
            for source, place in (hit.placements.items() if explain else ())
        }
        if explain and (placed := hit.reranked):
            placements["reranker"] = PlacementOut(rank=placed.rank, score=placed.score, raw=dict(placed.raw))
        shown = placements if explain else None
        name = hit.memory.name or joint_name(hit.memory.speakers)
        tier = hit.memory.tier.name.lower()
        return cls.from_attributes(hit.memory, tier=tier, name=name, score=hit.score, explain=shown)


class SearchOut(BaseModel):
    """The fused results."""

    results: list[ResultOut] = Field(
        description="Best first; what repeats a better one in nearly the same words comes last."
    )
    sources: dict[str, int] = Field(description="Hits of each source that answered and counts, before fusion.")
    degraded: list[str] = Field(description="What did not answer: sources, tiers that are off, or embedder.")
    reasons: dict[str, str] | None = Field(None, description="Why, by source; on request with explain.")
    time: AskedTimeOut | None = Field(None, description="The time that the question names; on request with explain.")
    cache: list[str] = Field(
        default_factory=list,
        description="Cache layers that the answer, or a part of it, comes from: turn_hash, negative, swarm_l1; "
        "graph, embeddings.",
    )

    @classmethod
    def from_answer(cls, answer: Answer, *, explain: bool, time: AskedTime | None = None) -> Self:
        """Show the results of a search."""
        return cls(
            results=[ResultOut.from_hit(hit, explain=explain) for hit in answer.hits],
            sources={source.value: count for source, count in answer.answered.items()},
            degraded=sorted(answer.degraded),
            reasons=dict(answer.degraded) if explain else None,
            time=AskedTimeOut.from_asked(time) if explain else None,
        )


class SearchAnswerOut(BaseModel):
    """The answer to one of several searches, or its error."""

    status: int = Field(description="200, or the status of the error, as of one search alone.")
    answer: SearchOut | None = Field(description="The answer; null for an error.")
    problem: ProblemOut | None = Field(description="The error; null for an answer.")


class SearchBatchOut(BaseModel):
    """The answers to several searches."""

    answers: list[SearchAnswerOut] = Field(description="In the order of the searches.")


class ContextOut(BaseModel):
    """A block ready for a prompt."""

    text: str = Field(
        description="The profile in full, then the memories, best first, then the suffix; empty with format messages."
    )
    messages: list[dict[str, Any]] | None = Field(
        None, description="The same parts as objects: kind, source, id, text, and what is known beside; on request."
    )
    tokens: int = Field(description="Estimated tokens of the text, or of the messages as JSON; at most the budget.")
    budget_tokens: int = Field(description="The budget that held.")
    results: list[ResultOut] = Field(description="The memories in the text, in their order.")
    omitted: list[str] = Field(description="What the budget left out.")
    degraded: list[str] = Field(description="What did not answer.")
    time: AskedTimeOut | None = Field(None, description="The time that the question names; on request with explain.")
    cache: list[str] = Field(
        default_factory=list,
        description="Cache layers that the answer, or a part of it, comes from: turn_hash, negative, swarm_l1; "
        "graph, embeddings.",
    )

    @classmethod
    def from_block(
        cls,
        block: ContextBlock,
        budget_tokens: int,
        degraded: list[str],
        *,
        explain: bool,
        time: AskedTime | None = None,
    ) -> Self:
        """Show a context block."""
        is_text = block.form is BlockFormat.TEXT
        return cls(
            text=block.text if is_text else "",
            messages=None if is_text else json.loads(block.text or "[]"),
            tokens=block.tokens,
            budget_tokens=budget_tokens,
            results=[ResultOut.from_hit(hit, explain=explain) for hit in block.used],
            omitted=list(block.omitted),
            degraded=sorted(degraded),
            time=AskedTimeOut.from_asked(time) if explain else None,
        )
