"""Deployment handles as the library's ports; a replica in this process is called in the same form, without a hop.

Calls that queue while others are in flight travel together: one hop carries up to 32 of them. If it fails, they travel
again one by one: no tenant's call fails by another one's, or is told of it.
"""

import asyncio
import logging
import pickle
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import BackPressureError, RayServeException
from ray.serve.handle import DeploymentHandle

from lamina.aio.coalescing import Coalescer
from lamina.core.erasures import Remnant
from lamina.core.links import FollowedLink, Frontier
from lamina.core.memories import Chunk
from lamina.core.metrics import APPLIED, APPLY_FAILURES, APPLY_SECONDS, UNMEASURED, Meter, timed
from lamina.core.ports import Change, ModelReport
from lamina.core.queries import Failure, Query, Ranking
from lamina.core.quotas import Resource, spend, spending_tenant
from lamina.core.tiers import ProjectionName, Source
from lamina.errors import LaminaError, Overloaded, Unavailable
from lamina.models.batching import mean_vector, question_part, tokens_of
from lamina.projections.audit import Drift

logger = logging.getLogger(__name__)
Item = TypeVar("Item")
TenantTexts = tuple[str, tuple[str, ...]]
RerankCall = tuple[str, tuple[str, ...]]
_METHOD_BEFORE = {"embed_asked": "embed_questions", "embed_written": "embed_calls"}
# One hop at a time would leave replicas idle while an answer travels; more hops carry fewer calls each.
MAX_IN_FLIGHT = 4
# Of questions a further one begins beside the last if so many wait, or the last takes long: those of one pass of the
# model take a third less of it than each alone, and a pass takes the one that came before them anyway.
ENOUGH_QUESTIONS, PATIENCE_S = 8, 0.05
# A long text keeps its hop for many seconds, and takes no short one along.
MAX_WRITES_IN_FLIGHT = 16
CHARS_PER_CALL = 500
# A replica answers a ping within some milliseconds, also on a busy machine.
FIRST_REPLICA_S = 0.3
# Ray's transport takes 4 MiB: a batch of long notes beyond it would never be applied, nor anybody's after it.
MAX_APPLY_BYTES = 2 * 1024 * 1024


def parts_of(items: Sequence[Item], max_bytes: int) -> Iterator[list[Item]]:
    """Yield the items in order, in parts of at most so many bytes; one that is larger goes alone."""
    part: list[Item] = []
    part_bytes = 0
    for item in items:
        size_bytes = len(pickle.dumps(item))
        if part and part_bytes + size_bytes > max_bytes:
            yield part
            part, part_bytes = [], 0
        part.append(item)
        part_bytes += size_bytes
    if part:
        yield part


@dataclass(frozen=True, slots=True)
class InProcessMethod:
    """A method of a replica in this process, in the form of a handle's."""

    method: Callable[..., Awaitable[Any]]

    async def remote(self, *arguments: Any) -> Any:
        """Return the method's result: neither it nor the arguments are copied."""
        try:
            return await self.method(*arguments)
        except LaminaError:
            raise
        except Exception:
            # The caller names its kind alone; Ray logs the errors of a deployment of its own.
            logger.exception("%s failed", self.method)
            raise


class InProcessHandle:
    """A replica in this process, called in the form of a deployment handle.

    Args:
        replica: An object of a deployment's class.
    """

    def __init__(self, replica: object) -> None:
        self._replica = replica

    def __getattr__(self, method: str) -> InProcessMethod:
        return InProcessMethod(getattr(self._replica, method))


Handle = DeploymentHandle[Any] | InProcessHandle


class CalledDeployment:
    """Calls methods of a deployment; its errors come as the library's own.

    Args:
        handle: The deployment.
        part: Its name in errors.
    """

    def __init__(self, handle: Handle, part: str) -> None:
        self._handle = handle
        self._part = part
        self._is_here = isinstance(handle, InProcessHandle)

    async def call(self, method: str, *arguments: Any) -> Any:
        """Return the method's result.

        Raises:
            LaminaError: From the method.
            Overloaded: If the deployment's queue is full.
            Unavailable: If no replica answers.
        """
        try:
            return await getattr(self._handle, method).remote(*arguments)
        except BackPressureError as error:
            raise Overloaded(self._part, "its queue is full") from error
        except RayTaskError as error:
            if isinstance(error.cause, LaminaError):
                raise error.cause from None
            raise Unavailable(self._part, f"it failed with {type(error.cause).__name__}") from error
        except (RayError, RayServeException) as error:
            raise Unavailable(self._part, type(error).__name__) from error
        except LaminaError:
            raise
        except Exception as error:
            raise Unavailable(self._part, f"it failed with {type(error).__name__}") from error

    async def ping(self) -> None:
        """Return if a replica answers."""
        await self.call("ping")


