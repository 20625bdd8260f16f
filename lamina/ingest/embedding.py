"""Embed texts within a deadline, as every write needs them."""

from collections.abc import Awaitable, Callable, Sequence

from lamina.aio.deadline import deadline
from lamina.core.memories import Chunk
from lamina.errors import Unavailable

Embed = Callable[[Sequence[str]], Awaitable[Sequence[tuple[Chunk, ...]]]]


async def embed_in_time(embed: Embed, texts: Sequence[str], deadline_s: float) -> Sequence[tuple[Chunk, ...]]:
    """Return the embedded chunks of each text, in order; without texts the embedder is not asked.

    Raises:
        Unavailable: If the embedder does not answer in time, or returns another number of results.
    """
    if not texts:
        return []
    async with deadline("embedder", deadline_s):
        chunks = await embed(texts)
    if len(chunks) != len(texts):
        raise Unavailable("embedder", f"it returned {len(chunks)} results for {len(texts)} texts")
    return chunks
