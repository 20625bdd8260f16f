"""How soon after its acknowledgement a note is found by the asynchronous index."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.table import Table

from benchmarks.options import KeyOption, UrlOption
from benchmarks.report import publish, stage, table
from benchmarks.service import Endpoint, service
from benchmarks.timing import Latencies, timed
from lamina.client import AsyncClient
from lamina.errors import Unavailable

SOURCE = "notes_hybrid"
LIMIT_MS = 50.0
WARM_UP_NOTES = 5
PAUSE_S = 0.05  # Low load: the indexer is idle again when the next note comes.
VISIBLE_DEADLINE_S = 30.0

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Freshness:
    """Measured delays and search times.

    Args:
        visible_ms: From each note's acknowledgement to the answer that has it; at least one search long.
        polls: How many searches that took.
        search_ms: Durations of single searches that had nothing to wait for.
    """

    visible_ms: tuple[float, ...]
    polls: tuple[int, ...]
    search_ms: tuple[float, ...]


def measure(
    notes: Annotated[int, typer.Option(min=1, help="How many notes of each number of writers.")] = 200,
    writers: Annotated[
        list[int] | None, typer.Option(min=1, max=256, help="Writers at the same time; may be repeated. 1 by default.")
    ] = None,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Measure the time until a note is visible in the index, at low load or while others write, too."""
    with service(url, key) as endpoint:
        found = [_figures(asyncio.run(_run(endpoint, notes, number)), number) for number in writers or (1,)]
    rest = {f"freshness_{figures['writers']}_writers": figures for figures in found[1:]}
    publish([_table(figures) for figures in found], {"freshness": found[0], **rest})


async def _run(endpoint: Endpoint, notes: int, writers: int) -> Freshness:
    scope = {"workspace": f"freshness-{uuid4().hex[:8]}"}
    async with AsyncClient(*endpoint, scope=scope) as client:
        for _ in range(WARM_UP_NOTES):
            await _write_and_find(client, _content())
        contents = [_content() for _ in range(notes)]
        parts = [contents[number::writers] for number in range(writers)]
        lists = await asyncio.gather(*(_write_and_find_all(client, part) for part in parts))
        seen = [one for found in lists for one in found]
        stage(f"{notes} notes written and found by {writers} writers")
        alone = [(await timed(_search(client, content))).elapsed_ms for content in contents]
    return Freshness(tuple(ms for ms, _ in seen), tuple(polls for _, polls in seen), tuple(alone))


def _content() -> str:
    """Return a note's text, which as a query finds that note before all others, by words and by meaning."""
    return f"The parcel t{uuid4().hex} arrived at the depot in good order."


async def _write_and_find_all(client: AsyncClient, contents: Sequence[str]) -> list[tuple[float, int]]:
    return [await _write_and_find(client, content) for content in contents]


async def _write_and_find(client: AsyncClient, content: str) -> tuple[float, int]:
    """Write a note and return the milliseconds until a search has it, and how many searches that took."""
    await asyncio.sleep(PAUSE_S)
    stored = await client.add(content)
    begin = time.perf_counter()
    polls = 1
    while not _found(await _search(client, content), stored["id"]):
        polls += 1
        if time.perf_counter() - begin > VISIBLE_DEADLINE_S:
            raise Unavailable(SOURCE, f"note {stored['id']} is not visible after {VISIBLE_DEADLINE_S:.0f} s")
    return (time.perf_counter() - begin) * 1000, polls


async def _search(client: AsyncClient, content: str) -> Json:
    return await client.search(content, tiers=["notes"], explain=True)


def _found(answer: Json, id_: str) -> bool:
    return any(hit["id"] == id_ and SOURCE in hit["explain"] for hit in answer["results"])


def _figures(found: Freshness, writers: int) -> Json:
    visible, search = Latencies.of(found.visible_ms), Latencies.of(found.search_ms)
    return {
        "p50_ms": visible.p50_ms,
        "p95_ms": visible.p95_ms,
        "max_ms": visible.max_ms,
        "search_p50_ms": search.p50_ms,
        "beyond_a_search_p50_ms": visible.p50_ms - search.p50_ms,
        "ratio_to_limit": visible.p95_ms / LIMIT_MS,
        "limit_ms": LIMIT_MS,
        "within_limit": sum(ms <= LIMIT_MS for ms in found.visible_ms) / len(found.visible_ms),
        "mean_polls": sum(found.polls) / len(found.polls),
        "notes": len(found.visible_ms),
        "writers": writers,
    }


def _table(figures: Json) -> Table:
    title = f"Freshness: acknowledgement to visible in {SOURCE}, limit {LIMIT_MS:.0f} ms: "
    title += f"{figures['notes']} notes, {figures['writers']} writers"
    shown = table(title, "", "ms", "of the limit")
    for name in ("p50_ms", "p95_ms", "max_ms", "search_p50_ms"):
        label = "p50 of one search alone" if name == "search_p50_ms" else name.removesuffix("_ms")
        shown.add_row(label, f"{figures[name]:.1f}", f"{figures[name] / LIMIT_MS:.2f}")
    shown.add_row("p50 beyond that search", f"{figures['beyond_a_search_p50_ms']:.1f}", "")
    shown.add_row("notes within the limit", "", f"{figures['within_limit']:.1%}")
    return shown
