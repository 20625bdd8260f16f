"""The report of a run, in words."""

from collections.abc import Iterator

from lamina.core.runs import NOT_UNDONE, Run, RunState

SHOWN = 20


def report(run: Run, purpose: str) -> Iterator[str]:
    """Yield the lines of a run's report, with commands for its skipped scopes and for its undo.

    Args:
        run: The run.
        purpose: The purpose of its job, in a line.
    """
    counts, order = run.counts, run.order
    kind = " (dry run)" if order.is_dry_run else ""
    yield f"{order.job}{kind} on {order.area}: {run.state}; {purpose}"
    yield f"  run      {run.id}"
    yield f"  units    {counts.units} of {run.plan.get('units', 0)}"
    yield f"  seen     {counts.seen}"
    yield _describe_changes(run)
    if not run.plan.get("units", 0) and not run.is_open:
        yield "  nothing is there; look whether the scope is written right"
    if run.duration is not None:
        yield f"  took     {run.duration.total_seconds():.1f} s"
    yield from _describe_skipped(run)
    yield from _describe_problems(run)
    if run.error:
        yield f"  failed   {run.error}"
    is_undoable = order.job not in NOT_UNDONE and not order.is_dry_run
    if is_undoable and run.state in {RunState.DONE, RunState.STOPPED} and counts.changed:
        by_service = order.area.tenant is not None and order.job != "reembed"
        command = f"lamina jobs undo {run.id}" if by_service else f"python -m jobs {order.job} --undo {run.id}"
        yield f"  undo     {command}"


def _describe_changes(run: Run) -> str:
    counts = run.counts
    if run.undone is not None:
        return f"  undone   {run.undone.changed} of {run.undone.seen} rows are as they were; others changed them since"
    if run.order.is_dry_run:
        return f"  would    change {counts.planned}, and take {counts.removed} of them out of searches"
    return f"  changed  {counts.changed} of {counts.planned} planned, {counts.removed} of them taken out of searches"


def _describe_skipped(run: Run) -> Iterator[str]:
    if not run.held:
        return
    yield f"stopped at {_counted(len(run.held), 'scope')}, unchanged, for too much would go; --force does it anyway:"
    for skipped in run.held[:SHOWN]:
        ids = {"tenant": skipped.tenant, "workspace": skipped.workspace, "namespace": skipped.namespace}
        scope = " ".join(f"{level}={id_}" for level, id_ in ids.items() if id_ is not None)
        yield f"  {scope}: {skipped.removals} of {skipped.size} rows"
    if len(run.held) > SHOWN:
        yield f"  and {len(run.held) - SHOWN} more"


def _describe_problems(run: Run) -> Iterator[str]:
    if not run.problems:
        return
    yield f"{_counted(len(run.problems), 'thing')} could not be done; the next run tries again:"
    yield from (f"  {problem}" for problem in run.problems[:SHOWN])
    if len(run.problems) > SHOWN:
        yield f"  and {len(run.problems) - SHOWN} more"


def _counted(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"
