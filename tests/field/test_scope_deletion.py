"""A session, a namespace, a workspace: counted, deleted into the trash, and brought back."""

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from typer.testing import CliRunner

from lamina.cli.commands import app as command_line
from lamina.core.operations import Operation
from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.maintenance import scope_deletion
from lamina.maintenance.scope_deletion import PAGE
from lamina.stores.postgres import scope_contents
from lamina.stores.postgres.keys import store_key
from lamina.stores.postgres.operations import OperationTable
from lamina.wiring.operations import build_operations
from lamina.wiring.stores import utc_now
from tests.support.application import Application, ended, sent
from tests.support.compaction import chatter, compact, found_messages, say

PATIENCE_S = 120.0


async def fill(client: httpx.AsyncClient, **scope: str) -> None:
    word = uuid4().hex
    for session in ("s 1", "s 2"):
        messages = [{"content": f"{word} {session} {number}"} for number in range(2)]
        await sent(client, "POST", "/v1/turns", json={**scope, "session": session, "messages": messages})
    await sent(client, "POST", "/v1/notes", json={**scope, "session": "s 1", "content": f"note {word}"})
    await sent(client, "POST", "/v1/notes", json={**scope, "user": "ann", "content": f"note of ann {word}"})
    await sent(client, "POST", "/v1/documents", json={**scope, "content": f"document {word}"})
    await sent(client, "POST", "/v1/procedures", json={**scope, "trigger": f"when {word}", "action": "caulk"})


async def counted(client: httpx.AsyncClient, **ids: Any) -> dict[str, int]:
    answer = await sent(client, "POST", "/v1/scopes/delete", json={**ids, "dry_run": True})
    assert answer["operation"] is None
    return dict(answer["counts"])


NOTHING = {"notes": 0, "messages": 0, "documents": 0, "procedures": 0}
ALL = {"notes": 2, "messages": 4, "documents": 1, "procedures": 1}


@pytest.mark.parametrize(
    ("deleted", "gone"),
    [
        ({"workspace": "Øst 東", "namespace": "north", "session": "s 1"}, {**NOTHING, "notes": 1, "messages": 2}),
        ({"workspace": "Øst 東", "namespace": "north"}, ALL),
        ({"workspace": "Øst 東"}, {name: 2 * count for name, count in ALL.items()}),
        ({"everything": True}, {name: 3 * count for name, count in ALL.items()}),
    ],
    ids=["session", "namespace", "workspace", "tenant"],
)
async def test_a_scope_is_counted_deleted_and_brought_back(
    application: Application, deleted: dict[str, Any], gone: dict[str, int]
) -> None:
    admin = application.admin()
    for place in ({"workspace": "Øst 東", "namespace": "north"}, {"workspace": "Øst 東"}, {"workspace": "west"}):
        await fill(admin, **place)
    before, whole = await counted(admin, **deleted), await counted(admin, everything=True)

    answer = await sent(admin, "POST", "/v1/scopes/delete", json=deleted)
    operation = await ended(admin, answer["operation"])
    left, rest = await counted(admin, **deleted), await counted(admin, everything=True)
    undone = await ended(admin, await sent(admin, "POST", f"/v1/operations/{operation['id']}/undo"))

    taken = {name: count for name, count in gone.items() if count}
    assert (before, left) == (gone, NOTHING)
    assert rest == {name: whole[name] - gone[name] for name in whole}
    assert (operation["counts"], undone["counts"]) == (taken, taken)
    assert await counted(admin, everything=True) == whole


async def test_only_an_admin_deletes_a_scope_and_a_bound_one_within_its_bounds(application: Application) -> None:
    admin = application.admin()
    await fill(admin, workspace="own")
    await fill(admin, workspace="other")
    bounds = Bounds.from_lists({"workspaces": ["own"]})
    principal = new_principal(application.tenant, KeyRole.ADMIN, utc_now(), bounds=bounds)
    bound = application.client(store_key(application.url, principal, "bound"))

    async def status(client: httpx.AsyncClient, **ids: Any) -> int:
        return (await client.post("/v1/scopes/delete", json=ids)).status_code

    assert await status(application.client(), workspace="own") == 403
    assert await status(bound, workspace="other") == 403
    assert await status(bound, everything=True) == 422
    assert await counted(admin, everything=True) == {name: 2 * count for name, count in ALL.items()}
    assert await status(bound) == 200
    assert await counted(admin, workspace="other") == ALL


