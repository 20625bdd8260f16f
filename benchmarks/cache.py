"""The cache stack: time saved by each layer, sharing in a swarm, stale reads, and quality of hits."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import numpy as np
import typer
from rich.table import Table

from benchmarks.cache_quality import measure_pairs_by_hand, measure_quality, pairs_by_hand_table, quality_tables
from benchmarks.generated_sentences import Wording
from benchmarks.memory_structures import measure_structures, structures_table
from benchmarks.options import KeyOption, UrlOption
from benchmarks.report import publish, stage, table
from benchmarks.service import Endpoint, service
from benchmarks.timing import Latencies, run_all, timed, until_indexed
from lamina.client import AsyncClient

NOTES = 2_000
MESSAGES = 2_000
PER_REQUEST = 100
ROUNDS = 60
SWARMS = 8
SUB_AGENTS = 64
QUESTIONS = 500
ZIPF = 1.1
CONCURRENCY = 8
SETTLED_S = 0.3
REPORTED_S = 2.0
SEED = 20_240_601
WHOLE = {"turn_hash", "negative", "swarm_l1"}
TWO_ROUTERS = {"LAMINA_SERVE__ROUTER__MIN_REPLICAS": "2", "LAMINA_SERVE__ROUTER__MAX_REPLICAS": "2"}

Json = dict[str, Any]
Ask = Callable[[int], Awaitable[Json]]


@dataclass(frozen=True, slots=True)
class Case:
    """One layer under measurement.

    Args:
        name: Of the layer.
        prepare: Sends what it will know; ``None`` if nothing needs to be sent.
        ask: Sends what it answers, for the given round.
        served: What the answers say of where they come from.
    """

    name: str
    prepare: Ask | None
    ask: Ask
    served: Callable[[Json], bool]


def measure(
    pairs: Annotated[
        Path | None, typer.Option(help="Folder of labelled question pairs; without it quality is not measured.")
    ] = None,
    sample: Annotated[int, typer.Option(min=100, help="So many of the pairs; all are 80 854.")] = 20_000,
    requests: Annotated[int, typer.Option(min=100, help="Requests of the swarms.")] = 4_000,
    turns: Annotated[int, typer.Option(min=1, help="Writes, each followed by a read, of two clients.")] = 1_000,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Measure the cache stack on one running service with two router replicas."""
    with service(url, key, **TWO_ROUTERS) as endpoint:
        layers, swarms, coherence = asyncio.run(_run(endpoint, requests, turns))
    structures = measure_structures()
    tables = [_layers_table(layers), _swarms_table(swarms, coherence), structures_table(structures)]
    figures: Json = {**layers, "swarms": swarms, **coherence, "structures": structures}
    by_hand = measure_pairs_by_hand()
    tables.append(pairs_by_hand_table(by_hand))
    figures["guard"] = by_hand
    if pairs is not None:
        quality = measure_quality(pairs, sample=sample)
        tables += quality_tables(quality)
        figures["semantic"] = {**figures["semantic"], **quality}
    publish(tables, figures)


async def _run(endpoint: Endpoint, requests: int, turns: int) -> tuple[Json, Json, Json]:
    workspace = f"cache-{uuid4().hex[:8]}"
    async with AsyncClient(*endpoint, scope={"workspace": workspace}) as client:
        await _fill(client)
        layers = await _layers(client)
        swarms = await _swarms(client, requests)
        coherence = await _coherence(endpoint, turns)
    return layers, swarms, coherence


async def _fill(client: AsyncClient) -> None:
    wording = Wording(np.random.default_rng(SEED))
    for _ in range(0, NOTES, PER_REQUEST):
        await client.add_many([wording.statement() for _ in range(PER_REQUEST)])
    for start in range(0, MESSAGES, PER_REQUEST):
        messages = [{"content": wording.statement()} for _ in range(PER_REQUEST)]
        await client.record(messages, session=f"session-{start // PER_REQUEST}")
    await until_indexed(client)
    stage(f"{NOTES} notes and {MESSAGES} messages written and indexed")


def _questions(count: int, seed: int) -> list[str]:
    wording = Wording(np.random.default_rng(SEED + seed))
    return [f"{wording.question()} ({seed}.{place})" for place in range(count)]


# Each layer alone.


async def _layers(client: AsyncClient) -> Json:
    await _warmed_up(client)
    uncached = Latencies.of([item.elapsed_ms for item in await _asked(_uncached(client), ROUNDS)])
    figures: Json = {"uncached": uncached.figures()}
    for case in _cases(client):
        figures[case.name] = await _measured(case, uncached)
    figures["agent_filter"]["served"] = await _spared(client) / ROUNDS
    return figures


