"""Make a query of a request, and embed it, or search on without its vector."""

import asyncio
from dataclasses import replace

from lamina.aio.deadline import time_limit
from lamina.core.ports import QuestionEmbedder
from lamina.core.queries import Query, SearchRequest, clean_question
from lamina.core.stamps import Remembered
from lamina.errors import describe_error

EMBEDDER = "embedder"
LONG_TEXT_CHARS = 5_000


async def question_of(text: str) -> str:
    """Return the question in a text as it is embedded; that in a long one takes a while, for which nobody else waits.

    Raises:
        InvalidInput: If the text is blank, unclean or too long.
    """
    return await asyncio.to_thread(clean_question, text) if len(text) > LONG_TEXT_CHARS else clean_question(text)


async def query_of(request: SearchRequest) -> Query:
    """Return a request's query; the words of a long text take a tenth of a second, for which nobody else waits.

    Raises:
        InvalidInput: If the text is blank or unclean, or a number is out of range.
    """
    is_long = len(request.text) > LONG_TEXT_CHARS
    return await asyncio.to_thread(request.query) if is_long else request.query()


async def embed_query(
    query: Query, embedder: QuestionEmbedder, deadline_s: float, remembered: Remembered | None = None
) -> tuple[Query, dict[str, str]]:
    """Return the query with its vector, and nothing degraded.

    If the embedder fails or takes too long, the query comes without a vector, for words alone can be searched, and
    ``degraded`` names the embedder with the reason.
    """
    try:
        async with time_limit(deadline_s):
            embedding = await embedder.embed_question(query.scope, query.text, remembered)
            return replace(query, embedding=embedding), {}
    except Exception as error:  # noqa: BLE001 - words are searched without it
        return query, {EMBEDDER: describe_error(error)}
