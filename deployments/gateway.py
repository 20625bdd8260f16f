"""`/openai/v1`: an OpenAI-compatible endpoint before another one: it recalls before a call and records after it.

A request goes on as it came, with one item more; an answer comes back as it is. Without Lamina's stores, or where they
take too long, it goes on without memory: who asks a model never waits for a memory that is away.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from cachetools import TTLCache
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from deployments.bodies import body_of
from deployments.gateway_cache import NOT_ASKED, CacheLookup, GatewayCache
from deployments.gateway_chains import GatewayChains
from deployments.inner_client import SCOPE_FIELDS, ids_of, inner_client
from deployments.restarts import GATEWAY_HEADER
from lamina.api.openai.answers import AnswerReader, ModelAnswer, reader_of
from lamina.api.openai.cached_answers import KeptAnswer
from lamina.api.openai.requests import ModelRequest, Said, Shape, ToolResult, read_request, storable, with_block
from lamina.core.principals import Principal, Verb
from lamina.core.quotas import Resource, spend
from lamina.core.tiers import TIERS
from lamina.errors import InvalidInput, LaminaError, Overloaded, Unavailable, describe_error
from lamina.host.authorities import trusted_authorities
from lamina.policies.caching.cache_keys import digest
from lamina.settings.doors import GatewaySettings
from lamina.settings.loading import Settings, served_tiers
from lamina.stores.postgres.response_chains import ResponseChains
from lamina.text.hygiene import MAX_QUERY_CHARS, clean_id, clean_name, is_blank
from lamina.text.parts import ends_of
from lamina.text.turn_parts import turn_parts

if TYPE_CHECKING:
    import httpx

PREFIX = "/openai/v1"
BODY_MIB = 32
SHAPES: Mapping[tuple[str, str], Shape] = {
    ("POST", "chat/completions"): Shape.CHAT,
    ("POST", "responses"): Shape.RESPONSES,
}
PASSED = frozenset({("POST", "embeddings"), ("GET", "models")})
"""Calls that are passed on without memory. All others are refused: they would reach files under the operator's key."""
HEADERS = frozenset(f"lamina-{name}" for name in (*SCOPE_FIELDS, "session", "record", "cache", "upstream-key"))
LARGE_BYTES = 64 * 1024
"""Of a body that is read in a thread."""
MOST_HELD_BYTES = 256 * 1024 * 1024
"""Of the large requests that a router holds until the endpoint has them."""
KEPT_BLOCKS, BLOCK_S = 1_000, 300.0
"""Seconds for which a question keeps its block while a model calls tools: its prompt must not change in the middle."""
TOO_LONG = "the answer of the endpoint at gateway.base_url took longer than gateway.answer_s"
_OF_CONNECTION = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    }
)
_NOT_SENT = _OF_CONNECTION | {"authorization", "host", "content-length", "accept-encoding", "expect", "cookie"}
_NOT_RETURNED = _OF_CONNECTION | {"set-cookie"}
_logger = logging.getLogger(__name__)


class GatewayRoute(Route):
    """The route of the gateway.

    Args:
        behind: The API behind the front door.
        settings: Those of the gateway, and which tiers are served.
        chains: The sessions of responses that are continued.
    """

    openapi_extra = body_of(mib=BODY_MIB)

    def __init__(self, behind: ASGIApp, settings: Settings, chains: ResponseChains) -> None:
        self._gateway = _Gateway(behind, settings, GatewayChains(chains))
        super().__init__(f"{PREFIX}/{{call:path}}", endpoint=self._gateway, include_in_schema=False)

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        await self._gateway.close()


@dataclass(frozen=True, slots=True)
class _Recall:
    """The outcome of a recall.

    Args:
        lookup: Of the answer that is made with it.
    """

    state: str
    memories: int = 0
    lookup: CacheLookup = NOT_ASKED

    def headers(self) -> dict[str, str]:
        return {
            GATEWAY_HEADER: self.state,
            "Lamina-Memories": str(self.memories),
            "Lamina-Cache": self.lookup.state,
        }


