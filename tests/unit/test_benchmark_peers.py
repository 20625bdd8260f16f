import json
from collections.abc import Awaitable, Callable
from io import StringIO
from itertools import islice
from typing import Any

import httpx
import pytest
from rich.console import Console

from benchmarks.closed_loop import LoadResult, RequestResult, is_refusal, send, send_in_turn
from benchmarks.fresh_questions import phrasings
from benchmarks.locomo import Locomo, Question, Session
from benchmarks.peer_measure import CLIENTS, fresh, of_each, turns
from benchmarks.peers import figures, ratios, tables
from benchmarks.process_costs import TICK_S, ProcessTimes, spent
from benchmarks.report import rounded
from lamina.errors import LaminaError, LimitReached, NotFound, Overloaded, Unavailable

Json = dict[str, Any]
KEYS = {
    "searches_per_s",
    "p50_ms",
    "p95_ms",
    "messages_per_s",
    "recall_at_10",
    "cpu_ms_per_search",
    "statements_per_search",
}


def load(per_s: float, p50_ms: float = 10.0, **more: Any) -> Json:
    counts = {"failed": 0, "degraded": 0, "refused": 0}
    return {
        "per_s": per_s,
        "p50_ms": p50_ms,
        "p95_ms": 2 * p50_ms,
        "cpu_ms": 5.0,
        "cpu_ms_by_part": {},
        **counts,
        **more,
    }


def store(per_s: float, p50_ms: float, messages_per_s: float, **more: Any) -> Json:
    loads = {str(clients): load(per_s * clients, p50_ms, **more) for clients in CLIENTS}
    return {"messages_per_s": messages_per_s, "recall_at_10": 0.5, "loads": loads}


def measured() -> dict[str, Json]:
    lamina = store(10.0, 20.0, 300.0, statements=7.5, cpu_ms_by_part={"postgres": 3.0, "idle": 0.01})
    lamina |= {"sessions_alone": load(480.0, statements=2.0), "cache_hit": load(500.0, 2.0, statements=1.0)}
    return {
        "lamina": lamina,
        "langgraph_store": store(15.0, 10.0, 150.0, statements=1.0),
        "mem0": store(5.0, 12.0, 100.0),
    }


def shown(*found: Any) -> str:
    console = Console(width=160, file=StringIO(), record=True)
    for item in found:
        console.print(item)
    return console.export_text()


def answering(*outcomes: Json | LaminaError) -> Callable[[], Awaitable[Json]]:
    left = list(outcomes)

    async def ask() -> Json:
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, LaminaError):
            raise outcome
        return outcome

    return ask


def unreachable() -> LaminaError:
    error = Unavailable("lamina", "it does not answer", 0)
    error.__cause__ = httpx.ReadTimeout("late")
    return error


async def test_a_refused_request_is_sent_again_when_the_service_said_and_counted() -> None:
    busy = Overloaded("search", "too many at once", 0)

    found = await send(answering(busy, busy, {"results": [], "degraded": ["graph"]}))

    assert (found.refusals, found.failure, found.is_degraded) == (2, "", True)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Overloaded("search", "full", 0), True),
        (Unavailable("embedder", "late", 0), True),
        (LimitReached("tenant", "spent", 0), True),
        (unreachable(), False),
        (NotFound("thing", "x"), False),
    ],
)
async def test_only_an_answer_that_says_when_to_come_again_is_a_refusal(error: LaminaError, expected: bool) -> None:
    assert is_refusal(error) is expected

    found = await send(answering(error, {"results": []}))

    assert (found.failure, found.refusals) == ("" if expected else str(error), int(expected))


async def test_every_client_sends_at_least_one_request() -> None:
    found = await send_in_turn([answering({"results": []}), answering(NotFound("thing", "x"))], 0.0)

    assert (found.answered, found.figures()["failed"]) == (1, 1)


def test_what_is_refused_or_failed_is_counted_beside_what_was_answered() -> None:
    requests = (
        RequestResult(10.0),
        RequestResult(30.0, refusals=2, is_degraded=True),
        RequestResult(99.0, refusals=1, failure="gone"),
    )

    found = LoadResult(requests, 4.0).figures()

    assert (found["per_s"], found["p50_ms"], found["max_ms"]) == (0.5, 20.0, 30.0)
    assert (found["failed"], found["degraded"], found["refused"]) == (1, 1, 3)
    assert LoadResult(requests, 4.0).failures() == {"gone": 1}


