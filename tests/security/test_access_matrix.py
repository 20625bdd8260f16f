"""Every cell of the matrix of routes, roles and bounds, through HTTP; and no bound key meets what lies outside."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import psycopg
import pytest

from deployments.access import Access, access_of, accesses
from deployments.api import ALL_ROUTERS
from deployments.guard import allow
from lamina.core.principals import VERBS_OF, BoundRule, Bounds, KeyRole, ScopeField, Verb, new_principal
from lamina.errors import Misconfigured
from lamina.stores.postgres.keys import store_key
from lamina.stores.postgres.owners import OwnedKind
from lamina.wiring.stores import utc_now
from tests.support.access import MATRIX, matrix
from tests.support.application import Application

MARK = "heliotrope"
OWN = {"workspace": "atlas", "namespace": "north", "user": "ann", "agent": "guide"}
FOREIGN = {name: f"other {name}" for name in OWN}
SESSION = "talk"
Route = tuple[str, str]
ROUTES = accesses(ALL_ROUTERS)
WITH_KEY = [route for route, access in ROUTES.items() if access.verb is not None]
COUNTER = itertools.count()


@dataclass
class Example:
    """A request that succeeds within a scope.

    Args:
        fields: The scope fields that the route has.
        body: Its body, without a scope.
        query: Its query, without a scope.
        of: Kind of the thing that is named in the path.
        expected: Statuses of success.
        is_form: Whether it is sent as a form.
        must_name: Whether it is refused without its scope fields, whatever its key fills in.
    """

    fields: tuple[str, ...] = ()
    body: dict[str, Any] | None = None
    query: dict[str, Any] = field(default_factory=dict)
    of: str | None = None
    expected: frozenset[int] = frozenset({200, 201, 202, 204})
    is_form: bool = False
    must_name: bool = False


ALL = tuple(OWN)
PLACE = ("workspace", "namespace")
NOT_USER = (*PLACE, "agent")
TEXT = "The boat is painted on Monday"
CALL = {"provider": "p", "model": "m", "input_tokens": 1, "cached_tokens": 1}
FILES = "/v1/workspaces/{workspace}/files"
STATEMENTS = {
    "erasure": "INSERT INTO erasures (id, tenant, user_salt, user_hash, state, requested_at) "
    "VALUES (%(id)s, %(tenant)s, '', sha256(convert_to(%(user)s, 'UTF8')), 'complete', now())",
    "run": "INSERT INTO job_runs (id, job, tenant, workspace, namespace, state, is_dry_run, is_forced, requested_by, "
    "moment) VALUES (%(id)s, 'sweep', %(tenant)s, %(workspace)s, %(namespace)s, 'queued', true, false, 'api', now())",
    "operation": "INSERT INTO operations (id, tenant, kind, workspace, namespace, user_id, agent_id, request, state, "
    "requested_at) VALUES (%(id)s, %(tenant)s, 'delete_notes', %(workspace)s, %(namespace)s, %(user)s, %(agent)s, "
    "'{}', 'complete', now())",
    "archived note": "INSERT INTO archived_notes (id, tenant, workspace, namespace, user_id, content_hash, file, "
    "archived_at) VALUES (%(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(user)s, 'x', 'folder/no_file', now())",
}
EXAMPLES: dict[Route, Example] = {
    ("POST", "/v1/turns"): Example(ALL, {"session": SESSION, "messages": [{"content": TEXT}]}),
    ("GET", "/v1/turns"): Example(ALL),
    ("GET", "/v1/turns/usage"): Example(("workspace",)),
    ("POST", "/v1/notes"): Example(ALL, {"content": TEXT}),
    ("POST", "/v1/notes/batch"): Example(ALL, {"notes": [TEXT]}),
    ("POST", "/v1/notes/bulk"): Example(ALL, {"category": "skill", "add_tags": ["seen"]}),
    ("POST", "/v1/notes/bulk/delete"): Example(ALL, {"category": "skill"}),
    ("POST", "/v1/messages/bulk/delete"): Example(ALL, {"filters": {"source": "tool"}}),
    ("POST", "/v1/documents/bulk"): Example(ALL, {"tags": ["unseen"], "add_tags": ["seen"]}),
    ("POST", "/v1/documents/bulk/delete"): Example(ALL, {"tags": ["unseen"]}),
    ("GET", "/v1/notes"): Example(ALL),
    ("GET", "/v1/notes/{id}"): Example(of="note"),
    ("GET", "/v1/notes/{id}/versions"): Example(of="note"),
    ("PATCH", "/v1/notes/{id}"): Example(body={"importance": 0.7}, of="note"),
    ("DELETE", "/v1/notes/{id}"): Example(of="note"),
    ("GET", "/v1/memories/{id}"): Example(of="memory"),
    ("PATCH", "/v1/memories/{id}"): Example(body={"importance": 0.7}, of="memory"),
    ("DELETE", "/v1/memories/{id}"): Example(of="memory"),
    ("POST", "/v1/search"): Example(ALL, {"query": f"the {MARK} boat"}),
    ("POST", "/v1/search/batch"): Example(ALL, {"searches": [f"the {MARK} boat"]}),
    ("GET", "/v1/memories/{id}/feedback"): Example(of="memory"),
    ("PUT", "/v1/memories/{id}/feedback"): Example(body={"vote": "useful"}, of="memory"),
    ("DELETE", "/v1/memories/{id}/feedback"): Example(of="memory"),
    ("PUT", "/v1/memories/{id}/pin"): Example(of="memory"),
    ("DELETE", "/v1/memories/{id}/pin"): Example(of="memory"),
    ("POST", "/v1/context"): Example(ALL, {"query": f"the {MARK} boat"}),
    ("GET", "/v1/profile"): Example(ALL),
    ("PATCH", "/v1/profile"): Example(ALL, {"patch": {"likes": "boats"}}),
    ("GET", "/v1/profile/versions"): Example(ALL),
    ("POST", "/v1/profile/revert"): Example(ALL, {"version": 1}),
    ("GET", "/v1/users/profile"): Example(("user",)),
    ("PATCH", "/v1/users/profile"): Example(("user",), {"patch": {"likes": "boats"}}),
    ("GET", "/v1/users/profile/versions"): Example(("user",)),
    ("POST", "/v1/users/profile/revert"): Example(("user",), {"version": 1}),
    ("GET", "/v1/sessions/{session:path}/messages"): Example(ALL),
    ("GET", "/v1/sessions/{session:path}/forecast"): Example(ALL),
    ("DELETE", "/v1/messages/{id}"): Example(of="message"),
    ("GET", "/v1/workspaces"): Example(),
    ("GET", "/v1/namespaces"): Example(("workspace",)),
    ("GET", "/v1/sessions"): Example(ALL),
    ("GET", "/v1/users"): Example(PLACE),
    ("GET", "/v1/agents"): Example(PLACE),
    ("GET", "/v1/graph/entities"): Example(ALL),
    ("POST", "/v1/graph/entities"): Example(NOT_USER, {"entities": [{"name": "Boat"}]}),
    ("POST", "/v1/graph/edges"): Example(ALL, {"edges": [{"subject": "Ann", "type": "paints", "object": "Boat"}]}),
    ("POST", "/v1/facts"): Example(ALL, {"subject": "Ann", "relation": "paints", "object": "Boat"}),
    ("GET", "/v1/facts"): Example(ALL, query={"subject": "Anchor"}),
    ("GET", "/v1/graph/neighbours"): Example(ALL, query={"name": "Anchor"}),
    ("POST", "/v1/graph/traverse"): Example(ALL, {"names": ["Anchor"]}),
    ("DELETE", "/v1/graph/entities/{id}"): Example(of="entity"),
    ("DELETE", "/v1/graph/edges/{id}"): Example(of="edge"),
    ("POST", "/v1/procedures"): Example(ALL, {"trigger": "the boat leaks", "action": "caulk it"}),
    ("POST", "/v1/procedures/batch"): Example(ALL, {"procedures": [{"trigger": "fog", "action": "sound the horn"}]}),
    ("GET", "/v1/procedures"): Example(ALL),
    ("POST", "/v1/procedures/match"): Example(ALL, {"query": f"the {MARK} boat leaks"}),
    ("GET", "/v1/procedures/{id}"): Example(of="procedure"),
    ("PATCH", "/v1/procedures/{id}"): Example(body={"tags": ["wet"]}, of="procedure"),
    ("DELETE", "/v1/procedures/{id}"): Example(of="procedure"),
    ("GET", "/v1/procedures/learnt"): Example(NOT_USER),
    ("PUT", "/v1/procedures/{id}/state"): Example(body={"state": "active"}, of="procedure"),
    ("GET", "/v1/procedures/{id}/evidence"): Example(of="procedure"),
    ("POST", "/v1/procedures/{id}/outcomes"): Example(("agent",), {"succeeded": True}, of="procedure"),
    ("GET", "/v1/procedures/{id}/outcomes"): Example(of="procedure"),
    ("POST", "/v1/shares"): Example(PLACE, {"to_workspace": "atlas 2", "segment": "notes"}),
    ("GET", "/v1/shares"): Example(("workspace",)),
    ("DELETE", "/v1/shares/{id}"): Example(of="share"),
    ("GET", "/v1/workspaces/{workspace:path}/settings"): Example(("workspace",), must_name=True),
    ("PUT", "/v1/workspaces/{workspace:path}/settings"): Example(("workspace",), {"limit": 5}, must_name=True),
    ("GET", "/v1/memory-profile"): Example(ALL),
    ("PUT", "/v1/memory-profile"): Example(ALL, {"tiers": ["notes"]}),
    ("DELETE", "/v1/memory-profile"): Example(ALL),
    ("POST", "/v1/documents"): Example(ALL, {"content": TEXT}),
    ("POST", "/v1/documents/upload"): Example(ALL, {"key": "a file"}, is_form=True),
    ("POST", "/v1/documents/batch"): Example(ALL, {"documents": [{"content": TEXT}]}),
    ("GET", "/v1/documents"): Example(ALL),
    ("GET", "/v1/documents/{id}"): Example(of="document"),
    ("GET", "/v1/documents/{id}/passages"): Example(of="document"),
    ("DELETE", "/v1/documents/{id}"): Example(of="document"),
    ("PUT", f"{FILES}/{{path:path}}"): Example(ALL, {"content": TEXT}),
    ("GET", FILES): Example(ALL),
    ("GET", f"{FILES}/{{path:path}}"): Example(ALL),
    ("DELETE", f"{FILES}/{{path:path}}"): Example(ALL),
    ("POST", "/v1/audit"): Example(body={}),
    ("POST", "/v1/webhooks"): Example(("workspace",), {"url": "https://example.com/hook"}),
    ("GET", "/v1/webhooks"): Example(("workspace",)),
    ("GET", "/v1/webhooks/{id}"): Example(of="webhook"),
    ("DELETE", "/v1/webhooks/{id}"): Example(of="webhook"),
    ("POST", "/v1/webhooks/{id}/rotate"): Example(of="webhook"),
    ("GET", "/v1/webhooks/{id}/dead-letters"): Example(of="webhook"),
    ("POST", "/v1/webhooks/{id}/dead-letters/retry"): Example(body={}, of="webhook"),
    ("GET", "/v1/trash"): Example(ALL),
    ("POST", "/v1/trash/{id}/restore"): Example(of="deleted memory"),
    ("GET", "/v1/operations"): Example(ALL),
    ("POST", "/v1/scopes/delete"): Example(PLACE, {"dry_run": True}, must_name=True),
    ("POST", "/v1/scopes/rename"): Example(
        PLACE, {"session": SESSION, "to_session": "talk 2", "dry_run": True}, must_name=True
    ),
    # It is no deletion of a scope: that it is looked at shows that the call was let through.
    ("POST", "/v1/operations/{id}/undo"): Example(of="operation", expected=frozenset({409})),
    ("GET", "/v1/operations/{id}"): Example(of="operation"),
    ("GET", "/v1/events"): Example(("workspace", "namespace", "user")),
    ("POST", "/v1/jobs"): Example(PLACE, {"job": "sweep", "dry_run": True}),
    ("GET", "/v1/jobs"): Example(PLACE),
    ("GET", "/v1/jobs/schedule"): Example(),
    ("GET", "/v1/jobs/{id}"): Example(of="run"),
    ("POST", "/v1/jobs/{id}/undo"): Example(of="run", expected=frozenset({409})),  # It has not run yet.
    ("GET", "/v1/archive/notes"): Example(PLACE),
    # The tests' archive has no folder: that it is missed shows that the call was let through.
    ("DELETE", "/v1/archive/notes/{id}"): Example(of="archived note", expected=frozenset({503})),
    ("POST", "/v1/archive/restore"): Example(body={"ids": ["…"]}, of="archived note", expected=frozenset({503})),
    ("DELETE", "/v1/users"): Example(("user",), must_name=True),
    ("GET", "/v1/erasures"): Example(("user",)),
    ("GET", "/v1/erasures/keys"): Example(),
    ("GET", "/v1/erasures/{id}"): Example(of="erasure"),
    ("POST", "/v1/responses/lookup"): Example(ALL, {"query": TEXT}),
    ("POST", "/v1/responses"): Example(ALL, {"query": TEXT, "response": "yes"}),
    ("POST", "/v1/providers/cache-metrics"): Example(("workspace", "agent"), {"calls": ["…"]}),
    ("GET", "/v1/providers/cache-metrics"): Example(("workspace",)),
    ("GET", "/cache/stats"): Example(("workspace", "agent")),
    ("DELETE", "/cache"): Example(("workspace", "agent")),
    ("DELETE", "/cache/stats/expired"): Example(),
    ("POST", "/v1/keys"): Example(body={"name": "made", "role": "reader"}),
    ("GET", "/v1/keys"): Example(),
    ("GET", "/v1/keys/{id}"): Example(of="key"),
    ("DELETE", "/v1/keys/{id}"): Example(of="key"),
    ("POST", "/v1/keys/{id}/rotate"): Example(of="key"),
    ("PUT", "/v1/keys/{id}/quotas"): Example(body={"requests": 1_000_000}, of="key"),
    ("GET", "/v1/quotas"): Example(),
    ("GET", "/v1/usage"): Example(),
    ("GET", "/v1/status"): Example(),
}


@dataclass
class World:
    """A tenant with things inside and outside of every bound."""

    app: Application
    admin: httpx.AsyncClient
    clients: dict[str, httpx.AsyncClient]

    def key(self, name: str, **narrowing: Any) -> httpx.AsyncClient:
        """Return the client of a key with this narrowing, made once."""
        if name not in self.clients:
            role = narrowing.pop("role", KeyRole.ADMIN)
            principal = new_principal(self.app.tenant, role, utc_now(), **narrowing)
            self.clients[name] = self.app.client(store_key(self.app.url, principal, name))
        return self.clients[name]

    def bound(self, to: ScopeField, *ids: str) -> httpx.AsyncClient:
        """Return the client of an admin's key that is bound in one field."""
        return self.key(f"{to} {ids}", bounds=Bounds.from_lists({f"{to}s": ids}))

    async def make(self, kind: str, scope: Mapping[str, str]) -> str:
        """Make a thing of a kind in a scope and return its id."""
        word = f"{MARK} {next(COUNTER)}"
        if kind in STATEMENTS:
            return self._insert(STATEMENTS[kind], scope)
        if kind == "deleted memory":
            id_ = await self.make("note", scope)
            assert (await self.admin.delete(f"/v1/notes/{id_}")).status_code == 204
            return id_
        path, fields, body = self._recipe("note" if kind == "memory" else kind, word)
        answer = await self.admin.post(path, json={**{name: scope[name] for name in fields}, **body})
        assert answer.status_code in {200, 201}, answer.text
        made = answer.json()
        return str(next(iter(made.get("messages") or made.get("results") or [made]))["id"])

    def _recipe(self, kind: str, word: str) -> tuple[str, tuple[str, ...], dict[str, Any]]:
        """Return the path, the scope fields and the rest of the body that make a thing."""
        edge = {"subject": word, "type": "near", "object": "Harbour"}
        return {
            "note": ("/v1/notes", ALL, {"content": f"The {word} boat is painted by {uuid4()}"}),
            "message": ("/v1/turns", ALL, {"session": word, "messages": [{"content": word}]}),
            "document": ("/v1/documents", ALL, {"content": f"A {word} boat"}),
            "procedure": ("/v1/procedures", NOT_USER, {"trigger": f"the {word} boat leaks", "action": "caulk"}),
            "entity": ("/v1/graph/entities", NOT_USER, {"entities": [{"name": word}]}),
            "edge": ("/v1/graph/edges", ALL, {"edges": [edge]}),
            "share": ("/v1/shares", PLACE, {"to_workspace": word, "segment": "notes"}),
            "webhook": ("/v1/webhooks", ("workspace",), {"url": "https://example.com/hook"}),
            "key": ("/v1/keys", (), {"name": word, "role": "reader"}),
        }[kind]

    async def call(
        self, client: httpx.AsyncClient, route: Route, scope: Mapping[str, str], thing: str | None
    ) -> httpx.Response:
        """Send the example of a route in a scope."""
        example, (method, path) = EXAMPLES[route], route
        in_path = {"workspace"} if "{workspace" in path else set()
        ids = {name: id_ for name, id_ in scope.items() if name in example.fields and name not in in_path}
        url = path.replace("{session:path}", SESSION).replace("{id}", str(thing)).replace("{path:path}", "a/file.md")
        url = url.replace("{workspace}", scope.get("workspace", OWN["workspace"]))
        url = url.replace("{workspace:path}", quote(scope.get("workspace", OWN["workspace"]), safe=""))
        if example.is_form:
            return await client.request(method, url, data=ids, files={"file": ("a.txt", TEXT.encode())})
        if example.body is None:
            return await client.request(method, url, params={**example.query, **ids})
        body = dict(example.body)
        if in_path:
            return await client.request(method, url, json=body, params=ids)
        if "ids" in body:
            return await client.request(method, url, json={"ids": [thing]})
        if "calls" in body:
            return await client.request(method, url, json={"calls": [{**CALL, **ids}]})
        return await client.request(method, url, json={**body, **ids})

    async def prepare(self, route: Route, scope: Mapping[str, str]) -> str | None:
        """Make what the example of a route needs within a scope."""
        if route == ("DELETE", "/v1/memory-profile"):
            await self.admin.put("/v1/memory-profile", json={**scope, "tiers": ["notes"]})
        if route[1].startswith(FILES):
            await self.put_file(TEXT, scope)
        kind = EXAMPLES[route].of
        return None if kind is None else await self.make(kind, scope)

    async def put_file(self, content: str, scope: Mapping[str, str]) -> None:
        url = FILES.replace("{workspace}", scope.get("workspace", OWN["workspace"]))
        params = {name: id_ for name, id_ in scope.items() if name != "workspace"}
        answer = await self.admin.put(f"{url}/a/file.md", json={"content": content, "always": True}, params=params)
        assert answer.is_success, answer.text

    def _insert(self, statement: str, scope: Mapping[str, str]) -> str:
        id_ = uuid4()
        with psycopg.connect(self.app.url) as connection:
            connection.execute(statement, {"user": None, "agent": None, **scope, "id": id_, "tenant": self.app.tenant})  # type: ignore[call-overload]
        return str(id_)


