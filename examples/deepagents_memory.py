"""A deep agent whose folder /memories/ is in Lamina: `pip install 'lamina-memory[langgraph]' deepagents`.

The model is scripted, so that nothing but Lamina is called; put any chat model in its place.
"""

import os
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from lamina.integrations.langgraph import LaminaStore


class ScriptedModel(GenericFakeChatModel):
    """A model that says its lines, tool calls included."""

    def bind_tools(self, tools: Any, **_: Any) -> "ScriptedModel":
        """Take the tools that a model is offered."""
        return self


def call(tool: str, **arguments: str) -> AIMessage:
    """Return a line that calls a tool."""
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": tool, "type": "tool_call"}])


def agent_of(*lines: AIMessage) -> Any:
    """Return a deep agent with an empty thread, whose /memories/ is the store."""
    return create_deep_agent(
        ScriptedModel(messages=iter(lines)),
        backend=CompositeBackend(
            default=StateBackend(), routes={"/memories/": StoreBackend(namespace=lambda _: ("deepagents", "ann"))}
        ),
        store=store,
    )


with LaminaStore(scope={"workspace": os.environ.get("LAMINA_WORKSPACE", "default")}) as store:
    path = "/memories/rules.md"
    first = agent_of(call("write_file", file_path=path, content="Deploy on Tuesdays only."), AIMessage("I noted it."))
    first.invoke({"messages": [("human", "We deploy on Tuesdays only; note it.")]})
    second = agent_of(call("read_file", file_path=path), AIMessage("On Tuesdays only."))
    state = second.invoke({"messages": [("human", "When do we deploy?")]})
    print(next(message.content for message in state["messages"] if message.type == "tool"))
    print([item.key for item in store.search(("deepagents",))])
