"""LangChain: memory of an agent as a middleware, a retriever over all tiers, and the history of a session."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import Annotated, Any, NotRequired
from urllib.parse import quote
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)
from langchain_core.retrievers import BaseRetriever
from langgraph.config import get_config
from langgraph.runtime import Runtime
from pydantic import Field
from pydantic_core import to_jsonable_python

from lamina.client import AsyncClient, Client
from lamina.client.calls import Call
from lamina.errors import InvalidInput, NotFound
from lamina.integrations._clients import Clients
from lamina.integrations._items import items_of, messages_of
from lamina.integrations._turns import OWNER, TIMEOUT_S, TurnMemory, is_of
from lamina.text.turn_parts import fitting_question, in_batches

Json = dict[str, Any]
PAGE = 200
MEMBER = "langchain"
"""Member of a message's metadata that keeps a message of LangChain."""
MOST_QUERY_CHARS = 8_000
ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


class MemoryState(AgentState[Any]):
    """The state of an agent with the block that its calls of the model get."""

    lamina_block: NotRequired[Annotated[str, PrivateStateAttr]]  # type: ignore[valid-type]  # its base is a TypedDict


class LaminaMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Put memories before the question of each run, and record the run afterwards.

    The block stands directly before the user's last message, behind all that a provider may have in its cache, and in
    the requests to the model alone: it is neither in the agent's state nor recorded. Without an answer of Lamina in
    time the agent runs without memory; a warning of the logger `lamina.integrations` tells why.

    Args:
        scope: workspace, namespace, user, agent and swarm. The session is the thread of the run, if it has one.
        context: Further fields of `POST /v1/context`, such as budget_tokens or tiers.
        records: Whether runs are recorded.
        url: Where Lamina listens; ``LAMINA_URL``, then http://127.0.0.1:8000.
        key: API key; ``LAMINA_API_KEY``, or the file that ``LAMINA_API_KEY_FILE`` names.
        timeout_s: Seconds after which a run goes on without memories.
    """

    state_schema = MemoryState

    def __init__(
        self,
        scope: Mapping[str, str] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        records: bool = True,
        url: str | None = None,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        super().__init__()
        self._scope = dict(scope or {})
        self._memory = TurnMemory(scope, url, key, timeout_s)
        self._context = dict(context or {})
        self._records = records

    def close(self) -> None:
        """Do nothing: no connection stays open."""

    async def aclose(self) -> None:
        """Do nothing: no connection stays open."""

    def before_agent(self, state: MemoryState, runtime: Runtime[Any]) -> Json | None:
        """Search for what the user's last message needs."""
        return _waited_for(self.abefore_agent(state, runtime))

    async def abefore_agent(self, state: MemoryState, runtime: Runtime[Any]) -> Json | None:
        """Search for what the user's last message needs."""
        messages = state["messages"]
        # Without a checkpointer the model knows nothing of its thread: then its messages are memories as all others.
        place = _last_human(messages)
        known = self._session() if place else None
        question = "" if place is None else messages[place].text.strip()[:MOST_QUERY_CHARS]
        block, _ = await self._memory.recall(question, session=known, **self._context)
        return {"lamina_block": block}

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Put the block into a request."""
        return handler(_with_block(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Put the block into a request."""
        return await handler(_with_block(request))

    def after_agent(self, state: MemoryState, runtime: Runtime[Any]) -> Json | None:
        """Record what was said since the user's last message, that one included."""
        return _waited_for(self.aafter_agent(state, runtime))

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[Any]) -> Json | None:
        """Record what was said since the user's last message, that one included."""
        if (turn := _turn(state["messages"])) and self._records:
            await self._memory.record(**turn, session=self._session() or str(uuid4()))
        return None

    def _session(self) -> str | None:
        thread = get_config().get("configurable", {}).get("thread_id")
        return self._scope.get("session") or (str(thread) if thread else None)


class LaminaRetriever(BaseRetriever):
    """Retrieve what a search of all tiers finds, best first.

    Each document has the stretch of text that matched; what else is known of it is in its metadata. The address and
    the key are those of `lamina.client.Client`: ``LAMINA_URL`` and ``LAMINA_API_KEY`` where they are not given.
    """

    k: int = 10
    scope: dict[str, str] = Field(default_factory=dict)
    """workspace, namespace, user, agent, session and swarm of every search."""
    search: dict[str, Any] = Field(default_factory=dict)
    """Further fields of every search, such as tiers, tags or filters."""
    url: str | None = None
    key: str | None = Field(default=None, repr=False)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        if not (question := fitting_question(query)):
            return []
        with Client(self.url, self.key, scope=self.scope) as client:
            return _documents(client.search(question, **self.search, limit=k or self.k))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        if not (question := fitting_question(query)):
            return []
        async with AsyncClient(self.url, self.key, scope=self.scope) as client:
            return _documents(await client.search(question, **self.search, limit=k or self.k))


def _documents(answer: dict[str, Any]) -> list[Document]:
    return [
        Document(
            id=result["id"],
            page_content=result["content"],
            metadata={name: value for name, value in result.items() if name not in {"id", "content"}},
        )
        for result in answer["results"]
    ]


