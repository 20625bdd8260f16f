"""What `python -m jobs` takes for the moment of a run, and what says nothing beside an undo."""

from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from jobs.__main__ import _moment, _refuse_beside, app
from lamina.errors import InvalidInput

ID = "00000000-0000-0000-0000-000000000007"


def test_a_moment_to_come_only_shows_what_would_go() -> None:
    soon = datetime.now(UTC) + timedelta(days=400)

    with pytest.raises(InvalidInput, match="what is not over yet would go; add --dry-run"):
        _moment(soon.isoformat(), is_dry_run=False)
    assert _moment(soon.isoformat(), is_dry_run=True) == soon


def test_a_moment_that_was_is_taken_in_utc() -> None:
    assert _moment("2026-11-28T09:00", is_dry_run=False) == datetime(2026, 11, 28, 9, tzinfo=UTC)


def test_a_word_is_no_moment() -> None:
    with pytest.raises(InvalidInput, match="is 'soon'; write it as 2026-11-28T09:00"):
        _moment("soon", is_dry_run=False)


def test_what_an_undo_cannot_heed_is_refused() -> None:
    _refuse_beside(["undo"], scope=None, moment=None, dry_run=False, force=False)
    with pytest.raises(InvalidInput, match="force: says nothing beside --undo"):
        _refuse_beside(["undo"], scope=None, moment=None, dry_run=False, force=True)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--undo", ID, "--show", ID], "show: says nothing beside --undo"),
        (["--runs", "--undo", ID], "runs: says nothing beside --undo"),
        (["--runs", "--show", ID], "runs: says nothing beside --show"),
        (["--runs", "--force"], "force: says nothing beside --runs"),
        (["--show", ID, "--dry-run"], "dry_run: says nothing beside --show"),
    ],
)
def test_of_two_wishes_none_is_left_undone_in_silence(options: list[str], told: str) -> None:
    done = CliRunner().invoke(app, ["sweep", *options, "--data-dir", "nowhere"])

    assert isinstance(done.exception, InvalidInput)
    assert told in str(done.exception)
