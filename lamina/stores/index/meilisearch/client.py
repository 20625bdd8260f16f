"""Calls to a Meilisearch server; this module alone imports its driver."""

import asyncio
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from meilisearch import Client
from meilisearch.errors import MeilisearchApiError, MeilisearchCommunicationError, MeilisearchTimeoutError
from requests import Session
from requests.exceptions import RequestException

from lamina.errors import LaminaError, Misconfigured, Unavailable
from lamina.settings.stores import MeilisearchSettings

PART = "index"
OLDEST_SERVER = (1, 13)
LINES = "application/x-ndjson"
JSON = "application/json"
_KEY_REMEDY = "set hybrid.api_key to a key that may search, and change documents, indexes and settings"
_CREDENTIALS = re.compile(r"//[^/@]*@")
_UNDER_WAY = {"enqueued", "processing"}
_REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
_PASSING = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
_SERVERS_FAULTS = {"internal", "system"}


class IndexMissing(Unavailable):
    """An index that should be on the server is not there."""


class DocumentMissing(LaminaError):
    """A document that was asked for is not there."""


class _Connection:
    """The driver's transport over connections that are kept: by itself it opens one for every call.

    Used in one thread at a time, for it writes the headers of a call into itself.

    Args:
        url: Of the server.
        key: The API key, if it wants one.
    """

    def __init__(self, url: str, key: str | None) -> None:
        self._client = Client(url, key)
        self.session = Session()

    def call(self, method: str, path: str, body: Any, content_type: str | None, timeout_s: float) -> Any:
        """Return the decoded answer."""
        config: Any = self._client.http.config
        config.timeout = timeout_s
        return self._client.http.send_request(getattr(self.session, method), path, body, content_type)


