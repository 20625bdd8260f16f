"""Field case 69: what was sent comes back as it was sent; texts are composed only where they are compared."""

import json
import unicodedata
from typing import Any

import pytest

from tests.support.application import Application
from tests.support.jobs import in_days, run_job

DECOMPOSED = "Cafe\u0301 Zoe\u0308"
COMPOSED = unicodedata.normalize("NFC", DECOMPOSED)
ANGSTROM = "\u212b and \u2126"  # signs that NFC replaces by letters
HANGUL = unicodedata.normalize("NFD", "한국어 문서")
METADATA: list[dict[str, Any]] = [
    {"path": f"/home/{DECOMPOSED}/\u1e9b\u0323.txt"},
    {"sign": ANGSTROM, "hangul": HANGUL, "compatible": "\uf900 \ufb01"},
    {COMPOSED: 1, DECOMPOSED: 2},
    {"deep": [{"\u00e9": {"e\u0301": [DECOMPOSED, COMPOSED]}}]},
    {"zz": 1, "a": {"y": 1, "x": 2}, "bbb": [3, 1, 2], "A": 0},
    {"large": 1e18, "tiny": 1e-300, "whole": 1.0, "many": 12345678901234567890123, "zero": -0.0, "small": 1e300},
    {"": "", " ": " \t\r\n", "\ufeff": "\u200b\u202e", "$ref": "{}", "__proto__": None, "u": "\\u0000"},
]


def same(one: object, other: object) -> bool:
    """Compare as texts: types, composition and order count."""
    return json.dumps(one) == json.dumps(other)


@pytest.mark.parametrize("metadata", METADATA, ids=lambda metadata: ascii(metadata)[:40])
async def test_metadata_come_back_as_they_were_sent(application: Application, metadata: dict[str, Any]) -> None:
    client = application.client()
    note = (await client.post("/v1/notes", json={"content": "a green boat", "metadata": metadata})).json()["id"]
    message = {"content": "the boat is green", "metadata": metadata}
    await client.post("/v1/turns", json={"session": "s", "messages": [message]})
    body = {"trigger": "a storm", "action": "moor the boat", "metadata": metadata}
    procedure = (await client.post("/v1/procedures", json=body)).json()["id"]
    document = (await client.post("/v1/documents", json={"content": "the boat's log", "metadata": metadata})).json()
    file = {"file": ("log.txt", b"the other log of the boat")}
    sent = await client.post("/v1/documents/upload", files=file, data={"metadata": json.dumps(metadata)})
    await client.patch("/v1/profile", json={"user": "ann", "patch": {"own": {"kept": True} | metadata}})
    await application.indexed()
    found = (await client.post("/v1/search", json={"query": "boat", "limit": 20})).json()["results"]

    shown = [
        (await client.get(path)).json()["metadata"]
        for path in (
            f"/v1/notes/{note}",
            f"/v1/procedures/{procedure}",
            f"/v1/documents/{document['id']}",
            f"/v1/documents/{sent.json()['id']}",
        )
    ]
    versions = (await client.get(f"/v1/notes/{note}/versions")).json()["versions"]
    history = (await client.get("/v1/sessions/s/messages")).json()["messages"]
    profile = (await client.get("/v1/profile", params={"user": "ann"})).json()["document"]["own"]

    assert all(same(item, metadata) for item in shown)
    assert same(versions[0]["metadata"], metadata)
    assert same(history[0]["metadata"], metadata)
    known = {name: value for name, value in metadata.items() if value is not None}
    assert same(profile, {"kept": True} | known)
    assert {hit["tier"] for hit in found} >= {"notes", "sessions", "documents"}
    assert all(same(hit["metadata"], metadata) for hit in found if hit["tier"] in {"notes", "sessions"})
    assert all(hit["metadata"].items() >= metadata.items() for hit in found if hit["tier"] == "documents")


@pytest.mark.parametrize("metadata", METADATA, ids=lambda metadata: ascii(metadata)[:40])
async def test_metadata_of_an_archived_note_come_back_as_they_were_sent(
    application: Application, metadata: dict[str, Any]
) -> None:
    client = application.client()
    admin = application.admin()
    body = {"content": f"{DECOMPOSED} has a boat", "metadata": metadata, "workspace": "loft"}
    id_ = (await client.post("/v1/notes", json=body)).json()["id"]
    await run_job(application, "sweep", in_days(30), workspace="loft")
    await run_job(application, "archival", in_days(300), workspace="loft", is_forced=True)

    restored = await admin.post("/v1/archive/restore", json={"ids": [id_]})
    note = (await client.get(f"/v1/notes/{id_}")).json()

    assert restored.json()["restored"] == 1
    assert (same(note["metadata"], metadata), note["content"]) == (True, body["content"])


