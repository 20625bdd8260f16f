"""Field cases 1, 12 to 14, 16, 17, 19, 20, 22 to 24, 26 and 31 to 34 on procedures, and what makes them procedures."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from lamina.client import AsyncClient
from lamina.core.principals import KeyRole
from lamina.errors import Conflict, NotFound
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from tests.support.application import Application, giving_up_the_embedder, running, settings_for
from tests.support.embedders import Down, Switchable

REFUND = {"trigger": "Refund a damaged order", "action": "Check the photo, then call refund_order"}


async def put(client: httpx.AsyncClient, trigger: str, action: str = "do it", **fields: Any) -> str:
    answer = await client.post("/v1/procedures", json={"trigger": trigger, "action": action, **fields})
    assert answer.status_code in {200, 201}, answer.text
    return str(answer.json()["id"])


async def match(client: httpx.AsyncClient, query: str, **fields: Any) -> list[dict[str, Any]]:
    answer = await client.post("/v1/procedures/match", json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    assert answer.json()["degraded"] == []
    return list(answer.json()["matches"])


async def report(client: httpx.AsyncClient, id_: str, *, succeeded: bool, **fields: Any) -> httpx.Response:
    return await client.post(f"/v1/procedures/{id_}/outcomes", json={"succeeded": succeeded, **fields})


async def test_a_procedure_is_stored_read_changed_and_deleted(application: Application) -> None:
    client = application.client()
    body = {**REFUND, "tags": ["shop"], "metadata": {"k": 1}, "source": "handbook", "agent": "clerk"}

    created = await client.post("/v1/procedures", json=body)
    id_ = created.json()["id"]
    read = (await client.get(f"/v1/procedures/{id_}")).json()
    changed = await client.patch(f"/v1/procedures/{id_}", json={"trigger": "Replace a lost parcel", "tags": []})
    gone = await client.delete(f"/v1/procedures/{id_}")

    assert created.status_code == 201
    assert read | body == read
    assert (read["strength"], read["successes"], read["failures"], read["last_used_at"]) == (0.5, 0, 0, None)
    assert changed.json()["trigger"] == "Replace a lost parcel"
    assert (changed.json()["action"], changed.json()["tags"]) == (REFUND["action"], [])
    assert gone.status_code == 204
    assert (await client.get(f"/v1/procedures/{id_}")).status_code == 404
    assert (await client.delete(f"/v1/procedures/{id_}")).status_code == 404
    assert await match(client, "Replace a lost parcel") == []


async def test_prefix_comes_before_keyword_before_meaning(semantic: Application) -> None:
    client = semantic.client()
    meaning = await put(client, "Somebody wants their money back for a broken purchase")
    keyword = await put(client, "When a damaged order needs a refund")
    prefix = await put(client, "Refund a damaged order")
    await put(client, "Water the plants in the greenhouse")

    found = await match(client, "Refund a damaged order, please", limit=3)

    assert [hit["id"] for hit in found] == [prefix, keyword, meaning]
    assert [hit["stage"] for hit in found] == ["prefix", "keyword", "semantic"]
    assert found[0]["score"] > 0.8 > found[1]["score"] > 0.5 > found[2]["score"]


@pytest.mark.parametrize(
    ("trigger", "asked"),
    [
        ("deploy", "Deploy the web shop to production tonight"),
        ("Deploy the web shop to production tonight", "deploy"),
        ("deploy the Web-Shop", "Deploy the web shop!"),
        ("成語しりとり", "成語しりとりをした"),
        ("/restart", "/restart nginx"),
        ("%", "%"),
        ("\\", "\\ & \\"),
        ("_ marks", "_ marks the place"),
    ],
)
async def test_a_prefix_counts_in_both_directions_and_marks_are_literal(
    application: Application, trigger: str, asked: str
) -> None:
    client = application.client()
    wanted = await put(client, trigger)
    for other in ("deployment of the web shop", "x marks", "redeploy", "anything goes", "a%"):
        await put(client, other)

    found = await match(client, asked)

    assert [hit["id"] for hit in found if hit["stage"] == "prefix"] == [wanted]


async def test_a_trigger_of_the_greatest_length_is_stored_and_matched_by_its_prefix(application: Application) -> None:
    client = application.client()
    for unit in ("word ", "長", "x", "é"):
        trigger = (unit * 10_000)[:10_000].strip()
        id_ = await put(client, trigger)

        assert (await match(client, trigger, limit=1))[0]["id"] == id_
        assert (await match(client, f"{trigger} indeed", limit=1))[0]["stage"] == "prefix"
    assert (await client.post("/v1/procedures", json={"trigger": "x" * 10_001, "action": "x"})).status_code == 422


async def test_a_nonsense_query_scores_low(semantic: Application) -> None:
    client = semantic.client()
    for trigger in ("Refund a damaged order", "Deploy the web shop", "A customer asks for an invoice"):
        await put(client, trigger)

    found = await match(client, "qwertz zzz")

    assert all(hit["score"] < 0.25 for hit in found)
    assert await match(client, "qwertz zzz", min_score=0.25) == []


async def test_outcomes_raise_and_lower_the_strength_and_the_order(application: Application) -> None:
    client = application.client()
    first, second = [await put(client, "Refund a damaged order", action) for action in ("ask the boss", "just do it")]

    raised = [(await report(client, second, succeeded=True, run=f"r{number}")).json() for number in range(2)]
    lowered = (await report(client, first, succeeded=False)).json()

    assert [answer["strength"] for answer in raised] == [pytest.approx(2 / 3), pytest.approx(3 / 4)]
    assert (lowered["strength"], lowered["failures"]) == (pytest.approx(1 / 3), 1)
    found = await match(client, "Refund a damaged order")
    assert [hit["id"] for hit in found] == [second, first]
    assert [(hit["successes"], hit["failures"]) for hit in found] == [(2, 0), (0, 1)]


async def test_a_run_counts_once_and_its_other_result_is_a_conflict(application: Application) -> None:
    client = application.client()
    id_ = await put(client, "Refund")

    first = await report(client, id_, succeeded=True, run="run 1", comment="went well", agent="clerk")
    again = await report(client, id_, succeeded=True, run="run 1", comment="went very well")
    other = await report(client, id_, succeeded=False, run="run 1")
    without = [(await report(client, id_, succeeded=True)).json() for _ in range(2)]

    assert (first.json()["existed"], again.json()["existed"]) == (False, True)
    assert other.status_code == 409
    assert "run 'run 1' was reported as a success" in other.json()["detail"]
    assert [answer["successes"] for answer in without] == [2, 3]
    outcomes = (await client.get(f"/v1/procedures/{id_}/outcomes")).json()["outcomes"]
    assert [outcome["run"] for outcome in outcomes] == [None, None, "run 1"]
    assert (outcomes[-1]["comment"], outcomes[-1]["agent"]) == ("went well", "clerk")


async def test_twenty_parallel_reports_on_two_replicas_count_once_each(
    application: Application, replica: Application
) -> None:
    clients = [application.client(), replica.client(application.key)]
    id_ = await put(clients[0], "Refund")
    runs = [f"run {number}" for number in range(20)]

    answers = await asyncio.gather(
        *(
            report(client, id_, succeeded=number % 4 != 0, run=run)
            for number, run in enumerate(runs)
            for client in clients
        )
    )

    stored = (await clients[0].get(f"/v1/procedures/{id_}")).json()
    assert [answer.status_code for answer in answers] == [200] * 40
    assert sum(answer.json()["existed"] for answer in answers) == 20
    assert (stored["successes"], stored["failures"]) == (15, 5)
    assert stored["strength"] == pytest.approx(16 / 22)


async def test_two_clients_on_two_replicas_adding_one_procedure_forty_times_store_it_once(
    application: Application, replica: Application
) -> None:
    clients = [application.client(), replica.client(application.key)]

    answers = await asyncio.gather(
        *(client.post("/v1/procedures", json=REFUND) for client in clients for _ in range(20))
    )

    assert sorted(answer.status_code for answer in answers) == [200] * 39 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1


async def test_sixteen_parallel_batches_of_overlapping_procedures_all_succeed(application: Application) -> None:
    client = application.client()
    items = [{"trigger": f"trigger {number}", "action": "act"} for number in range(8)]
    bodies = [{"procedures": items if turn % 2 else items[::-1]} for turn in range(16)]

    answers = await asyncio.gather(*(client.post("/v1/procedures/batch", json=body) for body in bodies))

    assert [answer.status_code for answer in answers] == [200] * 16
    created = [item for answer in answers for item in answer.json()["results"] if item["status"] == "created"]
    assert len(created) == 8
    assert len((await client.get("/v1/procedures")).json()["procedures"]) == 8


async def test_adding_while_deleting_always_leaves_an_answer(application: Application) -> None:
    client = application.client()

    async def add_and_delete() -> tuple[int, int]:
        added = await client.post("/v1/procedures", json=REFUND)
        return added.status_code, (await client.delete(f"/v1/procedures/{added.json()['id']}")).status_code

    answers = await asyncio.gather(*(add_and_delete() for _ in range(16)))

    assert {added for added, _ in answers} <= {200, 201}
    assert {deleted for _, deleted in answers} <= {204, 404}


async def test_a_batch_has_a_result_per_item(application: Application) -> None:
    client = application.client()
    id_ = await put(client, "known")
    items: list[Any] = [
        {"trigger": "a", "action": "x"},
        {"trigger": "", "action": "x"},
        {"trigger": "known", "action": "do it"},
        {"trigger": "b"},
        "text",
        {"trigger": "a", "action": "x"},
    ]

    results = (await client.post("/v1/procedures/batch", json={"procedures": items})).json()["results"]

    assert [item["status"] for item in results] == ["created", "invalid", "existed", "invalid", "invalid", "existed"]
    assert results[2]["id"] == id_
    assert results[0]["id"] == results[5]["id"]
    assert "procedures.1.trigger: is blank" in results[1]["error"]
    assert "procedures.3.action" in results[3]["error"]
    assert results[4]["error"].startswith("procedures.4")


async def test_a_change_that_makes_two_procedures_one_is_a_conflict(application: Application) -> None:
    client = application.client()
    await put(client, "a", "x")
    id_ = await put(client, "b", "x")

    answer = await client.patch(f"/v1/procedures/{id_}", json={"trigger": "a"})

    assert answer.status_code == 409
    assert (await match(client, "b"))[0]["trigger"] == "b"


async def test_a_change_keeps_what_was_reported_and_raises_the_epoch(application: Application) -> None:
    client = application.client()
    id_ = await put(client, "a", "x")
    await report(client, id_, succeeded=True)
    before = _epoch(application)

    changed = (await client.patch(f"/v1/procedures/{id_}", json={"action": "y"})).json()
    await report(client, id_, succeeded=True, run="1")
    await report(client, id_, succeeded=True, run="1")

    assert changed["successes"] == 1
    assert _epoch(application) == before + 2


async def test_a_write_repeated_under_its_idempotency_key_happens_once(application: Application) -> None:
    client = application.client()
    headers = {"Idempotency-Key": "k1"}
    first, second = [await client.post("/v1/procedures", json=REFUND, headers=headers) for _ in range(2)]
    id_ = first.json()["id"]
    path = f"/v1/procedures/{id_}/outcomes"
    other = await put(client, "other")

    reports = [
        (await client.post(path, json={"succeeded": True}, headers={"Idempotency-Key": "k2"})).json() for _ in range(3)
    ]
    elsewhere = await client.post(
        f"/v1/procedures/{other}/outcomes", json={"succeeded": True}, headers={"Idempotency-Key": "k2"}
    )

    assert first.json() == second.json() == {"id": id_, "existed": False}
    assert [item["successes"] for item in reports] == [1, 1, 1]
    assert elsewhere.status_code == 409


async def test_what_belongs_to_one_workspace_matches_in_no_other(application: Application) -> None:
    client = application.client()
    places = [{"workspace": name} for name in ("foo", "foobar", "_", "%", "Ünïcode", "x" * 128)]
    places += [{"workspace": "foo", "namespace": "other"}]
    ids = [await put(client, "Refund an order", **place) for place in places]
    stranger = application.for_tenant(f"stranger {uuid4()}").client()

    for place, id_ in zip(places, ids, strict=True):
        assert [hit["id"] for hit in await match(client, "Refund an order", **place)] == [id_]
        assert await match(stranger, "Refund an order", **place) == []
    await stranger.aclose()


async def test_procedures_are_found_by_the_search_of_all_tiers_and_by_its_filters(application: Application) -> None:
    client = application.client()
    id_ = await put(client, "Refund a damaged order", tags=["shop"], agent="clerk")
    await put(client, "Refund a damaged bike")
    body = {"query": "Refund a damaged order", "tiers": ["procedures"], "explain": True}

    found = (await client.post("/v1/search", json=body)).json()
    tagged = (await client.post("/v1/search", json={**body, "tags": ["shop"]})).json()
    matched = await match(client, "Refund a damaged order", filters={"agent": "clerk"})

    assert found["results"][0]["id"] == id_
    assert found["results"][0]["kind"] == "procedure"
    assert found["results"][0]["content"] == "When: Refund a damaged order\nDo: do it"
    assert found["sources"] == {"procedures": 2}
    assert [hit["id"] for hit in tagged["results"]] == [hit["id"] for hit in matched] == [id_]


ROUTES: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "/v1/procedures/{id}", None),
    ("PATCH", "/v1/procedures/{id}", {"action": "theirs"}),
    ("DELETE", "/v1/procedures/{id}", None),
    ("POST", "/v1/procedures/{id}/outcomes", {"succeeded": False}),
    ("GET", "/v1/procedures/{id}/outcomes", None),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
async def test_another_tenants_key_finds_no_procedure_and_changes_nothing(
    application: Application, method: str, path: str, body: dict[str, Any] | None
) -> None:
    client = application.client()
    id_ = await put(client, "ours")
    before = (await client.get(f"/v1/procedures/{id_}")).json()
    thief = application.client(application.new_key("thief"))

    answer = await thief.request(method, path.format(id=id_), json=body)

    assert answer.status_code == 404
    assert (await client.get(f"/v1/procedures/{id_}")).json() == before


async def test_a_reader_matches_and_may_not_write(application: Application) -> None:
    id_ = await put(application.client(), "ours")
    reader = application.client(application.new_key(application.tenant, KeyRole.READER))

    writes = [
        await reader.post("/v1/procedures", json=REFUND),
        await reader.post("/v1/procedures/batch", json={"procedures": [REFUND]}),
        await reader.patch(f"/v1/procedures/{id_}", json={"action": "x"}),
        await reader.delete(f"/v1/procedures/{id_}"),
        await report(reader, id_, succeeded=True),
    ]

    assert len(await match(reader, "ours")) == 1
    assert [answer.status_code for answer in writes] == [403] * 5


async def test_ids_in_metadata_are_data_and_move_no_scope(application: Application) -> None:
    client = application.client()
    metadata = {"user_id": "victim", "tenant": "other", "workspace": "w"}

    id_ = await put(client, "mine", metadata=metadata)
    changed = (await client.patch(f"/v1/procedures/{id_}", json={"action": "x", "metadata": metadata})).json()

    assert changed["metadata"] == metadata
    assert changed["workspace"] == "default"
    assert await match(client, "mine", workspace="w") == []


async def test_reading_an_unknown_scope_creates_nothing(application: Application) -> None:
    client = application.client()

    assert (await client.get("/v1/procedures", params={"workspace": "nowhere"})).json() == {
        "procedures": [],
        "next_cursor": None,
    }
    assert await match(client, "anything", workspace="nowhere") == []
    assert _count(application, "SELECT count(*) FROM epochs WHERE tenant = %s") == 0


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("POST", "/v1/procedures", {"json": {"trigger": "a\x00", "action": "x"}}, "trigger"),
    ("POST", "/v1/procedures", {"json": {"trigger": "x", "action": "\u200b"}}, "action"),
    ("POST", "/v1/procedures", {"json": {"trigger": "x"}}, "action"),
    ("POST", "/v1/procedures", {"json": {**REFUND, "tenant": "other"}}, "tenant"),
    ("POST", "/v1/procedures", {"json": {**REFUND, "metadata": {"a\x00": 1}}}, "metadata: key"),
    ("POST", "/v1/procedures/batch", {"json": {"procedures": []}}, "procedures"),
    ("POST", "/v1/procedures/match", {"json": {"query": "\ufeff"}}, "query"),
    ("POST", "/v1/procedures/match", {"json": {"query": "a\x00"}}, "query"),
    ("POST", "/v1/procedures/match", {"json": {"query": "x", "tags": ["\x00"]}}, "tags.0"),
    *[("POST", "/v1/procedures/match", {"json": {"query": "x", "limit": limit}}, "limit") for limit in (-1, 0, 10**9)],
    ("POST", "/v1/procedures/match", {"json": {"query": "x", "min_score": 1.1}}, "min_score"),
    ("POST", "/v1/procedures/match", {"json": {"query": "x", "filters": {"category": {"in": "note"}}}}, "filters"),
    ("POST", "/v1/procedures/match", {"json": {"query": "x", "filters": {"a') OR 1=1 --": 1}}}, "filters"),
    ("GET", "/v1/procedures/not-a-uuid", {}, "id"),
    ("PATCH", "/v1/procedures/not-a-uuid", {"json": {}}, "id"),
    ("POST", "/v1/procedures/not-a-uuid/outcomes", {"json": {"succeeded": True}}, "id"),
    *[("GET", "/v1/procedures", {"params": {"limit": limit}}, "limit") for limit in (-1, 0, 10**9)],
    ("GET", "/v1/procedures", {"params": {"offset": -5}}, "offset"),
    ("GET", "/v1/procedures", {"params": {"tag": "a\x00"}}, "tags.0"),
]


@pytest.mark.parametrize(("method", "path", "options", "field"), REFUSED)
async def test_what_cannot_be_accepted_is_refused_naming_the_field(
    application: Application, method: str, path: str, options: dict[str, Any], field: str
) -> None:
    answer = await application.client().request(method, path, **options)

    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"].startswith(field)


@pytest.mark.parametrize("user", [42, True, None, {}])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/procedures", REFUND),
        ("/v1/procedures/batch", {"procedures": [REFUND]}),
        ("/v1/procedures/match", {"query": "x"}),
    ],
)
async def test_a_user_that_is_no_text_is_refused(
    application: Application, user: Any, path: str, body: dict[str, Any]
) -> None:
    answer = await application.client().post(path, json={**body, "user": user})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "user"


@pytest.mark.parametrize(
    "body",
    [
        {"succeeded": "yes"},
        {"succeeded": 1},
        {"run": "x"},
        {"succeeded": True, "run": "a\x00"},
        {"succeeded": True, "run": ""},
    ],
)
async def test_an_outcome_says_whether_it_worked_and_names_a_clean_run(
    application: Application, body: dict[str, Any]
) -> None:
    client = application.client()
    id_ = await put(client, "x")

    assert (await client.post(f"/v1/procedures/{id_}/outcomes", json=body)).status_code == 422


@pytest.mark.parametrize(
    "query", ["?!…", 'foo" OR (bar', "a AND", "-", "*", "\\", "the", "'; DROP TABLE procedures; --", "🎉", "&|!:*"]
)
async def test_a_query_of_any_shape_is_answered(application: Application, query: str) -> None:
    client = application.client()
    await put(client, 'the quick foo "or" bar')

    assert all(0 <= hit["score"] <= 1 for hit in await match(client, query))


async def test_a_question_of_100_000_characters_is_answered(application: Application) -> None:
    client = application.client()
    id_ = await put(client, "word0 word1")

    found = await match(client, " ".join(f"word{number}" for number in range(10_000)))

    assert [hit["id"] for hit in found] == [id_]


async def test_japanese_is_matched_by_its_words_alone(without_vectors: Application) -> None:
    client = without_vectors.client()
    id_ = await put(client, "今日は成語しりとりをした")
    await put(client, "Refund an order")

    answer = (await client.post("/v1/procedures/match", json={"query": "しりとり"})).json()

    assert [hit["id"] for hit in answer["matches"]] == [id_]
    assert answer["degraded"] == ["embedder"]


async def test_without_an_embedder_writes_are_unavailable_and_nothing_is_stored(database: str, tmp_path: Path) -> None:
    async with running(settings_for(database, tmp_path), database, HashingModel(), embedder=Down()) as app:
        client = app.client()

        answers = [
            await client.post("/v1/procedures", json=REFUND),
            await client.post("/v1/procedures/batch", json={"procedures": [REFUND]}),
        ]

        assert [answer.status_code for answer in answers] == [503] * 2
        assert (await client.get("/v1/procedures")).json()["procedures"] == []


@pytest.mark.parametrize("state", ["down", "hanging"])
async def test_an_embedder_that_fails_degrades_the_match_which_recovers(
    database: str, tmp_path: Path, state: str
) -> None:
    embedder = Switchable(BatchingEmbedder(HashingModel()))
    async with running(settings_for(database, tmp_path), database, HashingModel(), embedder=embedder) as app:
        client = app.client()
        id_ = await put(client, "Refund an order")

        embedder.state = state
        with giving_up_the_embedder(app):
            degraded = (await client.post("/v1/procedures/match", json={"query": "order refund"})).json()
        changed = await client.patch(f"/v1/procedures/{id_}", json={"action": "another one"})
        embedder.state = "up"

        assert [(hit["id"], hit["stage"]) for hit in degraded["matches"]] == [(id_, "keyword")]
        assert degraded["degraded"] == ["embedder"]
        assert changed.status_code == 200
        assert [hit["id"] for hit in await match(client, "order refund")] == [id_]


async def test_the_client_adds_matches_and_reports(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    async with AsyncClient("http://lamina", application.key, scope={"workspace": "w"}) as client:
        monkeypatch.setattr(client, "_http", application.client())
        added = await client.add_procedure("Refund an order", "refund it", tags=["shop"], idempotency_key="1")
        many = await client.add_procedures([{"trigger": "Refund an order", "action": "refund it"}, {}])
        reported = await client.report_outcome(added["id"], succeeded=True, run="r1")
        (found,) = (await client.match_procedures("Refund an order"))["matches"]

        assert [item["status"] for item in many["results"]] == ["existed", "invalid"]
        assert reported["successes"] == 1
        assert (found["id"], found["workspace"], found["strength"]) == (added["id"], "w", reported["strength"])
        with pytest.raises(Conflict, match="r1"):
            await client.report_outcome(added["id"], succeeded=False, run="r1")
        with pytest.raises(NotFound, match="procedure"):
            await client.report_outcome(uuid4(), succeeded=True)


def _epoch(application: Application) -> int:
    return _count(application, "SELECT epoch FROM epochs WHERE tenant = %s")


def _count(application: Application, query: str) -> int:
    with psycopg.connect(application.url) as connection:
        row = connection.execute(query.encode(), (application.tenant,)).fetchone()
    return int(row[0]) if row else 0
