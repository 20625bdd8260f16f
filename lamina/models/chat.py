"""Ask an OpenAI-compatible chat endpoint within a budget of tokens: retried where a retry may help."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from lamina.core.ports import Clock
from lamina.core.quotas import Resource, spend
from lamina.errors import Misconfigured, Unavailable
from lamina.host.authorities import trusted_authorities
from lamina.host.extras import needing
from lamina.models.backoff import asked_wait_s, backoff_s, may_pass
from lamina.models.token_budget import TokenBudget
from lamina.settings.models import LanguageModelSettings
from lamina.text.words import estimated_tokens

PART = "language model"
UNANSWERED = "ReadTimeout"
_NO_COMPLETION = "its answer is no chat completion"

Messages = Sequence[Mapping[str, str]]


class TokensSpent(Exception):
    """A call was not made, because it would exceed a budget.

    Args:
        budget: ``call_budget`` or ``daily_budget``.
    """

    def __init__(self, budget: str) -> None:
        super().__init__(budget)
        self.budget = budget


class ChatModel:
    """Asks a model for JSON of a schema; at most ``max_concurrency`` calls of one process are in flight.

    Args:
        settings: The endpoint, its patience and its budget.
        clock: The time of day, for the daily budget.
        schema: Of the answers.

    Raises:
        Misconfigured: If the settings name no endpoint or no model, or the client is not installed.
    """

    def __init__(self, settings: LanguageModelSettings, clock: Clock, schema: Mapping[str, Any]) -> None:
        if settings.base_url is None or settings.model is None:
            raise Misconfigured(
                "a language model is chosen, but language_model.base_url or language_model.model is not set",
                "set both, or choose rules in write.extraction and extractive in jobs.summaries.by",
            )
        with needing("llm", "a language model is chosen"):
            # 0.6 s and 35 MiB that only a process with a language model pays.
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Omit  # noqa: PLC0415
        key = settings.api_key
        self._settings = settings
        self._schema = schema
        self._schema_tokens = estimated_tokens(str(schema))
        self._budget = TokenBudget(settings.daily_tokens, clock)
        # Its retries are switched off because their backoff cannot be set.
        self._client = AsyncOpenAI(
            base_url=settings.base_url,
            api_key=key.get_secret_value() if key else "none",
            timeout=settings.timeout_s,
            max_retries=0,
            http_client=DefaultAsyncHttpxClient(verify=trusted_authorities()),
        )
        # Identities in the environment are not meant for this endpoint.
        hidden = ("OpenAI-Organization", "OpenAI-Project", *(() if key else ("Authorization",)))
        self._hidden_headers: Any = dict.fromkeys(hidden, Omit())
        self._places = asyncio.Semaphore(settings.max_concurrency)

    def cost(self, messages: Messages) -> int:
        """Return the most tokens that a call may take, schema and answer included."""
        sent = sum(estimated_tokens(message["content"]) for message in messages)
        return sent + self._schema_tokens + self._settings.answer_tokens

    async def ask(self, messages: Messages) -> str:
        """Return the model's answer; empty if it refused or was cut off. The endpoint may ignore the schema.

        Raises:
            TokensSpent: If the call would exceed the budget of a call, or of the day.
            Unavailable: If every try failed, or the endpoint refuses the request.
        """
        cost = self.cost(messages)
        if cost > self._settings.call_tokens:
            raise TokensSpent("call_budget")
        if not self._budget.take(cost):
            raise TokensSpent("daily_budget")
        used = cost
        try:
            text, tokens = await self._complete(messages)
            used = cost if tokens is None else tokens
        except Unavailable as error:
            # An endpoint that was asked and did not answer in time may have worked all the same.
            used = cost if error.reason == UNANSWERED else 0
            raise
        finally:
            self._budget.settle(cost, used)
            spend(Resource.MODEL_TOKENS, used)
        return text

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _complete(self, messages: Messages) -> tuple[str, int | None]:
        """Return the answer, and the tokens of the call, both ways, where the endpoint says."""
        import openai  # noqa: PLC0415 - loaded by the constructor

        body = self._body(messages)
        async with self._places:
            for attempt in range(self._settings.max_retries + 1):
                try:
                    return _read_completion(await self._client.chat.completions.create(**body))
                except openai.APIStatusError as error:
                    status, retry_after = error.status_code, error.response.headers.get("Retry-After", "")
                    failure = Unavailable(PART, f"it answers {status}")
                    is_passing = may_pass(status)
                except openai.APIConnectionError as error:
                    # The cause tells whether the endpoint was reached.
                    failure, is_passing, retry_after = Unavailable(PART, type(error.__cause__).__name__), True, ""
                except (openai.APIError, ValueError) as error:
                    raise Unavailable(PART, _NO_COMPLETION) from error
                if not is_passing or attempt == self._settings.max_retries:
                    break
                await asyncio.sleep(self._wait_s(retry_after, attempt))
        raise failure

    def _body(self, messages: Messages) -> dict[str, Any]:
        settings = self._settings
        json_schema = {"name": "extraction", "strict": True, "schema": self._schema}
        temperature = {} if settings.temperature is None else {"temperature": settings.temperature}
        return {
            "model": settings.model,
            "messages": list(messages),
            "response_format": {"type": "json_schema", "json_schema": json_schema},
            "extra_headers": self._hidden_headers,
            settings.limit_parameter: settings.answer_tokens,
            **temperature,
        }

    def _wait_s(self, retry_after: str, attempt: int) -> float:
        """Return how long to wait before the next try: as long as the endpoint says, or else doubling with jitter.

        Raises:
            Unavailable: If that is longer than a turn may take.
        """
        asked = asked_wait_s(retry_after)
        if asked is not None and asked > self._settings.deadline_s:
            raise Unavailable(PART, f"it asks to wait {asked:.0f} s", retry_after_s=int(asked))
        return backoff_s(self._settings.backoff_s, attempt) if asked is None else asked


def _read_completion(completion: Any) -> tuple[str, int | None]:
    """Read a completion, which the client has not checked."""
    try:
        choice, usage = completion.choices[0], completion.usage
        text = choice.message.content or ""
        is_whole = choice.finish_reason in (None, "stop") and isinstance(text, str)
    except (AttributeError, IndexError, TypeError) as error:
        raise Unavailable(PART, _NO_COMPLETION) from error
    tokens = getattr(usage, "total_tokens", None)
    return text if is_whole else "", tokens if isinstance(tokens, int) else None
