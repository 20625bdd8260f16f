"""Read the rows of the hits that leave: a search ranks some hundred memories and shows ten."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from lamina.core.ports import RowLookup
from lamina.core.queries import Candidate, FusedHit, Memory, Query, RankedHit, RowRequest
from lamina.core.sharing import ForeignQuery
from lamina.core.tiers import Tier
from lamina.policies.ranking.diversity import WINDOW, DiverseHits, DiversityPolicy, diversify

# Hits read beyond those that are asked for, in the place of repetitions and of memories that are gone.
LEAST_SPARE = 10
SPARE_SHARE = 2


def row_requests(
    found: Iterable[Candidate], own: Query, foreign: Sequence[ForeignQuery] = ()
) -> tuple[RowRequest, ...]:
    """Return which rows to read, by the queries that found them: a share's is that of the workspace it is from."""
    of_queries: defaultdict[tuple[Tier, Query], list[Candidate]] = defaultdict(list)
    for item in found:
        if item.workspace is None:
            of_queries[item.tier, own].append(item)
            continue
        for asked in foreign:
            if asked.tier is item.tier and asked.origin == (item.workspace, item.namespace):
                of_queries[item.tier, asked.query].append(item)
    return tuple(RowRequest(tier, query, tuple(items)) for (tier, query), items in of_queries.items())


@dataclass(frozen=True, slots=True)
class LateRows:
    """Makes hits of ranked candidates.

    Args:
        lookup: Reads the rows.
        diversity: When hits are alike.
        keeps_spare: Whether hits that were read beyond the limit, in the place of repetitions, are returned as well.
    """

    lookup: RowLookup
    diversity: DiversityPolicy
    keeps_spare: bool = False

    async def hits(
        self, ranked: Sequence[RankedHit], own: Query, foreign: Sequence[ForeignQuery], *, limit: int
    ) -> tuple[FusedHit, ...]:
        """Return the best hits without repetitions, as far as their query sees them still.

        Raises:
            Unavailable: If the rows cannot be read.
        """
        hits: list[FusedHit] = []
        diverse = DiverseHits((), 0)
        for part in _parts(ranked, limit):
            hits += await self._read(part, own, foreign)
            diverse = diversify(hits, self.diversity, enough=limit)
            # Beyond the window nothing is compared, so no further hit would take the place of one of these.
            if diverse.distinct >= limit or len(hits) >= max(limit, WINDOW):
                break
        return diverse.hits if self.keeps_spare else diverse.hits[:limit]

    async def with_replacing(
        self, hits: Sequence[FusedHit], own: Query, tiers: Collection[Tier], *, within: int
    ) -> tuple[FusedHit, ...]:
        """Return the hits, each that is replaced right behind a memory that replaced it, found or not.

        A question about Paris finds who lived there; that they left for Berlin says nothing of Paris.

        Args:
            hits: Best first.
            own: The question.
            tiers: Those that are searched.
            within: Only for so many of the first hits, and at most one for each.

        Raises:
            Unavailable: If the rows cannot be read.
        """
        known = {hit.memory.id for hit in hits}
        lacking = {
            hit.memory.id: hit.memory.replaced_by
            for hit in hits[:within]
            if hit.memory.replaced_by and known.isdisjoint(hit.memory.replaced_by)
        }
        if not lacking:
            return tuple(hits)
        ids = sorted({id_ for replacing in lacking.values() for id_ in replacing})
        searched = [tier for tier in (Tier.SESSIONS, Tier.NOTES) if tier in tiers]
        candidates = [Candidate(id_, tier, hits[0].memory.occurred_at) for tier in searched for id_ in ids]
        rows = await self.lookup.rows(row_requests(candidates, own))
        latest = {id_: memory for (_, id_), memory in sorted(rows.items(), key=lambda row: (-row[0][0], row[0][1]))}
        return tuple(_each_behind(hits, lacking, latest))

    async def _read(self, ranked: Sequence[RankedHit], own: Query, foreign: Sequence[ForeignQuery]) -> list[FusedHit]:
        memories = {_key(hit): hit.memory for hit in ranked if isinstance(hit.memory, Memory)}
        late = [hit.memory for hit in ranked if isinstance(hit.memory, Candidate)]
        memories |= await self.lookup.rows(row_requests(late, own, foreign))
        return [FusedHit(memories[_key(hit)], hit.score, hit.placements) for hit in ranked if _key(hit) in memories]


def _each_behind(
    hits: Sequence[FusedHit], lacking: Mapping[UUID, Sequence[UUID]], read: Mapping[UUID, Memory]
) -> Iterator[FusedHit]:
    """Yield the hits, those that lack what replaced them behind the last message of these, or note, that was read."""
    shown: set[UUID] = set()
    for hit in hits:
        replacing = [id_ for id_ in read if id_ in lacking.get(hit.memory.id, ())]
        if replacing and replacing[-1] not in shown:
            shown.add(replacing[-1])
            yield FusedHit(read[replacing[-1]], hit.score, {})
        yield hit


def _key(hit: RankedHit) -> tuple[Tier, UUID]:
    return hit.memory.tier, hit.memory.id


def _parts(ranked: Sequence[RankedHit], limit: int) -> Iterator[Sequence[RankedHit]]:
    """Yield the candidates to read: as many as are wanted and a few more, then twice as many each time."""
    start, size = 0, limit + max(LEAST_SPARE, limit // SPARE_SHARE)
    while start < len(ranked):
        yield ranked[start : start + size]
        start, size = start + size, 2 * size
