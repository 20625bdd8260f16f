"""Quotas of tenants and keys hold across all routers, and are told to those whom they bound."""

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from deployments.quotas import QuotaDesk
from lamina.cli.quotas import app
from lamina.core.principals import Bounds, KeyRole, Principal
from lamina.core.quotas import TENANT, WINDOWS_S, Resource, Spending, counted_spending, spend
from lamina.errors import InvalidInput, LimitReached
from lamina.models.hashing import HashingModel
from lamina.policies.limits.allowance import RETRY_S, SLICES, Allowance, Ask, Grant
from lamina.policies.limits.request_weight import most_cost
from lamina.settings.serving import KeyQuotas, QuotasSettings, TenantQuotas
from lamina.stores.postgres.keys import list_keys
from lamina.stores.postgres.quotas import GrantAsk, Limited, Quotas, read_quotas, set_quota
from lamina.wiring.stores import build_pool
from tests.support.application import Application, another_router, running, settings_for
from tests.support.mcp import post
from tests.support.upstream import upstream

WINDOW_S, LEFT_S = 86_400, 60.0


@pytest.fixture
async def wide_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all windows be of a day: a test would often have to wait for the next minute."""
    monkeypatch.setattr("lamina.stores.postgres.quotas.WINDOWS_S", dict.fromkeys(WINDOWS_S, WINDOW_S))
    left = WINDOW_S - time.time() % WINDOW_S
    if left < LEFT_S:
        await asyncio.sleep(left + 0.1)


def key_of(tenant: str) -> Principal:
    return Principal(uuid4(), tenant, KeyRole.WRITER, frozenset(), Bounds(), None)


async def admitted(desk: QuotaDesk, principal: Principal, weight: int = 1) -> bool:
    try:
        await desk.admit(principal, weight)
    except LimitReached:
        return False
    return True


def quotas(**tenant: int) -> QuotasSettings:
    return QuotasSettings(tenant=TenantQuotas(**tenant))


@pytest.mark.usefixtures("wide_windows")
@pytest.mark.parametrize("limit", [1, 10, 100, 1000])
@pytest.mark.parametrize("replicas", [2, 5])
async def test_requests_at_several_replicas_never_exceed_a_limit_and_leave_little_of_it(
    database: str, tmp_path: Path, limit: int, replicas: int
) -> None:
    pool = build_pool(settings_for(database, tmp_path))
    desks = [QuotaDesk(Quotas(pool), quotas(requests_per_minute=limit)) for _ in range(replicas)]
    principal = key_of("acme")
    try:
        asked = (admitted(desks[place % replicas], principal) for place in range(2 * limit + replicas))
        passed = sum(await asyncio.gather(*asked))
    finally:
        await asyncio.gather(*(desk.close() for desk in desks))
        await pool.close()

    assert limit - (replicas - 1) * (limit // SLICES) <= passed <= limit


async def test_a_grant_ends_with_its_minute_or_day(database: str, tmp_path: Path) -> None:
    asked = {Limited("acme", TENANT, resource): window_s for resource, window_s in WINDOWS_S.items()}
    async with build_pool(settings_for(database, tmp_path)) as pool:
        given = await Quotas(pool).take([GrantAsk(limited, 10, Ask(0, 1)) for limited in asked])

    assert sorted(asked.values()) == [60, 60, 86_400]
    assert all(0 < given[limited].ends_in_s <= window_s for limited, window_s in asked.items())


@pytest.mark.usefixtures("wide_windows")
async def test_what_is_needed_is_granted_whole_or_no_more_than_a_slice_is(database: str, tmp_path: Path) -> None:
    limited = Limited("acme", TENANT, Resource.REQUESTS)
    async with build_pool(settings_for(database, tmp_path)) as pool:
        grants = [(await Quotas(pool).take([GrantAsk(limited, 10, Ask(0, 1, 6))]))[limited] for _ in range(2)]

    assert [(grant.given, grant.left) for grant in grants] == [(6, 4), (1, 3)]


@pytest.mark.usefixtures("wide_windows")
async def test_what_is_known_afterwards_is_overspent_by_those_under_way_alone(database: str, tmp_path: Path) -> None:
    pool = build_pool(settings_for(database, tmp_path))
    desks = [QuotaDesk(Quotas(pool), quotas(embedded_tokens_per_minute=160)) for _ in range(2)]
    principal, cost, under_way = key_of("acme"), 30, 3
    spent = 0
    try:
        for _ in range(20):
            passed = [desk for desk in desks for _ in range(under_way) if await admitted(desk, principal)]
            for desk in passed:
                desk.settle(principal, Spending({Resource.EMBEDDED_TOKENS: cost}))
                spent += cost
    finally:
        await asyncio.gather(*(desk.close() for desk in desks))
        await pool.close()

    assert 160 - 160 // SLICES <= spent <= 160 + len(desks) * under_way * cost


@pytest.mark.usefixtures("wide_windows")
@pytest.mark.parametrize("limit", [8, 160])
async def test_requests_of_many_weights_at_several_replicas_never_exceed_a_limit(
    database: str, tmp_path: Path, limit: int
) -> None:
    pool = build_pool(settings_for(database, tmp_path))
    desks = [QuotaDesk(Quotas(pool), quotas(requests_per_minute=limit)) for _ in range(3)]
    principal, weights = key_of("acme"), [1, 7, 1, 25, 1, 1_000] * 20
    try:
        asked = [admitted(desks[place % 3], principal, weight) for place, weight in enumerate(weights)]
        passed = await asyncio.gather(*asked)
        rest = sum([await admitted(desk, principal) for desk in desks for _ in range(limit)])
    finally:
        await asyncio.gather(*(desk.close() for desk in desks))
        await pool.close()

    cost = sum(most_cost(weight, limit) for weight, has_passed in zip(weights, passed, strict=True) if has_passed)
    assert cost + rest == limit  # In the end every router was asked: no slice lies unused.


@pytest.mark.usefixtures("wide_windows")
async def test_a_task_that_is_cancelled_before_it_begins_is_begun_again(database: str, tmp_path: Path) -> None:
    pool = build_pool(settings_for(database, tmp_path))
    desk = QuotaDesk(Quotas(pool), quotas(requests_per_minute=10, rows=5))
    principal = key_of("acme")
    try:
        reading = asyncio.create_task(desk._know())
        await cancelled_at_once(lambda: desk._reading)
        with pytest.raises(asyncio.CancelledError):
            await reading
        desk._taking = desk._start_taking(desk._held(principal))
        await cancelled_at_once(lambda: desk._taking)
        writing = asyncio.create_task(desk.admit_write(principal))
        await cancelled_at_once(lambda: desk._counting.get("acme"))
        with pytest.raises(asyncio.CancelledError):
            await writing

        async with asyncio.timeout(60):
            assert await admitted(desk, principal)
            await desk.admit_write(principal)
    finally:
        await desk.close()
        await pool.close()


async def cancelled_at_once(task: Callable[[], "asyncio.Task[None] | None"]) -> None:
    """Cancel a task as soon as it is there, before its first line runs."""
    while (found := task()) is None:  # noqa: ASYNC110 - it is made in this loop
        await asyncio.sleep(0)
    found.cancel()


@pytest.mark.usefixtures("wide_windows")
async def test_what_weighs_more_than_a_whole_quota_is_answered_while_half_of_it_is_left(
    database: str, tmp_path: Path
) -> None:
    pool = build_pool(settings_for(database, tmp_path))
    desks = [QuotaDesk(Quotas(pool), quotas(requests_per_minute=64)) for _ in range(2)]
    principal = key_of("acme")
    try:
        assert await admitted(desks[1], principal)
        first = await admitted(desks[0], principal, 10_000)
        with pytest.raises(LimitReached) as refused:
            await desks[0].admit(principal, 10_000)
        plain = [await admitted(desk, principal) for desk in (*desks, desks[1])]
    finally:
        await asyncio.gather(*(desk.close() for desk in desks))
        await pool.close()

    assert (first, plain) == (True, [True] * 3)
    assert "64 requests a minute, and this one counts as 32" in str(refused.value)
    assert 0 < refused.value.retry_after_s <= WINDOW_S


@pytest.mark.usefixtures("wide_windows")
async def test_a_request_that_asks_for_much_counts_as_several_and_is_told_so(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, quotas=quotas(requests_per_minute=40))
    async with running(settings, database, HashingModel()) as app:
        client = app.client()
        answers = [
            await client.post("/v1/search", json={"query": "a ship", **more})
            for more in ({}, {"limit": 100}, {"limit": 100, "explain": True})
        ]
        answers.append(await client.get("/v1/notes", params={"limit": 1000}))
        answers.append(await client.post("/v1/notes/batch", json={"notes": [f"note {n}" for n in range(100)]}))
        answers.append(await client.post("/v1/notes/batch", json={"notes": [f"note {n}" for n in range(500)]}))
        answers.append(await client.get("/v1/notes"))

    left = [int(answer.headers["RateLimit"].split(";")[1].removeprefix("r=")) for answer in answers]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429, 200]
    # The one that is refused was admitted as a plain one before its body was read.
    assert [before - after for before, after in pairwise([40, *left])] == [1, 2, 3, 4, 11, 1, 1]
    assert "40 requests a minute, and this one counts as 20" in answers[5].json()["detail"]
    assert 0 < int(answers[5].headers["Retry-After"]) <= WINDOW_S


@pytest.mark.usefixtures("wide_windows")
async def test_a_tool_weighs_as_its_call_does_and_a_request_to_the_gateway_as_one(
    database: str, tmp_path: Path
) -> None:
    async with upstream() as served:
        own = {"base_url": served.url, "api_key": "sk-upstream", "recall_s": 30, "answer_s": 60}
        settings = settings_for(database, tmp_path, quotas=quotas(requests_per_minute=40), gateway=own)
        served.says("A long one.")
        said = {"role": "user", "content": "The log of the Marlin. " * 2_000}
        async with running(settings, database, HashingModel()) as app:
            client = app.client()
            tool = await post(client, "tools/call", {"name": "search", "arguments": {"query": "a ship", "limit": 100}})
            asked = await client.post("/openai/v1/chat/completions", json={"model": "small", "messages": [said]})
            turns = await client.get("/v1/turns")
            await app.api.state.gateway.close()

    answers = (tool, asked, turns)
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len(turns.json()["turns"]) == 1
    assert [answer.headers["RateLimit"].split(";")[1] for answer in answers] == ["r=38", "r=37", "r=36"]


@pytest.mark.usefixtures("wide_windows")
async def test_a_limit_of_requests_is_told_and_another_tenant_goes_on(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, quotas=quotas(requests_per_minute=5))
    async with running(settings, database, HashingModel()) as app:
        client, other = app.client(), app.for_tenant("another").client()

        answers = [await client.get("/v1/notes") for _ in range(7)]
        elsewhere = await other.get("/v1/notes")
        await other.aclose()

    assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 2
    assert answers[0].headers["RateLimit-Policy"] == '"tenant-requests";q=5;w=60'
    assert [answer.headers["RateLimit"].split(";")[1] for answer in answers] == [
        f"r={n}" for n in (4, 3, 2, 1, 0, 0, 0)
    ]
    refused = answers[-1]
    assert 0 < int(refused.headers["Retry-After"]) <= WINDOW_S
    assert refused.json()["fields"]["part"] == "tenant"
    assert "5 requests a minute" in refused.json()["detail"]
    assert elsewhere.status_code == 200


async def test_without_a_quota_nothing_is_told(application: Application) -> None:
    answer = await application.client().get("/v1/notes")

    assert "RateLimit" not in answer.headers


@pytest.mark.usefixtures("wide_windows")
async def test_tokens_that_are_embedded_count_and_cached_ones_do_not(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, quotas=quotas(embedded_tokens_per_minute=100))
    async with running(settings, database, HashingModel()) as app:
        client = app.client()
        asked = [await client.post("/v1/search", json={"query": "the same short question"}) for _ in range(10)]
        stored = await client.post("/v1/notes", json={"content": "a word and another " * 100})
        refused = await client.post("/v1/search", json={"query": "one more"})

    assert {answer.status_code for answer in asked} == {200}
    assert stored.status_code == 201
    assert refused.status_code == 429
    assert "embedded tokens" in refused.json()["detail"]


async def write(client: httpx.AsyncClient, kind: str, number: int) -> httpx.Response:
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "rows": ("/v1/notes", {"content": f"note {number}"}),
        "bytes": ("/v1/turns", {"session": "s", "messages": [{"content": f"message {number} " * 20}]}),
        "documents": ("/v1/documents", {"content": f"document {number}", "key": str(number)}),
        "namespaces": ("/v1/notes", {"content": "a note", "namespace": f"n{number}"}),
    }
    path, body = calls[kind]
    return await client.post(path, json=body)


@pytest.mark.parametrize(("kind", "most"), [("rows", 4), ("bytes", 1000), ("documents", 3), ("namespaces", 3)])
async def test_a_tenant_that_stores_as_much_as_it_may_reads_and_deletes_on(
    database: str, tmp_path: Path, kind: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.stores.postgres.quotas.REFRESH_S", 0.0)
    monkeypatch.setattr("lamina.stores.postgres.quotas._COUNTING_SHARE", 1e6)
    monkeypatch.setattr("deployments.quotas.REFRESH_S", 0.0)
    settings = settings_for(database, tmp_path, quotas=quotas(**{kind: most}))
    async with running(settings, database, HashingModel()) as app:
        client = app.client()
        answers = []
        for number in range(12):
            answers.append(await write(client, kind, number))
            await asyncio.gather(*app.services.quotas._counting.values())
        note = next(iter((await client.get("/v1/notes")).json()["notes"]), None)
        found = await client.post("/v1/search", json={"query": "note"})
        deleted = await client.delete(f"/v1/notes/{note['id']}") if note else None
        another = await write(app.for_tenant("another").client(), kind, 0)

    statuses = [answer.status_code for answer in answers]
    assert statuses == sorted(statuses)
    assert 200 <= statuses[0] < 300
    assert statuses[-1] == 429
    assert f"{most} {kind}" in answers[-1].json()["detail"]
    # One write more than there is room for may have begun before it was counted.
    assert kind == "bytes" or statuses.count(429) in {12 - most, 11 - most}
    assert found.status_code == 200
    assert deleted is None or deleted.status_code == 204
    assert another.is_success


@pytest.mark.usefixtures("wide_windows")
async def test_a_quota_of_a_key_is_set_by_an_admin_of_its_tenant_alone(database: str, tmp_path: Path) -> None:
    async with running(settings_for(database, tmp_path), database, HashingModel()) as app:
        (info,) = [info for info in list_keys(app.url) if app.key.startswith(info.hint)]
        admin = app.admin()
        stranger = app.client(app.new_key("another", KeyRole.ADMIN))
        path, body = f"/v1/keys/{info.id}/quotas", {"requests": 3}

        refused = [await app.client().put(path, json=body), await stranger.put(path, json=body)]
        answer = await admin.put(path, json=body)
        asked = [(await app.client().get("/v1/notes")).status_code for _ in range(4)]
        shown = await admin.get("/v1/quotas")
        dropped = await admin.put(path, json={})
        again = await app.client().get("/v1/notes")

    assert [answer.status_code for answer in refused] == [403, 404]
    assert answer.json() == {"key": {"requests": 3}}
    assert asked == [200] * 3 + [429]
    assert shown.json()["tenant"] == shown.json()["key"] == {}
    assert shown.json()["stored"].keys() == {"rows", "bytes", "documents", "namespaces"}
    assert (dropped.json(), again.status_code) == ({"key": {}}, 200)


@pytest.mark.usefixtures("wide_windows")
async def test_a_table_wins_over_the_settings_at_every_router(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, quotas=quotas(requests_per_minute=2))
    async with running(settings, database, HashingModel()) as app, another_router(app, {}) as second:
        set_quota(app.url, Limited("acme", TENANT, Resource.REQUESTS), 4)
        set_quota(app.url, Limited("free", TENANT, Resource.REQUESTS), None)
        free = app.for_tenant("free").client()

        acme = [(await one.client().get("/v1/notes")).status_code for one in (app, second) for _ in range(3)]
        unlimited = [(await free.get("/v1/notes")).status_code for _ in range(5)]
        await free.aclose()

    assert acme.count(200) == 4
    assert unlimited == [200] * 5
    assert read_quotas(database) == {
        Limited("acme", TENANT, Resource.REQUESTS): 4,
        Limited("free", TENANT, Resource.REQUESTS): None,
    }


def test_quotas_are_set_dropped_and_listed_on_the_command_line(database: str, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"postgres: {{kind: server, url: '{database}'}}")
    key = str(uuid4())

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--config", str(config)])

    done = [
        run("set", "requests", "600", "--tenant", "acme"),
        run("set", "rows", "none", "--tenant", "acme"),
        run("set", "model_tokens", "5", "--tenant", "acme", "--key", key),
        run("set", "documents", "5", "--tenant", "acme"),
        run("drop", "documents", "--tenant", "acme"),
    ]
    wrong = [
        run("set", "rows", "5", "--tenant", "acme", "--key", key),
        run("set", "requests", "-5", "--tenant", "acme"),
        run("set", "requests", "many", "--tenant", "acme"),
        run("set", "rows", "9" * 19, "--tenant", "acme"),
        run("set", "dreams", "5", "--tenant", "acme"),
    ]

    assert [result.exit_code for result in done] == [0] * 5
    assert all(result.exit_code != 0 for result in wrong)
    assert all(isinstance(result.exception, InvalidInput | SystemExit) for result in wrong)
    assert read_quotas(database) == {
        Limited("acme", TENANT, Resource.REQUESTS): 600,
        Limited("acme", TENANT, Resource.ROWS): None,
        Limited("acme", key, Resource.MODEL_TOKENS): 5,
    }
    assert run("list").exit_code == 0


def test_a_slice_is_asked_for_before_the_one_before_is_spent() -> None:
    allowance = Allowance(160)
    assert allowance.is_due(0.0)
    assert allowance.ask(0.0) == Ask(0, 10, 1)
    allowance.receive(Grant(10, 150, 30.0), 0.0)

    low = []
    for _ in range(10):
        assert allowance.covers(1, 1.0)
        allowance.spend(1)
        low.append(allowance.runs_low(1.0))

    assert low == [False] * 5 + [True] * 5
    assert allowance.is_due(1.0)
    assert not allowance.covers(1, 1.0)
    assert allowance.remaining(1.0) == (150, 29)


def test_what_was_overspent_is_taken_from_the_next_slices_of_this_window_or_the_next() -> None:
    allowance = Allowance(160)
    allowance.receive(Grant(10, 150, 30.0), 0.0)
    allowance.spend(25)

    ask = allowance.ask(1.0)
    allowance.refuse(ask)
    assert (ask, allowance.ask(1.0)) == (Ask(15, 10, 1), Ask(15, 10, 1))
    allowance.receive(Grant(10, 125, 20.0), 10.0)
    assert allowance.covers(10, 10.0)
    allowance.spend(12)

    assert not allowance.covers(1, 40.0)
    assert allowance.ask(40.0) == Ask(2, 10, 1)


def test_a_cost_beyond_all_that_is_left_is_asked_for_once_and_takes_no_slice_from_others() -> None:
    allowance = Allowance(160)
    allowance.receive(Grant(10, 20, 30.0), 0.0)

    asked = [(cost, allowance.is_due(1.0, cost), allowance.ask(1.0, cost)) for cost in (10, 30, 31)]
    allowance.receive(Grant(0, 15, 29.0), 1.0)

    assert asked == [(10, False, Ask(0, 0, 0)), (30, True, Ask(0, 0, 20)), (31, False, Ask(0, 0, 21))]
    assert (allowance.is_due(1.0, 25), allowance.is_due(1.0, 26)) == (True, False)


def test_a_window_that_is_used_up_is_asked_about_once_a_second() -> None:
    allowance = Allowance(5)
    allowance.ask(0.0)
    allowance.receive(Grant(0, 0, 30.0), 0.0)

    assert [allowance.is_due(now) for now in (0.0, RETRY_S / 2, RETRY_S, 30.0)] == [False, False, True, True]


async def test_spending_is_counted_for_the_request_alone_that_it_belongs_to() -> None:
    async def request(amount: int) -> int:
        with counted_spending() as spending:
            await asyncio.gather(*(asyncio.create_task(work(amount)) for _ in range(3)))
        return spending.amounts[Resource.EMBEDDED_TOKENS]

    async def work(amount: int) -> None:
        await asyncio.sleep(0)
        spend(Resource.EMBEDDED_TOKENS, amount)

    spend(Resource.EMBEDDED_TOKENS, 1_000_000)
    assert await asyncio.gather(*(request(amount) for amount in (1, 10, 100))) == [3, 30, 300]


def test_every_setting_of_a_quota_stands_for_a_resource() -> None:
    everything = TenantQuotas(**dict.fromkeys(TenantQuotas.model_fields, 1)).limits()
    of_keys = KeyQuotas(**dict.fromkeys(KeyQuotas.model_fields, 1)).limits()

    assert (set(everything), set(of_keys)) == (set(Resource), set(WINDOWS_S))
