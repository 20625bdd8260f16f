"""Field case 67: a value comes back with the type that it was sent with."""

import json
from typing import Any

import pytest

from tests.support.application import Application

CHANGES: list[tuple[Any, Any]] = [
    (1, True),
    (False, 0),
    (0, False),
    (1, 1.0),
    (1.0, 1),
    (True, 1.0),
    ("1", 1),
    (-1, -1.0),
    ({"deep": {"beta": 1}}, {"deep": {"beta": True}}),
    ({"flags": [{"on": 0}]}, {"flags": [{"on": False}]}),
]


@pytest.mark.parametrize(("before", "after"), CHANGES, ids=repr)
async def test_a_profile_takes_a_value_of_another_type_that_python_holds_for_equal(
    application: Application, before: Any, after: Any
) -> None:
    client = application.client()
    await client.patch("/v1/profile", json={"user": "ann", "patch": {"beta": before, "other": 1}})

    patched = (await client.patch("/v1/profile", json={"user": "ann", "patch": {"beta": after}})).json()
    read = (await client.get("/v1/profile", params={"user": "ann"})).json()

    expected = [*before["flags"], *after["flags"]] if isinstance(before, dict) and "flags" in before else None
    wanted = {"flags": expected} if expected else after
    assert json.dumps(patched["document"]["beta"]) == json.dumps(wanted)
    assert json.dumps(read["document"]["beta"]) == json.dumps(wanted)
    assert (patched["version"], read["version"]) == (2, 2)


async def test_a_list_of_a_profile_holds_values_of_each_type(application: Application) -> None:
    client = application.client()
    await client.patch("/v1/profile", json={"user": "ann", "patch": {"seen": [1, 0]}})

    await client.patch("/v1/profile", json={"user": "ann", "patch": {"seen": [True, 1.0, "1", False, None]}})
    read = (await client.get("/v1/profile", params={"user": "ann"})).json()

    assert json.dumps(read["document"]["seen"]) == '[1, 0, true, 1.0, "1", false, null]'


async def test_a_patch_of_the_same_values_writes_no_version(application: Application) -> None:
    client = application.client()
    patch = {"user": "ann", "patch": {"b": [1, {"y": 2.5, "x": True}], "a": 1.0}}
    await client.patch("/v1/profile", json=patch)

    assert (await client.patch("/v1/profile", json=patch)).json()["version"] == 1


@pytest.mark.parametrize(("before", "after"), CHANGES, ids=repr)
async def test_metadata_of_a_note_and_of_a_procedure_change_their_types(
    application: Application, before: Any, after: Any
) -> None:
    client = application.client()
    note = (await client.post("/v1/notes", json={"content": "the lamp is lit", "metadata": {"v": before}})).json()["id"]
    body = {"trigger": "night falls", "action": "light the lamp", "metadata": {"v": before}}
    procedure = (await client.post("/v1/procedures", json=body)).json()["id"]

    for path in (f"/v1/notes/{note}", f"/v1/procedures/{procedure}"):
        assert json.dumps((await client.get(path)).json()["metadata"]) == json.dumps({"v": before})
        changed = await client.patch(path, json={"metadata": {"v": after}})
        assert json.dumps(changed.json()["metadata"]) == json.dumps({"v": after})
        assert json.dumps((await client.get(path)).json()["metadata"]) == json.dumps({"v": after})


@pytest.mark.parametrize(("before", "after"), CHANGES, ids=repr)
async def test_a_document_of_other_metadata_replaces_the_old_one(
    application: Application, before: Any, after: Any
) -> None:
    client = application.client()
    body = {"key": "log", "content": "The log of the lamp.", "metadata": {"v": before}}
    id_ = (await client.post("/v1/documents", json=body)).json()["id"]

    again = (await client.post("/v1/documents", json=body | {"metadata": {"v": after}})).json()
    read = (await client.get(f"/v1/documents/{id_}")).json()

    assert (again["status"], json.dumps(read["metadata"])) == ("replaced", json.dumps({"v": after}))


async def test_a_note_of_the_same_words_and_other_metadata_is_not_merged(application: Application) -> None:
    client = application.client()
    first, second = "the spare key hangs behind the barometer", "the spare key hangs behind the barometer."
    one = (await client.post("/v1/notes", json={"content": first, "metadata": {"sure": 1}})).json()

    other = (await client.post("/v1/notes", json={"content": second, "metadata": {"sure": True}})).json()

    assert other["id"] != one["id"]
    assert (await client.get(f"/v1/notes/{other['id']}")).json()["metadata"]["sure"] is True


async def test_a_key_stands_for_one_type_only(application: Application) -> None:
    client, headers = application.client(), {"Idempotency-Key": "k"}
    body = {"content": "the lamp is lit", "metadata": {"v": 1}}
    await client.post("/v1/notes", json=body, headers=headers)

    other = await client.post("/v1/notes", json=body | {"metadata": {"v": True}}, headers=headers)

    assert (other.status_code, "was used for another request" in other.json()["detail"]) == (409, True)
