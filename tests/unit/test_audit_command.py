"""What `lamina audit` says of a comparison, and how it exits."""

from collections.abc import Sequence
from typing import Any

import pytest

from lamina.cli.projections import _verdict


def report(drift: int = 0, failed: Sequence[str] = ()) -> dict[str, Any]:
    drifts = {"messages": {"missing": drift, "surplus": 0, "different": 0}}
    return {"consistent": not failed and not drift, "projections": drifts, "failed": dict.fromkeys(failed, "gone")}


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        (report(), ("every projection holds what Postgres says", 0)),
        (report(drift=3), ("there is drift", 1)),
        (report(failed=["notes", "cold"]), ("could not be compared: notes, cold", 2)),
        (report(drift=3, failed=["notes"]), ("could not be compared: notes; there is drift in others", 2)),
    ],
)
def test_what_could_not_be_compared_is_not_called_drift(told: dict[str, Any], verdict: tuple[str, int]) -> None:
    assert _verdict(told) == verdict
