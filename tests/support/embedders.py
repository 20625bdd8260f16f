"""Embedders that fail in the ways that real ones do."""

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lamina.core.memories import Chunk
from lamina.core.ports import Embedder
from lamina.core.scope import Scope
from lamina.core.stamps import Remembered
from lamina.errors import TextRefused, Unavailable


class Down:
    """Answers nothing."""

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise Unavailable("embedder", "no replica")

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        raise Unavailable("embedder", "no replica")


class Switchable:
    """Works, fails or hangs, as the test says."""

    def __init__(self, inner: Embedder) -> None:
        self.inner = inner
        self.state = "up"

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        await self._check()
        return await self.inner.embed(texts)

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        await self._check()
        return await self.inner.embed_chunks(texts)

    async def _check(self) -> None:
        if self.state == "down":
            raise Unavailable("embedder", "no replica")
        if self.state == "hanging":
            await asyncio.sleep(3600)


class Refusing:
    """Refuses texts that hold a word, and calls of more texts than it takes.

    Args:
        inner: Embeds the others.
        word: The word.
        most_texts: Most texts of a call.
    """

    def __init__(self, inner: Embedder, word: str, *, most_texts: int = 64) -> None:
        self._inner = inner
        self._word = word
        self._most_texts = most_texts

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self._check(texts)
        return await self._inner.embed(texts)

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        self._check(texts)
        return await self._inner.embed_chunks(texts)

    def _check(self, texts: Sequence[str]) -> None:
        if len(texts) > self._most_texts or any(self._word in text for text in texts):
            raise TextRefused("embedder", "its endpoint answers 413")


class WritesOnly:
    """Embeds what is written and nothing that is asked."""

    def __init__(self, inner: Embedder) -> None:
        self.inner = inner

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise Unavailable("embedder", "switched off")

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        return await self.inner.embed_chunks(texts)


class Uncached:
    """Embeds every question anew.

    Args:
        embedder: Does it.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def embed_question(self, scope: Scope, text: str, remembered: Remembered | None = None) -> bytes:
        """Return float32 bytes of the unit vector."""
        return bytes((await self._embedder.embed([text]))[0].tobytes())
