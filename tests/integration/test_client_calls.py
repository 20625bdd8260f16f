"""Both clients have the same methods, and what they send meets a route."""

import inspect
import re
from uuid import UUID

import pytest

from lamina.client import AsyncClient, Client
from lamina.client.calls import Call, Calls
from lamina.core.principals import KeyRole
from tests.support.application import Application

ID = UUID(int=7)


class Unsent(Calls[Call, Call]):
    """A client that returns each call instead of sending it."""

    def send(self, call: Call) -> Call:
        return call

    def _finish(self, call: Call) -> Call:
        return call


CALLS = Unsent({})


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
        (CALLS.run_job("sweep", dry_run=True), 202),
        (CALLS.job_runs("sweep", limit=5), 200),
        (CALLS.job_run(str(ID)), 404),
        (CALLS.undo_job(str(ID)), 404),
        (CALLS.job_schedule(), 200),
        (CALLS.events(workspace="w", limit=5), 200),
        (CALLS.make_webhook("https://example.com/hook", workspace="w"), 201),
        (CALLS.webhooks("w"), 200),
        (CALLS.trash(workspace="w", limit=5), 200),
        (CALLS.restore(str(ID)), 404),
        (CALLS.change_notes(category="skill", add_tags=["a"], dry_run=True), 200),
        (CALLS.delete_notes(category="skill", workspace="w"), 200),
        (CALLS.operations(workspace="w", limit=5), 200),
        (CALLS.operation(ID), 404),
        (CALLS.search_many(["boat", {"query": "keel", "limit": 3}], workspace="w"), 200),
        (CALLS.feedback(ID), 404),
        (CALLS.vote(ID, "useful"), 404),
        (CALLS.take_vote_back(ID), 404),
        (CALLS.pin(ID), 404),
        (CALLS.unpin(ID), 404),
        (CALLS.tenant_usage(since="2026-03-01", until="2026-04-01"), 200),
        (CALLS.delete_scope(workspace="w", namespace="n", session="s", dry_run=True), 200),
        (CALLS.undo_operation(ID), 404),
        (CALLS.delete_webhook(str(ID)), 404),
        (CALLS.forecast("no/such session", workspace="w", user="u"), 404),
        (CALLS.archived_notes(workspace="w", limit=5), 200),
        (CALLS.restore_notes([ID]), 200),
        (CALLS.erase_user("nobody/at all"), 200),
        (CALLS.put_file("docs/a b?#.md", "text", if_none_match="*", workspace="w", always=True, mirror="here"), 201),
        (CALLS.put_file("docs/a.md", "text", if_match="*", namespace="n"), 412),
        (CALLS.file("docs/a b.md", version=3, user="u"), 404),
        (CALLS.files(prefix="docs/", limit=5, namespace="n"), 200),
        (CALLS.delete_file("docs/a.md", if_match="1f"), 404),
    ],
    ids=lambda value: value.path if isinstance(value, Call) else "",
)
async def test_a_call_meets_its_route(application: Application, call: Call, status: int) -> None:
    admin = application.client(application.new_key(application.tenant, KeyRole.ADMIN))

    answer = await admin.request(call.method, call.path, json=call.json, params=call.params, headers=call.headers)

    assert (answer.status_code, answer.text) == (status, answer.text)
    assert not re.search("No such route|Method Not Allowed", answer.text)


async def test_a_session_whose_id_has_slashes_is_read_and_forecast(application: Application) -> None:
    client = application.client()
    await client.post("/v1/turns", json={"session": "a/b c", "messages": [{"content": "the boat is green"}]})

    told = await client.get("/v1/sessions/a%2Fb%20c/messages")
    forecast = await client.get("/v1/sessions/a%2Fb%20c/forecast")

    assert [message["content"] for message in told.json()["messages"]] == ["the boat is green"]
    assert forecast.json()["state"] == "ok"
