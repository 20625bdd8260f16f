"""One call of an OpenAI-compatible chat endpoint: retried where a retry may help, within a deadline."""

import asyncio
import email.utils
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import httpx

from lamina.errors import Misconfigured, Unavailable
from lamina.models.token_budget import TokenBudget
from lamina.settings import LanguageModelSettings

PART = "language model"
UNANSWERED = "ReadTimeout"
MAX_BACKOFF_S = 30.0
_RETRIED = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})
_FIRST_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answered.

    Args:
        text: Its words; empty if it refused or was cut off.
        tokens: What the call cost, both ways, where the endpoint says.
    """

    text: str
    tokens: int | None


class ChatEndpoint:
    """Asks the model; at most ``max_concurrency`` calls of one process are in flight.

    Args:
        settings: Where it is and how patiently it is asked.

    Raises:
        Misconfigured: If the settings name no endpoint or no model.
    """

    def __init__(self, settings: LanguageModelSettings) -> None:
        if settings.base_url is None or settings.model is None:
            raise Misconfigured(
                "a language model is chosen, but language_model.base_url or language_model.model is not set",
                "set both, or choose rules in write.extraction and extractive in jobs.summaries.by",
            )
        key = settings.api_key
        self._settings = settings
        self._url = f"{settings.base_url.rstrip('/')}/chat/completions"
        self._client = httpx.AsyncClient(
            timeout=settings.timeout_s,
            headers={"Authorization": f"Bearer {key.get_secret_value()}"} if key else {},
        )
        self._places = asyncio.Semaphore(settings.max_concurrency)

    async def ask(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]) -> Reply:
        """Return the model's answer to a conversation, as JSON of the schema if the endpoint keeps to it.

        Raises:
            Unavailable: If every try failed, or the endpoint refuses the request.
        """
        body = _body(self._settings, messages, schema)
        async with self._places:
            for attempt in range(self._settings.max_retries):
                response, reason = await self._try(body)
                if response is not None and not _is_worth_a_retry(response):
                    return _reply(response)
                await asyncio.sleep(self._wait_s(response, attempt))
            response, reason = await self._try(body)
        if response is None:
            raise Unavailable(PART, reason)
        return _reply(response)

    def _wait_s(self, response: httpx.Response | None, attempt: int) -> float:
        """Return how long to wait before the next try: as long as the endpoint says, or else doubling with jitter.

        Raises:
            Unavailable: If that is longer than a turn may take.
        """
        asked = _asked_wait_s(response.headers.get("Retry-After", "")) if response is not None else None
        if asked is not None and asked > self._settings.deadline_s:
            raise Unavailable(PART, f"it asks to wait {asked:.0f} s", retry_after_s=int(asked))
        backoff = min(MAX_BACKOFF_S, self._settings.backoff_s * 2**attempt)
        return backoff * random.uniform(0.5, 1) if asked is None else asked  # noqa: S311 - jitter

    async def _try(self, body: Mapping[str, Any]) -> tuple[httpx.Response | None, str]:
        try:
            return await self._client.post(self._url, json=body), ""
        except httpx.HTTPError as error:
            return None, type(error).__name__

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


async def ask_within(
    endpoint: ChatEndpoint,
    budget: TokenBudget,
    messages: Sequence[Mapping[str, str]],
    schema: Mapping[str, Any],
    most_tokens: int,
) -> str | None:
    """Return the model's words; ``None``, and nobody is asked, if the day has not so many tokens left.

    Args:
        endpoint: Where the model is.
        budget: Of the day; what the call used is settled, however it ends.
        messages: The conversation.
        schema: Of the answer.
        most_tokens: That the call may take, answer included.

    Raises:
        Unavailable: If every try failed, or the endpoint refuses the request.
    """
    if not budget.take(most_tokens):
        return None
    used = most_tokens
    try:
        reply = await endpoint.ask(messages, schema)
        used = most_tokens if reply.tokens is None else reply.tokens
    except Unavailable as error:
        used = most_tokens if error.reason == UNANSWERED else 0  # who was asked and not awaited may have worked
        raise
    finally:
        budget.settle(most_tokens, used)
    return reply.text


def _body(
    settings: LanguageModelSettings, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]
) -> dict[str, Any]:
    temperature = {} if settings.temperature is None else {"temperature": settings.temperature}
    return {
        "model": settings.model,
        "messages": list(messages),
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "extraction", "strict": True, "schema": schema},
        },
        settings.limit_parameter: settings.answer_tokens,
        **temperature,
    }


def _is_worth_a_retry(response: httpx.Response) -> bool:
    return response.status_code in _RETRIED or response.status_code >= _FIRST_SERVER_ERROR


def _asked_wait_s(header: str) -> float | None:
    """Return the seconds that a Retry-After header asks for, given as a number or as a date."""
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (email.utils.parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


def _reply(response: httpx.Response) -> Reply:
    if not response.is_success:
        raise Unavailable(PART, f"it answers {response.status_code}")
    try:
        body = response.json()
        choice = body["choices"][0]
        text = choice["message"].get("content") or ""
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise Unavailable(PART, "its answer is no chat completion") from error
    usage = body.get("usage")
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    is_whole = choice.get("finish_reason") in (None, "stop") and isinstance(text, str)
    return Reply(text if is_whole else "", tokens if isinstance(tokens, int) else None)