@pytest.mark.parametrize(
    "body", [{}, {"workspace": "w", "everything": True}, {"workspace": "w", "session": "s"}, {"workspace": "\u0000"}]
)
async def test_a_scope_that_is_not_named_right_is_refused(application: Application, body: dict[str, Any]) -> None:
    admin = application.admin()

    assert (await admin.post("/v1/scopes/delete", json=body)).status_code == 422


async def test_only_a_deletion_or_a_renaming_is_undone(application: Application) -> None:
    admin = application.admin()
    answer = await sent(admin, "POST", "/v1/notes/bulk", json={"category": "skill", "add_tags": ["seen"]})

    assert (await admin.post(f"/v1/operations/{answer['operation']['id']}/undo")).status_code == 409


async def deleted(client: httpx.AsyncClient, **ids: Any) -> dict[str, Any]:
    return await ended(client, (await sent(client, "POST", "/v1/scopes/delete", json=ids))["operation"])


async def undone(client: httpx.AsyncClient, operation: dict[str, Any]) -> dict[str, Any]:
    return await ended(client, await sent(client, "POST", f"/v1/operations/{operation['id']}/undo"))


async def test_a_deletion_ends_though_an_expired_note_lies_in_the_scope(application: Application) -> None:
    admin = application.admin()
    await fill(admin, workspace="own")
    brief = {"workspace": "own", "content": "The tide turns at six", "ttl_s": 3600}
    note = (await sent(admin, "POST", "/v1/notes", json=brief))["id"]
    with psycopg.connect(application.url) as connection:
        connection.execute("UPDATE notes SET expires_at = now() - interval '1 minute' WHERE id = %s", [note])

    before = await counted(admin, workspace="own")
    operation = await asyncio.wait_for(deleted(admin, workspace="own"), timeout=60)

    assert before == ALL
    assert operation["counts"] == ALL
    assert await counted(admin, workspace="own") == NOTHING


async def test_an_undo_brings_back_a_note_that_was_deleted_before_its_source(application: Application) -> None:
    admin = application.admin()
    content = {"workspace": "east", "content": f"in short {uuid4()}"}
    made = await sent(admin, "POST", "/v1/notes", json=content)
    source = await sent(admin, "POST", "/v1/notes", json={"workspace": "east", "content": f"at length {uuid4()}"})
    again = await sent(admin, "POST", "/v1/notes", json={**content, "derived_from": [source["id"]]})
    deletion = await sent(admin, "POST", "/v1/scopes/delete", json={"workspace": "east"})
    operation = await ended(admin, deletion["operation"])

    back = await undone(admin, operation)

    assert made["id"] == again["id"] < source["id"]
    assert (operation["counts"]["notes"], back["counts"]["notes"]) == (2, 2)
    assert [(await admin.get(f"/v1/notes/{one['id']}")).status_code for one in (made, source)] == [200, 200]


async def test_an_undo_leaves_what_others_deleted_meanwhile_in_the_trash(application: Application) -> None:
    admin = application.admin()
    await fill(admin, workspace="own")
    other = (await sent(admin, "POST", "/v1/notes", json={"workspace": "own", "content": "Not of the session"}))["id"]
    operation = await deleted(admin, workspace="own", namespace="default", session="s 1")
    assert (await admin.delete(f"/v1/notes/{other}")).is_success
    with psycopg.connect(application.url) as connection:
        during = "UPDATE trash SET deleted_at = (SELECT requested_at FROM operations WHERE id = %s) WHERE id = %s"
        connection.execute(during, [operation["id"], other])

    back = await undone(admin, operation)

    assert back["counts"] == {"notes": 1, "messages": 2}
    assert (await admin.get(f"/v1/notes/{other}")).status_code == 404


async def test_messages_whose_summary_went_with_them_are_found_again(unshared: Application) -> None:
    admin = unshared.admin()
    await say(unshared, "long", "The spare anchor is called Bartholomew", *chatter(60))
    await compact(unshared)
    operation = await deleted(admin, workspace="default", namespace="default", session="long")

    back = await undone(admin, operation)

    found = await found_messages(unshared, "the spare anchor Bartholomew")
    assert back["counts"] == {"messages": 61}
    assert operation["counts"]["messages"] > 61
    assert "The spare anchor is called Bartholomew" in {hit["content"] for hit in found}


