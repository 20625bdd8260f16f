"""Every list, found in the OpenAPI document, is walked by its cursors while others write and delete."""

import itertools
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from deployments.api import document
from tests.support.application import Application

PATHS = document()["paths"]
# Answers with several entries that are no list: what they hold is bounded, or ordered by what was asked.
NO_LISTS = {
    "/cache/stats": "a row a cache",
    "/v1/erasures/keys": "the few keys of an installation",
    "/v1/events": "a feed that goes on, after an id",
    "/v1/graph/neighbours": "the strongest links of one thing",
    "/v1/jobs/schedule": "one entry a job",
    "/v1/jobs/{id}": "what one run left alone",
    "/v1/notes/{id}/versions": "whole: 100 versions at most",
    "/v1/providers/cache-metrics": "sums",
    "/v1/turns/usage": "sums",
    "/v1/usage": "sums of the days that were asked for",
}
INSERTS = {
    "/v1/archive/notes": "INSERT INTO archived_notes (id, tenant, workspace, namespace, content_hash, file, "
    "archived_at) VALUES (%(id)s, %(tenant)s, 'default', 'default', 'x', 'folder/no_file', now())",
    "/v1/erasures": "INSERT INTO erasures (id, tenant, user_salt, user_hash, state, requested_at) "
    "VALUES (%(id)s, %(tenant)s, '', 'x', 'complete', now())",
    "/v1/jobs": "INSERT INTO job_runs (id, job, tenant, state, is_dry_run, is_forced, requested_by, moment) "
    "VALUES (%(id)s, 'sweep', %(tenant)s, 'done', true, false, 'api', now())",
    "/v1/operations": "INSERT INTO operations (id, tenant, workspace, namespace, kind, request, state, requested_at) "
    "VALUES (%(id)s, %(tenant)s, 'default', 'default', 'delete_notes', '{}', 'complete', now())",
    "/v1/procedures/learnt": "UPDATE procedures SET is_learnt = true, state = 'proposed' WHERE tenant = %(tenant)s",
    "/v1/procedures/{id}/evidence": "UPDATE agent_turns SET procedure_id = %(of)s WHERE tenant = %(tenant)s",
    "/v1/webhooks/{id}/dead-letters": "INSERT INTO webhook_dead_letters (webhook_id, seq, event_id, attempts, error) "
    "SELECT %(of)s, count(*) + 1, %(id)s, 1, 'away' FROM webhook_dead_letters",
}
DELETES = {
    "/v1/agents": "DELETE FROM notes WHERE tenant = %(tenant)s AND agent_id = %(agent)s",
    "/v1/archive/notes": "DELETE FROM archived_notes WHERE id = %(id)s",
    "/v1/documents/{id}/passages": "DELETE FROM passages WHERE id = %(id)s",
    "/v1/erasures": "DELETE FROM erasures WHERE id = %(id)s",
    "/v1/facts": "DELETE FROM edges WHERE id = %(id)s",
    "/v1/jobs": "DELETE FROM job_runs WHERE id = %(id)s",
    "/v1/keys": "DELETE FROM api_keys WHERE id = %(id)s",
    "/v1/operations": "DELETE FROM operations WHERE id = %(id)s",
    "/v1/namespaces": "DELETE FROM epochs WHERE tenant = %(tenant)s AND namespace = %(namespace)s",
    "/v1/procedures/{id}/evidence": "DELETE FROM agent_turns WHERE id = %(id)s",
    "/v1/procedures/{id}/outcomes": "DELETE FROM procedure_outcomes WHERE id = %(id)s",
    "/v1/profile/versions": "DELETE FROM profile_versions WHERE tenant = %(tenant)s AND version = %(version)s",
    "/v1/sessions": "DELETE FROM sessions WHERE tenant = %(tenant)s AND session_id = %(session)s",
    "/v1/shares": "DELETE FROM shares WHERE id = %(id)s",
    "/v1/trash": "DELETE FROM trash WHERE id = %(id)s",
    "/v1/turns": "DELETE FROM agent_turns WHERE id = %(id)s",
    "/v1/users": "DELETE FROM profiles WHERE tenant = %(tenant)s AND user_id = %(user)s",
    "/v1/users/profile/versions": "DELETE FROM profile_versions WHERE tenant = %(tenant)s AND version = %(version)s",
    "/v1/workspaces": "DELETE FROM epochs WHERE tenant = %(tenant)s AND workspace = %(workspace)s",
    "/v1/webhooks/{id}/dead-letters": "DELETE FROM webhook_dead_letters WHERE event_id = %(event)s",
}


def listed(path: str) -> bool:
    return any(one["name"] == "cursor" for one in PATHS[path].get("get", {}).get("parameters", ()))


LISTS = sorted(path for path in PATHS if listed(path))


