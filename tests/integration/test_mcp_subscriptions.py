"""Changes of resources over `subscriptions/listen`, by both transports, as far as a key reaches."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent

from lamina.client.mcp.subscriptions import changes_in
from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.stores.postgres.keys import store_key
from lamina.wiring.stores import utc_now
from tests.support.application import Application
from tests.support.ingress import uvicorn_of
from tests.support.service import ROOT

PATIENCE_S = 120.0


@asynccontextmanager
async def over_http(app: Application, key: str | None = None, **ids: str) -> AsyncIterator[Client]:
    """Connect the SDK's client to `/mcp`, by a real server: one in this process hands no stream over."""
    sent = {"Authorization": f"Bearer {key or app.key}", **{f"Lamina-{name}": id_ for name, id_ in ids.items()}}
    async with (
        uvicorn_of(app.api, app.settings.serve.front_door) as port,
        httpx2.AsyncClient(headers=sent, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(app: Application, key: str | None = None, **ids: str) -> AsyncIterator[Client]:
    """Connect the SDK's client to `lamina mcp`."""
    scope = [word for name, id_ in ids.items() for word in (f"--{name.lower()}", id_)]
    async with uvicorn_of(app.api, app.settings.serve.front_door) as port:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-c", "import lamina.cli; lamina.cli.main()", "mcp", *scope],
            env={
                "LAMINA_URL": f"http://127.0.0.1:{port}",
                "LAMINA_API_KEY": key or app.key,
                "PYTHONPATH": str(ROOT),
                "PATH": os.environ["PATH"],
            },
        )
        async with Client(command, read_timeout_seconds=PATIENCE_S) as client:
            yield client


TRANSPORTS = {"http": over_http, "stdio": over_stdio}


async def sent(client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    answer = await client.request(method, path, json=body)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


async def add(app: Application, **fields: str) -> str:
    return str((await sent(app.client(), "POST", "/v1/notes", {"content": f"a note {uuid4()}", **fields}))["id"])


def uri(id_: str) -> str:
    return f"lamina://note/{id_}"


async def heard(subscription: Any, last: ServerEvent) -> list[ServerEvent]:
    """Return the changes up to one that has to come."""
    changes = []
    async with asyncio.timeout(PATIENCE_S):
        async for change in subscription:
            changes.append(change)
            if change == last:
                break
    return changes


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_who_listens_is_told_which_resources_change(application: Application, transport: str) -> None:
    watched, other = await add(application), await add(application)
    client = application.client()
    document = (await sent(client, "POST", "/v1/documents", {"key": str(uuid4()), "content": "One"}))["id"]
    of_document = f"lamina://document/{document}"

    async with (
        TRANSPORTS[transport](application) as model,
        model.listen(resource_subscriptions=[uri(watched), of_document]) as subscription,
    ):
        await sent(client, "PATCH", f"/v1/notes/{other}", {"content": f"another text {uuid4()}"})
        await sent(client, "PATCH", f"/v1/notes/{watched}", {"content": f"a new text {uuid4()}"})
        first = await heard(subscription, ResourceUpdated(uri(watched)))
        await sent(client, "DELETE", f"/v1/documents/{document}")
        second = await heard(subscription, ResourceUpdated(of_document))

    assert (first, second) == ([ResourceUpdated(uri(watched))], [ResourceUpdated(of_document)])


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_who_listens_is_told_of_the_list_and_of_the_configured_workspace_alone(
    application: Application, transport: str
) -> None:
    workspace = f"desk {uuid4().hex[:8]}"
    named = {"Workspace" if transport == "http" else "workspace": workspace}
    elsewhere, here = await add(application), await add(application, workspace=workspace)
    async with (
        TRANSPORTS[transport](application, **named) as model,
        model.listen(resources_list_changed=True, resource_subscriptions=[uri(elsewhere), uri(here)]) as subscription,
    ):
        for id_ in (elsewhere, here):
            await sent(application.client(), "DELETE", f"/v1/notes/{id_}")
        changes = await heard(subscription, ResourcesListChanged())

    assert changes == [ResourceUpdated(uri(here)), ResourcesListChanged()]


async def test_a_key_hears_of_nothing_outside_its_bounds(application: Application) -> None:
    user = f"ann {uuid4()}"
    own, foreign = await add(application, user=user), await add(application, user="bob")
    principal = new_principal(application.tenant, KeyRole.READER, utc_now(), bounds=Bounds(users=frozenset({user})))
    key = store_key(application.url, principal, "bound")
    other = application.for_tenant(f"other {uuid4()}")
    theirs = await add(other)

    async with (
        over_http(application, key) as model,
        model.listen(resource_subscriptions=[uri(own), uri(foreign)]) as subscription,
        over_http(application, other.key) as stranger,
        stranger.listen(resource_subscriptions=[uri(own), uri(theirs)]) as strange,
    ):
        for app, id_ in ((application, foreign), (application, own), (other, theirs)):
            await sent(app.client(), "PATCH", f"/v1/notes/{id_}", {"content": f"a new text {uuid4()}"})
        changes = await heard(subscription, ResourceUpdated(uri(own)))
        strange_ones = await heard(strange, ResourceUpdated(uri(theirs)))
    await other.close_clients()

    assert (changes, strange_ones) == ([ResourceUpdated(uri(own))], [ResourceUpdated(uri(theirs))])


async def test_a_subscription_ends_with_its_key_and_leaves_nothing_open(unshared: Application) -> None:
    feed = unshared.services.events.feed
    admin = unshared.admin()
    made = await sent(admin, "POST", "/v1/keys", {"name": "listens", "role": "reader"})

    async with over_http(unshared, made["key"]) as model, model.listen(resources_list_changed=True) as subscription:
        opened = feed.open_streams
        await sent(admin, "DELETE", f"/v1/keys/{made['id']}")
        async with asyncio.timeout(PATIENCE_S):
            async for _ in subscription:
                pass

    async with asyncio.timeout(PATIENCE_S):
        while feed.open_streams:  # noqa: ASYNC110 - the feed tells nobody
            await asyncio.sleep(0.02)
    assert opened == 1


async def test_a_subscription_is_no_stream_beyond_the_limit_of_the_tenant(unshared: Application) -> None:
    feed, tenant = unshared.services.events.feed, unshared.tenant
    async with over_http(unshared) as model:
        subscriptions = [feed.subscribe(tenant) for _ in range(unshared.settings.events.tenant_streams)]
        for one in subscriptions:
            one.__enter__()
        try:
            with pytest.raises(MCPError, match="open streams of events"):
                async with model.listen(resources_list_changed=True):
                    pass
        finally:
            for one in subscriptions:
                one.__exit__(None, None, None)


async def test_who_listens_keeps_nobody_of_the_tenant_from_working(unshared: Application) -> None:
    stranger = unshared.client(unshared.new_key("another tenant"))
    most = unshared.settings.serve.front_door.tenant_requests
    async with over_http(unshared) as model, AsyncExitStack() as stack:
        for _ in range(most + 1):
            await sent(stranger, "GET", "/v1/notes")
            await stack.enter_async_context(model.listen(resources_list_changed=True))
        listed = await model.call_tool("search", {"query": "anything"})

    assert not listed.is_error


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("note.changed", [ResourceUpdated("lamina://note/1")]),
        ("note.created", [ResourceUpdated("lamina://note/1"), ResourcesListChanged()]),
        ("document.written", [ResourceUpdated("lamina://document/1"), ResourcesListChanged()]),
        ("procedure.deleted", [ResourceUpdated("lamina://procedure/1")]),
        ("user.erased", [ResourcesListChanged()]),
        ("graph.written", []),
        ("turn.recorded", []),
        ("a kind to come", []),
    ],
)
def test_an_event_is_a_change_of_resources(kind: str, changes: list[ServerEvent]) -> None:
    assert changes_in({"kind": kind, "ids": ["1"]}) == changes
