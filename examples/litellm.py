"""LiteLLM: one callback, and every model behind it remembers."""

import asyncio
import os

import litellm

from lamina.integrations.litellm import LaminaMemory


async def main() -> None:
    """Ask for what was stored before; without a model of yours its answer is mocked."""
    workspace = os.environ.get("LAMINA_WORKSPACE", "harbour")
    memory = LaminaMemory({"workspace": workspace})
    litellm.callbacks = [memory]
    async with memory.memory.client() as client:
        await client.add("The Marlin gets berth seven.")
    asked = [{"role": "user", "content": "Which berth does the Marlin have?"}]
    answer = await litellm.acompletion(model="gpt-5", messages=asked, mock_response="Berth seven.", user="ann")
    print(answer.choices[0].message.content)
    told = await memory.async_pre_call_deployment_hook({"messages": asked, "user": "ann"}, "acompletion")
    print(told["messages"][0]["content"])


asyncio.run(main())
