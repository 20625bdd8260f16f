"""Lamina beside LangGraph's Postgres store and mem0 without inference, on LoCoMo, with the same model.

Lamina is a service over HTTP, which asks every tier with its caches off; the peers are libraries in the process that
asks them. All get the same messages, sixteen a call, from four writers, and the same questions. mem0 keeps its vectors
in Qdrant's local store, its default. Neither peer has a default model that works offline: LangGraph's store has none,
and mem0's is OpenAI's.
"""

import asyncio
import hashlib
import json
import subprocess
import threading
import venv
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.table import Table

from benchmarks import locomo
from benchmarks.closed_loop import accepted
from benchmarks.counted_service import VARIABLES, CountedService, counted_service
from benchmarks.locomo import Locomo, Question, ref_of
from benchmarks.options import DATA_SETS
from benchmarks.peer_measure import (
    CLIENTS,
    COUNTED_CLIENTS,
    LIMIT,
    Meters,
    Turn,
    fresh,
    measure_asks,
    measure_load,
    measure_store,
)
from benchmarks.peer_stores import NAMES
from benchmarks.process_costs import count_statements, cpu_by_part
from benchmarks.report import publish, stage, table
from benchmarks.service import REPOSITORY
from benchmarks.timing import until_indexed
from lamina.client import AsyncClient
from lamina.errors import Unavailable

ENVIRONMENT = REPOSITORY / ".venv-peers"
PYTHON = ENVIRONMENT / "bin" / "python"
REQUIREMENTS = REPOSITORY / "requirements" / "peers.txt"
PEER_DEADLINE_S = 1200.0
CACHED_S = 2.0
LEAST_SHOWN_MS = 0.1
REFERENCE = "langgraph_store"
# What a ratio must be, and what to reach for; from issue 17, whose machine had 230 searches a second of the reference.
GOALS = {
    "searches_16": ("searches a second, 16 clients", "≥ 0.43", "0.65"),
    "p50_1": ("p50, 1 client", "≤ 1.8", "1.2"),
    "writes": ("messages written a second", "≥ 1.7", "2.3"),
    "sessions_16": ("searches a second of sessions alone, 16 clients", "", "> 1"),
}
LABELS = {"lamina": "Lamina", "langgraph_store": "LangGraph's store", "mem0": "mem0, no inference"}

Json = dict[str, Any]


def measure(
    folder: Annotated[
        Path, typer.Option("--locomo", help="Folder of the data set.", envvar="LAMINA_LOCOMO")
    ] = DATA_SETS / "locomo",
    conversations: Annotated[int, typer.Option(min=1, help="How many of the ten; more take longer.")] = 4,
    questions: Annotated[int | None, typer.Option(min=1, help="How many of their questions; all if not given.")] = None,
    seconds: Annotated[float, typer.Option(min=0.5, help="Seconds of each load.")] = 8.0,
    *,
    whole: Annotated[bool, typer.Option("--whole", help="All ten conversations, 5 882 messages.")] = False,
) -> None:
    """Measure Lamina, LangGraph's Postgres store and mem0 without inference, with the same model and data.

    Four conversations are meant to end within ten minutes on two idle cores. The peers are installed into `.venv-peers`
    at the first time.
    """
    options = locomo.Options(folder, f"peers-{uuid4().hex[:8]}", None if whole else conversations, questions)
    data = locomo.load(options)  # A wrong folder shows before anything is installed or started.
    install()
    with counted_service(variables=VARIABLES) as service:
        found = {"lamina": asyncio.run(_of_lamina(service, data, options, seconds))}
    for name in NAMES:
        found[name] = _of_peer(name, options, seconds)
    written = sum(len(session.messages) for session in data.sessions)
    publish(tables(found, written), {"peers": {name: figures(of_store) for name, of_store in found.items()}})


