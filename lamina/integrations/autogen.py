"""AutoGen: a `Memory` that puts what is remembered before the model's next answer."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from autogen_core import CancellationToken, Component
from autogen_core.memory import Memory, MemoryContent, MemoryMimeType, MemoryQueryResult, UpdateContextResult
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import SystemMessage, UserMessage
from pydantic import BaseModel, Field

from lamina.errors import NotFound
from lamina.integrations._turns import LONG_S, TurnMemory, composed
from lamina.text.turn_parts import fitting_question, fitting_text, is_blank


class LaminaMemoryConfig(BaseModel):
    """How a memory is made again; the key stays in the environment."""

    scope: dict[str, str] = Field(default_factory=dict)
    url: str | None = None


class LaminaMemory(Memory, Component[LaminaMemoryConfig]):
    """Notes of a scope as a `Memory`, and a search of all its tiers.

    Args:
        scope: workspace, namespace, user and agent.
        url: Where Lamina listens; else ``LAMINA_URL``.
        key: API key; else ``LAMINA_API_KEY``.
    """

    component_config_schema = LaminaMemoryConfig
    component_provider_override = "lamina.integrations.autogen.LaminaMemory"

    def __init__(self, scope: Mapping[str, str] | None = None, url: str | None = None, key: str | None = None) -> None:
        self._config = LaminaMemoryConfig(scope=dict(scope or {}), url=url)
        self._memory = TurnMemory(scope, url, key)

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Add a message with the memories for the last message of a user, if there are any."""
        messages = await model_context.get_messages()
        asked = next((message for message in reversed(messages) if isinstance(message, UserMessage)), None)
        question = asked.content if asked is not None and isinstance(asked.content, str) else ""
        block, results = await self._memory.recall(question)
        if block:
            await model_context.add_message(SystemMessage(content=block))
        return UpdateContextResult(memories=_result(results))

    async def query(
        self, query: str | MemoryContent, cancellation_token: CancellationToken | None = None, **kwargs: Any
    ) -> MemoryQueryResult:
        """Search all tiers, best first; further fields are those of a search."""
        if not (question := fitting_question(_text(query))):
            return _result([])
        async with self._memory.client() as client:
            return _result((await client.search(question, **kwargs))["results"])

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Store a text as a note, with its metadata; of a long one both ends, of one that shows nothing none.

        Raises:
            ValueError: For an image or bytes.
        """
        if not is_blank(text := fitting_text(_text(content))):
            async with self._memory.client(timeout_s=LONG_S) as client:
                await client.add(text, metadata=content.metadata or {})

    async def clear(self) -> None:
        """Delete all notes of the scope: with a user or an agent in it theirs alone, without a user those of nobody."""
        scope = {"user": None, **{name: composed(id_) for name, id_ in self._config.scope.items()}}
        async with self._memory.client() as client:
            notes = [note async for note in client.notes.each(limit=100)]
            for note in notes:
                if all(note.get(name, id_) == id_ for name, id_ in scope.items()):
                    with suppress(NotFound):
                        await client.delete(note["id"])

    async def close(self) -> None:
        """Do nothing: no connection stays open."""

    def _to_config(self) -> LaminaMemoryConfig:
        return self._config

    @classmethod
    def _from_config(cls, config: LaminaMemoryConfig) -> Self:
        return cls(config.scope, config.url)


def _text(content: str | MemoryContent) -> str:
    value = content.content if isinstance(content, MemoryContent) else content
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    raise ValueError(f"memory: holds texts and JSON; {type(value).__name__} is neither")


def _result(results: list[Any]) -> MemoryQueryResult:
    return MemoryQueryResult(
        results=[
            MemoryContent(
                content=result["content"],
                mime_type=MemoryMimeType.TEXT,
                metadata={name: value for name, value in result.items() if name != "content"},
            )
            for result in results
        ]
    )
