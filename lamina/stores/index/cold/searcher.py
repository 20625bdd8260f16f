"""The source of cold notes over any index of vectors."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from lamina.core.queries import Hit, Memory, Place, Query, Ranking
from lamina.core.tiers import Source
from lamina.policies.ranking.scores import similarity_score
from lamina.stores.index.ports import Found, Lookup, VectorIndex


class NotesCold:
    """Cold notes by their meaning alone.

    Args:
        index: The cold index.
        lookup: Reads the notes that were found and are cold.
        min_similarity: Hits with a lower cosine are left out.
    """

    source = Source.NOTES_COLD

    def __init__(self, index: VectorIndex, lookup: Lookup, *, min_similarity: float) -> None:
        self._index = index
        self._lookup = lookup
        self._min_similarity = min_similarity

    async def search(self, query: Query) -> Ranking:
        """Return the nearest cold notes; none where the query has no vector."""
        near = [found for found in await self._index.by_vector(query) if self._is_near(found)]
        if not near:
            return ()
        memories = await self._lookup.fetch(query, [found.place for found in near])
        return _ranked(near, memories)[: query.limit]

    def _is_near(self, found: Found) -> bool:
        return found.cosine is not None and found.cosine >= self._min_similarity


def _ranked(found: Sequence[Found], memories: Mapping[Place, Memory]) -> Ranking:
    """Return each memory once, at its nearest chunk."""
    best: dict[UUID, Hit] = {}
    for item in sorted(found, key=lambda item: -(item.cosine or 0.0)):
        memory = memories.get(item.place)
        if memory is not None and memory.id not in best:
            cosine = item.cosine or 0.0
            best[memory.id] = Hit(memory, similarity_score(cosine), {"cosine": cosine})
    return tuple(sorted(best.values(), key=lambda hit: (-hit.score, hit.memory.id)))
