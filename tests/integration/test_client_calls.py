"""Both clients have the same methods, and what they send meets a route."""

import inspect
import re
from uuid import UUID

import pytest

from lamina.client import AsyncClient, Client, calls
from lamina.client.calls import Call
from lamina.stores.postgres.keys import KeyRole
from tests.support.application import Application

ID = UUID(int=7)


def methods(of: type) -> dict[str, str]:
    named = inspect.getmembers(of, inspect.isfunction)
    return {name: str(inspect.signature(one)) for name, one in named if not name.startswith("_")}


def test_both_clients_have_the_same_methods() -> None:
    ours, theirs = methods(Client), methods(AsyncClient)
    closing = {"close", "aclose", "wait_until_ready"}

    assert {name: text for name, text in ours.items() if name not in closing} == {
        name: text for name, text in theirs.items() if name not in closing
    }


@pytest.mark.parametrize(
    ("call", "status"),
    [
        (calls.run_job("sweep", {"dry_run": True}, None), 202),
        (calls.job_runs("sweep", 5), 200),
        (calls.job_run(str(ID)), 404),
        (calls.undo_job(str(ID)), 404),
        (calls.JOB_SCHEDULE, 200),
        (calls.forecast("no/such session", {"workspace": "w", "user": "u"}), 404),
        (calls.archived_notes({"workspace": "w", "limit": 5, "offset": 0}), 200),
        (calls.restore_notes([ID]), 200),
        (calls.erase_user("nobody/at all"), 200),
    ],
    ids=lambda value: value.path if isinstance(value, Call) else "",
)
async def test_a_call_meets_its_route(application: Application, call: Call, status: int) -> None:
    admin = application.client(application.new_key(application.tenant, KeyRole.ADMIN))

    answer = await admin.request(call.method, call.path, json=call.json, params=call.params)

    assert (answer.status_code, answer.text) == (status, answer.text)
    assert not re.search("No such route|Method Not Allowed", answer.text)


async def test_a_session_whose_id_has_slashes_is_read_and_forecast(application: Application) -> None:
    client = application.client()
    await client.post("/v1/turns", json={"session": "a/b c", "messages": [{"content": "the boat is green"}]})

    told = await client.get("/v1/sessions/a%2Fb%20c/messages")
    forecast = await client.get("/v1/sessions/a%2Fb%20c/forecast")

    assert [message["content"] for message in told.json()["messages"]] == ["the boat is green"]
    assert forecast.json()["state"] == "ok"
