"""Middleware before everything else: a request without a valid key is refused before a byte of its body is read.

A body, and the reading of an answer, must keep a pace, so that nobody holds a place by being slow. Requests without a
key, and wrong keys, are counted by their address; beyond its rate an address costs no lookup and no page.
"""

import asyncio
import math
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from fastapi.security.utils import get_authorization_scheme_param
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments.bodies import receive_body
from deployments.fair_places import FairPlaces, share_limits
from deployments.patient_server import NO_ADDRESS
from deployments.problems import answer_error, problem
from deployments.proxy_rules import CLOSES, GATEWAY, KEYED_PATHS, PAGE_COST, is_page
from deployments.services import Services
from lamina.core.principals import Principal
from lamina.core.quotas import Resource, counted_spending
from lamina.errors import LaminaError, LimitReached, Unauthenticated
from lamina.policies.limits.address_rates import AddressRates
from lamina.policies.limits.pace import Pace
from lamina.settings.serving import FrontDoorSettings

# Of the paths below those, the ones for monitors.
_OPEN = frozenset({"/cache/health"})
# A lookup may wait a minute for another one's response.
_IDLE = frozenset({"/v1/responses/lookup"})
_STREAM = "text/event-stream"
# Some clients send an empty object where no body is asked for.
_EMPTY_OBJECT_BYTES = ("1", "2")
_ADDRESS = "address"
SLOWED_S = 1.0
"""Seconds after which a key is refused that comes from an address beyond its rate: keys are not tried without pause."""
_SLOWED_SHARE = 4
MAX_DRAINED_BYTES = 64 * 1024 * 1024
"""Of a body that is refused unread, and thrown away: who sends on into a closed connection reads no answer."""
MAX_DRAINED_WITHOUT_PLACE_BYTES = 256 * 1024
"""The same of a request that has no place among those of its tenant."""
MOST_SILENCE_S = 0.25
"""Between two parts of its body: half-sent ones, each waited for as long as a place allows, took all of a router."""
LARGE_BYTES = 4_096
"""Size of a body from which a request is large: the work on it is no longer small beside that on others."""
SHARED_BYTES_PER_S = 16 * 1024 * 1024
"""Of a large body while another tenant asks: reading on and on would take the loop from its requests."""
_GONE: Message = {"type": "http.disconnect"}


