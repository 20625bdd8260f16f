"""What is put away can be found again, and what is deleted is gone from the files too."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from fsspec.core import url_to_fs

from deployments.api import build_api
from lamina.core.principals import KeyRole
from lamina.stores.postgres import archive_transfer
from lamina.wiring.archives import build_archived_notes
from lamina.wiring.stores import utc_now
from tests.support.application import Application
from tests.support.jobs import in_days, run_job

ALICE = "Alice Fairweather keeps the spare key of the boathouse under the third stone"
BOB = "Bob Merriweather paints the lighthouse every other autumn"
UNKNOWN = "01890000-0000-7000-8000-000000000000"
# As in test_archive_files.
S3_URL = os.environ.get("LAMINA_TEST_S3_URL")


@pytest.fixture(params=["folder", *(["s3"] if S3_URL else [])])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder, and a path in the bucket that the environment names."""
    return str(tmp_path / "cold") if request.param == "folder" else f"{S3_URL}/{uuid4().hex}"


@pytest.fixture
async def app(application: Application, url: str) -> AsyncIterator[Application]:
    """The application with an archive of its own."""
    chosen = application.settings.jobs.archival.model_copy(update={"url": url})
    wanted = application.settings.jobs.model_copy(update={"archival": chosen})
    settings = application.settings.model_copy(update={"jobs": wanted})
    services = replace(application.services, archives=build_archived_notes(settings, application.pool))
    mine = replace(application, settings=settings, services=services, api=build_api(services), clients=[])
    yield mine
    await mine.close_clients()


async def add(app: Application, *contents: str) -> list[str]:
    answers = [await app.client().post("/v1/notes", json={"content": content}) for content in contents]
    return [answer.json()["id"] for answer in answers]


async def archive(app: Application) -> None:
    await run_job(app, "sweep", in_days(40))
    await run_job(app, "archival", in_days(200), is_forced=True)
    await app.indexed()


def bytes_in(url: str) -> bytes:
    store, root = url_to_fs(url)
    store.invalidate_cache()
    return b"".join(store.cat_file(path) for path in store.find(root))


async def found(app: Application, query: str) -> list[str]:
    answer = await app.client().post("/v1/search", json={"query": query, "tiers": ["notes"]})
    return [hit["id"] for hit in answer.json()["results"]]


async def test_an_archived_note_is_found_by_nothing_and_a_restored_one_by_its_meaning_again(app: Application) -> None:
    # given
    alice, bob = await add(app, ALICE, BOB)
    client = app.admin()
    await app.indexed()
    assert (await found(app, ALICE))[0] == alice
    await app.counted()

    # when
    await archive(app)

    # then
    assert await found(app, ALICE) == []
    assert (await client.get(f"/v1/notes/{alice}")).status_code == 404
    assert (await client.get("/v1/notes")).json()["notes"] == []
    listed = (await client.get("/v1/archive/notes")).json()["notes"]
    assert [note["id"] for note in listed] == sorted([alice, bob])

    # when
    restored = await client.post("/v1/archive/restore", json={"ids": [alice, UNKNOWN]})
    await app.indexed()

    # then
    assert restored.status_code == 200
    assert restored.json() == {
        "results": [
            {"id": alice, "status": "restored", "lacks_vectors": False, "error": None},
            {"id": UNKNOWN, "status": "not_archived", "lacks_vectors": False, "error": None},
        ],
        "restored": 1,
        "without_vectors": 0,
    }
    assert await found(app, ALICE) == [alice]
    shown = (await client.get(f"/v1/notes/{alice}")).json()
    assert (shown["content"], shown["temperature"], shown["hits"]) == (ALICE, "cold", 2)
    assert [note["id"] for note in (await client.get("/v1/archive/notes")).json()["notes"]] == [bob]


async def test_every_projection_agrees_with_postgres_after_an_archival_and_a_restore(app: Application) -> None:
    ids = await add(app, ALICE, BOB, "Alice Fairweather keeps the spare oars of the boathouse")
    client = app.admin()
    await archive(app)
    audits = [(await client.post("/v1/audit", json={})).json()]
    await client.post("/v1/archive/restore", json={"ids": ids})
    await app.indexed()
    audits.append((await client.post("/v1/audit", json={})).json())

    assert [audit["consistent"] for audit in audits] == [True, True], audits


async def test_the_same_text_written_again_is_a_new_note(app: Application) -> None:
    (old,) = await add(app, ALICE)
    await archive(app)
    (new,) = await add(app, ALICE)

    restored = await app.admin().post("/v1/archive/restore", json={"ids": [old]})

    assert new != old
    assert restored.json()["results"][0]["status"] == "existed"


