"""LlamaIndex: a memory block that recalls and records, and a retriever over all tiers."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemoryBlock
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import Field

from lamina.client import AsyncClient, Client
from lamina.integrations._turns import HEADING, TurnMemory
from lamina.text.turn_parts import fitting_question
from lamina.text.words import language_tokens

Json = dict[str, Any]
ROLES = {
    "user": "user",
    "assistant": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_NEXT_MEMORY = re.compile(r"\n+(?=\[)")


class LaminaMemoryBlock(BaseMemoryBlock[str]):
    """Recall memories for the user's last message, and record messages that leave the short-term memory.

    The session of what is recorded is that of the `Memory` which has the block. The address and the key are those of
    `lamina.client.Client`: ``LAMINA_URL`` and ``LAMINA_API_KEY`` where they are not given. Under pressure the memories
    that matter least go first. Without an answer of Lamina in time the agent runs without memory; a warning of the
    logger `lamina.integrations` tells why.
    """

    name: str = "lamina"
    priority: int = 1
    scope: dict[str, str] = Field(default_factory=dict)
    """workspace, namespace, user, agent and swarm of everything."""
    context: dict[str, Any] = Field(default_factory=dict)
    """Further fields of every search, such as budget_tokens or tiers."""
    url: str | None = None
    key: str | None = Field(default=None, repr=False)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        said = [(message.role.value, text) for message in messages or [] if (text := (message.content or "").strip())]
        questions = [text for role, text in said if role == "user"] or [text for _, text in said]
        fields = dict(self.context)
        # To search in one session; recall's own leaves that out.
        ids = {"session": fields.pop("session")} if fields.get("session") else None
        block, _ = await self._memory().recall(questions[-1] if questions else "", ids=ids, **fields)
        return block

    async def _aput(self, messages: list[ChatMessage]) -> None:
        of_session: defaultdict[str, list[Json]] = defaultdict(list)
        for message in messages:
            if text := (message.content or "").strip():
                session = message.additional_kwargs.get("session_id") or self.scope.get("session") or "llama-index"
                role = ROLES.get(message.role.value, "user")
                # Without a ref, equal messages are one.
                of_session[session].append({"role": role, "content": text, "ref": str(uuid4())})
        for session, said in of_session.items():
            await self._memory().record(said, session=str(session))

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Leave out the last memories, which matter least; ``None`` if nothing would be left."""
        places = [match.start() for match in _NEXT_MEMORY.finditer(content) if match.start() >= len(HEADING)]
        cut, end = 0, len(content)
        for place in reversed(places):
            cut, end = cut + language_tokens(content[place:end]), place
            if cut >= tokens_to_truncate:
                return content[:place]
        return None

    def _memory(self) -> TurnMemory:
        return TurnMemory(self.scope, self.url, self.key)


class LaminaRetriever(BaseRetriever):
    """Retrieve what a search of all tiers finds, best first, with its score and what else is known of it.

    Args:
        k: Most nodes.
        scope: workspace, namespace, user, agent, session and swarm of every search.
        search: Further fields of every search, such as tiers, tags or filters.
        url: Where Lamina listens; ``LAMINA_URL``, then http://127.0.0.1:8000.
        key: API key; ``LAMINA_API_KEY``, or the file that ``LAMINA_API_KEY_FILE`` names.
        options: Those of LlamaIndex.
    """

    def __init__(
        self,
        k: int = 10,
        scope: Mapping[str, str] | None = None,
        *,
        search: Mapping[str, Any] | None = None,
        url: str | None = None,
        key: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._address = (url, key)
        self._scope = dict(scope or {})
        self._search = {**(search or {}), "limit": k}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not (question := fitting_question(query_bundle.query_str)):
            return []
        with Client(*self._address, scope=self._scope) as client:
            return _nodes(client.search(question, **self._search)["results"])

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not (question := fitting_question(query_bundle.query_str)):
            return []
        async with AsyncClient(*self._address, scope=self._scope) as client:
            return _nodes((await client.search(question, **self._search))["results"])


def _nodes(results: Sequence[Json]) -> list[NodeWithScore]:
    shown = {"id", "content", "score"}
    return [
        NodeWithScore(
            node=TextNode(
                id_=result["id"],
                text=result["content"],
                metadata={name: value for name, value in result.items() if name not in shown},
                # A model needs the text; it may ask for the rest.
                excluded_llm_metadata_keys=list(result.keys() - shown),
                excluded_embed_metadata_keys=list(result.keys() - shown),
            ),
            score=result["score"],
        )
        for result in results
    ]
