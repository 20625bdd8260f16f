"""Real agent runs: whether a new run finds the procedures that worked in earlier runs of the same task.

Each task was run in four trials. In turn one trial asks, and the other three have taught: a
procedure a run, whose trigger is the first thing its user said and whose action is the tools
that were called. It is asked twice, before and after the rewards are reported as outcomes.

Source:
    Yao et al., tau-bench, 2024. The folder holds `gpt-4o-airline.json.gz`, 50 tasks of an airline's customers.
"""

import asyncio
import gzip
import json
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.table import Table

from benchmarks.options import KeyOption, UrlOption
from benchmarks.report import publish, stage, table
from benchmarks.service import Endpoint, service
from benchmarks.timing import Latencies, Timed, run_all, timed
from lamina.client import AsyncClient
from lamina.errors import Misconfigured
from lamina.text.words import words

FILE = "gpt-4o-airline.json.gz"
MATCH_LIMIT = 1000  # All that matches, so that other orders of the same matches can be compared.
HIT_DEPTHS = (1, 3)
BM25_K1, BM25_B = 1.5, 0.75

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a task.

    Args:
        task: Which task.
        trial: Which of its runs, from 0.
        succeeded: Whether it earned its reward.
        asked: What the user said first.
        action: The tools that were called, in order.
    """

    task: int
    trial: int
    succeeded: bool
    asked: str
    action: str

    @property
    def name(self) -> str:
        """Return a name that no other run has."""
        return f"{self.task}-{self.trial}"

    def procedure(self) -> Json:
        """Return its procedure, as `POST /v1/procedures/batch` takes it."""
        return {"trigger": self.asked, "action": self.action, "metadata": {"task": self.task}}


@dataclass(frozen=True, slots=True)
class Fold:
    """A trial that asks, the earlier runs that taught, and the ids of their procedures, run by run."""

    workspace: str
    asking: tuple[Run, ...]
    taught: tuple[Run, ...]
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedProcedure:
    """One place of a ranking: of which task the procedure is, and whether it worked more often than not."""

    task: int
    worked: bool


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A question's task and its ranking, best first."""

    task: int
    ranking: tuple[RankedProcedure, ...]

    def is_hit(self, depth: int) -> bool:
        """Tell whether the task is among the first places."""
        return any(place.task == self.task for place in self.ranking[:depth])

    def own(self) -> tuple[RankedProcedure, ...]:
        """Return the places of its own task."""
        return tuple(place for place in self.ranking if place.task == self.task)

    def has_choice(self) -> bool:
        """Report whether a procedure that worked and one that failed compete."""
        return len({place.worked for place in self.own()}) > 1


