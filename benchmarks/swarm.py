"""Agents over one workspace: lost writes, stale reads, work claimed twice, the time from learning to finding."""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.table import Table

from benchmarks.options import KeyOption, UrlOption
from benchmarks.report import publish, stage, table
from benchmarks.service import REPOSITORY, Endpoint, service
from benchmarks.timing import Latencies
from lamina.client import AsyncClient
from lamina.errors import NotFound, PreconditionFailed, Unavailable
from lamina.host.extras import are_installed

FIND_DEADLINE_S = 60.0
LISTED = 1000
FOUND = 5
AGAIN = "measured again"
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"

Json = dict[str, Any]
Step = Callable[[Json], Awaitable[Json]]


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that an agent learned.

    Args:
        question: The words by which others look for it.
        content: Its text as the service acknowledged it last.
        version: The version of its note then.
        acknowledged: When, on the clock of `time.perf_counter`.
    """

    id: str
    question: str
    content: str
    version: int
    acknowledged: float


@dataclass
class Ledger:
    """All writes that the service acknowledged; no agent reads this record of the benchmark."""

    facts: dict[str, Fact] = field(default_factory=dict)
    claims: list[tuple[str, str]] = field(default_factory=list)
    refused_claims: int = 0
    marks: int = 0
    refused_marks: int = 0
    reads: int = 0
    stale_reads: int = 0
    found_ms: list[float] = field(default_factory=list)

    def acknowledge(self, note: Json, question: str) -> Fact:
        """Write down a state of a note that the service has acknowledged just now."""
        fact = Fact(note["id"], question, note["content"], note["version"], time.perf_counter())
        self.facts[fact.id] = fact
        return fact

    def check(self, *, is_stale: bool) -> None:
        """Count a read; it is stale if it shows an older state than one that was acknowledged before it began."""
        self.reads += 1
        self.stale_reads += is_stale


def measure(
    agents: Annotated[int, typer.Option(min=2, max=256, help="Agents at the same time.")] = 32,
    tasks: Annotated[int, typer.Option(min=1, max=LISTED, help="Pieces of work that they claim.")] = 96,
    frameworks: Annotated[
        Path, typer.Option(help="An environment with LangGraph, where this one has none; else the agents are plain.")
    ] = REPOSITORY / ".doors" / "langgraph",
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Let agents claim work, learn from it and search for the lessons of others; count the errors."""
    # At the end of the path: what both have comes from this environment.
    sys.path += [str(folder) for folder in frameworks.glob("lib/python3*/site-packages")]
    has_langgraph = are_installed("langgraph")
    stage(f"{agents} agents, {'of LangGraph' if has_langgraph else 'plain: LangGraph is not installed'}")
    with service(url, key) as endpoint:
        begin = time.perf_counter()
        ledger, lost, twice = asyncio.run(_run(endpoint, agents, tasks, has_langgraph=has_langgraph))
        seconds = time.perf_counter() - begin
    found = Latencies.of(ledger.found_ms)
    figures = {
        "agents": agents,
        "writes_lost": lost,
        "stale_reads": ledger.stale_reads,
        "claims_taken_twice": twice,
        "learn_to_find_ms": {"p50": found.p50_ms, "p95": found.p95_ms},
    }
    publish([_table(ledger, figures, seconds)], {"swarm": figures})


