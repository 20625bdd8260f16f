"""A LangChain agent that remembers by a middleware: `pip install 'lamina-memory[langchain]'`.

It takes LAMINA_URL and LAMINA_API_KEY. The model is scripted, so that nothing but Lamina is called; put any chat model
in its place.
"""

import os
import time
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from lamina.client import Client
from lamina.integrations.langchain import LaminaMiddleware


class ScriptedModel(BaseChatModel):
    """A model that knows nothing but the messages that it gets."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        memory = next((message.text for message in messages if "<memory>" in message.text), "")
        text = "Behind the barometer." if "barometer" in memory else "I do not know."
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


scope = {"workspace": os.environ.get("LAMINA_WORKSPACE", "default"), "user": "ann"}
memory = LaminaMiddleware(scope)
agent = create_agent(ScriptedModel(), middleware=[memory])

agent.invoke({"messages": [("human", "The spare key hangs behind the barometer.")]})
with Client(scope=scope) as client:
    patience = time.monotonic() + 30
    while not client.search("where does the spare key hang?")["results"] and time.monotonic() < patience:
        time.sleep(0.05)  # The index hears of it some milliseconds later.
state = agent.invoke({"messages": [("human", "Where does the spare key hang?")]})
print(state["messages"][-1].text)
print(len(state["messages"]), "messages: the block is not among them")
memory.close()
