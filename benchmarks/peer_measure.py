"""What is measured of a store of memories on LoCoMo, the same for Lamina and for its peers."""

import math
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from benchmarks.closed_loop import WARM_UP_S, Ask, LoadResult, send_in_turn
from benchmarks.fresh_questions import phrasings
from benchmarks.locomo import MESSAGES_PER_REQUEST, Locomo, Question
from benchmarks.process_costs import spent
from benchmarks.report import stage
from benchmarks.scoring import JudgedRanking, distinct, recall_at
from benchmarks.timing import run_all

CLIENTS = (1, 16, 64)
LIMIT = 10
WRITERS = 4
COUNTED_CLIENTS = 16
"""So many clients ask while processors and statements are counted."""
SEED = 17
MOST_FAILURES_SHOWN = 3

Json = dict[str, Any]
Search = Callable[[int, Question], Awaitable[Json]]


@dataclass(frozen=True, slots=True)
class Turn:
    """Messages of one session that are written together."""

    conversation: str
    session: str
    messages: tuple[Json, ...]


class MemoryStore(Protocol):
    """A store of memories under measurement."""

    async def write(self, turn: Turn) -> None:
        """Store messages; they are durable when it returns."""
        ...

    async def settle(self) -> None:
        """Wait until all that was written is found."""
        ...

    async def search(self, client: int, question: Question) -> Json:
        """Return the refs of ten messages as ``refs``, best first, and whether a source was missing as ``degraded``.

        Args:
            client: Number of the client that asks, from 0 on.
            question: Of a conversation.
        """
        ...


@dataclass(frozen=True, slots=True)
class Meters:
    """Readings of what a store takes.

    Args:
        cpu_s: Seconds of processors so far, by part.
        statements: Executed by Postgres so far; ``None`` where there is no Postgres.
    """

    cpu_s: Callable[[], Mapping[str, float]]
    statements: Callable[[], int] | None = None


def turns(data: Locomo) -> Iterator[Turn]:
    """Yield the messages of all sessions, those of one request together."""
    for session in data.sessions:
        for start in range(0, len(session.messages), MESSAGES_PER_REQUEST):
            yield Turn(session.conversation, session.name, session.messages[start : start + MESSAGES_PER_REQUEST])


async def measure_store(
    store: MemoryStore, data: Locomo, questions: Iterator[Question], seconds: float, meters: Meters
) -> Json:
    """Write the conversations, ask each question once, then ask as 1, 16 and 64 clients.

    Args:
        store: A new one.
        data: The conversations, and the questions for the recall.
        questions: What the clients ask (`fresh`).
        seconds: Of each load.
        meters: Of what the store takes.
    """
    messages_per_s = await _write(store, data)
    await store.settle()
    recall = await _recall(store, data)
    stage(f"recall@{LIMIT} {recall:.3f}")
    loads = {count: await measure_load(store.search, questions, count, seconds, meters) for count in CLIENTS}
    return {"messages_per_s": messages_per_s, "recall_at_10": recall, "loads": loads}


async def _write(store: MemoryStore, data: Locomo) -> float:
    begin = time.perf_counter()
    await run_all(turns(data), store.write, concurrency=WRITERS)
    written = sum(len(session.messages) for session in data.sessions)
    per_s = written / (time.perf_counter() - begin)
    stage(f"{written} messages written, {per_s:.0f} a second")
    return per_s


async def _recall(store: MemoryStore, data: Locomo) -> float:
    answers = await run_all(data.questions, partial(store.search, 0), concurrency=WRITERS)
    judged = [
        JudgedRanking(distinct(answer["refs"]), question.evidence)
        for answer, question in zip(answers, data.questions, strict=True)
    ]
    return sum(recall_at(LIMIT, item) for item in judged) / len(judged)


def fresh(data: Locomo) -> Iterator[Question]:
    """Yield the questions in a fixed order, each in phrasings that were not asked for the recall."""
    shuffled = random.Random(SEED).sample(data.questions, len(data.questions))  # noqa: S311 - a fixed order
    for place, text in phrasings([question.text for question in shuffled], begin_at=1):
        yield replace(shuffled[place], text=text)


async def measure_load(
    search: Search, questions: Iterator[Question], count: int, seconds: float, meters: Meters
) -> Json:
    """Return the figures of so many clients that ask for a while, after a second that does not count."""
    asks = [lambda number=number: search(number, next(questions)) for number in range(count)]
    return await measure_asks(asks, seconds, meters)


async def measure_asks(asks: Sequence[Ask], seconds: float, meters: Meters) -> Json:
    """Return the figures of clients that ask for a while, with processors and statements for each answer."""
    await send_in_turn(asks, WARM_UP_S)
    statements, cpu_s = meters.statements and meters.statements(), meters.cpu_s()
    load = await send_in_turn(asks, seconds)
    parts = spent(cpu_s, meters.cpu_s())
    found = load.figures() | of_each(load, parts)
    if meters.statements is not None and statements is not None:
        found["statements"] = (meters.statements() - statements) / (load.answered or math.inf)
    stage(f"{len(asks)} clients: {found['per_s']:.0f} a second, p50 {found['p50_ms']:.1f} ms")
    for failure, times in load.failures().most_common(MOST_FAILURES_SHOWN):
        stage(f"{times} failed: {failure}")
    return found


def of_each(load: LoadResult, parts: Mapping[str, float]) -> Json:
    """Return the milliseconds of processors of an answer, in all and by part."""
    ms = {name: seconds * 1000 / (load.answered or math.inf) for name, seconds in parts.items()}
    return {"cpu_ms": sum(ms.values()), "cpu_ms_by_part": ms}