def test_a_load_without_an_answer_has_no_percentiles_and_no_costs() -> None:
    load = LoadResult((RequestResult(60_000.0, refusals=50, failure="busy"),), 60.0)

    found = json.loads(json.dumps(rounded(load.figures() | of_each(load, {"postgres": 1.0}))))

    assert (found["per_s"], found["p50_ms"], found["failed"], found["refused"]) == (0.0, None, 1, 50)
    assert found["cpu_ms"] == 0.0


@pytest.mark.parametrize("name", ["postgres", "ray::ServeReplica:lamina:Router", "a (b) c) 1 2 3"])
def test_the_times_of_a_process_are_read_whatever_its_name(name: str) -> None:
    line = f"4711 ({name}) S 1 4711 4711 0 -1 4194560 100 200 0 0 30 12 5 7 20 0 1 0 99 1000 50\n"

    found = ProcessTimes.parse(line)

    assert found == ProcessTimes(42 * TICK_S, 12 * TICK_S)
    assert found.all_s == pytest.approx(54 * TICK_S)


def test_what_each_part_took_is_the_difference_of_two_readings() -> None:
    before, after = (
        {"postgres": 5.0, "ray": 2.0, "gone": 3.0, "ended": 4.0},
        {"postgres": 6.0, "ray": 4.0, "ended": 1.0, "new": 0.5},
    )

    assert list(spent(before, after).items()) == [("ray", 2.0), ("postgres", 1.0), ("new", 0.5)]


def test_processors_are_told_for_each_answer() -> None:
    requests = (RequestResult(1.0), RequestResult(1.0), RequestResult(1.0, failure="gone"))

    assert of_each(LoadResult(requests, 1.0), {"postgres": 0.01, "ray": 0.03}) == {
        "cpu_ms": pytest.approx(20.0),
        "cpu_ms_by_part": {"postgres": 5.0, "ray": 15.0},
    }


def test_the_last_line_has_the_same_figures_of_every_store() -> None:
    found = json.loads(json.dumps(rounded({"peers": {name: figures(of) for name, of in measured().items()}})))

    assert {name: set(of_store) for name, of_store in found["peers"].items()} == dict.fromkeys(measured(), KEYS)
    assert found["peers"]["lamina"]["searches_per_s"] == {"1": 10.0, "16": 160.0, "64": 640.0}
    assert found["peers"]["lamina"]["statements_per_search"] == 7.5
    assert found["peers"]["mem0"]["statements_per_search"] is None


def test_lamina_is_told_as_a_share_of_the_store_of_langgraph() -> None:
    assert ratios(measured()) == {
        "searches_16": pytest.approx(10 / 15),
        "p50_1": 2.0,
        "writes": 2.0,
        "sessions_16": 2.0,
    }


def test_the_tables_tell_what_must_be_beside_what_was_measured() -> None:
    text = shown(*tables(measured(), 419))

    assert "≥ 0.43" in text
    assert "no Postgres" in text
    assert "cache hit, 1 client" in text
    assert "postgres" in text
    assert "idle" not in text


def test_no_question_comes_twice_before_every_phrasing_was_asked() -> None:
    texts = ["Where is the key?", "Who came?"]

    found = list(islice(phrasings(texts, begin_at=1), 2 * 36))

    assert len({text for _, text in found}) == 2 * 36
    assert found[0] == (0, "Tell me: Where is the key?")
    assert found[-2:] == [(0, texts[0]), (1, texts[1])]
    assert all(texts[place] in text for place, text in found)


def test_what_clients_ask_was_not_asked_for_the_recall() -> None:
    questions = tuple(Question("c", "temporal", f"When was it {place}?", frozenset({"D1:1"})) for place in range(5))

    found = list(islice(fresh(Locomo((), questions)), 50))

    assert not {question.text for question in found} & {question.text for question in questions}
    assert found == list(islice(fresh(Locomo((), questions)), 50))


def test_messages_are_written_in_requests_of_one_session() -> None:
    messages = tuple({"ref": str(place)} for place in range(20))
    data = Locomo((Session("c", "one", messages), Session("c", "two", messages[:3])), ())

    found = [(turn.session, len(turn.messages)) for turn in turns(data)]

    assert found == [("one", 16), ("one", 4), ("two", 3)]