@pytest.mark.parametrize("text", [DECOMPOSED, ANGSTROM, HANGUL])
async def test_texts_titles_and_names_come_back_as_they_were_sent(application: Application, text: str) -> None:
    client = application.client()
    note = (await client.post("/v1/notes", json={"content": text, "source": text})).json()["id"]
    message = {"content": text, "name": text, "ref": text}
    await client.post("/v1/turns", json={"session": "s", "messages": [message]})
    body = {"trigger": text, "action": text}
    procedure = (await client.post("/v1/procedures", json=body)).json()["id"]
    await client.post(f"/v1/procedures/{procedure}/outcomes", json={"succeeded": True, "comment": text})
    document = {"content": text, "key": text, "title": f"{text}  of  two", "source": text}
    put = (await client.post("/v1/documents", json=document)).json()
    stated = {"workspace": "graph", "entities": [{"name": text, "aliases": [f"{text} 2"]}]}
    await client.post("/v1/graph/entities", json=stated)
    profile = {"agent": "a", "prompt_suffix": text}

    one = (await client.get(f"/v1/notes/{note}")).json()
    said = (await client.get("/v1/sessions/s/messages")).json()["messages"][0]
    kept = (await client.get(f"/v1/procedures/{procedure}")).json()
    outcome = (await client.get(f"/v1/procedures/{procedure}/outcomes")).json()["outcomes"][0]
    read = (await client.get(f"/v1/documents/{put['id']}")).json()
    listed = (await client.get("/v1/documents", params={"key": text})).json()["documents"]
    asked = {"name": text, "workspace": "graph"}
    entity = (await client.get("/v1/graph/neighbours", params=asked)).json()["entity"]

    assert (one["content"], one["source"]) == (text, text)
    assert (said["content"], said["name"], said["ref"]) == (text, text, text)
    assert (kept["trigger"], kept["action"], outcome["comment"]) == (text, text, text)
    assert put["key"] == text
    assert {name: read[name] for name in document} == document
    assert [item["key"] for item in listed] == [text]
    assert (entity["name"], entity["aliases"]) == (text, [f"{text} 2"])
    assert (await client.put("/v1/memory-profile", json=profile)).json()["prompt_suffix"] == text


async def test_a_file_of_a_decomposed_name_keeps_it(application: Application) -> None:
    client = application.client()
    name = f"{DECOMPOSED}.md"

    id_ = (await client.post("/v1/documents/upload", files={"file": (name, b"# The log")})).json()["id"]

    assert (await client.get(f"/v1/documents/{id_}")).json()["source"] == name


async def test_the_same_in_another_composition_is_the_same(application: Application) -> None:
    client = application.client()
    ids = []
    for text in (DECOMPOSED, COMPOSED):
        note = (await client.post("/v1/notes", json={"content": text})).json()["id"]
        message = {"content": text, "name": text, "ref": text}
        turn = (await client.post("/v1/turns", json={"session": "s", "messages": [message]})).json()
        body = {"trigger": text, "action": text}
        procedure = (await client.post("/v1/procedures", json=body)).json()["id"]
        document = (await client.post("/v1/documents", json={"content": "one", "key": text})).json()["id"]
        entities = (await client.post("/v1/graph/entities", json={"entities": [{"name": text}]})).json()["results"]
        ids.append((note, turn["messages"][0]["id"], procedure, document, entities[0]["id"]))

    assert ids[0] == ids[1]


@pytest.mark.parametrize(("stored", "asked"), [(DECOMPOSED, COMPOSED), (COMPOSED, DECOMPOSED)])
async def test_what_was_sent_in_one_composition_is_found_in_another(
    application: Application, stored: str, asked: str
) -> None:
    client = application.client()
    note = {"content": f"{stored} has a menu at nine", "source": stored, "user": stored, "tags": [stored]}
    await client.post("/v1/notes", json=note)
    await client.post("/v1/documents", json={"content": f"# The menu\nof {stored}", "key": "menu", "source": stored})
    await application.indexed()

    by_words = (await client.post("/v1/search", json={"query": asked, "user": asked, "tags": [asked]})).json()
    by_source = [
        (await client.post("/v1/search", json={"query": "menu", "user": asked, "filters": filters})).json()["results"]
        for filters in ({"source": asked}, {"source": {"in": ["another", asked]}})
    ]

    assert [hit["content"] for hit in by_words["results"]] == [note["content"]]
    assert [{hit["tier"] for hit in hits} for hits in by_source] == [{"notes", "documents"}] * 2


async def test_rules_read_a_decomposed_text_as_a_composed_one(application: Application) -> None:
    client = application.client()
    drawn = []
    for user, form in (("ann", "NFC"), ("bob", "NFD")):
        text = unicodedata.normalize(form, "My name is Zoë Böhm. I work at Café Müller. We decided to open on Sundays.")
        body = {"session": user, "user": user, "messages": [{"content": text}]}
        answer = (await client.post("/v1/turns", json=body)).json()
        profile = (await client.get("/v1/profile", params={"user": user})).json()["document"]
        drawn.append((len(answer["notes"]), profile))

    assert drawn[0] == drawn[1]
    assert drawn[0][1]["name"] == "Zoë Böhm"


async def test_what_no_table_can_hold_is_refused_by_name(application: Application) -> None:
    client = application.client()
    for bad in ("a\u0000b", "a\ud800b"):
        for metadata, field in (({"k": [bad]}, "metadata.k.0"), ({bad: 1}, "metadata: key")):
            body = json.dumps({"content": "one", "metadata": metadata})
            refused = await client.post("/v1/notes", content=body, headers={"Content-Type": "application/json"})
            assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field)