def measure(
    agent_runs: Annotated[Path, typer.Option("--agent-runs", help=f"Folder of {FILE}.")],
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 4,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Measure whether a run finds the procedures that worked in earlier runs of its task."""
    runs = load(agent_runs)  # A wrong folder shows before a service is started.
    with service(url, key) as endpoint:
        found = asyncio.run(_run(endpoint, runs, concurrency))
    publish((_table(found),), {"procedures": found})


def load(folder: Path) -> tuple[Run, ...]:
    """Read the runs; see :func:`read_items`."""
    return tuple(map(_read, read_items(folder, "--agent-runs")))


def read_items(folder: Path, option: str) -> list[Json]:
    """Read the runs as the data set has them.

    Raises:
        Misconfigured: If the folder, which the option names, does not hold them.
    """
    try:
        with gzip.open(folder / FILE) as file:
            items: list[Json] = json.load(file)
    except FileNotFoundError as error:
        raise Misconfigured(f"{error.filename} does not exist", f"name its folder with {option}") from error
    return items


def _read(item: Json) -> Run:
    asked = next(message["content"] for message in item["traj"] if message["role"] == "user")
    return Run(item["task_id"], item["trial"], item["reward"] >= 1, asked, _action(item["traj"]))


def _action(messages: Sequence[Json]) -> str:
    names = [call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()]
    steps = ((name, len(list(calls))) for name, calls in groupby(names))
    return (
        ", then ".join(f"{name} × {count}" if count > 1 else name for name, count in steps) or "answer without a tool"
    )


def _folds(runs: Sequence[Run]) -> Iterator[Fold]:
    prefix = f"runs-{uuid4().hex[:8]}"
    for trial in sorted({run.trial for run in runs}):
        asking = tuple(run for run in runs if run.trial == trial)
        yield Fold(f"{prefix}-{trial}", asking, tuple(run for run in runs if run.trial != trial))


async def _run(endpoint: Endpoint, runs: Sequence[Run], concurrency: int) -> Json:
    async with AsyncClient(*endpoint) as client:
        begin = time.perf_counter()
        folds = [await _teach(client, fold) for fold in _folds(runs)]
        taught_s = time.perf_counter() - begin
        stage(f"{sum(len(fold.taught) for fold in folds)} procedures taught in {taught_s:.1f} s")
        untried = await _ask(client, folds, concurrency)
        stage(f"{len(untried)} questions asked before any outcome")
        await _report(client, folds, concurrency)
        reinforced = await _ask(client, folds, concurrency)
        stage(f"{len(reinforced)} questions asked after the outcomes")
    return _figures(folds, untried, reinforced) | {"taught_per_s": sum(len(fold.taught) for fold in folds) / taught_s}


async def _teach(client: AsyncClient, fold: Fold) -> Fold:
    procedures = [run.procedure() for run in fold.taught]
    answer = await client.add_procedures(procedures, workspace=fold.workspace)
    return Fold(fold.workspace, fold.asking, fold.taught, tuple(item["id"] for item in answer["results"]))


async def _report(client: AsyncClient, folds: Sequence[Fold], concurrency: int) -> None:
    reports = [pair for fold in folds for pair in zip(fold.ids, fold.taught, strict=True)]
    await run_all(
        reports,
        lambda pair: client.report_outcome(pair[0], succeeded=pair[1].succeeded, run=pair[1].name),
        concurrency=concurrency,
    )


async def _ask(client: AsyncClient, folds: Sequence[Fold], concurrency: int) -> list[Timed[Json]]:
    questions = [(fold.workspace, run.asked) for fold in folds for run in fold.asking]
    return await run_all(
        questions,
        lambda pair: timed(client.match_procedures(pair[1], workspace=pair[0], limit=MATCH_LIMIT)),
        concurrency=concurrency,
    )


def _figures(folds: Sequence[Fold], untried: Sequence[Timed[Json]], reinforced: Sequence[Timed[Json]]) -> Json:
    asked = [(fold, run) for fold in folds for run in fold.asking]
    worked = {fold.workspace: _worked(fold) for fold in folds}
    before = [reply.value["matches"] for reply in untried]
    after = [reply.value["matches"] for reply in reinforced]
    rankings = {
        "reinforced": [_judge(*pair, matches, worked) for pair, matches in zip(asked, after, strict=True)],
        "untried": [_judge(*pair, matches, worked) for pair, matches in zip(asked, before, strict=True)],
        "vectors alone": [
            _judge(*pair, _by_cosine(matches), worked) for pair, matches in zip(asked, before, strict=True)
        ],
        "BM25 alone": [_judge(*pair, _by_bm25(*pair), worked) for pair in asked],
    }
    latencies = Latencies.of([reply.elapsed_ms for reply in (*untried, *reinforced)])
    return {
        **{name.lower().replace(" ", "_"): _scores(judged) for name, judged in rankings.items()},
        "chance_worked_first": _chance(rankings["reinforced"]),
        "first_by_stage": dict(Counter(matches[0]["stage"] for matches in after if matches)),
        "questions": len(asked),
        "questions_with_a_choice": sum(judged.has_choice() for judged in rankings["reinforced"]),
        "match_limit": MATCH_LIMIT,
        "match_p50_ms": latencies.p50_ms,
        "match_p95_ms": latencies.p95_ms,
        "degraded": sum(bool(reply.value["degraded"]) for reply in (*untried, *reinforced)),
    }


def _worked(fold: Fold) -> Mapping[str, bool]:
    """Return for each procedure whether most of the runs that taught it succeeded."""
    balance: Counter[str] = Counter()
    for id_, run in zip(fold.ids, fold.taught, strict=True):
        balance[id_] += 1 if run.succeeded else -1
    return {id_: count > 0 for id_, count in balance.items()}


def _judge(fold: Fold, run: Run, matches: Sequence[Json], worked: Mapping[str, Mapping[str, bool]]) -> JudgedRun:
    known = worked[fold.workspace]
    return JudgedRun(
        run.task, tuple(RankedProcedure(match["metadata"]["task"], known[match["id"]]) for match in matches)
    )


def _by_cosine(matches: Sequence[Json]) -> list[Json]:
    return sorted(matches, key=lambda match: -match["figures"].get("cosine", 0.0))


def _by_bm25(fold: Fold, run: Run) -> list[Json]:
    """Rank the procedures by the words of their triggers.

    Source:
        Robertson and Zaragoza, 2009, with the usual k1 of 1.5 and b of 0.75.
    """
    texts = [words(taught.asked) for taught in fold.taught]
    mean = sum(map(len, texts)) / len(texts)
    frequency = Counter(word for text in texts for word in set(text))

    def score(text: Sequence[str]) -> float:
        counts = Counter(text)
        norm = BM25_K1 * (1 - BM25_B + BM25_B * len(text) / mean)
        return sum(
            math.log(1 + (len(texts) - frequency[word] + 0.5) / (frequency[word] + 0.5))
            * counts[word]
            * (BM25_K1 + 1)
            / (counts[word] + norm)
            for word in set(words(run.asked))
        )

    scores = [score(text) for text in texts]
    order = sorted((place for place, figure in enumerate(scores) if figure > 0), key=lambda place: -scores[place])
    return [{"id": fold.ids[place], **fold.taught[place].procedure()} for place in order]


def _scores(judged: Sequence[JudgedRun]) -> Json:
    choices = [item.own()[0].worked for item in judged if item.has_choice()]
    hits = {f"hit_at_{depth}": _share([item.is_hit(depth) for item in judged]) for depth in HIT_DEPTHS}
    return {**hits, "worked_first": _share(choices)}


def _chance(judged: Sequence[JudgedRun]) -> float:
    """Return how often a procedure that worked would be first by chance."""
    shares = [_share([place.worked for place in item.own()]) for item in judged if item.has_choice()]
    return sum(shares) / max(1, len(shares))


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / max(1, len(flags))


def _table(found: Json) -> Table:
    title = (
        f"Agent runs: {found['questions']} questions, {found['questions_with_a_choice']} with a choice "
        f"(by chance {_percent(found['chance_worked_first'])})"
    )
    shown = table(title, "ranking", "same task first", "among three", "what worked first")
    for name in ("reinforced", "untried", "vectors_alone", "bm25_alone"):
        shown.add_row(name.replace("_", " "), *(_percent(share) for share in found[name].values()))
    return shown


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