@pytest.fixture(scope="module")
def shared_application(application_of_module: Application) -> Application:
    """Users are erased here."""
    return application_of_module


@pytest.fixture
async def world(application: Application) -> World:
    """A tenant with a session and an edge inside of every bound, and the same outside of each."""
    admin = application.admin()
    turn = {"session": SESSION, "messages": [{"content": "The anchor is rusty"}]}
    edge = {"edges": [{"subject": "Anchor", "type": "holds", "object": "Ship"}]}
    for ids in (OWN, *map(foreign_scope, ALL)):
        for path, body in (("/v1/turns", turn), ("/v1/graph/edges", edge)):
            answer = await admin.post(path, json={**ids, **body})
            assert answer.status_code == 200, answer.text
    return World(application, admin, {})


def foreign_scope(name: str) -> dict[str, str]:
    return {**OWN, name: FOREIGN[name]}


def without(name: str) -> dict[str, str]:
    return {other: id_ for other, id_ in OWN.items() if other != name}


def test_the_matrix_in_the_documents_is_that_of_the_routes() -> None:
    assert MATRIX.read_text() == matrix()


def test_every_route_has_an_example_here(application: Application) -> None:
    documented = {
        (method.upper(), path) for path, calls in application.api.openapi()["paths"].items() for method in calls
    }
    declared = {(method, path.replace(":path", "")) for method, path in ROUTES}

    assert documented == declared
    assert set(EXAMPLES) == set(WITH_KEY)


