"""Cold notes on Qdrant Edge: a directory of collections, of which some are open."""

import asyncio
import json
import re
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from uuid import UUID

import pytest

from lamina.core.ports import Change
from lamina.core.scope import Scope
from lamina.errors import Misconfigured, Unavailable
from lamina.stores.index.cold.collections import Collection, Layout
from lamina.stores.index.cold.edge import MARKER, SHARD, ColdIndex
from lamina.stores.index.edge.shard import QdrantEdgeIndex
from tests.support.indexes import ACME, ONE, THREE, TWO, asked, gone, in_another_process, placed

LAYOUTS: tuple[Layout, ...] = ("per_namespace", "shared")
WRITE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from lamina.core.ports import Change
from tests.integration.test_edge_cold_index import open_cold
from tests.support.indexes import ONE, TWO, placed
index = open_cold(Path(sys.argv[1]))
index.apply([Change(ONE, placed("green tea"))])
index.flush()
index.apply([Change(TWO, placed("black tea"))])
os.kill(os.getpid(), signal.SIGKILL)
"""
OPEN_IT = """
import sys
from pathlib import Path
from lamina.errors import Misconfigured
from tests.integration.test_edge_cold_index import open_cold
from tests.support.indexes import asked
try:
    open_cold(Path(sys.argv[1])).by_vector(asked("green tea"))
except Misconfigured as error:
    print(error)
    sys.exit(3)
"""


def open_cold(path: Path, layout: Layout = "per_namespace", *, max_open: int = 4, dimension: int = 64) -> ColdIndex:
    return ColdIndex(path, dimension=dimension, layout=layout, max_open=max_open)


def nearest(index: ColdIndex, text: str, scope: Scope = ACME) -> list[tuple[UUID, int]]:
    """The (memory, chunk) places that say the same, nearest first."""
    return [item.place for item in index.by_vector(asked(text, scope)) if (item.cosine or 0) > 0.7]


def shards(path: Path) -> list[Path] | None:
    """The shards in the directory; ``None`` if there is not even a directory."""
    return list(path.glob(f"*/{SHARD}")) if path.exists() else None


def mapped_kib() -> int:
    """The part of files that this process has in memory."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssFile"))
    return int(line.split()[1])


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


def test_a_memory_of_which_nothing_is_left_is_removed_wherever_it_was(path: Path, layout: Layout) -> None:
    here, there = Scope("acme", "one"), Scope("acme", "two")
    first = open_cold(path, layout)
    first.apply([Change(ONE, placed("green tea", scope=here)), Change(TWO, placed("green tea", scope=there))])
    first.close()

    second = open_cold(path, layout)
    second.apply([Change(TWO, None), Change(THREE, None)])
    left = nearest(second, "green tea", here), nearest(second, "green tea", there)
    second.close()

    assert left == ([(ONE, 0)], [])


def test_after_it_was_closed_and_opened_again_everything_is_there(path: Path, layout: Layout) -> None:
    first = open_cold(path, layout)
    first.apply([Change(ONE, placed("green tea", "and milk")), Change(TWO, placed("black tea", user="ann"))])
    before = (first.count(ACME), nearest(first, "black tea"), nearest(first, "black tea", Scope("acme", user="bob")))
    first.close()

    second = open_cold(path, layout)
    after = (second.count(ACME), nearest(second, "black tea"), nearest(second, "black tea", Scope("acme", user="bob")))
    second.close()

    assert after == before == (3, [(TWO, 0)], [])


async def test_what_was_not_flushed_before_its_process_was_killed_can_be_applied_again(path: Path) -> None:
    killed = await asyncio.to_thread(in_another_process, WRITE_AND_DIE, path)

    index = open_cold(path)
    flushed = nearest(index, "green tea")
    for _ in range(2):
        index.apply([Change(TWO, placed("black tea"))])
    places, count = nearest(index, "black tea"), index.count(ACME)
    index.close()

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert flushed == [(ONE, 0)]
    assert (places, count) == ([(TWO, 0)], 2)


def test_a_collection_that_cannot_be_flushed_as_it_closes_fails_the_next_flush(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: QdrantEdgeIndex) -> None:
        raise OSError("no space left on device")

    index = open_cold(path, max_open=1)
    index.apply([Change(ONE, placed("green tea"))])
    with monkeypatch.context() as patched:
        patched.setattr(QdrantEdgeIndex, "flush", refuse)
        with pytest.raises(OSError, match="no space"):
            index.apply([Change(TWO, placed("green tea", scope=Scope("bolt")))])

    with pytest.raises(Unavailable, match="could not be written"):
        index.flush()
    index.flush()
    index.close()


def test_a_collection_takes_no_log_no_file_handle_and_no_memory_for_its_size(path: Path) -> None:
    index = open_cold(path, max_open=32)
    scopes = [Scope("acme", f"w{number}") for number in range(8)]
    index.apply([*(Change(UUID(int=n), placed("green tea", scope=scope)) for n, scope in enumerate(scopes))])
    index.close()
    handles, mapped = len(list(Path("/proc/self/fd").iterdir())), mapped_kib()

    for scope in scopes:
        assert nearest(index, "green tea", scope)
    more_handles, more = len(list(Path("/proc/self/fd").iterdir())) - handles, mapped_kib() - mapped
    is_open = index.open_count()
    index.close()

    assert is_open == 8
    assert more_handles <= 2
    assert more < 8 * 4096
    assert not list(path.glob(f"*/{SHARD}/wal/*"))


