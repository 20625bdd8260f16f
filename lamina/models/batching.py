"""Run a model in this process as an Embedder: off the event loop, in batches."""

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
from lamina.core.quotas import Resource, spend
from lamina.errors import Unavailable
from lamina.models.lanes import ModelLanes
from lamina.text.opaque import language_spans

CHARS_PER_TOKEN = 4
SHORT_CHARS = 2_000
BEGINNING_CHARS = 100
Spans = Sequence[tuple[int, int]]


class BatchingEmbedder:
    """Runs a blocking model in a thread, one batch at a time; questions go before everything else.

    Texts that arrive while a batch runs make up the next one. A failing batch fails alone.

    Args:
        model: The model.
        max_items: Most chunks of one batch.
        max_queued: Most calls that wait in each of the two queues.
        meter: Records each batch, and how many calls wait or are in one.
    """

    def __init__(self, model: Model, *, max_items: int = 64, max_queued: int = 512, meter: Meter = UNMEASURED) -> None:
        self._model = model
        self._meter = meter
        self._in_hand = 0
        self._cutting = asyncio.Semaphore(1)
        self._lanes = ModelLanes(self._encode, max_items=max_items, max_queued=max_queued)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a question: float32, shape (n, d); a long text's chunks are averaged."""
        if not texts:
            return np.zeros((0, self._model.identity.dimension), dtype=np.float32)
        return np.stack([mean_vector(chunks) for chunks in await self.embed_questions(texts)])

    async def embed_questions(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        """Return the embedded chunks of each text, in order, before all that is written."""
        return await self._embed(texts, is_question=True)

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        """Return the embedded chunks of each text, in order; questions go before them."""
        return await self._embed(texts, is_question=False)

    async def _embed(self, texts: Sequence[str], *, is_question: bool) -> Sequence[tuple[Chunk, ...]]:
        if not texts:
            return []
        spend(Resource.EMBEDDED_TOKENS, tokens_of(texts))
        self._in_hand += 1
        self.record_calls()
        try:
            spans = await self._cut(texts)
            pieces = _distinct_pieces(texts, spans)
            return _as_chunks(texts, spans, pieces, await self._lanes.submit(pieces, is_question=is_question))
        finally:
            self._in_hand -= 1
            self.record_calls()

    def record_calls(self) -> None:
        """Record the number of calls in hand; repeat it, since Ray drops a gauge that is not set for a while."""
        self._meter.record(EMBEDDER_CALLS, self._in_hand)

    async def _cut(self, texts: Sequence[str]) -> list[Spans]:
        """Cut the texts into chunks; long ones in a thread, one call after the other."""
        if sum(map(len, texts)) <= SHORT_CHARS:
            return [chunk_spans(self._model, text) for text in texts]
        async with self._cutting:
            return await asyncio.to_thread(lambda: [chunk_spans(self._model, text) for text in texts])

    async def _encode(self, pieces: Sequence[str]) -> list[bytes]:
        distinct = list(dict.fromkeys(pieces))
        rows = await asyncio.to_thread(encode_pieces, self._model, distinct, self._meter)
        vector_of = dict(zip(distinct, rows, strict=True))
        return [vector_of[piece] for piece in pieces]


def embed_chunks(model: Model, texts: Sequence[str], meter: Meter = UNMEASURED) -> list[tuple[Chunk, ...]]:
    """Cut the texts into chunks that fit the model and embed them all; equal chunks are embedded once.

    Raises:
        Unavailable: If the model returns another number or length of vectors than asked for.
    """
    spans = [chunk_spans(model, text) for text in texts]
    pieces = _distinct_pieces(texts, spans)
    return _as_chunks(texts, spans, pieces, encode_pieces(model, pieces, meter))


def chunk_spans(model: Model, text: str) -> Spans:
    """Return the (start, end) of a text's chunks, in order, at least one.

    What is no language is left out (:mod:`lamina.text.opaque`); of a text that has nothing else, the beginning stands
    for all, so that every memory has a vector.
    """
    language = language_spans(text)
    if language == [(0, len(text))]:
        return model.spans(text)
    found = [(begin + start, begin + end) for begin, stop in language for start, end in model.spans(text[begin:stop])]
    return found or [(0, min(len(text), BEGINNING_CHARS))]


def encode_pieces(model: Model, pieces: Sequence[str], meter: Meter = UNMEASURED) -> list[bytes]:
    """Return the vector of each chunk's text.

    Raises:
        Unavailable: If the model returns another number or length of vectors than asked for.
    """
    with timed(meter, EMBEDDER_SECONDS, EMBEDDER_FAILURES):
        encoded = model.encode(pieces)
    meter.record(EMBEDDER_BATCH, len(pieces))
    meter.record(EMBEDDER_TEXTS, len(pieces))
    meter.record(EMBEDDER_TOKENS, tokens_of(pieces))
    return [row.tobytes() for row in checked(encoded, len(pieces), model.identity.dimension)]


def _distinct_pieces(texts: Sequence[str], spans: Sequence[Spans]) -> list[str]:
    # Passages and turns repeat titles and greetings.
    return list(
        dict.fromkeys(text[start:end] for text, found in zip(texts, spans, strict=True) for start, end in found)
    )


def _as_chunks(
    texts: Sequence[str], spans: Sequence[Spans], pieces: Sequence[str], vectors: Sequence[bytes]
) -> list[tuple[Chunk, ...]]:
    vector_of = dict(zip(pieces, vectors, strict=True))
    return [
        tuple(Chunk(start, end, vector_of[text[start:end]]) for start, end in found)
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
