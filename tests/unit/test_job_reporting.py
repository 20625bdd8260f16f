from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from lamina.cli.jobs import exit_code
from lamina.core.areas import Area
from lamina.core.runs import Order, Run, RunCounts, RunState, SkippedScope
from lamina.maintenance.report import SHOWN, report

ID = UUID(int=7)
START = datetime(2026, 7, 30, 12, 0, tzinfo=UTC)
TOLD = "demotes warm notes"


def run_of(area: Area | None = None, *, is_dry_run: bool = False, **fields: Any) -> Run:
    order = Order("sweep", Area("acme") if area is None else area, START, is_dry_run=is_dry_run)
    told = {
        "state": RunState.DONE,
        "started_at": START,
        "finished_at": START + timedelta(seconds=2.5),
        "plan": {"units": 4, "partitions": 2},
        "counts": RunCounts(units=4, seen=90, planned=12, changed=11, removed=3),
        **fields,
    }
    return Run(ID, order, created_at=START, **told)


def held(number: int) -> SkippedScope:
    return SkippedScope("acme", "docks", f"n{number}", size=10, removals=4)


def test_a_report_tells_what_a_run_did_and_how_it_goes_back() -> None:
    assert list(report(run_of(), TOLD)) == [
        "sweep on tenant=acme: done; demotes warm notes",
        f"  run      {ID}",
        "  units    4 of 4",
        "  seen     90",
        "  changed  11 of 12 planned, 3 of them taken out of searches",
        "  took     2.5 s",
        f"  undo     lamina jobs undo {ID}",
    ]


def test_a_run_on_everything_is_undone_over_the_cluster() -> None:
    assert list(report(run_of(Area()), TOLD))[-1] == f"  undo     python -m jobs sweep --undo {ID}"


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(run_of(is_dry_run=True), id="dry run"),
        pytest.param(run_of(counts=RunCounts(units=4, seen=90)), id="changed nothing"),
        pytest.param(run_of(state=RunState.UNDONE), id="undone"),
        pytest.param(run_of(state=RunState.RUNNING), id="runs"),
        pytest.param(replace(run_of(), order=Order("learning", Area("acme"), START)), id="learnt"),
    ],
)
def test_where_nothing_can_be_undone_no_undo_is_offered(run: Run) -> None:
    assert not [line for line in report(run, TOLD) if "undo " in line]


def test_a_dry_run_says_so_first() -> None:
    assert next(report(run_of(is_dry_run=True), TOLD)).startswith("sweep (dry run) on tenant=acme: done")


def test_a_dry_run_tells_what_it_would_do_and_an_undo_what_it_did() -> None:
    dry = list(report(run_of(is_dry_run=True), TOLD))
    undone = list(report(run_of(state=RunState.UNDONE, undone=RunCounts(seen=11, changed=9)), TOLD))

    assert "  would    change 12, and take 3 of them out of searches" in dry
    assert "  undone   9 of 11 rows are as they were; others changed them since" in undone


def test_a_run_on_what_does_not_exist_says_so() -> None:
    empty = run_of(plan={"units": 0, "partitions": 1}, counts=RunCounts())

    assert "  nothing is there; look whether the scope is written right" in report(empty, TOLD)


def test_a_queued_run_is_reported_before_it_has_a_plan() -> None:
    queued = run_of(state=RunState.QUEUED, started_at=None, finished_at=None, plan={}, counts=RunCounts())

    assert [line for line in report(queued, TOLD) if "units" in line] == ["  units    0 of 0"]
    assert not [line for line in report(queued, TOLD) if "took" in line]


def test_scopes_that_were_left_alone_are_named_with_what_they_would_lose() -> None:
    lines = list(report(run_of(state=RunState.STOPPED, held=(held(1),)), TOLD))

    assert "stopped at 1 scope, unchanged, for too much would go; --force does it anyway:" in lines
    assert "  tenant=acme workspace=docks namespace=n1: 4 of 10 rows" in lines


def test_of_very_many_only_the_first_are_named_and_the_others_counted() -> None:
    lines = list(report(run_of(held=tuple(map(held, range(SHOWN + 5)))), TOLD))

    assert len([line for line in lines if "4 of 10 rows" in line]) == SHOWN
    assert "  and 5 more" in lines


def test_problems_are_shown_with_when_they_are_tried_again() -> None:
    lines = list(report(run_of(problems=("a: no answer", "b: no answer")), TOLD))

    at = lines.index("2 things could not be done; the next run tries again:")
    assert lines[at + 1 : at + 3] == ["  a: no answer", "  b: no answer"]


def test_of_very_many_problems_the_rest_is_counted() -> None:
    lines = list(report(run_of(problems=tuple(f"p{number}" for number in range(SHOWN + 3))), TOLD))

    assert len([line for line in lines if line.startswith("  p")]) == SHOWN
    assert "  and 3 more" in lines


def test_what_a_run_failed_of_is_told() -> None:
    assert "  failed   OSError: disk on fire" in report(
        run_of(state=RunState.FAILED, error="OSError: disk on fire"), TOLD
    )


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ({"state": "done"}, 0),
        ({"state": "done", "problems": ["one"]}, 4),
        ({"state": "stopped", "held": [held(1)]}, 3),
        ({"state": "stopped", "held": [held(1)], "problems": ["one"]}, 3),
        ({"state": "failed"}, 1),
        ({"state": "failed", "held": [held(1)]}, 1),
        ({"state": "undone"}, 0),
        ({"state": "undone", "held": [held(1)]}, 0),
        ({"state": RunState.FAILED}, 1),
        ({"state": RunState.STOPPED, "held": (held(1),)}, 3),
    ],
)
def test_the_exit_code_tells_a_script_how_a_run_ended(told: dict[str, Any], code: int) -> None:
    assert exit_code({"held": (), "problems": (), **told}) == code