async def _run(endpoint: Endpoint, agents: int, tasks: int, *, has_langgraph: bool) -> tuple[Ledger, int, int]:
    workspace, ledger = f"swarm-{uuid4().hex[:8]}", Ledger()
    async with AsyncClient(*endpoint, scope={"workspace": workspace}) as client:
        notes = [f"Task {number}: inspect boiler {number} of hall {number % 7}" for number in range(tasks)]
        await client.add_many([{"content": text, "tags": ["task", "open"]} for text in notes])
        board = await client.add("The board of the swarm", tags=["board"], metadata={"done": 0})
        place = _Place(endpoint, workspace, board["id"])
        workers = [Agent(f"agent-{number:02}", number, place, ledger) for number in range(agents)]
        for worker in workers:
            worker.colleagues = [other for other in workers if other is not worker]
        stage(f"{tasks} tasks stand in workspace {workspace}")
        run = _by_langgraph if has_langgraph else _plainly
        await asyncio.gather(*(run(worker) for worker in workers))
        await asyncio.gather(*(worker.client.close() for worker in workers))
        stage("no task is open any more")
        return ledger, await count_lost(client, board["id"], ledger), await count_taken_twice(client, ledger)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the agents work."""

    endpoint: Endpoint
    workspace: str
    board: str


async def _plainly(agent: "Agent") -> None:
    state: Json = {"next": "look"}
    while (action := state["next"]) != "stop":
        state = state | await agent.actions[action](state)
        state = state | await agent.model(state)


async def _by_langgraph(agent: "Agent") -> None:
    """Let a graph of LangGraph run the agent: its model chooses the node that acts next."""
    from langgraph.graph import END, START, StateGraph  # noqa: PLC0415 - in an environment of its own

    graph = StateGraph(dict)
    graph.add_node("model", _merged(agent.model))
    for name, action in agent.actions.items():
        graph.add_node(name, _merged(action))
        graph.add_edge(name, "model")
    graph.add_edge(START, "look")
    graph.add_conditional_edges("model", lambda state: END if state["next"] == "stop" else state["next"])
    await graph.compile().ainvoke({"next": "look"}, {"recursion_limit": 100_000})


def _merged(step: Step) -> Step:
    async def node(state: Json) -> Json:
        return state | await step(state)

    return node


class Agent:
    """One agent: a scripted model, and actions that speak to the service by a client of their own."""

    def __init__(self, name: str, number: int, place: _Place, ledger: Ledger) -> None:
        self.name = name
        self.colleagues: list[Agent] = []
        scope = {"workspace": place.workspace, "agent": name, "swarm": "boilers"}
        self.client = AsyncClient(*place.endpoint, scope=scope)
        self._board = place.board
        self._ledger = ledger
        self._random = random.Random(number)  # noqa: S311 - no secret
        self._numbers = count()
        self.actions: dict[str, Step] = {
            "look": self._look,
            "claim": self._claim,
            "learn": self._learn,
            "correct": self._correct,
            "mark": self._mark,
            "ask": self._ask,
        }

    async def model(self, state: Json) -> Json:
        """Choose the next action, as a model that follows its instructions would."""
        match state["last"]:
            case "look":
                return {"next": "claim" if state["open"] else "stop"}
            case "claim":
                return {"next": "learn" if state["claimed"] else "look"}
            case last:
                return {"next": {"learn": "correct", "correct": "mark", "mark": "ask", "ask": "look"}[last]}

    async def _look(self, _state: Json) -> Json:
        found = await self.client.notes(tag=["task", "open"], limit=LISTED)
        return {"last": "look", "open": found["notes"]}

    async def _claim(self, state: Json) -> Json:
        """Claim one of the first tasks of the list, for which others reach as well."""
        task = self._random.choice(state["open"][:4])
        changes = {"tags": ["task", "claimed"], "metadata": {"owner": self.name}}
        try:
            await self.client.change(task["id"], if_version=task["version"], **changes)
        except PreconditionFailed:
            self._ledger.refused_claims += 1
            return {"last": "claim", "claimed": None}
        self._ledger.claims.append((task["id"], self.name))
        return {"last": "claim", "claimed": task}

    async def _learn(self, state: Json) -> Json:
        """Store a fact, for which two colleagues look from its acknowledgement on."""
        number = state["claimed"]["content"].split(":")[0].removeprefix("Task ")
        valve = "".join(self._random.choices(LETTERS, k=7))
        content = f"Valve {valve} of boiler {number} sticks at {self._random.randint(200, 900)} kPa, says {self.name}"
        stored = await self.client.add(content, tags=["fact"])
        note = {"id": stored["id"], "content": content, "version": 1}
        fact = self._ledger.acknowledge(note, f"At how many kPa does valve {valve} stick?")
        finders = self._random.sample(self.colleagues, min(2, len(self.colleagues)))
        found = await asyncio.gather(*(finder.find(fact.id) for finder in finders))
        self._ledger.found_ms += [(moment - fact.acknowledged) * 1000 for moment in found]
        return {"last": "learn", "fact": fact}

    async def _correct(self, state: Json) -> Json:
        """Correct every other fact that was learned."""
        if next(self._numbers) % 2:
            fact = state["fact"]
            content = fact.content.replace("sticks at", f"sticks, {AGAIN}, at")
            changed = await self.client.change(fact.id, if_version=fact.version, content=content)
            self._ledger.acknowledge(changed, fact.question)
        return {"last": "correct"}

    async def _mark(self, _state: Json) -> Json:
        """Count one more task on the board that all agents share, by compare-and-set."""
        while True:
            board = await self.client.note(self._board)
            metadata = {"done": board["metadata"]["done"] + 1}
            try:
                await self.client.change(self._board, if_version=board["version"], metadata=metadata)
            except PreconditionFailed:
                self._ledger.refused_marks += 1
                await asyncio.sleep(self._random.uniform(0, 0.05))
                continue
            self._ledger.marks += 1
            return {"last": "mark"}

    async def _ask(self, _state: Json) -> Json:
        """Search for a fact that the swarm learned lately, and read it."""
        known = self._random.choice(list(self._ledger.facts.values())[-8:])
        await self.find(known.id)
        before = self._ledger.facts[known.id]
        note = await self.client.note(known.id)
        self._ledger.check(is_stale=note["version"] < before.version)
        return {"last": "ask"}

    async def find(self, id_: str) -> float:
        """Search until the fact is found; return when, on the clock of `time.perf_counter`."""
        begin = time.perf_counter()
        while time.perf_counter() - begin < FIND_DEADLINE_S:
            before = self._ledger.facts[id_]
            answer = await self.client.search(before.question, tiers=["notes"], limit=FOUND)
            now = time.perf_counter()
            for hit in answer["results"]:
                if hit["id"] == id_:
                    self._ledger.check(is_stale=AGAIN in before.content and AGAIN not in hit["content"])
                    return now
        raise Unavailable("search", f"note {id_} is not found after {FIND_DEADLINE_S:.0f} s")


async def count_lost(client: AsyncClient, board: str, ledger: Ledger) -> int:
    """Count acknowledged writes that are not there: facts, their corrections, and marks on the board."""
    lost = 0
    for fact in ledger.facts.values():
        try:
            lost += (await client.note(fact.id))["content"] != fact.content
        except NotFound:
            lost += 1
    return lost + abs(ledger.marks - int((await client.note(board))["metadata"]["done"]))


async def count_taken_twice(client: AsyncClient, ledger: Ledger) -> int:
    """Count the tasks with two owners: two claims that succeeded, or a stored owner other than the claimant."""
    owners = dict(ledger.claims)
    twice = len(ledger.claims) - len(owners)
    for task, owner in owners.items():
        twice += (await client.note(task))["metadata"]["owner"] != owner
    return twice


def _table(ledger: Ledger, figures: Json, seconds: float) -> Table:
    shown = table(f"Swarm: {figures['agents']} agents over one workspace, {seconds:.0f} s", "", "all", "wrong")
    writes = len(ledger.facts) + ledger.marks
    shown.add_row("facts and marks written", f"{writes}", f"{figures['writes_lost']} lost")
    shown.add_row("reads of facts", f"{ledger.reads}", f"{figures['stale_reads']} stale")
    shown.add_row("tasks claimed", f"{len(ledger.claims)}", f"{figures['claims_taken_twice']} twice")
    shown.add_row("claims refused, another was first", f"{ledger.refused_claims}", "")
    shown.add_row("marks refused, another was first", f"{ledger.refused_marks}", "")
    times = figures["learn_to_find_ms"]
    shown.add_row("from learning to finding, p50 and p95", f"{times['p50']:.0f} ms", f"{times['p95']:.0f} ms")
    return shown
