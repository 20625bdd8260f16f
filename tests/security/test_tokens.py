"""Tokens of an issuer in place of keys: checked whole, never wider than their claims, refused with the way to one."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import jwt
import pytest
from pydantic import ValidationError
from starlette.responses import JSONResponse, Response

from lamina.core.principals import KeyRole, Verb
from lamina.embedded import EmbeddedPostgres
from lamina.errors import InvalidToken, Unavailable
from lamina.models.hashing import HashingModel
from lamina.settings.doors import AuthSettings, JwtSettings
from lamina.stores.token_issuer import MIN_REFRESH_S, STALE_S, TokenIssuer
from lamina.wiring.tokens import build_token_issuer
from tests.support.application import Application, running, settings_for
from tests.support.databases import new_database
from tests.support.issuer import AUDIENCE, Issuer, issuing, new_private_key
from tests.support.mcp import call, post

METADATA = "https://memory.example/.well-known/oauth-protected-resource/mcp"


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuing() as made:
        made.new_key("first")
        yield made


@pytest.fixture(scope="module")
async def known_issuer() -> AsyncIterator[Issuer]:
    """The issuer that the application of all tests here believes; its keys stay as they are."""
    async with issuing() as made:
        made.new_key("first")
        yield made


@pytest.fixture(scope="module")
async def app(
    postgres: EmbeddedPostgres, known_issuer: Issuer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Application]:
    with new_database(postgres) as database:
        async with believing(known_issuer, database, tmp_path_factory.mktemp("tokens")) as made:
            yield made


@asynccontextmanager
async def believing(issuer: Issuer, database: str, folder: Path) -> AsyncIterator[Application]:
    """Run an application that takes tokens of an issuer."""
    settings = settings_for(database, folder, auth={"jwt": {"issuer": issuer.url, "audience": AUDIENCE}})
    async with running(settings, database, HashingModel()) as made:
        yield made


def check_of(issuer: Issuer, **fields: Any) -> TokenIssuer:
    settings = JwtSettings(**{"issuer": issuer.url, "audience": AUDIENCE, **fields})
    made = build_token_issuer(AuthSettings(jwt=settings))
    assert made is not None
    return made


def unsigned(claims: dict[str, Any], algorithm: str = "none") -> str:
    parts = ({"alg": algorithm, "typ": "JWT", "kid": "first"}, claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join((*encoded, ""))


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
@pytest.mark.parametrize(("path", "is_oidc"), [("", True), ("", False), ("/realms/a", True), ("/realms/a", False)])
async def test_a_token_is_checked_by_the_keys_that_its_issuer_tells(algorithm: str, path: str, is_oidc: bool) -> None:
    async with issuing(path, is_oidc=is_oidc) as issuer:
        issuer.new_key("first", algorithm)
        check = check_of(issuer)

        principal = await check.check(issuer.token())
        again = await check.check(issuer.token())
        without_id = await check.check(issuer.token(headers={}))

    assert (principal.tenant, principal.role, principal.bounds.users) == ("acme", KeyRole.WRITER, frozenset({"ann"}))
    assert principal.key_id == again.key_id == without_id.key_id
    assert issuer.asked.count("/keys") == 1


async def test_the_same_token_opens_the_http_api_and_mcp(app: Application, known_issuer: Issuer) -> None:
    client = app.client(known_issuer.token())

    noted = await client.post("/v1/notes", json={"content": "Ann's own note"})
    read = await call(client, "read", id=noted.json()["id"])

    assert noted.status_code == 201, noted.text
    assert (read["structuredContent"]["user"], read["structuredContent"]["content"]) == ("ann", "Ann's own note")


async def test_keys_open_what_they_did_before(app: Application) -> None:
    assert (await app.client().post("/v1/notes", json={"content": f"A note {uuid4()}"})).status_code == 201


WRONG = {
    "another audience": {"aud": "https://other.example/mcp"},
    "no audience": {"aud": None},
    "an audience that begins alike": {"aud": f"{AUDIENCE}/more"},
    "another issuer": {"iss": "https://evil.example"},
    "no issuer": {"iss": None},
    "an end that is past": {"exp": time.time() - 3600},
    "no end": {"exp": None},
    "a beginning that is to come": {"nbf": time.time() + 3600},
    "no tenant": {"tenant": None},
    "a tenant that is no text": {"tenant": 7},
    "an empty tenant": {"tenant": ""},
    "a tenant that cannot be seen": {"tenant": "\u200b"},
    "no subject": {"sub": None},
    "workspaces that are none": {"workspace": []},
    "a workspace that is no text": {"workspace": {"a": 1}},
    "scopes of others alone": {"scope": "openid profile"},
    "no scope": {"scope": ""},
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_token_with_wrong_claims_is_refused_with_the_way_to_one(
    app: Application, known_issuer: Issuer, name: str
) -> None:
    client = app.client(known_issuer.token(**WRONG[name]))

    answers = [await client.get("/v1/notes"), await post(client, "tools/list")]

    for answer in answers:
        assert answer.status_code == 401
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        assert f'resource_metadata="{METADATA}"' in answer.headers["www-authenticate"]


async def test_a_token_that_the_issuer_did_not_sign_is_refused(app: Application, known_issuer: Issuer) -> None:
    claims = jwt.decode(known_issuer.token(), options={"verify_signature": False})
    other = new_private_key("RS256")
    public = known_issuer.keys["first"][1].public_key()
    head, body, signature = known_issuer.token().split(".")
    forged = [
        unsigned(claims),
        unsigned(claims, "NONE"),
        unsigned(claims, "RS256"),
        jwt.encode(claims, other, "RS256", headers={"kid": "first"}),
        jwt.encode(
            claims, other, "RS256", headers={"kid": "mine", "jwk": {"kty": "RSA"}, "jku": "http://127.0.0.1:1/"}
        ),
        jwt.encode(claims, new_private_key("ES256"), "ES256", headers={"kid": "first"}),
        jwt.encode(claims, "x" * 64, "HS256", headers={"kid": "first"}),
        jwt.encode(claims, str(public) * 2, "HS512", headers={"kid": "first"}),
        f"{head}.{body}.{signature[:-8]}AAAAAAAA",
        f"{head}.{body}.",
        f"{head}..{signature}",
        "ey.ey.ey",
        f"ey{'A' * 20_000}.e.e",
    ]
    for token in forged:
        answer = await app.client(token).get("/v1/notes")
        assert answer.status_code == 401, token[:80]


async def test_a_token_reaches_no_further_than_its_claims(app: Application, known_issuer: Issuer) -> None:
    await app.client().post("/v1/notes", json={"content": "Bob's", "user": "bob", "workspace": "red"})
    ann = app.client(known_issuer.token(workspace="red"))
    other = app.client(known_issuer.token(tenant=f"tenant {uuid4()}"))

    own = await ann.post("/v1/notes", json={"content": "Ann's"})

    assert own.status_code == 201
    assert (await ann.get(f"/v1/notes/{own.json()['id']}")).json()["workspace"] == "red"
    assert (await ann.get("/v1/notes", params={"workspace": "blue"})).status_code == 403
    assert (await ann.get("/v1/notes", params={"user": "bob"})).status_code == 403
    assert (await other.get(f"/v1/notes/{own.json()['id']}")).status_code == 404
    assert (await ann.post("/v1/keys", json={"name": "x", "role": "writer"})).status_code == 403


@pytest.mark.parametrize(
    ("role", "given"),
    [
        ("reader", KeyRole.READER),
        ("admin", KeyRole.ADMIN),
        (["viewer", "writer", "reader"], KeyRole.WRITER),
        ("owner", KeyRole.READER),
        (None, KeyRole.READER),
    ],
)
async def test_a_role_is_that_of_the_claim_and_the_lowest_for_another_word(
    issuer: Issuer, role: Any, given: KeyRole
) -> None:
    assert (await check_of(issuer).check(issuer.token(role=role))).role is given


async def test_claims_may_have_other_names_and_lie_within_objects(issuer: Issuer) -> None:
    claims = {"tenant": "https://acme.example/org", "role": "realm_access.roles", "workspace": "spaces", "user": None}
    token = issuer.token(
        **{"https://acme.example/org": "t", "realm_access": {"roles": ["writer"]}, "spaces": ["a", "b"], "role": None}
    )

    principal = await check_of(issuer, claims=claims).check(token)

    assert (principal.tenant, principal.role) == ("t", KeyRole.WRITER)
    assert (principal.bounds.workspaces, principal.bounds.users) == (frozenset({"a", "b"}), frozenset())


async def test_a_missing_scope_is_refused_with_all_that_the_call_needs(app: Application, known_issuer: Issuer) -> None:
    client = app.client(known_issuer.token(scope="openid lamina:read"))
    note = (await app.client().post("/v1/notes", json={"content": "A note"})).json()

    listed = (await post(client, "tools/list")).json()["result"]["tools"]
    refused = {
        "lamina:write": [
            await post(client, "tools/call", {"name": "remember", "arguments": {"content": "x"}}),
            await post(client, "tools/call", {"name": "remember", "arguments": {"content": "x"}}, "2025-11-25"),
            await client.post("/v1/notes", json={"content": "x"}),
        ],
        "lamina:delete": [
            await post(client, "tools/call", {"name": "forget", "arguments": {"id": note["id"]}}),
            await client.delete(f"/v1/notes/{note['id']}"),
        ],
    }

    assert (await call(client, "search", query="a note"))["content"]
    assert "remember" in {tool["name"] for tool in listed}
    for scope, answers in refused.items():
        for answer in answers:
            told = answer.headers["www-authenticate"]
            assert answer.status_code == 403
            assert f'error="insufficient_scope", scope="{scope}"' in told
            assert METADATA in told


async def test_a_token_to_write_alone_reads_no_resource(app: Application, known_issuer: Issuer) -> None:
    client = app.client(known_issuer.token(scope="lamina:write"))

    for method, params in (("resources/list", {}), ("prompts/get", {"name": "recall", "arguments": {"query": "x"}})):
        answer = await post(client, method, params)
        assert (answer.status_code, 'scope="lamina:read"' in answer.headers["www-authenticate"]) == (403, True)


async def test_without_a_key_a_request_is_told_where_to_get_a_token(app: Application) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app.api), base_url="http://localhost") as client:
        answers = [await client.post("/mcp"), await client.get("/v1/notes")]
        places = [
            await client.get("/.well-known/oauth-protected-resource"),
            await client.get("/.well-known/oauth-protected-resource/mcp"),
        ]

    for answer in answers:
        told = answer.headers["www-authenticate"]
        assert (answer.status_code, "error=" in told) == (401, False)
        assert told == f'Bearer scope="lamina:read lamina:write lamina:delete", resource_metadata="{METADATA}"'
    for place in places:
        metadata = place.json()
        assert metadata["resource"] == AUDIENCE
        assert metadata["authorization_servers"] == [app.settings.auth.jwt.issuer if app.settings.auth.jwt else ""]
        assert "lamina:read" in metadata["scopes_supported"]
        assert "offline_access" not in metadata["scopes_supported"]


async def test_a_service_of_keys_alone_has_no_metadata_and_takes_no_token(
    application: Application, issuer: Issuer
) -> None:
    client = application.client(issuer.token())

    assert (await client.get("/.well-known/oauth-protected-resource")).status_code == 404
    refused = await client.get("/v1/notes")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")


async def test_the_host_of_the_audience_is_a_name_of_this_service(app: Application, known_issuer: Issuer) -> None:
    assert (await post(app.client(known_issuer.token()), "tools/list", Host="memory.example")).status_code == 200


async def test_a_token_in_the_query_is_no_token(app: Application, known_issuer: Issuer) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app.api), base_url="http://localhost") as client:
        assert (await client.get("/v1/notes", params={"access_token": known_issuer.token()})).status_code == 401


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def clocked(issuer: Issuer, clock: Clock) -> TokenIssuer:
    made = check_of(issuer)
    return TokenIssuer(issuer.url, AUDIENCE, made._rules, keys_s=600, leeway_s=0, clock=clock)


async def test_a_key_that_the_issuer_brings_in_is_met_at_once_and_one_that_it_drops_ends(issuer: Issuer) -> None:
    clock = Clock()
    check = clocked(issuer, clock)
    old = issuer.token()
    await check.check(old)
    issuer.new_key("second", "ES256")
    clock.now_s += MIN_REFRESH_S + 1
    await check.check(issuer.token("second"))
    del issuer.keys["first"]
    await check.check(old)
    clock.now_s += 601

    with pytest.raises(InvalidToken, match="none of the issuer's"):
        await check.check(old)
    await check.check(issuer.token("second"))


async def test_invented_key_ids_do_not_make_the_issuer_be_asked_again_and_again(issuer: Issuer) -> None:
    clock = Clock()
    check = clocked(issuer, clock)
    await check.check(issuer.token())

    tokens = [issuer.token(headers={"kid": f"invented {number}"}) for number in range(20)]
    clock.now_s += MIN_REFRESH_S + 1
    results = await asyncio.gather(*map(check.check, tokens), return_exceptions=True)

    assert all(isinstance(result, InvalidToken) for result in results)
    assert issuer.asked.count("/keys") == 2


async def test_an_issuer_that_is_away_stops_nobody_for_an_hour(issuer: Issuer) -> None:
    clock = Clock()
    check = clocked(issuer, clock)
    await check.check(issuer.token())
    issuer.is_away = True
    clock.now_s += 700
    await check.check(issuer.token())
    clock.now_s += STALE_S

    with pytest.raises(Unavailable, match="issuer"):
        await check.check(issuer.token())
    issuer.is_away = False
    clock.now_s += MIN_REFRESH_S + 1
    await check.check(issuer.token())


NO_KEYS = {
    "a document that is away": Response(status_code=503),
    "no key": JSONResponse({"keys": []}),
    "no list": JSONResponse({"keys": None}),
    "no object": JSONResponse([]),
    "an error in JSON": JSONResponse({"error": "try later"}),
    "keys of another kind": JSONResponse({"keys": [{"kty": "oct", "kid": "first", "k": "c2VjcmV0"}, "first"]}),
    "keys to encrypt": JSONResponse({"keys": [{"kty": "RSA", "kid": "first", "use": "enc"}]}),
}


@pytest.mark.parametrize("said", NO_KEYS.values(), ids=NO_KEYS)
async def test_an_issuer_that_tells_no_keys_takes_none_away_for_an_hour(issuer: Issuer, said: Response) -> None:
    clock = Clock()
    check = clocked(issuer, clock)
    await check.check(issuer.token())
    issuer.said_of_keys = said
    clock.now_s += 700
    await check.check(issuer.token())
    with pytest.raises(Unavailable, match="/keys answers no key"):
        await clocked(issuer, clock).check(issuer.token())
    clock.now_s += STALE_S

    with pytest.raises(Unavailable, match="/keys answers no key"):
        await check.check(issuer.token())
    issuer.said_of_keys = None
    clock.now_s += MIN_REFRESH_S + 1
    await check.check(issuer.token())


async def test_all_who_come_before_the_first_keys_wait_for_one_fetch(issuer: Issuer) -> None:
    check = check_of(issuer)

    principals = await asyncio.gather(*(check.check(issuer.token(sub=f"user {number}")) for number in range(20)))

    assert len({principal.key_id for principal in principals}) == 20
    assert issuer.asked.count("/keys") == 1


async def test_an_issuer_that_calls_itself_otherwise_is_believed_nothing(issuer: Issuer) -> None:
    async with issuing() as other:
        other.new_key("first")
        settings = JwtSettings(issuer=f"http://localhost:{other.port}", audience=AUDIENCE)
        check = build_token_issuer(AuthSettings(jwt=settings))
        assert check is not None

        with pytest.raises(Unavailable, match="calls itself"):
            await check.check(other.token(iss=settings.issuer))


async def test_an_issuer_that_never_answered_is_an_error_of_the_service(
    database: str, tmp_path: Path, issuer: Issuer
) -> None:
    issuer.is_away = True

    async with believing(issuer, database, tmp_path) as app:
        answer = await app.client(issuer.token()).get("/v1/notes")

    assert (answer.status_code, "issuer" in answer.json()["detail"]) == (503, True)


async def test_a_token_of_an_admin_makes_no_key_that_outlives_or_outreaches_it(
    app: Application, known_issuer: Issuer
) -> None:
    client = app.client(known_issuer.token(role="admin"))

    made = await client.post("/v1/keys", json={"name": "x", "role": "writer"})
    later = await client.post("/v1/keys", json={"name": "x", "role": "writer", "expires_at": "2099-01-01"})
    other = await client.post("/v1/keys", json={"name": "x", "role": "writer", "users": ["bob"]})

    assert made.status_code == 201, made.text
    assert made.json()["users"] == ["ann"]
    assert made.json()["expires_at"] is not None
    assert (later.status_code, other.status_code) == (403, 403)


@pytest.mark.parametrize(
    "url", ["http://memory.example", "memory.example", "", "https://", "https://a.example?x=1", "ftp://a.example"]
)
@pytest.mark.parametrize("name", ["issuer", "audience"])
def test_an_issuer_or_audience_that_is_no_safe_address_is_refused(url: str, name: str) -> None:
    with pytest.raises(ValidationError, match="https URL"):
        JwtSettings(**{"issuer": "https://a.example", "audience": AUDIENCE, name: url})


def test_every_verb_has_a_scope_of_its_own() -> None:
    from deployments.oauth import SCOPES

    assert len(set(SCOPES)) == len(Verb)
