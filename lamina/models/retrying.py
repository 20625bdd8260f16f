"""Calls of an HTTP endpoint that serves a model: repeated where a repetition may help, within one deadline."""

import json
import logging
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx

from lamina.errors import ModelLimit, TextRefused, Unavailable
from lamina.host.authorities import trusted_authorities
from lamina.models.backoff import asked_wait_s, backoff_s, may_pass, refuses_request
from lamina.settings.models import EndpointCalls

logger = logging.getLogger(__name__)
MOST_ANSWER_BYTES = 256 * 2**20
"""More than the longest vectors of a full call take as JSON."""
UNANSWERED = "its endpoint did not answer in time"
NO_JSON = "its endpoint answers something that is no JSON"
MAY_BE_CHARGED = frozenset({UNANSWERED, NO_JSON})
"""Reasons of failures of which the endpoint may have worked all the same."""


class EndpointClient:
    """Posts JSON to one URL; blocking and thread-safe.

    No text of an answer gets into an error: it may quote the request, and errors are told to tenants.

    Args:
        part: The part of Lamina that it stands for, as errors name it.
        url: The URL.
        calls: Key, patience and tries.
    """

    def __init__(self, part: str, url: str, calls: EndpointCalls) -> None:
        self._part = part
        self._url = url
        self._calls = calls
        key = calls.api_key
        headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        self._client = httpx.Client(verify=trusted_authorities(), timeout=calls.timeout_s, headers=headers)

    def post(self, body: Any) -> Any:
        """Return the JSON of the answer.

        Raises:
            Unavailable: If every try failed, or the deadline is over.
            TextRefused: If the endpoint refuses what the request holds.
            ModelLimit: If it takes no more calls or tokens for now.
        """
        until = time.monotonic() + self._calls.deadline_s
        for attempt in range(self._calls.max_retries + 1):
            failure, asked_s = self._try(body, until)
            if isinstance(failure, _Answered):
                return failure.value
            wait_s = backoff_s(self._calls.backoff_s, attempt) if asked_s is None else asked_s
            if attempt == self._calls.max_retries or not failure.may_pass or time.monotonic() + wait_s > until:
                raise failure.kind(self._part, failure.reason, retry_after_s=max(1, int(asked_s or 1)))
            time.sleep(wait_s)
        raise AssertionError  # The last try returns or raises.

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _try(self, body: Any, until: float) -> "tuple[_Answered | _Failed, float | None]":
        began = time.monotonic()
        left_s = max(0.001, min(self._calls.timeout_s, until - began))
        try:
            with self._client.stream("POST", self._url, json=body, timeout=left_s) as answer:
                content = _read(answer, began + left_s)
        except httpx.ReadTimeout:
            return _Failed(UNANSWERED, may_pass=True), None
        except httpx.HTTPError as error:
            return _Failed(f"its endpoint did not answer ({type(error).__name__})", may_pass=True), None
        except httpx.InvalidURL:
            return _Failed("the address of its endpoint is no URL", may_pass=False), None
        if answer.status_code == HTTPStatus.OK:
            try:
                return _Answered(json.loads(content)), None
            except ValueError:
                return _Failed(NO_JSON, may_pass=False), None
        status = answer.status_code
        logger.warning("%s: the endpoint %s answers %d", self._part, self._url, status)
        reason = f"its endpoint answers {status}{_hint(status)}"
        return _Failed(reason, may_pass=may_pass(status), kind=_kind(status)), asked_wait_s(
            answer.headers.get("Retry-After", "")
        )


@dataclass(frozen=True, slots=True)
class _Answered:
    value: Any


class _Failed:
    def __init__(self, reason: str, *, may_pass: bool, kind: type[Unavailable] = Unavailable) -> None:
        self.reason = reason
        self.may_pass = may_pass
        self.kind = kind


def _read(answer: httpx.Response, until: float) -> bytes:
    """Read an answer; the client's timeout is of one read alone, and an answer may come byte by byte."""
    content = bytearray()
    for chunk in answer.iter_bytes():
        content += chunk
        if time.monotonic() > until:
            raise httpx.ReadTimeout(UNANSWERED)
        if len(content) > MOST_ANSWER_BYTES:
            raise httpx.DecodingError(f"more than {MOST_ANSWER_BYTES} bytes")
    return bytes(content)


def _kind(status: int) -> type[Unavailable]:
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return ModelLimit
    return TextRefused if refuses_request(status) else Unavailable


def _hint(status: int) -> str:
    match status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return ", it refuses the key (api_key)"
        case HTTPStatus.NOT_FOUND:
            return ", it knows no such address or model"
        case HTTPStatus.TOO_MANY_REQUESTS:
            return ", its limit is reached"
        case _:
            return ""
