"""OpenAI Agents SDK: a session whose items are messages, so that other sessions recall them."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from agents.items import TResponseInputItem
from agents.memory.session_settings import SessionSettings, resolve_session_limit

from lamina.client import AsyncClient
from lamina.errors import NotFound
from lamina.integrations._turns import OWNER, is_of, storable

ITEM = "openai_item"
"""Member of a message's metadata: the item as ASCII JSON, or ``None`` where the message's text is that."""
_IN_METADATA_BYTES = 32_768
_MOST_MESSAGES, _PAGE = 200, 1_000
_ROLES = {"user": "user", "system": "system", "developer": "system", "assistant": "assistant"}


class LaminaSession:
    """A session of an agent, as `agents.Session`.

    Items come back as they were added, whatever their size up to a million characters, and each is also a message: its
    text is searched. Encrypted reasoning stays out of the text.

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
            found = [json.loads(_data(message)) for message in await self._messages(client)]
        return found if most is None else found[max(len(found) - most, 0) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items behind those that are there."""
        messages = [_message(item, self._user) for item in items]
        async with self._client() as client:
            for start in range(0, len(messages), _MOST_MESSAGES):
                await client.record(messages[start : start + _MOST_MESSAGES], session=self.session_id)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the latest item and return it; of two callers at once each gets another one."""
        async with self._client() as client:
            while messages := await self._messages(client):
                try:
                    await client.delete_message(messages[-1]["id"])
                except NotFound:  # Somebody else was faster.
                    continue
                item: TResponseInputItem = json.loads(_data(messages[-1]))
                return item
        return None

    async def clear_session(self) -> None:
        """Remove all items."""
        while await self.pop_item() is not None:
            pass

    def _client(self) -> AsyncClient:
        return AsyncClient(self._url, self._key, scope=self._scope)

    async def _messages(self, client: AsyncClient) -> list[dict[str, Any]]:
        """Return the messages that hold items of this user, also those that a summary stands for."""
        found: list[dict[str, Any]] = []
        while True:
            page = await client.messages(self.session_id, limit=_PAGE, offset=len(found), include_compacted="true")
            found += page["messages"]
            if len(page["messages"]) < _PAGE:
                return [message for message in found if ITEM in message["metadata"] and is_of(self._user, message)]


def _message(item: Any, user: str | None) -> dict[str, Any]:
    data = json.dumps(item)
    kind = str(item.get("type", "message"))
    role = _ROLES.get(str(item.get("role")), "tool" if kind.endswith("_output") else "assistant")
    is_short = len(data) <= _IN_METADATA_BYTES
    return {
        "role": role,
        "content": (storable(_text(item)).strip() or f"({kind})") if is_short else data,
        "ref": f"openai-{uuid.uuid4()}",
        "metadata": {ITEM: data if is_short else None, OWNER: user},
    }


def _data(message: Mapping[str, Any]) -> str:
    data: str | None = message["metadata"][ITEM]
    return message["content"] if data is None else data


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
