from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from lamina.client import Client
from lamina.integrations.langchain import LaminaRetriever

FACTS = (
    "The spare key hangs behind the barometer",
    "The key of the boathouse is with the harbour master",
    "Ann lost the key of her bicycle",
    "The key to the cellar is made of brass",
)


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def filled(self, door: Any) -> Iterator[None]:
        self.scope = {"workspace": door.workspace}
        with Client(scope=self.scope) as client:
            client.add_many(FACTS)
            yield

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return LaminaRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"scope": self.scope, "k": 3}

    @property
    def retriever_query_example(self) -> str:
        return "where is the key?"

    def test_a_document_tells_where_it_lives(self) -> None:
        (first,) = LaminaRetriever(scope=self.scope, k=1).invoke("barometer")

        assert first.page_content == FACTS[0]
        assert first.metadata["tier"] == "notes"
        assert first.id

    def test_the_documents_program_prints_what_they_say(self, pasted: Callable[[str], None]) -> None:
        with Client(scope={"workspace": "atlas"}) as client:
            client.add(FACTS[0])
        pasted("langchain")

    def test_what_is_no_question_finds_nothing_and_stops_nobody(self) -> None:
        retriever = LaminaRetriever(scope=self.scope)

        assert [retriever.invoke(text) for text in ("", " \u200b\n", "\0")] == [[], [], []]
        for text in ("key \ud83d \0", "สวัสดี" * 30_000, f"{'x' * 150_000} key"):
            assert isinstance(retriever.invoke(text), list)

    def test_further_fields_narrow_the_search(self) -> None:
        assert LaminaRetriever(scope=self.scope, search={"tiers": ["documents"]}).invoke("barometer") == []