def test_a_route_without_a_declaration_is_refused_at_the_start() -> None:
    async def bare() -> None:
        pass

    with pytest.raises(Misconfigured, match="declares no access"):
        access_of(bare)
    assert access_of(allow(Access(Verb.READ))(bare)).role is KeyRole.READER


@pytest.mark.parametrize("role", [None, *KeyRole])
async def test_each_role_calls_the_routes_of_its_verbs_and_no_other(world: World, role: KeyRole | None) -> None:
    client = world.app.client("lamina_nobody") if role is None else world.key(role.value, role=role)
    for route in WITH_KEY:
        if route in {("POST", "/v1/audit"), ("DELETE", "/cache")} and role is KeyRole.ADMIN:
            continue  # They read or clear what other tests left; their own tests call them.
        verb = ROUTES[route].verb
        may = role is not None and verb in VERBS_OF[role]
        thing = await world.prepare(route, OWN)

        answer = await world.call(client, route, OWN, thing)

        expected = EXAMPLES[route].expected if may else {401 if role is None else 403}
        assert answer.status_code in expected, (role, route, answer.text)


async def test_a_key_without_a_verb_is_refused_by_its_routes_whatever_its_role(world: World) -> None:
    for route in WITH_KEY:
        verb = ROUTES[route].verb
        lacking = world.key(f"all but {verb}", verbs=set(Verb) - {verb})

        answer = await world.call(lacking, route, OWN, str(uuid4()))

        assert answer.status_code == 403, (route, answer.text)
        assert answer.json()["errors"][0]["field"] == "verbs"


