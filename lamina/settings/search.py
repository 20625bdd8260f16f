"""How a search is made, fused and put into a context block."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from lamina.core.queries import MAX_DEPTH
from lamina.core.tiers import Source, TierName
from lamina.core.workspace_settings import SessionScope
from lamina.settings.section import Section


class WeightedSettings(Section):
    """Weighted fusion; the weights are shared among the sources that answered (NovaMem, Hybrid fusion)."""

    keyword: float = Field(0.3, ge=0, description="Weight of words.")
    vector: float = Field(0.6, ge=0, description="Weight of meaning.")
    graph: float = Field(0.1, ge=0, description="Weight of links.")
    vector_floor: float = Field(0.25, ge=0, le=1, description="A lower cosine counts as none.")
    full_figure: float = Field(
        0.5, gt=0, le=1, description="Least cosine, or word score, with which min-max scales the best hit to 1."
    )


class HybridWeightsSettings(Section):
    """Shares of words and meaning in one index that ranks by both (Open Astra, Tiered Search)."""

    keyword: float = Field(0.3, ge=0, description="Weight of words.")
    vector: float = Field(0.7, ge=0, description="Weight of meaning.")

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if not self.keyword and not self.vector:
            raise ValueError("keyword and vector are both 0; expected at least one above 0")
        return self


class HybridWeightsByTierSettings(Section):
    """The shares, index by index."""

    notes: HybridWeightsSettings = HybridWeightsSettings()
    documents: HybridWeightsSettings = HybridWeightsSettings()


class CompositeSettings(Section):
    """The composite relevance (Siestai, Composite scoring)."""

    similarity: float = Field(0.5, gt=0, description="Weight of the cosine.")
    importance: float = Field(0.3, ge=0, description="Weight of the importance.")
    recency: float = Field(0.2, ge=0, description="Weight of the time since the last access.")
    decay_per_day: float = Field(0.05, ge=0, description="Recency is exp(−decay · days since the last access).")
    candidates: Literal["nearest", "every_row"] = Field(
        "nearest",
        description="Notes that the fusion `composite` scores: the nearest of each source, so that an index serves; or "
        "with `every_row` all notes of the scope, by one statement of Postgres that reads the vectors of all of them. "
        "What was just written is found so before any index has it.",
    )


class SearchSettings(Section):
    """How a search is made and fused."""

    limit: int = Field(10, ge=1, le=1000, description="Fused hits returned when the request names no limit.")
    per_source: int = Field(10, ge=1, le=1000, description="Ranks of each source that count in full (`search_top_k`).")
    session_ranking: Literal["fitted", "fixed"] = Field(
        "fitted",
        description="How messages rank among those around them: by the weights of many signals that were fitted on "
        "conversations, or by two fixed weights of words and meaning.",
    )
    session_scope: SessionScope = Field(
        "namespace",
        description="Messages that a request without a session finds: those of all sessions of its namespace, or with "
        "`session` none; tiers that a request names are searched all the same.",
    )
    context_candidates: int = Field(
        50, ge=1, le=1000, description="Messages each source offers to the ranking with their neighbours."
    )
    rrf_weights: dict[Source, Annotated[float, Field(gt=0)]] = Field(
        {Source.SESSION_VECTORS: 0.1, Source.SESSION_WORDS: 0.1, Source.NOTES_WARM: 0.1, Source.GRAPH: 1.2},
        description="Weight of a source in reciprocal rank fusion; 1 where none is given.",
    )
    tier_weights: dict[TierName, Annotated[float, Field(gt=0, le=1)]] = Field(
        {"graph": 0.6, "procedures": 0.9, "documents": 0.9},
        description="Weight of the best place in a tier; 1 where none is given.",
    )
    hybrid_weights: HybridWeightsByTierSettings = HybridWeightsByTierSettings()
    passage_vectors: Literal["index", "postgres"] = Field(
        "index",
        description="Vectors of documents' passages that searches compare: those of the hybrid index, or those that "
        "Postgres holds, which are there when a document's call returns; words are the index's in any case.",
    )
    weights: WeightedSettings = WeightedSettings()
    composite: CompositeSettings = CompositeSettings()
    diversity_jaccard: float = Field(
        0.85, gt=0, le=1, description="Hits of a tier whose words overlap this much are alike; 1 switches it off."
    )
    diversity_variants: int = Field(
        3, ge=1, description="Most alike hits that keep their places, since they differ in a number, name or negation."
    )
    note_decay: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of its score that a note loses once its weight has decayed to nothing, after some 15 idle "
        "days; with 0 decay keeps notes out of contexts alone (`context.min_weight`).",
    )
    present_order: bool = Field(
        default=True,
        description="The first hits for a question about the present are ordered: statements that hold come before "
        "those that held. With the fusion `rrf` alone.",
    )
    rrf_k: int = Field(60, ge=1, description="Rank offset of reciprocal rank fusion.")
    min_similarity: float = Field(
        0.25,
        ge=-1,
        le=1,
        description="Vector hits with a lower cosine are dropped; of messages, for a question about the present, those "
        "below 0.4 of it.",
    )
    min_confidence: float = Field(0.5, ge=0, le=1, description="Notes with a lower confidence are left out.")
    source_deadline_s: float = Field(
        1.0,
        gt=0,
        description="Seconds for which a source is waited for at least; longer while the search's time lasts, which is "
        "`tier_deadline_s` and `embed_deadline_s` together.",
    )
    tier_deadline_s: float = Field(1.5, gt=0, description="The same for a whole tier, transport included.")
    embed_deadline_s: float = Field(2.0, gt=0, description="Seconds after which the query has no vector.")
    max_wait_s: float = Field(
        1.0,
        gt=0,
        description="Longest wait of a search for its turn, in seconds; one that would wait longer is answered 503. "
        "How many searches run at the same time follows the times that the last ones took.",
    )
    hit_flush_s: float = Field(1.0, gt=0, description="Seconds for which hits gather before they are counted together.")
    graph_depth: int = Field(3, ge=1, le=MAX_DEPTH, description="Steps along the graph, if a request names no depth.")
    graph_fan_out: int = Field(32, ge=1, description="Links followed from one node, the strongest first.")
    graph_max_edges: int = Field(5000, ge=1, description="Links followed for one search.")
    graph_max_probes: int = Field(
        5000,
        ge=1,
        description="Look-ups in the graph for one search: of what may be a name in the question, then of nodes whose "
        "links are followed. A question of 512 words, of which names are sought, may hold 4 096 names.",
    )
    graph_threshold: float = Field(0.2, ge=0, le=1, description="Paths weaker than this lead nowhere.")
    graph_min_similarity: float = Field(
        0.7,
        ge=0,
        le=1,
        description="Least cosine from which a walk starts at an entity that the question does not name.",
    )
    graph_ef_search: int = Field(
        32,
        ge=5,
        le=1000,
        description="Candidates considered where the entities nearest to a question are sought. Of 20 000 entities of "
        "one workspace 32 took Postgres 3 ms, and 128, which misses fewer, 6 ms.",
    )
    graph_common_mentions: int = Field(
        1000, ge=2, description="Mentions from which an entity is too common to say anything about one memory."
    )

    @property
    def budget_s(self) -> float:
        """The longest time of a search, but for its rows."""
        return self.embed_deadline_s + self.tier_deadline_s


class ProceduresSettings(Section):
    """How procedures match, beside `search.min_similarity` for their meaning."""

    min_overlap: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Least share of common words for a match of trigger and question; all words of one always match.",
    )
    learnt_similarity: float = Field(
        0.75,
        ge=0,
        le=1,
        description="Least cosine of a question and the trigger of a procedure that runs of agents taught. Chosen with "
        "`jobs.learning` on the first three trials of `python -m benchmarks learning`.",
    )
    strength_weight: float = Field(
        0.2, ge=0, le=1, description="Share of its similarity that a match loses if all its outcomes were failures."
    )


class ContextSettings(Section):
    """The context block."""

    budget_tokens: int = Field(8192, ge=16, description="Estimated tokens the block never exceeds.")
    max_chunks: int = Field(20, ge=1, le=1000, description="Most memories in a block.")
    min_relevance: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Memories with a lower fused score stay out; requests and profiles may set their own.",
    )
    files_tokens: int = Field(
        2048,
        ge=0,
        description="Estimated tokens of a block that files marked `always` may take; others are named as omitted.",
    )
    min_weight: float = Field(0.2, ge=0, le=1, description="Notes whose weight has decayed below this stay out.")
    hint_results: int = Field(3, ge=0, le=100, description="Memories of a block that get a line of graph hints.")
    hint_neighbours: int = Field(2, ge=1, le=100, description="Hints in such a line.")
