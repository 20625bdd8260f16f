"""Qdrant Edge on disk: who may open an index, what survives, what is refused, how builds lie beside it."""

import asyncio
import json
import shutil
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from qdrant_edge import UpdateOperation

from deployments.searcher import SearcherDeployment
from lamina.core.memories import Note
from lamina.core.ports import Change
from lamina.core.scope import Scope
from lamina.errors import Misconfigured
from lamina.models.hashing import HashingModel
from lamina.projections.locations import index_path
from lamina.stores.index.edge.builds import EmbeddedHybridIndex
from lamina.stores.index.edge.filters import INDEXES
from lamina.stores.index.edge.shard import QdrantEdgeIndex
from lamina.stores.index.ports import ChunkHit
from lamina.stores.postgres.generations import claim_generation
from tests.support.application import index_of, running, settings_for
from tests.support.indexes import ACME, ONE, TWO, asked, in_another_process, record

OPEN_IT = """
import sys
from pathlib import Path
from lamina.errors import Misconfigured
from lamina.stores.index.edge.shard import QdrantEdgeIndex
try:
    QdrantEdgeIndex(Path(sys.argv[1]), dimension=64)
except Misconfigured as error:
    print(error)
    sys.exit(3)
"""

WRITE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from lamina.core.ports import Change
from tests.support.indexes import ONE, record
from lamina.stores.index.edge.shard import QdrantEdgeIndex
index = QdrantEdgeIndex(Path(sys.argv[1]), dimension=64)
index.apply([Change(ONE, record("green tea"))])
os.kill(os.getpid(), signal.SIGKILL)
"""


def found(index: QdrantEdgeIndex, text: str, scope: Scope = ACME) -> dict[str, list[tuple[UUID, int]]]:
    """The (memory, chunk) places of both rankings."""
    query = asked(text, scope)
    return {
        "words": [item.place for item in index.by_words(query)],
        "vectors": [item.place for item in index.by_vector(query)],
    }


def indexed_fields(index: QdrantEdgeIndex) -> set[str]:
    """The fields that the shard has an index of."""
    return set(index._shard.info().payload_schema)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "edge" / "notes"


@pytest.fixture
def index(path: Path) -> Iterator[QdrantEdgeIndex]:
    opened = QdrantEdgeIndex(path, dimension=64)
    yield opened
    opened.close()


def test_after_it_was_closed_and_opened_again_everything_is_there(path: Path) -> None:
    first = QdrantEdgeIndex(path, dimension=64)
    first.apply([Change(ONE, record("green tea", "and milk")), Change(TWO, record("black tea", user="ann"))])
    before = (first.count(), found(first, "tea"), found(first, "tea", Scope("acme", user="bob")))
    first.close()

    second = QdrantEdgeIndex(path, dimension=64)
    after = (second.count(), found(second, "tea"), found(second, "tea", Scope("acme", user="bob")))
    second.apply([Change(ONE, None)])
    left = second.count()
    second.close()

    assert after == before
    assert before[0] == 3
    assert left == 1


def test_a_second_opener_in_the_same_process_is_refused_and_the_first_goes_on(
    index: QdrantEdgeIndex, path: Path
) -> None:
    with pytest.raises(Misconfigured) as refused:
        QdrantEdgeIndex(path, dimension=64)

    assert str(path) in refused.value.what
    assert "stop" in refused.value.remedy
    index.apply([Change(ONE, record("green tea"))])
    assert found(index, "green tea")["words"] == [(ONE, 0)]


async def test_a_second_opener_in_another_process_is_refused_with_a_remedy(index: QdrantEdgeIndex, path: Path) -> None:
    index.apply([Change(ONE, record("green tea"))])

    other = await asyncio.to_thread(in_another_process, OPEN_IT, path)

    assert other.returncode == 3, other.stderr
    assert str(path) in other.stdout
    assert "stop the process" in other.stdout
    assert index.count() == 1


async def test_another_process_may_open_it_after_it_was_closed(path: Path) -> None:
    QdrantEdgeIndex(path, dimension=64).close()

    other = await asyncio.to_thread(in_another_process, OPEN_IT, path)

    assert other.returncode == 0, other.stderr


async def test_what_was_applied_is_there_after_its_process_was_killed(path: Path) -> None:
    killed = await asyncio.to_thread(in_another_process, WRITE_AND_DIE, path)

    index = QdrantEdgeIndex(path, dimension=64)
    places = found(index, "green tea")
    index.close()

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert places == {"words": [(ONE, 0)], "vectors": [(ONE, 0)]}


@pytest.mark.parametrize(("made", "opened"), [(64, 32), (64, 384), (64, None), (None, 64)])
def test_an_index_made_for_other_dimensions_is_refused_and_stays(
    path: Path, made: int | None, opened: int | None
) -> None:
    QdrantEdgeIndex(path, dimension=made).close()

    with pytest.raises(Misconfigured, match=rf"{made}.*{opened}") as refused:
        QdrantEdgeIndex(path, dimension=opened)

    assert "lamina reindex" in refused.value.remedy
    QdrantEdgeIndex(path, dimension=made).close()


def test_a_path_that_cannot_be_an_index_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")

    with pytest.raises(Misconfigured):
        QdrantEdgeIndex(file / "notes", dimension=64)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 0}'])
def test_an_index_whose_description_is_broken_is_refused(path: Path, text: str) -> None:
    QdrantEdgeIndex(path, dimension=64).close()
    (path / "lamina.json").write_text(text)

    with pytest.raises(Misconfigured):
        QdrantEdgeIndex(path, dimension=64)


def test_an_index_without_its_description_is_refused_with_a_remedy(path: Path) -> None:
    QdrantEdgeIndex(path, dimension=64).close()
    (path / "lamina.json").unlink()

    with pytest.raises(Misconfigured) as refused:
        QdrantEdgeIndex(path, dimension=64)

    assert "lamina reindex" in refused.value.remedy


def marked(path: Path, **changes: object) -> None:
    """Make the index say something else of itself."""
    described = json.loads((path / "lamina.json").read_text())
    (path / "lamina.json").write_text(json.dumps({**described, **changes}))


def test_an_index_of_an_earlier_format_is_set_aside_and_a_new_one_begun(path: Path) -> None:
    earlier = QdrantEdgeIndex(path, dimension=64)
    earlier.apply([Change(ONE, record("green tea"))])
    earlier.close()
    marked(path, format=1)

    index = QdrantEdgeIndex(path, dimension=64)

    assert index.is_new
    assert index.count() == 0
    index.apply([Change(TWO, record("black tea"))])
    index.close()
    marked(path.with_name("notes.format-1"), format=json.loads((path / "lamina.json").read_text())["format"])
    again, kept = QdrantEdgeIndex(path, dimension=64), QdrantEdgeIndex(path.with_name("notes.format-1"), dimension=64)
    assert not again.is_new
    assert (found(again, "tea")["words"], found(kept, "tea")["words"]) == ([(TWO, 0)], [(ONE, 0)])
    again.close()
    kept.close()


def test_an_index_of_an_earlier_format_that_a_process_still_has_open_is_refused_and_stays(
    index: QdrantEdgeIndex, path: Path
) -> None:
    marked(path, format=1)

    with pytest.raises(Misconfigured, match="cannot be opened"):
        QdrantEdgeIndex(path, dimension=64)

    index.apply([Change(ONE, record("green tea"))])
    assert found(index, "green tea")["words"] == [(ONE, 0)]


@pytest.mark.parametrize("changes", [{"format": 99}, {"format": 1, "dimension": 32}, {"format": "1"}])
def test_an_index_that_differs_by_more_than_an_earlier_format_is_refused_and_stays(
    path: Path, changes: dict[str, object]
) -> None:
    QdrantEdgeIndex(path, dimension=64).close()
    marked(path, **changes)

    with pytest.raises(Misconfigured) as refused:
        QdrantEdgeIndex(path, dimension=64)

    assert "lamina reindex" in refused.value.remedy
    assert [item.name for item in path.parent.iterdir()] == ["notes"]


async def test_after_an_upgrade_the_indexes_are_filled_again_from_postgres(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path)
    async with running(settings, database, HashingModel()) as app:
        await app.services.recorder.put_notes(Scope("acme"), [Note("green tea"), Note("black tea")])
        await app.indexed()
    marked(index_path(settings, "notes"), format=1)
    generation = claim_generation(database, HashingModel().identity)

    restarted = await asyncio.to_thread(SearcherDeployment, "notes", settings, generation)
    restarted._parts.close()
    async with running(settings, database, HashingModel()) as app:
        await app.indexed()
        refilled = index_of(app, "notes", "notes").count()

    assert refilled == 2


def embedded(path: Path) -> EmbeddedHybridIndex[QdrantEdgeIndex]:
    return EmbeddedHybridIndex(path, lambda place: QdrantEdgeIndex(place, dimension=64))


async def test_after_a_switch_the_new_build_is_opened_again_and_the_old_files_are_gone(path: Path) -> None:
    first = embedded(path)
    await first.apply([Change(ONE, record("green tea"))])
    await first.beside(2).apply([Change(TWO, record("black tea"))])
    await first.switch(2)
    left = sorted(item.name for item in path.parent.iterdir())
    first.close()

    second = embedded(path)
    places = found(second.current, "tea")["words"]
    second.close()

    assert left == ["notes.build-2", "notes.current"]
    assert places == [(TWO, 0)]


async def test_a_build_that_a_dead_process_began_goes_on_and_takes_the_place(path: Path) -> None:
    first = embedded(path)
    await first.apply([Change(ONE, record("green tea"))])
    await first.beside(1).apply([Change(ONE, record("green tea"))])
    first.close()

    second = embedded(path)
    before = found(second.current, "tea")["words"]
    await second.beside(1).apply([Change(TWO, record("black tea"))])
    await second.switch(1)
    after = {place[0] for place in found(second.current, "tea")["words"]}
    second.close()

    assert before == [(ONE, 0)]
    assert after == {ONE, TWO}


async def test_what_a_process_left_behind_that_died_after_its_switch_is_removed(path: Path) -> None:
    first = embedded(path)
    await first.apply([Change(ONE, record("green tea"))])
    first.close()
    shutil.copytree(path, path.with_name("notes.build-1"))
    shutil.copytree(path, path.with_name("notes.build-3"))
    path.with_name("notes.current").write_text("3")

    second = embedded(path)
    places = found(second.current, "tea")["words"]
    second.close()

    assert places == [(ONE, 0)]
    assert sorted(item.name for item in path.parent.iterdir()) == ["notes.build-3", "notes.current"]


async def test_a_search_that_runs_during_a_switch_ends_on_the_old_files(path: Path) -> None:
    index = embedded(path)
    await index.apply([Change(ONE, record("green tea"))])
    old, entered, leave = index.current, threading.Event(), threading.Event()

    def slow(current: QdrantEdgeIndex) -> list[ChunkHit]:
        entered.set()
        leave.wait(10)
        return current.by_words(asked("green tea"))

    searching = asyncio.create_task(index._run(slow))
    await asyncio.to_thread(entered.wait, 10)
    await index.switch(1)
    leave.set()

    assert [item.place for item in await searching] == [(ONE, 0)]
    assert index.current is not old
    assert "notes" not in {item.name for item in path.parent.iterdir()}
    index.close()


def test_a_shard_indexes_the_fields_of_filters_when_it_has_grown(path: Path) -> None:
    index = QdrantEdgeIndex(path, dimension=64, chunks_to_index=3)
    index.apply([Change(ONE, record("green tea", "black tea"))])
    before = indexed_fields(index)
    index.apply([Change(TWO, record("white tea", user="ann"))])
    after = indexed_fields(index)
    index.close()
    reopened = QdrantEdgeIndex(path, dimension=64)

    assert before == set()
    assert after == indexed_fields(reopened) == set(INDEXES)
    assert found(reopened, "white tea", replace(ACME, user="ben"))["words"] == [(ONE, 0), (ONE, 1)]
    reopened.close()


def test_equals_are_in_the_order_of_their_places(index: QdrantEdgeIndex) -> None:
    ids = [UUID(int=number) for number in range(1, 9)]
    for id_ in reversed(ids):
        index.apply([Change(id_, record("green tea", "green tea"))])

    places = [(id_, chunk) for id_ in ids for chunk in (0, 1)]
    assert found(index, "tea") == {"words": places, "vectors": places}


def test_indexes_that_a_crash_left_out_are_made_with_the_next_change(path: Path) -> None:
    index = QdrantEdgeIndex(path, dimension=64)
    index.apply([Change(ONE, record("green tea"))])
    index._shard.update(UpdateOperation.create_field_index("tenant", INDEXES["tenant"]))
    index.close()

    index = QdrantEdgeIndex(path, dimension=64, chunks_to_index=2)
    index.apply([Change(TWO, record("white tea"))])

    assert indexed_fields(index) == set(INDEXES)
    index.close()