class FrontDoor:
    """Checks the key by the headers alone, and keeps bodies and readers to their pace.

    Args:
        app: The application.
        services: Its key check and its settings.
        clock: Seconds that never go back.
    """

    def __init__(self, app: ASGIApp, services: Services, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._services = services
        self._limits = services.settings.serve.front_door
        self._wrong_keys = AddressRates(self._limits.wrong_keys_per_minute)
        self._unkeyed = AddressRates(self._limits.unkeyed_requests_per_minute)
        self._slowed = self._draining = 0
        self._most_slowed = max(1, services.settings.serve.router.max_ongoing_requests // _SLOWED_SHARE)
        shares = share_limits(services.settings)
        # Of the places that no tenant can take alone, half: those without one must not take the others' instead.
        self._most_drained = max(1, (services.settings.serve.router.max_ongoing_requests - shares.of_tenant_alone) // 2)
        self._places = FairPlaces(shares, clock)
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401, 408, 413 or 429."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if not needs_key(scope["path"]):
            try:
                self._admit_unkeyed(scope)
            except LimitReached as error:
                await self._refuse(error, scope, headers, receive, send)
                return
            await self._serve_open(scope, headers, receive, send)
            return
        try:
            principal = await self._admit(scope, headers)
        except LaminaError as error:
            await self._refuse(error, scope, headers, receive, send)
            return
        scope.setdefault("state", {})["principal"] = principal
        exchange = _Exchange(receive, self._telling_quotas(send, principal), self._limits, self._clock)
        exchange.is_shared = partial(self._places.is_shared, principal.tenant)
        exchange.unread_bytes = _declared_bytes(headers)
        scope["state"]["exchange"] = exchange
        try:
            await self._services.quotas.admit(principal)
            is_idle, is_large = _is_idle(scope, headers), _is_large(headers)
            async with self._places.place(principal, is_idle=is_idle, is_large=is_large) as rest:
                scope["state"]["rest"] = rest
                await self._work(scope, exchange, principal)
                await exchange.finish(MAX_DRAINED_BYTES)
        except LaminaError as error:
            await answer_error(Request(scope), error)(scope, receive, exchange.send)
            await self._drain_without_place(exchange)

    async def _drain_without_place(self, exchange: "_Exchange") -> None:
        """Throw away the body of a request that has no place, of so many at once and while it comes."""
        self._draining += 1
        try:
            is_room = self._draining <= self._most_drained
            await exchange.finish(MAX_DRAINED_WITHOUT_PLACE_BYTES if is_room else 0, MOST_SILENCE_S)
        finally:
            self._draining -= 1

    async def _work(self, scope: Scope, exchange: "_Exchange", principal: Principal) -> None:
        """Run the application on a request, and charge its cost to the quotas, also when it fails."""
        with counted_spending(principal.tenant) as spending:
            try:
                await self._app(scope, exchange.receive, exchange.send)
            finally:
                if Resource.ROWS in spending.amounts:
                    spending.add(Resource.BYTES, exchange.body_bytes)
                self._services.quotas.settle(principal, spending)
                self._services.usage.count(principal.tenant, spending, exchange.body_bytes)
        await exchange.refuse_if_late(scope)

    async def _serve_open(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Serve a path that everybody may ask: no body is waited for."""
        if not _declares_body(headers):
            await self._app(scope, receive, send)
        elif headers.get("content-length", "") in _EMPTY_OBJECT_BYTES:
            await self._app(_without_body(scope), receive_body(b"", receive), _closing(send))
        else:
            refusal = problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body: no body is read here; send none")
            await refusal(scope, receive, _closing(send))

    async def _refuse(self, error: LaminaError, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Answer an error without reading a body; close the connection then, and for an address beyond its rate."""
        answer = answer_error(Request(scope), error)
        is_last = _declares_body(headers) or (isinstance(error, LimitReached) and error.part == _ADDRESS)
        await answer(scope, receive, _closing(send) if is_last else send)

    def _telling_quotas(self, send: Send, principal: Principal) -> Send:
        """Return a ``send`` that adds the state of the quotas to the answer."""

        async def send_telling(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = self._services.quotas.headers(principal)
                message = {**message, "headers": [*message.get("headers", ()), *told]}
            await send(message)

        return send_telling

    async def _admit(self, scope: Scope, headers: Headers) -> Principal:
        """Return the principal of the request's key.

        Raises:
            Unauthenticated: If it has none, or a wrong one.
            LimitReached: If its address has tried too many wrong ones, and this one was not seen here before.
        """
        scheme, key = get_authorization_scheme_param(headers.get("authorization"))
        if not key or scheme.lower() != "bearer":
            self._admit_unkeyed(scope)
            raise Unauthenticated
        if self._services.key_check.knows(key):
            # Who asks a model through the gateway does not wait for Postgres to come back.
            believed_s = self._services.settings.gateway.believe_key_s if scope["path"].startswith(GATEWAY) else 0.0
            return await self._services.key_check.check(key, believed_s=believed_s)
        address = _address(scope)
        # Counted before it is checked: otherwise a thousand that are sent at once would all be checked.
        wait_s = self._wrong_keys.take(address, self._clock())
        if wait_s:
            await self._slow_down()
            raise LimitReached(_ADDRESS, f"{self._limits.wrong_keys_per_minute} wrong keys a minute", wait_s)
        try:
            principal = await self._services.key_check.check(key)
        except Unauthenticated:
            raise
        except LaminaError:
            self._wrong_keys.give_back(address, self._clock())
            raise
        self._wrong_keys.give_back(address, self._clock())
        return principal

    def _admit_unkeyed(self, scope: Scope) -> None:
        """Count a request without a key by its address.

        Raises:
            LimitReached: If the address has made too many.
        """
        cost = PAGE_COST if is_page(scope["path"]) else 1
        wait_s = self._unkeyed.take(_address(scope), self._clock(), cost)
        if wait_s:
            reason = f"{self._limits.unkeyed_requests_per_minute} requests without a key a minute"
            raise LimitReached(_ADDRESS, reason, wait_s)

    async def _slow_down(self) -> None:
        """Wait before a refusal, unless so many wait that they would take the places of others."""
        if self._slowed >= self._most_slowed:
            return
        self._slowed += 1
        try:
            await asyncio.sleep(SLOWED_S)
        finally:
            self._slowed -= 1


class _Exchange:
    """One request's way in and one answer's way out, each at its pace.

    Attributes:
        unread_bytes: Of the body, which are still to come, as far as they are declared; 0 once it has all come.
        is_shared: Reports whether another tenant asks, too.
        is_cut: Whether the client has not read the answer in time.
    """

    def __init__(self, receive: Receive, send: Send, limits: FrontDoorSettings, clock: Callable[[], float]) -> None:
        self._receive = receive
        self._send = send
        self._clock = clock
        self._in, self._out = (Pace(limits.body_s, limits.body_bytes_per_s) for _ in range(2))
        self.unread_bytes = 0.0
        self.is_shared: Callable[[], bool] = lambda: False
        self._most_silence_s = math.inf
        self._is_started = self._is_late = self.is_cut = self._is_open = False

    @property
    def body_bytes(self) -> int:
        """Bytes of the body that came."""
        return self._in.size_bytes

    async def receive(self) -> Message:
        """Return the next part of the body; a client that is late counts as gone."""
        if not self.unread_bytes:
            return await self._receive()
        if self._is_late:
            return _GONE
        began = self._clock()
        try:
            async with asyncio.timeout(min(self._in.left_s(), self._most_silence_s)):
                message = await self._receive()
        except TimeoutError:
            self._is_late = True
            return _GONE
        size_bytes = len(message.get("body", b""))
        self._in.count(size_bytes, self._clock() - began)
        is_last = message["type"] != "http.request" or not message.get("more_body", False)
        self.unread_bytes = 0.0 if is_last else max(1.0, self.unread_bytes - size_bytes)
        if size_bytes > LARGE_BYTES and self.is_shared():
            await asyncio.sleep(size_bytes / SHARED_BYTES_PER_S)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer; the rest of one that is not read in time is dropped, and its connection ends."""
        if self._is_late or self.is_cut:
            return
        if not self._is_started and self.unread_bytes:
            self._send = _closing(self._send)
            self._is_open = True
        self._is_started = True
        if self._is_open and message["type"] == "http.response.body":
            message = {**message, "more_body": True}
        began = self._clock()
        try:
            async with asyncio.timeout(self._out.left_s()):
                await self._send(message)
        except TimeoutError:
            self.is_cut = True
            return
        self._out.count(len(message.get("body", b"")), self._clock() - began)

    async def finish(self, max_bytes: int, most_silence_s: float = math.inf) -> None:
        """End an answer that was given before the body was read, once its rest has come and is thrown away.

        The answer itself is at the client already. A server that closes while data come resets the connection, and most
        clients, who send all of a body before they read, then see no answer.

        Args:
            max_bytes: Of the rest; one that is declared larger is not waited for.
            most_silence_s: Longest wait for the next part of it.
        """
        self._most_silence_s = most_silence_s
        if not self._is_open:
            return
        if max_bytes and (self.unread_bytes <= max_bytes or self.unread_bytes == math.inf):
            end_bytes = self._in.size_bytes + max_bytes
            while self.unread_bytes and not self._is_late and self._in.size_bytes <= end_bytes:
                await self.receive()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def refuse_if_late(self, scope: Scope) -> None:
        """Answer 408 in place of the application's answer to half a body."""
        if self._is_late and not self._is_started:
            detail = f"the body did not arrive in time: {self._in.size_bytes} bytes in {self._in.waited_s:.0f} s"
            await problem(HTTPStatus.REQUEST_TIMEOUT, detail)(scope, self._receive, _closing(self._send))


def needs_key(path: str) -> bool:
    """Report whether a path needs a key."""
    return path.startswith(KEYED_PATHS) and path not in _OPEN


def _address(scope: Scope) -> str:
    return str((scope.get("client") or (NO_ADDRESS,))[0])


def _is_idle(scope: Scope, headers: Headers) -> bool:
    """Report whether a request waits for long, without work."""
    return (
        scope["path"] in _IDLE
        or scope["path"].startswith(GATEWAY)
        or (scope["path"] == "/v1/events" and _STREAM in headers.get("accept", ""))
    )


def _declares_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _declared_bytes(headers: Headers) -> float:
    """Return the declared length of a body, infinity for one that is not known."""
    length = headers.get("content-length", "0")
    return int(length) if "transfer-encoding" not in headers and length.isdecimal() else math.inf


def _is_large(headers: Headers) -> bool:
    """Report whether a body is large by its declared length, or may be, packed or of unknown length."""
    return "content-encoding" in headers or _declared_bytes(headers) > LARGE_BYTES


def _without_body(scope: Scope) -> Scope:
    scope = {**scope, "headers": list(scope["headers"])}
    MutableHeaders(scope=scope)["content-length"] = "0"
    return scope


def _closing(send: Send) -> Send:
    """Return a ``send`` that closes the connection after the answer, since an unread body is still on it."""

    async def send_last(message: Message) -> None:
        if message["type"] == "http.response.start":
            ending = ((b"connection", b"close"), (CLOSES.encode(), b"1"))
            message = {**message, "headers": [*message.get("headers", ()), *ending]}
        await send(message)

    return send_last