async def _spared(client: AsyncClient) -> int:
    """Return how many lookups the agent filter spared; replicas tell their counts once a second."""
    await asyncio.sleep(REPORTED_S)
    return int((await client.cache_stats())["layers"]["agent_filter"]["hits"])


async def _warmed_up(client: AsyncClient) -> None:
    for question in _questions(20, 0):
        await client.search(question, cache=False)


def _uncached(client: AsyncClient) -> Ask:
    questions = _questions(ROUNDS, 1)
    return lambda place: client.search(questions[place], cache=False, agent="nobody")


def _cases(client: AsyncClient) -> list[Case]:
    return [
        _turn_hash(client),
        _swarm(client),
        _negative(client),
        _graph(client),
        _embeddings(client),
        _semantic_exact(client),
        _semantic(client),
        _agent_filter(client),
    ]


def _layers_are(*names: str) -> Callable[[Json], bool]:
    return lambda answer: bool(answer["cache"] == list(names))


def _turn_hash(client: AsyncClient) -> Case:
    questions = _questions(ROUNDS, 2)

    async def ask(place: int) -> Json:
        return await client.search(questions[place], agent="one")

    return Case("turn_hash", ask, ask, _layers_are("turn_hash"))


def _swarm(client: AsyncClient) -> Case:
    questions = _questions(ROUNDS, 3)

    def asked_by(agent: str) -> Ask:
        return lambda place: client.search(questions[place], agent=f"{agent} {place}", swarm="layers")

    return Case("swarm_l1", asked_by("first"), asked_by("second"), _layers_are("swarm_l1"))


def _negative(client: AsyncClient) -> Case:
    questions = _questions(ROUNDS, 4)

    async def ask(place: int) -> Json:
        return await client.search(questions[place], tags=["nobody", "knows"], tiers=["notes"])

    return Case("negative", ask, ask, _layers_are("negative"))


def _graph(client: AsyncClient) -> Case:
    questions = _questions(ROUNDS, 5)

    def ranked_by(fusion: str) -> Ask:
        return lambda place: client.search(questions[place], fusion=fusion)

    return Case("graph", ranked_by("rrf"), ranked_by("weighted"), _layers_are("graph", "embeddings"))


def _embeddings(client: AsyncClient) -> Case:
    questions = _questions(ROUNDS, 6)

    def with_depth(depth: int) -> Ask:
        return lambda place: client.search(questions[place], depth=depth)

    return Case("embeddings", with_depth(2), with_depth(1), _layers_are("embeddings"))


def _semantic_exact(client: AsyncClient) -> Case:
    questions = _questions(ROUNDS, 7)

    async def put(place: int) -> Json:
        return await client.put_response(questions[place], f"It was {place}.", agent="teller")

    async def look_up(place: int) -> Json:
        return await client.look_up_response(questions[place], agent="teller")

    return Case("semantic_exact", put, look_up, lambda answer: bool(answer["layer"] == "turn_hash"))


def _semantic(client: AsyncClient) -> Case:
    questions = _questions(ROUNDS, 8)

    async def put(place: int) -> Json:
        return await client.put_response(questions[place], f"It was {place}.", agent="guesser")

    async def look_up(place: int) -> Json:
        return await client.look_up_response(
            questions[place].replace("When was it that", "When was it"), agent="guesser"
        )

    return Case("semantic", put, look_up, lambda answer: bool(answer["layer"] == "semantic"))


def _agent_filter(client: AsyncClient) -> Case:
    questions = _questions(ROUNDS, 9)

    async def look_up(place: int) -> Json:
        return await client.look_up_response(questions[place], agent="newcomer")

    return Case("agent_filter", None, look_up, lambda answer: bool(answer["state"] == "miss"))


async def _asked(ask: Ask, rounds: int) -> list[Any]:
    return [await timed(ask(place)) for place in range(rounds)]


async def _measured(case: Case, uncached: Latencies) -> Json:
    if case.prepare is not None:
        await _asked(case.prepare, ROUNDS)
        await asyncio.sleep(SETTLED_S)
    outcomes = await _asked(case.ask, ROUNDS)
    served = [item.elapsed_ms for item in outcomes if case.served(item.value)]
    latencies = Latencies.of(served or [float("nan")])
    stage(f"{case.name}: {len(served)} of {ROUNDS} served, p50 {latencies.p50_ms:.1f} ms")
    return {
        **latencies.figures(),
        "served": len(served) / ROUNDS,
        "p50_ratio": latencies.p50_ms / uncached.p50_ms,
    }


