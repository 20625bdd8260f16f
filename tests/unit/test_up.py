"""The waits of `lamina up` for its first answers."""

import time
from typing import Any

import httpx
import pytest

from deployments import up
from deployments.first_answer import LATER, FirstAnswer
from deployments.up import StopSignal
from lamina.cli.local import LocalService
from lamina.errors import Misconfigured


class Answers(FirstAnswer):
    """Answers that lack these parts, one after the other; the last one again and again."""

    def __init__(self, *lacking: set[str] | None, may_miss: frozenset[str] = frozenset()) -> None:
        super().__init__(LocalService("http://nowhere.invalid", "key", 1), may_miss)
        self.lacking = list(lacking)

    def _ask(self) -> httpx.Response | None:
        lacks = self.lacking.pop(0) if len(self.lacking) > 1 else self.lacking[0]
        return None if lacks is None else httpx.Response(200, json={"degraded": sorted(lacks)})


class Starter:
    """Has deployed at the nth question, or fails."""

    def __init__(self, at: int, error: Exception | None = None) -> None:
        self.left = at
        self.error = error

    def has_deployed(self) -> bool:
        self.left -= 1
        if self.left <= 0 and self.error is not None:
            raise self.error
        return self.left <= 0


def wait(answers: Answers, starter: Starter, said: list[str]) -> float:
    begin = time.monotonic()
    return up._wait_for(answers, starter, lambda: None, StopSignal(), said.append) - begin  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "START_STEP_S", 0.01)


def test_a_first_answer_by_words_waits_for_neither_model_nor_graph() -> None:
    said: list[str] = []
    answers = Answers(None, {"embedder", "graph", "notes_hybrid"}, {"embedder", "graph"}, {"x"}, may_miss=LATER)

    wait(answers, Starter(at=100), said)

    assert answers.lacking == [{"x"}]
    assert said == []


def test_a_whole_answer_waits_for_every_part() -> None:
    answers = Answers(None, {"embedder"}, set(), {"x"})

    wait(answers, Starter(at=100), [])

    assert answers.lacking == [{"x"}]


NONE_YET = [
    httpx.ConnectError("nobody listens"),
    httpx.Response(503, json={"title": "unavailable", "status": 503}),
    httpx.Response(502, text="<html>"),
    httpx.Response(200, json=[]),
]


def test_stores_are_asked_for_until_the_service_tells_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [*NONE_YET, httpx.Response(200, json={"stores": {"graph": "failed", "notes": "ok"}})]
    watched: list[None] = []

    def get(*_: Any, **__: Any) -> httpx.Response:
        answer = said.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(httpx, "get", get)
    service = LocalService("http://nowhere.invalid", "key", 1)

    away = up._stores_away(service, {"graph", "notes"}, lambda: watched.append(None), StopSignal())

    assert away == ["graph"]
    assert len(watched) == len(NONE_YET)


@pytest.mark.parametrize(
    ("lacking", "told"),
    [({"graph"}, "graph"), ({"notes_hybrid", "embedder"}, "embedder, notes_hybrid"), (None, "an answer")],
)
def test_a_server_that_is_away_holds_nobody_up_once_all_deployments_run(
    lacking: set[str] | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "OUTAGE_S", 0.3)
    said: list[str] = []

    took_s = wait(Answers(lacking), Starter(at=2), said)

    assert took_s >= 0.3
    assert said == [f"searches go without {told}"]


def test_a_deployment_that_fails_ends_the_wait() -> None:
    failed: Any = Misconfigured("the deployments do not start", "correct it")

    with pytest.raises(Misconfigured, match="do not start"):
        wait(Answers(None), Starter(at=3, error=failed), [])
