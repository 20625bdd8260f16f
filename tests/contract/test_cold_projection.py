"""What the cold index promises: as a projection, and as a directory of collections."""

import asyncio
import json
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from uuid import UUID

import pytest

from lamina.errors import Misconfigured
from lamina.ports import Change, Placed
from lamina.scope import Scope
from lamina.stores.hybrid.qdrant_edge import EdgeProjection
from lamina.stores.vectors.qdrant_edge_cold import MARKER, SHARD, ColdIndex, Collection, Layout
from tests.contract.test_projection import ONE, THREE, TWO, asked, in_another_process, record

LAYOUTS: tuple[Layout, ...] = ("per_namespace", "shared")
ACME = Scope("acme")
WRITE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from tests.contract.test_cold_projection import ONE, Change, open_cold, placed
index = open_cold(Path(sys.argv[1]))
index.apply([Change(ONE, placed("green tea"))])
os.kill(os.getpid(), signal.SIGKILL)
"""
OPEN_IT = """
import sys
from pathlib import Path
from lamina.errors import Misconfigured
from tests.contract.test_cold_projection import ACME, asked, open_cold
try:
    open_cold(Path(sys.argv[1])).by_vector(asked("green tea"))
except Misconfigured as error:
    print(error)
    sys.exit(3)
