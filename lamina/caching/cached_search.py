"""The caches in front of a search."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, Protocol, TypeVar

from lamina.aio.single_flight import SingleFlight
from lamina.caching.answer_cache import AnswerCache, RenderedAnswer, SentAnswer
from lamina.core.stamps import Stamp
from lamina.policies.caching.answer_keys import AnswerKeys, RequestIdentity
from lamina.search.fused_search import SearchHints

Request = TypeVar("Request")
Request_contra = TypeVar("Request_contra", contravariant=True)
Found = TypeVar("Found")
Found_co = TypeVar("Found_co", covariant=True)


@dataclass(frozen=True, slots=True)
class CacheableRequest(Generic[Request]):
    """A request that caches may answer.

    Args:
        identity: The fields that distinguish it from other requests.
        request: The request, with the agent's memory profile and the settings applied.
        stamp: Read after the request arrived; ``None`` if it could not be read.
        use_cache: Whether the caller lets caches answer.
        explain: Whether the caller wants every source's figures.
        degraded: Parts that could not be read for the request, with the reasons.
    """

    identity: RequestIdentity
    request: Request
    stamp: Stamp | None
    use_cache: bool = True
    explain: bool = False
    degraded: Mapping[str, str] = field(default_factory=dict)


class SearchPort(Protocol[Request_contra, Found_co]):
    """A search that takes hints."""

    async def search(self, request: Request_contra, hints: SearchHints) -> Found_co:
        """Search.

        Raises:
            LaminaError: If it is refused, or nothing answers.
        """
        ...


# Makes the answer of what was found, in the form in which it is sent and cached.
Render = Callable[[CacheableRequest[Request], Found], RenderedAnswer]


class CachedSearch(Generic[Request, Found]):
    """Answers from the caches, or searches and keeps the answer.

    The replica's own copies come first, then the workspace's shard, once. Equal requests that
    come while one is searched share its answer. A failure of a cache is a miss.

    Args:
        search: Searches on a miss.
        render: Writes the answer; an answer is kept as it is sent.
        cache: The layers.
    """

    def __init__(self, search: SearchPort[Request, Found], render: Render[Request, Found], cache: AnswerCache) -> None:
        self._search = search
        self._render = render
        self._cache = cache
        self._flights = SingleFlight[bytes, SentAnswer]()

    async def search(self, request: CacheableRequest[Request]) -> SentAnswer:
        """Return the answer.

        Raises:
            LaminaError: From the search.
        """
        stamp = request.stamp
        if stamp is None:
            return SentAnswer(await self._answer(request, SearchHints()))
        if not request.use_cache:
            return SentAnswer(await self._answer(request, _hints(stamp)))
        keys = self._cache.keys(request.identity, stamp)
        # The replica's copies come before the flights: a hit starts no task.
        if (copy := self._cache.find_copy(keys)) is not None:
            return copy
        # No later request joins a search that began before an index had caught up: it may lack writes that the later
        # one's stamp covers.
        start = partial(self._find_or_search, request, stamp, keys)
        return await self._flights.run(keys.turn.digest, start, is_joinable=stamp.is_settled)

    async def _find_or_search(self, request: CacheableRequest[Request], stamp: Stamp, keys: AnswerKeys) -> SentAnswer:
        found, pieces = await self._cache.find(keys)
        if found is not None:
            return found
        graph = None if keys.graph is None else pieces.get(keys.graph)
        hints = replace(_hints(stamp), embedding=pieces.get(keys.embedding), graph=graph)
        answer = await self._answer(request, hints)
        # The stamp was read before the search, so the answer is at least as new. While the stamp is unsettled, the
        # answer may lack writes that it covers.
        if stamp.is_settled:
            self._cache.keep(keys, answer, pieces)
        return SentAnswer(answer, tuple(key.layer for key in keys.pieces() if key in pieces))

    async def _answer(self, request: CacheableRequest[Request], hints: SearchHints) -> RenderedAnswer:
        return self._render(request, await self._search.search(request.request, hints))


def _hints(stamp: Stamp) -> SearchHints:
    return SearchHints(shares=stamp.shares(), empty=stamp.empty, remembered=stamp.question)


class TraversalPort(Protocol[Request_contra, Found_co]):
    """Follows links from some nodes."""

    async def traverse(self, request: Request_contra) -> Found_co:
        """Follow links.

        Raises:
            LaminaError: If the request is refused, or the graph does not answer.
        """
        ...


class CachedTraversal(Generic[Request, Found]):
    """Answers from the shard's layer of walks, or walks and keeps the answer.

    Args:
        explorer: Walks on a miss.
        render: Writes the answer.
        cache: The layer.
    """

    def __init__(
        self, explorer: TraversalPort[Request, Found], render: Render[Request, Found], cache: AnswerCache
    ) -> None:
        self._explorer = explorer
        self._render = render
        self._cache = cache

    async def traverse(self, request: CacheableRequest[Request]) -> SentAnswer:
        """Return the answer.

        Raises:
            LaminaError: From the walk.
        """
        stamp = request.stamp
        if stamp is not None and (found := await self._cache.find_walk(request.identity, stamp)) is not None:
            return found
        answer = self._render(request, await self._explorer.traverse(request.request))
        if stamp is not None and stamp.is_settled:
            self._cache.keep_walk(request.identity, stamp, answer)
        return SentAnswer(answer)
