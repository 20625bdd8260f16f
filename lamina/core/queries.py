"""Queries and answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple
from uuid import UUID

from lamina.core.memories import as_utc
from lamina.core.scope import Scope
from lamina.core.tiers import SEARCHED_TIERS, Modality, Source, Tier
from lamina.errors import InvalidInput
from lamina.text.hygiene import MAX_QUERY_CHARS, clean_id, clean_text, composed
from lamina.text.questions import find_question
from lamina.text.times import AskedTime, Interval
from lamina.text.words import question_words

MAX_LIMIT = 1000
MAX_DEPTH = 3


RerankerState = Literal["ok", "paused"]
"""Paused: it failed so often that it is left out for a while."""


class FilterField(StrEnum):
    """Field of a memory that a filter can name."""

    CATEGORY = "category"
    OCCURRED_AT = "occurred_at"
    TAGS = "tags"
    SOURCE = "source"
    USER = "user"
    AGENT = "agent"
    SESSION = "session"
    CONFIDENCE = "confidence"
    IMPORTANCE = "importance"


class Operator(StrEnum):
    """How a filter compares."""

    EQ = "eq"
    IN = "in"
    CONTAINS = "contains"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"


RowScoring = tuple[float, float, float, float]
"""Weights of nearness, importance and recency, and the decay of recency a day."""
FilterValue = str | float | datetime | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Compare:
    """One comparison; false where the memory has no such value, except ``eq`` with ``None``.

    Args:
        field: What is looked at. ``tags`` is a set and knows only ``contains``.
        operator: How; ``in`` takes a tuple of texts.
        value: Text, number or UTC time, as the field's type asks.
    """

    field: FilterField
    operator: Operator
    value: FilterValue


@dataclass(frozen=True, slots=True)
class AllOf:
    """True where every part is; of none, always."""

    parts: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """True where one part is; of none, never."""

    parts: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class Negation:
    """True where the part is not."""

    part: "Condition"


Condition = Compare | AllOf | AnyOf | Negation


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on hits; every source and the graph's expansion obey them.

    Args:
        tags: All of these, each compared whole. Messages have none.
        since: Not before this moment of the event, in UTC.
        until: Before this moment of the event, in UTC.
        min_confidence: Memories less sure than this are left out, 0..1.
        where: Any other condition.
        as_of: Nothing that happened after this moment counts, and ages are counted from it.
        shared_only: Only what belongs to no user; what another workspace shares is searched so.
        min_weight: Notes that have faded below this are left out, 0..1; no index holds it, and no other tier fades.
    """

    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    min_confidence: float = 0.5
    where: Condition | None = None
    as_of: datetime | None = None
    shared_only: bool = False
    min_weight: float = 0.0

    def condition(self) -> Condition:
        """Return all of it, ``min_weight`` excepted, as one condition."""
        limits: tuple[tuple[FilterField, Operator, FilterValue], ...] = (
            (FilterField.OCCURRED_AT, Operator.GTE, self.since),
            (FilterField.OCCURRED_AT, Operator.LT, self.until),
            (FilterField.OCCURRED_AT, Operator.LTE, self.as_of),
            (FilterField.CONFIDENCE, Operator.GTE, self.min_confidence or None),
            *((FilterField.TAGS, Operator.CONTAINS, tag) for tag in self.tags),
        )
        parts: tuple[Condition, ...] = tuple(Compare(*limit) for limit in limits if limit[2] is not None)
        if self.shared_only:
            parts += (Compare(FilterField.USER, Operator.EQ, None),)
        return AllOf(parts if self.where is None else (*parts, self.where))

    def within(self, intervals: Sequence[Interval]) -> "Filters":
        """Return the filters for events in one of the intervals; unchanged where there is none."""
        if not intervals:
            return self
        happened = AnyOf(tuple(_happened_in(interval) for interval in intervals))
        return replace(self, where=happened if self.where is None else AllOf((self.where, happened)))


def _happened_in(interval: Interval) -> Condition:
    limits = ((Operator.GTE, interval.start), (Operator.LT, interval.end))
    return AllOf(tuple(Compare(FilterField.OCCURRED_AT, *limit) for limit in limits if limit[1] is not None))


class FusionMethod(StrEnum):
    """How the rankings of the sources become one."""

    RRF = "rrf"
    PLAIN_RRF = "plain_rrf"
    WEIGHTED = "weighted"
    COMPOSITE = "composite"


