"""Calls to a Meilisearch server.

The official client blocks, and an asynchronous one of others brings a second HTTP library for the same bare calls.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import httpx

from lamina.errors import LaminaError, Misconfigured, Unavailable
from lamina.settings import MeilisearchSettings

PART = "index"
OLDEST_SERVER = (1, 13)
LINES = "application/x-ndjson"
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.5
_KEY_REMEDY = "set hybrid.api_key to a key that may search, and change documents, indexes and settings"
_CREDENTIALS = re.compile(r"//[^/@]*@")
_UNFINISHED = {"enqueued", "processing"}
_REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
_TEMPORARY = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
_SERVERS_FAULTS = {"internal", "system"}


class IndexMissing(Unavailable):
    """An index that should be on the server is not there."""


class DocumentMissing(LaminaError):
    """A document that was asked for is not there."""


class MeilisearchServer:
    """The decoded answers of a server; each call has a deadline.

    Args:
        settings: Its address, and how long to wait.
    """

    def __init__(self, settings: MeilisearchSettings) -> None:
        key = settings.api_key
        self._settings = settings
        self._shown = _CREDENTIALS.sub("//", settings.url)
        self._client = httpx.AsyncClient(
            base_url=f"{settings.url.rstrip('/')}/",
            headers={"Authorization": f"Bearer {key.get_secret_value()}"} if key else {},
            limits=httpx.Limits(max_connections=settings.connections, max_keepalive_connections=settings.connections),
            timeout=None,  # noqa: S113 - `ask` bounds the whole call, the wait for a connection included.
            follow_redirects=True,
        )

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

    async def ask(self, method: str, path: str, body: Any = None, *, timeout_s: float | None = None) -> Any:
        """Return the answer to one call.

        Args:
            method: ``get``, ``post``, ``patch`` or ``delete``.
            path: Below the server's URL, with its parameters.
            body: JSON values; bytes are JSON lines.
            timeout_s: Seconds after which it is given up; those of a change if not given.

        Raises:
            Unavailable: If the server does not answer in time, fails, or lacks the index (:class:`IndexMissing`).
            DocumentMissing: If it lacks the document.
            Misconfigured: If it refuses the key or the call.
        """
        deadline_s = timeout_s or self._settings.task_timeout_s
        is_lines = isinstance(body, bytes)
        content: dict[str, Any] = {"content": body, "headers": {"Content-Type": LINES}} if is_lines else {"json": body}
        try:
            async with asyncio.timeout(deadline_s):
                answer = await self._client.request(method, path, **content)
            if answer.is_error:
                raise _refusal(answer, path)
            return answer.json()
        except TimeoutError as error:
            raise Unavailable(PART, f"no answer from {self._shown} within {deadline_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise Unavailable(PART, f"{self._shown} does not answer: {type(error).__name__}") from error

    async def wait_for_success(self, tasks: Sequence[int], *, ignore: Sequence[str] = ()) -> None:
        """Wait for tasks to be done.

        Args:
            tasks: Their numbers.
            ignore: Codes of errors that leave things as they were wanted.

        Raises:
            Unavailable: If one is not done in time, was cancelled, or failed by a fault of the server.
            Misconfigured: If one failed by a fault of the request.
        """
        left = tuple(tasks)

        async def are_done() -> bool:
            nonlocal left
            states = await self._tasks({"uids": ",".join(map(str, left)), "limit": len(left)}) if left else []
            _refuse_lost(left, states)
            _refuse_failed(states, ignore)
            left = tuple(int(state["uid"]) for state in states if state["status"] in _UNFINISHED)
            return not left

        await self._wait_until(are_done, lambda: f"task {left[0]} of meilisearch is")

    async def wait_for_end(self, types: Sequence[str], index: str) -> None:
        """Wait for the tasks of these types that any process asked for before; however they end.

        Raises:
            Unavailable: If they are not done in time.
        """
        asked = {"types": ",".join(types), "statuses": ",".join(sorted(_UNFINISHED)), "indexUids": index, "limit": 1}

        async def are_done() -> bool:
            return not await self._tasks(asked)

        await self._wait_until(are_done, lambda: f"tasks of the index {index} are")

    async def close(self) -> None:
        """Release the connections."""
        await self._client.aclose()

    async def _tasks(self, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = await self.ask("get", f"tasks?{urlencode(parameters)}")
        return list(found["results"])

    async def _wait_until(self, are_done: Callable[[], Awaitable[bool]], describe: Callable[[], str]) -> None:
        pause_s = FIRST_PAUSE_S
        try:
            async with asyncio.timeout(self._settings.task_timeout_s):
                while not await are_done():
                    await asyncio.sleep(pause_s)
                    pause_s = min(LONGEST_PAUSE_S, pause_s * 1.5)
        except TimeoutError as error:
            raise Unavailable(PART, f"{describe()} not done after {self._settings.task_timeout_s:g} s") from error


def _version(found: Any) -> tuple[int, int] | None:
    try:
        major, minor, *_ = found["pkgVersion"].split(".")
        return int(major), int(minor)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _refusal(answer: httpx.Response, path: str) -> LaminaError:
    """Return the library's own error for an answer of the server."""
    try:
        found = answer.json()
    except ValueError:
        found = None
    code = found.get("code") if isinstance(found, dict) else None
    message = found.get("message") if isinstance(found, dict) else None
    text = f"{code or f'HTTP {answer.status_code}'}: {message or answer.text or answer.reason_phrase}"
    match code, answer.status_code:
        case "index_not_found", _:
            return IndexMissing(PART, f"{text} Run `lamina reindex`, or start the service again")
        case "document_not_found", _:
            return DocumentMissing(text)
        case "payload_too_large", _:
            return Misconfigured(f"meilisearch refuses a change: {text}", "lower hybrid.payload_mib")
        case _, status if status in _REFUSED:
            return Misconfigured(f"meilisearch refuses the API key: {text}", _KEY_REMEDY)
        case _, status if status in _TEMPORARY or answer.is_server_error:
            return Unavailable(PART, text)
        case _:
            return Misconfigured(
                f"meilisearch refuses {path.split('?', maxsplit=1)[0]}: {text}", "run `lamina reindex`"
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
            raise _failure(state, error)


def _failure(state: Mapping[str, Any], error: Mapping[str, Any]) -> LaminaError:
    text = f"task {state['uid']} ({state['type']}) failed, {error.get('code')}: {error.get('message')}"
    if error.get("type") in _SERVERS_FAULTS:
        return Unavailable(PART, text)
    return Misconfigured(f"meilisearch: {text}", "run `lamina reindex`")
