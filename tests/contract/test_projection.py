"""What a projection promises: it takes over states, in any repetition, and keeps them."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from deployments.searcher import Searcher
from lamina.embedding.hashing import HashingModel
from lamina.errors import Misconfigured
from lamina.memories import Note
from lamina.ports import Change, Record
from lamina.queries import Filters, Query
from lamina.scope import Scope
from lamina.stores.hybrid.qdrant_edge import EdgeProjection, QdrantEdgeIndex
from lamina.text import words
from lamina.wiring import index_path
from tests.support.application import running, settings_for

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
ROOT = Path(__file__).parents[2]
MODEL = HashingModel(64)
ACME = Scope("acme")
ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))
OPEN_IT = """
import sys
from pathlib import Path
from lamina.errors import Misconfigured
from lamina.stores.hybrid.qdrant_edge import QdrantEdgeIndex
try:
    QdrantEdgeIndex(Path(sys.argv[1]), dimension=64)
except Misconfigured as error:
    print(error)
    sys.exit(3)
"""

WRITE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from tests.contract.test_projection import ONE, Change, record
from lamina.stores.hybrid.qdrant_edge import QdrantEdgeIndex
index = QdrantEdgeIndex(Path(sys.argv[1]), dimension=64)
index.apply([Change(ONE, record("green tea"))])
os.kill(os.getpid(), signal.SIGKILL)
"""


def record(*texts: str, tenant: str = "acme", user: str | None = None) -> Record:
    embeddings = tuple(row.tobytes() for row in MODEL.encode(texts))
    return Record(tenant, "default", "default", user, None, (), NOON, 1.0, texts, embeddings)


def asked(text: str, scope: Scope = ACME, limit: int = 10) -> Query:
    (row,) = MODEL.encode([text])
    return Query(text, tuple(words(text)), scope, limit, Filters(), row.tobytes(), 1)


def found(index: QdrantEdgeIndex, text: str, scope: Scope = ACME) -> dict[str, list[tuple[UUID, int]]]:
    """The (memory, chunk) places of both rankings."""
    query = asked(text, scope)
    return {
        "words": [item.place for item in index.by_words(query)],
        "vectors": [item.place for item in index.by_vector(query)],
    }


