"""Meilisearch for tests: a configured server, and a double of the wire that finds nothing.

:class:`Wire` answers calls in the documented form and keeps what it is given: indexes, their settings, documents by id,
tasks that are first enqueued, then processed, then done. It evaluates no filter and ranks nothing: what a search, a
fetch or a deletion by filter brings is what the test had it say. What it shows is which calls are made, in which order,
and what becomes of each answer; what a real server makes of them, only a real server shows.
"""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from pydantic import SecretStr

from lamina.core.ports import Change, Projection, Record
from lamina.core.queries import Candidate, Place, Query, Ranking
from lamina.core.tiers import Source, Tier
from lamina.settings.stores import MeilisearchSettings
from lamina.stores.index.meilisearch.index import MeilisearchIndex
from lamina.stores.index.ports import Visible
from lamina.stores.index.searchers import Hybrid

VERSION = "1.50.0"
DONE = ("succeeded", "failed", "canceled")


def open_meilisearch(url: str, key: str | None, name: str, dimension: int | None, **options: Any) -> "Opened":
    """Open an index on a server; nothing is asked of it yet."""
    settings = MeilisearchSettings(url=url, api_key=SecretStr(key) if key else None, **options)
    return Opened(MeilisearchIndex(settings, name, dimension=dimension))


class Opened:
    """An index with a source of search over it, whose look-up knows what was applied through it."""

    def __init__(self, index: MeilisearchIndex, min_similarity: float = 0.3) -> None:
        self.index = index
        self.remembered = Remembered()
        self._hybrid = Hybrid(Source.NOTES_HYBRID, index, self.remembered, min_similarity=min_similarity)

    async def apply(self, changes: Sequence[Change[Record]]) -> None:
        self.remembered.take(changes)
        await self.index.apply(changes)

    async def flush(self) -> None:
        await self.index.flush()

    async def inventory(self, tenant: str) -> Mapping[UUID, str]:
        return await self.index.inventory(tenant)

    def beside(self, build: int) -> Projection[Record]:
        return self.index.beside(build)

    async def switch(self, build: int) -> None:
        await self.index.switch(build)

    async def search(self, query: Query) -> Ranking:
        return await self._hybrid.search(query)

    async def close(self) -> None:
        await self.index.close()


class Remembered:
    """A look-up of the states that were applied."""

    def __init__(self) -> None:
        self._records: dict[UUID, Record] = {}

    def take(self, changes: Sequence[Change[Record]]) -> None:
        for change in changes:
            if change.record is None:
                self._records.pop(change.id, None)
            else:
                self._records[change.id] = change.record

    async def fetch(self, query: Query, places: Sequence[Place]) -> Visible:
        known = [place for place in places if place[0] in self._records]
        texts = [self._records[id_].texts[chunk] for id_, chunk in known]
        return Visible({place: self._candidate(place[0]) for place in known}, texts[0] if texts else "")

    def _candidate(self, id_: UUID) -> Candidate:
        record = self._records[id_]
        return Candidate(id_, Tier.NOTES, record.occurred_at, user=record.user)


@dataclass(frozen=True)
class Call:
    """One request, as it came."""

    method: str
    path: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.text.split("\n")]


@dataclass(frozen=True)
class Said:
    """One answer."""

    body: Any
    status: int = 200
    delay_s: float = 0.0


@dataclass
class Task:
    """Something that was asked for and takes its time."""

    uid: int
    type: str
    index: str | None
    call: Call
    error: Mapping[str, str] | None
    status: str = "enqueued"

    def indexes(self) -> set[str]:
        return {uid for pair in self.call.body for uid in pair["indexes"]} if self.index is None else {self.index}

    def view(self) -> dict[str, Any]:
        return {
            "uid": self.uid,
            "indexUid": self.index,
            "status": self.status,
            "type": self.type,
            "error": self.error if self.status == "failed" else None,
            "enqueuedAt": datetime.now(UTC).isoformat(),
        }


@dataclass
class Kept:
    """One index, as far as it was told."""

    settings: dict[str, Any] = field(default_factory=lambda: {"embedders": {}, "filterableAttributes": []})
    documents: dict[str, Any] = field(default_factory=dict)


