"""The indexer as a deployment: one replica follows the outbox."""

import asyncio
from typing import Any

from ray.serve.handle import DeploymentHandle

from deployments.handles import TierHandle
from lamina.ports import Projection
from lamina.settings import Settings
from lamina.stores.postgres.outbox import ProjectionName
from lamina.wiring import build_indexer, build_pool


class Indexer:
    """Follows the outbox from its first health check on.

    Args:
        settings: Where Postgres is, and how large batches are.
        sessions: The deployment that owns the messages' projection.
        notes: The deployment that owns the notes' projection.
    """

    def __init__(self, settings: Settings, sessions: DeploymentHandle[Any], notes: DeploymentHandle[Any]) -> None:
        projections: dict[ProjectionName, Projection] = {
            "messages": TierHandle(sessions, "sessions"),
            "notes": TierHandle(notes, "notes"),
        }
        self._indexer = build_indexer(settings, build_pool(settings), projections)
        self._following: asyncio.Task[None] | None = None

    async def check_health(self) -> None:
        """Start to follow the outbox, or raise what ended it, so that the replica is replaced."""
        if self._following is None:
            self._following = asyncio.create_task(self._indexer.run())
        elif self._following.done():
            self._following.result()

    async def ping(self) -> None:
        """Return if the outbox is followed."""
        await self.check_health()