class EmbedderHandle(CalledDeployment):
    """The Embedder port over its deployment."""

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle, "embedder")
        self._has_answered = False
        self._first_ping: asyncio.Task[None] | None = None
        # Each has its own: no hop with a question waits for one with a book.
        self._questions: Coalescer[TenantTexts, Sequence[tuple[Chunk, ...]]] = Coalescer(
            partial(self._embed, "embed_asked"),
            part="embedder",
            max_in_flight=MAX_IN_FLIGHT,
            is_sent_singly=True,
            patience_s=PATIENCE_S,
            enough=ENOUGH_QUESTIONS,
        )
        self._calls: Coalescer[TenantTexts, Sequence[tuple[Chunk, ...]]] = Coalescer(
            partial(self._embed, "embed_written"),
            part="embedder",
            max_in_flight=MAX_WRITES_IN_FLIGHT,
            weigh=lambda call: 1 + sum(map(len, call[1])) // CHARS_PER_CALL,
            is_sent_singly=True,
        )

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a question: float32, shape (n, d).

        Raises:
            Unavailable: Also at once while the first replica still loads its model: the words alone are searched then,
                and nobody waits for the deadline.
        """
        if not self._has_answered:
            await self._await_first_replica()
        asked = tuple(map(question_part, texts))
        spend(Resource.EMBEDDED_TOKENS, tokens_of(asked))
        call = spending_tenant(), asked
        # The model's own queue puts questions together; there is no hop that they could share.
        found = (await self._embed("embed_asked", [call]))[0] if self._is_here else await self._questions.submit(call)
        return np.stack([mean_vector(chunks) for chunks in found])

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        """Return the embedded chunks of each text."""
        spend(Resource.EMBEDDED_TOKENS, tokens_of(texts))
        return await self._calls.submit((spending_tenant(), tuple(texts))) if texts else []

    async def _await_first_replica(self) -> None:
        if self._first_ping is None or self._first_ping.done():
            self._first_ping = asyncio.create_task(self.ping())
        done, _ = await asyncio.wait({self._first_ping}, timeout=FIRST_REPLICA_S)
        if not done:
            raise Unavailable("embedder", "its model is still being loaded")
        # If it failed, the question itself is told why.
        self._has_answered = self._first_ping.exception() is None

    async def report(self) -> ModelReport:
        """Return how a replica runs its model."""
        found: ModelReport = await self.call("report")
        return found

    async def _embed(self, method: str, calls: Sequence[TenantTexts]) -> Sequence[Sequence[tuple[Chunk, ...]]]:
        try:
            found: Sequence[Sequence[tuple[Chunk, ...]]] = await self.call(method, calls)
        except Unavailable as error:
            # A replica of the release before knows no tenants, and Serve says so of its methods.
            cause = error.__cause__
            if not isinstance(cause.cause if isinstance(cause, RayTaskError) else cause, RayServeException):
                raise
            found = await self.call(_METHOD_BEFORE[method], [texts for _, texts in calls])
        return found


class RerankerHandle(CalledDeployment):
    """The Reranker port over its deployment."""

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle, "reranker")
        self._calls: Coalescer[RerankCall, Sequence[float]] = Coalescer(
            partial(self.call, "score_many"), part="reranker", max_in_flight=MAX_IN_FLIGHT, is_sent_singly=True
        )

    async def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return the score of each text.

        Raises:
            Unavailable: If no replica answers.
        """
        return await self._calls.submit((question, tuple(texts)))


class TierHandle(CalledDeployment):
    """The TierSearcher port over a tier's deployment, and the Links port where the tier has a graph.

    Args:
        handle: The deployment.
        part: Its name in errors.
    """

    def __init__(self, handle: Handle, part: str) -> None:
        super().__init__(handle, part)
        self._queries: Coalescer[Query, Mapping[Source, Ranking | Failure]] = Coalescer(
            partial(self.call, "search_many"), part=part, max_in_flight=MAX_IN_FLIGHT, is_sent_singly=True
        )

    async def search(self, query: Query) -> Mapping[Source, Ranking | Failure]:
        """Return every source's ranking or its failure."""
        if self._is_here:
            found: Mapping[Source, Ranking | Failure] = await self.call("search", query)
            return found
        return await self._queries.submit(query)

    async def expand(self, frontier: Frontier) -> Sequence[FollowedLink]:
        """Return the links of the nodes."""
        followed: Sequence[FollowedLink] = await self.call("expand", frontier)
        return followed

    async def probe_stores(self) -> Mapping[str, str]:
        """Return the state of the store of each of the tier's projections, as one replica sees it."""
        states: Mapping[str, str] = await self.call("probe_stores")
        return states


class ProjectionHandle(CalledDeployment):
    """The Projection port over the deployment that owns it.

    Args:
        handle: The deployment.
        projection: Which of its projections.
        build: Which build of it; that which searches use if not given.
        meter: Records the batches that it takes over.
    """

    def __init__(
        self,
        handle: Handle,
        projection: ProjectionName,
        build: int | None = None,
        meter: Meter = UNMEASURED,
    ) -> None:
        super().__init__(handle, projection)
        self._projection = projection
        self._build = build
        self._meter = meter

    async def apply(self, changes: Sequence[Change[Any]]) -> None:
        """Take over the given states and return when they are visible."""
        with timed(self._meter, APPLY_SECONDS, APPLY_FAILURES, projection=self._projection):
            for part in [changes] if self._is_here else parts_of(changes, MAX_APPLY_BYTES):
                await self.call("apply", self._projection, part, self._build)
        self._meter.record(APPLIED, len(changes), projection=self._projection)

    async def flush(self) -> None:
        """Return when everything applied so far is durable."""
        await self.call("flush", self._projection, self._build)

    def beside(self, build: int) -> "ProjectionHandle":
        """Return the store of a build, which nobody searches yet; it is measured under the same name."""
        return ProjectionHandle(self._handle, self._projection, build, self._meter)

    async def switch(self, build: int) -> None:
        """Have searches use the store of the build from now on."""
        await self.call("switch", self._projection, build)

    async def audit(self, tenant: str) -> Drift:
        """Return how the projection differs from Postgres."""
        drift: Drift = await self.call("audit", self._projection, tenant)
        return drift

    async def compact(self, tenant: str) -> Sequence[Remnant]:
        """Rewrite the store without its deleted rows; return the places where some may remain."""
        remnants: Sequence[Remnant] = await self.call("compact", self._projection, tenant)
        return remnants
