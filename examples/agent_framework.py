"""Microsoft Agent Framework: a second session knows what was said in the first one."""

import asyncio
import os
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Message

from lamina.integrations.agent_framework import LaminaProvider


class Scripted(BaseChatClient):
    """Says what it was told of berths before; any chat client of yours in its place."""

    async def _inner_get_response(self, *, messages: Any, **_: Any) -> ChatResponse:
        known = [line for message in messages[:-1] for line in message.text.splitlines() if "berth" in line]
        return ChatResponse(messages=[Message(role="assistant", contents=[known[0] if known else "Noted."])])


async def main() -> None:
    """Tell something in one session, and ask in another."""
    memory = LaminaProvider({"workspace": os.environ.get("LAMINA_WORKSPACE", "harbour")})
    agent = Agent(client=Scripted(), name="harbour master", context_providers=[memory])
    print(await agent.run("The Marlin gets berth seven.", session=agent.create_session(session_id="monday")))
    print(await agent.run("Which berth does the Marlin have?", session=agent.create_session(session_id="friday")))


asyncio.run(main())
