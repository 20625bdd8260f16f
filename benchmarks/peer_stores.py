"""`python -m benchmarks.peer_stores NAME OPTIONS`: measure a peer of Lamina; prints its figures as one JSON object.

It runs in the environment of the peers (`requirements/peers.txt`), with Lamina's own model, and with the store in this
process, as the peers are used.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks import locomo
from benchmarks.counted_service import counting_postgres
from benchmarks.locomo import Question
from benchmarks.peer_measure import LIMIT, MemoryStore, Meters, Turn, fresh, measure_store
from benchmarks.process_costs import count_statements, cpu_by_part
from lamina.core.ports import Model
from lamina.settings.loading import Settings
from lamina.wiring.stores import build_model

NAMES = ("langgraph_store", "mem0")
DIMENSION = 384
CONNECTIONS = 16

Json = dict[str, Any]


class PackagedModel:
    """Lamina's own model, in the shapes that the peers ask for.

    Args:
        folder: For the model's graph.
    """

    def __init__(self, folder: Path) -> None:
        self._model: Model = build_model(Settings(data_dir=folder), "cpu")

    def embed_all(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text, of which the model sees the beginning."""
        seen = [text[slice(*self._model.spans(text)[0])] for text in texts]
        vectors: list[list[float]] = self._model.encode(seen).tolist()
        return vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002 - mem0's interface
        """Return the vector of one text."""
        return self.embed_all([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:  # noqa: ARG002
        """Return a vector for each text."""
        return self.embed_all(texts)


class LanggraphStore:
    """LangGraph's store on Postgres: a namespace for each conversation, and vectors of the contents.

    Args:
        store: An `AsyncPostgresStore` that is set up.
    """

    def __init__(self, store: Any) -> None:
        self._store = store

    async def write(self, turn: Turn) -> None:
        """Store messages, all by one call."""
        await asyncio.gather(
            *(
                self._store.aput(("locomo", turn.conversation), message["ref"], message | {"content": text_of(message)})
                for message in turn.messages
            )
        )

    async def settle(self) -> None:
        """Have nothing to wait for."""

    async def search(self, client: int, question: Question) -> Json:  # noqa: ARG002 - all ask one store
        """Return the refs of the ten nearest messages."""
        found = await self._store.asearch(("locomo", question.conversation), query=question.text, limit=LIMIT)
        return {"refs": [item.key for item in found]}


class Mem0Store:
    """mem0 without inference: a user for each conversation.

    Args:
        memory: An `AsyncMemory`.
    """

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._refs = dict[str, str]()
        # Of two threads that write into Qdrant's local store, one fails: "cannot commit - no transaction is active".
        self._writing = asyncio.Lock()

    async def write(self, turn: Turn) -> None:
        """Store messages by one call, one at a time."""
        messages = [{"role": item["role"], "content": text_of(item)} for item in turn.messages]
        async with self._writing:
            answer = await self._memory.add(messages, user_id=turn.conversation, run_id=turn.session, infer=False)
        refs = (message["ref"] for message in turn.messages)
        self._refs |= {item["id"]: ref for item, ref in zip(answer["results"], refs, strict=True)}

    async def settle(self) -> None:
        """Have nothing to wait for."""

    async def search(self, client: int, question: Question) -> Json:  # noqa: ARG002 - all ask one store
        """Return the refs of the ten nearest messages."""
        filters = {"user_id": question.conversation}
        found = await self._memory.search(question.text, top_k=LIMIT, filters=filters, threshold=0.0)
        return {"refs": [self._refs[item["id"]] for item in found["results"]]}


def text_of(message: Json) -> str:
    """Return the text of a message as Lamina embeds it: with the speaker's name."""
    return f"{message['name']}: {message['content']}"


def main() -> None:
    """Measure a peer and print the figures."""
    name, options = sys.argv[1], json.loads(sys.argv[2])
    chosen = locomo.Options(Path(options["folder"]), "", options["conversations"], options["questions"])
    data = locomo.load(chosen)
    with tempfile.TemporaryDirectory(prefix="lamina-benchmark-") as temporary, ExitStack() as stack:
        folder = Path(temporary)
        if name == "mem0":
            found = asyncio.run(_of_mem0(folder, data, options["seconds"]))
        else:
            server = stack.enter_context(counting_postgres(folder / "postgres"))
            found = asyncio.run(_of_langgraph(folder, server.url, data, options["seconds"]))
    print(json.dumps(found), flush=True)


async def _of_langgraph(folder: Path, url: str, data: locomo.Locomo, seconds: float) -> Json:
    async with _langgraph(folder, url) as store:
        return await measure_store(store, data, fresh(data), seconds, Meters(_cpu_s, lambda: count_statements(url)))


@asynccontextmanager
async def _langgraph(folder: Path, url: str) -> AsyncIterator[MemoryStore]:
    from langgraph.store.postgres import AsyncPostgresStore  # noqa: PLC0415 - in the peers' environment alone

    index = {"dims": DIMENSION, "embed": PackagedModel(folder).embed_all, "fields": ["content"]}
    pool = {"min_size": 1, "max_size": CONNECTIONS}
    async with AsyncPostgresStore.from_conn_string(url, pool_config=pool, index=index) as store:
        await store.setup()
        yield LanggraphStore(store)


async def _of_mem0(folder: Path, data: locomo.Locomo, seconds: float) -> Json:
    # Read while mem0 is imported. Without the last it would tell its makers of every call.
    os.environ |= {"MEM0_DIR": str(folder / "mem0"), "MEM0_TELEMETRY": "false"}
    from mem0 import AsyncMemory  # noqa: PLC0415 - in the peers' environment alone

    memory = AsyncMemory.from_config(
        {
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": str(folder / "qdrant"), "embedding_model_dims": DIMENSION, "on_disk": True},
            },
            # Neither is asked: what is stored is not inferred, and the model is exchanged.
            "llm": {"provider": "openai", "config": {"api_key": "unused"}},
            "embedder": {"provider": "openai", "config": {"api_key": "unused"}},
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model = PackagedModel(folder)
    return await measure_store(Mem0Store(memory), data, fresh(data), seconds, Meters(_cpu_s))


def _cpu_s() -> Mapping[str, float]:
    """Return the seconds of this process, in which the client is, too, and of its Postgres."""
    return {"client and store": time.process_time(), **cpu_by_part()}


if __name__ == "__main__":
    main()
