import asyncio
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from ray.exceptions import RayTaskError
from ray.serve.exceptions import RayServeException

from deployments.embedder import EmbedderDeployment
from deployments.handles import EmbedderHandle
from lamina.core.memories import Chunk
from lamina.core.quotas import counted_spending
from lamina.errors import Unavailable
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from lamina.settings.loading import Settings
from lamina.settings.models import HashingSettings

Calls = Sequence[tuple[str, ...]]
BOOK = " ".join(f"word{number}" for number in range(20_000))


class Slow(HashingModel):
    """Takes ten milliseconds a chunk, and notes what it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        time.sleep(0.01 * len(texts))
        return super().encode(texts)


class Replicas:
    """A handle of several replicas in this process, each call going to the next one."""

    def __init__(self, count: int) -> None:
        self.models = [Slow() for _ in range(count)]
        self.replicas = [self._replica(model) for model in self.models]
        self.turn = 0

    @staticmethod
    def _replica(model: Slow) -> EmbedderDeployment:
        replica = EmbedderDeployment(Settings(embedding=HashingSettings()), "cpu", model.identity)
        replica._embedder = BatchingEmbedder(model)
        return replica

    def __getattr__(self, method: str) -> Any:
        async def remote(*arguments: Any) -> Any:
            self.turn += 1
            return await getattr(self.replicas[self.turn % len(self.replicas)], method)(*arguments)

        return SimpleNamespace(remote=remote)


@pytest.mark.parametrize("count", [1, 3])
async def test_questions_are_answered_while_every_replica_embeds_a_book(count: int) -> None:
    replicas = Replicas(count)
    handle = EmbedderHandle(replicas)  # type: ignore[arg-type]

    books = [asyncio.create_task(handle.embed_chunks([f"{number} {BOOK}"])) for number in range(2 * count)]
    await asyncio.sleep(0.2)
    rows = await asyncio.wait_for(asyncio.gather(*(handle.embed([f"question {n}"]) for n in range(6))), 60)
    were_busy = not any(book.done() for book in books)
    chunks = await asyncio.gather(*books)

    assert were_busy
    assert [row.shape for row in rows] == [(1, 384)] * 6
    assert all(len(found) > 50 for (found,) in chunks)


async def test_a_short_write_waits_for_no_book_of_another() -> None:
    handle = EmbedderHandle(Replicas(1))  # type: ignore[arg-type]

    book = asyncio.create_task(handle.embed_chunks([BOOK]))
    note = asyncio.create_task(handle.embed_chunks(["tea"]))
    await note
    was_busy = not book.done()
    await book

    assert was_busy


class Loading(Replicas):
    """Has a replica that answers nothing before its model is loaded."""

    def __init__(self) -> None:
        super().__init__(1)
        self.loaded = asyncio.Event()

    def __getattr__(self, method: str) -> Any:
        answer = super().__getattr__(method).remote

        async def remote(*arguments: Any) -> Any:
            await self.loaded.wait()
            return await answer(*arguments)

        return SimpleNamespace(remote=remote)


async def test_questions_wait_for_no_model_that_is_still_loaded_and_writes_do() -> None:
    replica = Loading()
    handle = EmbedderHandle(replica)  # type: ignore[arg-type]

    written = asyncio.create_task(handle.embed_chunks(["tea"]))
    refused = await asyncio.gather(*(handle.embed(["who?"]) for _ in range(3)), return_exceptions=True)
    was_waiting = not written.done()
    replica.loaded.set()
    chunks = await written
    rows = [await handle.embed(["who?"]) for _ in range(2)]

    assert [str(error) for error in refused] == [
        "embedder is not available: its model is still being loaded; retry in 1 s"
    ] * 3
    assert was_waiting
    assert len(chunks) == 1
    assert [row.shape for row in rows] == [(1, 384)] * 2


class Older:
    """A replica of the release before, which knows no tenants."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault

    async def _embed_asked(self, calls: Sequence[tuple[str, Calls]]) -> None:
        raise RayTaskError("embed_asked", "its traceback", self.fault)

    async def _embed_written(self, calls: Sequence[tuple[str, Calls]]) -> None:
        raise RayTaskError("embed_written", "its traceback", self.fault)

    async def _embed_questions(self, calls: Calls) -> list[list[tuple[Chunk, ...]]]:
        return await self._embed_calls(calls)

    async def _embed_calls(self, calls: Calls) -> list[list[tuple[Chunk, ...]]]:
        return [[(Chunk(0, len(text), np.ones(2, dtype=np.float32).tobytes()),) for text in texts] for texts in calls]

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=object.__getattribute__(self, f"_{name}"))


async def test_a_replica_of_the_version_before_answers_questions_too() -> None:
    handle = EmbedderHandle(Older(RayServeException("Tried to call a method 'embed_asked' that does not exist.")))  # type: ignore[arg-type]

    rows = await handle.embed(["who?"])
    chunks = await handle.embed_chunks(["Ann", "Bob"])

    assert rows.shape == (1, 2)
    assert [found.end for (found,) in chunks] == [3, 3]


async def test_a_router_of_the_release_before_is_answered() -> None:
    (replica,) = Replicas(1).replicas

    asked, written = await replica.embed_questions([("who?",)]), await replica.embed_calls([("Ann", "Bob"), ("tea",)])

    assert [len(call) for call in (*asked, *written)] == [1, 2, 1]


async def test_the_embedder_learns_whose_texts_they_are() -> None:
    replicas = Replicas(1)
    handle = EmbedderHandle(replicas)  # type: ignore[arg-type]

    async def of(tenant: str) -> None:
        with counted_spending(tenant):
            await asyncio.gather(handle.embed([f"question of {tenant}"]), handle.embed_chunks([f"note of {tenant}"]))

    await asyncio.gather(of("ann"), of("bob"))

    names = replicas.replicas[0]._embedder._names
    assert sorted(names) == [(who, f"{what} of {who}") for who in ("ann", "bob") for what in ("note", "question")]


async def test_another_fault_of_a_replica_is_told_as_it_is() -> None:
    with pytest.raises(Unavailable, match="ValueError"):
        await EmbedderHandle(Older(ValueError("a bug"))).embed(["who?"])  # type: ignore[arg-type]