class Wire:
    """What answers in place of a server; see the module."""

    def __init__(self, version: str = VERSION, key: str | None = None) -> None:
        self.version = version
        self.key = key
        self.calls: list[Call] = []
        self.indexes: dict[str, Kept] = {}
        self.tasks: list[Task] = []
        self.is_busy = False
        self.busy_from: str | None = None  # It is busy from the first task of this type on.
        self._said: dict[tuple[str, str], list[Said]] = {}
        self._failures: dict[str, Mapping[str, str]] = {}
        self._lock = threading.Lock()

    def say(self, method: str, path: str, *answers: Said) -> None:
        """Have these calls answered so, one after the other."""
        self._said.setdefault((method, path), []).extend(answers)

    def fail(self, type_: str, code: str, kind: str = "invalid_request") -> None:
        """Have the next task of a type fail."""
        self._failures[type_] = {"code": code, "type": kind, "message": f"said {code}.", "link": "https://docs"}

    def made(self, method: str, path: str) -> list[Call]:
        """Return the calls of a kind."""
        return [call for call in self.calls if (call.method, call.path) == (method, path)]

    def done(self) -> None:
        """Have everything done that was asked for."""
        with self._lock:
            for _ in DONE:
                self._go_on()

    def answer(self, call: Call) -> Said:
        """Return the answer to a call."""
        with self._lock:
            self.calls.append(call)
            if self.key is not None and call.headers.get("authorization") != f"Bearer {self.key}":
                return _error(403, "invalid_api_key", "The provided API key is invalid.", "auth")
            said = self._said.get((call.method, call.path))
            return said.pop(0) if said else self._known(call)

    def _known(self, call: Call) -> Said:  # noqa: PLR0911 - a line for each route
        match call.method, call.path.strip("/").split("/"):
            case "GET", ["version"]:
                return Said({"pkgVersion": self.version, "commitSha": "", "commitDate": ""})
            case "GET", ["tasks"]:
                return Said({"results": self._asked_tasks(call.parameters)})
            case "GET", ["indexes"]:
                return Said({"results": [{"uid": uid, "primaryKey": "id"} for uid in self.indexes]})
            case "POST", ["indexes"]:
                return self._task("indexCreation", call.body["uid"], call)
            case "POST", ["swap-indexes"]:
                return self._task("indexSwap", None, call)
            case "POST", ["multi-search"]:
                nothing: dict[str, Any] = {"hits": [], "estimatedTotalHits": 0}
                return Said({"results": [nothing for _ in call.body["queries"]]})
            case method, ["indexes", uid, *rest]:
                return self._of_index(method, uid, rest, call)
        return _error(404, "not_found", "no such route")

    def _of_index(  # noqa: C901, PLR0911 - a line for each route
        self, method: str, uid: str, rest: list[str], call: Call
    ) -> Said:
        if method == "GET" and uid not in self.indexes:
            return _error(404, "index_not_found", f"Index `{uid}` not found.")
        match method, rest:
            case "GET", []:
                return Said({"uid": uid, "primaryKey": "id"})
            case "DELETE", []:
                return self._task("indexDeletion", uid, call)
            case "GET", ["settings"]:
                return Said(self.indexes[uid].settings)
            case "PATCH", ["settings"]:
                return self._task("settingsUpdate", uid, call)
            case "GET", ["stats"]:
                return Said({"numberOfDocuments": len(self.indexes[uid].documents)})
            case "GET", ["documents", id_]:
                found = self.indexes[uid].documents.get(id_)
                return Said(found) if found else _error(404, "document_not_found", f"Document `{id_}` not found.")
            case "POST", ["documents"]:
                return self._task("documentAdditionOrUpdate", uid, call)
            case "POST", ["documents", "delete"]:
                return self._task("documentDeletion", uid, call)
            case "POST", ["documents", "fetch"]:
                return Said({"results": [], "total": 0, "offset": 0, "limit": call.body["limit"]})
        return _error(404, "not_found", "no such route")

    def _task(self, type_: str, index: str | None, call: Call) -> Said:
        task = Task(len(self.tasks), type_, index, call, self._failures.pop(type_, None))
        self.tasks.append(task)
        self.is_busy |= type_ == self.busy_from
        shown = {"taskUid": task.uid, "indexUid": index, "status": "enqueued", "type": type_}
        return Said({**shown, "enqueuedAt": datetime.now(UTC).isoformat()}, 202)

    def _asked_tasks(self, asked: Mapping[str, str]) -> list[dict[str, Any]]:
        if not self.is_busy:
            self._go_on()
        names = ("uids", "types", "statuses", "indexUids")
        uids, types, states, indexes = (asked.get(name, "").split(",") for name in names)
        return [
            task.view()
            for task in self.tasks
            if (uids == [""] or str(task.uid) in uids)
            and (types == [""] or task.type in types)
            and (states == [""] or task.status in states)
            and (indexes == [""] or not task.indexes().isdisjoint(indexes))
        ][: int(asked["limit"])]

    def _go_on(self) -> None:
        for task in self.tasks:
            if task.status == "processing":
                task.status = "failed" if task.error else "succeeded"
                if not task.error:
                    self._perform(task)
            elif task.status == "enqueued":
                task.status = "processing"

    def _perform(self, task: Task) -> None:
        match task.type:
            case "indexCreation":
                self.indexes.setdefault(str(task.index), Kept())
            case "indexDeletion":
                self.indexes.pop(str(task.index), None)
            case "indexSwap":
                for pair in task.call.body:
                    one, other = pair["indexes"]
                    self.indexes[one], self.indexes[other] = self.indexes[other], self.indexes[one]
            case "settingsUpdate":
                self.indexes[str(task.index)].settings.update(task.call.body)
            case "documentAdditionOrUpdate":
                kept = self.indexes.setdefault(str(task.index), Kept())
                kept.documents.update({line["id"]: line for line in task.call.lines})


@contextmanager
def served(wire: Wire, port: int = 0) -> Iterator[str]:
    """Serve the wire on a port of this machine, a free one if none is given; yield its URL."""

    connections: list[socket.socket] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # Headers and body in one packet: the second would wait for the first to be acknowledged.

        def _respond(self) -> None:
            split = urlsplit(self.path)
            parameters = {name: values[0] for name, values in parse_qs(split.query).items()}
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            said = wire.answer(Call(self.command, split.path, parameters, headers, text))
            time.sleep(said.delay_s)
            body = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
            self.send_response(said.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_DELETE = _respond  # noqa: N815 - the names that the base class calls

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def process_request(self, request: Any, client_address: Any) -> None:
            connections.append(request)
            super().process_request(request, client_address)

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # A client that went away.

    server = Server(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        for connection in connections:  # Those that are kept open, as a server's end closes them.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _error(status: int, code: str, message: str, kind: str = "invalid_request") -> Said:
    return Said({"message": message, "code": code, "type": kind, "link": f"https://docs/errors#{code}"}, status)


def refused(status: int, code: str, kind: str = "invalid_request") -> Said:
    """Return the answer of a server that does not do what it is asked."""
    return _error(status, code, f"said {code}.", kind)
