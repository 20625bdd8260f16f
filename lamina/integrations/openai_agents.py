"""OpenAI Agents SDK: a session whose items are messages, so that other sessions recall them."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from agents.items import TResponseInputItem
from agents.memory.session_settings import SessionSettings, resolve_session_limit

from lamina.client import AsyncClient
from lamina.client.client import DEFAULT_TIMEOUT_S
from lamina.errors import NotFound
from lamina.integrations._items import items_of, messages_of
from lamina.integrations._turns import OWNER, TOKENS_PER_S, is_of
from lamina.text.turn_parts import in_batches

ITEM = "openai_item"
"""Member of a message's metadata that keeps the item."""
_PAGE = 200
_DELETED_AT_ONCE = 8
_ROLES = {"user": "user", "system": "system", "developer": "system", "assistant": "assistant"}


class LaminaSession:
    """A session of an agent, as `agents.Session`.

    Items come back as they were added, whatever their size, and each is also a message: its text is searched.
    Encrypted reasoning stays out of the text.

    Args:
        session_id: The conversation.
        scope: workspace, namespace, user and agent that it belongs to.
        url: Where Lamina listens; else ``LAMINA_URL``.
        key: API key; else ``LAMINA_API_KEY``.
        session_settings: The framework's own, as the most items that a run reads.
    """

    def __init__(
        self,
        session_id: str,
        *,
        scope: Mapping[str, str] | None = None,
        url: str | None = None,
        key: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = session_settings
        self._scope = dict(scope or {})
        self._user = self._scope.get("user")
        self._url = url
        self._key = key

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items in order, of a limit the latest ones."""
        most = resolve_session_limit(limit, self.session_settings)
        async with self._client() as client:
            found = list(items_of(ITEM, await self._messages(client)))
        latest = found if most is None else found[max(len(found) - most, 0) :]
        return [json.loads(item.data) for item in latest]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items behind those that are there."""
        messages = [message for item in items for message in _messages_of(item, self._user)]
        for batch, tokens in in_batches(messages):
            async with self._client(DEFAULT_TIMEOUT_S + tokens / TOKENS_PER_S) as client:
                await client.record(batch, session=self.session_id)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the latest item and return it; of two callers at once each gets another one."""
        async with self._client() as client:
            while found := list(items_of(ITEM, await self._messages(client))):
                try:
                    await client.delete_message(found[-1].message["id"])
                except NotFound:  # Somebody else was faster.
                    continue
                await _delete(client, found[-1].part_ids)
                item: TResponseInputItem = json.loads(found[-1].data)
                return item
        return None

    async def clear_session(self) -> None:
        """Remove the items that are there."""
        async with self._client() as client:
            await _delete(client, [message["id"] for message in await self._messages(client)])

    def _client(self, timeout_s: float = DEFAULT_TIMEOUT_S) -> AsyncClient:
        return AsyncClient(self._url, self._key, scope=self._scope, timeout_s=timeout_s)

    async def _messages(self, client: AsyncClient) -> list[dict[str, Any]]:
        """Return the messages that hold items of this user, also those that a summary stands for."""
        pages = client.messages.each(self.session_id, limit=_PAGE, include_compacted="true")
        return [message async for message in pages if ITEM in message["metadata"] and is_of(self._user, message)]


async def _delete(client: AsyncClient, ids: Sequence[str]) -> None:
    """Delete messages, some at once; one that is gone already is no error."""

    async def delete(id_: str) -> None:
        with suppress(NotFound):
            await client.delete_message(id_)

    for start in range(0, len(ids), _DELETED_AT_ONCE):
        await asyncio.gather(*map(delete, ids[start : start + _DELETED_AT_ONCE]))


def _messages_of(item: Any, user: str | None) -> list[dict[str, Any]]:
    kind = str(item.get("type", "message"))
    role = _ROLES.get(str(item.get("role")), "tool" if kind.endswith("_output") else "assistant")
    return messages_of(
        ITEM, json.dumps(item), role=role, text=_text(item), otherwise=f"({kind})", metadata={OWNER: user}
    )


def _text(item: Mapping[str, Any]) -> str:
    """Return what an item says, of a call its name and arguments."""
    if "name" in item and "arguments" in item:
        return f"{item['name']} {item['arguments']}"
    said = item.get("content", item.get("output"))
    if isinstance(said, str):
        return said
    parts = said if isinstance(said, list) else []
    return "\n".join(
        str(part["text"]) for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
    )
