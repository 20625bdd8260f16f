"""Embed texts within a deadline and a budget, as every write needs them."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from uuid import uuid4

import numpy as np
from psycopg.rows import DictRow

from lamina.aio.deadline import deadline
from lamina.core.memories import Chunk
from lamina.core.quotas import counted_spending, spending_tenant
from lamina.errors import InvalidInput, TextRefused, TooLarge, Unavailable
from lamina.models.batching import mean_vector
from lamina.stores.postgres.tier_rows import EmbeddingStatements
from lamina.stores.postgres.vectors import EmbeddedRow
from lamina.text.hygiene import shorten
from lamina.text.opaque import without_opaque
from lamina.text.words import CHARS_PER_TOKEN, index_words, language_tokens

PROBE = "Does the model take this text?"
Embed = Callable[[Sequence[str]], Awaitable[Sequence[tuple[Chunk, ...]]]]


@dataclass(frozen=True, slots=True)
class EmbeddingBudget:
    """How much of the embedding model's time one request may take.

    Args:
        cpu_s: Seconds of the model.
        tokens_per_s: What the model embeds in one.
        setting: Name of the setting that says so.
    """

    cpu_s: float
    tokens_per_s: float
    setting: str

    async def check(self, texts: Sequence[str], field: str) -> None:
        """Return if the texts fit; called before anything is read or written.

        Raises:
            TooLarge: Naming the field, what it would take, and the largest size accepted.
        """
        most = int(self.cpu_s * self.tokens_per_s)
        chars = sum(map(len, texts))
        if chars <= most:  # No character is more than a token.
            return
        distinct = list(dict.fromkeys(texts))
        tokens = await asyncio.to_thread(lambda: sum(language_tokens(without_opaque(text)) for text in distinct))
        if tokens > most:
            raise TooLarge(
                field,
                f"is about {tokens} tokens, {tokens / self.tokens_per_s:.0f} s of the embedding model; at most {most} "
                f"are accepted ({most * CHARS_PER_TOKEN} letters of English, {most} characters of Chinese); send it "
                f"in parts, or raise {self.setting}",
            )

    def seconds(self, texts: Sequence[str]) -> float:
        """Return the seconds that the model takes for the texts at most; never more than the budget."""
        return min(self.cpu_s, sum(map(len, texts)) / self.tokens_per_s)


async def embed_in_time(
    embed: Embed, texts: Sequence[str], deadline_s: float, *, field: str = "content"
) -> Sequence[tuple[Chunk, ...]]:
    """Return the embedded chunks of each text, in order; without texts the embedder is not asked.

    Args:
        embed: Embeds them.
        texts: What is written.
        deadline_s: Seconds for all of it.
        field: Of the request that they come from.

    Raises:
        Unavailable: If the embedder does not answer in time, or returns another number of results.
        InvalidInput: If the model refuses one of the texts, and takes others.
    """
    if not texts:
        return []
    async with deadline("embedder", deadline_s):
        found = await embed_each(embed, texts, ends_at_refusal=True)
    for text, one in zip(texts, found, strict=False):  # After a refused text there are no results.
        if isinstance(one, TextRefused):
            reason = (
                f"the {one.part} refuses {shorten(text)!r} ({len(text)} characters): {one.reason}; send it in smaller "
                "parts or in other words, or lower embedding.text_tokens, where its endpoint takes only shorter ones"
            )
            raise InvalidInput(field, reason) from one
    return [one for one in found if not isinstance(one, TextRefused)]


async def embed_each(
    embed: Embed, texts: Sequence[str], *, ends_at_refusal: bool = False
) -> list[tuple[Chunk, ...] | TextRefused]:
    """Embed texts, by halves where the model refuses them together; of one that it refuses alone, its refusal.

    However often a text is tried, it counts once for the quotas of the request.

    Args:
        embed: Embeds them.
        texts: What is embedded.
        ends_at_refusal: Embed nothing after the first text that is refused: its refusal is the last result.

    Raises:
        Unavailable: If the model is away, takes nothing else either, or returns another number of results.
    """
    try:
        found = await embed(texts)
    except TextRefused:
        with counted_spending(spending_tenant()):  # All of them have been counted.
            if len(texts) == 1:
                return [await _embed_again(embed, texts[0])]
            half = _middle(texts)
            first = await embed_each(embed, texts[:half], ends_at_refusal=ends_at_refusal)
            if ends_at_refusal and isinstance(first[-1], TextRefused):
                return first
            return [*first, *await embed_each(embed, texts[half:], ends_at_refusal=ends_at_refusal)]
    if len(found) != len(texts):
        raise Unavailable("embedder", f"it returned {len(found)} results for {len(texts)} texts")
    return list(found)


def _middle(texts: Sequence[str]) -> int:
    """Return where two parts of texts have about as many characters, so that a long one is soon alone."""
    ends = list(accumulate(len(text) + 1 for text in texts))
    return min(range(1, len(texts)), key=lambda place: abs(2 * ends[place - 1] - ends[-1]))


async def _embed_again(embed: Embed, text: str) -> tuple[Chunk, ...] | TextRefused:
    await probe(embed)
    try:
        [chunks] = await embed([text])
    except TextRefused as refusal:
        return refusal
    return chunks


async def probe(embed: Embed) -> None:
    """Return if the model takes a harmless text.

    Raises:
        Unavailable: If it is away, or takes not even that.
    """
    try:
        await embed([f"{PROBE} {uuid4()}"])  # Each time another one: the embedder remembers the vectors of short texts.
    except TextRefused as refusal:
        raise Unavailable(refusal.part, refusal.reason, refusal.retry_after_s) from refusal


def stand_in_vector(text: str, dimension: int) -> bytes:
    """Return a unit vector in the place of a refused text's, as float32 bytes, that is near to no other text's.

    A vector that all refused texts shared would make them all near to each other.
    """
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest())
    row = np.random.default_rng(seed).standard_normal(dimension)
    return (row / np.linalg.norm(row)).astype(np.float32).tobytes()


def embedded_rows(
    kind: EmbeddingStatements, rows: Sequence[DictRow], texts: Sequence[str], chunks: Sequence[tuple[Chunk, ...]]
) -> tuple[EmbeddedRow, ...]:
    """Return rows of a kind with their vectors and words, given the texts and chunks of each; long texts take time."""
    embedded = []
    for row, text, parts in zip(rows, texts, chunks, strict=True):
        kept = parts if kind.is_cut else (Chunk(0, len(text), mean_vector(parts).tobytes()),)
        lexical = tuple(" ".join(index_words(text[chunk.start : chunk.end])) for chunk in kept)
        embedded.append(EmbeddedRow(row["id"], row["guard"], kept, lexical))
    return tuple(embedded)
