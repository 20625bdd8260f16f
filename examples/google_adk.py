"""Google ADK: an agent that loads what earlier sessions said."""

import asyncio
import os
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import preload_memory
from google.genai import types

from lamina.integrations.google_adk import LaminaMemoryService


class Scripted(BaseLlm):
    """Says what it was told of berths before; any model of yours in its place."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        """Answer."""
        texts = [part.text or "" for content in llm_request.contents for part in content.parts or ()]
        known = [line for text in texts for line in text.splitlines() if "user: " in line]
        text = known[0].removeprefix("user: ") if known else "Noted."
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


async def main() -> None:
    """Tell something in one session, and ask in another."""
    sessions = InMemorySessionService()
    memory = LaminaMemoryService({"workspace": os.environ.get("LAMINA_WORKSPACE", "harbour")})
    agent = LlmAgent(name="harbour_master", model=Scripted(model="scripted"), tools=[preload_memory])
    runner = Runner(app_name="harbour", agent=agent, session_service=sessions, memory_service=memory)
    for day, text in (("monday", "The Marlin gets berth seven."), ("friday", "Which berth does the Marlin have?")):
        await sessions.create_session(app_name="harbour", user_id="ann", session_id=day)
        said = types.Content(role="user", parts=[types.Part(text=text)])
        async for event in runner.run_async(user_id="ann", session_id=day, new_message=said):
            print(event.content.parts[0].text)
        session = await sessions.get_session(app_name="harbour", user_id="ann", session_id=day)
        await memory.add_session_to_memory(session)


asyncio.run(main())
