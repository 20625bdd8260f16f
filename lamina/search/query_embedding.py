"""Embed a query, or search on without its vector."""

from dataclasses import replace

from lamina.aio.deadline import time_limit
from lamina.core.ports import QuestionEmbedder
from lamina.core.queries import Query
from lamina.errors import describe_error

EMBEDDER = "embedder"


async def embed_query(query: Query, embedder: QuestionEmbedder, deadline_s: float) -> tuple[Query, dict[str, str]]:
    """Return the query with its vector, and nothing degraded.

    If the embedder fails or takes too long, the query comes without a vector, for words alone can be searched, and
    ``degraded`` names the embedder with the reason.
    """
    try:
        async with time_limit(deadline_s):
            return replace(query, embedding=await embedder.embed_question(query.scope, query.text)), {}
    except Exception as error:  # noqa: BLE001 - words are searched without it
        return query, {EMBEDDER: describe_error(error)}