@dataclass
class Stage:
    """A tenant whose lists are filled.

    Args:
        of: The thing whose list is meant, where a list is one of a thing.
    """

    app: Application
    admin: httpx.AsyncClient
    path: str
    of: str = ""
    number: "itertools.count[int]" = field(default_factory=itertools.count)

    @property
    def url(self) -> str:
        """Where the list is."""
        return self.path.replace("{session}", "s").replace("{workspace}", "default").replace("{id}", self.of)

    @property
    def query(self) -> dict[str, str]:
        """What the list needs to know."""
        return {"user": "ann"} if "profile" in self.path else {"/v1/facts": {"subject": "Hub"}}.get(self.path, {})

    async def begin(self) -> None:
        """Make the thing that the list is of."""
        kind = self.path.split("/")[2]
        made = {
            "documents": {"content": "\n\n".join(f"# Part {n}\n\n{f'word {n} ' * 300}" for n in range(9))},
            "procedures": {"trigger": "fog", "action": "sound the horn"},
            "webhooks": {"url": "https://example.com/hook"},
        }
        if "{id}" in self.path:
            self.of = (await self.send("POST", f"/v1/{kind}", made[kind]))["id"]

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that succeeds."""
        answer = await self.admin.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def add(self) -> None:
        """Add one entry to the list."""
        n = next(self.number)
        turn = {"session": "s", "messages": [{"content": f"message {n}"}], "outcome": {"succeeded": True}}
        edge = {"subject": "Hub", "relation": "knows", "object": f"Spoke {n}"}
        if self.path == "/v1/trash":
            note = await self.send("POST", "/v1/notes", {"content": f"note {n}"})
            await self.send("DELETE", f"/v1/notes/{note['id']}")
        calls = {
            "/v1/agents": ("POST", "/v1/notes", {"content": f"note {n}", "agent": f"agent {n}"}),
            "/v1/documents": ("POST", "/v1/documents", {"content": f"document {n}"}),
            "/v1/facts": ("POST", "/v1/facts", edge),
            "/v1/graph/entities": ("POST", "/v1/graph/entities", {"entities": [{"name": f"Entity {n}"}]}),
            "/v1/keys": ("POST", "/v1/keys", {"name": f"key {n}", "role": "reader"}),
            "/v1/namespaces": ("POST", "/v1/notes", {"content": "a note", "namespace": f"part {n}"}),
            "/v1/notes": ("POST", "/v1/notes", {"content": f"note {n}"}),
            "/v1/procedures": ("POST", "/v1/procedures", {"trigger": f"fog {n}", "action": "sound the horn"}),
            "/v1/procedures/learnt": ("POST", "/v1/procedures", {"trigger": f"fog {n}", "action": "sound the horn"}),
            "/v1/procedures/{id}/evidence": ("POST", "/v1/turns", turn),
            "/v1/procedures/{id}/outcomes": ("POST", f"/v1/procedures/{self.of}/outcomes", {"succeeded": True}),
            "/v1/profile/versions": ("PATCH", "/v1/profile", {"user": "ann", "patch": {"number": n}}),
            "/v1/sessions": ("POST", "/v1/turns", {**turn, "session": f"session {n}"}),
            "/v1/sessions/{session}/messages": ("POST", "/v1/turns", turn),
            "/v1/shares": ("POST", "/v1/shares", {"to_workspace": f"other {n}", "segment": "notes"}),
            "/v1/turns": ("POST", "/v1/turns", turn),
            "/v1/users": ("PATCH", "/v1/profile", {"user": f"user {n}", "patch": {"number": n}}),
            "/v1/users/profile/versions": ("PATCH", "/v1/users/profile", {"user": "ann", "patch": {"number": n}}),
            "/v1/webhooks": ("POST", "/v1/webhooks", {"url": f"https://example.com/{n}"}),
            "/v1/workspaces": ("POST", "/v1/notes", {"content": "a note", "workspace": f"project {n}"}),
            "/v1/workspaces/{workspace}/files": (
                "PUT",
                f"/v1/workspaces/default/files/{n}.md",
                {"content": f"file {n}"},
            ),
        }
        if self.path in calls:
            await self.send(*calls[self.path])
        self.execute(INSERTS.get(self.path), {"id": uuid4(), "of": self.of or None})

    async def remove(self, entry: dict[str, Any]) -> None:
        """Take an entry away from the list."""
        if self.path in DELETES:
            self.execute(DELETES[self.path], entry)
        else:
            paths = {"/v1/procedures/learnt": "/v1/procedures", "/v1/sessions/{session}/messages": "/v1/messages"}
            base = paths.get(self.path, self.url)
            await self.send("DELETE", f"{base}/{entry['path' if 'path' in entry else 'id']}")

    def execute(self, statement: str | None, values: dict[str, Any]) -> None:
        """Do what no route does."""
        if statement is not None:
            with psycopg.connect(self.app.url) as connection:
                connection.execute(statement.encode(), {**values, "tenant": self.app.tenant})

    async def page(self, **query: Any) -> httpx.Response:
        """Ask for a page."""
        return await self.admin.get(self.url, params={**self.query, **query})


def entries(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return [entry for value in answer.json().values() if isinstance(value, list) for entry in value]


def names(found: list[dict[str, Any]]) -> list[str]:
    keys = ("id", "path", "event", "version", "session", "user", "agent", "namespace", "workspace")
    return [str(next(entry[key] for key in keys if key in entry)) for entry in found]


async def staged(application: Application, path: str, number: int) -> Stage:
    stage = Stage(application, application.admin(), path)
    await stage.begin()
    for _ in range(number):
        await stage.add()
    return stage


def test_whatever_holds_several_entries_is_a_list_with_cursors_or_says_why_not() -> None:
    schemas = document()["components"]["schemas"]
    several = set()
    for path, calls in PATHS.items():
        content = calls.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        answer = schemas.get(schema.get("$ref", "").rpartition("/")[2], {})
        parts = [part for name, part in answer.get("properties", {}).items() if name != "errors"]
        items = [schemas.get(part.get("items", {}).get("$ref", "").rpartition("/")[2], {}) for part in parts]
        if any("properties" in item for item in items):
            several.add(path)

    assert several - set(LISTS) == set(NO_LISTS)
    for path in LISTS:
        content = PATHS[path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        assert "next_cursor" in schemas[content.rpartition("/")[2]]["required"], path


@pytest.mark.parametrize("path", LISTS)
async def test_a_walk_meets_once_each_entry_that_was_there_all_the_time(application: Application, path: str) -> None:
    stage = await staged(application, path, 5)
    whole = entries(await stage.page())
    assert len(names(whole)) == len(set(names(whole))) >= 5

    seen, answer = [], await stage.page(limit=1)
    while True:
        seen += names(entries(answer))
        assert len(seen) <= 40, "it comes to no end"
        if len(seen) == 3:
            await stage.add()
            await stage.remove(whole[2])  # The entry at which the page ended.
            await stage.remove(whole[4])
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            assert "next" not in answer.links
            break
        assert httpx.URL(answer.links["next"]["url"]).params["cursor"] == cursor
        answer = await stage.admin.get(answer.url.join(answer.links["next"]["url"]))

    assert len(seen) == len(set(seen))
    assert [name for name in seen if name in names(whole)] == [name for name in names(whole) if name != names(whole)[4]]


@pytest.mark.parametrize("path", LISTS)
async def test_a_cursor_of_another_list_or_tenant_or_none_at_all_is_refused(
    application: Application, path: str
) -> None:
    stage = await staged(application, path, 3)
    cursor = (await stage.page(limit=1)).json()["next_cursor"]
    notes = await staged(application, "/v1/notes" if path != "/v1/notes" else "/v1/documents", 2)
    of_another = (await notes.page(limit=1)).json()["next_cursor"]
    elsewhere = await staged(application.for_tenant(f"{application.tenant} next door"), path, 1)
    elsewhere.of = stage.of
    turned = f"{cursor[:-6]}{'B' if cursor[-6] == 'A' else 'A'}{cursor[-5:]}"

    for made_up in (of_another, turned, cursor[1:], cursor + "AAAA", "", "2", "%00", "ä", "a" * 9000, "/etc/passwd"):
        refused = await stage.page(cursor=made_up)
        assert refused.status_code == 422, (made_up, refused.text)
        assert refused.json()["errors"][0]["field"] == "cursor"
    assert (await elsewhere.page(cursor=cursor)).status_code in {422, 404}
    assert (await stage.page(cursor=cursor)).status_code == 200
    if "offset" in {one["name"] for one in PATHS[path]["get"]["parameters"]}:
        both = await stage.page(cursor=cursor, offset=1)
        assert both.json()["errors"][0]["field"] == "offset"
    if "workspace" in {one["name"] for one in PATHS[path]["get"]["parameters"] if one["in"] == "query"}:
        assert (await stage.page(cursor=cursor, workspace="another")).status_code == 422


@pytest.mark.parametrize("path", LISTS)
async def test_a_limit_lies_between_1_and_its_most(application: Application, path: str) -> None:
    stage = await staged(application, path, 1)
    (limit,) = (one["schema"] for one in PATHS[path]["get"]["parameters"] if one["name"] == "limit")

    for wrong in (0, -1, limit["maximum"] + 1, 2**63, "x", "1.5", ""):
        refused = await stage.page(limit=wrong)
        assert refused.status_code == 422, (wrong, refused.text)
        assert refused.json()["errors"][0]["field"] == "limit"
    for right in (1, limit["maximum"]):
        assert (await stage.page(limit=right)).status_code == 200