async def test_a_deleted_archived_note_is_nowhere_any_more(app: Application, url: str) -> None:
    # given
    alice, bob = await add(app, ALICE, BOB)
    client = app.client()
    await archive(app)
    assert bytes_in(url)

    # when
    deleted = await client.delete(f"/v1/archive/notes/{alice}")
    await app.indexed()

    # then
    assert deleted.status_code == 204
    assert [note["id"] for note in (await client.get("/v1/archive/notes")).json()["notes"]] == [bob]
    assert (await client.delete(f"/v1/archive/notes/{alice}")).status_code == 404
    restored = await app.admin().post("/v1/archive/restore", json={"ids": [alice]})
    assert restored.json()["results"][0]["status"] == "not_archived"
    kept = bytes_in(url)
    assert b"boathouse" not in kept
    assert b"Fairweather" not in kept
    answer = await client.post("/v1/search", json={"query": "Alice Fairweather"})
    assert "Fairweather" not in str(answer.json()["results"])
    audit = (await app.admin().post("/v1/audit", json={})).json()
    assert audit["consistent"], audit


async def test_what_is_erased_of_a_user_is_in_no_file_and_the_others_come_back(app: Application, url: str) -> None:
    client, ann = app.admin(), f"ann {uuid4()}"
    (bob,) = await add(app, BOB)
    (other,) = await add(app, "Carla Merriweather repairs the nets of the harbour")
    await client.post("/v1/notes", json={"content": ALICE, "user": ann})
    await archive(app)
    before = bytes_in(url)

    # As an erasure of the user does, whose service has the archive of the shared application.
    erased = await app.services.archives.erase_user(app.tenant, ann, utc_now())
    restored = await client.post("/v1/archive/restore", json={"ids": [bob, other]})
    await app.indexed()

    kept = bytes_in(url)
    assert ann.encode() in before
    assert erased == 1
    assert [word for word in (ann.encode(), b"Fairweather", b"boathouse") if word in kept] == []
    assert restored.json()["restored"] == 2
    assert (await found(app, BOB))[0] == bob


@pytest.mark.parametrize(
    ("body", "field"),
    [({"ids": []}, "ids"), ({"ids": [UNKNOWN] * 1001}, "ids"), ({"ids": ["x"]}, "ids.0"), ({}, "ids")],
    ids=["none", "too many", "no id", "missing"],
)
async def test_what_cannot_be_restored_is_refused(app: Application, body: dict[str, Any], field: str) -> None:
    answer = await app.admin().post("/v1/archive/restore", json=body)

    assert answer.status_code == 422
    assert field in {error["field"] for error in answer.json()["errors"]}


async def test_only_an_admin_restores_and_no_reader_deletes(app: Application) -> None:
    (alice,) = await add(app, ALICE)
    await archive(app)
    reader = app.client(app.new_key(app.tenant, KeyRole.READER))

    statuses = [
        (await app.client().post("/v1/archive/restore", json={"ids": [alice]})).status_code,
        (await reader.delete(f"/v1/archive/notes/{alice}")).status_code,
        (await reader.get("/v1/archive/notes")).status_code,
        (await reader.get("/v1/archive/notes", params={"workspace": "other"})).json()["notes"],
    ]

    assert statuses == [403, 403, 200, []]


async def test_pages_of_the_archive_follow_each_other(app: Application) -> None:
    ids = await add(app, ALICE, BOB, "a third thing to put away")
    await archive(app)

    pages = [
        (await app.client().get("/v1/archive/notes", params={"limit": 2, "offset": offset})).json()["notes"]
        for offset in (0, 2)
    ]

    assert [note["id"] for page in pages for note in page] == sorted(ids)


async def test_what_was_drawn_from_a_message_that_was_corrected_stays_in_the_archive(app: Application) -> None:
    client, admin = app.client(), app.admin()
    texts = ["We decided to ship on Fridays. I live in Paris.", "We decided to meet on Mondays."]
    again = ["We decided to meet on Mondays.", "As I said: We decided to meet on Mondays. Good."]
    said = []
    for session, contents in ("s 1", texts), ("s 2", again):
        messages = [{"role": "user", "name": "Ann", "content": content} for content in contents]
        turn = (await client.post("/v1/turns", json={"session": session, "user": session, "messages": messages})).json()
        said.append([message["id"] for message in turn["messages"]])
    notes = {
        (user, note["content"]): note["id"]
        for user in ("s 1", "s 2")
        for note in (await client.get("/v1/notes", params={"user": user})).json()["notes"]
    }
    await app.indexed()
    await archive(app)
    before = (await client.get("/v1/facts", params={"subject": "Ann", "user": "s 1"})).json()["facts"]

    for id_ in (*said[0], said[1][0]):
        changed = await client.patch(f"/v1/memories/{id_}", json={"content": f"We decided to ship on Tuesdays, {id_}."})
        assert changed.is_success, changed.text
    answer = await admin.post("/v1/archive/restore", json={"ids": list(notes.values())})
    await app.indexed()

    statuses = {item["id"]: item["status"] for item in answer.json()["results"]}
    outcomes = {(user, text.split()[-1]): statuses[id_] for (user, text), id_ in notes.items()}
    assert outcomes == {
        ("s 1", "Fridays."): "corrected",
        ("s 1", "Paris."): "corrected",
        ("s 1", "Mondays."): "corrected",
        ("s 2", "Mondays."): "restored",
    }
    assert [fact["object"] for fact in before] == ["Paris"]
    assert (await client.get("/v1/facts", params={"subject": "Ann", "user": "s 1"})).json().get("facts", []) == []
    contents = [note["content"] for note in (await client.get("/v1/notes", params={"user": "s 1"})).json()["notes"]]
    assert not [content for content in contents if "Tuesdays" not in content]
    source = (await client.get(f"/v1/notes/{notes['s 2', 'We decided to meet on Mondays.']}")).json()["source"]
    assert source == f"message:{said[1][1]}"


