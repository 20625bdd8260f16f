"""Procedures: what to do when, how outcomes reinforce it, and in which order procedures match."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from lamina.core.memories import Metadata, clean_metadata, clean_tags
from lamina.policies.ranking.scores import hybrid_score, similarity_score
from lamina.text.hygiene import clean, clean_id, clean_text
from lamina.text.words import content_hash, name_key

MAX_TRIGGER_CHARS = 10_000
MAX_ACTION_CHARS = 100_000
MAX_COMMENT_CHARS = 10_000
# With three ids of 128 characters beside it, a key of this size still fits an entry of a B-tree.
MAX_KEY_BYTES = 1_000


@dataclass(frozen=True, slots=True)
class Procedure:
    """What to do when.

    Args:
        trigger: The situation, as it is met or asked about.
        action: What to do then.
        tags: Free labels, compared whole.
        metadata: The caller's data, returned untouched.
        source: Where it comes from.
    """

    trigger: str
    action: str
    tags: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=dict)
    source: str = "api"

    def text(self) -> str:
        """Return it as a prompt shows it."""
        return f"When: {self.trigger}\nDo: {self.action}"

    def content_hash(self) -> bytes:
        """Return the hash under which a scope holds this trigger with this action once."""
        return hashlib.sha256(content_hash(self.trigger) + content_hash(self.action)).digest()


def clean_procedure(procedure: Procedure, field_path: str = "") -> Procedure:
    """Return the procedure with clean text and distinct tags.

    Raises:
        InvalidInput: Naming the field under ``field_path``.
    """
    prefix = f"{field_path}." if field_path else ""
    return Procedure(
        trigger=clean_text(procedure.trigger, f"{prefix}trigger", limit=MAX_TRIGGER_CHARS),
        action=clean_text(procedure.action, f"{prefix}action", limit=MAX_ACTION_CHARS),
        tags=clean_tags(procedure.tags, f"{prefix}tags"),
        metadata=clean_metadata(procedure.metadata, f"{prefix}metadata"),
        source=clean(procedure.source, f"{prefix}source"),
    )


@dataclass(frozen=True, slots=True)
class StoredProcedure:
    """A procedure as Postgres holds it.

    Args:
        agent: Who wrote it.
        strength: 0..1, what its outcomes make of it.
        last_used_at: When an outcome was last reported, in UTC.
    """

    id: UUID
    procedure: Procedure
    agent: str | None
    workspace: str
    namespace: str
    strength: float
    successes: int
    failures: int
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of following a procedure.

    Args:
        succeeded: Whether it worked.
        run: The caller's own id of the run; a run counts once. Without it, each report counts.
        comment: What there is to say about it.
    """

    succeeded: bool
    run: str | None = None
    comment: str | None = None


def clean_outcome(outcome: Outcome) -> Outcome:
    """Return the outcome with clean text.

    Raises:
        InvalidInput: Naming the field.
    """
    return Outcome(
        succeeded=outcome.succeeded,
        run=None if outcome.run is None else clean_id(outcome.run, "run"),
        comment=None if outcome.comment is None else clean(outcome.comment, "comment", limit=MAX_COMMENT_CHARS),
    )


def strength(successes: int, failures: int) -> float:
    """Return how strongly outcomes recommend a procedure: above 0 and below 1, 0.5 when untried.

    It is the mean of the posterior of a success rate, after a uniform prior: one success and one
    failure stand before the first report. A single report therefore moves it by a sixth, the
    hundredth hardly, the order of the reports does not matter, and it never says never.

    Source:
        Laplace's rule of succession (1774); the Beta-Bernoulli posterior with the prior Beta(1, 1).
    """
    return (successes + 1) / (successes + failures + 2)


class Stage(StrEnum):
    """How a procedure matched; those of an earlier stage come first."""

    PREFIX = "prefix"
    KEYWORD = "keyword"
    SEMANTIC = "semantic"


_ORDER: Mapping[Stage, int] = {stage: place for place, stage in enumerate(Stage)}
# Scores of the stages meet and never cross, so that the score alone gives the order.
_SCORES: Mapping[Stage, tuple[float, float]] = {
    Stage.PREFIX: (0.8, 1.0),
    Stage.KEYWORD: (0.5, 0.8),
    Stage.SEMANTIC: (0.0, 0.5),
}


