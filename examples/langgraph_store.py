"""A LangGraph agent whose memory outlives its threads: `pip install 'lamina-memory[langgraph]'`.

It takes LAMINA_URL and LAMINA_API_KEY. The model is scripted, so that nothing but Lamina is called; put any chat model
in its place.
"""

import os
import time

from langchain_core.messages import AnyMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from lamina.integrations.langgraph import LaminaStore

FACTS = ("users", "ann", "facts")


def scripted_model(memories: str, question: str) -> str:
    """Answer as a chat model would that was given the memories."""
    return f"It {memories.partition(' ')[2]}." if "key" in question and memories else "Noted."


def remember(state: MessagesState, runtime: Runtime) -> None:
    """Store what the user says."""
    text = str(state["messages"][-1].content)
    if not text.endswith("?"):
        runtime.store.put(FACTS, str(abs(hash(text))), {"text": text})


def answer(state: MessagesState, runtime: Runtime) -> dict[str, list[AnyMessage | tuple[str, str]]]:
    """Search the memory, and let the model answer."""
    question = str(state["messages"][-1].content)
    found = runtime.store.search(FACTS, query=question, limit=1)
    return {"messages": [("ai", scripted_model(found[0].value["text"] if found else "", question))]}


scope = {"workspace": os.environ.get("LAMINA_WORKSPACE", "default")}
with LaminaStore(scope=scope, index={"fields": ["text"]}) as store:
    builder = StateGraph(MessagesState).add_node(remember).add_node(answer)
    graph = builder.add_edge(START, "remember").add_edge("remember", "answer").compile(store=store)
    # Two runs without anything in common but the store.
    graph.invoke({"messages": [("human", "Key: hangs behind the barometer")]})
    patience = time.monotonic() + 30
    while not store.search(FACTS, query="the spare key") and time.monotonic() < patience:
        time.sleep(0.05)  # The index hears of it some milliseconds later.
    state = graph.invoke({"messages": [("human", "Where is my spare key?")]})
    print(state["messages"][-1].content)
    print(store.list_namespaces())
