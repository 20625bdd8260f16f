"""Word and vector search on a Meilisearch server."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import islice
from typing import Any
from uuid import UUID

from lamina.aio.coalescing import Coalescer
from lamina.core.fingerprints import chunk_fingerprints
from lamina.core.ports import Change, Record
from lamina.core.queries import Query
from lamina.errors import Misconfigured
from lamina.policies.ranking.scores import widening
from lamina.settings.section import MIB
from lamina.settings.stores import MeilisearchSettings
from lamina.stores.index.meilisearch.client import LINES, PART, DocumentMissing, IndexMissing, MeilisearchServer
from lamina.stores.index.meilisearch.documents import (
    BUILD,
    MAX_HITS,
    build_document,
    dimension_of,
    documents_of,
    memory_of,
    missing_settings,
    outdated,
    payloads,
    wanted_settings,
)
from lamina.stores.index.meilisearch.filters import DIALECT, EVERYTHING
from lamina.stores.index.meilisearch.queries import (
    Candidates,
    IndexQuestion,
    cosines_of,
    index_question,
    read_discovery,
)
from lamina.stores.index.ports import STATE_FIELD, ChunkHit

PAGE = 1000
INSTALLATION = "installation"
MARK = "mark"
Asked = Mapping[str, Any]
# The server does the searches of a call one after the other: a few questions of up to twelve.
SEARCHES_OF_A_CALL = 64
# How long a question waits for company while another one is under way, and how many wait for nothing.
PATIENCE_S, ENOUGH_QUESTIONS = 0.005, 4


class MeilisearchChunks:
    """One index on the server, as a projection.

    Args:
        server: The server.
        settings: Its limits.
        uid: Name of the index there.
        dimension: Length of its vectors; ``None`` if it has none.
        build: Number of the build that makes it; ``None`` for the index that is searched.
    """

    def __init__(
        self,
        server: MeilisearchServer,
        settings: MeilisearchSettings,
        uid: str,
        *,
        dimension: int | None,
        build: int | None,
    ) -> None:
        self.uid = uid
        self._server = server
        self._settings = settings
        self._dimension = dimension
        self._build = build
        self._is_made = False
        self._making = asyncio.Lock()
        self._questions: Coalescer[Sequence[Asked], Sequence[dict[str, Any]]] = Coalescer(
            self._search_together,
            part=PART,
            max_items=SEARCHES_OF_A_CALL,
            max_in_flight=settings.connections,
            weigh=len,
            is_sent_singly=True,
            patience_s=PATIENCE_S,
            enough=ENOUGH_QUESTIONS,
        )

    async def make(self) -> None:
        """Make the index, if there is none, with its settings; change those that differ, and only those.

        Raises:
            Misconfigured: If the server is too old or refuses the key, or the index holds other vectors.
            Unavailable: If the server does not answer, or is not done in time.
        """
        async with self._making:
            if not self._is_made:
                await self._make()
                self._is_made = True

    async def apply(self, changes: Sequence[Change[Record]]) -> None:
        """Replace the chunks of these memories; searches see them when the call returns.

        Raises:
            Misconfigured: If the server refuses the key or a document.
            Unavailable: If it does not answer, or is not done in time.
        """
        if not changes:
            return
        await self.make()
        async with self._made_again_after_failure():
            await self._apply(changes)

    async def flush(self) -> None:
        """Return at once: a task that succeeded is a transaction that the server has synced to its disk."""

    async def count(self) -> int:
        """Return the number of chunks."""
        found = await self._fetch({"filter": str(EVERYTHING), "fields": ["id"], "limit": 1})
        return int(found["total"])

    async def chunks(self, tenant: str) -> list[tuple[UUID, str]]:
        """Return the memory of every chunk of a tenant with the fingerprint of its state."""
        asked = {"filter": str(DIALECT.equals("tenant", tenant)), "fields": ["memory", STATE_FIELD], "limit": PAGE}
        chunks: list[tuple[UUID, str]] = []
        while True:
            found = await self._fetch({**asked, "offset": len(chunks)})
            chunks += [(memory_of(document), document.get(STATE_FIELD, "")) for document in found["results"]]
            if not found["results"] or len(chunks) >= found["total"]:
                return chunks

    async def made_by(self) -> int | None:
        """Return the number of the build that made the index; ``None`` if none did or there is no index."""
        try:
            found = await self._server.ask("get", f"indexes/{self.uid}/documents/{BUILD}")
        except (DocumentMissing, IndexMissing):
            return None
        return int(found[BUILD])

    async def drop(self) -> None:
        """Remove the index, if it is there."""
        if await self._exists():
            task = await self._server.ask("delete", f"indexes/{self.uid}")
            await self._server.succeeded([task["taskUid"]], ignore=["index_not_found"])

    async def search(self, asked: Sequence[Asked]) -> Sequence[dict[str, Any]]:
        """Return the answer to each of the searches of a question, in one call; none to none.

        Questions that come while calls are under way travel together.
        """
        if not asked:
            return []
        await self.make()
        async with self._made_again_after_failure():
            return await self._questions.submit(asked)

    async def _search_together(self, questions: Sequence[Sequence[Asked]]) -> list[list[dict[str, Any]]]:
        body = {"queries": [search for question in questions for search in question]}
        found = await self._server.ask("post", "multi-search", body, timeout_s=self._settings.read_timeout_s)
        answers = iter(found["results"])
        return [list(islice(answers, len(question))) for question in questions]

    async def _apply(self, changes: Sequence[Change[Record]]) -> None:
        # First the new chunks, then the rest of the old ones: tasks are done in the order of the requests, and a search
        # in between misses nothing.
        tasks = await self._put(documents_of(changes, self._dimension))
        tasks.append(await self._task("post", "documents/delete", {"filter": outdated(changes)}))
        await self._server.succeeded(tasks)

    @asynccontextmanager
    async def _made_again_after_failure(self) -> AsyncIterator[None]:
        """Have the next call look at the index again if this one shows that it was changed or removed."""
        try:
            yield
        except (IndexMissing, Misconfigured):
            self._is_made = False
            raise

    async def _make(self) -> None:
        version = await self._server.version()
        if not await self._exists():
            task = await self._server.ask("post", "indexes", {"uid": self.uid, "primaryKey": "id"})
            await self._server.succeeded([task["taskUid"]], ignore=["index_already_exists"])
        # Another process may have asked for them, or this one before it gave up waiting.
        await self._server.settled(["settingsUpdate"], self.uid)
        found = await self._server.ask("get", f"indexes/{self.uid}/settings")
        await self._refuse_other_vectors(dimension_of(found))
        missing = missing_settings(wanted_settings(self._settings, self._dimension, version), found)
        tasks = [await self._task("patch", "settings", missing)] if missing else []
        if self._build is not None:
            tasks += await self._put(iter([build_document(self._build, self._dimension)]))
        await self._server.succeeded(tasks)

    async def _refuse_other_vectors(self, found: int | None) -> None:
        if found == self._dimension:
            return
        # Not by a filter: before its settings, the index knows none.
        stats = await self._server.ask("get", f"indexes/{self.uid}/stats")
        if stats["numberOfDocuments"]:
            raise Misconfigured(
                f"the index {self.uid} on Meilisearch has vectors of {found} dimensions, expected {self._dimension}",
                "run `lamina reindex`, or remove the index",
            )

    async def _exists(self) -> bool:
        try:
            await self._server.ask("get", f"indexes/{self.uid}")
        except IndexMissing:
            return False
        return True

    async def _put(self, documents: Iterator[dict[str, Any]]) -> list[int]:
        path = "documents?primaryKey=id"
        bodies = payloads(documents, self._settings.payload_mib * MIB)
        return [await self._task("post", path, body, content_type=LINES) for body in bodies]

    async def _task(self, method: str, path: str, body: Any, **options: Any) -> int:
        task = await self._server.ask(method, f"indexes/{self.uid}/{path}", body, **options)
        return int(task["taskUid"])

    async def _fetch(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = await self._server.ask("post", f"indexes/{self.uid}/documents/fetch", dict(asked))
        return found


class MeilisearchIndex:
    """Chunks of memories with their words and, if it has any, their vectors; any number of processes may use it.

    A build stands beside it as ``…-build-3`` and takes its place by a swap, which the server makes at once for every
    process. The build's number is in a document of its index and goes where the index goes: after a crash it tells
    whether the swap was made, and another one would undo it.

    Args:
        settings: The server, and how it is searched.
        name: Its name on the server (``lamina_notes``): ASCII letters, digits, ``_`` and ``-``.
        dimension: Length of the vectors; ``None`` for an index of words alone.
        by_session: Whether a query's session narrows it; messages belong to one, notes outlive it.
    """

    def __init__(
        self, settings: MeilisearchSettings, name: str, *, dimension: int | None, by_session: bool = False
    ) -> None:
        self._settings = settings
        self._dimension = dimension
        self._by_session = by_session
        self._server = MeilisearchServer(settings)
        self._live = self._chunks(name, None)
        self._builds: dict[int, MeilisearchChunks] = {}
        self._identities = f"{settings.prefix}_{INSTALLATION}"

    async def prepare(self) -> bool:
        """Make the index, if there is none; report whether it is empty.

        Raises:
            Misconfigured: If the server is too old, refuses the key, or holds other vectors under this name.
            Unavailable: If it does not answer.
        """
        await self._live.make()
        return await self._live.count() == 0

    async def apply(self, changes: Sequence[Change[Record]]) -> None:
        """Replace the chunks of these memories; searches see them when the call returns."""
        await self._live.apply(changes)

    async def flush(self) -> None:
        """Return at once: a task that succeeded is a transaction that the server has synced to its disk."""

    async def count(self) -> int:
        """Return the number of chunks."""
        await self._live.make()
        return await self._live.count()

    async def inventory(self, tenant: str) -> Mapping[UUID, str]:
        """Return every memory of the tenant with the fingerprint of its chunks."""
        await self._live.make()
        return chunk_fingerprints(await self._live.chunks(tenant))

    def beside(self, build: int) -> MeilisearchChunks:
        """Return the index of a build, which is made when it takes its first changes."""
        return self._builds.setdefault(build, self._chunks(f"{self._live.uid}-build-{build}", build))

    async def switch(self, build: int) -> None:
        """Swap the index of the build with the one that is searched, at once for every process, and remove the latter.

        Raises:
            Unavailable: If the server is not done in time; the switch may be asked for again.
        """
        beside = self.beside(build)
        await self._server.settled(["indexSwap"], self._live.uid)
        if await self._live.made_by() != build:
            await self._swap(beside)
        await beside.drop()
        del self._builds[build]

    async def by_words(self, query: Query) -> list[ChunkHit]:
        """Return the best chunks by their words within the query's scope, best first; none for a query without words.

        Raises:
            Unavailable: If the server does not answer in time.
        """
        return (await self._find(query, by_words=True, by_vector=False)).by_words()

    async def by_vector(self, query: Query) -> list[ChunkHit]:
        """Return the nearest chunks by cosine, best first; none for a query without a vector.

        Raises:
            Unavailable: If the server does not answer in time.
        """
        return (await self._find(query, by_words=False, by_vector=True)).by_vector()

    async def by_both(self, query: Query) -> tuple[list[ChunkHit], list[ChunkHit]]:
        """Return the best chunks by their words, with their cosines, and the nearest ones, each best first.

        Raises:
            Unavailable: If the server does not answer in time.
        """
        candidates = await self._find(query, by_words=True, by_vector=True)
        return candidates.by_words(), candidates.by_vector()

    async def installation(self) -> str | None:
        """Return the identity of the installation that the prefix belongs to."""
        found = await self._kept(INSTALLATION)
        return None if found is None else str(found[INSTALLATION])

    async def belong_to(self, installation: str) -> None:
        """Have the prefix belong to an installation from now on; the index of it is made by its first document."""
        await self._keep({"id": INSTALLATION, INSTALLATION: installation})

    async def mark(self) -> int:
        """Return the number of the last flush; 0 if there is none."""
        found = await self._kept(f"{MARK}-{self._live.uid}")
        return 0 if found is None else int(found[MARK])

    async def set_mark(self, mark: int) -> None:
        """Keep the number of a flush."""
        await self._keep({"id": f"{MARK}-{self._live.uid}", MARK: mark})

    async def _kept(self, id_: str) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = await self._server.ask("get", f"indexes/{self._identities}/documents/{id_}")
        except (DocumentMissing, IndexMissing):
            return None
        return found

    async def _keep(self, document: Mapping[str, Any]) -> None:
        body = json.dumps(document).encode()
        path = f"indexes/{self._identities}/documents?primaryKey=id"
        task = await self._server.ask("post", path, body, content_type=LINES)
        await self._server.succeeded([task["taskUid"]])

    async def probe(self) -> None:
        """Return if the server answers, and lets us ask."""
        await self._server.version()

    async def close(self) -> None:
        """Release the connections."""
        await self._server.close()

    def _chunks(self, uid: str, build: int | None) -> MeilisearchChunks:
        return MeilisearchChunks(self._server, self._settings, uid, dimension=self._dimension, build=build)

    async def _swap(self, beside: MeilisearchChunks) -> None:
        # A build of nothing takes no changes, and there may never have been an index before it.
        await self._live.make()
        await beside.make()
        task = await self._server.ask("post", "swap-indexes", [{"indexes": [self._live.uid, beside.uid]}])
        await self._server.succeeded([task["taskUid"]])

    async def _find(self, query: Query, *, by_words: bool, by_vector: bool) -> Candidates:
        """Return chunks of at least ``limit`` memories, if there are so many, with all their figures."""
        question = index_question(
            query if by_words else replace(query, words=()),
            self._live.uid,
            by_session=self._by_session,
            has_vectors=self._dimension is not None,
            semantic_ratio=self._settings.semantic_ratio,
        )
        for wide in widening(query.limit):
            limit = min(wide, MAX_HITS)
            answers = await self._live.search(question.discovery(limit, by_vector=by_vector))
            found = read_discovery(question, answers, limit)
            if found.is_enough(query.limit) or limit == MAX_HITS:
                break
        return await self._with_cosines(question, await self._with_terms(question, found))

    async def _with_terms(self, question: IndexQuestion, found: Candidates) -> Candidates:
        """Look up which candidates have the terms whose lists were cut short."""
        cut = [term for term, ids in found.having.items() if len(ids) >= found.limit]
        if not cut or len(found.having) == 1:
            return found
        best = found.best_by_words()
        answers = await self._live.search([question.matching(term, best) for term in cut])
        having = dict(found.having)
        for term, answer in zip(cut, answers, strict=True):
            having[term] = tuple(dict.fromkeys((*having[term], *(hit["id"] for hit in answer["hits"]))))
        return replace(found, having=having)

    async def _with_cosines(self, question: IndexQuestion, found: Candidates) -> Candidates:
        """Look up the cosines of candidates that were not chosen by their vectors."""
        ids = [id_ for id_ in dict.fromkeys((*found.best_by_words(), *found.nearest)) if id_ not in found.cosines]
        if question.vector is None or not ids:
            return found
        (answer,) = await self._live.search([question.nearness(ids)])
        return replace(found, cosines={**found.cosines, **cosines_of(answer["hits"])})
