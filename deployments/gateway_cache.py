"""The response cache before a model's endpoint: the same question under the same circumstances costs no call."""

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from deployments.inner_client import inner_client
from lamina.api.openai.cached_answers import CacheUse, KeptAnswer, circumstances
from lamina.api.openai.requests import ModelRequest
from lamina.core.principals import Principal, ScopeField, Verb
from lamina.errors import InvalidInput, LaminaError, Unavailable
from lamina.settings.doors import GatewaySettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

DEFAULT_AGENT = "gateway"
"""Whose responses they are where neither the request nor its key names an agent."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CacheLookup:
    """The outcome of a lookup.

    Args:
        state: off, unavailable, miss, hit or stale.
        question: Fields of the question, to put its answer under.
        answer: The answer that was kept.
        is_to_renew: Whether this request is the one that renews a stale answer.
        keeps_calls: Whether an answer that only calls tools may be kept.
    """

    state: str
    question: Mapping[str, Any] | None = None
    answer: KeptAnswer | None = None
    is_to_renew: bool = False
    keeps_calls: bool = False

    @property
    def epoch(self) -> Any:
        """Return the epoch at which the cache was asked; ``None`` if it was not."""
        return None if self.question is None else self.question["epoch"]

    def made_from(self, epoch: Any) -> "CacheLookup":
        """Return the same with a question under which an answer is kept if nothing changed since this epoch."""
        if self.question is None or epoch is None:
            return replace(self, question=None)
        return replace(self, question={**self.question, "epoch": epoch})


NOT_ASKED = CacheLookup("off")


@dataclass(frozen=True, slots=True)
class GatewayCache:
    """Looks up and keeps answers by the routes that everybody calls.

    Args:
        behind: The API behind the front door.
        settings: Those of the gateway.
    """

    behind: "ASGIApp"
    settings: GatewaySettings

    async def look_up(
        self,
        request: Request,
        body: bytes,
        read: ModelRequest,
        principal: Principal,
        ids: Mapping[str, str],
        until: float,
    ) -> CacheLookup:
        """Return the kept answer to a request, if the cache may be asked and has one.

        Args:
            request: With its headers.
            body: Of the request.
            read: The request in it.
            principal: Who asks.
            ids: Of its scope.
            until: The loop's time at which the request goes on without the cache.

        Raises:
            LaminaError: If the scope is none, or reaches further than the key.
        """
        use = self._use(request)
        if use is CacheUse.OFF or Verb.READ not in principal.allowed_verbs():
            return NOT_ASKED
        context = [
            str(self.settings.base_url),
            request.path_params["call"],
            request.scope["query_string"].decode("latin-1"),
        ]
        # Of the headers, those by which an endpoint may answer differently.
        context += sorted(
            f"{name}: {value}"
            for name, value in request.headers.items()
            if name == "lamina-upstream-key" or name.startswith(("openai-", "anthropic-", "x-litellm"))
        )
        variant = await asyncio.to_thread(lambda: circumstances(read, json.loads(body), context, use))
        if variant is None:
            return NOT_ASKED
        question: dict[str, Any] = {"query": read.question, "variant": {"gateway": variant}, **_agent(principal, ids)}
        try:
            async with asyncio.timeout_at(until), inner_client(self.behind, principal, ids) as api:
                found = await api.look_up_response(**question)
        except (Unavailable, TimeoutError, InvalidInput) as error:
            if isinstance(error, InvalidInput) and error.field != "query":
                raise
            _logger.warning("a request went on without the cache of responses: %s", error or "it took too long")
            return CacheLookup("unavailable")
        question["epoch"] = found["epoch"]
        answer = KeptAnswer.from_json(found["response"])
        state = "miss" if answer is None else found["state"]
        return CacheLookup(state, question, answer, found["refresh"], use is CacheUse.TOOLS)

    async def keep(self, lookup: CacheLookup, answer: KeptAnswer, principal: Principal, ids: Mapping[str, str]) -> None:
        """Put an answer that was made after a lookup; it is not kept if the memory changed since."""
        if lookup.question is None:
            return
        try:
            async with inner_client(self.behind, principal, ids) as api:
                await api.put_response(response=answer.as_json(), **lookup.question)
        except LaminaError as error:
            _logger.warning("an answer was not kept: %s", error)

    def _use(self, request: Request) -> CacheUse:
        wish = request.headers.get("lamina-cache", self.settings.cache).lower()
        try:
            return CacheUse(wish)
        except ValueError as error:
            raise InvalidInput("lamina-cache", f"is {wish}; expected {', '.join(CacheUse)}") from error


def _agent(principal: Principal, ids: Mapping[str, str]) -> dict[str, str]:
    """Return the agent to name, where neither the request nor the key does."""
    is_named = "agent" in ids or bool(principal.bounds.of(ScopeField.AGENT))
    return {} if is_named else {"agent": DEFAULT_AGENT}
