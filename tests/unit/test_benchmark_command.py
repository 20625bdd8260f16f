"""The command that runs benchmarks."""

import os
import signal
import time

import pytest

from benchmarks import __main__ as command


def test_a_benchmark_that_is_terminated_ends_what_it_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that `timeout` ended left a whole service running beside the next one's measurement."""
    ended: list[str] = []

    def measure() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(30)
        finally:
            ended.append("service")

    monkeypatch.setattr(command, "app", measure)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt):
            command.main()
    finally:
        signal.signal(signal.SIGTERM, before)

    assert ended == ["service"]
