"""The maintenance jobs by size: rows a second, growth, memory, statements, and searches beside them.

Each size has a database of its own, without the indexes of vectors and words: of a million notes they would take
an hour, and no job asks them. What they cost the sweep is a figure of its own, at the smallest size. Workers run as
nice as everything else, so that what else the machine does counts the same at each size; beside the service they
stand back, as by default. Vectors are hashed words.
"""

import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from benchmarks.counted_service import counting_postgres
from benchmarks.job_adds import measure_adds
from benchmarks.job_runs import Cost, JobBench
from benchmarks.job_traffic import measure_traffic
from benchmarks.report import publish, table
from lamina.core.runs import JobName
from lamina.errors import InvalidInput
from lamina.wiring.jobs import JOBS

SIZES = "10000,100000,1000000"
LEAST_NOTES = 100
# Of every size, in this order: what the last one takes away the others have seen.
ROW_JOBS: tuple[JobName, ...] = ("decay", "sweep", "entities", "edges", "dedup")
# Of notes that no other job has seen, and of fewer: they make texts, and their time is that of embeddings.
MAKING_JOBS: tuple[JobName, ...] = ("summaries", "consolidation", "compaction")
MOST_NOTES = 10_000
MANY_ROWS = 50_000
LIMITS: Mapping[str, float] = {
    "growth": 1.2,
    "memory_growth": 1.2,
    "statements_per_1000_rows": 50.0,
    "p95_ratio": 1.5,
    "add_ratio": 2.0,
}

Json = dict[str, Any]
# What each job took, by size, the smallest first.
Costs = Mapping[JobName, Mapping[int, Cost]]


def measure(
    sizes: Annotated[str, typer.Option(help="Numbers of notes, separated by commas.")] = SIZES,
    jobs: Annotated[str, typer.Option(help="Jobs, separated by commas; if none, all that are measured.")] = "",
    scopes: Annotated[int, typer.Option(min=1, help="Namespaces over which the notes are spread.")] = 8,
    traffic: Annotated[
        int, typer.Option(min=0, help="Notes beside which adds and searches are measured; 0 leaves them out.")
    ] = 100_000,
    *,
    in_process: Annotated[bool, typer.Option("--in-process", help="Workers are tasks here instead of Ray's.")] = False,
) -> None:
    """Measure the jobs at each size, then a service's searches and writes beside them."""
    wanted, names = chosen_sizes(sizes), chosen_jobs(jobs)
    with (
        tempfile.TemporaryDirectory(prefix="lamina-benchmark-") as folder,
        counting_postgres(Path(folder) / "postgres") as server,
    ):
        place = JobBench(Path(folder), server, scopes, is_in_process=in_process)
        costs = _all_costs(place, wanted, names)
        indexed = place.costs(wanted[0], ["sweep"], is_searched=True)["sweep"] if "sweep" in names else None
        beside = {**measure_adds(place, traffic), **measure_traffic(place, traffic)} if traffic else {}
    found = figures(costs, indexed, beside)
    publish(_tables(found), found)


def _all_costs(place: JobBench, sizes: list[int], names: list[JobName]) -> Costs:
    by_size = {size: _costs(place, size, names) for size in sizes}
    return {name: {size: costs[name] for size, costs in by_size.items() if name in costs} for name in names}


def _costs(place: JobBench, size: int, names: list[JobName]) -> dict[JobName, Cost]:
    groups = [
        [name for name in group if name in names and is_measured(name, size)] for group in (ROW_JOBS, MAKING_JOBS)
    ]
    return {name: cost for group in groups if group for name, cost in place.costs(size, group).items()}


def chosen_sizes(listed: str) -> list[int]:
    """Return the sizes, the smallest first.

    Raises:
        InvalidInput: If one is no number, or too small.
    """
    try:
        sizes = sorted({int(size) for size in listed.split(",")})
    except ValueError as error:
        raise InvalidInput("sizes", f"are {listed!r}; write whole numbers, separated by commas") from error
    if sizes[0] < LEAST_NOTES:
        raise InvalidInput("sizes", f"begin with {sizes[0]}; measure at least {LEAST_NOTES} notes")
    return sizes


