"""Ask an OpenAI-compatible chat endpoint: retried where a retry may help, within a deadline."""

import asyncio
import email.utils
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from lamina.errors import Misconfigured, Unavailable
from lamina.models.token_budget import TokenBudget
from lamina.settings import LanguageModelSettings

PART = "language model"
UNANSWERED = "ReadTimeout"
MAX_BACKOFF_S = 30.0
_NO_COMPLETION = "its answer is no chat completion"
_RETRIED = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of the model.

    Args:
        text: Its words; empty if it refused or was cut off.
        tokens: The cost of the call, both ways, where the endpoint says.
    """

    text: str
    tokens: int | None


class ChatEndpoint:
    """Asks the model; at most ``max_concurrency`` calls of one process are in flight.

    Args:
        settings: Where it is and how patiently it is asked.

    Raises:
        Misconfigured: If the settings name no endpoint or no model, or the client is not installed.
    """

    def __init__(self, settings: LanguageModelSettings) -> None:
        if settings.base_url is None or settings.model is None:
            raise Misconfigured(
                "a language model is chosen, but language_model.base_url or language_model.model is not set",
                "set both, or choose rules in write.extraction and extractive in jobs.summaries.by",
            )
        try:
            # 0.6 s and 35 MiB that only a process with a language model pays.
            from openai import AsyncOpenAI, Omit  # noqa: PLC0415
        except ImportError as error:
            remedy = "install lamina[llm]"
            raise Misconfigured(f"a language model is chosen, but {error.name} is missing", remedy) from error
        key = settings.api_key
        self._settings = settings
        # Its retries are switched off because their backoff cannot be set.
        self._client = AsyncOpenAI(
            base_url=settings.base_url,
            api_key=key.get_secret_value() if key else "none",
            timeout=settings.timeout_s,
            max_retries=0,
        )
        # Identities in the environment are not meant for this endpoint.
        hidden = ("OpenAI-Organization", "OpenAI-Project", *(() if key else ("Authorization",)))
        self._hidden_headers: Any = dict.fromkeys(hidden, Omit())
        self._places = asyncio.Semaphore(settings.max_concurrency)

    async def ask(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]) -> Reply:
        """Return the model's answer to a conversation, as JSON of the schema if the endpoint keeps to it.

        Raises:
            Unavailable: If every try failed, or the endpoint refuses the request.
        """
        import openai  # noqa: PLC0415 - loaded by the constructor

        body = {**_body(self._settings, messages, schema), "extra_headers": self._hidden_headers}
        async with self._places:
            for attempt in range(self._settings.max_retries + 1):
                try:
                    return _reply(await self._client.chat.completions.create(**body))
                except openai.APIStatusError as error:
                    status, retry_after = error.status_code, error.response.headers.get("Retry-After", "")
                    failure = Unavailable(PART, f"it answers {status}")
                    may_pass = status in _RETRIED or status >= HTTPStatus.INTERNAL_SERVER_ERROR
                except openai.APIConnectionError as error:
                    # The cause tells whether the endpoint was reached.
                    failure, may_pass, retry_after = Unavailable(PART, type(error.__cause__).__name__), True, ""
                except (openai.APIError, ValueError) as error:
                    raise Unavailable(PART, _NO_COMPLETION) from error
                if not may_pass or attempt == self._settings.max_retries:
                    break
                await asyncio.sleep(self._wait_s(retry_after, attempt))
        raise failure

    def _wait_s(self, retry_after: str, attempt: int) -> float:
        """Return how long to wait before the next try: as long as the endpoint says, or else doubling with jitter.

        Raises:
            Unavailable: If that is longer than a turn may take.
        """
        asked = _asked_wait_s(retry_after)
        if asked is not None and asked > self._settings.deadline_s:
            raise Unavailable(PART, f"it asks to wait {asked:.0f} s", retry_after_s=int(asked))
        backoff = min(MAX_BACKOFF_S, self._settings.backoff_s * 2**attempt)
        return backoff * random.uniform(0.5, 1) if asked is None else asked  # noqa: S311 - jitter

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


async def ask_within(
    endpoint: ChatEndpoint,
    budget: TokenBudget,
    messages: Sequence[Mapping[str, str]],
    schema: Mapping[str, Any],
    most_tokens: int,
) -> str | None:
    """Return the model's words; ``None``, without a call, if the day has not so many tokens left.

    Args:
        endpoint: Where the model is.
        budget: Of the day; the tokens that the call used are settled, however it ends.
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
        # An endpoint that was asked and did not answer in time may have worked all the same.
        used = most_tokens if error.reason == UNANSWERED else 0
        raise
    finally:
        budget.settle(most_tokens, used)
    return reply.text


def _body(
    settings: LanguageModelSettings, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]
) -> dict[str, Any]:
    json_schema = {"name": "extraction", "strict": True, "schema": schema}
    temperature = {} if settings.temperature is None else {"temperature": settings.temperature}
    return {
        "model": settings.model,
        "messages": list(messages),
        "response_format": {"type": "json_schema", "json_schema": json_schema},
        settings.limit_parameter: settings.answer_tokens,
        **temperature,
    }


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


def _reply(completion: Any) -> Reply:
    """Read a completion, which the client has not checked."""
    try:
        choice, usage = completion.choices[0], completion.usage
        text = choice.message.content or ""
        is_whole = choice.finish_reason in (None, "stop") and isinstance(text, str)
    except (AttributeError, IndexError, TypeError) as error:
        raise Unavailable(PART, _NO_COMPLETION) from error
    tokens = getattr(usage, "total_tokens", None)
    return Reply(text if is_whole else "", tokens if isinstance(tokens, int) else None)
