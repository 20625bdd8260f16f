"""A LlamaIndex memory whose long-term part is in Lamina: `pip install 'lamina-memory[llama-index]'`.

It takes LAMINA_URL and LAMINA_API_KEY. The model is scripted, so that nothing but Lamina is called; put any model in
its place.
"""

import os
import time
from collections.abc import Sequence

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory

from lamina.integrations.llama_index import LaminaMemoryBlock, LaminaRetriever


def scripted_model(messages: Sequence[ChatMessage]) -> str:
    """Answer as a model would that knows nothing but the messages that it gets."""
    known = " ".join(message.content or "" for message in messages)
    return "Behind the barometer." if "barometer" in known else "I do not know."


scope = {"workspace": os.environ.get("LAMINA_WORKSPACE", "default"), "user": "ann"}
block = LaminaMemoryBlock(scope=scope)

# So little fits the short-term memory that the first messages soon leave it for the block.
first = Memory.from_defaults(
    "first", token_limit=60, chat_history_token_ratio=0.5, token_flush_size=10, memory_blocks=[block]
)
first.put(ChatMessage("The spare key hangs behind the barometer.", role="user"))
for number in range(6):
    first.put(ChatMessage(f"By the way, parcel {number} has arrived at the depot in good order.", role="user"))
patience = time.monotonic() + 30
while not LaminaRetriever(1, scope).retrieve("where does the spare key hang?") and time.monotonic() < patience:
    time.sleep(0.05)  # The index hears of it some milliseconds later.

second = Memory.from_defaults("second", memory_blocks=[block])
second.put(ChatMessage("Where does the spare key hang?", role="user"))
print(scripted_model(second.get()))
