"""A run in words."""

from collections.abc import Iterator

from lamina.core.runs import Held, Run, RunState

SHOWN = 20


def report(run: Run, told: str) -> Iterator[str]:
    """Yield the lines that tell an operator what a run did, and what to do about what it did not.

    Args:
        run: The run.
        told: What the job does, in a line.
    """
    counts, order = run.counts, run.order
    kind = " (dry run)" if order.is_dry_run else ""
    yield f"{order.job}{kind} on {order.area}: {run.state}; {told}"
    yield f"  run      {run.id}"
    yield f"  units    {counts.units} of {run.plan.get('units', 0)}"
    yield f"  seen     {counts.seen}"
    yield _changed(run)
    if not run.plan.get("units", 0) and not run.is_open:
        yield "  nothing is there; look whether the scope is written right"
    if run.duration is not None:
        yield f"  took     {run.duration.total_seconds():.1f} s"
    yield from _held(run)
    yield from _problems(run)
    if run.error:
        yield f"  failed   {run.error}"
    if run.state in {RunState.DONE, RunState.STOPPED} and not order.is_dry_run and counts.changed:
        yield f"  undo     {_undo(run)}"


def _changed(run: Run) -> str:
    counts = run.counts
    if run.undone is not None:
        return f"  undone   {run.undone.changed} of {run.undone.seen} rows are as they were; others changed them since"
    if run.order.is_dry_run:
        return f"  would    change {counts.planned}, and take {counts.removed} of them out of searches"
    return f"  changed  {counts.changed} of {counts.planned} planned, {counts.removed} of them taken out of searches"


def _undo(run: Run) -> str:
    by_service = run.order.area.tenant is not None and run.order.job != "reembed"
    return f"lamina jobs undo {run.id}" if by_service else f"python -m jobs {run.order.job} --undo {run.id}"


def _held(run: Run) -> Iterator[str]:
    if not run.held:
        return
    yield f"stopped at {_many(len(run.held), 'scope')}, unchanged, for too much would go; --force does it anyway:"
    yield from (f"  {_where(held)}: {held.removals} of {held.size} rows" for held in run.held[:SHOWN])
    if len(run.held) > SHOWN:
        yield f"  and {len(run.held) - SHOWN} more"


def _where(held: Held) -> str:
    ids = {"tenant": held.tenant, "workspace": held.workspace, "namespace": held.namespace}
    return " ".join(f"{level}={id_}" for level, id_ in ids.items() if id_ is not None)


def _problems(run: Run) -> Iterator[str]:
    if not run.problems:
        return
    yield f"{_many(len(run.problems), 'thing')} could not be done; the next run tries again:"
    yield from (f"  {problem}" for problem in run.problems[:SHOWN])
    if len(run.problems) > SHOWN:
        yield f"  and {len(run.problems) - SHOWN} more"


def _many(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"
