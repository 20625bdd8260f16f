"""The reranker as a deployment."""

import asyncio
from collections.abc import Sequence

from actors.instruments import replica_meter, watch
from deployments.replica import begin_replica
from lamina.settings.loading import Settings
from lamina.wiring.reranking import build_reranker

RerankCall = tuple[str, tuple[str, ...]]


class RerankerDeployment:
    """One replica: one cross-encoder on one device, or the calls of an endpoint.

    Args:
        settings: Which reranker, and how.
        device: ``cpu`` or ``cuda``.
    """

    def __init__(self, settings: Settings, device: str) -> None:
        reranker = build_reranker(settings, device)
        assert reranker is not None  # noqa: S101 - the application has no such deployment where it is off
        self._reranker = reranker
        begin_replica(settings.logs)
        watch(self, "reranker", replica_meter())

    async def score_many(self, calls: Sequence[RerankCall]) -> list[Sequence[float]]:
        """Return the scores of each call's texts."""
        return await asyncio.gather(*(self._reranker.score(question, texts) for question, texts in calls))

    async def ping(self) -> None:
        """Return at once."""

    async def check_health(self) -> None:
        """Return at once, as long as the event loop turns."""