@pytest.mark.parametrize("bound", list(ScopeField))
async def test_each_route_obeys_a_key_that_is_bound_in_one_field(world: World, bound: ScopeField) -> None:
    single = world.bound(bound, OWN[bound])
    several = world.bound(bound, OWN[bound], "another one")
    for route in WITH_KEY:
        access, example = ROUTES[route], EXAMPLES[route]
        rule = access.rules.get(bound, BoundRule.REFUSED)
        has_field = bound.value in example.fields
        beside = route == ("POST", "/v1/shares") and bound is ScopeField.WORKSPACE
        if access.verb is Verb.KEYS and example.of is not None:
            continue  # What of keys is seen has tests of its own.
        own = await world.prepare(route, OWN)

        named = await world.call(single, route, OWN, own)
        if rule is BoundRule.REFUSED:
            assert named.status_code == 403, (route, named.text)
            assert named.json()["errors"][0]["field"] == bound.value
            continue
        assert named.status_code in ({403} if beside else example.expected), (route, named.text)

        if has_field:
            foreign = await world.call(single, route, foreign_scope(bound), own)
            assert foreign.status_code == 403, (route, foreign.text)
            assert bound.value in foreign.json()["errors"][0]["field"]
        if example.must_name or f"{{{bound.value}}}" in route[1]:
            continue
        # Left out, a field is filled in by a bound of one id; a bound of several needs it, where it limits the route.
        own = await world.prepare(route, OWN)
        left_out = await world.call(single, route, without(bound), own)
        assert left_out.status_code in ({403} if beside else example.expected), (route, left_out.text)
        if has_field:
            own = await world.prepare(route, OWN)
            ambiguous = await world.call(several, route, without(bound), own)
            is_needed = rule is BoundRule.LIMITED or beside
            assert ambiguous.status_code in ({403} if is_needed else example.expected | {422}), (route, ambiguous.text)


