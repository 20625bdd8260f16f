"""What `python -m jobs` takes for the moment of a run, and what says nothing beside an undo."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs.__main__ import _moment, _refuse_beside
from lamina.errors import InvalidInput


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
    _refuse_beside(scope=None, moment=None, dry_run=False, force=False)
    with pytest.raises(InvalidInput, match="force"):
        _refuse_beside(scope=None, moment=None, dry_run=False, force=True)
