"""The order in which procedures match a question, and how outcomes reinforce them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lamina.core.procedures import StoredProcedure
from lamina.policies.ranking.scores import hybrid_score, similarity_score
from lamina.text.words import name_key

# With three ids of 128 characters beside it, a key of this size still fits an entry of a B-tree.
MAX_KEY_BYTES = 1_000
MOST_REPORTS = 20
"""One witness weighs no more than so many reports: alone it leads to a strength of 0.95, and not beyond."""


def strength(successes: float, failures: float) -> float:
    """Return how strongly outcomes recommend a procedure: above 0 and below 1, 0.5 when untried.

    It is the mean of the posterior of a success rate, after a uniform prior: one success and one
    failure stand before the first report. A single report therefore moves it by a sixth, the
    hundredth hardly, the order of the reports does not matter, and it never says never.

    Source:
        Laplace's rule of succession (1774); the Beta-Bernoulli posterior with the prior Beta(1, 1).
    """
    return (successes + 1) / (successes + failures + 2)


def weighed_counts(successes: int, failures: int, reports: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return the counts of a procedure as they are weighed: those of one witness as at most 20 reports.

    A hundred reports of one key are not a hundred independent ones. Beyond 20, the shares of its successes and failures
    count.

    Args:
        successes: All successes, those that nobody knows the witness of among them, which count each.
        failures: All failures, likewise.
        reports: Successes and failures of each known witness.
    """
    weighed = [float(successes), float(failures)]
    for counts in reports:
        excess = 1 - min(1, MOST_REPORTS / max(1, sum(counts)))
        weighed = [total - excess * count for total, count in zip(weighed, counts, strict=True)]
    return max(0.0, weighed[0]), max(0.0, weighed[1])


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
    """The limits of a match.

    A loose keyword stage would put a shared word before a shared meaning, and a heavy strength what
    worked elsewhere before what fits: `python -m benchmarks procedures` shows both on real runs.

    Args:
        min_overlap: Least share of words that trigger and question have in common, 0..1, unless one
            side has all words of the other.
        min_similarity: Least cosine of their meanings.
        strength_weight: Share of a match's closeness that the weakest procedure loses, 0..1.
        learnt_similarity: Least cosine of a procedure that runs of agents taught, unless it matches by prefix: its
            trigger is the words of a conversation, which resemble those of many others.
    """

    min_overlap: float
    min_similarity: float
    strength_weight: float
    learnt_similarity: float = 0.0


@dataclass(frozen=True, slots=True)
class ProcedureCandidate:
    """A procedure, and how its trigger compares with the question.

    Args:
        stored: The procedure.
        trigger_words: How many distinct words its trigger has, as Postgres counts: stems without stop words.
        asked_words: The same of the question.
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
        """Report whether one side has every word of the other."""
        # The stop words of a text may leave it without any word, which every other text has.
        return 0 < self.shared_words >= min(self.trigger_words, self.asked_words)


@dataclass(frozen=True, slots=True)
class ProcedureMatch:
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


def rank_matches(
    question: str, candidates: Iterable[ProcedureCandidate], policy: MatchPolicy, *, limit: int
) -> tuple[ProcedureMatch, ...]:
    """Return the best matches: by prefix before by keyword before by meaning, each procedure once.

    Within a stage a closer match comes first. A weak procedure counts as a little less close, so
    that of several that match about equally well the one that worked is recommended.

    Args:
        question: The question as a key (:func:`lamina.text.words.name_key`).
        candidates: Procedures that may match, in any order.
        policy: The limits of a match.
        limit: How many to return.
    """
    found = {candidate.stored.id: _match(question, candidate, policy) for candidate in candidates}
    matches = [match for match in found.values() if match is not None]
    matches.sort(key=lambda one: (_ORDER[one.stage], -one.score, -one.stored.strength, one.stored.id))
    return tuple(matches[:limit])


def _match(question: str, candidate: ProcedureCandidate, policy: MatchPolicy) -> ProcedureMatch | None:
    prefix = prefix_share(question, name_key(candidate.stored.procedure.trigger))
    stage = _stage(prefix, candidate, policy)
    if stage is None:
        return None
    low, high = _SCORES[stage]
    weakness = policy.strength_weight * (1 - candidate.stored.strength)
    score = low + (high - low) * _closeness(stage, prefix, candidate) * (1 - weakness)
    figures = {"prefix": prefix, "overlap": candidate.overlap(), "cosine": candidate.cosine}
    return ProcedureMatch(candidate.stored, stage, score, {name: value for name, value in figures.items() if value})


def _stage(prefix: float, candidate: ProcedureCandidate, policy: MatchPolicy) -> Stage | None:
    if prefix:
        return Stage.PREFIX
    if candidate.stored.is_learnt and candidate.cosine is not None and candidate.cosine < policy.learnt_similarity:
        return None
    if candidate.contains_all() or (candidate.shared_words and candidate.overlap() >= policy.min_overlap):
        return Stage.KEYWORD
    if candidate.cosine is not None and candidate.cosine >= policy.min_similarity:
        return Stage.SEMANTIC
    return None


def _closeness(stage: Stage, prefix: float, candidate: ProcedureCandidate) -> float:
    match stage:
        case Stage.PREFIX:
            return prefix
        case Stage.KEYWORD:
            return hybrid_score(candidate.overlap(), candidate.cosine)
        case Stage.SEMANTIC:
            return similarity_score(candidate.cosine or 0.0)


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
