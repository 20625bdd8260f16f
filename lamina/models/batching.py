"""Run a model in this process as an Embedder: off the event loop, in batches."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from cachetools import TTLCache
from numpy.typing import NDArray

from lamina.aio.priority import stand_back
from lamina.core.memories import Chunk
from lamina.core.metrics import (
    EMBEDDER_BATCH,
    EMBEDDER_CALLS,
    EMBEDDER_FAILURES,
    EMBEDDER_PADDING,
    EMBEDDER_REMEMBERED,
    EMBEDDER_SECONDS,
    EMBEDDER_TEXTS,
    EMBEDDER_TOKENS,
    UNMEASURED,
    Meter,
    timed,
)
from lamina.core.ports import Model
from lamina.core.quotas import Resource, spend, spending_tenant
from lamina.errors import TextRefused, Unavailable
from lamina.models.lanes import ModelLanes
from lamina.models.passes import padding
from lamina.models.prefixes import NONE, Prefixes
from lamina.text.opaque import language_spans

CHARS_PER_TOKEN = 4
SHORT_CHARS = 2_000
BEGINNING_CHARS = 100
MOST_QUESTION_CHARS = 8_000
_GAP = "\n\n"
# A turn's names come again with the next one. 4 096 vectors of 384 numbers take 7 MB.
NAME_CHARS, MOST_NAMES, NAMES_S = 128, 4_096, 3_600
Spans = Sequence[tuple[int, int]]


class BatchingEmbedder:
    """Runs a blocking model in threads; questions go before everything else, and tenants take turns.

    Texts that arrive while a pass runs are in one of the next. A failing pass fails alone. The vectors of short texts,
    as names are, are remembered for the tenant that had them embedded.

    Args:
        model: The model.
        max_items: Most chunks of one pass.
        max_queued: Calls that may wait in each of the two queues.
        meter: Records each pass, and how many calls wait or are in one.
        prefixes: What the model wants before questions and before texts.
    """

    def __init__(
        self,
        model: Model,
        *,
        max_items: int = 64,
        max_queued: int = 512,
        meter: Meter = UNMEASURED,
        prefixes: Prefixes = NONE,
    ) -> None:
        self._model = model
        self._prefixes = prefixes
        self._meter = meter
        self._in_hand = 0
        self._cutting = asyncio.Semaphore(1)
        # A search on its way needs the processors more than what is written, of which one tenant may send any amount.
        self._written = ThreadPoolExecutor(model.passes_at_once, "written", initializer=stand_back)
        self._names: TTLCache[tuple[str, str], bytes] = TTLCache(MOST_NAMES, NAMES_S)
        self._lanes = ModelLanes(
            self._encode,
            most_texts=max_items,
            most_tokens=model.pass_tokens,
            at_once=model.passes_at_once,
            most_calls=max_queued,
        )

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a question: float32, shape (n, d); a long text's chunks are averaged."""
        if not texts:
            return np.zeros((0, self._model.identity.dimension), dtype=np.float32)
        return np.stack([mean_vector(chunks) for chunks in await self.embed_questions(texts)])

    async def embed_questions(self, texts: Sequence[str], tenant: str | None = None) -> Sequence[tuple[Chunk, ...]]:
        """Return the embedded chunks of each text, in order, before all that is written.

        Of a very long one the beginning and the end are embedded.

        Args:
            texts: The questions.
            tenant: Who asks, and has counted the tokens; the tenant of the request that is worked on if not given.
        """
        return await self._embed([question_part(text) for text in texts], tenant, is_question=True)

    async def embed_chunks(self, texts: Sequence[str], tenant: str | None = None) -> Sequence[tuple[Chunk, ...]]:
        """Return the embedded chunks of each text, in order; questions go before them.

        Args:
            texts: What is written.
            tenant: Who writes it, and has counted the tokens; the tenant of the request that is worked on if not given.
        """
        return await self._embed(texts, tenant, is_question=False)

    async def _embed(
        self, texts: Sequence[str], tenant: str | None, *, is_question: bool
    ) -> Sequence[tuple[Chunk, ...]]:
        if not texts:
            return []
        if tenant is None:  # Who names a tenant counts by itself.
            spend(Resource.EMBEDDED_TOKENS, tokens_of(texts))
        owner = spending_tenant() if tenant is None else tenant
        self._in_hand += 1
        self.record_calls()
        try:
            spans, cut = await self._cut(texts)
            prefix = self._prefixes.question if is_question else self._prefixes.written
            lengths = {prefix + piece: tokens for piece, tokens in cut.items()} if prefix else cut
            known = {piece: found for piece in lengths if (found := self._names.get((owner, piece))) is not None}
            new = [piece for piece in lengths if piece not in known]
            tokens = [lengths[piece] for piece in new]
            vectors = await self._lanes.submit(new, tokens, tenant=owner, is_question=is_question)
        finally:
            self._in_hand -= 1
            self.record_calls()
        if known:
            self._meter.record(EMBEDDER_REMEMBERED, len(known))
        embedded = dict(zip(new, vectors, strict=True))
        self._names.update(
            {(owner, piece): row for piece, row in embedded.items() if len(piece) <= NAME_CHARS + len(prefix)}
        )
        vector_of = {piece.removeprefix(prefix): row for piece, row in (known | embedded).items()}
        return _as_chunks(texts, spans, vector_of)

    def record_calls(self) -> None:
        """Record the number of calls in hand; repeat it, since Ray drops a gauge that is not set for a while."""
        self._meter.record(EMBEDDER_CALLS, self._in_hand)

    async def _cut(self, texts: Sequence[str]) -> tuple[list[Spans], dict[str, int]]:
        """Cut the texts into chunks, and count the tokens of each distinct one; long texts in a thread, in turn."""
        if sum(map(len, texts)) <= SHORT_CHARS:
            return _cut(self._model, texts)
        async with self._cutting:
            return await asyncio.to_thread(_cut, self._model, texts)

    async def _encode(self, pieces: Sequence[str], tokens: Sequence[int], is_question: bool) -> list[bytes]:
        distinct = dict(zip(pieces, tokens, strict=True))
        threads = None if is_question else self._written
        loop = asyncio.get_running_loop()
        rows = await loop.run_in_executor(threads, encode_pieces, self._model, distinct, self._meter)
        vector_of = dict(zip(distinct, rows, strict=True))
        return [vector_of[piece] for piece in pieces]