@dataclass(frozen=True, slots=True)
class MatchPolicy:
    """What counts as a match.

    A loose keyword stage would put a shared word before a shared meaning, and a heavy strength what
    worked elsewhere before what fits: `python -m benchmarks procedures` shows both on real runs.

    Args:
        min_overlap: Least share of words that trigger and question have in common, 0..1, unless one
            side has all words of the other.
        min_similarity: Least cosine of their meanings.
        strength_weight: Share of a match's closeness that the weakest procedure loses, 0..1.
    """

    min_overlap: float
    min_similarity: float
    strength_weight: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A procedure and how its trigger compares with what is asked.

    Args:
        stored: The procedure.
        trigger_words: How many distinct words its trigger has, as Postgres counts: stems without stop words.
        asked_words: The same of what is asked.
        shared_words: How many of them both have.
        cosine: Similarity of the two, where both have a vector of the same generation.
    """

    stored: StoredProcedure
    trigger_words: int
    asked_words: int
    shared_words: int
    cosine: float | None

    def overlap(self) -> float:
        """Return the share of words that both have, 0..1.

        Source:
            Dice, Ecology 1945.
        """
        return 2 * self.shared_words / max(1, self.trigger_words + self.asked_words)

    def contains_all(self) -> bool:
        """Tell whether one side has every word of the other."""
        return 0 < self.shared_words >= min(self.trigger_words, self.asked_words)


@dataclass(frozen=True, slots=True)
class Match:
    """A procedure that matches.

    Args:
        stored: The procedure.
        stage: How it matched.
        score: 0..1; identical text is near 1, and what only resembles it below 0.5.
        figures: The share of the prefix, of common words, and the cosine, as far as there are any.
    """

    stored: StoredProcedure
    stage: Stage
    score: float
    figures: Mapping[str, float]


def rank_matches(asked: str, candidates: Iterable[Candidate], policy: MatchPolicy, *, limit: int) -> tuple[Match, ...]:
    """Return the best matches: by prefix before by keyword before by meaning, each procedure once.

    Within a stage a closer match comes first. A weak procedure counts as a little less close, so
    that of several that match about equally well the one that worked is recommended.

    Args:
        asked: What is asked, as a key (:func:`lamina.text.words.name_key`).
        candidates: What may match, in any order.
        policy: What counts as a match.
        limit: How many to return.
    """
    found = {candidate.stored.id: _match(asked, candidate, policy) for candidate in candidates}
    matches = [match for match in found.values() if match is not None]
    return tuple(sorted(matches, key=_best_first)[:limit])


def _best_first(match: Match) -> tuple[int, float, float, UUID]:
    return _ORDER[match.stage], -match.score, -match.stored.strength, match.stored.id


def _match(asked: str, candidate: Candidate, policy: MatchPolicy) -> Match | None:
    prefix = prefix_share(asked, name_key(candidate.stored.procedure.trigger))
    stage = _stage(prefix, candidate, policy)
    if stage is None:
        return None
    low, high = _SCORES[stage]
    weakness = policy.strength_weight * (1 - candidate.stored.strength)
    score = low + (high - low) * _closeness(stage, prefix, candidate) * (1 - weakness)
    return Match(candidate.stored, stage, score, _figures(prefix, candidate))


def _stage(prefix: float, candidate: Candidate, policy: MatchPolicy) -> Stage | None:
    if prefix:
        return Stage.PREFIX
    if candidate.contains_all() or (candidate.shared_words and candidate.overlap() >= policy.min_overlap):
        return Stage.KEYWORD
    if candidate.cosine is not None and candidate.cosine >= policy.min_similarity:
        return Stage.SEMANTIC
    return None


def _closeness(stage: Stage, prefix: float, candidate: Candidate) -> float:
    match stage:
        case Stage.PREFIX:
            return prefix
        case Stage.KEYWORD:
            return hybrid_score(candidate.overlap(), candidate.cosine)
        case Stage.SEMANTIC:
            return similarity_score(candidate.cosine or 0.0)


def _figures(prefix: float, candidate: Candidate) -> dict[str, float]:
    figures = {"prefix": prefix, "overlap": candidate.overlap(), "cosine": candidate.cosine}
    return {name: value for name, value in figures.items() if value}


def prefix_share(one: str, other: str) -> float:
    """Return how much of the longer key the shorter one is, if the longer starts with it, word by word; else 0.

    >>> prefix_share("deploy", "deploy to production"), prefix_share("deploy", "deployment")
    (0.3333333333333333, 0.0)
    """
    shorter, longer = sorted((one, other), key=len)
    if not f"{longer} ".startswith(f"{shorter} "):
        return 0.0
    return (shorter.count(" ") + 1) / (longer.count(" ") + 1)


def index_key(key: str) -> str:
    """Return as much of a key as an index holds: whole words, unless the first alone is too long."""
    if len(key.encode()) <= MAX_KEY_BYTES:
        return key
    head = key.encode()[: MAX_KEY_BYTES + 1].decode(errors="ignore")
    return head[: head.rfind(" ")] if " " in head else key.encode()[:MAX_KEY_BYTES].decode(errors="ignore")


def key_prefixes(key: str) -> tuple[str, ...]:
    """Return every run of whole words that the key starts with, itself included, shortest first.

    It expects a key from :func:`index_key`, which bounds their number.
    """
    ends = [place for place, char in enumerate(key) if char == " "]
    return (*(key[:end] for end in ends), key)
