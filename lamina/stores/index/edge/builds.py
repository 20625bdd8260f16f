"""Indexes of this process as ports: fed and searched from the event loop, and built anew beside themselves.

The index ``notes`` lies in the folder ``notes``, its third build in ``notes.build-3``; the file ``notes.current``
names the one that searches use, if it is not the first.
"""

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from lamina.core.erasures import Remnant
from lamina.core.fingerprints import chunk_fingerprints
from lamina.core.ports import Change, State
from lamina.core.queries import Query
from lamina.host.private_files import private_opener
from lamina.stores.index.ports import ChunkHit

FIRST = 0


class Index(Protocol[State]):
    """An index in this process, of one shard or of many; its calls block."""

    def apply(self, changes: Sequence[Change[State]]) -> None:
        """Take over the given states; searches see them when the call returns."""
        ...

    def flush(self) -> None:
        """Write everything applied so far to disk."""
        ...

    def by_vector(self, query: Query) -> list[ChunkHit]:
        """Return the nearest chunks by cosine, best first."""
        ...

    def chunks(self, tenant: str) -> Iterator[tuple[UUID, str]]:
        """Yield the memory of every chunk of a tenant with the fingerprint of its state."""
        ...

    def compact(self, tenant: str) -> None:
        """Write the tenant's part anew, without its deleted points."""
        ...

    def close(self) -> None:
        """Release its files."""
        ...


class IndexOfWords(Index[State], Protocol[State]):
    """An index that finds by words, too."""

    def by_words(self, query: Query) -> list[ChunkHit]:
        """Return the best chunks by BM25, best first."""
        ...


IndexT = TypeVar("IndexT", bound=Index)  # type: ignore[type-arg]  # of any state
WordsT = TypeVar("WordsT", bound=IndexOfWords)  # type: ignore[type-arg]
Result = TypeVar("Result")


class _OpenIndex(Generic[IndexT]):
    """An open index, which is closed after its last user once it is retired."""

    def __init__(self, build: int, index: IndexT, close: Callable[[IndexT], None]) -> None:
        self.build = build
        self.index = index
        self._close = close
        self._users = 0
        self._is_retired = False
        self._lock = threading.Lock()

    @contextmanager
    def borrow(self) -> Iterator[IndexT]:
        with self._lock:
            self._users += 1
        try:
            yield self.index
        finally:
            with self._lock:
                self._users -= 1
                is_over = not self._users and self._is_retired
            if is_over:
                self._close(self.index)

    def retire(self) -> None:
        with self._lock:
            self._is_retired = True
            is_idle = not self._users
        if is_idle:
            self._close(self.index)


