"""LangChain: a retriever over all tiers."""

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from lamina.client import AsyncClient, Client


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
        with Client(self.url, self.key, scope=self.scope) as client:
            return _documents(client.search(query, **self.search, limit=k or self.k))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        async with AsyncClient(self.url, self.key, scope=self.scope) as client:
            return _documents(await client.search(query, **self.search, limit=k or self.k))


def _documents(answer: dict[str, Any]) -> list[Document]:
    return [
        Document(
            id=result["id"],
            page_content=result["content"],
            metadata={name: value for name, value in result.items() if name not in {"id", "content"}},
        )
        for result in answer["results"]
    ]
