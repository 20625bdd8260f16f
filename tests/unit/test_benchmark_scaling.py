import asyncio

import httpx
import pytest

from benchmarks import replica_watch
from benchmarks.load_generator import Load, Request, RequestOutcome, classify, reasons, tally, within
from benchmarks.replica_watch import Process, ReplicaCounts, deployment_of, directions, scaling_steps
from benchmarks.rollout import Effect
from benchmarks.rollout import figures as rollout_figures
from benchmarks.scaling import Json
from benchmarks.scaling import figures as scaling_figures
from lamina.errors import LaminaError, NotFound, Overloaded, Unavailable


def sent(second: float, outcome: RequestOutcome = RequestOutcome.ANSWERED, elapsed_ms: float = 100.0) -> Request:
    return Request(second, elapsed_ms, outcome, "" if outcome is RequestOutcome.ANSWERED else outcome.value)


def seen(*counts: int, deployment: str = "Graph") -> list[ReplicaCounts]:
    return [ReplicaCounts(float(second), {deployment: count}) for second, count in enumerate(counts)]


def caused(cause: Exception | None) -> LaminaError:
    error = Unavailable("lamina", "it does not answer")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (caused(httpx.ConnectError("refused")), RequestOutcome.REFUSED),
        (caused(httpx.ConnectTimeout("nobody")), RequestOutcome.REFUSED),
        (caused(httpx.RemoteProtocolError("gone")), RequestOutcome.BROKEN),
        (caused(httpx.ReadTimeout("late")), RequestOutcome.BROKEN),
        (caused(None), RequestOutcome.FAILED),
        (Overloaded("router", "full"), RequestOutcome.FAILED),
        (NotFound("thing", "x"), RequestOutcome.FAILED),
    ],
)
async def test_a_failure_tells_whether_anything_was_sent(error: LaminaError, outcome: RequestOutcome) -> None:
    async def ask() -> Json:
        raise error

    assert await classify(ask()) == (outcome, str(error))


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ({"results": []}, RequestOutcome.ANSWERED),
        ({"degraded": []}, RequestOutcome.ANSWERED),
        ({"degraded": ["graph"]}, "degraded"),
    ],
)
async def test_an_answer_without_a_source_is_degraded(body: Json, outcome: RequestOutcome) -> None:
    async def ask() -> Json:
        return body

    assert (await classify(ask()))[0] == outcome


def test_requests_are_counted_by_what_became_of_them() -> None:
    requests = [
        sent(0),
        sent(1, RequestOutcome.DEGRADED, 300.0),
        sent(2, RequestOutcome.BROKEN, 9000.0),
        sent(3, RequestOutcome.BROKEN),
    ]

    found = tally(requests)

    assert {outcome.value: found[outcome] for outcome in RequestOutcome} == {
        "answered": 1,
        "degraded": 1,
        "refused": 0,
        "broken": 2,
        "failed": 0,
    }
    assert found["max_ms"] == 300.0
    assert reasons(requests) == {"broken": 2, "degraded": 1}
    assert [request.begun_s for request in within(requests, 1, 3)] == [1, 2]


def test_where_nothing_was_answered_there_are_no_times() -> None:
    assert "p50_ms" not in tally([sent(0, RequestOutcome.REFUSED)])


@pytest.mark.parametrize(
    ("command", "deployment"),
    [
        ("ray::ServeReplica:lamina:Graph", "Graph"),
        ("ray::ServeReplica:lamina:Graph.perform_graceful_shutdown", "Graph"),
        ("ray::ServeReplica:other:Graph", ""),
        ("ray::CacheShardActor", ""),
        ("", ""),
    ],
)
def test_a_replica_is_known_by_its_title(command: str, deployment: str) -> None:
    assert deployment_of(Process(1, command)) == deployment


@pytest.mark.parametrize(
    ("counts", "number"),
    [((1, 1, 1), 0), ((1, 2, 3, 3), 1), ((1, 1, 2, 3, 3, 2, 1), 2), ((1, 3, 1, 3, 1), 4), ((1, 2, 2, 1, 1, 2), 3)],
)
def test_every_turn_of_the_number_of_replicas_counts(counts: tuple[int, ...], number: int) -> None:
    assert directions(scaling_steps(seen(*counts), "Graph")) == number


def test_scaling_up_once_and_down_once_without_a_failure_is_within_the_limits() -> None:
    both = [ReplicaCounts(float(second), {"Graph": n, "Procedures": n}) for second, n in enumerate((1, 2, 3, 3, 1))]

    found = scaling_figures([sent(0), sent(1, RequestOutcome.DEGRADED)], both)

    assert found["ok"]
    assert found["deployments"]["Graph"]["changes"] == {"1.0": 2, "2.0": 3, "4.0": 1}


@pytest.mark.parametrize(
    ("counts", "outcome", "line"),
    [
        ((1, 3, 1), RequestOutcome.FAILED, "1 requests failed"),
        ((1, 3, 1), RequestOutcome.REFUSED, "1 requests failed"),
        ((1, 2, 1), RequestOutcome.ANSWERED, "Graph had at most 2 replicas"),
        ((1, 3, 3), RequestOutcome.ANSWERED, "Graph ended with 3 replicas"),
        ((1, 3, 1, 3, 1), RequestOutcome.ANSWERED, "Graph changed its direction 4 times"),
    ],
)
def test_what_is_beyond_the_limits_is_named(counts: tuple[int, ...], outcome: RequestOutcome, line: str) -> None:
    both = [ReplicaCounts(float(second), {"Graph": n, "Procedures": n}) for second, n in enumerate(counts)]

    found = scaling_figures([sent(0, outcome)], both)

    assert not found["ok"]
    assert line in found["beyond"]


def test_an_event_may_fail_no_more_requests_than_were_in_flight() -> None:
    bad = (sent(10.0, RequestOutcome.BROKEN), sent(10.5, RequestOutcome.DEGRADED, 700.0), sent(11.0))
    good = Effect("router", 10.0, in_flight=1, requests=bad, replaced_s=4.0)
    worse = Effect("proxy", 10.0, in_flight=1, requests=(*bad, sent(12.0, RequestOutcome.REFUSED)), replaced_s=None)

    found = rollout_figures([good, worse])

    assert found["events"]["router"]["recovered_s"] == pytest.approx(1.2)
    assert [item["ok"] for item in found["events"].values()] == [True, False]
    assert found["beyond"] == ["proxy: 2 failed, 1 were in flight"]


def test_an_event_that_nobody_noticed_was_over_at_once() -> None:
    assert Effect("nothing", 5.0, 0, (sent(4.9), sent(6.0)), 0.0).figures()["recovered_s"] == 0.0


async def test_a_load_sends_at_its_rate_whatever_the_answers_do() -> None:
    let_go = asyncio.Event()

    async def ask() -> Json:
        await let_go.wait()
        return {}

    load = Load(ask)
    await load.offer(rate=100, seconds=0.2)
    held_up, waited_s = load.in_flight, load.longest_wait_s()
    let_go.set()
    await load.settle()

    assert held_up == 20
    assert waited_s > 0.1
    assert (len(load.seen), load.in_flight, load.longest_wait_s()) == (20, 0, 0.0)


def test_the_memory_of_a_service_leaves_out_processes_that_are_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_watch, "processes", lambda: [Process(pid, "python") for pid in (1, 2, 3)])
    monkeypatch.setattr(replica_watch, "pss_mb", lambda pid: 10.0**pid)

    assert replica_watch.memory_mb() == 1110
    assert replica_watch.memory_mb({3}) == 110