class LaminaChatMessageHistory(BaseChatMessageHistory):
    """Keep the messages of a session, which come back as they were added and are memories beside.

    Args:
        session: The conversation.
        scope: workspace, namespace, user, agent and swarm.
        url: Where Lamina listens; ``LAMINA_URL``, then http://127.0.0.1:8000.
        key: API key; ``LAMINA_API_KEY``, or the file that ``LAMINA_API_KEY_FILE`` names.
    """

    def __init__(
        self, session: str, scope: Mapping[str, str] | None = None, *, url: str | None = None, key: str | None = None
    ) -> None:
        self._session = session
        self._clients = Clients(url, key, scope)

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages in their order, those included that a summary stands for."""
        return list(_messages(list(self._stored())))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages at the end, as many together as one request takes."""
        sent = [part for message in messages for part in _sent(message, self._clients.scope.get("user"))]
        for batch, _ in in_batches(sent):
            self._clients.plain.record(batch, session=self._session, idempotency_key=str(uuid4()))

    def clear(self) -> None:
        """Delete the messages; notes that were drawn from them stay."""
        for item in list(self._stored()):
            with suppress(NotFound):  # Somebody else was faster.
                self._clients.plain.delete_message(item["id"])

    def close(self) -> None:
        """Close the connections."""
        self._clients.close()

    def _stored(self) -> Iterator[Json]:
        ids = {name: id_ for name, id_ in self._clients.scope.items() if name != "session"}
        path = f"/v1/sessions/{quote(self._session, safe='')}/messages"
        params = {**ids, "limit": PAGE, "include_compacted": "true"}
        cursor: Json | None = {}
        while cursor is not None:
            answer = self._clients.plain.send(Call("GET", path, params={**params, **cursor}))
            found = [item for item in answer["messages"] if not item["is_summary"]]
            yield from (item for item in found if is_of(ids.get("user"), item))
            cursor = {"cursor": answer["next_cursor"]} if answer["next_cursor"] else None


def _last_human(messages: Sequence[BaseMessage]) -> int | None:
    return next((place for place in reversed(range(len(messages))) if isinstance(messages[place], HumanMessage)), None)


def _waited_for(work: Coroutine[Any, Any, Json | None]) -> Json | None:
    """Run a coroutine to its end, also where an event loop runs already, with what LangGraph knows of this run."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(copy_context().run, asyncio.run, work).result()


def _with_block(request: ModelRequest[Any]) -> ModelRequest[Any]:
    block, place = request.state.get("lamina_block"), _last_human(request.messages)
    if not block or place is None:
        return request
    # A message of the user: several providers take one of the system at the beginning alone.
    memory = HumanMessage(f"<memory>\n{block}\n</memory>")
    return request.override(messages=[*request.messages[:place], memory, *request.messages[place:]])


def _turn(messages: Sequence[BaseMessage]) -> Json:
    """Return the run as a turn of a session: what was said, and the tools that were called with their results."""
    place = _last_human(messages)
    said = [] if place is None else list(messages[place:])
    results = {message.tool_call_id: message for message in said if isinstance(message, ToolMessage)}
    calls = [call for message in said if isinstance(message, AIMessage) for call in message.tool_calls]
    texts = [_said(message) for message in said if not isinstance(message, ToolMessage) and message.text.strip()]
    return {"messages": texts, "tool_calls": [_called(call, results) for call in calls]} if texts else {}


def _said(message: BaseMessage) -> Json:
    # The id makes that a message which is delivered again changes nothing.
    ref = message.id or str(uuid4())
    return {"role": ROLES.get(message.type, "user"), "content": message.text, "ref": ref}


def _called(call: Mapping[str, Any], results: Mapping[str, ToolMessage]) -> Json:
    result = results.get(call["id"] or "")
    told = {} if result is None else {"result": result.text, "succeeded": result.status != "error"}
    return {"name": call["name"], "arguments": call["args"], **({"id": call["id"]} if call["id"] else {}), **told}


def _sent(message: BaseMessage, user: str | None) -> list[Json]:
    """Return the messages of the service that keep a message in its own form.

    Raises:
        InvalidInput: If it holds an object that JSON cannot.
    """
    try:
        data = json.dumps(message_to_dict(message), default=to_jsonable_python)
    except (TypeError, ValueError) as error:
        raise InvalidInput("message", f"cannot be kept: {error}") from error
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return messages_of(
        MEMBER,
        data,
        role=ROLES.get(message.type, "user"),
        text=message.text,
        otherwise=", ".join(f"calls {call['name']}" for call in calls) or "(empty)",
        metadata={OWNER: user},
    )


def _messages(stored: Sequence[Json]) -> Iterator[BaseMessage]:
    kept = {item.message["id"]: item.data for item in items_of(MEMBER, stored)}
    for item in stored:
        whole = item["metadata"].get(MEMBER)
        if item["id"] in kept:
            found = json.loads(kept[item["id"]])
        elif whole is None:  # Recorded at another door.
            kind = next((kind for kind, role in ROLES.items() if role == item["role"]), "human")
            found = {"type": "ai" if kind == "tool" else kind, "data": {"content": item["content"]}}
        elif isinstance(whole, dict) and "data" in whole:  # As messages were kept at first.
            found = {**whole, "data": {"content": item["content"], **whole["data"]}}
        else:  # A part of one.
            continue
        yield from messages_from_dict([found])
