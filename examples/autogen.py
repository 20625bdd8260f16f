"""AutoGen: an agent that knows what was stored before."""

import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_ext.models.replay import ReplayChatCompletionClient

from lamina.integrations.autogen import LaminaMemory


async def main() -> None:
    """Store a note, and ask for it."""
    memory = LaminaMemory({"workspace": os.environ.get("LAMINA_WORKSPACE", "harbour")})
    await memory.add(MemoryContent(content="The Marlin gets berth seven.", mime_type=MemoryMimeType.TEXT))
    model = ReplayChatCompletionClient(["Berth seven."])  # Any model of yours in its place.
    agent = AssistantAgent("harbour_master", model_client=model, memory=[memory])
    answer = await agent.run(task="Which berth does the Marlin have?")
    print(answer.messages[-1].to_text())
    print(model.create_calls[0]["messages"][-1].content)


asyncio.run(main())