_OFF = _Recall("off")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that memory has a part in, and who asks.

    Args:
        session: ``None`` where it continues a response or conversation, and names none.
        recall_until: The loop's time at which it goes on, whatever is not found yet.
    """

    request: ModelRequest
    principal: Principal
    ids: Mapping[str, str]
    session: str | None
    is_recorded: bool
    recall_until: float
    lookup: CacheLookup = NOT_ASKED


class _Gateway:
    """Passes calls on, with memory where they ask a model."""

    def __init__(self, behind: ASGIApp, settings: Settings, chains: GatewayChains) -> None:
        self._behind = behind
        self._settings = settings.gateway
        self._off = TIERS.keys() - served_tiers(settings)
        self._http: httpx.AsyncClient | None = None
        # Each with the epoch at which it was recalled, where that is known.
        self._blocks: TTLCache[Any, tuple[str, int, Any]] = TTLCache(KEPT_BLOCKS, BLOCK_S)
        self._chains = chains
        self._held_bytes = 0
        self._cache = GatewayCache(behind, settings.gateway)
        self._keep_bytes = settings.caches.semantic.max_response_bytes
        self._arguments_bytes = settings.write.max_metadata_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def _answer(self, request: Request) -> Response:
        call = request.method, request.path_params["call"]
        shape = SHAPES.get(call)
        if self._settings.base_url is None:
            return _refusal(HTTPStatus.NOT_FOUND, "there is no gateway here; set gateway.base_url to an endpoint")
        if shape is None and call not in PASSED:
            known = ", ".join(f"{method} {PREFIX}/{path}" for method, path in (*SHAPES, *sorted(PASSED)))
            return _refusal(HTTPStatus.NOT_FOUND, f"{call[0]} {request.url.path}: is not passed on; {known} are")
        with self._held(int(request.headers.get("content-length", "0"))):
            body = [b"".join([part async for part in request.stream()])]
            asked = None if shape is None else await self._read(request, shape, body[0])
            if asked is not None and asked.lookup.answer is not None:
                return self._replayed(request, asked, asked.lookup.answer, body)
            recall = _OFF if asked is None else await self._with_memories(asked, body)
            asked = asked and replace(asked, lookup=recall.lookup)
            try:
                passing = await self._passing(request, asked, body)
            except Exception as error:  # noqa: BLE001 - of every kind of failure the client hears alike
                return _unreachable(error, recall)
        return StreamingResponse(
            passing.parts(),
            passing.status,
            headers=passing.headers | recall.headers(),
            background=BackgroundTask(self._remember, asked, passing) if asked and passing.is_read else None,
        )

    async def _passing(self, request: Request, asked: _Asked | None, body: list[bytes]) -> "_Passing":
        """Ask the endpoint; its answer is read beside where it is to be remembered."""
        begun = time.monotonic()
        answer = await self._ask(request, body)
        reader = None
        if asked is not None and asked.is_recorded and answer.status_code == HTTPStatus.OK:
            reader = reader_of(asked.request.shape, answer.headers.get("content-type", ""))
        keep_bytes = 0 if asked is None or asked.lookup.question is None else self._keep_bytes
        return _Passing(answer, reader, self._settings.answer_s, keep_bytes, begun)

    def _replayed(self, request: Request, asked: _Asked, kept: KeptAnswer, body: list[bytes]) -> Response:
        """Return an answer that was kept, in the form in which it came; a stale one is renewed behind it."""

        async def after() -> None:
            reader = reader_of(asked.request.shape, kept.media_type)
            reader.feed(kept.body.encode())
            answer = reader.answer()
            if answer is not None and asked.is_recorded:
                await self._record(asked, answer, None)
            if asked.lookup.is_to_renew and asked.is_recorded:
                await self._renew(request, asked, body)

        async def parts() -> AsyncIterator[bytes]:
            for part in kept.parts():
                yield part

        headers = _Recall("off", lookup=asked.lookup).headers()
        # Starlette would add a character set to a type without one.
        sent = {"content-type": kept.media_type} | headers
        return StreamingResponse(parts(), headers=sent, background=BackgroundTask(after))

    async def _renew(self, request: Request, asked: _Asked, body: list[bytes]) -> None:
        """Ask the endpoint for a fresh answer in place of a stale one, for later callers."""
        try:
            recall = await self._with_memories(replace(asked, recall_until=self._recall_until()), body)
            asked = replace(asked, lookup=recall.lookup)
            passing = await self._passing(request, asked, body)
            async for _ in passing.parts():
                pass
        except Exception as error:  # noqa: BLE001 - its client has an answer already
            _logger.warning("a stale answer was not renewed: %s", describe_error(error))
            return
        answer = await asyncio.to_thread(passing.answer)
        if answer is not None:
            spend(Resource.MODEL_TOKENS, answer.input_tokens + answer.output_tokens)
            await self._keep(asked, answer, passing)

    async def _keep(self, asked: _Asked, answer: ModelAnswer, passing: "_Passing") -> None:
        kept = passing.kept()
        if kept is not None and (asked.lookup.keeps_calls or not is_blank(answer.text)):
            await self._cache.keep(asked.lookup, kept, asked.principal, asked.ids)

    @contextmanager
    def _held(self, size_bytes: int) -> Iterator[None]:
        """Count the bytes of a large request while they are held.

        Raises:
            Overloaded: If large requests hold too much already; small ones always go on.
        """
        counted = size_bytes if size_bytes > LARGE_BYTES else 0
        if counted and self._held_bytes + counted > MOST_HELD_BYTES:
            raise Overloaded("gateway", f"large requests hold {self._held_bytes} bytes", 1)
        self._held_bytes += counted
        try:
            yield
        finally:
            self._held_bytes -= counted

    async def _read(self, request: Request, shape: Shape, body: bytes) -> _Asked | None:
        """Return the request with its scope; ``None`` where nobody can read it, or it wants no memory."""
        read = _read_body(shape, body) if len(body) < LARGE_BYTES else await asyncio.to_thread(_read_body, shape, body)
        if read is None:
            return None
        unknown = [name for name in request.headers if name.startswith("lamina-") and name not in HEADERS]
        if unknown:
            raise InvalidInput(unknown[0], f"is no header of the gateway; expected one of {', '.join(sorted(HEADERS))}")
        principal: Principal = request.scope["state"]["principal"]
        named = {**read.ids, **ids_of(request.headers, (*SCOPE_FIELDS, "session"))}
        sent = named.pop("session", None)
        session = clean_id(sent, "session") if sent else None
        if session is None and not read.chain:
            session = f"chat-{read.opening}"
        is_recorded = (
            read.stores
            and request.headers.get("lamina-record", "").lower() != "off"
            and Verb.WRITE in principal.allowed_verbs()
        )
        until = self._recall_until()
        lookup = await self._cache.look_up(request, body, read, principal, named, until)
        return _Asked(read, principal, named, session, is_recorded, until, lookup)

    def _recall_until(self) -> float:
        """Return the loop's time until which all that memory has for a request that came now is looked up."""
        return asyncio.get_running_loop().time() + self._settings.recall_s

    async def _with_memories(self, asked: _Asked, body: list[bytes]) -> _Recall:
        """Put memories into a body, in its place in the list, if there are any and they come in time."""
        read = asked.request
        if is_blank(read.question) or read.is_remembered or Verb.READ not in asked.principal.allowed_verbs():
            return _Recall("off", lookup=asked.lookup)
        # A digest, since the question may have a million characters.
        key = asked.principal, tuple(sorted(asked.ids.items())), asked.session, read.history, digest(read.question)
        found = self._blocks.get(key) if read.is_continued else None
        if found is None or asked.lookup.epoch not in {None, found[2]}:
            try:
                fresh = *(await self._recalled(asked)), asked.lookup.epoch
            except (Unavailable, TimeoutError, InvalidInput) as error:
                if isinstance(error, InvalidInput) and error.field != "query":
                    raise
                if found is None:
                    _logger.warning("a request went on without memories: %s", error or "none were found in time")
                    return _Recall("unavailable", lookup=asked.lookup)
                fresh = found
            # The block of a question stays while tools are called: where the memory has another one by now, the answer
            # from it is not kept.
            if found is None or fresh[:2] == found[:2]:
                found = self._blocks[key] = fresh
        block, memories, epoch = found
        lookup = asked.lookup.made_from(epoch)
        if not block:
            return _Recall("empty", lookup=lookup)
        change = partial(_changed, body[0], read, block, self._settings)
        body[0] = change() if len(body[0]) < LARGE_BYTES else await asyncio.to_thread(change)
        return _Recall("recalled", memories, lookup)

    async def _recalled(self, asked: _Asked) -> tuple[str, int]:
        """Return the block for a question, and how many memories are in it.

        Raises:
            LaminaError: If the scope is none, or reaches further than the key.
            Unavailable: If the stores do not answer.
            TimeoutError: If they take too long.
        """
        question = ends_of(asked.request.question, MAX_QUERY_CHARS - 1)
        wishes: dict[str, Any] = {}
        async with (
            asyncio.timeout_at(asked.recall_until),
            inner_client(self._behind, asked.principal, asked.ids) as api,
        ):
            if not self._settings.own_session:
                wishes["filters"] = {"not": {"session": {"eq": await self._session_of(asked)}}}
            answer = await api.context(question, budget_tokens=self._settings.budget_tokens, **wishes)
        missing = set(answer["degraded"]) - self._off
        if missing and not answer["results"]:
            raise Unavailable("memory", f"without {', '.join(sorted(missing))}")
        return answer["text"], len(answer["results"])

    async def _session_of(self, asked: _Asked, *, is_answered: bool = False) -> str:
        """Return the session of a request: the one it names, or that of the conversation which it begins or continues.

        Args:
            asked: The request.
            is_answered: Whether its client has its answer, and waits no more.

        Raises:
            LaminaError: If the scope is none or reaches further than the key, or the stores do not answer.
        """
        chain = asked.request.chain
        if asked.session is not None or chain is None:
            return asked.session or f"chat-{asked.request.opening}"
        is_patient = is_answered and asked.request.follows_response
        find = self._chains.find_recorded if is_patient else self._chains.find
        known = await find(asked.principal, asked.ids, chain)
        # Ids of responses may be longer than those of sessions.
        return known or _id_or_none(f"chat-{chain}") or f"chat-{digest(chain).hex()}"

    async def _ask(self, request: Request, body: list[bytes]) -> "httpx.Response":
        """Send a request on; its body is taken out of the list, so that nobody holds it while the model answers."""
        http = self._client()
        sent = {
            name: value
            for name, value in request.headers.items()
            if name not in _NOT_SENT and not name.startswith("lamina-")
        }
        key = self._settings.api_key
        token = request.headers.get("lamina-upstream-key") if key is None else key.get_secret_value()
        if token:
            sent["authorization"] = f"Bearer {token}"
        url = f"{str(self._settings.base_url).rstrip('/')}/{request.path_params['call']}"
        query = request.scope["query_string"].decode("latin-1")
        # As it is: what was packed could not be read while it passes.
        sent |= {"accept-encoding": "identity", "content-length": str(sum(map(len, body)))}
        passed_on = http.build_request(
            request.method, f"{url}?{query}" if query else url, content=_once(body) if body else b"", headers=sent
        )
        return await http.send(passed_on, stream=True)

    def _client(self) -> "httpx.AsyncClient":
        import httpx  # noqa: PLC0415 - half a second, which most services never need

        if self._http is None:
            settings = self._settings
            timeout = httpx.Timeout(settings.silence_s, connect=settings.connect_s)
            # Redirects are not followed: the body and the token are for this endpoint alone.
            self._http = httpx.AsyncClient(
                verify=trusted_authorities(), timeout=timeout, limits=httpx.Limits(max_connections=None)
            )
        return self._http

    async def _remember(self, asked: _Asked, passing: "_Passing") -> None:
        """Keep and record an answer that came whole; failures are logged, since its client has it already."""
        answer = await asyncio.to_thread(passing.answer)
        if answer is None:
            return
        spend(Resource.MODEL_TOKENS, answer.input_tokens + answer.output_tokens)
        # Before the record, which may teach something: then the answer ends with what it was made from.
        await self._keep(asked, answer, passing)
        usage = {
            "provider": self._settings.provider,
            "model": _id_or_none(answer.model or asked.request.model),
            "input_tokens": answer.input_tokens,
            "cached_tokens": min(answer.cached_tokens, answer.input_tokens),
            "output_tokens": answer.output_tokens,
            "latency_ms": passing.latency_ms,
        }
        await self._record(asked, answer, {name: value for name, value in usage.items() if value is not None})

    async def _record(self, asked: _Asked, answer: ModelAnswer, usage: dict[str, Any] | None) -> None:
        """Record a turn; one that asked no model has no usage, and a response that another turn made."""
        read = asked.request
        model_use: dict[str, Any] = {} if usage is None else {"usage": usage}
        messages = [_message("user", said) for said in read.said if not is_blank(said.text)]
        if not is_blank(answer.text):
            messages.append(_message("assistant", Said(answer.text, None, f"answer-{read.digest}")))
        made, continued = (
            storable(chain) if chain and read.shape is Shape.RESPONSES else None for chain in (answer.id, read.chain)
        )
        chains = [chain for chain in (made, continued) if chain]
        session = asked.session
        try:
            # After the answer: the turn that it continues may have come to another router, and be recorded by now.
            session = await self._session_of(asked, is_answered=True)
            # Not of a session that may be a guess: the router that records the turn before puts the right one.
            sure = [chain for chain in chains if (asked.session is not None if chain != made else usage is not None)]
            self._chains.note(asked.principal, asked.ids, session, sure)
            calls = [_tool_call(result) for result in read.results]
            # Long texts are counted, which takes a tenth of a second for a megabyte.
            *first, last = await asyncio.to_thread(
                lambda: list(turn_parts(messages, calls, most_argument_bytes=self._arguments_bytes))
            )
            async with inner_client(self._behind, asked.principal, asked.ids) as api:
                for part in first:
                    await api.record(part.messages, session=session, tool_calls=part.tool_calls)
                await api.record(last.messages, session=session, tool_calls=last.tool_calls, **model_use)
        except LaminaError as error:
            _logger.warning("a turn of session %s was not recorded: %s", session, error)
            return
        try:
            await self._chains.put(asked.principal, asked.ids, session, chains, None if usage is None else made)
        except LaminaError as error:
            _logger.warning(
                "a turn was recorded, but not that who continues it belongs to session %s: %s", session, error
            )