async def apply(index: QdrantEdgeIndex, *changes: Change) -> None:
    await EdgeProjection(index).apply(changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "edge" / "notes"


@pytest.fixture
def index(path: Path) -> Iterator[QdrantEdgeIndex]:
    opened = QdrantEdgeIndex(path, dimension=64)
    yield opened
    opened.close()


async def test_what_was_applied_is_visible_when_the_call_returns(index: QdrantEdgeIndex) -> None:
    await apply(index, Change(ONE, record("green tea")), Change(TWO, record("black coffee")))

    assert found(index, "green tea")["words"] == [(ONE, 0)]
    assert found(index, "black coffee")["vectors"][0] == (TWO, 0)


async def test_applying_the_same_changes_twice_is_applying_them_once(index: QdrantEdgeIndex) -> None:
    changes = [Change(ONE, record("green tea", "and milk")), Change(TWO, record("black tea")), Change(THREE, None)]
    await apply(index, *changes)
    once = (index.count(), found(index, "tea"))

    await apply(index, *changes)

    assert (index.count(), found(index, "tea")) == once
    assert once[0] == 3


async def test_the_last_state_of_a_memory_holds(index: QdrantEdgeIndex) -> None:
    await apply(index, Change(ONE, record("green tea")))

    await apply(index, Change(ONE, record("black coffee")))

    assert found(index, "green tea")["words"] == []
    assert found(index, "black coffee")["words"] == [(ONE, 0)]
    assert index.count() == 1


async def test_a_memory_that_became_shorter_leaves_no_chunk_behind(index: QdrantEdgeIndex) -> None:
    await apply(index, Change(ONE, record("green tea", "black coffee", "red wine")))

    await apply(index, Change(ONE, record("green tea")))

    assert index.count() == 1
    assert found(index, "red wine")["words"] == []


async def test_a_memory_that_became_longer_has_all_its_chunks(index: QdrantEdgeIndex) -> None:
    await apply(index, Change(ONE, record("green tea")))

    await apply(index, Change(ONE, record("green tea", "black coffee")))

    assert found(index, "black coffee")["words"] == [(ONE, 1)]


async def test_a_deleted_memory_is_gone_and_the_others_stay(index: QdrantEdgeIndex) -> None:
    await apply(index, Change(ONE, record("green tea", "and milk")), Change(TWO, record("green tea too")))

    await apply(index, Change(ONE, None))

    assert index.count() == 1
    assert found(index, "green tea") == {"words": [(TWO, 0)], "vectors": [(TWO, 0)]}


async def test_deleting_an_unknown_memory_is_fine(index: QdrantEdgeIndex) -> None:
    await apply(index, Change(ONE, None))
    await apply(index, Change(TWO, record("green tea")), Change(THREE, None))

    assert index.count() == 1


async def test_no_changes_change_nothing(index: QdrantEdgeIndex) -> None:
    await apply(index, Change(ONE, record("green tea")))

    await apply(index)

    assert index.count() == 1


async def test_a_deleted_memory_can_come_back(index: QdrantEdgeIndex) -> None:
    for state in (record("green tea"), None, record("green tea")):
        await apply(index, Change(ONE, state))

    assert found(index, "green tea")["words"] == [(ONE, 0)]


async def test_many_changes_are_applied_whole(index: QdrantEdgeIndex) -> None:
    changes = [Change(UUID(int=number), record(f"note number {number}")) for number in range(1, 1001)]

    await apply(index, *changes)
    await apply(index, *(Change(change.id, None) for change in changes[:500]))

    assert index.count() == 500
    assert found(index, "999")["words"] == [(UUID(int=999), 0)]


async def test_changes_from_several_callers_are_all_applied(index: QdrantEdgeIndex) -> None:
    batches = [[Change(UUID(int=number), record(f"note {number}"))] for number in range(1, 21)]

    await asyncio.gather(*(apply(index, *batch) for batch in batches))

    assert index.count() == 20


async def test_a_search_while_a_memory_is_replaced_never_misses_it(index: QdrantEdgeIndex) -> None:
    await apply(index, Change(ONE, record("green tea")))
    replacing = asyncio.create_task(_replace(index, 50))

    seen = []
    while not replacing.done():
        seen.append(await asyncio.to_thread(index.by_words, asked("green tea")))
    await replacing

    assert len(seen) > 1
    assert all([item.place for item in places] == [(ONE, 0)] for places in seen)


async def _replace(index: QdrantEdgeIndex, times: int) -> None:
    for number in range(times):
        await apply(index, Change(ONE, record(f"green tea {number}")))


async def test_after_it_was_closed_and_opened_again_everything_is_there(path: Path) -> None:
    first = QdrantEdgeIndex(path, dimension=64)
    await apply(first, Change(ONE, record("green tea", "and milk")), Change(TWO, record("black tea", user="ann")))
    before = (first.count(), found(first, "tea"), found(first, "tea", Scope("acme", user="bob")))
    first.close()

    second = QdrantEdgeIndex(path, dimension=64)
    after = (second.count(), found(second, "tea"), found(second, "tea", Scope("acme", user="bob")))
    await apply(second, Change(ONE, None))
    left = second.count()
    second.close()

    assert after == before
    assert before[0] == 3
    assert left == 1


async def test_a_second_opener_in_the_same_process_is_refused_and_the_first_goes_on(
    index: QdrantEdgeIndex, path: Path
) -> None:
    with pytest.raises(Misconfigured) as refused:
        QdrantEdgeIndex(path, dimension=64)

    assert str(path) in refused.value.what
    assert "stop" in refused.value.remedy
    await apply(index, Change(ONE, record("green tea")))
    assert found(index, "green tea")["words"] == [(ONE, 0)]


async def test_a_second_opener_in_another_process_is_refused_with_a_remedy(index: QdrantEdgeIndex, path: Path) -> None:
    await apply(index, Change(ONE, record("green tea")))

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


async def test_an_index_of_an_earlier_format_is_set_aside_and_a_new_one_begun(path: Path) -> None:
    earlier = QdrantEdgeIndex(path, dimension=64)
    await apply(earlier, Change(ONE, record("green tea")))
    earlier.close()
    marked(path, format=1)

    index = QdrantEdgeIndex(path, dimension=64)

    assert index.is_new
    assert index.count() == 0
    await apply(index, Change(TWO, record("black tea")))
    index.close()
    marked(path.with_name("notes.format-1"), format=json.loads((path / "lamina.json").read_text())["format"])
    again, kept = QdrantEdgeIndex(path, dimension=64), QdrantEdgeIndex(path.with_name("notes.format-1"), dimension=64)
    assert not again.is_new
    assert (found(again, "tea")["words"], found(kept, "tea")["words"]) == ([(TWO, 0)], [(ONE, 0)])
    again.close()
    kept.close()


async def test_an_index_of_an_earlier_format_that_a_process_still_has_open_is_refused_and_stays(
    index: QdrantEdgeIndex, path: Path
) -> None:
    marked(path, format=1)

    with pytest.raises(Misconfigured, match="cannot be opened"):
        QdrantEdgeIndex(path, dimension=64)

    await apply(index, Change(ONE, record("green tea")))
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

    restarted = await asyncio.to_thread(Searcher, "notes", settings, 384)
    restarted._parts.close()
    async with running(settings, database, HashingModel()) as app:
        await app.indexed()
        refilled = app.tiers["notes"].projections["notes"]._index.count()  # type: ignore[attr-defined]

    assert refilled == 2


async def test_an_index_of_words_alone_finds_words_and_has_no_vectors(path: Path) -> None:
    index = QdrantEdgeIndex(path, dimension=None)
    plain = record("green tea")
    await apply(index, Change(ONE, Record(**{**_fields(plain), "embeddings": ()})))

    places = found(index, "green tea")
    index.close()

    assert places == {"words": [(ONE, 0)], "vectors": []}


@pytest.mark.parametrize("texts", [("🎉",), ("...", "!?"), ("",)])
async def test_a_memory_without_words_is_taken_over_too(index: QdrantEdgeIndex, texts: Sequence[str]) -> None:
    await apply(index, Change(ONE, record(*texts)))

    assert index.count() == len(texts)


async def test_how_often_others_use_a_word_changes_nothing_for_a_tenant(index: QdrantEdgeIndex) -> None:
    await apply(index, Change(ONE, record("green tea")), Change(TWO, record("black tea")))
    before = [(item.place, item.bm25) for item in index.by_words(asked("green tea"))]

    flood = [Change(UUID(int=number), record("green green tea", tenant="other")) for number in range(10, 60)]
    await apply(index, *flood)

    assert [(item.place, item.bm25) for item in index.by_words(asked("green tea"))] == before


async def test_a_chunk_found_by_its_words_tells_how_near_it_is(index: QdrantEdgeIndex) -> None:
    await apply(index, Change(ONE, record("green tea")), Change(TWO, record("green tea with milk and honey")))

    by_words, by_vector = index.by_words(asked("green tea")), index.by_vector(asked("green tea"))

    nearness = {item.place: item.cosine for item in by_vector}
    assert [item.place for item in by_words] == [(ONE, 0), (TWO, 0)]
    assert all(item.cosine == pytest.approx(nearness[item.place], abs=1e-5) for item in by_words)


def in_another_process(code: str, path: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def _fields(of: Record) -> dict[str, object]:
    return {name: getattr(of, name) for name in Record.__dataclass_fields__}