def embed_chunks(model: Model, texts: Sequence[str], meter: Meter = UNMEASURED) -> list[tuple[Chunk, ...]]:
    """Cut the texts into chunks that fit the model and embed them all; equal chunks are embedded once.

    Raises:
        Unavailable: If the model returns another number or length of vectors than asked for.
    """
    spans, lengths = _cut(model, texts)
    return _as_chunks(texts, spans, dict(zip(lengths, encode_pieces(model, lengths, meter), strict=True)))


def question_part(text: str) -> str:
    """Return the part of a question that is embedded: all of it, or the beginning and the end of a very long one."""
    if len(text) <= MOST_QUESTION_CHARS:
        return text
    half = (MOST_QUESTION_CHARS - len(_GAP)) // 2
    return f"{text[:half]}{_GAP}{text[-half:]}"


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


def encode_pieces(model: Model, lengths: Mapping[str, int], meter: Meter = UNMEASURED) -> list[bytes]:
    """Return the vector of each chunk's text.

    Args:
        model: Embeds them.
        lengths: Tokens of each text.
        meter: Records them.

    Raises:
        Unavailable: If the model returns another number or length of vectors than asked for.
    """
    with timed(meter, EMBEDDER_SECONDS, EMBEDDER_FAILURES):
        encoded = model.encode(list(lengths))
    meter.record(EMBEDDER_BATCH, len(lengths))
    meter.record(EMBEDDER_TEXTS, len(lengths))
    meter.record(EMBEDDER_TOKENS, sum(lengths.values()))
    meter.record(EMBEDDER_PADDING, padding(list(lengths.values())))
    return [row.tobytes() for row in checked(encoded, len(lengths), model.identity.dimension)]


def _cut(model: Model, texts: Sequence[str]) -> tuple[list[Spans], dict[str, int]]:
    spans = [chunk_spans(model, text) for text in texts]
    # Passages and turns repeat titles and greetings.
    pieces = list(
        dict.fromkeys(text[start:end] for text, found in zip(texts, spans, strict=True) for start, end in found)
    )
    return spans, dict(zip(pieces, model.lengths(pieces), strict=True))


def _as_chunks(texts: Sequence[str], spans: Sequence[Spans], vector_of: Mapping[str, bytes]) -> list[tuple[Chunk, ...]]:
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
        Unavailable: If their shape is not (count, dimension).
        TextRefused: If a number is not finite: some texts are beyond a model of half precision.
    """
    if rows.shape != (count, dimension):
        raise Unavailable("embedder", f"it returned vectors of shape {rows.shape} for ({count}, {dimension})")
    if not np.isfinite(rows).all():
        raise TextRefused("embedder", "it returned a vector that is not finite")
    return rows.astype(np.float32, copy=False)


def mean_vector(chunks: Sequence[Chunk]) -> NDArray[np.float32]:
    """Return the unit mean of a text's chunks: float32, shape (d,)."""
    if len(chunks) == 1:
        return chunks[0].vector()
    mean = np.stack([chunk.vector() for chunk in chunks]).mean(axis=0, dtype=np.float32)
    norm = np.linalg.norm(mean)
    return (mean / norm).astype(np.float32) if norm > 0 else chunks[0].vector()