def install() -> None:
    """Make the peers' environment, if it is not there as it should be.

    Raises:
        Unavailable: If a package cannot be installed.
    """
    mark, digest = ENVIRONMENT / "installed", hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if mark.exists() and mark.read_text() == digest:
        return
    stage(f"{ENVIRONMENT.name} is made, from wheels of exact versions; this takes a minute or two")
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    command = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--require-hashes",
        "--no-compile",
    ]
    done = subprocess.run(  # noqa: S603 - our own command line
        [PYTHON, *command, "--requirement", REQUIREMENTS], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable("peers", f"pip cannot install {REQUIREMENTS.name}: {done.stderr.strip()[-2000:]}")
    mark.write_text(digest)


class LaminaStore:
    """Lamina over HTTP, with a connection for each client.

    Args:
        clients: As many as ask at once.
        workspaces: Prefix of the workspaces, one for each conversation.
    """

    def __init__(self, clients: Sequence[AsyncClient], workspaces: str) -> None:
        self._clients = clients
        self._workspaces = workspaces
        self._refs = dict[str, str]()

    async def write(self, turn: Turn) -> None:
        """Store messages as one turn."""
        record = partial(
            self._clients[0].record, turn.messages, workspace=self._workspace(turn.conversation), session=turn.session
        )
        stored = (await accepted(record, []))["messages"]
        pairs = zip(turn.messages, stored, strict=True)
        self._refs |= {item["id"]: message["ref"] for message, item in pairs}

    async def settle(self) -> None:
        """Wait until every index has all that was written."""
        stage(f"indexed {await until_indexed(self._clients[0]):.1f} s later")

    async def search(self, client: int, question: Question, **options: Any) -> Json:
        """Return the refs of the first ten hits of all tiers, with the caches off unless the options say otherwise."""
        search = self._clients[client].search
        answer = await search(
            question.text, workspace=self._workspace(question.conversation), limit=LIMIT, **{"cache": False, **options}
        )
        return answer | {"refs": [ref_of(hit, self._refs) for hit in answer["results"]]}

    def _workspace(self, conversation: str) -> str:
        return f"{self._workspaces}-{conversation}"


async def _of_lamina(service: CountedService, data: Locomo, options: locomo.Options, seconds: float) -> Json:
    meters = Meters(cpu_by_part, lambda: count_statements(service.database_url))
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(AsyncClient(*service.endpoint)) for _ in range(max(CLIENTS))]
        store = LaminaStore(clients, options.workspaces)
        questions = fresh(data)
        found = await measure_store(store, data, questions, seconds, meters)
        alone = partial(store.search, tiers=["sessions"])
        found["sessions_alone"] = await measure_load(alone, questions, COUNTED_CLIENTS, seconds, meters)
        again = partial(store.search, 0, data.questions[0], cache=True)
        found["cache_hit"] = await measure_asks([again], min(seconds, CACHED_S), meters)
    return found


def _of_peer(name: str, options: locomo.Options, seconds: float) -> Json:
    """Return what a peer's own process measured; its stages are shown meanwhile."""
    chosen = {
        "folder": str(options.folder.resolve()),
        "conversations": options.conversations,
        "questions": options.questions,
        "seconds": seconds,
    }
    command = [str(PYTHON), "-m", "benchmarks.peer_stores", name, json.dumps(chosen)]
    last = ""
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        deadline = threading.Timer(PEER_DEADLINE_S, process.kill)
        deadline.start()
        for line in process.stdout or ():
            if not line.startswith("{"):
                stage(f"{name}: {line.partition(' s  ')[2].strip() or line.strip()}")
            last = line
        deadline.cancel()
    if process.returncode:
        raise Unavailable(name, f"its measurement ended with {process.returncode}")
    found: Json = json.loads(last)
    return found


def figures(found: Json) -> Json:
    """Return the figures of one store in the form of the last line."""
    loads, counted = found["loads"], load_of(found, COUNTED_CLIENTS)
    return {
        "searches_per_s": {str(count): load["per_s"] for count, load in loads.items()},
        "p50_ms": {str(count): load["p50_ms"] for count, load in loads.items()},
        "p95_ms": {str(count): load["p95_ms"] for count, load in loads.items()},
        "messages_per_s": found["messages_per_s"],
        "recall_at_10": found["recall_at_10"],
        "cpu_ms_per_search": counted["cpu_ms"],
        "statements_per_search": counted.get("statements"),
    }