def chosen_jobs(listed: str) -> list[JobName]:
    """Return the jobs that are named, all if none is, in the order in which they are measured.

    Raises:
        InvalidInput: If one is not measured.
    """
    there = [name for name in (*ROW_JOBS, *MAKING_JOBS) if name in JOBS]
    wanted = {name.strip() for name in listed.split(",")} if listed else set(there)
    unknown = sorted(wanted - set(there))
    if unknown:
        raise InvalidInput("jobs", f"name {', '.join(unknown)}; choose from {', '.join(there)}")
    return [name for name in there if name in wanted]


def is_measured(job: JobName, size: int) -> bool:
    """Tell whether the job is measured at this size."""
    return job in ROW_JOBS or size <= MOST_NOTES


def figures(costs: Costs, indexed: Cost | None, beside: Json) -> Json:
    """Return all figures with their limits, those beyond a limit, and whether there are none.

    Args:
        costs: What each job took.
        indexed: What the sweep took with every index, at the smallest size.
        beside: What a service's users noticed.
    """
    jobs = {name: _by_size(by_size) for name, by_size in costs.items()}
    beyond = [*_jobs_beyond(jobs), *_beyond(beside, "")]
    with_indexes = {"sweep_with_indexes": indexed.figures()} if indexed is not None else {}
    return {"jobs": jobs, **with_indexes, **beside, "limits": dict(LIMITS), "beyond": beyond, "ok": not beyond}


def _by_size(by_size: Mapping[int, Cost]) -> dict[str, Json]:
    growths = {size: _growth(by_size[smaller], by_size[size]) for smaller, size in pairwise(by_size)}
    return {str(size): cost.figures() | growths.get(size, {}) for size, cost in by_size.items()}


def _growth(smaller: Cost, cost: Cost) -> Json:
    return {
        "growth": cost.row_s / smaller.row_s,
        "cpu_growth": cost.row_cpu_s / smaller.row_cpu_s,
        "memory_growth": cost.peak_mb / smaller.peak_mb,
    }


def _jobs_beyond(jobs: Mapping[JobName, Mapping[str, Json]]) -> list[str]:
    return [
        line
        for name, by_size in jobs.items()
        for size, row in by_size.items()
        for line in _beyond({key: row[key] for key in row if _is_limited(name, key, row["seen"])}, f"{name} {size} ")
    ]


def _is_limited(job: JobName, key: str, seen: int) -> bool:
    """Tell whether a figure has a limit: a summary may take many statements, and so may the partitions of a run."""
    return key != "statements_per_1000_rows" or (job in ROW_JOBS and seen >= MANY_ROWS)


def _beyond(found: Json, prefix: str) -> list[str]:
    return [f"{prefix}{key}" for key, limit in LIMITS.items() if key in found and found[key] > limit]


def _tables(found: Json) -> list[Table]:
    shown = [_jobs_table(found)]
    return [*shown, _beside_table(found)] if "p95_ratio" in found else shown


def _jobs_table(found: Json) -> Table:
    title = f"Growth is of seconds a row from the size before, at most {LIMITS['growth']}"
    columns = ("job", "notes", "seen", "changed", "seconds", "rows/s", "growth", "of CPU", "statements/1000", "peak MB")
    shown = table(title, *columns)
    for name, size, row in _rows(found):
        growths = (f"{row[key]:.2f}" if key in row else "-" for key in ("growth", "cpu_growth"))
        shown.add_row(
            name,
            size,
            str(row["seen"]),
            str(row["changed"]),
            f"{row['seconds']:.1f}",
            f"{row['rows_per_s']:.0f}",
            *growths,
            f"{row['statements_per_1000_rows']:.1f}",
            f"{row['peak_mb']:.0f}",
        )
    return shown


def _rows(found: Json) -> list[tuple[str, str, Json]]:
    rows = [(name, size, row) for name, by_size in found["jobs"].items() for size, row in by_size.items()]
    indexed = found.get("sweep_with_indexes")
    return [*rows, ("sweep, every index", "smallest", indexed)] if indexed else rows


def _beside_table(found: Json) -> Table:
    shown = table("Adds beside few and many notes, searches without and beside the sweep", "figure", "value", "limit")
    for name, value in found.items():
        if isinstance(value, float | int) and not isinstance(value, bool):
            shown.add_row(name, f"{value:.2f}", f"{LIMITS[name]:.1f}" if name in LIMITS else "")
    return shown
