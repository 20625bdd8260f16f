"""Run a model in this process as an Embedder: off the event loop, in batches."""

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lamina.aio.coalescing import Coalescer
from lamina.core.memories import Chunk
from lamina.core.metrics import (
    EMBEDDER_BATCH,
    EMBEDDER_CALLS,
    EMBEDDER_FAILURES,
    EMBEDDER_SECONDS,
    EMBEDDER_TEXTS,
    EMBEDDER_TOKENS,
    UNMEASURED,
    Meter,
    timed,
)
from lamina.core.ports import Model
from lamina.errors import Unavailable

CHARS_PER_UNIT = 400
CHARS_PER_TOKEN = 4


class BatchingEmbedder:
    """Runs a blocking model in a thread, one batch at a time.

    Texts that arrive while a batch runs make up the next one. A failing batch fails alone.

    Args:
        model: The model.
        max_items: Most texts of one batch; a long text counts by its length.
        max_queued: Most calls that wait.
        meter: Records each batch, and how many calls wait or are in one.
    """

    def __init__(self, model: Model, *, max_items: int = 64, max_queued: int = 512, meter: Meter = UNMEASURED) -> None:
        self._model = model
        self._meter = meter
        self._in_hand = 0
        self._calls: Coalescer[tuple[str, ...], list[tuple[Chunk, ...]]] = Coalescer(
            self._run,
            part="embedder",
            max_items=max_items,
            max_in_flight=1,
            max_queued=max_queued,
            weigh=lambda texts: sum(1 + len(text) // CHARS_PER_UNIT for text in texts),
        )

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text: float32, shape (n, d); a long text's chunks are averaged."""
        if not texts:
            return np.zeros((0, self._model.identity.dimension), dtype=np.float32)
        return np.stack([mean_vector(chunks) for chunks in await self.embed_chunks(texts)])

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        """Return the embedded chunks of each text, in order."""
        if not texts:
            return []
        self._in_hand += 1
        self.record_calls()
        try:
            return await self._calls.submit(tuple(texts))
        finally:
            self._in_hand -= 1
            self.record_calls()

    def record_calls(self) -> None:
        """Record the number of calls in hand; repeat it, since Ray drops a gauge that is not set for a while."""
        self._meter.record(EMBEDDER_CALLS, self._in_hand)

    async def _run(self, calls: Sequence[tuple[str, ...]]) -> list[list[tuple[Chunk, ...]]]:
        texts = [text for call in calls for text in call]
        chunks = iter(await asyncio.to_thread(embed_chunks, self._model, texts, self._meter))
        return [[next(chunks) for _ in call] for call in calls]


def embed_chunks(model: Model, texts: Sequence[str], meter: Meter = UNMEASURED) -> list[tuple[Chunk, ...]]:
    """Cut the texts into chunks that fit the model and embed them all; equal chunks are embedded once.

    Raises:
        Unavailable: If the model returns another number or length of vectors than asked for.
    """
    spans = [model.spans(text) for text in texts]
    pieces = [text[start:end] for text, found in zip(texts, spans, strict=True) for start, end in found]
    # Passages and turns repeat titles and greetings.
    distinct = list(dict.fromkeys(pieces))
    with timed(meter, EMBEDDER_SECONDS, EMBEDDER_FAILURES):
        encoded = model.encode(distinct)
    meter.record(EMBEDDER_BATCH, len(distinct))
    meter.record(EMBEDDER_TEXTS, len(distinct))
    meter.record(EMBEDDER_TOKENS, tokens_of(distinct))
    rows = checked(encoded, len(distinct), model.identity.dimension)
    row_of = {piece: rows[place].tobytes() for place, piece in enumerate(distinct)}
    return [
        tuple(Chunk(start, end, row_of[text[start:end]]) for start, end in found)
        for text, found in zip(texts, spans, strict=True)
    ]


def tokens_of(texts: Sequence[str]) -> int:
    """Estimate how many tokens the texts have, at least one each."""
    return sum(1 + len(text) // CHARS_PER_TOKEN for text in texts)


def checked(rows: NDArray[np.float32], count: int, dimension: int) -> NDArray[np.float32]:
    """Return the rows if their shape is the expected one and their numbers are finite.

    Raises:
        Unavailable: If their shape is not (count, dimension) or a number is not finite.
    """
    if rows.shape != (count, dimension):
        raise Unavailable("embedder", f"it returned vectors of shape {rows.shape} for ({count}, {dimension})")
    if not np.isfinite(rows).all():
        raise Unavailable("embedder", "it returned a vector that is not finite")
    return rows.astype(np.float32, copy=False)


def mean_vector(chunks: Sequence[Chunk]) -> NDArray[np.float32]:
    """Return the unit mean of a text's chunks: float32, shape (d,)."""
    if len(chunks) == 1:
        return chunks[0].vector()
    mean = np.stack([chunk.vector() for chunk in chunks]).mean(axis=0, dtype=np.float32)
    norm = np.linalg.norm(mean)
    return (mean / norm).astype(np.float32) if norm > 0 else chunks[0].vector()
