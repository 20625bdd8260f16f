"""Load a model when it is first needed: most runs of most jobs need none."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lamina.core.memories import Chunk
from lamina.core.ports import Embedder, Model
from lamina.models.batching import BatchingEmbedder
from lamina.models.prefixes import NONE, Prefixes


class LazyEmbedder:
    """The Embedder port over a model that is not loaded yet.

    Args:
        load: Loads the model; slow.
        prefixes: What it wants before questions and before texts.
    """

    def __init__(self, load: Callable[[], Model], prefixes: Prefixes = NONE) -> None:
        self._load = load
        self._prefixes = prefixes
        self._embedder: Embedder | None = None

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text: float32, shape (n, d)."""
        return await self._loaded().embed(texts)

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        """Return the embedded chunks of each text, in order."""
        return await self._loaded().embed_chunks(texts)

    def _loaded(self) -> Embedder:
        if self._embedder is None:
            self._embedder = BatchingEmbedder(self._load(), prefixes=self._prefixes)
        return self._embedder
