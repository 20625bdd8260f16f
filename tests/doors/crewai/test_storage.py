from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord

from lamina.client import Client
from lamina.integrations.crewai import LaminaStorage

MONDAY = datetime(2026, 11, 30, 12)  # noqa: DTZ001 - CrewAI's own have no zone


@pytest.fixture
def storage(door: Any) -> Iterator[LaminaStorage]:
    storage = LaminaStorage({"workspace": door.workspace})
    yield storage
    storage.close()


def record(content: str, *vector: float, **fields: Any) -> MemoryRecord:
    return MemoryRecord(content=content, embedding=list(vector) or None, **fields)


def test_it_is_a_backend_of_crewai(storage: LaminaStorage) -> None:
    assert isinstance(storage, StorageBackend)


def test_a_record_comes_back_as_it_was_saved(storage: LaminaStorage) -> None:
    saved = record(
        "  Ann likes tea 👩‍🌾 ", 0.5, -0.25, scope="/users/ann", categories=["a", "b"], metadata={"n": [1, None]},
        importance=0.75, source="ann", private=True,
    )  # fmt: skip
    storage.save([saved])

    found = storage.get_record(saved.id)

    assert found == saved
    assert storage.get_record("another") is None


@pytest.mark.parametrize(
    "content", ["สวัสดีชาวโลก " * 2_000, "日本語" * 30_000, "a\0b \ud83d", " \u200b ", " " * 100_000, "tea\\u0000"]
)
def test_a_record_of_any_text_comes_back_with_its_vector(storage: LaminaStorage, content: str) -> None:
    saved = record(content, *[0.5] * 3072, metadata={"half": "\ud83d", "n": 1}, created_at=MONDAY)
    storage.save([saved])

    assert storage.get_record(saved.id) == saved


@pytest.mark.parametrize("dimension", [3, 1536, 3072])
async def test_the_nearest_vectors_are_found_whatever_their_dimension(storage: LaminaStorage, dimension: int) -> None:
    rest = [0.0] * (dimension - 2)
    await storage.asave([record("near", 1.0, 0.1, *rest), record("far", 0.0, 1.0, *rest), record("none")])

    found = await storage.asearch([1.0, 0.0, *rest], limit=2)

    assert [item.content for item, _ in found] == ["near", "far"]
    assert found[0][1] == pytest.approx(0.995, abs=0.001)
    assert [item.content for item, _ in storage.search([1.0, 0.0, *rest], min_score=0.5)] == ["near"]


def test_vectors_of_another_dimension_are_left_out_and_told(
    storage: LaminaStorage, caplog: pytest.LogCaptureFixture
) -> None:
    storage.save([record("old", 1.0, 0.0), record("new", 1.0, 0.0, 0.0)])

    assert [item.content for item, _ in storage.search([1.0, 0.0, 0.0])] == ["new"]
    assert "1 records have vectors of another dimension than 3" in caplog.text
    assert storage.count() == 2


def test_scopes_are_paths_whose_siblings_are_apart(storage: LaminaStorage) -> None:
    for scope in ("/", "/a", "/a/b", "/a/b/c", "/ab", "/a%"):
        storage.save([record(f"in {scope}", 1.0, scope=scope, categories=[f"of {scope}"])])

    assert storage.count() == 6
    assert storage.count("/a") == 3
    assert {item.content for item, _ in storage.search([1.0], scope_prefix="/a/b")} == {"in /a/b", "in /a/b/c"}
    assert storage.list_scopes() == ["/a", "/a%", "/ab"]
    assert storage.list_scopes("/a") == ["/a/b"]
    assert storage.list_categories("/a/b") == {"of /a/b": 1, "of /a/b/c": 1}
    info = storage.get_scope_info("/a")
    assert (info.record_count, info.child_scopes) == (3, ["/a/b"])
    storage.reset("/a")
    assert {item.scope for item in storage.list_records()} == {"/", "/ab", "/a%"}


async def test_what_meets_every_condition_is_deleted(storage: LaminaStorage) -> None:
    days = [record(f"day {n}", 1.0, categories=["odd" if n % 2 else "even"], metadata={"n": n % 3},
                   created_at=MONDAY + timedelta(days=n)) for n in range(6)]  # fmt: skip
    storage.save(days)

    assert [item.content for item in storage.list_records(limit=2, offset=1)] == ["day 4", "day 3"]
    assert [item.content for item, _ in storage.search([1.0], categories=["odd"], metadata_filter={"n": 0})] == [
        "day 3"
    ]
    assert await storage.adelete(older_than=MONDAY + timedelta(days=2), categories=["odd"]) == 1
    assert storage.delete(record_ids=[days[5].id, "another"]) == 1
    assert storage.delete(metadata_filter={"n": 0}) == 2
    assert sorted(item.content for item in storage.list_records()) == ["day 2", "day 4"]


def test_an_update_replaces_a_record(storage: LaminaStorage, door: Any) -> None:
    first = record("tea", 1.0)
    storage.save([first])
    storage.update(first.model_copy(update={"content": "coffee", "scope": "/drinks"}))

    assert [item.content for item in storage.list_records()] == ["coffee"]
    assert storage.count("/drinks") == 1
    with Client(scope={"workspace": door.workspace}) as client:
        (document,) = client.documents()["documents"]
        assert client.document(document["id"])["content"] == "coffee"


def test_a_memory_is_kept_by_the_example(printed: Callable[[str], str]) -> None:
    assert printed("crewai_memory.py") == "The spare key hangs behind the barometer ['/house']\n"