class EmbeddedIndex(Generic[IndexT]):
    """An index by vectors as a projection and for searches.

    Args:
        path: Its folder.
        open_at: Opens an index, or makes one where there is none.
    """

    def __init__(self, path: Path, open_at: Callable[[Path], IndexT]) -> None:
        self._path = path
        self._open_at = open_at
        self._lock = threading.Lock()
        self._opening = threading.Lock()  # Takes half a second: searches must not wait for it.
        self._beside: dict[int, _OpenIndex[IndexT]] = {}
        build = _current_build(path)
        _remove_outdated(path, build)
        self._current = self._open(build)

    @property
    def current(self) -> IndexT:
        """The index that searches use now."""
        return self._current.index

    async def apply(self, changes: Sequence[Change[State]]) -> None:
        """Take over the given states and return when they are visible."""
        await self._run(lambda index: index.apply(changes))

    async def flush(self) -> None:
        """Return when everything applied so far is on disk."""
        await self._run(lambda index: index.flush())

    async def by_vector(self, query: Query) -> list[ChunkHit]:
        """Return the nearest chunks by cosine, best first; none for a query without a vector."""
        return await self._run(lambda index: index.by_vector(query))

    async def inventory(self, tenant: str) -> Mapping[UUID, str]:
        """Return every memory of the tenant with the fingerprint of its chunks."""
        return await self._run(lambda index: chunk_fingerprints(index.chunks(tenant)))

    async def compact(self, tenant: str) -> Sequence[Remnant]:
        """Write the tenant's part anew; nothing is left of its deleted points."""
        await self._run(lambda index: index.compact(tenant))
        return ()

    def beside(self, build: int) -> "EmbeddedBuild[IndexT]":
        """Return the index of a build, which is made when it takes its first changes."""
        return EmbeddedBuild(build, self._of_build)

    async def switch(self, build: int) -> None:
        """Have searches use the index of the build, and remove the one before after its last search."""
        await asyncio.to_thread(self._switch, build)

    def close(self) -> None:
        """Release the files of all builds."""
        for opened in (self._current, *self._beside.values()):
            opened.retire()

    async def _run(self, work: Callable[[IndexT], Result]) -> Result:
        return await asyncio.to_thread(self._run_here, work)

    def _run_here(self, work: Callable[[IndexT], Result]) -> Result:
        with ExitStack() as stack:
            with self._lock:  # A switch must not come in between.
                index = stack.enter_context(self._current.borrow())
            return work(index)

    def _of_build(self, build: int) -> IndexT:
        with self._opening:
            with self._lock:
                opened = self._current if build == self._current.build else self._beside.get(build)
            if opened is None:
                opened = self._open(build)
                with self._lock:
                    self._beside[build] = opened
            return opened.index

    def _switch(self, build: int) -> None:
        if build == self._current.build:
            return
        self._of_build(build).flush()
        with self._lock:
            _write_current(self._path, build)
            before, self._current = self._current, self._beside.pop(build)
            earlier = [self._beside.pop(number) for number in sorted(self._beside) if number < build]
        for opened in (before, *earlier):
            opened.retire()

    def _open(self, build: int) -> _OpenIndex[IndexT]:
        path = _path_of(self._path, build)
        return _OpenIndex(build, self._open_at(path), lambda index: self._give_up(build, index))

    def _give_up(self, build: int, index: IndexT) -> None:
        index.close()
        if build < self._current.build:
            shutil.rmtree(_path_of(self._path, build), ignore_errors=True)


class EmbeddedHybridIndex(EmbeddedIndex[WordsT]):
    """An index by words and by vectors."""

    async def by_words(self, query: Query) -> list[ChunkHit]:
        """Return the best chunks by BM25, best first; none for a query without words."""
        return await self._run(lambda index: index.by_words(query))

    async def by_both(self, query: Query) -> tuple[list[ChunkHit], list[ChunkHit]]:
        """Return the best chunks by BM25, with their cosines, and the nearest ones."""
        return await self._run(lambda index: (index.by_words(query), index.by_vector(query)))


@dataclass(frozen=True, slots=True)
class EmbeddedBuild(Generic[IndexT]):
    """An index that is built beside the one that searches use.

    Args:
        build: Its number.
        open_build: Returns its index.
    """

    build: int
    open_build: Callable[[int], IndexT]

    async def apply(self, changes: Sequence[Change[State]]) -> None:
        """Take over the given states."""
        await asyncio.to_thread(lambda: self.open_build(self.build).apply(changes))

    async def flush(self) -> None:
        """Return when everything applied so far is on disk."""
        await asyncio.to_thread(lambda: self.open_build(self.build).flush())


def _path_of(path: Path, build: int) -> Path:
    return path if build == FIRST else path.with_name(f"{path.name}.build-{build}")


def _current_build(path: Path) -> int:
    try:
        return int(_pointer(path).read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return FIRST


def _write_current(path: Path, build: int) -> None:
    """Name the build that searches use: whole or not at all, and on disk."""
    draft = _pointer(path).with_suffix(".draft")
    with open(draft, "w", opener=private_opener) as opened:
        opened.write(str(build))
        opened.flush()
        os.fsync(opened.fileno())
    draft.rename(_pointer(path))


def _pointer(path: Path) -> Path:
    return path.with_name(f"{path.name}.current")


def _remove_outdated(path: Path, current: int) -> None:
    """Remove the builds before the current one, which a process that ended meanwhile left behind."""
    if current == FIRST:
        return
    shutil.rmtree(path, ignore_errors=True)
    for other in path.parent.glob(f"{path.name}.build-*"):
        number = other.name.rpartition("-")[2]
        if number.isdecimal() and int(number) < current:
            shutil.rmtree(other, ignore_errors=True)
