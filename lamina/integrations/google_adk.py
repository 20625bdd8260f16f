"""Google ADK: a memory service; an event is stored once, however often its session is added."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from google.adk.events import Event
from google.adk.memory import BaseMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

from lamina.errors import NotFound
from lamina.integrations._turns import LONG_S, TurnMemory, composed
from lamina.text.turn_parts import fitting_question, fitting_text, is_blank

_KINDS = {"sessions": "message", "notes": "note"}
"""The kind of a memory by its tier."""


class LaminaMemoryService(BaseMemoryService):
    """Memories of the users of an application.

    An application is an agent of Lamina, unless the scope names another one.

    Args:
        scope: workspace, namespace and agent.
        url: Where Lamina listens; else ``LAMINA_URL``.
        key: API key; else ``LAMINA_API_KEY``.
        limit: Most memories of a search.
    """

    def __init__(
        self,
        scope: Mapping[str, str] | None = None,
        url: str | None = None,
        key: str | None = None,
        *,
        limit: int = 10,
    ) -> None:
        self._memory = TurnMemory(scope, url, key)
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Add the events of a session that are not there yet."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add events; those that are there already change nothing."""
        messages = [message for event in events if (message := _message(event, dict(custom_metadata or {})))]
        session = session_id or f"events of {app_name}"
        await self._memory.store(messages, session=session, ids=_ids(app_name, user_id))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories as notes; one that is there already changes nothing."""
        async with self._memory.client(_ids(app_name, user_id), timeout_s=LONG_S) as client:
            for memory in memories:
                metadata = {**(custom_metadata or {}), **memory.custom_metadata}
                if not is_blank(text := fitting_text(_text(memory.content))):
                    await client.add(text, metadata=metadata)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the best memories of all tiers, best first."""
        if not (question := fitting_question(query)):
            return SearchMemoryResponse(memories=[])
        async with self._memory.client(_ids(app_name, user_id)) as client:
            found = await client.search(question, limit=self._limit)
        return SearchMemoryResponse(memories=[_entry(result) for result in found["results"]])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a note or a message of the user that a search returned, but none that all users share.

        Raises:
            NotFound: If the user has no such memory in the application, or not any more.
            ValueError: If it names none.
        """
        tier, _, id_ = (memory_id or "").partition(":")
        if tier not in _KINDS:
            raise ValueError(f"memory_id: is {memory_id!r}; expected that of a note or a message from search_memory")
        scope = self._memory.scope(_ids(app_name, user_id))
        async with self._memory.client(scope) as client:
            memory = (await client.memory(id_)).get(_KINDS[tier]) or {}
            # An id alone reaches what any user has.
            user, agent = composed(scope["user"]), composed(scope["agent"])
            if memory.get("user") != user or memory.get("agent") not in (None, agent):
                raise NotFound(_KINDS[tier], id_)
            await client.delete_memory(id_)


def _ids(app_name: str, user_id: str) -> dict[str, str]:
    return {"agent": app_name, "user": user_id}


def _message(event: Event, custom: dict[str, Any]) -> dict[str, Any] | None:
    text = "" if event.content is None else _text(event.content)
    if is_blank(text) or event.partial:
        return None
    return {
        "role": "user" if event.author == "user" else "assistant",
        "content": text,
        "name": event.author or "model",
        "ref": event.id,
        "occurred_at": datetime.fromtimestamp(event.timestamp, UTC).isoformat(),
        "metadata": {**custom, "invocation_id": event.invocation_id},
    }


def _text(content: types.Content) -> str:
    parts = [part.text for part in content.parts or () if part.text and not part.thought]
    return "\n".join(parts)


def _entry(result: Mapping[str, Any]) -> MemoryEntry:
    role = "user" if result["source"] == "user" else "model"
    return MemoryEntry(
        id=f"{result['tier']}:{result['id']}",
        content=types.Content(role=role, parts=[types.Part(text=result["content"])]),
        author=result["name"],
        timestamp=result["occurred_at"],
        custom_metadata=dict(result["metadata"]),
    )