@pytest.mark.parametrize("bound", list(ScopeField))
async def test_what_belongs_to_others_is_not_there_for_a_bound_key(world: World, bound: ScopeField) -> None:
    client = world.bound(bound, OWN[bound])
    for route, example in EXAMPLES.items():
        access = ROUTES[route]
        if access.of is None or bound.value in example.fields:
            continue
        thing = await world.make(access.of.value, foreign_scope(bound))
        unknown = await world.call(client, route, OWN, str(uuid4()))

        answer = await world.call(client, route, OWN, thing)

        rule = access.rules.get(bound, BoundRule.REFUSED)
        of_no_user = access.of is OwnedKind.PROCEDURE
        hides = bound in {ScopeField.WORKSPACE, ScopeField.NAMESPACE} or (bound is ScopeField.USER and not of_no_user)
        if rule is BoundRule.REFUSED:
            assert answer.status_code == 403, (route, answer.text)
        elif hides:
            assert answer.status_code == 404, (route, answer.text)
            assert answer.text == unknown.text.replace(unknown.json()["fields"]["id"], thing)
        elif rule is BoundRule.LIMITED:
            assert answer.status_code == 403, (route, answer.text)
        else:
            assert answer.status_code in example.expected, (route, answer.text)


@pytest.mark.parametrize("bound", [ScopeField.WORKSPACE, ScopeField.NAMESPACE, ScopeField.USER])
async def test_no_answer_to_a_bound_key_holds_a_word_from_outside(world: World, bound: ScopeField) -> None:
    kinds = ["note", "message", "document", "edge", "archived note"]
    if bound is not ScopeField.USER:  # Shares, procedures and entities belong to no user.
        kinds += ["share", "procedure", "entity"]
    foreign = [await world.make(kind, foreign_scope(bound)) for kind in kinds]
    await world.put_file(f"The {MARK} anchor", foreign_scope(bound))
    await world.app.indexed()
    client = world.bound(bound, OWN[bound])
    for ids in (OWN, without(bound)):
        for route in WITH_KEY:
            if ROUTES[route].verb is not Verb.READ or EXAMPLES[route].of is not None:
                continue
            for _ in range(2):  # The second answer may come from a cache.
                answer = await world.call(client, route, ids, None)

                assert MARK not in answer.text.replace(f"the {MARK} boat", ""), (route, answer.text)
                assert not [id_ for id_ in foreign if id_ in answer.text], (route, answer.text)