# Names to which a call gives weights: a way in which a memory is recognised, or one ranking.
WeightName = Modality | Source


class TimeUse(StrEnum):
    """Use that a search makes of the time that its question names."""

    BOOST = "boost"
    FILTER = "filter"
    OFF = "off"


class Normalisation(StrEnum):
    """How the weighted fusion scales a source's figures to 0..1."""

    MIN_MAX = "min_max"
    ABSOLUTE = "absolute"


@dataclass(frozen=True, slots=True)
class Query:
    """One search, ready for every source.

    Args:
        text: What is asked, without what is pasted around it.
        words: The words by which keyword indexes are asked.
        scope: Where to look; ``user`` adds that user's memories to the shared ones, ``session``
            narrows the messages.
        limit: How many hits each source returns.
        filters: What a hit must be beside relevant.
        embedding: Float32 bytes of the unit vector; ``None`` where the embedder did not answer.
        generation: The active embedding generation, whose chunks are searched.
        depth: How many steps the graph is followed; the configured number if not given.
        late_metadata: Whether large metadata may stay out of the hits: asked by routers of a release before late rows.
        late_rows: Whether hits may be candidates, whose rows are read when the answer is made.
        keyword_weight: Of words where one source ranks by words and meaning; its own if not given.
        vector_weight: Of meaning there.
        time: The time that it is about, if it names one: what happened then ranks higher.
        budget_s: Seconds of the search that are left for its sources; each its own deadline if not given.
        row_scoring: Numbers by which every note is scored; without them the nearest alone are found.
        explain: Whether figures that only an explanation shows are made, too.
    """

    text: str
    words: tuple[str, ...]
    scope: Scope
    limit: int
    filters: Filters = field(default_factory=Filters)
    embedding: bytes | None = None
    generation: int = 0
    depth: int | None = None
    late_metadata: bool = False
    late_rows: bool = True
    keyword_weight: float | None = None
    vector_weight: float | None = None
    time: AskedTime | None = None
    budget_s: float | None = field(default=None, compare=False)
    row_scoring: RowScoring | None = None
    explain: bool = False

    @property
    def dimension(self) -> int | None:
        """Return the length of the vector; ``None`` without one."""
        return None if self.embedding is None else len(self.embedding) // 4

    def wait_s(self, least_s: float, share: float = 1.0) -> float:
        """Return how long a part is waited for: for its share of the time that is left, and at least so long."""
        return max(least_s, (self.budget_s or 0.0) * share)

    def __getstate__(self) -> list[object]:
        """Return the fields as plain values: a process of an earlier release has no class for the time."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return [*(values | {"time": None if self.time is None else self.time.parts()}).values()]

    def __setstate__(self, state: Sequence[object]) -> None:
        """Take over the fields that another process sent; one of an earlier release reads nothing late."""
        names = [field.name for field in fields(self)]
        missing = [False if field.name.startswith("late_") else field.default for field in fields(self)[len(state) :]]
        values = dict(zip(names, [*state, *missing], strict=False))
        values["time"] = AskedTime.from_parts(values["time"])
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A caller's request, before it is embedded.

    Args:
        text: The question or the latest message.
        scope: Where to look.
        limit: How many fused hits to return, best first.
        per_source: How many ranks of each source count in full.
        tiers: Which tiers to search.
        filters: What a hit must be beside relevant.
        fusion: How the sources' rankings become one.
        normalise: How the weighted fusion scales.
        depth: How many steps the graph is followed, 1 to 3; the configured number if not given.
        min_score: Hits with a lower fused score are left out, 0..1.
        weights: Of words, meaning, links and single sources, at least 0; their own where none is given.
        relevance: Numbers of the composite relevance by name; the configured ones where none is given.
        time: The time that the question is about, if it names one.
        rerank: Whether the reranker orders the first hits, where there is one.
        explain: Whether the answer shows every source's figures.
    """

    text: str
    scope: Scope
    limit: int
    per_source: int
    tiers: tuple[Tier, ...] = SEARCHED_TIERS
    filters: Filters = field(default_factory=Filters)
    fusion: FusionMethod = FusionMethod.RRF
    normalise: Normalisation = Normalisation.MIN_MAX
    depth: int | None = None
    min_score: float = 0.0
    weights: Mapping[WeightName, float] = field(default_factory=dict)
    relevance: Mapping[str, float] = field(default_factory=dict)
    time: AskedTime | None = None
    rerank: bool = True
    explain: bool = False

    def query(self) -> Query:
        """Return the query for the sources, without its embedding and generation.

        Raises:
            InvalidInput: If the text is blank or unclean, or a number is out of range.
        """
        text = clean_question(self.text)
        if not 1 <= self.limit <= MAX_LIMIT:
            raise InvalidInput("limit", f"is {self.limit}; expected 1 to {MAX_LIMIT}")
        if not self.relevance.get("similarity", 1.0):
            raise InvalidInput("relevance.similarity", "is 0; expected a number above 0")
        return Query(
            text=text,
            words=tuple(question_words(text)),
            scope=self.scope,
            limit=max(self.per_source, self.limit),
            filters=clean_filters(self.filters),
            depth=clean_depth(self.depth),
            keyword_weight=self.weights.get(Modality.KEYWORD),
            vector_weight=self.weights.get(Modality.VECTOR),
            time=self.time,
            explain=self.explain,
        )


