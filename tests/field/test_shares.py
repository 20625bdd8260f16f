"""Shares between workspaces: one direction, one segment, until they end, and never what is private."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest

from deployments.routes import shares
from lamina.core.ports import ShareLookup as SharesPort
from lamina.core.principals import KeyRole
from lamina.core.queries import Failure, Query, Ranking
from lamina.core.scope import Scope
from lamina.core.sharing import Share
from lamina.core.stamps import Stamp
from lamina.core.tiers import Segment, Source, Tier
from lamina.errors import Unavailable
from lamina.models.hashing import HashingModel
from tests.support.application import Application, fused_search, running, settings_for

ASKED = "the anchor is rusty"
NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)


@dataclass
class Bay:
    """A tenant whose workspaces share; ``client`` has the key of its admin."""

    app: Application
    client: httpx.AsyncClient

    async def remember(self, content: str, **fields: Any) -> str:
        answer = await self.client.post("/v1/notes", json={"content": content, **fields})
        assert answer.status_code == 201, answer.text
        await self.app.indexed()
        return str(answer.json()["id"])

    async def share(self, **fields: Any) -> str:
        body = {"workspace": "library", "to_workspace": "desk", "segment": "notes", **fields}
        answer = await self.client.post("/v1/shares", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def search(self, workspace: str = "desk", **fields: Any) -> dict[str, Any]:
        body = {"query": ASKED, "workspace": workspace, **fields}
        answer = await self.client.post("/v1/search", json=body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def found(self, workspace: str = "desk", **fields: Any) -> set[str]:
        return {result["id"] for result in (await self.search(workspace, **fields))["results"]}

    async def listed(self, workspace: str) -> dict[str, list[tuple[str, str]]]:
        """The (id, state) of the workspace's shares in both directions."""
        answer = (await self.client.get("/v1/shares", params={"workspace": workspace})).json()
        return {name: [(share["id"], share["state"]) for share in answer[name]] for name in ("given", "received")}

    def execute(self, text: str, **values: Any) -> None:
        with psycopg.connect(self.app.url, autocommit=True) as connection:
            connection.execute(text.encode(), values)


@pytest.fixture
def bay(application: Application) -> Bay:
    return Bay(application, application.admin())


async def test_what_is_shared_is_found_in_one_direction_and_tells_where_it_comes_from(bay: Bay) -> None:
    shared = await bay.remember(f"{ASKED} in the library", workspace="library")
    own = await bay.remember(f"{ASKED} on the desk", workspace="desk")
    assert await bay.found() == {own}

    await bay.share()

    answer = await bay.search(explain=True)
    assert {result["id"]: result["workspace"] for result in answer["results"]} == {own: None, shared: "library"}
    assert answer["degraded"] == []
    assert await bay.found("library") == {shared}
    assert await bay.found("elsewhere") == set()


async def test_a_share_reaches_every_namespace_of_the_other_workspace_from_one_of_its_own(bay: Bay) -> None:
    await bay.remember(f"{ASKED} one", workspace="library")
    shelf = await bay.remember(f"{ASKED} two", workspace="library", namespace="shelf")

    await bay.share(namespace="shelf")

    for namespace in ("default", "drawer"):
        (result,) = (await bay.search(namespace=namespace))["results"]
        assert (result["id"], result["workspace"], result["namespace"]) == (shelf, "library", "shelf")


async def test_every_leg_that_finds_an_own_note_finds_a_shared_one(bay: Bay) -> None:
    await bay.remember(f"{ASKED} in the library", workspace="library")
    await bay.share()

    (result,) = (await bay.search(tiers=["notes"], explain=True))["results"]

    assert {"notes_hybrid", "notes_warm"} <= result["explain"].keys()


async def test_shared_and_own_notes_stand_in_one_ranking_by_their_scores(bay: Bay) -> None:
    far = await bay.remember(f"{ASKED} says somebody who looked at it for a very long time", workspace="desk")
    near = await bay.remember(ASKED, workspace="library")
    await bay.share()

    results = (await bay.search(tiers=["notes"], explain=True))["results"]

    assert [result["id"] for result in results] == [near, far]
    assert [result["explain"]["notes_hybrid"]["rank"] for result in results] == [1, 2]


async def test_messages_are_never_shared(bay: Bay) -> None:
    body = {"session": "s1", "workspace": "library", "messages": [{"content": ASKED}]}
    await bay.client.post("/v1/turns", json=body)
    await bay.app.indexed()

    for segment in Segment:
        await bay.share(segment=segment)

    assert await bay.found() == set()
    assert (await bay.client.post("/v1/shares", json={"to_workspace": "x", "segment": "sessions"})).status_code == 422


