from collections.abc import Callable
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Message

from lamina.client import AsyncClient
from lamina.integrations.agent_framework import LaminaProvider

BERTH = "The Marlin gets berth seven."
QUESTION = "Which berth does the Marlin have?"


class Scripted(BaseChatClient):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    async def _inner_get_response(self, *, messages: Any, **_: Any) -> ChatResponse:
        self.asked.append([message.text for message in messages])
        return ChatResponse(messages=[Message(role="assistant", contents=["Berth seven."])])


async def test_another_session_is_told_what_was_said_and_its_own_is_not(door: Any) -> None:
    model, scope = Scripted(), {"workspace": door.workspace}
    agent = Agent(client=model, context_providers=[LaminaProvider(scope)])
    monday = agent.create_session(session_id="monday")

    await agent.run(BERTH, session=monday)
    await agent.run("And for how long?", session=monday)
    await agent.run(QUESTION, session=agent.create_session(session_id="friday"))

    assert not any("remembered" in text for asked in model.asked[:2] for text in asked)
    (block,) = [text for text in model.asked[2] if "remembered" in text]
    assert BERTH in block
    async with AsyncClient(scope=scope) as client:
        stored = (await client.messages("monday"))["messages"]
        friday = (await client.messages("friday"))["messages"]
    assert [item["content"] for item in stored] == [BERTH, "Berth seven.", "And for how long?", "Berth seven."]
    assert [item["content"] for item in friday] == [QUESTION, "Berth seven."]


async def test_equal_messages_are_recorded_each(door: Any) -> None:
    scope = {"workspace": door.workspace}
    agent = Agent(client=Scripted(), context_providers=[LaminaProvider(scope)])

    await agent.run(["Yes.", "Yes."], session=agent.create_session(session_id="s"))

    async with AsyncClient(scope=scope) as client:
        stored = (await client.messages("s"))["messages"]
    assert [item["content"] for item in stored] == ["Yes.", "Yes.", "Berth seven."]


async def test_the_session_keeps_nothing_of_the_memory(door: Any) -> None:
    agent = Agent(client=Scripted(), context_providers=[LaminaProvider({"workspace": door.workspace})])
    await agent.run(BERTH, session=agent.create_session(session_id="monday"))
    friday = agent.create_session(session_id="friday")

    await agent.run(QUESTION, session=friday)

    assert "remembered" not in str(friday.to_dict()["state"].get("lamina"))


async def test_a_provider_that_only_recalls_records_nothing_and_scopes_stay_apart(door: Any) -> None:
    model, scope = Scripted(), {"workspace": door.workspace, "user": "ann"}
    async with AsyncClient(scope=scope) as client:
        await client.add("Ann's berth for the Marlin is seven.")
    for user in ("ann", "bob"):
        provider = LaminaProvider({**scope, "user": user}, records=False)
        await Agent(client=model, context_providers=[provider]).run(QUESTION)

    anns, bobs = model.asked
    assert any("Ann's berth" in text for text in anns)
    assert not any("Ann's berth" in text for text in bobs)
    async with AsyncClient(scope=scope) as client:
        assert (await client.search("Which berth?", tiers=["sessions"]))["results"] == []


async def test_a_service_that_is_away_does_not_stop_the_agent() -> None:
    agent = Agent(client=Scripted(), context_providers=[LaminaProvider(url="http://127.0.0.1:9")])

    assert (await agent.run(QUESTION)).text == "Berth seven."


def test_the_example_prints_what_the_document_says(printed: Callable[[str], str]) -> None:
    assert printed("agent_framework.py").splitlines() == ["Noted.", "The Marlin gets berth seven."]
