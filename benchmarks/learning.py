"""Procedures learnt from real agent runs: earlier trials of tasks teach them, and the later trial asks for them.

Each task was run in four trials. The first three teach, one after the other, as turns with tool calls and an outcome,
each followed by the job `learning`; the last asks. Nobody states or confirms a procedure: those are active that enough
runs succeeded with.

A later run finds a procedure if the first match of its first message was taught by a run of its own task. False are
the later runs whose first match was taught by runs of other tasks alone, and active procedures whose runs failed as
often as they succeeded.

Source:
    Yao et al., tau-bench, 2024, as in `procedures`.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.table import Table

from benchmarks.agent_runs import FILE, read_items
from benchmarks.options import KeyOption, UrlOption
from benchmarks.report import publish, stage, table
from benchmarks.service import Endpoint, service
from benchmarks.timing import run_all
from lamina.client import AsyncClient
from lamina.errors import Misconfigured

RESULT_CHARS = 200
POLL_S = 0.5
MOST_POLLS = 600
STATES = ("proposed", "active", "dropped")
LEAST_SCORES = (0.0, 0.3, 0.4, 0.5)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TrialRun:
    """One run of a task.

    Args:
        task: Which task.
        trial: Which of its runs, from 0.
        reward: 0 or 1.
        asked: What the user said first.
        calls: The tools that were called, as a turn takes them.
    """

    task: int
    trial: int
    reward: float
    asked: str
    calls: tuple[Json, ...]

    def turn(self) -> Json:
        """Return it as a turn with its outcome, all but the messages."""
        return {"session": f"{self.task}/{self.trial}", "tool_calls": self.calls, "outcome": {"score": self.reward}}


@dataclass(frozen=True, slots=True)
class FirstMatch:
    """The first match of a later run: its score, and whether a run of the same task taught it."""

    score: float
    is_own: bool


def measure(
    data: Annotated[Path, typer.Option("--data", help=f"Folder of {FILE}.")],
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 4,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Measure which procedures earlier runs teach, and whether later runs of the same tasks find them."""
    runs = load(data)  # A wrong folder shows before a service is started.
    with service(url, key, LAMINA_JOBS__IS_SCHEDULED="false") as endpoint:
        shown, figures = asyncio.run(_run(endpoint, runs, concurrency))
    publish(shown, {"learning": figures})


def load(folder: Path) -> tuple[TrialRun, ...]:
    """Read the runs; see :func:`benchmarks.agent_runs.read_items`."""
    return tuple(map(_read, read_items(folder, "--data")))


def _read(item: Json) -> TrialRun:
    asked = next(message["content"] for message in item["traj"] if message["role"] == "user")
    results = {message["tool_call_id"]: message["content"] for message in item["traj"] if message["role"] == "tool"}
    calls = [
        {
            "name": call["function"]["name"],
            "arguments": call["function"]["arguments"],
            "result": (results.get(call["id"]) or "")[:RESULT_CHARS],
        }
        for message in item["traj"]
        for call in message.get("tool_calls") or ()
    ]
    return TrialRun(item["task_id"], item["trial"], float(item["reward"]), asked, tuple(calls))


async def _run(endpoint: Endpoint, runs: Sequence[TrialRun], concurrency: int) -> tuple[list[Table], Json]:
    workspace = f"learning-{uuid4().hex[:8]}"
    last = max(run.trial for run in runs)
    async with AsyncClient(*endpoint) as client:
        for trial in range(last):
            await _teach(client, workspace, [run for run in runs if run.trial == trial])
            stage(f"trial {trial} has taught")
        learnt = {
            state: (await client.learnt_procedures(workspace=workspace, state=state, limit=1000))["procedures"]
            for state in STATES
        }
        tasks = {item["id"]: await _tasks_of(client, item["id"]) for found in learnt.values() for item in found}
        later = [run for run in runs if run.trial == last]
        answers = await run_all(
            later, lambda run: client.match_procedures(run.asked, workspace=workspace, limit=1), concurrency=concurrency
        )
        stage(f"{len(later)} later runs have asked")
    firsts = [_first(run, answer["matches"], tasks) for run, answer in zip(later, answers, strict=True)]
    failed = sum(item["failures"] >= item["successes"] for item in learnt["active"])
    taught = {run.task for run in runs if run.trial < last and run.reward}
    figures = {
        "runs": len(runs),
        "proposed": len(tasks),
        "confirmed": len(learnt["active"]),
        "found_in_later_runs": sum(first is not None and first.is_own for first in firsts),
        "false": sum(first is not None and not first.is_own for first in firsts) + failed,
    }
    return [_learnt_table(learnt, tasks), _later_table(later, firsts, taught)], figures


async def _teach(client: AsyncClient, workspace: str, runs: Sequence[TrialRun]) -> None:
    for run in runs:  # One after the other: the earliest proposes.
        await client.record([{"content": run.asked}], workspace=workspace, **run.turn())
    ordered = await client.run_job("learning", workspace=workspace)
    report = await client.job_run(ordered["id"])
    for _ in range(MOST_POLLS):
        if report["state"] not in {"queued", "running"}:
            break
        await asyncio.sleep(POLL_S)
        report = await client.job_run(ordered["id"])
    if report["state"] != "done" or report["problems"]:
        raise Misconfigured(f"the job learning ended as {report['state']}: {report['problems']}", "look into its log")


async def _tasks_of(client: AsyncClient, id_: str) -> frozenset[int]:
    """Return the tasks whose runs taught a procedure."""
    turns = (await client.evidence(id_, limit=1000))["turns"]
    return frozenset(int(turn["session"].partition("/")[0]) for turn in turns)


def _first(run: TrialRun, matches: Sequence[Json], tasks: Mapping[str, frozenset[int]]) -> FirstMatch | None:
    return FirstMatch(matches[0]["score"], run.task in tasks[matches[0]["id"]]) if matches else None


def _learnt_table(learnt: Mapping[str, Sequence[Json]], tasks: Mapping[str, frozenset[int]]) -> Table:
    shown = table("Learnt procedures", "state", "procedures", "successes", "failures", "taught by several tasks")
    for state, found in learnt.items():
        counts = Counter({name: sum(item[name] for item in found) for name in ("successes", "failures")})
        several = sum(len(tasks[item["id"]]) > 1 for item in found)
        shown.add_row(state, *map(str, (len(found), counts["successes"], counts["failures"], several)))
    return shown


def _later_table(later: Sequence[TrialRun], firsts: Sequence[FirstMatch | None], taught: AbstractSet[int]) -> Table:
    possible = sum(run.task in taught for run in later)
    title = f"Later runs: {len(later)}, of which {possible} are of a task that an earlier run succeeded in"
    shown = table(title, "least score", "own task first", "another task first", "nothing")
    for least in LEAST_SCORES:
        seen = [first for first in firsts if first is not None and first.score >= least]
        own = sum(first.is_own for first in seen)
        shown.add_row(f"{least:.1f}", str(own), str(len(seen) - own), str(len(later) - len(seen)))
    return shown
