"""Which procedures a situation calls for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lamina.aio.deadline import time_limit
from lamina.core.ports import QuestionEmbedder
from lamina.core.queries import Query, SearchRequest
from lamina.policies.procedures import Match
from lamina.search.fused_search import EMBEDDER, describe
from lamina.stores.postgres.procedures import Procedures


@dataclass(frozen=True, slots=True)
class Matched:
    """The matches.

    Args:
        matches: Best first.
        degraded: What did not answer and why: the embedder, without which nothing matches by meaning.
    """

    matches: tuple[Match, ...]
    degraded: Mapping[str, str]


class ProcedureMatcher:
    """Matches what is asked with the triggers of a workspace.

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

    async def match(self, request: SearchRequest) -> Matched:
        """Return the procedures that match; ``per_source`` and ``tiers`` of the request do not matter.

        Raises:
            InvalidInput: If the query is blank or a number is out of range.
            Unavailable: If Postgres does not answer.
        """
        query, degraded = await self._embedded(replace(request.query(), generation=self._generation))
        matches = await self._procedures.match(replace(query, limit=request.limit))
        return Matched(matches, degraded)

    async def _embedded(self, query: Query) -> tuple[Query, dict[str, str]]:
        try:
            async with time_limit(self._embed_deadline_s):
                embedding = await self._embedder.embed_question(query.scope, query.text)
        except Exception as error:  # noqa: BLE001 - prefixes and words are matched without it
            return query, {EMBEDDER: describe(error)}
        return replace(query, embedding=embedding), {}