async def test_a_second_process_is_refused_and_the_first_goes_on(path: Path) -> None:
    index = open_cold(path)
    index.apply([Change(ONE, placed("green tea"))])

    other = await asyncio.to_thread(in_another_process, OPEN_IT, path)

    assert other.returncode == 3, other.stderr
    assert "stop the process" in other.stdout
    assert nearest(index, "green tea") == [(ONE, 0)]
    index.close()


def test_each_namespace_has_a_collection_of_its_own(path: Path) -> None:
    index = open_cold(path)
    scopes = [Scope("a"), Scope("a", "b"), Scope("a", "default", "b"), Scope("b")]

    index.apply([*(Change(UUID(int=n), placed("tea", scope=scope)) for n, scope in enumerate(scopes))])
    counts = [index.count(scope) for scope in scopes]
    index.close()

    assert counts == [1, 1, 1, 1]
    assert len(shards(path) or ()) == 4
    assert set(index.collections()) == {Collection(s.tenant, s.workspace, s.namespace) for s in scopes}


def test_a_shared_collection_holds_every_tenant_and_shows_each_its_own(path: Path) -> None:
    index = open_cold(path, "shared")
    scopes = [Scope("a"), Scope("b"), Scope("a", "c")]

    index.apply([*(Change(UUID(int=n), placed("green tea", scope=scope)) for n, scope in enumerate(scopes))])
    seen = [nearest(index, "green tea", scope) for scope in scopes]
    index.close()

    assert seen == [[(UUID(int=n), 0)] for n in range(3)]
    assert len(shards(path) or ()) == 1


@pytest.mark.parametrize("scope", [ACME, Scope("nobody", "no/../where", "%")])
def test_reading_what_is_not_there_creates_nothing(index: ColdIndex, path: Path, scope: Scope) -> None:
    assert index.by_vector(asked("green tea", scope)) == []
    assert index.count(scope) == 0
    assert shards(path) is None


def test_removing_what_was_never_there_creates_nothing(index: ColdIndex, path: Path) -> None:
    index.apply([Change(ONE, gone()), Change(TWO, None)])
    index.flush()

    assert shards(path) is None


def test_ids_that_join_to_the_same_text_have_different_folders() -> None:
    parts = [("a", "b", "c"), ("ab", "", "c"), ("a", "bc", "d"), ("ab", "c", "d"), ("a/b", "c", "d"), ("a", "b/c", "d")]

    folders = [Collection(*ids).name() for ids in parts]

    assert all(one != other for one, other in combinations([*folders, Collection().name()], 2))


def test_collections_that_are_named_show_their_ids(path: Path) -> None:
    parts = [("acme", "boats/ж", "x" * 128), ("acme", "boats/я", "x" * 128), ("acme", "boats-", "x")]
    index = open_cold(path, "named")
    scope = Scope("acme", "boats/ж")

    index.apply([Change(ONE, placed("note", scope=scope))])
    index.flush()
    folders = [Collection(*ids).name("named") for ids in parts]

    assert index.count(scope) == 1
    assert [folder.name for folder in path.iterdir() if folder.name.startswith("acme_boats--_default_")]
    assert len(set(folders)) == len(folders)
    assert all(re.fullmatch(r"acme_boats-+_x{1,32}_[0-9a-f]{16}", folder) for folder in folders)
    index.close()


def test_at_most_so_many_collections_are_open_and_all_are_found(path: Path) -> None:
    index = open_cold(path, max_open=2)
    scopes = [Scope("acme", f"w{number}") for number in range(5)]
    index.apply([*(Change(UUID(int=n), placed(f"note {n}", scope=scope)) for n, scope in enumerate(scopes))])
    index.flush()

    seen = []
    for scope in (*scopes, *reversed(scopes)):
        seen.append(len(index.by_vector(asked("note", scope))))
        assert index.open_count() <= 2
    index.close()

    assert seen == [1] * 10


def test_threads_that_read_and_write_more_collections_than_may_be_open_lose_nothing(path: Path) -> None:
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


def test_an_index_is_new_until_something_was_applied(path: Path, layout: Layout) -> None:
    opened = [open_cold(path, layout), open_cold(path, layout)]
    opened[1].apply([Change(ONE, placed("green tea"))])
    opened[1].close()

    assert [index.is_new for index in (*opened, open_cold(path, layout))] == [True, True, False]


def test_an_index_of_an_earlier_format_is_set_aside(path: Path) -> None:
    index = open_cold(path)
    index.apply([Change(ONE, placed("green tea"))])
    index.close()
    marker = path / MARKER
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"format": 1}))

    anew = open_cold(path)

    assert anew.is_new
    assert nearest(anew, "green tea") == []
    assert path.with_name("cold.format-1").is_dir()


@pytest.mark.parametrize("other", [{"dimension": 32}, {"layout": "shared"}])
def test_an_index_made_for_something_else_is_refused_with_the_remedy(path: Path, other: dict[str, object]) -> None:
    index = open_cold(path)
    index.apply([Change(ONE, placed("green tea"))])
    index.close()

    with pytest.raises(Misconfigured, match="is built anew from Postgres"):
        open_cold(path, **other)  # type: ignore[arg-type]


@pytest.mark.parametrize("ids", [["other", "default", "default"], [], None])
def test_a_collection_of_other_ids_is_refused(path: Path, ids: Sequence[str] | None) -> None:
    index = open_cold(path)
    index.apply([Change(ONE, placed("green tea"))])
    index.close()
    marker = path / Collection("acme", "default", "default").name() / MARKER
    marker.write_text("{" if ids is None else json.dumps({"ids": ids}))

    with pytest.raises(Misconfigured, match="acme"):
        index.by_vector(asked("green tea"))