class _Passing:
    """An answer on its way: each part is handed on as it came, and read beside.

    Args:
        answer: Of the endpoint; closed at its end, also when nobody reads on.
        reader: Reads it, where it is to be remembered.
        longest_s: Seconds after which it is cut off.
        keep_bytes: Most bytes of an answer that is kept as it came; 0 for one that is not.
        begun: When the endpoint was asked.
    """

    def __init__(
        self, answer: "httpx.Response", reader: AnswerReader | None, longest_s: float, keep_bytes: int, begun: float
    ) -> None:
        self._answer = answer
        self._reader = reader
        self._longest_s = longest_s
        self._keep_bytes = keep_bytes if reader is not None else 0
        self._begun = begun
        self._parts: list[bytes] = []
        self._is_whole = False
        self.latency_ms = 0.0
        self.status = answer.status_code
        self.is_read = reader is not None
        self.headers = {name: value for name, value in answer.headers.items() if name not in _NOT_RETURNED}

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the parts.

        Raises:
            ConnectionError: If the answer breaks off, so that its client sees no end of it.
        """
        try:
            async with asyncio.timeout(self._longest_s):
                async for part in self._answer.aiter_raw():
                    if self._reader is not None:
                        self._reader.feed(part)
                    self._hold(part)
                    yield part
            self._is_whole = True
            self.latency_ms = (time.monotonic() - self._begun) * 1000
        except TimeoutError as error:
            raise ConnectionAbortedError(TOO_LONG) from error
        finally:
            await self._answer.aclose()

    def answer(self) -> ModelAnswer | None:
        """Return the answer, if it came whole and can be read."""
        return self._reader.answer() if self._reader is not None and self._is_whole else None

    def kept(self) -> KeptAnswer | None:
        """Return the answer as it came; ``None`` if it is too long, no text, or not to be kept."""
        try:
            body = b"".join(self._parts).decode()
        except UnicodeDecodeError:
            return None
        return KeptAnswer(self.headers.get("content-type", "application/json"), body) if body else None

    def _hold(self, part: bytes) -> None:
        self._keep_bytes -= len(part)
        if self._keep_bytes > 0:
            self._parts.append(part)
        else:
            self._parts.clear()


def _changed(body: bytes, read: ModelRequest, block: str, settings: GatewaySettings) -> bytes:
    return with_block(body.decode(), read, block, role=settings.role, position=settings.position).encode()


async def _once(parts: list[bytes]) -> AsyncIterator[bytes]:
    """Yield the parts, and let go of each."""
    while parts:
        yield parts.pop(0)


def _read_body(shape: Shape, body: bytes) -> ModelRequest | None:
    try:
        return read_request(shape, json.loads(body.decode()))
    except (ValueError, RecursionError):
        return None


def _id_or_none(text: str | None) -> str | None:
    """Return a text of others if it can be an id: one name that is too long would lose the turn that has it."""
    try:
        return None if text is None else clean_name(text, "id")
    except InvalidInput:
        return None


def _message(role: str, said: Said) -> dict[str, Any]:
    metadata = {"parts": list(said.parts)} if said.parts else {}
    name = _id_or_none(said.name)
    message = {"role": role, "content": said.text, "name": name, "ref": said.ref, "metadata": metadata}
    return {name: value for name, value in message.items() if value}


def _tool_call(result: ToolResult) -> dict[str, Any]:
    return {
        "id": _id_or_none(result.id) or f"call-{digest(result.id).hex()}",
        "name": _id_or_none(result.name) or "tool",
        "arguments": result.arguments or {},
        "result": result.result,
    }


def _unreachable(error: Exception, recall: _Recall) -> Response:
    is_late = "Timeout" in type(error).__name__
    status = HTTPStatus.GATEWAY_TIMEOUT if is_late else HTTPStatus.BAD_GATEWAY
    _logger.warning("the endpoint at gateway.base_url does not answer: %s", describe_error(error))
    reason = "did not answer in time" if is_late else "cannot be reached"
    refusal = _refusal(status, f"the endpoint at gateway.base_url {reason}; nothing was recorded")
    refusal.headers.update(recall.headers())
    return refusal


def _refusal(status: HTTPStatus, detail: str) -> Response:
    """Return an error in the form that clients of OpenAI read."""
    error = {"message": detail, "type": "lamina_error", "param": None, "code": status.name.lower()}
    return JSONResponse({"error": error}, status)
