"""OpenAI Agents SDK: the conversation lies in Lamina, and another one recalls it."""

import asyncio
import os
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from lamina.client import Client
from lamina.integrations.openai_agents import LaminaSession


class Scripted(Model):
    """Says how much it was told; any model of yours in its place."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        text = f"I know {len(input)} items of this conversation."
        content = ResponseOutputText(type="output_text", text=text, annotations=[])
        said = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[content])
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


async def main() -> None:
    """Ask twice in one session, and search in another."""
    scope = {"workspace": os.environ.get("LAMINA_WORKSPACE", "harbour")}
    agent = Agent(name="Harbour master", model=Scripted())
    for question in ("The Marlin gets berth seven.", "And where is the Heron?"):
        answer = await Runner.run(agent, question, session=LaminaSession("monday", scope=scope))
        print(answer.final_output)
    with Client(scope=scope) as memory:
        print(memory.search("Which berth does the Marlin have?", limit=1)["results"][0]["content"])


set_tracing_disabled(disabled=True)
asyncio.run(main())
