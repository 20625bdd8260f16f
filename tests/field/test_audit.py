"""A projection that was emptied or changed behind our back is found and restored."""

from typing import Any
from uuid import UUID

import httpx
import pytest

from lamina.core.ports import Change
from tests.support.application import Application

Json = dict[str, Any]
PROJECTIONS = ("messages", "notes", "documents", "graph")


async def written(application: Application) -> httpx.AsyncClient:
    """Write to every tier and return a client that may audit."""
    client = application.admin()
    turn = {"session": "s", "messages": [{"content": "Petra Nowak joined Initech", "name": "Otto"}]}
    document = {"title": "Initech", "content": "Initech makes printers."}
    for path, body in (("turns", turn), ("notes", {"content": "Initech is in Graz"}), ("documents", document)):
        assert (await client.post(f"/v1/{path}", json=body)).is_success
    await application.indexed()
    return client


async def audit(client: httpx.AsyncClient, **body: Any) -> Json:
    response = await client.post("/v1/audit", json=body)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def test_what_is_written_is_in_every_projection(application: Application) -> None:
    report = await audit(await written(application))

    assert report["consistent"], report
    assert all(report["projections"][name]["found"] > 0 for name in PROJECTIONS)


@pytest.mark.parametrize("name", PROJECTIONS)
async def test_a_memory_lost_behind_our_back_is_reported_and_repaired(application: Application, name: str) -> None:
    client = await written(application)
    projection = next(parts.projections[name] for parts in application.tiers.values() if name in parts.projections)
    held = await projection.inventory(application.tenant)
    await projection.apply([Change(id_, None) for id_ in held])

    lost = (await audit(client))["projections"][name]
    repaired = await audit(client, repair=True)
    await application.indexed()

    assert lost["missing"] == len(held) == lost["expected"]
    assert repaired["projections"][name]["repaired"] == len(held)
    assert (await audit(client))["consistent"]


async def test_a_memory_that_does_not_belong_is_reported_and_removed(application: Application) -> None:
    client = await written(application)
    notes = application.tiers["notes"].projections["notes"]
    (note,) = (await client.get("/v1/notes", params={"limit": 1})).json()["notes"][:1]
    (change,) = await application.services.reads.outbox.changes("notes", [UUID(note["id"])])
    await notes.apply([Change(UUID(int=77), change.record)])

    assert (await audit(client, repair=True))["projections"]["notes"]["surplus"] == 1
    await application.indexed()
    assert (await audit(client))["consistent"]


async def test_only_an_admin_may_audit(application: Application) -> None:
    refused = await application.client().post("/v1/audit", json={})

    assert refused.status_code == 403
