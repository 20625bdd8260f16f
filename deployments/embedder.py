"""The embedding model as a deployment."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from actors.instruments import replica_meter, watch
from deployments.handles import TenantTexts
from deployments.replica import begin_replica
from deployments.scaling import Work
from lamina.core.memories import Chunk
from lamina.core.ports import ModelIdentity, ModelReport, ReportingModel
from lamina.errors import Misconfigured, Unavailable
from lamina.models.batching import BatchingEmbedder, tokens_of
from lamina.models.prefixes import prefixes_of
from lamina.settings.loading import Settings
from lamina.wiring.stores import build_model

# Longer than a batch of one very long document takes on a slow machine.
STALLED_S = 600.0
_UNNAMED = ""

_Embed = Callable[[Sequence[str], str], Awaitable[Sequence[tuple[Chunk, ...]]]]


class EmbedderDeployment:
    """One replica: one model on one device.

    Args:
        settings: Which model, and how.
        device: ``cpu`` or ``cuda``.
        identity: Of the model that made the stores' vectors.
        model: The model, if it is loaded already.

    Raises:
        Misconfigured: If the loaded model is another one.
    """

    def __init__(
        self, settings: Settings, device: str, identity: ModelIdentity, model: ReportingModel | None = None
    ) -> None:
        model = model or build_model(settings, device)
        if model.identity != identity:
            raise Misconfigured(f"the model loaded is {model.identity}, expected {identity}", "set embedding.model")
        self._report = model.report
        begin_replica(settings.logs)
        meter = replica_meter()
        self._embedder = BatchingEmbedder(model, meter=meter, prefixes=prefixes_of(settings.embedding))
        # The bound method holds the embedder, not this replica: the watching ends with the replica.
        watch(self, "embedder", meter, tell=self._embedder.record_calls)
        self._work = Work()

    async def embed_written(self, calls: Sequence[TenantTexts]) -> list[Sequence[tuple[Chunk, ...]]]:
        """Return the embedded chunks of each text of each call."""
        return await asyncio.gather(*(self._embed(self._embedder.embed_chunks, *call) for call in calls))

    async def embed_asked(self, calls: Sequence[TenantTexts]) -> list[Sequence[tuple[Chunk, ...]]]:
        """Return the same for questions, which go before all that is written."""
        return await asyncio.gather(*(self._embed(self._embedder.embed_questions, *call) for call in calls))

    async def embed_calls(self, calls: Sequence[tuple[str, ...]]) -> list[Sequence[tuple[Chunk, ...]]]:
        """Return the same for texts of a router of the release before, which names no tenants."""
        return await self.embed_written([(_UNNAMED, texts) for texts in calls])

    async def embed_questions(self, calls: Sequence[tuple[str, ...]]) -> list[Sequence[tuple[Chunk, ...]]]:
        """Return the same for questions of such a router."""
        return await self.embed_asked([(_UNNAMED, texts) for texts in calls])

    async def _embed(self, embed: _Embed, tenant: str, texts: tuple[str, ...]) -> Sequence[tuple[Chunk, ...]]:
        with self._work.counted(tokens_of(texts)):
            return await embed(texts, tenant)

    async def report(self) -> ModelReport:
        """Return how this replica runs its model."""
        return self._report

    async def ping(self) -> None:
        """Return at once."""

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """Return how many tokens wait for their vectors; Ray asks for it by this name."""
        return self._work.report()

    async def check_health(self) -> None:
        """Return at once, as long as the event loop turns and the model works.

        Raises:
            Unavailable: If texts wait and none was embedded for ten minutes.
        """
        if (stalled := self._work.stalled_s()) > STALLED_S:
            raise Unavailable("embedder", f"the model has embedded nothing for {stalled:.0f} s")