def clean_question(text: str) -> str:
    """Return the question in a text as it is embedded.

    Raises:
        InvalidInput: If the text is blank, unclean or too long.
    """
    return find_question(composed(clean_text(text, "query", limit=MAX_QUERY_CHARS)))


def clean_filters(filters: Filters) -> Filters:
    """Return the filters with clean tags and UTC times.

    Raises:
        InvalidInput: For an unclean tag, or a window that ends before it starts.
    """
    since = None if filters.since is None else as_utc(filters.since, "since")
    until = None if filters.until is None else as_utc(filters.until, "until")
    if since and until and until <= since:
        raise InvalidInput("until", f"is {until.isoformat()}, not after since ({since.isoformat()})")
    tags = tuple(clean_id(tag, f"tags.{place}") for place, tag in enumerate(filters.tags))
    as_of = None if filters.as_of is None else as_utc(filters.as_of, "as_of")
    return replace(filters, tags=tags, since=since, until=until, as_of=as_of)


def clean_depth(depth: int | None) -> int | None:
    """Return the depth.

    Raises:
        InvalidInput: If it is not 1, 2 or 3.
    """
    if depth is not None and not 1 <= depth <= MAX_DEPTH:
        raise InvalidInput("depth", f"is {depth}; expected 1 to {MAX_DEPTH}")
    return depth


@dataclass(frozen=True, slots=True)
class Memory:
    """A found memory of any tier, as a caller sees it.

    Args:
        id: Of the message, note, entity, edge, procedure or passage.
        tier: Where it lives.
        kind: ``message``, the note's category, ``entity``, ``fact``, ``procedure`` or ``passage``.
        content: The stretch of its text that matched.
        occurred_at: When it was said or happened, in UTC.
        last_hit_at: When a search last found it, in UTC, where that is counted.
        temperature: ``warm`` or ``cold``; notes alone can be cold.
        title: Of the document that a passage belongs to.
        document: Id of that document.
        position: Which of its passages it is, from 1.
        metadata: The caller's data.
        workspace: Where it comes from, if another workspace shares it.
        namespace: Its namespace there, if that is not the default one.
        expires_at: From when on it is seen no more, in UTC; ``None`` means never.
        later: The facts that took the place of those that it states, each with the day since when.
        replaced_by: Ids of the memories that state these.
        votes: How many found it useful, and how many wrong; nothing where nobody voted.
        speakers: Who said a note or stated a fact, as the messages name them from which it was drawn.
    """

    id: UUID
    tier: Tier
    kind: str
    content: str
    occurred_at: datetime
    confidence: float = 1.0
    importance: float = 0.5
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    name: str | None = None
    ref: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    last_hit_at: datetime | None = None
    temperature: str = "warm"
    title: str | None = None
    document: UUID | None = None
    position: int | None = None
    workspace: str | None = None
    namespace: str | None = None
    expires_at: datetime | None = None
    later: tuple[str, ...] = ()
    replaced_by: tuple[UUID, ...] = ()
    votes: tuple[int, ...] = ()
    speakers: tuple[str, ...] = ()

    def __setstate__(self, state: Sequence[object]) -> None:
        """Take over the fields that another process sent; one of an earlier release knows of no later facts."""
        names = [field.name for field in fields(self)]
        missing = [()] * (len(names) - len(state))
        for name, value in zip(names, [*state, *missing], strict=False):
            object.__setattr__(self, name, value)