async def test_a_replica_leaves_a_deletion_alone_at_which_another_one_works(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = application.admin()
    notes = [{"content": f"Buoy {uuid4().hex}"} for _ in range(PAGE + 5)]
    await sent(admin, "POST", "/v1/notes/batch", json={"workspace": "own", "notes": notes})
    services = application.services
    other = build_operations(application.pool, services.workers)
    step, steps, working, over = services.workers.scopes.step, list[Operation](), asyncio.Event(), asyncio.Event()

    async def slow(operation: Operation) -> None:
        steps.append(operation)
        if len(steps) == 1:
            working.set()
            await over.wait()
        await step(operation)

    monkeypatch.setattr(services.workers.scopes, "step", slow)
    deleting = asyncio.create_task(sent(admin, "POST", "/v1/scopes/delete", json={"workspace": "own"}))
    await asyncio.wait_for(working.wait(), PATIENCE_S)
    await other.work()
    meanwhile = len(steps)
    claims = [await OperationTable(application.pool).claim(steps[0]) for _ in range(2)]
    over.set()
    operation = await ended(admin, (await deleting)["operation"])
    back = await undone(admin, operation)

    assert (meanwhile, claims) == (1, [False, False])
    assert (operation["counts"], back["counts"]) == ({"notes": PAGE + 5}, {"notes": PAGE + 5})


async def test_a_complete_deletion_has_a_receipt_that_is_verified_offline(
    application: Application, tmp_path: Path
) -> None:
    admin = application.admin()
    await fill(admin, workspace="Øst 東")
    operation = await deleted(admin, workspace="Øst 東")
    keys = (await sent(admin, "GET", "/v1/erasures/keys"))["keys"]
    receipt, changed, key = tmp_path / "receipt.json", tmp_path / "changed.json", tmp_path / "key.pem"
    receipt.write_text(json.dumps(operation["receipt"]))
    changed.write_text(json.dumps({**operation["receipt"], "deleted": {"notes": 1}}))
    key.write_text("".join(one["pem"] for one in keys))

    def verify(file: Path, *options: str) -> tuple[int, str]:
        result = CliRunner().invoke(command_line, ["receipts", "verify", str(file), "--key", str(key), *options])
        return result.exit_code, result.output

    genuine, forged, of_nobody = verify(receipt), verify(changed), verify(receipt, "--user", "ann")

    told = operation["receipt"]
    assert told["scope"] == {"workspace": "Øst 東", "namespace": None, "session": None}
    assert (told["deleted"], told["left"]) == (ALL, NOTHING)
    assert told["remains"][0]["where"] == "postgres: trash"
    assert genuine[0] == 0
    assert f"deletion {operation['id']}" in genuine[1]
    assert "Øst 東" in genuine[1]
    assert (forged[0], of_nobody[0]) == (1, 1)
    undo = await undone(admin, operation)
    assert undo["receipt"] is None


async def test_a_receipt_says_which_rows_stay(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_contents, "MOST_COUNTED", 1)
    monkeypatch.setattr(scope_deletion, "MOST_COUNTED", 1)
    admin = application.admin()
    place = {"workspace": "own", "namespace": "default"}
    note = (await sent(admin, "POST", "/v1/notes", json={**place, "content": "Six", "ttl_s": 3600}))["id"]
    turn = {**place, "session": "s", "agent": "guide", "messages": [{"content": "Ahoy"}]}
    await sent(admin, "POST", "/v1/turns", json={**turn, "outcome": {"succeeded": True}})
    await sent(admin, "PATCH", "/v1/profile", json={**place, "user": "ann", "patch": {"likes": "boats"}})
    fact = {"subject": "Mira Koskinen", "type": "owns", "object": "Orion"}
    await sent(admin, "POST", "/v1/graph/edges", json={**place, "edges": [fact]})
    await sent(admin, "POST", "/v1/notes", json={"workspace": "bare", "content": "Seven"})
    with psycopg.connect(application.url) as connection:
        connection.execute("UPDATE notes SET expires_at = now() - interval '1 minute' WHERE id = %s", [note])
        archived = (
            "INSERT INTO archived_notes (id, tenant, workspace, namespace, content_hash, file, archived_at)"
            " VALUES (gen_random_uuid(), %s, 'own', 'default', '', 'folder/no_file', now())"
        )
        connection.execute(archived, [application.tenant])
        late = "UPDATE notes SET created_at = now() + interval '1 day' WHERE tenant = %s AND workspace = 'bare'"
        connection.execute(late, [application.tenant])

    own, bare = [(await deleted(admin, workspace=name))["receipt"] for name in ("own", "bare")]

    kept = {json.dumps(remnant.as_json()) for remnant in scope_deletion.KEPT.values()}
    assert kept <= {json.dumps(remnant) for remnant in own["remains"]}
    assert not kept & {json.dumps(remnant) for remnant in bare["remains"]}
    assert (own["at_least"], bare["left"]["notes"], bare["at_least"]) == ([], 1, ["notes"])
