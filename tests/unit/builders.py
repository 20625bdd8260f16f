"""Small values that several unit tests are made of."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from lamina.core.queries import Candidate, Filters, FusedHit, Hit, Memory, Query, Ranking, RowRequest, SearchRequest
from lamina.core.scope import Scope
from lamina.core.tiers import SEARCHED_TIERS, TIER_OF, Source, Tier
from lamina.policies.ranking.fusion import RankingPolicy
from lamina.settings.search import SearchSettings
from lamina.text.words import words
from lamina.wiring.services import ranking_policy

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
ACME = Scope("acme")
POLICY: RankingPolicy = ranking_policy(SearchSettings())


def memory(number: int, *, tier: Tier = Tier.NOTES, content: str = "some text", name: str | None = None) -> Memory:
    kind = "message" if tier is Tier.SESSIONS else "note"
    return Memory(UUID(int=number), tier, kind, content, NOON, name=name)


class Rows:
    """Reads every row but those that are gone, and notes what was asked.

    Args:
        gone: Their numbers.
    """

    def __init__(self, *gone: int) -> None:
        self.asked: list[Sequence[RowRequest]] = []
        self._gone = gone

    async def rows(self, wanted: Sequence[RowRequest]) -> Mapping[tuple[Tier, UUID], Memory]:
        self.asked.append(wanted)
        found = [item for request in wanted for item in request.found if item.id.int not in self._gone]
        return {
            (item.tier, item.id): memory(item.id.int, tier=item.tier, content=f"row {item.id.int}") for item in found
        }


def candidate(number: int, *, tier: Tier = Tier.NOTES) -> Candidate:
    return Candidate(UUID(int=number), tier, NOON)


def ranking(source: Source, *numbers: int) -> Ranking:
    """The source's hits with these ids, best first, with falling scores."""
    return tuple(
        Hit(memory(number, tier=TIER_OF[source]), 1 / place, {"cosine": 1 / place})
        for place, number in enumerate(numbers, start=1)
    )


def fused(number: int, content: str = "some text", *, name: str | None = None) -> FusedHit:
    return FusedHit(memory(number, content=content, name=name), 1 / (1 + number), {})


def request(text: str = "green tea", *, limit: int = 10, tiers: tuple[Tier, ...] = SEARCHED_TIERS) -> SearchRequest:
    return SearchRequest(text=text, scope=ACME, limit=limit, per_source=10, tiers=tiers)


def query(text: str = "green tea", *, limit: int = 10) -> Query:
    return Query(text, tuple(words(text)), ACME, limit, Filters())
