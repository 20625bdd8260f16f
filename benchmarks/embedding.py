"""Measure the embedding model alone, by runtime and precision, and the service's writes beside it."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar
from uuid import uuid4

import numpy as np
import typer
from rich.table import Table

from benchmarks.embedding_model import LENGTHS, SEED, long_texts, passage_texts
from benchmarks.generated_sentences import Wording
from benchmarks.options import KeyOption, UrlOption
from benchmarks.replica_watch import deployment_of, processes
from benchmarks.report import publish, stage, table
from benchmarks.service import REPOSITORY, Endpoint, service
from benchmarks.timing import run_all, until_indexed
from lamina.client import AsyncClient
from lamina.errors import Unavailable
from lamina.models.runtimes import is_torch_installed

RUNS = {"onnx": ("onnx", "float32"), "onnx_int8": ("onnx", "int8"), "torch": ("torch", "auto")}
PASSAGES_A_CALL, WRITERS = 20, 4
CLIENTS = 16
WRITTEN = ("passages", "long_messages")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
MODEL_DEADLINE_S = 200.0

Json = dict[str, Any]
Item = TypeVar("Item")


def measure(
    passages: Annotated[int, typer.Option(min=20, help="Passages that are written through the service.")] = 400,
    messages: Annotated[int, typer.Option(min=8, help="Messages of 600 tokens that are written through it.")] = 80,
    questions: Annotated[int, typer.Option(min=16, help="Questions of 16 clients at once.")] = 480,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Measure the model by each runtime, and the service's writes beside the model's own limit on this machine."""
    models = {}
    for name, (runtime, precision) in RUNS.items():
        if runtime == "torch" and not is_torch_installed():
            stage("torch is left out: the extra gpu is not installed")
            continue
        models[name] = _measured(runtime, precision)
        stage(f"{name}: {models[name]['passages_per_s']:.1f} passages a second")
    with service(url, key) as endpoint:
        found = asyncio.run(_run(endpoint, passages, messages, questions))
    limit = models["onnx"]
    of_limit = {f"{what}_of_limit": found[f"{what}_per_s"] / limit[f"{what}_per_s"] for what in WRITTEN}
    publish(
        [_table(models), _writes(found, limit)],
        {"embedding": {**models, "cosine": limit["cosine"], "service": found | of_limit}},
    )


def _measured(runtime: str, precision: str) -> Json:
    command = [sys.executable, "-m", "benchmarks.embedding_model", runtime, precision]
    done = subprocess.run(  # noqa: S603 - our own command line
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=MODEL_DEADLINE_S, check=False
    )
    if done.returncode:
        raise Unavailable("model", f"{runtime} in {precision} ended with {done.returncode}: {done.stderr[-2000:]}")
    figures: Json = json.loads(done.stdout.splitlines()[-1])
    return figures


async def _run(endpoint: Endpoint, passages: int, messages: int, questions: int) -> Json:
    wording = Wording(np.random.default_rng(SEED + 1))
    async with AsyncClient(*endpoint, scope={"workspace": f"embedding-{uuid4().hex[:8]}"}) as client:
        # The first calls open connections and load what is loaded late.
        await client.add_documents([{"content": text} for text in passage_texts(wording, 4)])
        await client.record([{"content": wording.statement()}], session="first")

        async def put(batch: Sequence[str]) -> Json:
            return await client.add_documents([{"content": text} for text in batch])

        async def say(message: str) -> Json:
            return await client.record([{"content": message}], session=f"s{message[:9]}")

        async def ask(question: str) -> Json:
            return await client.search(question, cache=False)

        texts = passage_texts(wording, passages)
        batches = [texts[start : start + PASSAGES_A_CALL] for start in range(0, passages, PASSAGES_A_CALL)]
        written = {
            "passages": await _through(put, batches, passages, WRITERS),
            "long_messages": await _through(say, long_texts(wording, messages), messages, WRITERS),
        }
        stage(f"indexed {await until_indexed(client):.1f} s later")
        asked = await _through(ask, [wording.question() for _ in range(questions)], questions, CLIENTS)
    found = {f"{what}_{key}": value for what, figures in written.items() for key, value in figures.items()}
    return found | {f"query_{key}": value for key, value in asked.items()}


async def _through(
    act: Callable[[Item], Awaitable[Json]], items: Sequence[Item], count: int, clients: int
) -> dict[str, float | None]:
    """Return how many a second went through the service, and the milliseconds of processors for each."""
    before, began = _cpu_s(), time.perf_counter()
    await run_all(items, act, concurrency=clients)
    elapsed_s = time.perf_counter() - began
    spent = {name: (seconds - before.get(name, 0.0)) / count * 1000 for name, seconds in _cpu_s().items()}
    apart = [ms for name, ms in spent.items() if name.startswith("Embedder")]
    stage(f"{count / elapsed_s:.1f} a second; {sum(spent.values()):.1f} ms of CPU each")
    return {
        "per_s": count / elapsed_s,
        # A compact service runs the model in the router's process.
        "cpu_ms": sum(apart) if apart else None,
        "cpu_ms_of_all": sum(spent.values()),
    }


def _cpu_s() -> Mapping[str, float]:
    """Return the seconds of processors that each deployment took so far, of a service that was started for this."""
    found: dict[str, float] = {}
    for item in processes():
        name = deployment_of(item) or item.command.split(" ")[0].rpartition("/")[2]
        fields = Path(f"/proc/{item.pid}/stat").read_text().rpartition(")")[2].split()
        found[name] = found.get(name, 0.0) + (int(fields[11]) + int(fields[12])) * TICK_S
    return found


def _table(models: Mapping[str, Json]) -> Table:
    columns = ("question ms", "CPU ms", "of 16", "passages/s", "long/s", "load s", "MB", "cosine")
    lengths = (f"of {length}" for length in LENGTHS)
    shown = table("The model alone; last, tokens a second of one processor by length", "runtime", *columns, *lengths)
    for name, model in models.items():
        keys = ("query_ms", "query_cpu_ms", "query_cpu_ms_of_16", "passages_per_s", "long_messages_per_s", "load_s")
        row = [f"{model[key]:.1f}" for key in keys] + [f"{model['rss_mb']:.0f}", f"{model['cosine']:.4f}"]
        shown.add_row(name, *row, *(f"{model['tokens_per_cpu_s'][str(length)]:.0f}" for length in LENGTHS))
    return shown


def _writes(found: Json, limit: Json) -> Table:
    shown = table("Through the service", "what", "a second", "of the limit", "CPU ms of the embedder", "of all")
    for what in (*WRITTEN, "query"):
        share = f"{found[f'{what}_per_s'] / limit[f'{what}_per_s']:.2f}" if what in WRITTEN else ""
        figures = (
            "within" if value is None else f"{value:.1f}"
            for value in (found[f"{what}_{key}"] for key in ("per_s", "cpu_ms", "cpu_ms_of_all"))
        )
        rate, *cpu = figures
        shown.add_row(what.replace("_", " "), rate, share, *cpu)
    return shown