@pytest.mark.parametrize("segment", [segment for segment in Segment if segment is not Segment.NOTES])
async def test_a_share_of_another_segment_shows_no_notes(bay: Bay, segment: Segment) -> None:
    await bay.remember(ASKED, workspace="library")

    await bay.share(segment=segment)

    assert await bay.found() == set()


async def _say_something(bay: Bay, workspace: str, **ids: Any) -> None:
    """Put one memory into every segment of a workspace."""
    scope = {"workspace": workspace, **ids}
    edge = {"subject": "Marta Keller", "type": "looks_after", "object": "the rusty anchor"}
    bodies: dict[str, dict[str, Any]] = {
        "/v1/notes": {"content": "Marta Keller says the anchor is rusty"},
        "/v1/graph/edges": {"edges": [edge]},
        "/v1/documents": {"title": "Log", "content": "Marta Keller wrote that the anchor is rusty."},
    }
    if not ids:
        bodies["/v1/procedures"] = {"trigger": "Marta Keller asks for the anchor", "action": "show her"}
    for path, body in bodies.items():
        answer = await bay.client.post(path, json={**body, **scope})
        assert answer.is_success, (path, answer.text)
    await bay.app.indexed()


@pytest.mark.parametrize("segment", Segment)
async def test_each_segment_is_shared_by_itself(bay: Bay, segment: Segment) -> None:
    await _say_something(bay, "library")
    asked = {"query": "Marta Keller asks for the anchor", "min_score": 0}
    own = await bay.search("library", **asked)

    await bay.share(segment=segment)

    shared = await bay.search(**asked)
    assert {result["tier"] for result in own["results"]} == {"notes", "graph", "procedures", "documents"}
    assert {result["tier"] for result in shared["results"]} == {segment.value}
    assert {result["workspace"] for result in shared["results"]} == {"library"}
    assert shared["degraded"] == []


async def test_of_no_segment_anything_private_is_shared(bay: Bay) -> None:
    await _say_something(bay, "library", user="ann")
    for segment in Segment:
        await bay.share(segment=segment)

    asked = {"query": "Marta Keller asks for the anchor", "min_score": 0}

    assert len(await bay.found("library", user="ann", **asked)) >= 3
    assert await bay.found(**asked) == set()
    assert await bay.found(user="ann", **asked) == set()


async def test_a_shared_segment_is_searched_only_where_its_tier_is(bay: Bay) -> None:
    await bay.remember(ASKED, workspace="library")
    await bay.share()

    assert await bay.found(tiers=["sessions"]) == set()
    assert len(await bay.found(tiers=["notes"])) == 1


async def test_nobodys_private_memories_are_shared_not_even_with_their_user(bay: Bay) -> None:
    shared = await bay.remember(f"{ASKED} for all", workspace="library")
    await bay.remember(f"{ASKED} for ann", workspace="library", user="ann")
    own = await bay.remember(f"{ASKED} at the desk", workspace="desk", user="ann")
    await bay.share()

    assert await bay.found() == {shared, own}
    assert await bay.found(user="ann") == {shared, own}
    assert await bay.found(user="bob") == {shared}
    assert await bay.found(filters={"user": "ann"}) == {own}


async def test_only_what_has_all_the_tags_of_the_share_is_shared(bay: Bay) -> None:
    both = await bay.remember(f"{ASKED} one", workspace="library", tags=["open", "salt, pepper"])
    await bay.remember(f"{ASKED} two", workspace="library", tags=["open"])
    await bay.remember(f"{ASKED} three", workspace="library")

    await bay.share(tags=["salt, pepper", "open"])

    assert await bay.found() == {both}
    assert await bay.found(tags=["closed"]) == set()


async def test_the_filters_of_the_search_hold_for_what_is_shared(bay: Bay) -> None:
    decision = await bay.remember(f"{ASKED} one", workspace="library", category="decision", event_at="2026-03-01")
    note = await bay.remember(f"{ASKED} two", workspace="library", event_at="2026-01-01")
    await bay.share()

    assert await bay.found(filters={"category": "decision"}) == {decision}
    assert await bay.found(until="2026-02-01T00:00Z") == {note}


async def test_a_context_block_holds_what_is_shared(bay: Bay) -> None:
    await bay.remember(f"{ASKED} in the library", workspace="library")
    await bay.share()

    answer = await bay.client.post("/v1/context", json={"query": ASKED, "workspace": "desk"})

    assert f"{ASKED} in the library" in answer.json()["text"]


async def test_nothing_is_written_through_a_share(bay: Bay) -> None:
    note = await bay.remember(ASKED, workspace="library")
    await bay.share()

    await bay.remember(ASKED, workspace="desk")
    await bay.search()
    await bay.app.counted()

    library = (await bay.client.get("/v1/notes", params={"workspace": "library"})).json()["notes"]
    assert [(item["id"], item["hits"]) for item in library] == [(note, 1)]


