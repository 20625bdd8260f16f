import asyncio
from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ImageUrl, ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from lamina.client import AsyncClient
from lamina.integrations.pydantic_ai import LaminaMemory

PATIENCE_S = 30.0
BERTH = "The Marlin gets berth seven."
QUESTION = "Which berth does the Marlin have?"


def agent_of(memory: LaminaMemory, told: list[str | None]) -> Agent:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told.append(info.instructions)
        return ModelResponse(parts=[TextPart("Berth seven.")])

    return Agent(FunctionModel(answer), instructions="You are the harbour master.", capabilities=[memory])


async def test_another_conversation_is_told_what_was_said_behind_the_agents_own_instructions(door: Any) -> None:
    told: list[str | None] = []
    agent = agent_of(LaminaMemory({"workspace": door.workspace}), told)

    first = await agent.run(BERTH, conversation_id="monday")
    same = await agent.run("And for how long?", message_history=first.all_messages(), conversation_id="monday")
    await agent.run(QUESTION, conversation_id="friday")

    assert told[:2] == ["You are the harbour master."] * 2
    assert told[2] is not None
    assert told[2].startswith("You are the harbour master.")
    assert BERTH in told[2]
    assert not any("remembered" in str(message.parts) for message in same.all_messages())
    async with AsyncClient(scope={"workspace": door.workspace}) as client:
        stored = (await client.messages("monday"))["messages"]
    assert [(item["role"], item["content"]) for item in stored] == [
        ("user", BERTH),
        ("assistant", "Berth seven."),
        ("user", "And for how long?"),
        ("assistant", "Berth seven."),
    ]


async def test_runs_at_once_are_told_what_is_for_each(door: Any) -> None:
    told: list[str | None] = []
    agent = agent_of(LaminaMemory({"workspace": door.workspace}, records=False), told)
    async with AsyncClient(scope={"workspace": door.workspace}) as client:
        await client.add(BERTH)
        async with asyncio.timeout(PATIENCE_S):
            while not (await client.search(QUESTION))["results"]:  # noqa: ASYNC110 - the index hears of it a moment later
                await asyncio.sleep(0.05)

    await agent.run("")
    await agent.run([ImageUrl("https://example.com/a.png"), QUESTION])

    assert told[0] == "You are the harbour master."
    assert BERTH in str(told[1])
    async with AsyncClient(scope={"workspace": door.workspace}) as client:
        assert (await client.search("Berth seven.", tiers=["sessions"]))["results"] == []


async def test_scopes_stay_apart(door: Any) -> None:
    told: list[str | None] = []
    for user in ("ann", "bob"):
        agent = agent_of(LaminaMemory({"workspace": door.workspace, "user": user}), told)
        await agent.run(f"My berth is that of {user}.")
        await agent.run("Which berth is mine?")

    assert "that of ann" in str(told[1])
    assert "that of ann" not in str(told[3])


async def test_a_service_that_is_away_does_not_stop_the_agent() -> None:
    agent = Agent(TestModel(custom_output_text="Berth seven."), capabilities=[LaminaMemory(url="http://127.0.0.1:9")])

    assert (await agent.run(QUESTION)).output == "Berth seven."


def test_the_example_prints_what_the_document_says(printed: Callable[[str], str]) -> None:
    assert printed("pydantic_ai.py").splitlines() == ["Noted.", "The Marlin gets berth seven."]
