"""Pydantic AI: a second conversation knows what was said in the first one."""

import os

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from lamina.integrations.pydantic_ai import LaminaMemory


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Say what the instructions remember; any model of yours in its place."""
    known = [line for line in (info.instructions or "").splitlines() if "berth" in line]
    return ModelResponse(parts=[TextPart(known[0] if known else "Noted.")])


memory = LaminaMemory({"workspace": os.environ.get("LAMINA_WORKSPACE", "harbour")})
agent = Agent(FunctionModel(scripted), instructions="You are the harbour master.", capabilities=[memory])
print(agent.run_sync("The Marlin gets berth seven.").output)
print(agent.run_sync("Which berth does the Marlin have?").output)
