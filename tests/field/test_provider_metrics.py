"""Provider hit rates: what was recorded, per provider and model, weighted in both ways."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest

from lamina.core.principals import KeyRole
from lamina.stores.postgres.provider_metrics import ProviderMetrics
from tests.support.application import Application

PATH = "/v1/providers/cache-metrics"


def call(cached: int, of: int = 1000, **fields: Any) -> dict[str, Any]:
    return {"provider": "anthropic", "model": "large", "input_tokens": of, "cached_tokens": cached, **fields}


async def record(client: httpx.AsyncClient, *calls: dict[str, Any], **headers: str) -> httpx.Response:
    return await client.post(PATH, json={"calls": list(calls)}, headers=headers)


async def rates(client: httpx.AsyncClient, **params: Any) -> list[dict[str, Any]]:
    answer = await client.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["rates"])


def age(application: Application, days: float) -> None:
    with psycopg.connect(application.url, autocommit=True) as connection:
        connection.execute(
            "UPDATE provider_cache_metrics SET recorded_at = recorded_at - %s WHERE tenant = %s",
            (timedelta(days=days), application.tenant),
        )


@pytest.fixture
def client(application: Application) -> httpx.AsyncClient:
    return application.client()


async def test_the_mean_of_the_calls_rates_differs_from_the_share_of_tokens(client: httpx.AsyncClient) -> None:
    answer = await record(client, call(90, of=100), call(100, of=1000), call(0, of=0))

    assert (answer.status_code, answer.json()) == (201, {"recorded": 3})
    assert await rates(client) == [
        {
            "provider": "anthropic",
            "model": "large",
            "calls": 3,
            "input_tokens": 1100,
            "cached_tokens": 190,
            "avg_hit_rate": pytest.approx(0.5),
            "token_hit_rate": pytest.approx(190 / 1100),
        }
    ]


async def test_the_best_mean_rate_comes_first_and_what_has_none_last(client: httpx.AsyncClient) -> None:
    await record(
        client,
        call(500, provider="openai", model="small"),
        call(0, of=0, provider="local", model="tiny"),
        call(900, provider="openai", model="large"),
        call(1000, provider="google"),
        call(0, provider="azure"),
    )

    found = await rates(client)

    assert [(item["provider"], item["model"], item["avg_hit_rate"]) for item in found] == [
        ("google", "large", 1.0),
        ("openai", "large", 0.9),
        ("openai", "small", 0.5),
        ("azure", "large", 0.0),
        ("local", "tiny", None),
    ]


async def test_days_and_workspace_narrow_what_is_counted(application: Application, client: httpx.AsyncClient) -> None:
    await record(client, call(100, workspace="atlas", agent="ann"))
    age(application, days=6.9)
    await record(client, call(300, workspace="atlas"), call(500))

    assert [item["calls"] for item in await rates(client)] == [3]
    assert [item["cached_tokens"] for item in await rates(client, workspace="atlas")] == [400]
    assert [item["cached_tokens"] for item in await rates(client, workspace="atlas", days=6)] == [300]
    assert await rates(client, workspace="elsewhere") == []
    age(application, days=0.2)
    assert [item["calls"] for item in await rates(client)] == [2]


async def test_nobody_sees_another_tenants_figures(application: Application, client: httpx.AsyncClient) -> None:
    await record(client, call(100))

    stranger = application.client(application.new_key(f"{application.tenant} of somebody else"))

    assert await rates(stranger) == []


async def test_a_reader_sees_the_rates_and_records_none(application: Application) -> None:
    reader = application.client(application.new_key(application.tenant, KeyRole.READER))

    assert (await record(reader, call(1))).status_code == 403
    assert await rates(reader) == []


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (call(1001), "calls.1.cached_tokens"),
        (call(-1), "calls.1.cached_tokens"),
        (call(0, of=-1), "calls.1.input_tokens"),
        (call(0, of=10**13), "calls.1.input_tokens"),
        (call(0, of=2**63), "calls.1.input_tokens"),
        (call(1) | {"input_tokens": 10.5}, "calls.1.input_tokens"),
        (call(1) | {"input_tokens": "10"}, "calls.1.input_tokens"),
        (call(1, provider=""), "calls.1.provider"),
        (call(1, model="a\nb"), "calls.1.model"),
        (call(1, workspace="w" * 129), "calls.1.workspace"),
        (call(1, agent=" "), "calls.1.agent"),
        (call(1, agent=None), "calls.1.agent"),
        (call(1, hit_rate=0.5), "calls.1.hit_rate"),
    ],
)
async def test_a_call_that_is_wrong_is_named_and_none_is_recorded(
    client: httpx.AsyncClient, wrong: dict[str, Any], field: str
) -> None:
    answer = await record(client, call(1), wrong)

    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert await rates(client) == []


async def test_a_thousand_calls_go_at_once_and_more_or_none_are_refused(client: httpx.AsyncClient) -> None:
    assert (await record(client, *[call(1)] * 1000)).json() == {"recorded": 1000}
    assert (await record(client, *[call(1)] * 1001)).status_code == 422
    assert (await record(client)).status_code == 422
    assert (await rates(client))[0]["calls"] == 1000


@pytest.mark.parametrize("params", [{"days": 0}, {"days": 3651}, {"days": "week"}, {"workspace": ""}])
async def test_a_range_that_makes_no_sense_is_refused(client: httpx.AsyncClient, params: dict[str, Any]) -> None:
    assert (await client.get(PATH, params=params)).status_code == 422


async def test_a_delivery_that_is_repeated_counts_once(client: httpx.AsyncClient) -> None:
    first = await record(client, call(1), **{"Idempotency-Key": "delivery-1"})
    again = await record(client, call(1), **{"Idempotency-Key": "delivery-1"})
    other = await record(client, call(2), **{"Idempotency-Key": "delivery-1"})

    assert (first.json(), again.json(), other.status_code) == ({"recorded": 1}, {"recorded": 1}, 409)
    assert (await rates(client))[0]["calls"] == 1


async def test_old_figures_are_purged_and_new_ones_stay(application: Application, client: httpx.AsyncClient) -> None:
    await record(client, call(100))
    age(application, days=91)
    await record(client, call(300))

    assert await ProviderMetrics(application.pool).purge_expired(datetime.now(UTC), 90, application.tenant) >= 1
    assert [item["cached_tokens"] for item in await rates(client, days=3650)] == [300]