async def test_a_revoked_share_ends_at_once_where_it_was_revoked(bay: Bay) -> None:
    shared = await bay.remember(ASKED, workspace="library")
    id_ = await bay.share()
    assert await bay.found() == {shared}

    answers = [await bay.client.delete(f"/v1/shares/{id_}") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [204, 204]
    assert await bay.found() == set()
    assert await bay.listed("library") == {"given": [(id_, "revoked")], "received": []}


async def test_an_expired_share_has_no_effect_though_its_answer_is_cached(bay: Bay) -> None:
    shared = await bay.remember(ASKED, workspace="library")
    id_ = await bay.share(expires_at="2999-01-01T00:00:00")
    await bay.app.indexed()
    assert await bay.found() == await bay.found() == {shared}

    bay.execute("UPDATE shares SET expires_at = now() - interval '1 s' WHERE id = %(id)s", id=id_)
    assert await bay.found() == set()
    assert await bay.listed("desk") == {"given": [], "received": [(id_, "expired")]}


async def test_both_workspaces_list_a_share_and_others_do_not(bay: Bay) -> None:
    first = await bay.share()
    second = await bay.share(workspace="desk", to_workspace="attic", label="for the attic", tags=["b", "a"])

    assert await bay.listed("desk") == {"given": [(second, "active")], "received": [(first, "active")]}
    assert await bay.listed("library") == {"given": [(first, "active")], "received": []}
    assert await bay.listed("cellar") == {"given": [], "received": []}
    (shown,) = (await bay.client.get("/v1/shares", params={"workspace": "attic"})).json()["received"]
    assert (shown["label"], shown["tags"], shown["workspace"]) == ("for the attic", ["a", "b"], "desk")


async def test_the_same_share_again_is_renewed_so_that_one_revocation_ends_it(bay: Bay) -> None:
    await bay.remember(ASKED, workspace="library", tags=["a", "b"])
    first = await bay.share(tags=["a", "b"], expires_at="2999-01-01")
    again = await bay.share(tags=["b", "a"], label="renewed")

    (shown,) = (await bay.client.get("/v1/shares", params={"workspace": "library"})).json()["given"]
    assert first == again == shown["id"]
    assert (shown["label"], shown["expires_at"]) == ("renewed", None)

    await bay.client.delete(f"/v1/shares/{first}")
    assert await bay.found() == set()
    assert await bay.share(tags=["a", "b"]) != first


async def test_an_idempotency_key_makes_one_share(bay: Bay) -> None:
    body = {"workspace": "library", "to_workspace": "desk", "segment": "notes"}
    headers = {"Idempotency-Key": "once"}

    answers = [await bay.client.post("/v1/shares", json=body, headers=headers) for _ in range(2)]
    other = await bay.client.post("/v1/shares", json={**body, "to_workspace": "attic"}, headers=headers)

    assert answers[0].json() == answers[1].json()
    assert other.status_code == 409


@pytest.mark.parametrize("role", [KeyRole.READER, KeyRole.WRITER])
async def test_only_an_admin_shares_and_revokes(bay: Bay, role: KeyRole) -> None:
    id_ = await bay.share()
    other = bay.app.client(bay.app.new_key(bay.app.tenant, role))

    answers = [
        await other.post("/v1/shares", json={"to_workspace": "desk", "segment": "notes"}),
        await other.delete(f"/v1/shares/{id_}"),
        await other.get("/v1/shares", params={"workspace": "desk"}),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 200]
    assert await bay.listed("library") == {"given": [(id_, "active")], "received": []}


async def test_another_tenant_sees_and_changes_nothing(bay: Bay) -> None:
    await bay.remember(ASKED, workspace="library")
    id_ = await bay.share()
    other = bay.app.for_tenant(f"other than {bay.app.tenant}")
    theirs = Bay(other, other.admin())

    assert await theirs.found() == set()
    assert await theirs.listed("desk") == {"given": [], "received": []}
    answer = await theirs.client.delete(f"/v1/shares/{id_}")
    assert (answer.status_code, answer.json()["detail"]) == (404, f"no share {id_}")
    await theirs.share()
    assert await theirs.found() == set()
    assert await bay.listed("library") == {"given": [(id_, "active")], "received": []}
    await other.close_clients()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"to_workspace": "library"}, "to_workspace"),
        ({"to_workspace": None}, "to_workspace"),
        ({"segment": "profile"}, "segment"),
        ({"tags": "red"}, "tags"),
        ({"tags": [""]}, "tags.0"),
        ({"expires_at": "2020-01-01T00:00:00"}, "expires_at"),
        ({"expires_at": None}, "expires_at"),
        ({"workspace": "a\x00"}, "workspace"),
        ({"tenant": "other"}, "tenant"),
        ({"label": "x" * 501}, "label"),
    ],
)
async def test_a_share_that_cannot_be_is_refused(bay: Bay, fields: dict[str, Any], field: str) -> None:
    body = {"workspace": "library", "to_workspace": "desk", "segment": "notes", **fields}

    answer = await bay.client.post("/v1/shares", json=body)

    assert answer.status_code == 422, answer.text
    assert [error["field"] for error in answer.json()["errors"]] == [field]