# Many sub-agents at once.


async def _swarms(client: AsyncClient, requests: int) -> Json:
    questions = _questions(QUESTIONS, 10)
    generator = np.random.default_rng(SEED)
    weights = 1 / np.arange(1, QUESTIONS + 1) ** ZIPF
    asked = generator.choice(QUESTIONS, size=requests, p=weights / weights.sum())
    agents = generator.integers(SUB_AGENTS, size=requests)
    before = await _uncached_rate(client, questions)

    async def ask(place: int) -> Json:
        agent = int(agents[place])
        return await client.search(questions[asked[place]], agent=f"sub-agent {agent}", swarm=f"swarm {agent % SWARMS}")

    begin = time.perf_counter()
    answers = await run_all(range(requests), lambda place: timed(ask(place)), concurrency=CONCURRENCY)
    elapsed_s = time.perf_counter() - begin
    layers = Counter(layer for item in answers for layer in item.value["cache"])
    whole = sum(bool(WHOLE & set(item.value["cache"])) for item in answers)
    stage(f"{requests} requests of {SUB_AGENTS} sub-agents in {SWARMS} swarms: {whole / requests:.1%} from a cache")
    return {
        "requests": requests,
        "hit_rate": whole / requests,
        "possible_hit_rate": _possible(asked.tolist(), agents.tolist()),
        **{f"{layer}_rate": count / requests for layer, count in sorted(layers.items())},
        "per_s": requests / elapsed_s,
        "throughput_ratio": requests / elapsed_s / before,
        **Latencies.of([item.elapsed_ms for item in answers]).figures(),
        **await _memory(client),
    }


def _possible(asked: Sequence[int], agents: Sequence[int]) -> float:
    """Return the hit rate if nobody in a swarm had to ask twice, and no two asked at the same time."""
    first = {(question, agent % SWARMS) for question, agent in zip(asked, agents, strict=True)}
    return 1 - len(first) / len(asked)


async def _uncached_rate(client: AsyncClient, questions: Sequence[str]) -> float:
    """Return how many of the same searches a second the service answers without caches."""
    begin = time.perf_counter()
    await run_all(questions[:200], lambda question: client.search(question, cache=False), concurrency=CONCURRENCY)
    return 200 / (time.perf_counter() - begin)


async def _memory(client: AsyncClient) -> Json:
    layers = (await client.cache_stats())["layers"]
    return {
        "entries": sum(layer["entries"] or 0 for layer in layers.values()),
        "megabytes": sum(layer["bytes"] or 0 for layer in layers.values()) / 1e6,
        "evictions": sum(layer["evictions"] for layer in layers.values()),
    }


# Coherence.


async def _coherence(endpoint: Endpoint, turns: int) -> Json:
    """Let one client write and two read in turns, always the same question; count stale reads."""
    scope = {"workspace": f"turns-{uuid4().hex[:8]}"}
    async with AsyncClient(*endpoint, scope=scope) as one, AsyncClient(*endpoint, scope=scope) as other:
        stale, cached = 0, 0
        for turn in range(turns):
            writer, reader = (one, other) if turn % 2 else (other, one)
            await writer.patch_profile({"turn": turn}, user="ann")
            blocks = [await client.context("which turn is it?", user="ann") for client in (reader, writer, reader)]
            stale += sum(f'"turn": {turn}' not in block["text"] for block in blocks)
            cached += sum(bool(WHOLE & set(block["cache"])) for block in blocks)
        stage(f"{turns} writes, {3 * turns} reads right after them: {stale} stale, {cached} from a cache")
    return {"turns": turns, "stale_reads": stale, "cached_reads": cached}


def _layers_table(figures: Json) -> Table:
    shown = table(
        f"One client, {NOTES} notes and {MESSAGES} messages; the ratio is to a search without caches",
        "layer",
        "served",
        "p50 ms",
        "p95 ms",
        "ratio",
    )
    for name, row in figures.items():
        served = f"{row['served']:.0%}" if "served" in row else "-"
        shown.add_row(name, served, f"{row['p50_ms']:.2f}", f"{row['p95_ms']:.2f}", f"{row.get('p50_ratio', 1.0):.3f}")
    return shown


def _swarms_table(swarms: Json, coherence: Json) -> Table:
    shown = table(f"{SUB_AGENTS} sub-agents in {SWARMS} swarms, questions by Zipf's law", "figure", "value")
    for name, value in (*swarms.items(), *coherence.items()):
        shown.add_row(name, f"{value:.3f}" if isinstance(value, float) else str(value))
    return shown