@pytest.mark.parametrize("is_old", [False, True], ids=["file", "file of an earlier release"])
async def test_a_note_comes_back_with_the_speaker_of_its_message(
    app: Application, is_old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = {"name": "Ben", "content": "I live in Oslo."}
    await app.client().post("/v1/turns", json={"session": "s-1", "messages": [message]})
    [note] = (await app.client().get("/v1/notes")).json()["notes"]
    await app.indexed()
    if is_old:
        whole = archive_transfer._note

        def without_speakers(*rows: Any, **parts: Any) -> Any:
            note = whole(*rows, **parts)
            return replace(note, extra={name: value for name, value in note.extra.items() if name != "speakers"})

        monkeypatch.setattr(archive_transfer, "_note", without_speakers)
    await archive(app)
    assert (await app.client().get("/v1/notes")).json()["notes"] == []

    restored = await app.admin().post("/v1/archive/restore", json={"ids": [note["id"]]})
    [back] = (await app.client().get("/v1/notes")).json()["notes"]

    assert [result["status"] for result in restored.json()["results"]] == ["restored"]
    assert (note["name"], back["name"]) == ("Ben", "Ben")


async def test_a_corrected_note_comes_back_for_its_own_speakers_alone(app: Application) -> None:
    client, admin = app.client(), app.admin()
    said = [
        ("Ben", "We decided to ship on Fridays. We decided to meet on Mondays."),
        (
            "Carl",
            'Ben wrote "We decided to ship on Fridays." and "We decided to meet on Mondays." last year, as I recall.',
        ),
        ("Dan", "We decided to meet on Mondays."),
    ]
    messages = [{"name": name, "content": content} for name, content in said]
    turn = (await client.post("/v1/turns", json={"session": "s-1", "messages": messages})).json()
    notes = {note["content"]: note for note in (await client.get("/v1/notes")).json()["notes"]}
    shipped, met = notes["We decided to ship on Fridays."], notes["We decided to meet on Mondays."]
    assert (shipped["name"], met["name"]) == ("Ben", "Ben, Dan")
    await app.indexed()
    await archive(app)

    changed = await client.patch(f"/v1/memories/{turn['messages'][0]['id']}", json={"content": "We decided nothing."})
    answer = await admin.post("/v1/archive/restore", json={"ids": [shipped["id"], met["id"]]})

    assert changed.is_success
    statuses = {item["id"]: item["status"] for item in answer.json()["results"]}
    assert statuses == {shipped["id"]: "corrected", met["id"]: "restored"}
    back = (await client.get(f"/v1/notes/{met['id']}")).json()
    assert (back["name"], back["source"]) == ("Dan", f"message:{turn['messages'][2]['id']}")


async def test_a_correction_marks_no_archived_note_of_others_that_names_the_message_as_its_source(
    app: Application,
) -> None:
    client = app.client()
    turn = {"user": "ann", "session": "s-1", "messages": [{"content": "I live in Oslo."}]}
    message = (await client.post("/v1/turns", json=turn)).json()["messages"][0]["id"]
    cited = {"content": "The pier is long.", "source": f"message:{message}", "session": "s-1"}
    kept = [
        (await client.post("/v1/notes", json={**cited, **whose})).json()["id"]
        for whose in ({}, {"user": "bob"}, {"user": "ann", "workspace": "other"})
    ]
    await app.indexed()
    await archive(app)

    changed = await client.patch(f"/v1/memories/{message}", json={"content": "I live in Rome."})
    restored = await app.admin().post("/v1/archive/restore", json={"ids": kept})

    assert changed.is_success, changed.text
    assert [item["status"] for item in restored.json()["results"]] == ["restored"] * 3


async def test_a_fact_keeps_who_stated_it_once_the_note_of_the_message_is_archived(app: Application) -> None:
    client = app.client()
    messages = [{"name": "Ben", "content": "We decided that Dora works at Initech."}]
    await client.post("/v1/turns", json={"session": "s-1", "messages": messages})
    await app.indexed()
    await archive(app)
    await app.indexed()

    found = await client.post("/v1/search", json={"query": "Where does Dora work?", "tiers": ["graph"]})

    assert (await client.get("/v1/notes")).json()["notes"] == []
    facts = [hit for hit in found.json()["results"] if hit["kind"] == "fact"]
    assert [(fact["content"], fact["name"]) for fact in facts] == [("Dora works_at Initech", "Ben")]