async def test_a_share_that_was_accepted_is_answered_again_after_its_end(
    bay: Bay, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = datetime.now(UTC) + timedelta(days=1)
    body = {"workspace": "library", "to_workspace": "desk", "segment": "notes", "expires_at": end.isoformat()}
    key = {"Idempotency-Key": "once"}
    first = await bay.client.post("/v1/shares", json=body, headers=key)

    monkeypatch.setattr(shares, "utc_now", lambda: end + timedelta(hours=1))
    again = await bay.client.post("/v1/shares", json=body, headers=key)

    assert (again.status_code, again.json()["id"]) == (201, first.json()["id"])
    assert again.json()["state"] == "expired"


async def test_a_workspace_sees_a_bounded_number_of_shares(bay: Bay) -> None:
    ids = [await bay.share(workspace=f"library {number}") for number in range(32)]

    refused = await bay.client.post("/v1/shares", json={"workspace": "x", "to_workspace": "desk", "segment": "notes"})
    await bay.client.delete(f"/v1/shares/{ids[0]}")

    assert refused.status_code == 409
    assert "32" in refused.json()["detail"]
    await bay.share(workspace="x")


async def test_a_share_is_a_write_that_caches_of_the_other_workspace_notice(bay: Bay) -> None:
    await bay.remember("one", workspace="desk")
    before = await _epoch(bay)
    id_ = await bay.share()
    shared = await _epoch(bay)
    await bay.client.delete(f"/v1/shares/{id_}")

    assert before < shared < await _epoch(bay)


async def _epoch(bay: Bay) -> int:
    with psycopg.connect(bay.app.url) as connection:
        row = connection.execute(
            "SELECT epoch FROM epochs WHERE tenant = %s AND workspace = 'desk' AND namespace = 'default'",
            (bay.app.tenant,),
        ).fetchone()
    assert row is not None
    return int(row[0])


class Away(SharesPort):
    """Postgres, when it does not answer."""

    async def into(self, scope: Scope, now: datetime) -> tuple[Share, ...]:
        raise Unavailable("postgres", "it is away")

    async def read(self, scope: Scope, question: str | None = None) -> Stamp:
        raise Unavailable("postgres", "it is away")


class Broken:
    """A tier that answers for its own workspace and fails for every other."""

    def __init__(self, inner: Any, *, hangs: bool) -> None:
        self._inner = inner
        self._hangs = hangs

    async def search(self, query: Query) -> dict[Source, Ranking | Failure]:
        if query.scope.workspace == "desk":
            return dict(await self._inner.search(query))
        if self._hangs:
            await asyncio.sleep(60)
        raise ConnectionError


@pytest.fixture
async def hasty(database: str, tmp_path: Path) -> AsyncIterator[Bay]:
    """A bay whose tiers have little time."""
    settings = settings_for(database, tmp_path, search={"tier_deadline_s": 2, "embed_deadline_s": 4})
    async with running(settings, database, HashingModel()) as app:
        yield Bay(app, app.admin())


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_workspace_that_does_not_answer_is_named_and_the_own_one_answers(hasty: Bay, *, hangs: bool) -> None:
    own = await hasty.remember(ASKED, workspace="desk")
    await hasty.share()
    search = fused_search(hasty.app)
    inner = search._tiers[Tier.NOTES]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(search, "_tiers", {**search._tiers, Tier.NOTES: Broken(inner, hangs=hangs)})
        answer = await hasty.search(explain=True, tiers=["notes"])

    assert [result["id"] for result in answer["results"]] == [own]
    assert "shared_notes_hybrid" in answer["degraded"]
    assert "notes_hybrid" not in answer["degraded"]
    assert answer["reasons"]["shared_notes_hybrid"].startswith("workspace library: ")


async def test_shares_that_cannot_be_read_degrade_the_answer_and_do_not_prevent_it(bay: Bay) -> None:
    own = await bay.remember(ASKED, workspace="desk")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bay.app.services.caches.answers, "_stamps", Away())
        patched.setattr(fused_search(bay.app), "_shares", Away())
        answer = await bay.search(explain=True)

    assert [result["id"] for result in answer["results"]] == [own]
    assert answer["degraded"] == ["shares"]
    assert "it is away" in answer["reasons"]["shares"]


async def test_an_unknown_share_cannot_be_read_or_revoked(bay: Bay) -> None:
    for id_ in (uuid4(), UUID(int=0)):
        answer = await bay.client.delete(f"/v1/shares/{id_}")
        assert answer.status_code == 404