def load_of(found: Json, clients: int) -> Json:
    """Return the figures of a load; numbers of clients that came as JSON are texts."""
    loads: Mapping[int, Json] = {int(count): load for count, load in found["loads"].items()}
    return loads[clients]


def ratios(found: Mapping[str, Json]) -> dict[str, float]:
    """Return Lamina's figures as shares of LangGraph's store's, of the same run."""
    lamina, reference = found["lamina"], found[REFERENCE]
    return {
        "searches_16": load_of(lamina, 16)["per_s"] / load_of(reference, 16)["per_s"],
        "p50_1": load_of(lamina, 1)["p50_ms"] / load_of(reference, 1)["p50_ms"],
        "writes": lamina["messages_per_s"] / reference["messages_per_s"],
        "sessions_16": lamina["sessions_alone"]["per_s"] / load_of(reference, 16)["per_s"],
    }


def tables(found: Mapping[str, Json], messages: int) -> list[Table]:
    """Return the tables of all stores, of the ratios, and of Lamina's processors by part."""
    return [_stores(found, messages), _loads(found), _ratios(found), _beside(found["lamina"]), _parts(found["lamina"])]


def _stores(found: Mapping[str, Json], messages: int) -> Table:
    shown = table(
        f"LoCoMo, {messages} messages; CPU and statements of a search at {COUNTED_CLIENTS} clients",
        "store", "messages/s", "recall@10", "CPU ms", "statements",
    )  # fmt: skip
    for name, of_store in found.items():
        counted = load_of(of_store, COUNTED_CLIENTS)
        statements = f"{counted['statements']:.1f}" if "statements" in counted else "no Postgres"
        row = (f"{of_store['messages_per_s']:.0f}", f"{of_store['recall_at_10']:.3f}", f"{counted['cpu_ms']:.1f}")
        shown.add_row(LABELS[name], *row, statements)
    shown.caption = "the peers' CPU includes the client, which asks in their process; none has a default model offline"
    return shown


def _loads(found: Mapping[str, Json]) -> Table:
    columns = ("clients", "searches/s", "p50 ms", "p95 ms", "failed", "degraded", "refused")
    shown = table("Searches; refused ones are sent again when the service said", "store", *columns)
    for name, of_store in found.items():
        for clients in CLIENTS:
            load = load_of(of_store, clients)
            times = (f"{load[key]:.1f}" for key in ("per_s", "p50_ms", "p95_ms"))
            counts = (str(load[key]) for key in ("failed", "degraded", "refused"))
            shown.add_row(LABELS[name], str(clients), *times, *counts)
    return shown


def _ratios(found: Mapping[str, Json]) -> Table:
    shown = table("Lamina as a share of LangGraph's store, same run", "", "measured", "must", "reach for")
    for name, value in ratios(found).items():
        label, must, reach_for = GOALS[name]
        shown.add_row(label, f"{value:.2f}", must, reach_for)
    return shown


def _beside(lamina: Json) -> Table:
    shown = table("Lamina beside that", "", "a second", "p50 ms", "p95 ms", "CPU ms", "statements")
    for label, key in (
        (f"sessions alone, {COUNTED_CLIENTS} clients", "sessions_alone"),
        ("cache hit, 1 client", "cache_hit"),
    ):
        load = lamina[key]
        shown.add_row(label, *(f"{load[name]:.1f}" for name in ("per_s", "p50_ms", "p95_ms", "cpu_ms", "statements")))
    return shown


def _parts(lamina: Json) -> Table:
    columns = [str(count) for count in CLIENTS]
    shown = table("CPU ms of a search by process and clients; the client's own is left out", "process", *columns)
    by_clients = [load_of(lamina, count)["cpu_ms_by_part"] for count in CLIENTS]
    for name in sorted(
        {name for parts in by_clients for name in parts}, key=lambda name: -by_clients[1].get(name, 0.0)
    ):
        if max(parts.get(name, 0.0) for parts in by_clients) >= LEAST_SHOWN_MS:
            shown.add_row(name, *(f"{parts.get(name, 0.0):.1f}" for parts in by_clients))
    return shown
