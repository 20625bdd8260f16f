"""Match procedures with a situation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lamina.core.ports import QuestionEmbedder
from lamina.core.queries import SearchRequest
from lamina.policies.ranking.procedure_matching import ProcedureMatch
from lamina.search.query_embedding import embed_query, query_of
from lamina.stores.postgres.procedures import Procedures


@dataclass(frozen=True, slots=True)
class ProcedureMatches:
    """The procedures that match.

    Args:
        matches: Best first.
        degraded: The embedder, if it failed, with the reason; nothing matches by meaning then.
    """

    matches: tuple[ProcedureMatch, ...]
    degraded: Mapping[str, str]


class ProcedureMatcher:
    """Matches a query with the triggers of a workspace's procedures.

    Args:
        procedures: Finds the matches of an embedded query.
        embedder: Makes the query's vector.
        generation: The active generation of vectors.
        embed_deadline_s: Seconds after which the query is matched without a vector.
    """

    def __init__(
        self, procedures: Procedures, embedder: QuestionEmbedder, *, generation: int, embed_deadline_s: float
    ) -> None:
        self._procedures = procedures
        self._embedder = embedder
        self._generation = generation
        self._embed_deadline_s = embed_deadline_s

    async def match(self, request: SearchRequest) -> ProcedureMatches:
        """Return the procedures that match; ``per_source`` and ``tiers`` of the request do not matter.

        Raises:
            InvalidInput: If the query is blank or a number is out of range.
            Unavailable: If Postgres does not answer.
        """
        query = replace(await query_of(request), generation=self._generation)
        query, degraded = await embed_query(query, self._embedder, self._embed_deadline_s)
        matches = await self._procedures.match(replace(query, limit=request.limit))
        return ProcedureMatches(matches, degraded)