"""


def open_cold(path: Path, layout: Layout = "per_namespace", *, max_open: int = 4, dimension: int = 64) -> ColdIndex:
    return ColdIndex(path, dimension=dimension, layout=layout, max_open=max_open)


def placed(*texts: str, scope: Scope = ACME, user: str | None = None) -> Placed:
    state = record(*texts, tenant=scope.tenant, user=user)
    fields = {name: getattr(state, name) for name in state.__dataclass_fields__}
    here = {"tenant": scope.tenant, "workspace": scope.workspace, "namespace": scope.namespace}
    return Placed(**here, record=type(state)(**(fields | here)))


def gone(scope: Scope = ACME) -> Placed:
    return Placed(scope.tenant, scope.workspace, scope.namespace, None)


def nearest(index: ColdIndex, text: str, scope: Scope = ACME) -> list[tuple[UUID, int]]:
    """The (memory, chunk) places that say the same, nearest first."""
    return [item.place for item in index.by_vector(asked(text, scope)) if (item.cosine or 0) > 0.7]


def shards(path: Path) -> list[Path] | None:
    """The shards in the directory; ``None`` if there is not even a directory."""
    return list(path.glob(f"*/{SHARD}")) if path.exists() else None


async def apply(index: ColdIndex, *changes: Change[Placed]) -> None:
    await EdgeProjection(index).apply(changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "edge" / "cold"


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> Layout:
    chosen: Layout = request.param
    return chosen


@pytest.fixture
def index(path: Path, layout: Layout) -> Iterator[ColdIndex]:
    opened = open_cold(path, layout)
    yield opened
    opened.close()


async def test_what_was_applied_is_visible_when_the_call_returns(index: ColdIndex) -> None:
    await apply(index, Change(ONE, placed("green tea")), Change(TWO, placed("black coffee")))

    assert nearest(index, "green tea") == [(ONE, 0)]
    assert nearest(index, "black coffee") == [(TWO, 0)]


async def test_applying_the_same_changes_twice_is_applying_them_once(index: ColdIndex) -> None:
    changes = [Change(ONE, placed("green tea", "and milk")), Change(TWO, placed("black tea")), Change(THREE, gone())]
    await apply(index, *changes)
    once = (index.count(ACME), nearest(index, "black tea"))

    await apply(index, *changes)

    assert (index.count(ACME), nearest(index, "black tea")) == once == (3, [(TWO, 0)])


async def test_the_last_state_of_a_memory_holds(index: ColdIndex) -> None:
    await apply(index, Change(ONE, placed("green tea", "red wine")))

    await apply(index, Change(ONE, placed("black coffee")))

    assert (nearest(index, "green tea"), nearest(index, "red wine")) == ([], [])
    assert nearest(index, "black coffee") == [(ONE, 0)]
    assert index.count(ACME) == 1


async def test_a_memory_that_is_not_cold_any_more_is_gone_and_the_others_stay(index: ColdIndex) -> None:
    await apply(index, Change(ONE, placed("green tea", "and milk")), Change(TWO, placed("green tea", user="bob")))

    await apply(index, Change(ONE, gone()))

    assert nearest(index, "green tea") == [(TWO, 0)]
    assert index.count(ACME) == 1


async def test_a_memory_that_was_removed_can_come_back(index: ColdIndex) -> None:
    for state in (placed("green tea"), gone(), placed("green tea")):
        await apply(index, Change(ONE, state))

    assert nearest(index, "green tea") == [(ONE, 0)]


async def test_a_memory_of_which_nothing_is_left_is_removed_wherever_it_was(path: Path, layout: Layout) -> None:
    here, there = Scope("acme", "one"), Scope("acme", "two")
    first = open_cold(path, layout)
    await apply(first, Change(ONE, placed("green tea", scope=here)), Change(TWO, placed("green tea", scope=there)))
    first.close()

    second = open_cold(path, layout)
    await apply(second, Change(TWO, None), Change(THREE, None))
    left = nearest(second, "green tea", here), nearest(second, "green tea", there)
    second.close()

    assert left == ([(ONE, 0)], [])


async def test_many_changes_are_applied_whole(index: ColdIndex) -> None:
    changes = [Change(UUID(int=number), placed(f"note number {number}")) for number in range(1, 501)]

    await apply(index, *changes)
    await apply(index, *(Change(change.id, gone()) for change in changes[:200]))

    assert index.count(ACME) == 300


async def test_changes_from_several_callers_are_all_applied(index: ColdIndex) -> None:
    scopes = [Scope("acme", f"w{number % 3}") for number in range(1, 21)]
    batches = [[Change(UUID(int=place), placed(f"note {place}", scope=scope))] for place, scope in enumerate(scopes)]

    await asyncio.gather(*(apply(index, *batch) for batch in batches))

    assert sum(len(index.by_vector(asked("note", scope, 100))) for scope in set(scopes)) == 20


async def test_after_it_was_closed_and_opened_again_everything_is_there(path: Path, layout: Layout) -> None:
    first = open_cold(path, layout)
    await apply(first, Change(ONE, placed("green tea", "and milk")), Change(TWO, placed("black tea", user="ann")))
    before = (first.count(ACME), nearest(first, "black tea"), nearest(first, "black tea", Scope("acme", user="bob")))
    first.close()

    second = open_cold(path, layout)
    after = (second.count(ACME), nearest(second, "black tea"), nearest(second, "black tea", Scope("acme", user="bob")))
    second.close()

    assert after == before == (3, [(TWO, 0)], [])


async def test_what_was_applied_is_there_after_its_process_was_killed(path: Path) -> None:
    killed = await asyncio.to_thread(in_another_process, WRITE_AND_DIE, path)

    index = open_cold(path)
    places = nearest(index, "green tea")
    index.close()

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert places == [(ONE, 0)]


async def test_a_second_process_is_refused_and_the_first_goes_on(path: Path) -> None:
    index = open_cold(path)
    await apply(index, Change(ONE, placed("green tea")))

    other = await asyncio.to_thread(in_another_process, OPEN_IT, path)

    assert other.returncode == 3, other.stderr
    assert "stop the process" in other.stdout
    assert nearest(index, "green tea") == [(ONE, 0)]
    index.close()


async def test_each_namespace_has_a_collection_of_its_own(path: Path) -> None:
    index = open_cold(path)
    scopes = [Scope("a"), Scope("a", "b"), Scope("a", "default", "b"), Scope("b")]

    await apply(index, *(Change(UUID(int=n), placed("tea", scope=scope)) for n, scope in enumerate(scopes)))
    counts = [index.count(scope) for scope in scopes]
    index.close()

    assert counts == [1, 1, 1, 1]
    assert len(shards(path) or ()) == 4
    assert set(index.collections()) == {Collection(s.tenant, s.workspace, s.namespace) for s in scopes}


async def test_a_shared_collection_holds_every_tenant_and_shows_each_its_own(path: Path) -> None:
    index = open_cold(path, "shared")
    scopes = [Scope("a"), Scope("b"), Scope("a", "c")]

    await apply(index, *(Change(UUID(int=n), placed("green tea", scope=scope)) for n, scope in enumerate(scopes)))
    seen = [nearest(index, "green tea", scope) for scope in scopes]
    index.close()

    assert seen == [[(UUID(int=n), 0)] for n in range(3)]
    assert len(shards(path) or ()) == 1


@pytest.mark.parametrize("scope", [ACME, Scope("nobody", "no/../where", "%")])
async def test_reading_what_is_not_there_creates_nothing(index: ColdIndex, path: Path, scope: Scope) -> None:
    assert index.by_vector(asked("green tea", scope)) == []
    assert index.count(scope) == 0
    assert shards(path) is None


async def test_removing_what_was_never_there_creates_nothing(index: ColdIndex, path: Path) -> None:
    await apply(index, Change(ONE, gone()), Change(TWO, None))
    await EdgeProjection(index).flush()

    assert shards(path) is None


def test_ids_that_join_to_the_same_text_have_different_folders() -> None:
    parts = [("a", "b", "c"), ("ab", "", "c"), ("a", "bc", "d"), ("ab", "c", "d"), ("a/b", "c", "d"), ("a", "b/c", "d")]

    folders = [Collection(*ids).folder() for ids in parts]

    assert all(one != other for one, other in combinations([*folders, Collection().folder()], 2))


async def test_at_most_so_many_collections_are_open_and_all_are_found(path: Path) -> None:
    index = open_cold(path, max_open=2)
    scopes = [Scope("acme", f"w{number}") for number in range(5)]
    await apply(index, *(Change(UUID(int=n), placed(f"note {n}", scope=scope)) for n, scope in enumerate(scopes)))
    await EdgeProjection(index).flush()

    seen = []
    for scope in (*scopes, *reversed(scopes)):
        seen.append(len(index.by_vector(asked("note", scope))))
        assert index.open_count() <= 2
    index.close()

    assert seen == [1] * 10


async def test_threads_that_read_and_write_more_collections_than_may_be_open_lose_nothing(path: Path) -> None:
    index = open_cold(path, max_open=2)
    scopes = [Scope("acme", f"w{number}") for number in range(4)]

    def work(start: int) -> None:
        for step in range(8):
            scope = scopes[(start + step) % 4]
            index.apply([Change(UUID(int=100 * start + step + 1), placed(f"note {start} {step}", scope=scope))])
            assert index.by_vector(asked("note", scope))

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(work, number) for number in range(4)]:
            done.result()
    counts = [index.count(scope) for scope in scopes]
    index.close()

    assert counts == [8] * 4


async def test_an_index_is_new_until_something_was_applied(path: Path, layout: Layout) -> None:
    opened = [open_cold(path, layout), open_cold(path, layout)]
    await apply(opened[1], Change(ONE, placed("green tea")))
    opened[1].close()

    assert [index.is_new for index in (*opened, open_cold(path, layout))] == [True, True, False]


async def test_an_index_of_an_earlier_format_is_set_aside(path: Path) -> None:
    index = open_cold(path)
    await apply(index, Change(ONE, placed("green tea")))
    index.close()
    marker = path / MARKER
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"format": 1}))

    anew = open_cold(path)

    assert anew.is_new
    assert nearest(anew, "green tea") == []
    assert path.with_name("cold.format-1").is_dir()


@pytest.mark.parametrize("other", [{"dimension": 32}, {"layout": "shared"}])
async def test_an_index_made_for_something_else_is_refused_with_the_remedy(
    path: Path, other: dict[str, object]
) -> None:
    index = open_cold(path)
    await apply(index, Change(ONE, placed("green tea")))
    index.close()

    with pytest.raises(Misconfigured, match="is built anew from Postgres"):
        open_cold(path, **other)  # type: ignore[arg-type]


@pytest.mark.parametrize("ids", [["other", "default", "default"], [], None])
async def test_a_collection_of_other_ids_is_refused(path: Path, ids: Sequence[str] | None) -> None:
    index = open_cold(path)
    await apply(index, Change(ONE, placed("green tea")))
    index.close()
    marker = path / Collection("acme", "default", "default").folder() / MARKER
    marker.write_text("{" if ids is None else json.dumps({"ids": ids}))

    with pytest.raises(Misconfigured, match="acme"):
        index.by_vector(asked("green tea"))