async def ids_in(client: httpx.AsyncClient, path: str, name: str, **params: Any) -> set[str]:
    answer = await client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return {item["id"] for item in answer.json()[name]}


@pytest.mark.parametrize("bound", [ScopeField.WORKSPACE, ScopeField.NAMESPACE])
async def test_the_runs_of_a_place_are_listed_to_its_key_and_no_others(world: World, bound: ScopeField) -> None:
    mine = await world.make("run", OWN)
    await world.make("run", foreign_scope(bound))
    whole = (await world.admin.post("/v1/jobs", json={"job": "sweep", "dry_run": True})).json()["id"]

    client = world.bound(bound, OWN[bound])

    assert await ids_in(client, "/v1/jobs", "runs") == {mine}
    assert await ids_in(client, "/v1/jobs", "runs", **{bound.value: OWN[bound]}) == {mine}
    assert {mine, whole} < await ids_in(world.admin, "/v1/jobs", "runs")


async def test_a_key_of_a_user_follows_the_erasure_that_it_ordered(world: World) -> None:
    client, stranger = world.bound(ScopeField.USER, "ann"), world.bound(ScopeField.USER, "bob", "eve")
    theirs = await world.make("erasure", {**OWN, "user": "eve"})
    ordered = (await client.delete("/v1/users", params={"user": "ann"})).json()["id"]

    assert await ids_in(client, "/v1/erasures", "erasures") == {ordered}
    assert (await client.get(f"/v1/erasures/{ordered}")).json()["id"] == ordered
    assert (await client.get(f"/v1/erasures/{theirs}")).status_code == 404
    assert (await stranger.get(f"/v1/erasures/{theirs}")).status_code == 200
    assert (await stranger.get("/v1/erasures")).status_code == 403
    assert await ids_in(stranger, "/v1/erasures", "erasures", user="bob") == set()
    assert await ids_in(world.admin, "/v1/erasures", "erasures") == {ordered, theirs}
    assert await ids_in(world.admin, "/v1/erasures", "erasures", user="eve") == {theirs}