class Candidate(NamedTuple):
    """A memory as a source found it: as much of it as ranks it. Its row is read for the answer, if it leaves with it.

    A tuple, for a search makes some hundred of them and processes hand them on.

    Args:
        id: Of the message, note, procedure or passage.
        tier: Where it lives.
        occurred_at: When it was said or happened, in UTC.
        start: Where the stretch of its text begins that matched.
        end: Where it ends; ``None`` for all of the text.
        user: Whose it is; ``None`` if it is shared.
        last_hit_at: When a search last found it, in UTC, where that is counted.
        temperature: ``warm`` or ``cold``.
        expires_at: From when on it is seen no more, in UTC; ``None`` means never.
        workspace: Where it comes from, if another workspace shares it.
        namespace: Its namespace there, if that is not the default one.
    """

    id: UUID
    tier: Tier
    occurred_at: datetime
    start: int = 0
    end: int | None = None
    confidence: float = 1.0
    importance: float = 0.5
    user: str | None = None
    last_hit_at: datetime | None = None
    temperature: str = "warm"
    expires_at: datetime | None = None
    workspace: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One place of one source's ranking.

    Args:
        memory: What was found; facts and entities come whole, for they are short.
        score: 0..1, higher is better.
        raw: The engine's own figures (``cosine``, ``bm25``, ``ts_rank_cd``).
    """

    memory: Memory | Candidate
    score: float
    raw: Mapping[str, float]


# A chunk of a memory: the memory's id and which of its chunks, from 0.
Place = tuple[UUID, int]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A message near a candidate, or a candidate itself.

    Args:
        memory: The message, with its best chunk as the excerpt.
        session: Its conversation.
        position: Its place there.
        cosine: Similarity of its best chunk; 0 where the query has no vector.
    """

    memory: Candidate
    session: str
    position: int
    cosine: float


def first_expiry(moments: Iterable[datetime | None]) -> datetime | None:
    """Return when the first of several things is over; ``None`` if none of them ever is."""
    return min((moment for moment in moments if moment is not None), default=None)


# Hits of one source, best first, each memory once.
Ranking = tuple[Hit, ...]


def best_hits(hits: Sequence[Hit], limit: int) -> Ranking:
    """Return each memory once, at its best hit, best first, ties by id."""
    best: dict[UUID, Hit] = {}
    for hit in sorted(hits, key=lambda hit: (-hit.score, hit.memory.id)):
        best.setdefault(hit.memory.id, hit)
        if len(best) == limit:
            break
    return tuple(best.values())


@dataclass(frozen=True, slots=True)
class Failure:
    """A source that did not answer; data of the answer, never an empty ranking."""

    reason: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one source put a memory.

    Args:
        rank: From 1, the best.
        score: The source's score, 0..1.
        raw: The engine's own figures.
    """

    rank: int
    score: float
    raw: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RankedHit:
    """What was found, with its fused score (0..1) and where each source placed it."""

    memory: Memory | Candidate
    score: float
    placements: Mapping[Source, Placement]


@dataclass(frozen=True, slots=True)
class RowRequest:
    """Memories of a tier whose rows are wanted.

    Args:
        tier: Their tier.
        query: What must see them still.
        found: The memories.
    """

    tier: Tier
    query: Query
    found: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class FusedHit:
    """A memory with its score (0..1) and where each source placed it.

    Args:
        score: The reranker's where it read the memory, the fused one elsewhere.
        reranked: Where the reranker placed it.
    """

    memory: Memory
    score: float
    placements: Mapping[Source, Placement]
    reranked: Placement | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The fused answer.

    Args:
        hits: Best first.
        answered: Hits per source that answered, before fusion.
        degraded: What did not answer and why, by source (or ``embedder``).
        graph: What the graph's sources said of the own workspace, before fusion; ``None`` where one of them did not.
        is_whole: Whether all answered that is not switched off.
    """

    hits: tuple[FusedHit, ...]
    answered: Mapping[Source, int]
    degraded: Mapping[str, str]
    graph: Mapping[Source, Ranking] | None = None
    is_whole: bool = True