class MeilisearchServer:
    """A server's answers, decoded; each call has a deadline and one of a few threads, for the driver blocks.

    Args:
        settings: Where it is and how long to wait.
    """

    def __init__(self, settings: MeilisearchSettings) -> None:
        self._settings = settings
        self._shown = _CREDENTIALS.sub("//", settings.url)
        self._threads = ThreadPoolExecutor(settings.connections, thread_name_prefix="meilisearch")
        self._own = threading.local()
        self._connections: list[_Connection] = []

    async def version(self) -> tuple[int, int]:
        """Return the server's version.

        Raises:
            Misconfigured: If it is too old, is no Meilisearch, or refuses the key.
            Unavailable: If it does not answer.
        """
        found = await self.ask("get", "version", timeout_s=self._settings.read_timeout_s)
        version = _version(found)
        if version is None:
            raise Misconfigured(
                f"{self._shown} tells no version of Meilisearch", "set hybrid.url to a Meilisearch server"
            )
        if version < OLDEST_SERVER:
            raise Misconfigured(
                f"the Meilisearch server is of version {found['pkgVersion']}, older than 1.13", "upgrade the server"
            )
        return version

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        timeout_s: float | None = None,
        content_type: str | None = JSON,
    ) -> Any:
        """Return the answer to one call.

        Args:
            method: ``get``, ``post``, ``patch`` or ``delete``.
            path: Below the server's URL, with its parameters.
            body: JSON values, or bytes that are sent as they are.
            timeout_s: Seconds after which it is given up; those of a change if not given.
            content_type: Of the body.

        Raises:
            Unavailable: If the server does not answer in time, fails, or lacks the index (:class:`IndexMissing`).
            Missing: If it lacks the document.
            Misconfigured: If it refuses the key or the call.
        """
        deadline_s = timeout_s or self._settings.task_timeout_s
        content_type = None if method == "get" else content_type
        call = partial(self._call, method, path, body, content_type, deadline_s)
        try:
            async with asyncio.timeout(deadline_s):
                return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except TimeoutError as error:
            raise Unavailable(PART, f"no answer from {self._shown} within {deadline_s:g} s") from error

    async def succeeded(self, tasks: Sequence[int], *, ignore: Sequence[str] = ()) -> None:
        """Wait for tasks to be done.

        Args:
            tasks: Their numbers.
            ignore: Codes of errors that leave things as they were wanted.

        Raises:
            Unavailable: If one is not done in time, was cancelled, or failed by a fault of the server.
            Misconfigured: If one failed by what it was asked to do.
        """
        left = tuple(tasks)
        try:
            async with asyncio.timeout(self._settings.task_timeout_s):
                for pause_s in _pauses():
                    states = await self._tasks({"uids": ",".join(map(str, left)), "limit": len(left)}) if left else []
                    _refuse_lost(left, states)
                    _refuse_failed(states, ignore)
                    left = tuple(int(state["uid"]) for state in states if state["status"] in _UNDER_WAY)
                    if not left:
                        return
                    await asyncio.sleep(pause_s)
        except TimeoutError as error:
            raise Unavailable(
                PART, f"task {left[0]} of meilisearch is not done after {self._settings.task_timeout_s:g} s"
            ) from error

    async def settled(self, types: Sequence[str], index: str) -> None:
        """Wait for the tasks of these types that were asked for before, by whomever; however they end.

        Raises:
            Unavailable: If they are not done in time.
        """
        asked = {"types": ",".join(types), "statuses": ",".join(sorted(_UNDER_WAY)), "indexUids": index, "limit": 1}
        try:
            async with asyncio.timeout(self._settings.task_timeout_s):
                for pause_s in _pauses():
                    if not await self._tasks(asked):
                        return
                    await asyncio.sleep(pause_s)
        except TimeoutError as error:
            raise Unavailable(
                PART, f"tasks of the index {index} are not done after {self._settings.task_timeout_s:g} s"
            ) from error

    async def close(self) -> None:
        """Release the threads and their connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for connection in self._connections:
            connection.session.close()

    async def _tasks(self, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = await self.ask("get", f"tasks?{urlencode(parameters)}")
        return list(found["results"])

    def _call(self, method: str, path: str, body: Any, content_type: str | None, timeout_s: float) -> Any:
        try:
            return self._connection().call(method, path, body, content_type, timeout_s)
        except MeilisearchApiError as error:
            raise _library_error(error, path) from error
        except (MeilisearchCommunicationError, MeilisearchTimeoutError, RequestException) as error:
            cause = type(error.__cause__ or error).__name__
            raise Unavailable(PART, f"{self._shown} does not answer: {cause}") from error

    def _connection(self) -> _Connection:
        if not hasattr(self._own, "connection"):
            key = self._settings.api_key
            self._own.connection = _Connection(self._settings.url.rstrip("/"), key.get_secret_value() if key else None)
            self._connections.append(self._own.connection)
        return self._own.connection  # type: ignore[no-any-return]


def _pauses() -> Iterator[float]:
    """Yield the seconds between two questions of how far a task is: 5 ms at first, half a second in the end."""
    pause_s = 0.005
    while True:
        yield pause_s
        pause_s = min(0.5, pause_s * 1.5)


def _version(found: Any) -> tuple[int, int] | None:
    try:
        major, minor, *_ = found["pkgVersion"].split(".")
        return int(major), int(minor)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _library_error(error: MeilisearchApiError, path: str) -> LaminaError:
    """Map an answer of the server to the library's own error."""
    said = f"{error.code or f'HTTP {error.status_code}'}: {error.message}"
    match error.code, error.status_code:
        case "index_not_found", _:
            return IndexMissing(PART, f"{said} Run `lamina reindex`, or start the service again")
        case "document_not_found", _:
            return DocumentMissing(said)
        case "payload_too_large", _:
            return Misconfigured(f"meilisearch refuses a change: {said}", "lower hybrid.payload_mib")
        case _, status if status in _REFUSED:
            return Misconfigured(f"meilisearch refuses the API key: {said}", _KEY_REMEDY)
        case _, status if status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return Unavailable(PART, said)
        case _:
            return Misconfigured(
                f"meilisearch refuses {path.split('?', maxsplit=1)[0]}: {said}", "run `lamina reindex`"
            )


def _refuse_lost(asked: Sequence[int], states: Sequence[Mapping[str, Any]]) -> None:
    lost = set(asked) - {int(state["uid"]) for state in states}
    if lost:
        raise Unavailable(PART, f"task {min(lost)} is not known to meilisearch any more")


def _refuse_failed(states: Sequence[Mapping[str, Any]], ignore: Sequence[str]) -> None:
    for state in sorted(states, key=lambda item: int(item["uid"])):
        error = state.get("error") or {}
        if state["status"] == "canceled":
            raise Unavailable(PART, f"task {state['uid']} ({state['type']}) of meilisearch was cancelled")
        if state["status"] == "failed" and error.get("code") not in ignore:
            raise _failed(state, error)


def _failed(state: Mapping[str, Any], error: Mapping[str, Any]) -> LaminaError:
    said = f"task {state['uid']} ({state['type']}) failed, {error.get('code')}: {error.get('message')}"
    if error.get("type") in _SERVERS_FAULTS:
        return Unavailable(PART, said)
    return Misconfigured(f"meilisearch: {said}", "run `lamina reindex`")
