"""The embedding model as a deployment."""

import asyncio
from collections.abc import Sequence

from lamina.embedding.batching import BatchingEmbedder
from lamina.errors import Misconfigured
from lamina.memories import Chunk
from lamina.ports import ModelIdentity
from lamina.settings import Settings
from lamina.wiring import build_model


class Embedder:
    """One replica: one model on one device.

    Args:
        settings: Which model, and how.
        device: ``cpu`` or ``cuda``.
        identity: What the stores' vectors were made with.

    Raises:
        Misconfigured: If the loaded model is another one.
    """

    def __init__(self, settings: Settings, device: str, identity: ModelIdentity) -> None:
        model = build_model(settings, device)
        if model.identity != identity:
            raise Misconfigured(f"the model loaded is {model.identity}, expected {identity}", "set embedding.model")
        self._embedder = BatchingEmbedder(model)

    async def embed_calls(self, calls: Sequence[tuple[str, ...]]) -> list[Sequence[tuple[Chunk, ...]]]:
        """Return the embedded chunks of each text of each call."""
        return await asyncio.gather(*(self._embedder.embed_chunks(texts) for texts in calls))

    async def ping(self) -> None:
        """Return at once."""