async def test_statistics_of_caches_tell_a_bound_key_of_its_part_alone(world: World) -> None:
    for scope in (OWN, foreign_scope("workspace"), foreign_scope("agent")):
        body = {name: scope[name] for name in ("workspace", "agent")}
        put = await world.admin.post("/v1/responses", json={**body, "query": TEXT, "response": "yes"})
        assert put.json()["stored"], put.text
        calls = {"calls": [{**CALL, **body, "model": f"model of {body['workspace']} {body['agent']}"}]}
        assert (await world.admin.post("/v1/providers/cache-metrics", json=calls)).is_success

    async def told(client: httpx.AsyncClient, **params: str) -> tuple[int, set[str], bool]:
        stats = (await client.get("/cache/stats", params=params)).json()
        tables = stats["tables"]
        models = {rate["model"] for rate in stats["providers"]}
        return tables["responses"]["entries"], models, tables["embeddings"] is None

    own, other_agent = "model of atlas guide", "model of atlas other agent"
    other_workspace = "model of other workspace guide"
    assert await told(world.bound(ScopeField.WORKSPACE, "atlas")) == (2, {own, other_agent}, True)
    assert await told(world.bound(ScopeField.AGENT, "guide")) == (2, {own, other_workspace}, True)
    assert await told(world.bound(ScopeField.AGENT, "guide"), workspace="atlas") == (1, {own}, True)
    assert await told(world.admin) == (3, {own, other_agent, other_workspace}, False)
    assert await told(world.admin, agent="other agent") == (1, {other_agent}, False)
