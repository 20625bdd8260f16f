"""Deployment handles as the library's ports.

Calls that queue while others are in flight travel together: one hop carries up to 32 of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import BackPressureError, RayServeException
from ray.serve.handle import DeploymentHandle

from lamina.aio.coalescing import Coalescer
from lamina.core.links import Followed, Frontier
from lamina.core.memories import Chunk
from lamina.core.ports import Change
from lamina.core.queries import Failure, Query, Ranking
from lamina.core.tiers import ProjectionName, Source
from lamina.errors import LaminaError, Overloaded, Unavailable
from lamina.models.batching import mean_vector
from lamina.projections.audit import Drift

MAX_IN_FLIGHT = 4


async def call(handle: DeploymentHandle[Any], method: str, part: str, *arguments: Any) -> Any:
    """Return what a deployment's method returns; its errors come as the library's own.

    Raises:
        LaminaError: What the method raised.
        Overloaded: If the deployment's queue is full.
        Unavailable: If no replica answers.
    """
    try:
        return await getattr(handle, method).remote(*arguments)
    except BackPressureError as error:
        raise Overloaded(part, "its queue is full") from error
    except RayTaskError as error:
        if isinstance(error.cause, LaminaError):
            raise error.cause from None
        raise Unavailable(part, f"it failed with {type(error.cause).__name__}") from error
    except (RayError, RayServeException) as error:
        raise Unavailable(part, type(error).__name__) from error


class EmbedderHandle:
    """The Embedder port over its deployment."""

    def __init__(self, handle: DeploymentHandle[Any]) -> None:
        self._handle = handle
        self._calls: Coalescer[tuple[str, ...], Sequence[tuple[Chunk, ...]]] = Coalescer(
            self._send, part="embedder", max_in_flight=MAX_IN_FLIGHT
        )

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text: float32, shape (n, d)."""
        return np.stack([mean_vector(chunks) for chunks in await self.embed_chunks(texts)])

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        """Return the embedded chunks of each text."""
        return await self._calls.submit(tuple(texts)) if texts else []

    async def _send(self, calls: Sequence[tuple[str, ...]]) -> Sequence[Sequence[tuple[Chunk, ...]]]:
        answered: Sequence[Sequence[tuple[Chunk, ...]]] = await call(
            self._handle, "embed_calls", "embedder", list(calls)
        )
        return answered


class TierHandle:
    """The TierSearcher port over a tier's deployment, and what follows links where it has a graph.

    Args:
        handle: The deployment.
        part: Its name in errors.
    """

    def __init__(self, handle: DeploymentHandle[Any], part: str) -> None:
        self._handle = handle
        self._part = part
        self._queries: Coalescer[Query, Mapping[Source, Ranking | Failure]] = Coalescer(
            self._send, part=part, max_in_flight=MAX_IN_FLIGHT
        )

    async def search(self, query: Query) -> Mapping[Source, Ranking | Failure]:
        """Return every source's ranking or its failure."""
        return await self._queries.submit(query)

    async def expand(self, frontier: Frontier) -> Sequence[Followed]:
        """Return the links of the nodes."""
        followed: Sequence[Followed] = await call(self._handle, "expand", self._part, frontier)
        return followed

    async def probe(self) -> None:
        """Return if a replica answers."""
        await call(self._handle, "ping", self._part)

    async def probe_stores(self) -> Mapping[str, str]:
        """Return the state of the store of each of the tier's projections, as one replica sees it."""
        states: Mapping[str, str] = await call(self._handle, "probe_stores", self._part)
        return states

    async def _send(self, queries: Sequence[Query]) -> Sequence[Mapping[Source, Ranking | Failure]]:
        answered: Sequence[Mapping[Source, Ranking | Failure]] = await call(
            self._handle, "search_many", self._part, list(queries)
        )
        return answered


class ProjectionHandle:
    """The Projection port over the deployment that owns it.

    Args:
        handle: The deployment.
        projection: Which of its projections.
        build: Which build of it; that which searches use if not given.
    """

    def __init__(self, handle: DeploymentHandle[Any], projection: ProjectionName, build: int | None = None) -> None:
        self._handle = handle
        self._projection = projection
        self._build = build

    async def apply(self, changes: Sequence[Change[Any]]) -> None:
        """Take over the given states and return when they are visible."""
        await self._asked("apply", list(changes), self._build)

    async def flush(self) -> None:
        """Return when everything applied so far is durable."""
        await self._asked("flush", self._build)

    def beside(self, build: int) -> "ProjectionHandle":
        """Return the store of a build, which nobody searches yet."""
        return ProjectionHandle(self._handle, self._projection, build)

    async def switch(self, build: int) -> None:
        """Have searches use the store of the build from now on."""
        await self._asked("switch", build)

    async def audit(self, tenant: str) -> Drift:
        """Return how the projection differs from Postgres."""
        drift: Drift = await self._asked("audit", tenant)
        return drift

    async def _asked(self, method: str, *arguments: Any) -> Any:
        return await call(self._handle, method, self._projection, self._projection, *arguments)
